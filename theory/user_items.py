"""The data set W: one set of items per user, as a compressed row structure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Int32, Int64

from theory._check import Reals, invalid
from theory._encode import Labels, encode
from theory.item_classes import ItemClasses

_MOST_ITEMS = 2**31 - 1
_SOME_PAIR = "must hold at least one user with one item"


@dataclass(frozen=True, eq=False)
class UserItems:
    """One set of items per user; immutable, without duplicates and without empty users.

    Attributes:
        items: Item index of every user-item pair, grouped by user and ascending within a user.
        offsets: User i holds `items[offsets[i]:offsets[i + 1]]`.
        item_labels: Label of every item index, or None where items are their own index.
        user_labels: Label of every user, or None.
        duplicates_removed: Pairs that repeated an earlier pair.
        empty_users_dropped: Users without any item.
        missing_dropped: Rows without user or item.

    Example:
        >>> data = UserItems.from_sets([{"tea", "milk"}, {"tea"}, set()])
        >>> data.num_users, data.num_items, data.num_pairs, data.empty_users_dropped
        (2, 2, 3, 1)
        >>> dict(zip(data.item_labels, data.frequencies.tolist()))["tea"]
        2
    """

    items: Int32[np.ndarray, " num_pairs"]
    offsets: Int64[np.ndarray, " num_users_and_one"]
    item_labels: Labels | None = None
    user_labels: Labels | None = None
    duplicates_removed: int = 0
    empty_users_dropped: int = 0
    missing_dropped: int = 0

    # ---- construction

    @classmethod
    def from_codes(
        cls,
        user_codes: Reals,
        item_codes: Reals,
        *,
        user_labels: Labels | None = None,
        item_labels: Labels | None = None,
        empty_users_dropped: int = 0,
        missing_dropped: int = 0,
    ) -> UserItems:
        """Data set from integer codes, one row per pair, in any order.

        Args:
            user_codes: (rows,) integers from 0; a code that never occurs is an empty user.
            item_codes: (rows,) integers from 0; a code that never occurs is no item.
            user_labels: Label per user code.
            item_labels: Label per item code.
            empty_users_dropped: Empty users already dropped by the caller.
            missing_dropped: Incomplete rows already dropped by the caller.

        Returns:
            The data set, deduplicated, users in the order of their codes.

        Raises:
            InvalidInput: No pair at all, or lengths differ.
        """
        users, items = np.asarray(user_codes), np.asarray(item_codes)
        if users.shape != items.shape or users.ndim != 1:
            invalid("items", items.shape, f"must be one row per user entry, shape {users.shape}")
        if users.size == 0:
            invalid("data", f"{empty_users_dropped} empty users, no pair", _SOME_PAIR)
        known_users = len(user_labels) if user_labels is not None else int(users.max()) + 1
        known_items = len(item_labels) if item_labels is not None else int(items.max()) + 1
        if known_items > _MOST_ITEMS:
            invalid("num_items", known_items, f"must be at most {_MOST_ITEMS}")

        # One sort of packed (user, item) keys groups, orders and deduplicates at once.
        keys = users.astype(np.int64) * np.int64(known_items) + items.astype(np.int64)
        keys.sort()
        distinct = np.concatenate(([True], keys[1:] != keys[:-1]))
        keys = keys[distinct]
        row_user, row_item = np.divmod(keys, np.int64(known_items))

        sizes = np.bincount(row_user, minlength=known_users)
        held = np.bincount(row_item, minlength=known_items) > 0
        if not held.all():
            row_item = (np.cumsum(held) - 1)[row_item]
            item_labels = _select(item_labels, held)
        present = sizes > 0
        if user_labels is not None and not present.all():
            user_labels = _select(user_labels, present)
        offsets = np.concatenate(([0], np.cumsum(sizes[present]))).astype(np.int64)
        compact = row_item.astype(np.int32)
        compact.setflags(write=False)
        offsets.setflags(write=False)
        return cls(
            items=compact,
            offsets=offsets,
            item_labels=item_labels,
            user_labels=user_labels,
            duplicates_removed=int(users.size - keys.size),
            empty_users_dropped=empty_users_dropped + int((~present).sum()),
            missing_dropped=missing_dropped,
        )

    @classmethod
    def from_pairs(cls, users: Iterable[Any], items: Iterable[Any]) -> UserItems:
        """Data set from two columns of equal length; labels are any hashables.

        Labels that Python calls equal are one label (1, 1.0 and True); 1 and "1" are two. A row
        with None or NaN is dropped and counted in `missing_dropped`.

        Example:
            >>> UserItems.from_pairs([7, 7, 8], ["a", "a", "b"]).duplicates_removed
            1
        """
        user_codes, user_labels = encode(users, "users")
        item_codes, item_labels = encode(items, "items")
        if user_codes.shape != item_codes.shape:
            accepted = f"must have as many entries as users ({user_codes.size})"
            invalid("items", f"{item_codes.size} entries", accepted)
        complete = (user_codes >= 0) & (item_codes >= 0)
        # A user all of whose rows lack an item is a dropped row, not an empty set.
        return cls.from_codes(
            user_codes[complete],
            item_codes[complete],
            user_labels=user_labels,
            item_labels=item_labels,
            missing_dropped=int((~complete).sum()),
        )

    @classmethod
    def from_sets(
        cls, sets: Iterable[Iterable[Hashable]] | Mapping[Any, Iterable[Hashable]]
    ) -> UserItems:
        """Data set from one collection of items per user, or a mapping user -> collection.

        Raises:
            InvalidInput: A set is a string (its letters are hardly meant), or all are empty.

        Example:
            >>> UserItems.from_sets({"ann": ["x", "y"], "bob": ["y"]}).user_labels
            ['ann', 'bob']
        """
        accepted = "must be a collection of items per user, not a string"
        if isinstance(sets, (str, bytes)):
            invalid("sets", sets, accepted)
        labels = list(sets) if isinstance(sets, Mapping) else None
        rows = sets.values() if isinstance(sets, Mapping) else sets
        codes: dict[Any, int] = {}
        sizes: list[int] = []
        flat: list[int] = []
        for row in rows:
            if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
                invalid("sets", row, accepted)
            before = len(flat)
            flat.extend(codes.setdefault(item, len(codes)) for item in row)
            sizes.append(len(flat) - before)
        users = np.repeat(np.arange(len(sizes)), sizes)
        if not flat:
            invalid("data", f"{len(sizes)} empty users", _SOME_PAIR)
        # Trailing empty users cannot be read off the codes.
        trailing = len(sizes) - 1 - int(users[-1]) if labels is None else 0
        return cls.from_codes(
            users,
            np.asarray(flat, np.int64),
            user_labels=labels,
            item_labels=list(codes),
            empty_users_dropped=trailing,
        )

    @classmethod
    def from_frame(cls, frame: Any, *, user: str, item: str) -> UserItems:
        """Data set from two columns of a polars, pandas or Arrow frame.

        Args:
            frame: polars DataFrame or LazyFrame, pandas DataFrame, or Arrow table.
            user: Name of the column that says who.
            item: Name of the column that says what.

        Raises:
            InvalidInput: A column is missing; the message lists the columns.
        """
        if hasattr(frame, "collect") and hasattr(frame, "lazy"):  # polars LazyFrame
            frame = frame.collect()
        names = getattr(frame, "column_names", None) or list(getattr(frame, "columns", []))
        for role, name in (("user", user), ("item", item)):
            if name not in names:
                invalid(role, name, f"must be one of the columns {', '.join(map(str, names))}")
        return cls.from_pairs(frame[user], frame[item])

    @classmethod
    def from_csr(cls, items: Reals, offsets: Reals) -> UserItems:
        """Data set from item codes and row offsets, as in scipy.sparse.

        Example:
            >>> UserItems.from_csr([0, 1, 1], [0, 2, 3]).set_sizes
            array([2, 1])
        """
        items, offsets = np.asarray(items), np.asarray(offsets)
        whole = items.dtype.kind in "iu" and offsets.dtype.kind in "iu"
        if not whole or offsets.ndim != 1 or offsets.size < 2 or (items.size and items.min() < 0):
            invalid("offsets", offsets, "and items must be 1-d arrays of whole numbers from 0")
        sizes = np.diff(offsets)
        if offsets[0] != 0 or sizes.min() < 0 or offsets[-1] != items.size:
            invalid("offsets", offsets, f"must rise from 0 to the number of pairs, {items.size}")
        users = np.repeat(np.arange(sizes.size), sizes)
        trailing = sizes.size - 1 - int(users[-1]) if users.size else sizes.size
        return cls.from_codes(users, items, empty_users_dropped=trailing)

    # ---- sizes

    @property
    def num_users(self) -> int:
        """Number of users with at least one item, n."""
        return self.offsets.size - 1

    @property
    def num_items(self) -> int:
        """Number of distinct items, M."""
        return self.frequencies.size

    @property
    def num_pairs(self) -> int:
        """Number of user-item pairs, N."""
        return self.items.size

    @cached_property
    def set_sizes(self) -> Int64[np.ndarray, " num_users"]:
        """Number of items of every user."""
        return np.diff(self.offsets)

    @cached_property
    def frequencies(self) -> Int64[np.ndarray, " num_items"]:
        """Number of users holding every item, N(x)."""
        return np.bincount(self.items)

    @cached_property
    def name_ranks(self) -> Int64[np.ndarray, " num_items"]:
        """Place of every item in the order of the labels as text; its own index without labels.

        Items are numbered as they first appear, which one user more can change. Names are public
        in the sense that no user changes their order.

        Example:
            >>> data = UserItems.from_sets([["tea", "milk"], ["milk"]])
            >>> dict(zip(data.item_labels, data.name_ranks.tolist()))
            {'tea': 1, 'milk': 0}
        """
        ranks = np.arange(self.num_items, dtype=np.int64)
        if self.item_labels is not None:
            names = [(str(label), type(label).__name__) for label in self.item_labels]
            ranks[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
        return ranks

    @cached_property
    def item_classes(self) -> ItemClasses:
        """Holders of every item by set size, equal items collapsed."""
        sizes = np.repeat(self.set_sizes, self.set_sizes)
        return ItemClasses.from_counts(self.items, sizes, np.ones(sizes.size, np.int64))

    @property
    def max_set_size(self) -> int:
        """Size of the largest set, L."""
        return int(self.set_sizes.max())

    @property
    def median_set_size(self) -> float:
        """Median size of a set."""
        return float(np.median(self.set_sizes))

    @property
    def top_count(self) -> int:
        """Number of users holding the most frequent item."""
        return int(self.frequencies.max())

    def __repr__(self) -> str:
        return (
            f"UserItems(num_users={self.num_users}, num_items={self.num_items}, "
            f"num_pairs={self.num_pairs}, max_set_size={self.max_set_size})"
        )


def _select(labels: Labels | None, keep: np.ndarray) -> Labels | None:
    if labels is None:
        return None
    if hasattr(labels, "filter") or isinstance(labels, np.ndarray):  # polars Series, numpy array
        return labels[np.flatnonzero(keep)]
    return [label for label, kept in zip(labels, keep.tolist(), strict=True) if kept]
