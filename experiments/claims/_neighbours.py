"""Exact delta(eps) between selections on data sets that differ by one user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, combinations
from typing import Any

import numpy as np

from theory import UserItems


def data_of(sets: Iterable[Sequence[int]]) -> UserItems:
    """Users holding these items; the items are 0, 1, ... and keep their numbers."""
    kept = [sorted(held) for held in sets]
    sizes = [len(held) for held in kept]
    return UserItems.from_csr(
        np.asarray(list(chain.from_iterable(kept)), np.int32),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
    )


def subsets(num_items: int) -> list[tuple[int, ...]]:
    """Every set that one more user may hold, the empty one left out."""
    sizes = range(1, num_items + 1)
    return list(chain.from_iterable(combinations(range(num_items), size) for size in sizes))


def delta_between(
    first: Mapping[Any, float], second: Mapping[Any, float], eps: float
) -> tuple[float, float]:
    """Proved limits of the larger delta(eps) of two laws, of either against the other."""
    from experiments.audit.divergence import compare
    from experiments.audit.laws import TableLaw

    pair = compare(TableLaw(first), TableLaw(second))
    sides = [pair.limits(eps, reverse=reverse) for reverse in (False, True)]
    return max(side.low for side in sides), max(side.high for side in sides)
