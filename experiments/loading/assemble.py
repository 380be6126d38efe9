"""Parts of any format to one `UserItems`: labels to codes, counts of what was dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from experiments.loading.errors import DataError, listing
from experiments.loading.lines import read_lines
from experiments.loading.opening import Part
from experiments.loading.posts import AUTHOR, TEXTS, read_posts
from experiments.loading.presets import Layout
from experiments.loading.tables import Table
from experiments.loading.words import words
from theory import UserItems


def assemble(name: str, parts: Iterable[Part], layout: Layout) -> UserItems:
    """Read all parts and put them together.

    Args:
        name: What messages call the whole.
        parts: The files.
        layout: How to read them, complete.
    """
    read = {
        "pairs": _pairs,
        "adjacency": _adjacency,
        "baskets": _baskets,
        "text": _text,
        "posts-xml": _posts,
    }[layout.format]
    frames = list(read(parts, layout))
    try:
        frame = pl.concat(frames, how="vertical_relaxed")
    except pl.exceptions.PolarsError:
        types = listing(
            sorted({str(f.schema["user"]) + "/" + str(f.schema["item"]) for f in frames})
        )
        raise DataError(name, f"the files' columns have different types: {types}") from None
    return _build(name, frame)


def _build(name: str, frame: pl.DataFrame) -> UserItems:
    """Data set from columns `user` and `item`.

    A row without user is missing. `item` is either one label, missing where null, or a list of
    labels, which may be empty.
    """
    rows = frame.height
    frame = frame.filter(pl.col("user").is_not_null() & pl.col("item").is_not_null())
    missing = rows - frame.height
    if not frame.height:
        raise DataError(name, f"no users: none of {rows} rows has a user and an item")
    user_codes, user_labels = _encode(name, frame["user"])
    items = frame["item"]
    if isinstance(items.dtype, (pl.List, pl.Array)):
        if isinstance(items.dtype, pl.Array):
            items = items.arr.to_list()
        user_codes = np.repeat(user_codes, items.list.len().to_numpy())
        del frame
        items = items.filter(items.list.len() > 0).explode()
        held = items.is_not_null().to_numpy()
        missing += int((~held).sum())
        items, user_codes = items.drop_nulls(), user_codes[held]
    if not len(items):
        raise DataError(name, f"only empty sets: {len(user_labels)} users, none with an item")
    item_codes, item_labels = _encode(name, items)
    return UserItems.from_codes(
        user_codes,
        item_codes,
        user_labels=user_labels,
        item_labels=item_labels,
        missing_dropped=missing,
    )


def _encode(name: str, column: pl.Series) -> tuple[np.ndarray, list]:
    """Codes (rows,) int64 and labels, in order of first appearance."""
    if column.dtype.is_nested() or column.dtype == pl.Object:
        raise DataError(name, f"a column of type {column.dtype} holds no labels")
    column = column.alias("label")
    labels = column.unique(maintain_order=True)
    known = pl.DataFrame([labels, pl.int_range(len(labels), eager=True).alias("code")])
    coded = column.to_frame().join(known, on="label", how="left", maintain_order="left")
    return coded["code"].to_numpy().astype(np.int64), labels.to_list()


def _numbered(frame: pl.DataFrame, start: int) -> pl.DataFrame:
    """Rows as users: their number, running on over the parts, is the label."""
    numbers = pl.int_range(start, start + frame.height, eager=True)
    return frame.with_columns(numbers.alias("user"))


def _pairs(parts: Iterable[Part], layout: Layout) -> Iterator[pl.DataFrame]:
    asked = [c for c in (layout.user, layout.item) if c is not None]
    for part in parts:
        table = Table.peek(part, separator=layout.separator, header=layout.header, asked=asked)
        layout = _settled(layout, table)
        columns = [table.find(layout.user, "user"), table.find(layout.item, "item")]
        if layout.keep is None:
            yield table.read(columns).select(user="0", item="1")
        else:
            column, value = layout.keep
            frame = table.read([*columns, table.find(column, "item")])
            yield frame.filter(pl.col("2") == value).select(user="0", item="1")


def _settled(layout: Layout, table: Table) -> Layout:
    """What is found about the header of the first text file holds for the others."""
    if table.separator is None or layout.header is not None or table.guessed:
        return layout
    return replace(layout, header=table.header)


def _adjacency(parts: Iterable[Part], layout: Layout) -> Iterator[pl.DataFrame]:
    for part in parts:
        entries = read_lines(part, separator=layout.separator, header=layout.header).entries
        lines = entries.group_by("line", maintain_order=True).agg(
            user=pl.col("entry").first(), item=pl.col("entry").slice(1).drop_nulls()
        )
        blank = pl.col("user").is_null() & (pl.col("item").list.len() == 0)
        yield lines.filter(~blank).select("user", "item")


def _baskets(parts: Iterable[Part], layout: Layout) -> Iterator[pl.DataFrame]:
    start = 0
    for part in parts:
        entries = read_lines(part, separator=layout.separator, header=layout.header).entries
        baskets = entries.group_by("line", maintain_order=True).agg(
            item=pl.col("entry").drop_nulls()
        )
        yield _numbered(baskets, start).select("user", "item")
        start += baskets.height


def _text(parts: Iterable[Part], layout: Layout) -> Iterator[pl.DataFrame]:
    start = 0
    for part in parts:
        frame = _line_texts(part) if _is_prose(part, layout) else _table_texts(part, layout)
        if "user" not in frame.columns:
            frame = _numbered(frame, start)
        start += frame.height
        bags = words(frame["text"], unescape=layout.unescape)
        yield frame.select("user", bags.alias("item"))


def _is_prose(part: Part, layout: Layout) -> bool:
    """Whether a file is text line by line, not a table."""
    told = layout.user is not None or layout.text or layout.separator or layout.header is not None
    return not told and not part.is_parquet and part.suffix not in (".csv", ".tsv")


def _line_texts(part: Part) -> pl.DataFrame:
    return pl.DataFrame({"text": part.text().decode().split("\n")}, schema={"text": pl.String})


def _table_texts(part: Part, layout: Layout) -> pl.DataFrame:
    asked = [c for c in (layout.user, *layout.text) if c is not None]
    table = Table.peek(part, separator=layout.separator, header=layout.header, asked=asked)
    chosen = [table.find(column, "text") for column in _split(layout.text, table) or (None,)]
    columns = chosen if layout.user is None else [*chosen, table.find(layout.user, "user")]
    frame = table.read(columns)
    texts = frame.select(pl.col(str(i)).cast(pl.String).fill_null("") for i in range(len(chosen)))
    joined = texts.select(text=pl.concat_str(pl.all(), separator=" "))
    if layout.user is None:
        return joined
    return joined.with_columns(frame[str(len(chosen))].alias("user"))


def _split(columns: tuple[str | int, ...], table: Table) -> tuple[str | int, ...]:
    """`"title,body"` as two columns, unless there is a column of just that name."""
    if len(columns) == 1 and isinstance(columns[0], str) and columns[0] not in table.names:
        return tuple(column.strip() for column in columns[0].split(","))
    return columns


def _posts(parts: Iterable[Part], layout: Layout) -> Iterator[pl.DataFrame]:
    texts = [str(column) for column in layout.text] or list(TEXTS)
    if len(texts) == 1:
        texts = texts[0].split(",")
    for part in parts:
        user = AUTHOR if layout.user is None else str(layout.user)
        frame = read_posts(part, user=user, texts=texts)
        bags = words(frame["text"], unescape=layout.unescape)
        yield frame.select("user", bags.alias("item"))
