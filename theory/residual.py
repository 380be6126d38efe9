"""Who holds what, and who is not hit yet: what every choice in a hitting set counts and changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int32, Int64

from theory.user_items import UserItems


@dataclass(frozen=True, eq=False)
class Incidence:
    """Who holds what, both ways, for some of the items: positions in `items` name them below.

    Attributes:
        items: Item indices of the data set, ascending.
        num_users: Users of the data set, those without any of the items included.
        held: Position of every pair's item, user after user.
        held_starts: User i holds `held[held_starts[i]:held_starts[i + 1]]`.
        holders: User of every pair, item after item.
        holder_starts: Item j is held by `holders[holder_starts[j]:holder_starts[j + 1]]`.
    """

    items: Int32[np.ndarray, " items"]
    num_users: int
    held: Int32[np.ndarray, " pairs"]
    held_starts: Int64[np.ndarray, " users_and_one"]
    holders: Int32[np.ndarray, " pairs"]
    holder_starts: Int64[np.ndarray, " items_and_one"]

    @classmethod
    def of(cls, data: UserItems, among: Bool[np.ndarray, " all_items"] | None = None) -> Incidence:
        """Incidence of a data set, of all items or those marked in `among`.

        Example:
            >>> data = UserItems.from_sets([["a", "b"], ["a"], ["b", "c"]])
            >>> found = Incidence.of(data, np.array([False, True, True]))
            >>> found.items.tolist(), found.held.tolist(), found.held_starts.tolist()
            ([1, 2], [0, 0, 1], [0, 1, 1, 3])
            >>> found.holders.tolist(), found.holder_starts.tolist()
            ([0, 2, 2], [0, 2, 3])
        """
        if among is None:
            items = np.arange(data.num_items, dtype=np.int32)
            held, sizes = data.items, data.set_sizes
        else:
            items = np.flatnonzero(among).astype(np.int32)
            wanted = among[data.items]
            position = np.cumsum(among, dtype=np.int32) - np.int32(1)
            held = position[data.items[wanted]]
            before = np.concatenate(([0], np.cumsum(wanted)))
            sizes = np.diff(before[data.offsets])
        users = np.repeat(np.arange(data.num_users, dtype=np.int32), sizes)
        # A stable sort of small integers is a radix sort in NumPy where they have 16 bits.
        narrow = held.astype(np.uint16) if items.size <= 2**16 else held
        return cls(
            items=items,
            num_users=data.num_users,
            held=held,
            held_starts=_starts(sizes),
            holders=users[np.argsort(narrow, kind="stable")],
            holder_starts=_starts(np.bincount(held, minlength=items.size)),
        )

    @property
    def sizes(self) -> Int64[np.ndarray, " users"]:
        """Number of the items that every user holds."""
        return np.diff(self.held_starts)


class Residual:
    """Number of users not hit yet who hold every item; `choose` removes an item's holders.

    A user is removed at most once, so all choices together walk through every pair twice at most.

    Args:
        incidence: The data, from the beginning.

    Attributes:
        counts: Users not hit yet who hold every item, by position in `incidence.items`.
        users_left: Users not hit yet, those without any of the items included.

    Example:
        >>> data = UserItems.from_sets([["a", "b"], ["a"], ["a", "c"], ["b", "c"], ["c"]])
        >>> residual = Residual(Incidence.of(data))
        >>> residual.counts.tolist(), residual.choose(0), residual.counts.tolist()
        ([3, 2, 3], 3, [0, 1, 2])
        >>> residual.choose(2), residual.users_left
        (2, 0)
    """

    counts: Int64[np.ndarray, " items"]
    users_left: int

    def __init__(self, incidence: Incidence) -> None:
        self.incidence = incidence
        self.counts = np.diff(incidence.holder_starts)
        self.users_left = incidence.num_users
        self._left = np.ones(incidence.num_users, bool)

    @property
    def exhausted(self) -> bool:
        """Whether every user is hit."""
        return self.users_left == 0

    @property
    def num_bytes(self) -> int:
        """Memory of its own arrays."""
        return self.counts.nbytes + self._left.nbytes

    def choose(self, item: int) -> int:
        """Remove the holders of an item, given by its position; returns how many are new."""
        known = self.incidence
        holders = known.holders[known.holder_starts[item] : known.holder_starts[item + 1]]
        hit = holders[self._left[holders]]
        self._left[hit] = False
        self.users_left -= hit.size
        lost = rows_of(known.held, known.held_starts, hit)
        self.counts -= np.bincount(lost, minlength=self.counts.size)
        return int(hit.size)

    def copy(self) -> Residual:
        """The same state, to be changed independently."""
        twin = object.__new__(Residual)
        twin.incidence, twin.users_left = self.incidence, self.users_left
        twin.counts, twin._left = self.counts.copy(), self._left.copy()
        return twin


def distinct(numbers: Int64[np.ndarray, " numbers"]) -> Int64[np.ndarray, " distinct"]:
    """Distinct numbers of at least 0, ascending. `np.unique` hashes them: 15 times as slow."""
    ordered = np.sort(numbers)
    return ordered[np.diff(ordered, prepend=-1) > 0]


def rows_of(
    values: np.ndarray, starts: Int64[np.ndarray, " rows_and_one"], rows: np.ndarray
) -> np.ndarray:
    """The entries of some rows of a compressed structure, row after row."""
    sizes = starts[rows + 1] - starts[rows]
    shift = np.repeat(starts[rows] - (np.cumsum(sizes) - sizes), sizes)
    return values[shift + np.arange(shift.size)]


def _starts(lengths: np.ndarray) -> Int64[np.ndarray, " lengths_and_one"]:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
