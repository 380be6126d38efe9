"""The weighted Gaussian mechanism as the paper writes it: NumPy, float64, plain loops."""

import numpy as np


def released(sets, num_items, *, max_items_per_user, sigma, threshold, rng):
    """One run of Algorithm 1: (num_items,) bool.

    Args:
        sets: One array of item indices per user.
    """
    weights = np.zeros(num_items)
    for items in sets:
        kept = items
        if len(items) > max_items_per_user:
            kept = rng.choice(items, size=max_items_per_user, replace=False)
        for item in kept:
            weights[item] += 1 / np.sqrt(len(kept))
    result = np.zeros(num_items, bool)
    for item in range(num_items):
        if weights[item] > 0:
            result[item] = weights[item] + sigma * rng.standard_normal() > threshold
    return result


def weight_laws(sets, num_items, max_items_per_user):
    """Per item the law of its weight [E1]: base weight h0 and P(K = k), H = h0 + k/sqrt(Delta0)."""
    base = np.zeros(num_items)
    laws = [np.ones(1) for _ in range(num_items)]
    for items in sets:
        keep = max_items_per_user / len(items)
        for item in items:
            if keep >= 1:
                base[item] += len(items) ** -0.5
            else:
                laws[item] = np.convolve(laws[item], [1 - keep, keep])
    return base, laws
