"""Erratum 2: 1/eps in Corollary 3.4 and Theorem 3.6 is right only while eps is at most about 1."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr

from experiments.claims._claim import Cell, Claim, Settings
from experiments.statistics.slopes import log_log_slope
from experiments.verdict import ExactEvidence
from theory import calibrate

_EPS = np.array([1e1, 1e2, 1e3, 1e4, 1e5])


def _singleton_mass(delta: float) -> tuple[np.ndarray, np.ndarray]:
    """E[MM] on singletons, and T + sigma, over the family of eps."""
    made = calibrate(eps=_EPS, delta=delta, max_items_per_user=1)
    return ndtr((made.threshold - 1) / made.sigma), made.threshold + made.sigma


def _printed(settings: Settings) -> Iterator[Cell]:
    mass, _ = _singleton_mass(settings.delta)
    slope = float(log_log_slope(_EPS, mass))
    for name, power in (("Theorem 3.6", 1.0), ("Corollary 3.4, s = 2", 0.5)):
        cell = {"dataset": "singletons", "eps": "10..1e5", "delta": settings.delta, "shape": name}
        note = "slope of ln E[MM] in ln eps; a bound const * eps^-a needs at most -a"
        yield cell, ExactEvidence(slope, -power / 2, "upper", unit_range=False, note=note)


def _corrected(settings: Settings) -> Iterator[Cell]:
    mass, level = _singleton_mass(settings.delta)
    for eps, value, bound in zip(_EPS, mass, level, strict=True):
        cell = {"dataset": "singletons", "eps": float(eps), "delta": settings.delta}
        note = "N MM_inf is 1 or 0; its mean against T + sigma"
        yield cell, ExactEvidence(float(value), float(bound), "upper", unit_range=False, note=note)


CLAIMS = (
    Claim(
        name="erratum-2",
        title="Erratum 2: 1/eps for large eps",
        kind="shape",
        statement="Corollary 3.4 and Theorem 3.6: missing mass O(1/eps) to a power, for every eps.",
        explicit="On singletons E[MM] >= 1 - delta for every eps, while 1/eps tends to 0: over "
        "eps = 10..1e5 the slope of ln E[MM] stays at 0, above half the claimed exponent.",
        family=_printed,
        expected="refuted",
        twin="erratum-2-corrected",
    ),
    Claim(
        name="erratum-2-corrected",
        title="Erratum 2, corrected: T + sigma",
        kind="upper, exact",
        statement="T + sigma, which stays above 1, in place of 1/eps.",
        explicit="N MM_inf <= T + sigma in the mean on singletons, at the same eps.",
        family=_corrected,
    ),
)
