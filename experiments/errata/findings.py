"""What is computed about an erratum: its counterexamples, and its correction at work."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.claims import Cell, Claim, Settings
from experiments.errata.entries import Erratum
from experiments.verdict import Verdict, claim_success, judge

if TYPE_CHECKING:
    from experiments.cells import Run

_SETTINGS = Settings(eps=(1.0,), num_trials=0)
# Corrections that are about data sets are looked at on one of the default grid of `wgm verify`.
_S, _PAIRS = 2.0, 100_000


@dataclass(frozen=True)
class Row:
    """One number of a statement against the true one.

    Attributes:
        form: "as printed" or "corrected".
        cell: The instance.
        sign: "≤" or "≥": what the statement says of the true number.
        says: The number that the statement names.
        true: The number itself, from exact laws.
        verdict: "refuted", "proved", or "vacuous" where a bound says nothing.
        note: What the numbers are.

    Example:
        >>> from experiments.errata import Row
        >>> Row("as printed", {"k": 1}, "≤", 0.1, 0.2, "refuted", "").verdict
        'refuted'
    """

    form: str
    cell: Mapping[str, Any]
    sign: str
    says: float
    true: float
    verdict: str
    note: str


@dataclass(frozen=True)
class Finding:
    """An erratum with its numbers.

    Attributes:
        erratum: What is printed, and the correction.
        rows: The instances shown, as printed and corrected.
        printed: Cells of the printed statement by verdict; not only those shown.
        corrected: The same of the corrected statement.
        demonstrated: Every instance is refuted, and the correction holds in every cell.

    Example:
        >>> from experiments.errata import examine_erratum, select_errata
        >>> dict(examine_erratum(select_errata(["5b"])[0]).printed)
        {'refuted': 3}
    """

    erratum: Erratum
    rows: Sequence[Row]
    printed: Mapping[str, int]
    corrected: Mapping[str, int]
    demonstrated: bool


def examine_erratum(erratum: Erratum) -> Finding:
    """Compute both sides of an erratum by exact arithmetic: no trial is drawn.

    Args:
        erratum: One of `errata()`.

    Returns:
        A `Finding`.

    Example:
        >>> from experiments.errata.entries import select_errata
        >>> finding = examine_erratum(select_errata(["1a"])[0])
        >>> row = finding.rows[0]
        >>> row.true, row.sign, round(row.says, 5), row.verdict, finding.demonstrated
        (0.5, '≤', 0.39945, 'refuted', True)
    """
    printed = _judged(erratum.claim)
    held = _judged(erratum.corrected)
    same = [] if erratum.same_instance is None else _judged(erratum.same_instance)
    shown = [
        _row(form, *entry)
        for form, entries in (("as printed", printed), ("corrected", [*same, *held]))
        for entry in entries
        if erratum.shows(entry[0][0])
    ]
    return Finding(
        erratum=erratum,
        rows=shown,
        printed=Counter(verdict.verdict for _, verdict in printed),
        corrected=Counter(verdict.verdict for _, verdict in [*same, *held]),
        demonstrated=claim_success([v for _, v in printed], "refuted") is True
        and claim_success([v for _, v in [*same, *held]], "holds") is True,
    )


def _judged(claim: Claim) -> list[tuple[Cell, Verdict]]:
    cells = list(_cells(claim))
    found = judge(claim.name, cells, level=0.01, expected=claim.expected)
    return list(zip(cells, found, strict=True))


def _cells(claim: Claim) -> Iterator[Cell]:
    if claim.family is not None:
        yield from claim.family(_SETTINGS)
    elif claim.observe is not None:
        yield from claim.observe(_run())


@functools.cache
def _run() -> Run:
    """A Zipfian data set without trials: for corrections that are about data sets."""
    from experiments.cells import Case, run_case
    from wgm_jax.synthetic import SetSizes, zipf_draws

    sizes = SetSizes("geometric", mean=3.0, cap=30)
    data = zipf_draws(s=_S, num_pairs=_PAIRS, set_sizes=sizes, seed=0)
    case = Case(name=f"zipf s={_S:g} N=1e5", data=data, settings={"kind": "zipf_draws"})
    return run_case(case, max_items_per_user=1, eps=[1.0], delta=_SETTINGS.delta, num_trials=0)


def _row(form: str, cell: Cell, verdict: Verdict) -> Row:
    side = getattr(cell[1], "side", "upper")
    assert verdict.observed is not None  # exact evidence always has a number
    return Row(
        form=form,
        cell=cell[0],
        sign="≤" if side == "upper" else "≥",
        says=verdict.bound,
        true=verdict.observed,
        verdict=verdict.verdict,
        note=verdict.note,
    )
