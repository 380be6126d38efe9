"""Lines of many items: adjacency lists (`user item item ...`) and baskets (`item item ...`)."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass

import polars as pl

from experiments.loading.errors import DataError
from experiments.loading.opening import Part
from experiments.loading.sniff import list_separator

_HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class Lines:
    """The entries of a file of lines.

    Attributes:
        entries: Columns `line` (number from 0), `entry` (text, null where empty) and `first`
            (whether it is the first of its line), in order. A blank line has one null entry.
        num_lines: Number of lines, blank ones included.
    """

    entries: pl.DataFrame
    num_lines: int


def read_lines(part: Part, *, separator: str | None = None, header: bool | None = None) -> Lines:
    """Split a file into lines and lines into entries.

    Args:
        part: The file.
        separator: Between entries; None finds it, a space is any white space.
        header: Whether to skip the first line; None is no.
    """
    content = part.text()
    if separator is None:
        separator = list_separator(content[:_HEAD_BYTES].decode("utf-8", "ignore"), part.suffix)
    elif separator.isspace() and separator != "\t":
        separator = None
    if separator is not None and b'"' in content:
        rows = _quoted_rows(part, content, separator)
    else:
        rows = _plain_rows(content, separator)
    if header:
        rows = rows[1:]
    frame = pl.DataFrame({"entry": rows}).with_row_index("line").explode("entry")
    entry = pl.col("entry").str.strip_chars(" \t\r")
    frame = frame.with_columns(
        entry=pl.when(entry != "").then(entry), first=pl.col("line").is_first_distinct()
    )
    return Lines(frame, len(rows))


def _plain_rows(content: bytes, separator: str | None) -> pl.Series:
    if separator is None:
        content, separator = content.replace(b"\t", b" "), " "
    lines = pl.Series("entry", content.decode().split("\n"), dtype=pl.String)
    return lines.str.strip_chars(" \r").str.split(separator)


def _quoted_rows(part: Part, content: bytes, separator: str) -> pl.Series:
    if len(separator) > 1:
        raise DataError(part.name, f"quoted entries need a separator of one character: {separator}")
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", newline="")
    reader = csv.reader(text, delimiter=separator, skipinitialspace=True)
    try:
        rows = [row or [""] for row in reader]
    except csv.Error as error:
        raise DataError(part.name, f"line {reader.line_num}: {error}") from None
    return pl.Series("entry", rows, dtype=pl.List(pl.String))
