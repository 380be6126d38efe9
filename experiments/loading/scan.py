"""`scan`: item classes of a pairs table that is larger than memory.

The exact methods look at one thing only: how many users of each set size hold each item. It takes
all pairs of a user to know the user's set, so the files are read several times, and every pass
handles the users whose hash falls to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from experiments.loading.errors import DataError, listing
from experiments.loading.opening import describe
from experiments.loading.sniff import check_separator
from theory._check import check_count, invalid
from theory.item_classes import ItemClasses

if TYPE_CHECKING:
    import polars as pl

    from experiments.loading.blocks import PlainFile

_HALF, _LOW_HALF = np.uint64(32), np.uint64(2**32 - 1)
_MOST_PASSES = 10_000
# Measured: pairs as numbers, sorted; and users' labels in a table, at worst one a row.
_PER_ROW, _PER_BYTE = 64, 2


@dataclass(frozen=True, eq=False)
class Scan:
    """What a scan keeps of a data set.

    Attributes:
        classes: How many users of each set size hold each item, equal items collapsed.
        num_users: Users with an item, n.
        num_items: Distinct items, M.
        num_pairs: Distinct user-item pairs, N.
        max_set_size: Size of the largest set, L.
        duplicates_removed: Pairs that repeated an earlier pair.
        missing_dropped: Rows without user or item.
        passes: How often the files were read.
    """

    classes: ItemClasses
    num_users: int
    num_items: int
    num_pairs: int
    max_set_size: int
    duplicates_removed: int
    missing_dropped: int
    passes: int


def scan(
    *paths: str | os.PathLike[str],
    user: str | int | None = None,
    item: str | int | None = None,
    separator: str | None = None,
    header: bool | None = None,
    passes: int | None = None,
    memory_budget: int = 2**31,
) -> Scan:
    r"""Item classes of a table with a user and an item column, without holding its pairs.

    Rows and labels are read as by `load`, and the result is the one of `load(...).item_classes`.
    Files must be plain CSV, TSV or the like, in UTF-8, or Parquet without lists; quotation marks
    must enclose whole fields. In memory are the pairs and users of one pass, and throughout the
    labels of all items and the table of items by set size; nothing is written to disk.

    Args:
        *paths: One file, several of the same layout, or a folder of them.
        user: Column of users: a name, or a number from 0. Without it: `user` or `user_id`.
        item: Column of items, likewise `item` or `item_id`.
        separator: Between fields. Without it: see `experiments.loading.sniff`.
        header: Whether the first line names the columns. Without it: see there.
        passes: How often the files are read, each time for another part of the users; memory falls
            and time grows with it. Without it: as `memory_budget` needs.
        memory_budget: Bytes that one pass may take, at least 2^27, by an estimate from the first
            lines; what stays throughout comes on top.

    Returns:
        A `Scan`.

    Raises:
        DataError: A file is missing, packed, damaged, binary, empty, uneven, lacks a column, or
            changes while it is read; the message is one line and begins with the file's name.
        InvalidInput: An argument has no such value.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "buys.csv")
        ...     _ = file.write_text("who,what\nann,tea\nann,milk\nbob,tea\n")
        ...     found = scan(file, user="who", item="what", passes=2)
        >>> found.num_users, found.num_items, found.num_pairs, found.max_set_size
        (2, 2, 3, 2)
        >>> found.classes.frequencies
        array([2, 1])
    """
    if not paths:
        invalid("paths", "()", "must be at least one file or folder")
    separator = check_separator(separator)
    memory_budget = check_count("memory_budget", memory_budget, minimum=2**27)
    if passes is not None:
        passes = check_count("passes", passes, maximum=_MOST_PASSES)

    # polars takes longer to import than most files take to read, so it is imported only now.
    from experiments.loading.blocks import plain_files

    asked = [column for column in (user, item) if column is not None]
    files = plain_files(paths, separator=separator, header=header, asked=asked)
    if passes is None:
        needed = sum(_PER_ROW * file.rows + _PER_BYTE * file.num_bytes for file in files)
        passes = max(1, -(-needed // memory_budget))
    source = _Source(describe(paths), files, user, item, memory_budget)
    return _scanned(source, passes)


class _Source:
    """Complete pairs of all files, block by block, as often as wanted."""

    def __init__(
        self,
        name: str,
        files: Sequence[PlainFile],
        user: str | int | None,
        item: str | int | None,
        memory_budget: int,
    ) -> None:
        import polars as pl

        from experiments.loading.blocks import BLOCK_BYTES

        self.name, self.files = name, files
        self.block_bytes = min(BLOCK_BYTES, memory_budget // 64)
        self.rows_at_once = memory_budget // 1024
        self.columns = [[f.table.find(user, "user"), f.table.find(item, "item")] for f in files]
        self.states = [self._state(file) for file in files]
        empty = [f.empty(c) for f, c in zip(files, self.columns, strict=True)]
        try:
            self.types = pl.concat(empty, how="vertical_relaxed").schema
        except pl.exceptions.PolarsError:
            types = listing(sorted({"/".join(map(str, frame.dtypes)) for frame in empty}))
            raise DataError(name, f"the files' columns have different types: {types}") from None
        for dtype in self.types.values():
            if dtype.is_nested() or dtype == pl.Object:
                problem = f"a column of type {dtype}; a scan wants one user and one item per row"
                raise DataError(name, problem)

    def pairs(self) -> Iterator[tuple[int, pl.DataFrame]]:
        """Rows read, and those with a user and an item, as columns "0" and "1"."""
        for file, columns, state in zip(self.files, self.columns, self.states, strict=True):
            for frame in file.read(columns, block_bytes=self.block_bytes):
                yield frame.height, frame.cast(self.types).drop_nulls()
            if self._state(file) != state:
                raise DataError(file.name, "changed while it was read")

    @staticmethod
    def _state(file: PlainFile) -> tuple[int, int]:
        status = os.stat(file.path)
        return status.st_size, status.st_mtime_ns


class _Codes:
    """Labels to codes 0, 1, ..., in the order in which they come."""

    def __init__(self) -> None:
        self.known: pl.DataFrame | None = None

    def __len__(self) -> int:
        return 0 if self.known is None else self.known.height

    def encode(self, column: pl.Series) -> np.ndarray:
        """Codes (rows,) uint64 of labels without gaps."""
        import polars as pl

        labels = column.unique().alias("label").to_frame()
        if self.known is None:
            self.known = labels.clear().with_columns(code=pl.lit(0, pl.UInt32))
        coded = labels.join(self.known, on="label", how="left")
        new = coded.filter(pl.col("code").is_null()).select("label")
        if new.height:
            numbers = pl.int_range(len(self), len(self) + new.height, dtype=pl.UInt32, eager=True)
            new = new.with_columns(_compact(new["label"]), code=numbers)
            self.known = pl.concat([self.known, new])
            coded = pl.concat([coded.drop_nulls(), new])
        codes = (
            column.alias("label")
            .to_frame()
            .join(coded, on="label", how="left", maintain_order="left")["code"]
        )
        return codes.to_numpy().astype(np.uint64)


def _compact(labels: pl.Series) -> pl.Series:
    """The same labels in memory of their own: a filtered column keeps all of its block alive."""
    import polars as pl

    if labels.dtype != pl.String:
        return labels
    return labels.to_frame().select(pl.concat_str([labels.name, pl.lit("")])).to_series()


def _scanned(source: _Source, passes: int) -> Scan:
    items = _Codes()
    keys = np.zeros(0, np.uint64)  # item and set size in one word
    counts = np.zeros(0, np.int64)
    rows = complete = num_users = 0
    for index in range(passes):
        rows, complete, pairs, users = _pass(source, items, index, passes)
        num_users += users
        found, times = _sized(pairs, users)
        keys, counts = _summed(np.concatenate((keys, found)), np.concatenate((counts, times)))
    if not complete:
        raise DataError(source.name, f"no users: none of {rows} rows has a user and an item")
    num_pairs = int(counts.sum())
    sizes = (keys & _LOW_HALF).astype(np.int64)
    classes = ItemClasses.from_counts((keys >> _HALF).astype(np.int64), sizes, counts)
    return Scan(
        # Codes of items mean nothing without their labels.
        classes=replace(classes, class_of_item=None),
        num_users=num_users,
        num_items=len(items),
        num_pairs=num_pairs,
        max_set_size=int(sizes.max()),
        duplicates_removed=complete - num_pairs,
        missing_dropped=rows - complete,
        passes=passes,
    )


def _pass(
    source: _Source, items: _Codes, index: int, passes: int
) -> tuple[int, int, np.ndarray, int]:
    """Rows, complete rows, this pass's pairs (user and item in one word), and its users."""
    import polars

    users = _Codes()
    parts: list[np.ndarray] = []
    waiting: list[pl.DataFrame] = []
    rows = complete = 0

    def encode() -> None:
        pairs = polars.concat(waiting)
        waiting.clear()
        parts.append(users.encode(pairs["0"]) << _HALF | items.encode(pairs["1"]))

    for height, pairs in source.pairs():
        rows += height
        complete += pairs.height
        if passes > 1:
            pairs = pairs.filter(pairs["0"].hash() % passes == index)
            pairs = pairs.with_columns(_compact(pairs["0"]), _compact(pairs["1"]))
        waiting.append(pairs)
        # Looking labels up costs as much as there are known ones, so it is done rarely.
        if sum(map(len, waiting)) >= source.rows_at_once:
            encode()
    if sum(map(len, waiting)):
        encode()
    return rows, complete, np.concatenate(parts or [np.zeros(0, np.uint64)]), len(users)


def _sized(pairs: np.ndarray, num_users: int) -> tuple[np.ndarray, np.ndarray]:
    """Item and set size in one word, and how many distinct pairs have them; ends `pairs`."""
    pairs.sort()
    pairs = pairs[_first(pairs)]
    sizes = np.bincount((pairs >> _HALF).astype(np.int64), minlength=num_users)
    pairs <<= _HALF
    pairs |= np.repeat(sizes.astype(np.uint64), sizes)
    return _summed(pairs, np.ones(pairs.size, np.int64))


def _summed(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(keys)
    keys, counts = keys[order], counts[order]
    first = _first(keys)
    return keys[first], np.add.reduceat(counts, np.flatnonzero(first)) if keys.size else counts


def _first(values: np.ndarray) -> np.ndarray:
    """Whether a sorted value differs from the one before it."""
    first = np.ones(values.size, bool)
    np.not_equal(values[1:], values[:-1], out=first[1:])
    return first
