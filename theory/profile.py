"""Sufficient statistics of W at one contribution bound: all that the bounds look at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Int64

from theory._check import Reals, check_count, check_max_items_per_user, invalid
from theory.user_items import UserItems


@dataclass(frozen=True, eq=False)
class Profile:
    """Item frequencies by class, and the sizes that the bounds need, at one Delta0.

    Items of equal frequency form one class, so Zipfian data of N = 1e12 pairs are a few hundred
    thousand classes.

    Attributes:
        frequencies: Users holding an item of the class, strictly descending.
        multiplicity: Items in the class.
        max_set_size: Size of the largest set, L.
        max_items_per_user: Contribution bound, Delta0.
        num_users: Number of users n, or None where only frequencies are known.

    Example:
        >>> data = UserItems.from_sets([{1, 2, 3}, {1}, {1}])
        >>> profile = Profile.from_user_items(data, max_items_per_user=2)
        >>> profile.frequencies, profile.multiplicity
        (array([3, 1]), array([1, 2]))
        >>> profile.keep_probability
        0.6666666666666666
        >>> profile.tail(1)
        array(0.4)
    """

    frequencies: Int64[np.ndarray, " classes"]
    multiplicity: Int64[np.ndarray, " classes"]
    max_set_size: int
    max_items_per_user: int
    num_users: int | None = None

    @classmethod
    def from_user_items(cls, data: UserItems, *, max_items_per_user: Reals) -> Profile:
        """Profile of a data set."""
        return cls.from_frequencies(
            data.frequencies,
            max_set_size=data.max_set_size,
            max_items_per_user=max_items_per_user,
            num_users=data.num_users,
        )

    @classmethod
    def from_frequencies(
        cls,
        frequencies: Reals,
        *,
        max_set_size: int,
        max_items_per_user: Reals,
        num_users: int | None = None,
        multiplicity: Reals | None = None,
    ) -> Profile:
        """Profile of a bare frequency vector.

        Args:
            frequencies: (entries,) whole numbers of at least 1.
            max_set_size: Size of the largest set, L.
            max_items_per_user: Contribution bound, Delta0.
            num_users: Number of users, if known.
            multiplicity: (entries,) number of items with each frequency; default 1.

        Raises:
            InvalidInput: A frequency below 1 or not whole, or no frequency.
        """
        counts = np.asarray(frequencies)
        whole = counts.dtype.kind in "iu" and counts.ndim == 1 and counts.size > 0
        if not whole or counts.min() < 1:
            invalid("frequencies", counts, "must be a non-empty vector of whole numbers >= 1")
        times = np.ones(counts.size, np.int64) if multiplicity is None else np.asarray(multiplicity)
        if times.shape != counts.shape or times.dtype.kind not in "iu" or times.min() < 1:
            invalid("multiplicity", times, "must be whole numbers >= 1, one per frequency")
        values, inverse = np.unique(counts.astype(np.int64), return_inverse=True)
        sums = np.zeros(values.size, np.int64)
        np.add.at(sums, inverse, times.astype(np.int64))
        return cls(
            frequencies=values[::-1].copy(),
            multiplicity=sums[::-1].copy(),
            max_set_size=check_count("max_set_size", max_set_size),
            max_items_per_user=int(check_max_items_per_user(max_items_per_user)),
            num_users=num_users,
        )

    @cached_property
    def num_items(self) -> int:
        """Number of distinct items, M."""
        return int(self.multiplicity.sum())

    @cached_property
    def num_pairs(self) -> int:
        """Number of user-item pairs, N."""
        return int(self._pairs.sum())

    @property
    def top_count(self) -> int:
        """Frequency of the most frequent item."""
        return int(self.frequencies[0])

    @property
    def q_star(self) -> int:
        """Largest number of items that any user keeps, q* = min(L, Delta0)."""
        return min(self.max_set_size, self.max_items_per_user)

    @property
    def keep_probability(self) -> float:
        """Least probability that a held item is kept, p* = q*/L."""
        return self.q_star / self.max_set_size

    @property
    def clipped(self) -> bool:
        """Whether some user holds more than Delta0 items."""
        return self.max_items_per_user < self.max_set_size

    @cached_property
    def ranks(self) -> Int64[np.ndarray, " classes"]:
        """Last rank of every class in descending order of frequency."""
        return np.cumsum(self.multiplicity)

    @cached_property
    def _pairs(self) -> Int64[np.ndarray, " classes"]:
        return self.frequencies * self.multiplicity

    @cached_property
    def _tail_pairs(self) -> Int64[np.ndarray, " classes_and_one"]:
        """Pairs of the i rarest classes, i = 0..classes."""
        return np.concatenate(([0], np.cumsum(self._pairs[::-1])))

    def tail(self, tau: Reals) -> np.ndarray:
        """Share of pairs whose item is held by at most tau users ([Z2]'s left side), exact.

        Args:
            tau: Any shape; real.

        Returns:
            float64 array of the same shape.
        """
        below = np.searchsorted(self.frequencies[::-1], np.asarray(tau), side="right")
        return np.asarray(self._tail_pairs[below] / self.num_pairs)
