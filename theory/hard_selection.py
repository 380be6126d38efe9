"""Data on which no sound private selection does well: k items, each just too rare to release."""

from __future__ import annotations

import numpy as np

from theory._check import check_count
from theory.lower_bounds import optimal_selection_probability, selection_threshold
from theory.user_items import UserItems


def hard_frequency(*, eps: float, delta: float) -> int:
    """Largest frequency at which every sound private algorithm misses an item half of the time.

    Args:
        eps: Privacy parameter in [0, 1e5].
        delta: Privacy parameter in (0, 0.5].

    Returns:
        floor(k*) of [L1], at least 1; at a whole k* without the rounding of its logarithm.

    Raises:
        InvalidInput: eps or delta out of range.

    Source:
        [L1], Lemma D.1.

    Example:
        >>> hard_frequency(eps=1.0, delta=1e-5), hard_frequency(eps=0.0, delta=0.125)
        (11, 4)
    """
    level = int(selection_threshold(eps=eps, delta=delta) * (1 + 1e-12))
    released = float(optimal_selection_probability(level, eps=eps, delta=delta))
    return max(level - (released > 0.5), 1)


def hard_selection_data(k: int, *, eps: float, delta: float) -> UserItems:
    """K items of frequency floor(k*), one item per user.

    Args:
        k: Number of items, at least 1.
        eps: Privacy parameter in [0, 1e5].
        delta: Privacy parameter in (0, 0.5].

    Returns:
        Data set of k floor(k*) users.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        [L4] and [L5], Corollaries 4.4 and 4.6.

    Example:
        >>> hard_selection_data(3, eps=1.0, delta=1e-5).frequencies
        array([11, 11, 11])
    """
    k = check_count("k", k)
    level = hard_frequency(eps=eps, delta=delta)
    return UserItems.from_codes(np.arange(k * level), np.repeat(np.arange(k), level))
