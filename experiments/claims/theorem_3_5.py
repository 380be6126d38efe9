"""Theorem 3.5: no private mechanism misses less, on any data and on the hard Zipfian data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from experiments.claims._claim import Cell, Claim, Settings
from experiments.verdict import ExactEvidence, MeanEvidence
from theory import (
    calibrate,
    hard_zipf_bound,
    hard_zipf_profile,
    instance_lower_bound,
    miss_probabilities,
)

if TYPE_CHECKING:
    from experiments.cells import Run

# Relative rounding of a float64 sum over items, generously.
_ROUNDING = 1e-11


def _observe(run: Run) -> Iterator[Cell]:
    bound = run.bounds["lower_instance"]
    for index, cell in enumerate(run.cells):
        value = float(bound.at(index).value)
        if run.exact_mean is not None:
            mean = float(run.exact_mean[index])
            yield cell, ExactEvidence(mean, value, "lower", error=_ROUNDING, tag=bound.tag)
        else:
            mass = np.ascontiguousarray(run.trials.missing_mass[:, index])
            yield cell, MeanEvidence(mass, value, "lower", tag=bound.tag)


def _hard_family(settings: Settings) -> Iterator[Cell]:
    for s in (1.2, 1.5, 2.0, 3.0):
        for pairs in (10**4, 10**6, 10**12):
            profile = hard_zipf_profile(1.0, s, pairs)
            for eps in sorted({0.01, 0.1, 1.0, 10.0, *settings.eps}):
                calibration = calibrate(eps=eps, delta=settings.delta, max_items_per_user=1)
                mean = float(miss_probabilities(profile, calibration).mean_missing_mass)
                cell = {"s": s, "C": 1.0, "num_pairs": pairs, "eps": eps, "delta": settings.delta}
                hard = hard_zipf_bound(1.0, s, pairs, eps=eps, delta=settings.delta)
                instance = instance_lower_bound(profile, eps=eps, delta=settings.delta)
                for bound in (hard, instance):
                    value = float(bound.value)
                    yield cell, ExactEvidence(mean, value, "lower", error=_ROUNDING, tag=bound.tag)


CLAIMS = (
    Claim(
        name="theorem-3.5",
        title="Theorem 3.5 [L2] any mechanism",
        kind="lower, mean",
        statement="Every sound (eps, delta)-DP algorithm misses at least this much on average.",
        explicit="E[MM] >= sum a(x) (1 - pi(N(x))), pi the optimal selection probability [L0].",
        observe=_observe,
    ),
    Claim(
        name="theorem-3.5-hard",
        title="Theorem 3.5 [L3] hard Zipfian data",
        kind="lower, mean",
        statement="On W*, E[MM] = Omega(C^(1/s)/(s-1) (1/(eps N))^((s-1)/s) "
        "ln(1 + (e^eps - 1)/(2 delta))^((s-1)/s)).",
        explicit="E[MM] of the WGM on W*, exact, is at least half the tail of W* below k*.",
        family=_hard_family,
    ),
)
