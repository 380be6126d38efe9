"""Sufficient statistics of W at one contribution bound: all that the bounds look at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from theory._check import Reals, check_count, check_max_items_per_user, invalid
from theory.item_classes import ItemClasses
from theory.user_items import UserItems


@dataclass(frozen=True, eq=False)
class Profile:
    """Item frequencies by class, and the sizes that the bounds need, at one Delta0.

    Items of equal frequency form one class, so Zipfian data of N = 1e12 pairs are a few hundred
    thousand classes.

    The exact methods look at `classes`, which also tell holders apart by the size of their set.

    Attributes:
        frequencies: Users holding an item of the class, strictly descending.
        multiplicity: Items in the class.
        max_set_size: Size of the largest set, L.
        max_items_per_user: Contribution bound, Delta0.
        num_users: Number of users n, or None where only frequencies are known.
        classes: Holders of the items by set size, or None where only frequencies are known.

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
    classes: ItemClasses | None = None

    @classmethod
    def from_user_items(cls, data: UserItems, *, max_items_per_user: Reals) -> Profile:
        """Profile of a data set."""
        return cls.from_classes(
            data.item_classes, max_items_per_user=max_items_per_user, num_users=data.num_users
        )

    @classmethod
    def from_classes(
        cls, classes: ItemClasses, *, max_items_per_user: Reals, num_users: int | None = None
    ) -> Profile:
        """Profile from holders by set size.

        Raises:
            InvalidInput: Delta0 is not a whole number from 1 to 1e9.
        """
        frequencies, multiplicity = classes.by_frequency
        return cls(
            frequencies=frequencies,
            multiplicity=multiplicity,
            max_set_size=classes.max_set_size,
            max_items_per_user=int(check_max_items_per_user(max_items_per_user)),
            num_users=num_users,
            classes=classes,
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
        equal_sets: bool = False,
    ) -> Profile:
        """Profile of a bare frequency vector.

        With `equal_sets`, or where L = 1, the holders' set sizes are known and so are `classes`.

        Args:
            frequencies: (entries,) whole numbers of at least 1.
            max_set_size: Size of the largest set, L.
            max_items_per_user: Contribution bound, Delta0.
            num_users: Number of users, if known.
            multiplicity: (entries,) number of items with each frequency; default 1.
            equal_sets: Every user holds exactly `max_set_size` items.

        Raises:
            InvalidInput: A frequency below 1 or not whole, no frequency, or frequencies that no
                users with equal sets can have.
        """
        counts = np.asarray(frequencies)
        whole = counts.dtype.kind in "iu" and counts.ndim == 1 and counts.size > 0
        if not whole or counts.min() < 1:
            invalid("frequencies", counts, "must be a non-empty vector of whole numbers >= 1")
        times = np.ones(counts.size, np.int64) if multiplicity is None else np.asarray(multiplicity)
        if times.shape != counts.shape or times.dtype.kind not in "iu" or times.min() < 1:
            invalid("multiplicity", times, "must be whole numbers >= 1, one per frequency")
        values, sums = _merged(counts.astype(np.int64), times.astype(np.int64))
        size = check_count("max_set_size", max_set_size)
        known = equal_sets or size == 1
        if known:
            pairs = int((values * sums).sum())
            num_users = pairs // size
            if pairs % size or values[0] > num_users:
                accepted = f"must sum to {size} times the users, none above the number of users"
                invalid("frequencies", counts, accepted)
        return cls(
            frequencies=values,
            multiplicity=sums,
            max_set_size=size,
            max_items_per_user=int(check_max_items_per_user(max_items_per_user)),
            num_users=num_users,
            classes=ItemClasses.of_equal_sets(values, sums, size) if known else None,
        )

    @property
    def item_classes(self) -> ItemClasses:
        """Holders of the items by set size.

        Raises:
            InvalidInput: Only frequencies are known.
        """
        if self.classes is None:
            accepted = "must know the set sizes of the items' holders"
            invalid("profile", "bare frequencies", accepted)
        return self.classes

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
    def rank_envelope(self) -> tuple[Float64[np.ndarray, " k"], Float64[np.ndarray, " k"]]:
        """Vertices of the upper hull of (ln r, ln(N_(r)/N)) and (0, 0).

        ln C(s) is the largest of ln(N_(r)/N) + s ln r and 0, linear in a rank's two coordinates:
        only hull vertices matter, and of equal frequencies only the last rank. (0, 0) stands for
        C >= 1.

        Returns:
            ln r ascending and ln(N_(r)/N) strictly descending, both starting at 0.
        """
        x = np.log(self.ranks.astype(np.float64))
        y = np.log(self.frequencies / self.num_pairs)
        inside = x > 0  # rank 1 lies on or below (0, 0)
        x, y = np.append(0.0, x[inside]), np.append(0.0, y[inside])
        # A point on or below the segment between its neighbours is no vertex, whatever else goes:
        # most points go at once, and what is left takes the scan.
        size = np.inf
        while x.size < 0.9 * size:
            size = x.size
            keep = np.ones(size, bool)
            keep[1:-1] = ~_turns_up((x[:-2], y[:-2]), (x[1:-1], y[1:-1]), (x[2:], y[2:]))
            x, y = x[keep], y[keep]
        hull: list[tuple[float, float]] = []
        for point in zip(x.tolist(), y.tolist(), strict=True):
            while len(hull) > 1 and _turns_up(hull[-2], hull[-1], point):
                hull.pop()
            hull.append(point)
        vertices = np.array(hull)
        return vertices[:, 0], vertices[:, 1]

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


def _merged(
    frequencies: np.ndarray, multiplicity: np.ndarray
) -> tuple[Int64[np.ndarray, " classes"], Int64[np.ndarray, " classes"]]:
    """Distinct frequencies, descending, and the items of each."""
    values, inverse = np.unique(frequencies, return_inverse=True)
    sums = np.zeros(values.size, np.int64)
    np.add.at(sums, inverse, multiplicity)
    return values[::-1].copy(), sums[::-1].copy()


def _turns_up(first: tuple[Any, Any], middle: tuple[Any, Any], last: tuple[Any, Any]) -> Any:
    """Whether `middle` lies on or below the segment from `first` to `last`."""
    dx, dy = last[0] - first[0], last[1] - first[1]
    return (middle[1] - first[1]) * dx <= (middle[0] - first[0]) * dy
