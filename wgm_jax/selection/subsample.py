"""Counts after every user is cut to Delta0 items at random, per trial, for clipping selectors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int64, UInt32

from theory import UserItems
from theory._check import invalid
from wgm_jax.bits import threefry
from wgm_jax.mechanism import Array, padded_length
from wgm_jax.sampling import Slots, pack_slots, subset_counts
from wgm_jax.selection.selector import MOST_SEQUENCES

# Counter of a trial's key that gives the key of its subsets: no round of noise is this one.
_ROUND = np.uint32(2**32 - 1)
_BATCH = 8


class SubsampledCounts:
    """Counts of every item in uniform subsets of Delta0 items per user.

    Args:
        data: The data set.
        max_items_per_user: Delta0.

    Example:
        >>> from wgm_jax.selection.noise import trial_keys
        >>> counts = SubsampledCounts(UserItems.from_sets([{0, 1, 2}, {0}]), 2)
        >>> found = counts(trial_keys(0, 0, 3))
        >>> found.sum(axis=1).tolist(), bool((found[:, 0] >= 1).all())
        ([3, 3, 3], True)
    """

    def __init__(self, data: UserItems, max_items_per_user: int) -> None:
        self._data, self._keep = data, max_items_per_user
        self._slots = pack_slots(data, max_items_per_user=max_items_per_user)
        whole = np.repeat(data.set_sizes <= max_items_per_user, data.set_sizes)
        self._fixed = np.bincount(data.items[whole], minlength=data.num_items)

    def __call__(self, keys: UInt32[np.ndarray, "trials 2"]) -> Int64[np.ndarray, "trials items"]:
        """Counts of every trial."""
        words = threefry(keys.T, np.zeros(len(keys), np.uint32), np.full(len(keys), _ROUND))
        subset_keys = np.stack(words, axis=1)
        found = np.empty((len(keys), self._data.num_items), np.int64)
        for start in range(0, len(keys), _BATCH):
            block = subset_keys[start : start + _BATCH]
            padded = np.pad(block, ((0, _BATCH - len(block)), (0, 0)))
            counts = _counts(
                padded,
                self._slots,
                np.uint32(self._keep),
                num_items=padded_length(self._data.num_items),
            )
            found[start : start + len(block)] = np.asarray(counts)[: len(block), : found.shape[1]]
        return found + self._fixed

    def outcomes(self) -> Iterator[Int64[np.ndarray, " items"]]:
        """Counts of every combination of subsets, all equally likely; tiny data only.

        Raises:
            InvalidInput: There are too many.
        """
        data = self._data
        clipped = np.flatnonzero(data.set_sizes > self._keep)
        sizes = data.set_sizes[clipped].tolist()
        number = math.prod(math.comb(size, self._keep) for size in sizes)
        if number > MOST_SEQUENCES:
            accepted = f"must leave at most {MOST_SEQUENCES} combinations of subsets"
            invalid("data", number, accepted)
        sets = [data.items[data.offsets[u] : data.offsets[u + 1]] for u in clipped]
        subsets = [itertools.combinations(items.tolist(), self._keep) for items in sets]
        for combination in itertools.product(*subsets):
            kept = np.fromiter(itertools.chain.from_iterable(combination), np.int64)
            yield self._fixed + np.bincount(kept, minlength=data.num_items)


@partial(jax.jit, static_argnames="num_items")
def _counts(keys: Array, slots: Slots, keep: Any, *, num_items: int) -> jax.Array:
    def trial(words: jax.Array) -> jax.Array:
        key = jax.random.wrap_key_data(words, impl="threefry2x32")
        return subset_counts(key, slots, keep, num_items)

    return jax.vmap(trial)(jnp.asarray(keys))
