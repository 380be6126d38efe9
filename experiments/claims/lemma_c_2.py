"""Lemma C.2: mass lost by subsampling, with the constant that its proof needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from experiments.claims._claim import Cell, Claim, below
from theory import (
    best_certificate,
    lemma_c2_frequency,
    lemma_c2_mass,
    loss_probabilities,
    quantile_interval,
)

if TYPE_CHECKING:
    from experiments.cells import Run


def _observe(run: Run) -> Iterator[Cell]:
    if not run.profile.clipped or run.profile.classes is None:
        return
    level = max(float(lemma_c2_frequency(run.profile, run.beta).value), 1.0)
    certificate = best_certificate(run.profile, level)
    bound = lemma_c2_mass(run.profile, run.beta, certificate=certificate)
    lost = loss_probabilities(run.profile)
    interval = quantile_interval(lost, run.beta, metric="missing_mass")
    trials = None if run.simulated is None else lambda: run.events.lost_mass
    yield run.cell, below(interval, float(bound.value), run.beta, tag=bound.tag, trials=trials)


CLAIMS = (
    Claim(
        name="lemma-c.2",
        title="Lemma C.2 [Z2] lost by subsampling",
        kind="upper, quantile",
        statement="MM(W, union of subsamples) <= C^(1/s)/(s-1) "
        "(ln((CN)^(1/s)/beta)/(p* N))^((s-1)/s).",
        explicit="The same with s/(s-1) in place of 1/(s-1); as printed it is erratum 1.",
        observe=_observe,
    ),
)
