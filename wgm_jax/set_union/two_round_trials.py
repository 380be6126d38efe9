"""Trials of the Bernoulli flow in two rounds, on the host.

A first round with little budget, for users with more than `cut` items; what it releases is deleted
from all sets; a second round on what is left. What remains differs from trial to trial, so that no
table serves all of them as in one round: every trial evaluates the flows anew, in NumPy. The
missing mass of the second round is integrated out, which leaves little spread. See
docs/bernoulli-flow-2.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64

from theory import UserItems
from theory._check import check_count, invalid
from theory.flow import FlowCalibration
from theory.flow.exact import flow_miss_probabilities
from theory.flow.two_rounds import TwoRoundFlow
from theory.item_classes import ItemClasses
from theory.profile import Profile

_FIRST, _SECOND = range(2)


@dataclass(frozen=True, eq=False)
class TwoRounds:
    """Both rounds on one data set, with the caller's randomness.

    Attributes:
        flow: A certified pair of flows.
        items: Item of every user-item pair, grouped by user.
        set_sizes: Pairs of every user.
        num_items: Number of items.
    """

    flow: TwoRoundFlow
    items: Int32[np.ndarray, " pairs"]
    set_sizes: Int64[np.ndarray, " users"]
    num_items: int

    def first(self, rng: np.random.Generator) -> Bool[np.ndarray, " items"]:
        """Items that the first round releases."""
        classes = self.flow.first_classes(self.set_sizes)
        kept = keep_uniformly(rng, self._users, self.set_sizes, self.flow.max_items_per_user)
        kept &= classes[self._users] > 0
        return self._coins(rng, self.flow.first, kept, classes)

    def second(
        self, rng: np.random.Generator, first: Bool[np.ndarray, " items"]
    ) -> Bool[np.ndarray, " items"]:
        """Items that the second round releases after the first."""
        alive, left, classes = self._after(first)
        kept = alive.copy()
        kept[alive] = keep_uniformly(rng, self._users[alive], left, self.flow.max_items_per_user)
        return self._coins(rng, self.flow.second, kept, classes)

    def means(self, first: Bool[np.ndarray, " items"]) -> tuple[float, float]:
        """Exact means of missing mass and released items of both rounds, given the first release.

        Raises:
            InvalidInput: Not one entry per item.
        """
        if first.shape != (self.num_items,):
            invalid("first", first.shape, f"must have the shape {(self.num_items,)}")
        alive, left, classes = self._after(first)
        if not np.any(alive):
            return 0.0, float(self.num_items)
        bound = self.flow.max_items_per_user
        # Where all is kept the class stands for the set size; a larger set is clipped, of class
        # Delta0.
        sizes = np.where(left > bound, left, classes)
        codes, base = (np.cumsum(~first) - 1)[self.items[alive]], sizes.max() + 1
        keys, counts = np.unique(codes * base + sizes[self._users[alive]], return_counts=True)
        found = ItemClasses.from_counts(*np.divmod(keys, base), counts)
        profile = Profile.from_classes(found, max_items_per_user=bound)
        misses = flow_miss_probabilities(profile, self.flow.second)
        missed = misses.miss * misses.multiplicity
        mass = np.sum(missed * misses.frequencies) / self.items.size
        return float(mass), float(self.num_items - np.sum(missed))

    def _after(
        self, first: Bool[np.ndarray, " items"]
    ) -> tuple[
        Bool[np.ndarray, " pairs"], Int64[np.ndarray, " users"], Int64[np.ndarray, " users"]
    ]:
        """Pairs that the first release leaves, and of every user their number and the class."""
        alive = ~first[self.items]
        left = np.bincount(self._users[alive], minlength=self.set_sizes.size)
        return alive, left, self.flow.second_classes(self.set_sizes, left)

    @cached_property
    def _users(self) -> Int64[np.ndarray, " pairs"]:
        return np.repeat(np.arange(self.set_sizes.size), self.set_sizes)

    def _coins(
        self,
        rng: np.random.Generator,
        flow: FlowCalibration,
        kept: Bool[np.ndarray, " pairs"],
        classes: Int64[np.ndarray, " users"],
    ) -> Bool[np.ndarray, " items"]:
        """One round: its probabilities, and a coin for every item."""
        release = round_probabilities(
            flow, self.items[kept], classes[self._users[kept]], self.num_items
        )[0]
        return fine_coins(rng, release)


@dataclass(frozen=True, eq=False)
class TwoRoundTrials:
    """Trials of the two-round flow on one data set; trial i is a function of the seed and i.

    Attributes:
        data: The data set.
        flow: A certified pair of flows.
        seed: Seed of all trials.

    Example:
        >>> from theory.flow.two_rounds_calibration import calibrate_two_rounds
        >>> flow = calibrate_two_rounds(eps=1.0, delta=1e-5, max_items_per_user=2)
        >>> data = UserItems.from_sets([(0, 1, 2, 3, user + 4) for user in range(100)])
        >>> trials = TwoRoundTrials(data, flow, seed=1)
        >>> trials.released(0)[:4].tolist(), round(trials.missing_mass(0), 3)
        ([True, True, True, True], 0.219)
    """

    data: UserItems
    flow: TwoRoundFlow
    seed: int

    def first_release(self, trial: int) -> Bool[np.ndarray, " items"]:
        """Items that the first round of a trial releases."""
        return self._rounds.first(self._generator(trial, _FIRST))

    def released(self, trial: int) -> Bool[np.ndarray, " items"]:
        """Items that a trial releases, in either round."""
        first = self.first_release(trial)
        return first | self._rounds.second(self._generator(trial, _SECOND), first)

    def missing_mass(self, trial: int) -> float:
        """Mean missing mass of a trial, given what its first round releases."""
        return self.conditional_means(trial)[0]

    def missing_masses(self, num_trials: int) -> Float64[np.ndarray, " trials"]:
        """`missing_mass` of the trials 0, 1, ...; their mean estimates E[MM] without bias."""
        count = check_count("num_trials", num_trials)
        return np.array([self.missing_mass(trial) for trial in range(count)])

    def conditional_means(self, trial: int) -> tuple[float, float]:
        """Mean missing mass and number of released items, given a trial's first release."""
        return self._rounds.means(self.first_release(trial))

    @cached_property
    def _rounds(self) -> TwoRounds:
        data = self.data
        return TwoRounds(self.flow, data.items, data.set_sizes, data.num_items)

    def _generator(self, trial: int, stage: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, trial, stage))


