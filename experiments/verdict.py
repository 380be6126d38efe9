"""Verdicts: what the trials, or exact arithmetic, say about each cell of a claim.

- **proved**: decided in favour by exact arithmetic; **confirmed**: by trials, at the stated level.
- **refuted**: decided against, by either method.
- **undecided**: the evidence reaches the level in neither direction.
- **vacuous**: the bound says nothing (>= 1 from above, <= 0 from below). Never a success.

Levels. Cells decided by trials form one family per claim; vacuous and exact cells are not in it.
Holm's procedure runs over the family once for "confirmed" and once for "refuted", each at the
whole level. The probability that any false cell is confirmed is at most the level, and so is the
probability that any true cell is refuted. In each cell only one of the two errors is possible;
a run in which all cells are true (or all false) errs anywhere with probability at most the level.
With many looks the p-values are anytime-valid, so trials may be added to any cell for any reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from experiments.plain import plain
from experiments.statistics.evidence import (
    Evidence,
    ExactEvidence,
    Looks,
    MeanEvidence,
    QuantileEvidence,
    SlopeEvidence,
)
from experiments.statistics.holm import holm
from theory._check import check_beta, invalid

__all__ = [
    "Evidence",
    "ExactEvidence",
    "MeanEvidence",
    "QuantileEvidence",
    "SlopeEvidence",
    "Verdict",
    "claim_success",
    "judge",
]

Decision = Literal["proved", "confirmed", "refuted", "undecided", "vacuous"]
Expected = Literal["holds", "refuted"]


@dataclass(frozen=True)
class Verdict:
    """What was found about one cell of a claim.

    Attributes:
        claim: Name of the claim.
        cell: Settings of the cell (dataset, eps, max_items_per_user, ...).
        verdict: "proved", "confirmed", "refuted", "undecided" or "vacuous".
        method: "exact" or "simulation".
        bound: What the claim says.
        observed: Empirical quantile, mean or slope, or the exact value; None without trials.
        slack: Bound over observed for an upper bound, observed over bound for a lower one (both
            at least 1 where the bound holds); None where that is not defined.
        trials: Number of trials, None for exact cells.
        exceedances: Trials beyond the bound, for claims about a quantile.
        beta: Claimed failure probability, for claims about a quantile.
        level: Family-wise level of each kind of error.
        p_confirm: Holm-adjusted p-value against "the claim is false here"; compare with level.
        p_refute: Holm-adjusted p-value against "the claim is true here"; compare with level.
        family: Number of cells that share the level.
        expected: "holds", or "refuted" for an erratum.
        seed: Seed of the trials.
        tag: Name of the bound, such as "[U2]".
        note: What else a reader should know.
    """

    claim: str
    cell: Mapping[str, Any]
    verdict: Decision
    method: Literal["exact", "simulation"]
    bound: float
    observed: float | None
    slack: float | None
    trials: int | None
    exceedances: int | None
    beta: float | None
    level: float
    p_confirm: float | None
    p_refute: float | None
    family: int
    expected: Expected
    seed: int | None
    tag: str
    note: str

    @property
    def success(self) -> bool | None:
        """Whether the cell came out as expected; None if undecided or vacuous."""
        if self.verdict in ("undecided", "vacuous"):
            return None
        return (self.verdict == "refuted") == (self.expected == "refuted")

    def to_dict(self) -> dict[str, Any]:
        """The record as strict JSON: plain Python values, None where a number is not finite."""
        return plain(asdict(self))


def judge(
    claim: str,
    cells: Sequence[tuple[Mapping[str, Any], Evidence]],
    *,
    level: float,
    expected: Expected = "holds",
    looks: Looks = "one",
    seed: int | None = None,
) -> list[Verdict]:
    """Verdicts on all cells of one claim, with family-wise error control.

    Args:
        claim: Name of the claim.
        cells: Settings and evidence of each cell.
        level: Family-wise level, in (0, 1/2]: for any false confirmation, and for any false
            refutation.
        expected: "holds", or "refuted" for an erratum. Recorded; it changes no verdict.
        looks: "one" if the number of trials was fixed beforehand ([V1]); "many" if trials are
            added until decided ([V2]), where calling again with more trials is allowed.
        seed: Recorded.

    Returns:
        One `Verdict` per cell, in the order given.

    Raises:
        InvalidInput: level is outside (0, 1/2], looks or expected is another word, or a slope is
            to be judged at many looks.

    Source: theory section 8.

    Example:
        >>> import numpy as np
        >>> seen = QuantileEvidence(np.full(1000, 0.2), bound=0.3, beta=0.05, tag="[U2]")
        >>> [v.verdict for v in judge("theorem-3.3", [({"eps": 1.0}, seen)], level=0.01)]
        ['confirmed']
    """
    check_beta(level, "level")
    if level > 0.5:
        invalid("level", level, "must be in (0, 0.5]")
    if looks not in ("one", "many"):
        invalid("looks", looks, "must be one or many")
    if expected not in ("holds", "refuted"):
        invalid("expected", expected, "must be holds or refuted")

    raw: dict[int, tuple[float, float]] = {}
    for i, (_, evidence) in enumerate(cells):
        if not isinstance(evidence, ExactEvidence) and not evidence.vacuous:
            raw[i] = evidence.p_values(looks)
    confirm = holm([p for p, _ in raw.values()], alpha=level)
    refute = holm([p for _, p in raw.values()], alpha=level)
    place = {i: j for j, i in enumerate(raw)}

    verdicts = []
    for i, (cell, evidence) in enumerate(cells):
        p_confirm = p_refute = None
        if evidence.vacuous:
            decision = "vacuous"
        elif isinstance(evidence, ExactEvidence):
            decision = evidence.decision
        else:
            j = place[i]
            p_confirm, p_refute = float(confirm.adjusted[j]), float(refute.adjusted[j])
            decision = _decide(bool(confirm.rejected[j]), bool(refute.rejected[j]))
        verdicts.append(
            Verdict(
                claim=claim,
                cell=dict(cell),
                verdict=decision,
                method=evidence.method,
                bound=evidence.bound,
                observed=evidence.observed,
                slack=evidence.slack,
                trials=evidence.trials,
                exceedances=evidence.exceedances,
                beta=evidence.beta,
                level=level,
                p_confirm=p_confirm,
                p_refute=p_refute,
                family=len(raw),
                expected=expected,
                seed=seed,
                tag=evidence.tag,
                note=evidence.note,
            )
        )
    return verdicts


def _decide(confirmed: bool, refuted: bool) -> Literal["confirmed", "refuted", "undecided"]:
    # Prefixes of one run can reach the level both ways, with probability at most the level.
    if confirmed == refuted:
        return "undecided"
    return "confirmed" if confirmed else "refuted"


def claim_success(verdicts: Sequence[Verdict], expected: Expected) -> bool | None:
    """Whether a claim came out as expected over all its cells.

    A claim that "holds" succeeds if every cell that is not vacuous is proved or confirmed. An
    erratum ("refuted") succeeds if every cell that is not vacuous is refuted: its cells are the
    instances it names, and each is a counterexample. At least one cell must not be vacuous.

    Args:
        verdicts: Verdicts of the cells of one claim.
        expected: "holds" or "refuted".

    Returns:
        True: success. False: at least one cell was decided the other way. None: no cell was, but
        some are undecided, or all are vacuous.

    Example:
        >>> claim_success([], "holds") is None
        True
    """
    decided = [v.verdict for v in verdicts if v.verdict != "vacuous"]
    good = ("refuted",) if expected == "refuted" else ("proved", "confirmed")
    if any(v not in good and v != "undecided" for v in decided):
        return False
    return True if decided and "undecided" not in decided else None
