"""How likely an item of given frequency is to be missed, whoever holds it: mbar of [U1*]."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

# The binomial sum leaves out at most 2 exp(-700) of probability, far below any beta/M.
_DROPPED_LOG = 700.0


def miss_probability_bound(
    frequency: int,
    *,
    keep_probability: float,
    max_kept: int,
    sigma: float,
    threshold: float,
) -> tuple[float, float]:
    """Largest miss probability of an item of this frequency, and what is left to 1.

    mbar(n) = (1-p*)^n + sum_{k>=1} Bin(n, p*)(k) Phi((T - k/sqrt(q*))/sigma): every holder keeps x
    with probability at least p*, and a kept copy weighs at least 1/sqrt(q*). It falls in n.

    For large n the sum runs over a window around n p*. By Chernoff at most 2 exp(-700) of the
    binomial lies outside, all of which counts as missed: the error is that, upwards.

    Args:
        frequency: N(x), at least 1.
        keep_probability: p*, in (0, 1].
        max_kept: q*, largest number of items that a user keeps.
        sigma: Noise standard deviation.
        threshold: T.

    Returns:
        (mbar, 1 - mbar), each accurate to about 1e-12 relative.

    Source:
        [U1*].

    Example:
        >>> miss, hit = miss_probability_bound(
        ...     40, keep_probability=0.5, max_kept=1, sigma=3.884, threshold=18.16
        ... )
        >>> round(miss, 6), round(hit, 6)
        (0.356801, 0.643199)
    """
    kept, chance, dropped = binomial_window(frequency, keep_probability)
    margin = (kept / np.sqrt(max_kept) - threshold) / sigma
    miss = np.where(kept == 0, 1.0, ndtr(-margin))
    hit = np.where(kept == 0, 0.0, ndtr(margin))
    return min(1.0, float(chance @ miss) + dropped), float(chance @ hit)


def binomial_window(n: int, p: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Values and probabilities of Bin(n, p) in a window, and a bound on what lies outside.

    Probabilities are built by ratios from the mode and normalised, which avoids the cancellation
    of log-gammas; normalising raises them by at most the part outside.
    """
    if p >= 1:
        return np.array([float(n)]), np.array([1.0]), 0.0
    mean = n * p
    left = np.sqrt(2 * mean * _DROPPED_LOG)
    right = _DROPPED_LOG / 3 + np.sqrt(_DROPPED_LOG**2 / 9 + 2 * mean * _DROPPED_LOG)
    first, last = max(0, int(mean - left)), min(n, int(mean + right) + 1)
    values = np.arange(first, last + 1, dtype=np.float64)
    mode = min(max(int((n + 1) * p), first), last) - first
    ratios = np.log((n - values[:-1]) / values[1:]) + np.log(p / (1 - p))
    above, below = np.cumsum(ratios[mode:]), -np.cumsum(ratios[:mode][::-1])[::-1]
    weights = np.exp(np.concatenate((below, [0.0], above)))
    whole = first == 0 and last == n
    return values, weights / weights.sum(), 0.0 if whole else 2 * float(np.exp(-_DROPPED_LOG))