def keep_uniformly(
    rng: np.random.Generator,
    users: Int64[np.ndarray, " pairs"],
    counts: Int64[np.ndarray, " users"],
    bound: int,
) -> Bool[np.ndarray, " pairs"]:
    """Which pairs users keep who keep a uniform subset of at most `bound` of theirs.

    Args:
        rng: Where the subsets come from.
        users: User of every pair, ascending.
        counts: Pairs of every user.
        bound: Contribution bound Delta0.
    """
    kept = np.ones(users.size, bool)
    rows = np.flatnonzero(counts[users] > bound)
    owners = users[rows]
    order = np.lexsort((rng.random(rows.size), owners))
    # Users stay where they are: only the order within a user is random.
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    lengths = np.diff(np.append(starts, rows.size))
    rank = np.arange(rows.size) - np.repeat(starts, lengths)
    kept[rows[order]] = rank < bound
    return kept


def round_probabilities(
    flow: FlowCalibration,
    items: np.ndarray,
    classes: Int64[np.ndarray, " kept"],
    num_items: int,
) -> tuple[Float64[np.ndarray, " items"], Float64[np.ndarray, " items"]]:
    """Release and miss probability of all items in one round.

    Args:
        flow: Flow of the round.
        items: Item of every kept pair.
        classes: Class of its user, who keeps at most so many items.
        num_items: Number of items.
    """
    base = flow.max_items_per_user + 1
    keys, counts = np.unique(items.astype(np.int64) * base + classes, return_counts=True)
    codes, sizes = np.divmod(keys, base)
    offsets = np.searchsorted(codes, np.arange(num_items + 1))
    return flow.probabilities(offsets, sizes, counts.astype(np.int64))


def fine_coins(
    rng: np.random.Generator, release: Float64[np.ndarray, " items"]
) -> Bool[np.ndarray, " items"]:
    """Whether U < p, U uniform with 106 bits."""
    scaled = release * 2.0**53
    whole = np.floor(scaled)
    head = rng.integers(0, 2**53, release.size).astype(np.float64)
    return (head < whole) | ((head == whole) & (rng.random(release.size) < scaled - whole))
