"""Rare fates: items that are almost surely missed, or released, and in some trial are not.

Nobody needs a random number per item and trial to learn that one item in a million came out. With
p(x) the largest chance of the unexpected outcome (`wgm_jax.fates`),

1. events are drawn at rate -ln(1 - p(x)): item x has at least one with probability p(x),
   independently of the others. These few are the candidates of a trial.
2. A candidate gets u uniform on [0, p(x)); what remains of its noise. Its outcome is the unexpected
   one if u < P(unexpected | its kept copies), in float64.
3. Its copies are those of the same trial: whether a clipped user kept it follows from how many
   items that user still needed after the open ones, which is found by drawing these again (random
   words are a function of trial and position), and from one more step of selection sampling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64, UInt32
from scipy.sparse import csr_array
from scipy.special import pdtr

from theory import UserItems
from theory.residual import distinct
from wgm_jax.bits import threefry, uniform
from wgm_jax.count_law import CountLaw
from wgm_jax.fates import Fates
from wgm_jax.lanes import REFINEMENT, STEP

_PIECE = 2**13


@dataclass(frozen=True, eq=False)
class OpenSlots:
    """Slots of open items, grouped by clipped user; what the kernel walks through.

    Attributes:
        items: Index of the item.
        left: Items of this user from this slot on, itself included.
        starts: User i has the slots from starts[i] to starts[i + 1].
        sizes: Items of every clipped user.
        keep: Contribution bound Delta0.
    """

    items: np.ndarray
    left: Int64[np.ndarray, " slots"]
    starts: Int64[np.ndarray, " users_and_one"]
    sizes: Int64[np.ndarray, " users"]
    keep: int

    def still_needed(
        self, key: UInt32[np.ndarray, " 2"], trials: np.ndarray, users: np.ndarray
    ) -> Int64[np.ndarray, " rows"]:
        """Items that a user still needs after its open slots: the kernel's draws, repeated."""
        lengths = np.diff(self.starts)[users]
        order = np.argsort(-lengths, kind="stable")  # users with many slots first
        starts, lengths, trials = self.starts[users][order], lengths[order], trials[order]
        # All draws at once, one step after the other: step k concerns the first rows[k] users.
        rows = np.searchsorted(-lengths, -np.arange(lengths.max(initial=0)))
        step = np.repeat(np.arange(rows.size), rows)
        row = np.arange(step.size) - np.repeat(np.cumsum(rows) - rows, rows)
        scaled = self._scaled(key, trials, starts, lengths, row, step)
        need = np.full(users.size, self.keep)
        end = 0
        for count in rows:
            start, end = end, end + count
            need[:count] -= scaled[start:end] < need[:count]
        found = np.empty_like(need)
        found[order] = need
        return found

    def _scaled(
        self,
        key: UInt32[np.ndarray, " 2"],
        trials: np.ndarray,
        starts: np.ndarray,
        lengths: np.ndarray,
        row: np.ndarray,
        step: np.ndarray,
    ) -> Int64[np.ndarray, " draws"]:
        """floor(u left) for the kernel's draws u of 32 bits: slot `step` of users `row`.

        Trials, first slots and numbers of slots are given per user.
        """
        # One call of the cipher serves `STEP` slots: a user needs those of its first to last slot.
        first = starts // STEP
        calls = np.where(lengths > 0, (starts + lengths - 1) // STEP - first + 1, 0)
        offset = np.cumsum(calls) - calls
        user = np.repeat(np.arange(calls.size), calls)
        positions = np.arange(user.size) + (first - offset)[user]
        high = _halves(_words(key, trials[user], positions))
        slots = starts[row] + step
        at = STEP * (offset - first)[row] + slots
        left = self.left[slots]
        product = high.ravel()[at] * left
        # The second 16 bits are those of the refinement; they matter for few.
        unsure = np.flatnonzero((product & 0xFFFF) + left > 2**16)
        more = _words(key, trials[row[unsure]], slots[unsure] // STEP + REFINEMENT)
        low = _halves(more)[np.arange(unsure.size), slots[unsure] % STEP]
        product[unsure] += (low * left[unsure]) >> 16
        return product >> 16


@dataclass(frozen=True, eq=False)
class RareItems:
    """Items of rare fate, most frequent first, and the clipped users that hold them.

    Attributes:
        items: Indices of the items.
        frequencies: Users holding the item.
        missed: The item is missed unless something rare happens; otherwise released.
        rate: Bound on the probability of that.
        starts: Item i is held by clipped users number starts[i] to starts[i + 1] of `users`.
        users: Clipped users.
        slots: The slots drawn before these users' rare items.
        law: Release probabilities by kept copies.
    """

    items: Int64[np.ndarray, " items"]
    frequencies: Int64[np.ndarray, " items"]
    missed: np.ndarray
    rate: Float64[np.ndarray, " items"]
    starts: Int64[np.ndarray, " items_and_one"]
    users: np.ndarray
    slots: OpenSlots
    law: CountLaw

    @classmethod
    def of(cls, data: UserItems, law: CountLaw, fates: Fates, slots: OpenSlots) -> RareItems:
        """The rare items of a data set."""
        chosen = np.flatnonzero((fates.rate > 0) & ~fates.open)
        chosen = chosen[np.argsort(-data.frequencies[chosen], kind="stable")]
        number = np.full(data.num_items, -1, np.int64)
        number[chosen] = np.arange(chosen.size)
        clipped = data.set_sizes > slots.keep
        pairs = number[data.items[np.repeat(clipped, data.set_sizes)]]
        users = np.repeat(np.arange(slots.sizes.size), slots.sizes)[pairs >= 0]
        pairs = pairs[pairs >= 0]
        shape = (chosen.size, slots.sizes.size)
        held = csr_array((np.ones(pairs.size, bool), (pairs, users)), shape=shape)
        return cls(
            items=chosen,
            frequencies=data.frequencies[chosen],
            missed=fates.missed[chosen],
            rate=fates.rate[chosen],
            starts=held.indptr.astype(np.int64),
            users=held.indices,
            slots=slots,
            law=law,
        )

    def unexpected(
        self, keys: UInt32[np.ndarray, "streams 2"], first: int, count: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Items whose outcome is not the expected one, in `count` trials from `first`.

        Args:
            keys: Keys of the kernel, of events, of noises and of kept copies.
            first: First trial.
            count: Number of trials.

        Returns:
            Trial (counted from `first`), item, and (rows, points) whether it happened.
        """
        trials, items = self._candidates(keys[1], first, count)
        copies = self._kept(keys[0], keys[3], trials + first, items)
        noise = uniform(_words(keys[2], trials + first, items)) * self.rate[items]
        release, miss = self.law.chances(self.items[items], copies)
        happened = noise[:, None] < np.where(self.missed[items][:, None], release, miss)
        some = happened.any(axis=1)
        return trials[some], items[some], happened[some]

    def _candidates(
        self, key: np.ndarray, first: int, count: int
    ) -> tuple[Int64[np.ndarray, " rows"], Int64[np.ndarray, " rows"]]:
        """Step 1: trial (from 0) and item of every candidate, sorted, each once."""
        cumulated = np.cumsum(-np.log1p(-self.rate))
        total = float(cumulated[-1]) if cumulated.size else 0.0
        numbers = np.arange(first, first + count)
        # Number of events: a Poisson variable by inversion.
        table = pdtr(np.arange(int(total + 12 * np.sqrt(total) + 60)), total)
        events = np.searchsorted(table, uniform(_words(key, numbers, 0 * numbers)), side="right")
        trials = np.repeat(np.arange(count), events)
        within = np.arange(trials.size) - np.repeat(np.cumsum(events) - events, events)
        where = total * uniform(_words(key, trials + first, within + 1))
        items = np.minimum(np.searchsorted(cumulated, where, side="right"), self.rate.size - 1)
        return np.divmod(distinct(trials * self.rate.size + items), max(1, self.rate.size))

    def _kept(
        self, kernel_key: np.ndarray, key: np.ndarray, trials: np.ndarray, items: np.ndarray
    ) -> Int64[np.ndarray, " rows"]:
        """Step 3: kept copies of candidates."""
        holders = np.diff(self.starts)[items]
        row = np.repeat(np.arange(items.size), holders)
        pair = np.arange(row.size) + np.repeat(
            self.starts[items] - (np.cumsum(holders) - holders), holders
        )
        # Candidates of one user in one trial side by side: they are drawn one after the other.
        groups = trials[row] * np.int64(self.slots.sizes.size) + self.users[pair]
        order = np.argsort(groups, kind="stable")
        row, pair, groups = row[order], pair[order], groups[order]
        _, start, size = np.unique(groups, return_index=True, return_counts=True)
        trial, user = trials[row[start]], self.users[pair[start]]
        need = self.slots.still_needed(kernel_key, trial, user)
        left = self.slots.sizes[user] - np.diff(self.slots.starts)[user]
        draws = uniform(_words(key, trials[row], pair))
        kept = np.zeros(items.size, np.int64)
        for step in range(int(size.max(initial=0))):
            there = np.flatnonzero(size > step)
            at = start[there] + step
            take = draws[at] * (left[there] - step) < need[there]
            need[there] -= take
            kept += np.bincount(row[at], take, minlength=items.size).astype(np.int64)
        return kept


def _words(key: np.ndarray, trials: np.ndarray, positions: np.ndarray) -> tuple:
    """Two words for every trial and position, computed in pieces that stay in the cache."""
    found = np.empty((2, trials.size), np.uint32)
    for start in range(0, trials.size, _PIECE):
        piece = slice(start, start + _PIECE)
        counter = trials[piece].astype(np.uint32), positions[piece].astype(np.uint32)
        found[:, piece] = threefry(key, *counter)
    return found[0], found[1]


def _halves(words: tuple) -> Int64[np.ndarray, "calls slots"]:
    """The 16-bit draws of every call, in the kernel's order: of every word first the low half."""
    return np.stack([word >> shift & 0xFFFF for word in words for shift in (0, 16)], axis=1).astype(
        np.int64
    )
