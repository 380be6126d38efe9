"""Lemma C.5: no frequent item is lost by subsampling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from experiments.claims._claim import Cell, Claim
from experiments.verdict import QuantileEvidence
from theory import lemma_c5

if TYPE_CHECKING:
    from experiments.cells import Run


def _observe(run: Run) -> Iterator[Cell]:
    if run.profile.clipped:
        bound = lemma_c5(run.profile, run.beta)
        samples = run.events.max_lost_mass
        yield run.cell, QuantileEvidence(samples, float(bound.value), run.beta, tag=bound.tag)


CLAIMS = (
    Claim(
        name="lemma-c.5",
        title="Lemma C.5 largest mass lost",
        kind="upper, quantile",
        statement="MM_inf(W, union of subsamples) <= ln(N/beta)/(p* N) with probability 1 - beta.",
        explicit="As printed.",
        observe=_observe,
    ),
)
