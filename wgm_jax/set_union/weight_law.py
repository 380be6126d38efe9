"""Mechanisms of the frame that are a weight and a tail: their law by kept copies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from theory import UserItems
from theory.calibration import Calibration
from wgm_jax.count_law import WeightLaw, base_weights
from wgm_jax.set_union.frame import FramedMechanism


def weight_law(
    mechanism: FramedMechanism,
    data: UserItems,
    calibration: Calibration,
    share: Callable[[np.ndarray], np.ndarray],
) -> WeightLaw:
    """The law of a mechanism of one round whose weights are sums over holders.

    Args:
        mechanism: Subsamples users, and its users do not act one after the other.
        data: The data set.
        calibration: Calibration of shape (num_points,).
        share: What a user who keeps so many items (float64) adds to each of them, above 0.

    Example:
        >>> from theory.calibration import calibrate
        >>> from wgm_jax.set_union.counts import LaplaceCount
        >>> data = UserItems.from_sets([{"a"}] * 12)
        >>> noise = calibrate(eps=[1.0], delta=1e-5, max_items_per_user=1)
        >>> law = weight_law(LaplaceCount(), data, noise, np.ones_like)
        >>> release, miss = law.chances(np.zeros(2, int), np.arange(2))
        >>> release.round(3).tolist()
        [[0.582], [0.846]]
    """
    keep = int(np.max(calibration.max_items_per_user))
    now = mechanism.parameters(calibration).round(0)

    def tails(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return mechanism.probabilities(weights, now)

    unit = float(share(np.array([float(keep)]))[0])
    return WeightLaw(keep, calibration.eps.size, base_weights(data, keep, share), unit, tails)
