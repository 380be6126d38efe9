"""Lemma C.4: what is missed after subsampling weighs little."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from experiments.claims._claim import Cell, Claim
from experiments.verdict import ExactEvidence
from theory import Bound, heavy_miss_probability, lemma_c4_printed, lemma_c4_weight

if TYPE_CHECKING:
    from experiments.cells import Run


def _cells(run: Run, bound: Bound) -> Iterator[Cell]:
    if not run.profile.clipped or run.profile.classes is None:
        return
    chances = heavy_miss_probability(run.profile, run.calibration, bound.value)
    for index, (cell, chance) in enumerate(zip(run.cells, chances.tolist(), strict=True)):
        note = f"P(an item of H > {float(bound.at(index).value):.4g} is missed), union over items"
        # The lemma itself is this union over all M items, so it may be met with equality.
        yield (
            cell,
            ExactEvidence(
                chance, run.beta * (1 + 1e-9), "upper", has_slack=False, tag=bound.tag,
                note=note,
            ),
        )  # fmt: skip


_STATEMENT = (
    "With probability 1 - beta, every item that was kept and missed has H(x) <= "
    "T0 = T + sigma sqrt(2 ln(2N/beta))."
)
CLAIMS = (
    Claim(
        name="lemma-c.4",
        title="Lemma C.4 [C.4] weight of the missed",
        kind="upper, quantile",
        statement=_STATEMENT,
        explicit="T0 = T + sigma Phi^-1(1 - beta/M), which is smaller.",
        observe=lambda run: _cells(run, lemma_c4_weight(run.profile, run.calibration, run.beta)),
    ),
    Claim(
        name="lemma-c.4-printed",
        title="Lemma C.4 as printed",
        kind="upper, quantile",
        statement=_STATEMENT,
        explicit="T0 = T + sigma sqrt(2 ln(2N/beta)).",
        observe=lambda run: _cells(run, lemma_c4_printed(run.profile, run.calibration, run.beta)),
    ),
)
