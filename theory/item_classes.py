"""Who holds each item, by set size: all that the exact methods need to know of a data set.

Items held by equally many users of every set size are alike for every mechanism that treats users
alike; they form one class. The table does not depend on Delta0, so one serves all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int64
from scipy.sparse import coo_array

from theory._check import Reals, check_count, invalid

_MOST = 2**62


@dataclass(frozen=True, eq=False)
class ItemClasses:
    """Classes of items, most frequent first; a class is a row of holders by set size.

    Attributes:
        frequencies: Users holding an item of the class, descending, not strictly.
        multiplicity: Items in the class.
        offsets: Class c has the entries offsets[c] to offsets[c + 1] of the next two.
        sizes: Set sizes, ascending within a class.
        counts: Holders of an item of the class whose set has this size.
        class_of_item: Class of every item code; None where there are no item codes.

    Example:
        >>> found = ItemClasses.from_counts([0, 0, 1, 2], [1, 3, 3, 3], [2, 1, 1, 1])
        >>> found.frequencies, found.multiplicity, found.class_of_item
        (array([3, 1]), array([1, 2]), array([0, 1, 1]))
        >>> found.base_weight(1)
        array([2., 0.])
    """

    frequencies: Int64[np.ndarray, " classes"]
    multiplicity: Int64[np.ndarray, " classes"]
    offsets: Int64[np.ndarray, " classes_and_one"]
    sizes: Int64[np.ndarray, " entries"]
    counts: Int64[np.ndarray, " entries"]
    class_of_item: Int64[np.ndarray, " items"] | None = None

    @classmethod
    def from_counts(cls, items: Reals, sizes: Reals, counts: Reals) -> ItemClasses:
        """Classes from a table item, set size, holders; repeated rows are added up.

        Args:
            items: (rows,) item codes 0, 1, ... without gaps.
            sizes: (rows,) set sizes, whole numbers of at least 1.
            counts: (rows,) users with a set of this size who hold the item, at least 1.

        Raises:
            InvalidInput: No rows, a number out of range or not whole, or lengths that differ.
        """
        item = _whole("items", items, minimum=0)
        size = _whole("sizes", sizes)
        count = _whole("counts", counts)
        if not item.size == size.size == count.size:
            invalid("counts", f"{count.size} rows", f"must be as many as items ({item.size})")
        values, column = np.unique(size, return_inverse=True)
        table = coo_array((count, (item, column))).tocsr()
        table.sum_duplicates()
        lengths = np.diff(table.indptr)
        if lengths.min() < 1:
            invalid("items", int(np.argmin(lengths)), "is a code without rows; codes have no gaps")
        starts = table.indptr[:-1]
        frequency = np.add.reduceat(table.data, starts)
        # Alike rows become neighbours; a collision of the hash costs a class, not correctness.
        hashed = table.data.astype(np.uint64) * _mix(values)[table.indices]
        order = np.lexsort((np.add.reduceat(hashed, starts), -frequency))
        table, lengths = table[order], lengths[order]
        repeats = _repeats_row_above(table.indptr, table.indices, table.data)
        first = np.flatnonzero(~repeats)
        class_of_item = np.empty(order.size, np.int64)
        class_of_item[order] = np.cumsum(~repeats) - 1
        table = table[first]
        return cls(
            frequencies=frequency[order][first],
            multiplicity=np.diff(np.append(first, order.size)),
            offsets=table.indptr.astype(np.int64),
            sizes=values[table.indices],
            counts=table.data,
            class_of_item=class_of_item,
        )

    @classmethod
    def of_equal_sets(cls, frequencies: Reals, multiplicity: Reals, set_size: int) -> ItemClasses:
        """Classes of data in which every user holds `set_size` items.

        Args:
            frequencies: (classes,) int64, strictly descending.
            multiplicity: (classes,) int64.
            set_size: Size of every set.
        """
        counts = np.asarray(frequencies)
        sizes = np.full(counts.size, check_count("set_size", set_size), np.int64)
        return cls(counts, np.asarray(multiplicity), np.arange(counts.size + 1), sizes, counts)

    @cached_property
    def num_items(self) -> int:
        """Number of distinct items, M."""
        return int(self.multiplicity.sum())

    @cached_property
    def num_pairs(self) -> int:
        """Number of user-item pairs, N."""
        return int((self.frequencies * self.multiplicity).sum())

    @cached_property
    def max_set_size(self) -> int:
        """Size of the largest set, L."""
        return int(self.sizes.max())

    @cached_property
    def by_frequency(
        self,
    ) -> tuple[Int64[np.ndarray, " frequencies"], Int64[np.ndarray, " frequencies"]]:
        """Distinct frequencies, descending, and the items of each: what bare bounds look at."""
        first = np.flatnonzero(np.diff(self.frequencies, prepend=0))
        return self.frequencies[first], np.add.reduceat(self.multiplicity, first)

    def base_weight(self, max_items_per_user: int) -> Float64[np.ndarray, " classes"]:
        """Weight from the holders who keep all they hold: sum of |W_i|^(-1/2), |W_i| <= Delta0."""
        kept = np.where(self.sizes <= max_items_per_user, self.counts / np.sqrt(self.sizes), 0.0)
        return np.add.reduceat(kept, self.offsets[:-1])

    def clipped(
        self, max_items_per_user: int
    ) -> tuple[
        Int64[np.ndarray, " classes_and_one"],
        Int64[np.ndarray, " clipped"],
        Int64[np.ndarray, " clipped"],
    ]:
        """Offsets, sizes and counts of the holders with more than Delta0 items."""
        beyond = self.sizes > max_items_per_user
        ends = np.concatenate(([0], np.cumsum(beyond)))[self.offsets]
        return ends, self.sizes[beyond], self.counts[beyond]

    def largest_weight(self, max_items_per_user: int) -> Float64[np.ndarray, " classes"]:
        """Weight if every holder keeps the item: an upper bound that can be reached."""
        kept = np.minimum(self.sizes, max_items_per_user)
        return np.add.reduceat(self.counts / np.sqrt(kept), self.offsets[:-1])

    def scaled(self, factor: int) -> ItemClasses:
        """The same items and set sizes with `factor` times as many users.

        Raises:
            InvalidInput: factor is not a whole number of at least 1, or the pairs exceed 2^62.
        """
        most = _MOST // self.num_pairs
        times = check_count("factor", factor, maximum=most)
        return ItemClasses(
            self.frequencies * times,
            self.multiplicity,
            self.offsets,
            self.sizes,
            self.counts * times,
            self.class_of_item,
        )


def _whole(name: str, values: Reals, *, minimum: int = 1) -> Int64[np.ndarray, " rows"]:
    array = np.asarray(values)
    accepted = f"must be whole numbers of at least {minimum}, one per row"
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        invalid(name, array, accepted)
    if array.min() < minimum:
        invalid(name, array.min(), accepted)
    return array.astype(np.int64)


def _mix(values: np.ndarray) -> np.ndarray:
    """A random-looking 64-bit word for every size (splitmix64)."""
    word = values.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    return word ^ (word >> np.uint64(31))


def _repeats_row_above(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Whether a row of a sparse table has exactly the entries of the row before it."""
    lengths = np.diff(indptr)
    same_length = np.concatenate(([False], lengths[1:] == lengths[:-1]))
    # In such a row each entry's counterpart lies one row length back.
    back = np.arange(indices.size) - np.repeat(np.where(same_length, lengths, 0), lengths)
    equal = (indices == indices[back]) & (data == data[back])
    return same_length & np.logical_and.reduceat(equal, indptr[:-1])
