"""Uniform subsets of every user's items on the host, the same for all mechanisms of a trial.

A round of a mechanism weighs the kept items only. Users of at most Delta0 items keep all, the
others a uniform subset of Delta0, so a trial has a row of min(|W_i|, Delta0) slots for every user,
whatever was drawn: one shape for all trials and mechanisms, and a policy looks at Delta0 slots per
user, not at the largest set.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Bool, Int32

from theory import UserItems
from wgm_jax.mechanism import padded_length
from wgm_jax.set_union.kept_sets import KeptSets


class Subsets:
    """Kept sets of one data set at one Delta0.

    Args:
        data: The data set.
        max_items_per_user: Delta0.

    Attributes:
        fixed: No user is clipped: every trial keeps everything.
        template: Kept sets without items, for `dataclasses.replace(template, items=, kept=)`.
        items: Item of every pair of the data.

    Example:
        >>> subsets = Subsets(UserItems.from_sets([{0, 1, 2}, {1}]), 2)
        >>> rows = subsets.draw(np.random.default_rng(0))
        >>> bool(rows[0] < rows[1]), int(rows[2]), subsets.fixed
        (True, 1, False)
    """

    def __init__(self, data: UserItems, max_items_per_user: int) -> None:
        self._keep = max_items_per_user
        self._users = data.num_users
        self.items = data.items
        self.fixed = data.max_set_size <= max_items_per_user
        self._owners = np.repeat(np.arange(data.num_users), data.set_sizes)
        sizes = np.minimum(data.set_sizes, max_items_per_user)
        self._offsets = np.concatenate([[0], np.cumsum(sizes)])
        slots = UserItems(items=np.zeros(self._offsets[-1], np.int32), offsets=self._offsets)
        self.template = dataclasses.replace(
            KeptSets.from_data(slots), num_items=padded_length(data.num_items)
        )

    @property
    def num_slots(self) -> int:
        """Slots of a trial, padding included."""
        return self.template.items.shape[0]

    def draw(
        self, rng: np.random.Generator, alive: Bool[np.ndarray, " pairs"] | None = None
    ) -> Int32[np.ndarray, " slots"]:
        """Items of all slots in one trial; where nothing is kept, the number of items, padded.

        Args:
            rng: Where the subsets come from; equal generators give equal subsets.
            alive: Pairs to choose from, those whose item has not been deleted; by default all.

        Returns:
            Item of every slot; a user's kept items in the order of its list.
        """
        pairs = np.arange(self.items.size) if alive is None else np.flatnonzero(alive)
        kept = self._keep_some(rng, pairs)
        owners = self._owners[kept]
        counts = np.bincount(owners, minlength=self._users)
        places = np.arange(kept.size) + np.repeat(
            self._offsets[:-1] - (np.cumsum(counts) - counts), counts
        )
        rows = np.full(self.num_slots, self.template.num_items, np.int32)
        rows[places] = self.items[kept]
        return rows

    def _keep_some(self, rng: np.random.Generator, pairs: np.ndarray) -> np.ndarray:
        """Pairs that are kept, ascending: of every user the Delta0 with the least random keys."""
        owners = self._owners[pairs]
        counts = np.bincount(owners, minlength=self._users)
        over = counts > self._keep
        if not over.any():
            return pairs
        chosen_from = over[owners]
        candidates = pairs[chosen_from]
        sizes = counts[over]
        starts = np.cumsum(sizes) - sizes
        # One sort of 64-bit words: rank of the user, random bits, place among the user's pairs. At
        # least 35 bits are random for 2^17 users of 2^12 items; ties favour the earlier pair.
        place_bits = int(sizes.max()).bit_length()
        free_bits = 64 - sizes.size.bit_length()
        words = rng.integers(0, 2**free_bits, candidates.size, dtype=np.uint64)
        low = np.uint64(2**place_bits - 1)
        words &= ~low
        words |= (np.arange(candidates.size) - np.repeat(starts, sizes)).astype(np.uint64)
        words |= np.repeat(np.arange(sizes.size, dtype=np.uint64), sizes) << np.uint64(free_bits)
        words.sort()
        first = (starts[:, None] + np.arange(self._keep)).ravel()
        places = (words[first] & low).astype(np.int64) + np.repeat(starts, self._keep)
        kept = np.zeros(self.items.size, bool)
        kept[pairs[~chosen_from]] = True
        kept[candidates[places]] = True
        return np.flatnonzero(kept)
