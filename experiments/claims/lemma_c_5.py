"""Lemma C.5: no frequent item is lost by subsampling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from experiments.claims._claim import Cell, Claim, below
from theory import lemma_c5, loss_probabilities, quantile_interval

if TYPE_CHECKING:
    from experiments.cells import Run


def _observe(run: Run) -> Iterator[Cell]:
    if not run.profile.clipped or run.profile.classes is None:
        return
    bound = lemma_c5(run.profile, run.beta)
    lost = loss_probabilities(run.profile)
    interval = quantile_interval(lost, run.beta, metric="max_missing_mass")
    trials = None if run.simulated is None else lambda: run.events.max_lost_mass
    yield run.cell, below(interval, float(bound.value), run.beta, tag=bound.tag, trials=trials)


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
