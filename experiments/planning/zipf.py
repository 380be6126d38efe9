"""Zipfian data without users."""

from __future__ import annotations

from typing import Any

from theory import hard_zipf_profile
from theory._check import check_count, invalid
from theory.item_classes import ItemClasses


def zipf_classes(s: Any, constant: Any, num_pairs: Any, set_size: Any = 1) -> ItemClasses:
    """Items of hard Zipfian data of N pairs in which every user holds `set_size` items.

    Args:
        s: Zipf exponent, above 1.
        constant: C >= 1.
        num_pairs: N, from 1 to 1e15, a multiple of the set size.
        set_size: Items per user.

    Returns:
        Classes; N = 1e12 are a few hundred thousand.

    Raises:
        InvalidInput: An argument out of range, or sets so large that the most frequent item would
            have more holders than there are users.

    Source:
        [L3], the data of Theorem 3.5; there the set size is 1.

    Example:
        >>> classes = zipf_classes(2.0, 4.0, 1000, 2)
        >>> classes.frequencies[:4], classes.num_items
        (array([363, 111,  81,  62]), 59)
    """
    profile = hard_zipf_profile(constant, s, num_pairs)
    size = check_count("set_size", set_size)
    most = profile.num_pairs // profile.top_count
    if size > most:
        accepted = (
            f"must be at most {most}: the most frequent item makes up "
            f"{profile.top_count / profile.num_pairs:.3g} of the pairs; a larger constant C "
            "makes it rarer"
        )
        invalid("set_size", set_size, accepted)
    if profile.num_pairs % size:
        invalid("num_pairs", num_pairs, f"must be a multiple of the set size, {size}")
    return ItemClasses.of_equal_sets(profile.frequencies, profile.multiplicity, size)
