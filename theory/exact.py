"""Exact miss probabilities where nothing is subsampled: the weights are then constants."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float64
from scipy.special import ndtr

from theory._check import invalid
from theory.calibration import Calibration
from theory.user_items import UserItems


def item_weights(data: UserItems) -> Float64[np.ndarray, " num_items"]:
    """Weight H(x) of every item when every user keeps the whole set: sum of |W_i|^(-1/2).

    Example:
        >>> item_weights(UserItems.from_sets([{0, 1, 2, 3}, {0}]))
        array([1.5, 0.5, 0.5, 0.5])
    """
    shares = np.repeat(data.set_sizes, data.set_sizes) ** -0.5
    return np.bincount(data.items, shares, minlength=data.num_items)


def exact_mean_unclipped(data: UserItems, calibration: Calibration) -> Any:
    """Exact mean of the missing mass when Delta0 is at least the largest set.

    Args:
        data: The data set.
        calibration: Noise and threshold, any shape, with Delta0 >= max set size everywhere.

    Returns:
        E[MM] = sum_x a(x) Phi((T - H(x))/sigma): float, or float64 of the calibration's shape.

    Raises:
        InvalidInput: Some user holds more than Delta0 items.

    Source:
        [E1], [E2] with K = 0.

    Example:
        >>> from theory.calibration import calibrate
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> round(1e6 * (1 - exact_mean_unclipped(UserItems.from_sets([{0}, {1}]), noise)), 3)
        5.0
    """
    if np.min(calibration.max_items_per_user) < data.max_set_size:
        accepted = f"must be at least the largest set, {data.max_set_size}"
        invalid("max_items_per_user", calibration.max_items_per_user, accepted)
    # Equal (weight, frequency) pairs are many on real data: one class, one tail probability.
    keys = np.stack([item_weights(data), data.frequencies.astype(np.float64)])
    (weights, counts), times = np.unique(keys, axis=1, return_counts=True)
    mass = counts * times / data.num_pairs
    sigma, threshold = np.asarray(calibration.sigma), np.asarray(calibration.threshold)
    miss = ndtr((threshold[..., None] - weights) / sigma[..., None])
    mean = miss @ mass
    return mean if calibration.shape else float(mean)
