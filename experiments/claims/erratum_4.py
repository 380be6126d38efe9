"""Erratum 4: the smallest sigma is not Theta(sqrt(log(1/delta))/eps) outside a regime."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from experiments.claims._claim import Cell, Claim, Settings
from experiments.statistics.slopes import log_log_slope
from experiments.verdict import ExactEvidence
from theory import calibrate, sigma_limit_large_eps, sigma_limit_small_eps

_SMALL = np.array([1e-12, 1e-11, 1e-10, 1e-9])
_LARGE = np.array([1e2, 1e3, 1e4, 1e5])


def _printed(settings: Settings) -> Iterator[Cell]:
    for name, grid in (("1e-12..1e-9", _SMALL), ("1e2..1e5", _LARGE)):
        sigma = calibrate(eps=grid, delta=settings.delta, max_items_per_user=1).sigma
        slope = float(log_log_slope(grid, sigma))
        note = "slope of ln sigma in ln eps; Theta(1/eps) needs -1, judged at -0.9"
        evidence = ExactEvidence(slope, -0.9, "upper", unit_range=False, note=note)
        yield {"eps": name, "delta": settings.delta}, evidence


def _corrected(settings: Settings) -> Iterator[Cell]:
    # The limits themselves, reached to 5 % at the ends of the family.
    for eps, limit in (
        (float(_SMALL[0]), float(sigma_limit_small_eps(delta=settings.delta))),
        (float(_LARGE[-1]), float(sigma_limit_large_eps(eps=float(_LARGE[-1])))),
    ):
        sigma = float(calibrate(eps=eps, delta=settings.delta, max_items_per_user=1).sigma)
        off = abs(sigma / limit - 1)
        cell = {"eps": eps, "delta": settings.delta}
        yield cell, ExactEvidence(off, 0.05, "upper", note=f"sigma {sigma:.6g}, limit {limit:.6g}")


CLAIMS = (
    Claim(
        name="erratum-4",
        title="Erratum 4: sigma ~ 1/eps everywhere",
        kind="shape",
        statement="The smallest sigma that satisfies Theorem 3.2 is Theta(sqrt(log(1/delta))/eps).",
        explicit="With delta fixed the slope of ln sigma in ln eps is 0 as eps -> 0 and -1/2 as "
        "eps -> infinity.",
        family=_printed,
        expected="refuted",
        twin="erratum-4-corrected",
    ),
    Claim(
        name="erratum-4-corrected",
        title="Erratum 4, corrected: the two limits",
        kind="both, exact",
        statement="sigma -> 1/(2 Phi^-1((1 + delta')/2)) as eps -> 0, ~ 1/sqrt(2 eps) as "
        "eps -> infinity.",
        explicit="Within 5 % at eps = 1e-12 and eps = 1e5.",
        family=_corrected,
    ),
)
