"""Erratum 3: Theorem 3.6 hides a logarithm of the number of items."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

from experiments.claims._claim import Cell, Claim, Settings
from experiments.verdict import ExactEvidence
from theory import Profile, calibrate, tau_u1

_ITEMS = (10, 10**3, 10**6, 10**9)
_BETA = 0.05


def miss_frequency(num_items: int, delta: float) -> float:
    """Frequency at which some of M equally frequent items is missed with probability 5 %, L = 1."""
    made = calibrate(eps=1.0, delta=delta, max_items_per_user=1)
    each = -np.expm1(np.log1p(-_BETA) / num_items)
    return float(made.threshold - made.sigma * ndtri(each))


def _printed(settings: Settings) -> Iterator[Cell]:
    least = miss_frequency(_ITEMS[0], settings.delta)
    for num_items in _ITEMS[1:]:
        cell = {"num_items": num_items, "eps": 1.0, "delta": settings.delta, "beta": _BETA}
        note = f"5 % miss frequency, against {least:.1f} at M = {_ITEMS[0]}"
        seen = miss_frequency(num_items, settings.delta)
        yield cell, ExactEvidence(seen, least, "upper", unit_range=False, note=note)


def _corrected(settings: Settings) -> Iterator[Cell]:
    made = calibrate(eps=1.0, delta=settings.delta, max_items_per_user=1)
    for num_items in _ITEMS:
        frequency = miss_frequency(num_items, settings.delta)
        profile = Profile.from_frequencies(
            [max(1, round(frequency))],
            multiplicity=[num_items],
            max_set_size=1,
            max_items_per_user=1,
        )
        tau = float(tau_u1(profile, made, _BETA).details["plain"])
        cell = {"num_items": num_items, "eps": 1.0, "delta": settings.delta, "beta": _BETA}
        note = "5 % miss frequency against tau of [U1]"
        yield cell, ExactEvidence(frequency, tau, "upper", unit_range=False, tag="[U1]", note=note)


CLAIMS = (
    Claim(
        name="erratum-3",
        title="Erratum 3: Theorem 3.6 without log M",
        kind="shape",
        statement="Theorem 3.6's Õ hides only Delta0, delta and beta (its subscript).",
        explicit="Equal frequencies, L = 1: the 5 % miss frequency would not depend on M.",
        family=_printed,
        expected="refuted",
        twin="erratum-3-corrected",
    ),
    Claim(
        name="erratum-3-corrected",
        title="Erratum 3, corrected: tau with log M",
        kind="upper, exact",
        statement="tau of [U1], which grows like sqrt(log M).",
        explicit="The 5 % miss frequency is at most tau, at every M.",
        family=_corrected,
    ),
)
