"""The hard data of Corollaries 4.4 and 4.6: k items of frequency floor(k*), one item per user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from experiments.claims._claim import Settings
from theory import (
    Budget,
    Profile,
    calibrate,
    hard_frequency,
    miss_probabilities,
    optimal_miss_probability,
    optimal_selection_probability,
)


def shares(settings: Settings) -> Iterator[tuple[dict[str, Any], float, float]]:
    """Cells, and the shares of the k items that are released and missed on average, exact.

    A domain of at most k items is released whole, so that the domain stage alone decides: the WGM
    with half of the budget, or the optimal mechanism, which no private one surpasses.
    """
    for eps in sorted({0.01, 0.1, 1.0, 10.0, *settings.eps} - {0.0}):
        level = hard_frequency(eps=eps, delta=settings.delta)
        whole = {"eps": eps, "delta": settings.delta}
        half, share = Budget(eps, settings.delta).part(0)
        noise = calibrate(eps=half, delta=share, max_items_per_user=1)
        for k in (1, 200):
            profile = Profile.from_frequencies(
                [level], multiplicity=[k], max_set_size=1, max_items_per_user=1
            )
            miss = miss_probabilities(profile, noise)
            found = {
                "wgm, half of the budget": (float(miss.hit[0]), float(miss.miss[0])),
                "optimal selection": (
                    float(optimal_selection_probability(level, **whole)),
                    float(optimal_miss_probability(level, **whole)),
                ),
            }
            for mechanism, (released, missed) in found.items():
                cell = {"mechanism": mechanism, "k": k, "users_per_item": level, **whole}
                yield cell, released, missed
