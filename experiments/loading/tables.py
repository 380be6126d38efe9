"""Columns of CSV-like and Parquet files, as polars frames.

Text files give every field as it is written ("01" and "1" differ), Parquet gives typed values.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from experiments.loading.errors import DataError, listing, one_line
from experiments.loading.opening import Part
from experiments.loading.sniff import (
    LINES_LOOKED_AT,
    header_evidence,
    table_separator,
    usual_name,
)

Column = str | int
_HEAD_BYTES = 1 << 20
_UNIT = "\x1f"  # stands for separators that are not one ASCII character


@dataclass(frozen=True)
class Table:
    """A table of which only the first lines have been looked at.

    Attributes:
        part: The file.
        content: Its text, cleaned; empty for Parquet.
        separator: One ASCII character; None for Parquet.
        header: Whether the first line names the columns.
        guessed: Whether that is no more than a guess.
        names: Column names, or the first line's fields where there is no header.
        first_line: Number in the file of the first line of `content`, for messages.
    """

    part: Part
    content: bytes
    separator: str | None
    header: bool
    guessed: bool
    names: tuple[str, ...]
    first_line: int = 1

    @classmethod
    def peek(
        cls,
        part: Part,
        *,
        separator: str | None = None,
        header: bool | None = None,
        asked: Sequence[Column] = (),
    ) -> Table:
        """Find separator, header and column names.

        Args:
            part: The file.
            separator: As told, or None to find it.
            header: As told, or None to find it.
            asked: The columns that will be asked for; one by name means a header.
        """
        if part.is_parquet:
            try:
                names = tuple(pl.read_parquet_schema(io.BytesIO(part.content)))
            except (pl.exceptions.PolarsError, OSError) as error:
                raise unreadable(part, "Parquet", error) from None
            return cls(part, b"", None, True, False, names)
        content = part.text()
        if content.startswith(b"<?xml"):
            raise DataError(part.name, "an XML file; use --format posts-xml if it is a Posts.xml")
        head = content[:_HEAD_BYTES].decode("utf-8", "ignore")  # a character may be cut at the end
        separator = separator or table_separator(head, part.suffix)
        content, separator = one_character(part, content, separator)
        head = content[:_HEAD_BYTES].decode("utf-8", "ignore")
        rows = _first_rows(part, head, separator, whole=len(content) <= _HEAD_BYTES)
        guessed = False
        if header is None:
            by_name = any(isinstance(c, str) and not c.isdecimal() for c in asked)
            evidence = True if by_name else header_evidence(rows)
            header, guessed = bool(evidence), evidence is None
        return cls(part, content, separator, header, guessed, tuple(rows[0]))

    def find(self, column: Column | None, role: str) -> int:
        """Number of a column from 0.

        Args:
            column: Name or number; None takes the usual name, or in a file of two columns without
                header the first for the user and the second for the item.
            role: "user", "item" or "text", which names the option in messages.
        """
        option = f"use --{role}-column"
        if column is None:
            found = [i for i, name in enumerate(self.names) if usual_name(name, role)]
            if self.header and len(found) == 1:
                return found[0]
            if not self.header and not self.guessed:
                if len(self.names) == 2 and role != "text":
                    return ("user", "item").index(role)
                problem = f"no header, so {option} with a number from 0 (first line:"
                raise DataError(self.part.name, f"{problem} {listing(self.names)})")
            column = role
        elif self.header and column in self.names:
            if self.names.count(str(column)) > 1:
                problem = f"several columns {column!r}; {option} with a number from 0"
                raise DataError(self.part.name, problem)
            return self.names.index(str(column))
        number = int(column) if isinstance(column, int) or column.isdecimal() else -1
        if 0 <= number < len(self.names):
            return number
        shown = listing(self.names)
        if not self.header and not self.guessed:
            shown = f"0 to {len(self.names) - 1}, without header"
        problem = f"no column {column!r} (columns: {shown}); {option}"
        if not isinstance(column, str) or column.isdecimal():
            problem = f"no column {column} (numbers from 0; columns: {shown}); {option}"
        raise DataError(self.part.name, problem)

    def read(self, columns: Sequence[int]) -> pl.DataFrame:
        """The columns, in this order, named "0", "1" and so on; an empty field is null."""
        distinct = list(dict.fromkeys(columns))
        if self.separator is None:
            try:
                frame = pl.read_parquet(
                    io.BytesIO(self.part.content), columns=[self.names[i] for i in distinct]
                )
            except (pl.exceptions.PolarsError, OSError) as error:
                raise unreadable(self.part, "Parquet", error) from None
            frame = frame.select(self.names[i] for i in distinct)
        else:
            frame = self._read_text(distinct)
        series = dict(zip(distinct, frame.get_columns(), strict=True))
        return pl.DataFrame([plain_column(series[c]).alias(str(i)) for i, c in enumerate(columns)])

    def _read_text(self, columns: list[int]) -> pl.DataFrame:
        assert self.separator is not None
        try:
            return pl.read_csv(
                self.content,
                has_header=self.header,
                separator=self.separator,
                columns=columns,
                infer_schema=False,
            )
        except pl.exceptions.PolarsError:
            # Stray quotes or wrong field counts: Python's reader accepts the first and can say
            # in which line the second is.
            return self._read_slowly(columns)

    def _read_slowly(self, columns: list[int]) -> pl.DataFrame:
        assert self.separator is not None
        lines = io.TextIOWrapper(io.BytesIO(self.content), encoding="utf-8", newline="")
        reader = csv.reader(lines, delimiter=self.separator, strict=True)
        picked: list[list[str | None]] = [[] for _ in columns]
        width = len(self.names)
        try:
            if self.header:
                next(reader)
            for row in reader:
                if len(row) > width:
                    line = reader.line_num + self.first_line - 1
                    problem = f"line {line} has {len(row)} fields, the first {width}"
                    raise DataError(self.part.name, problem)
                for values, column in zip(picked, columns, strict=True):
                    values.append(row[column] if column < len(row) else None)
        except csv.Error as error:
            problem = f"line {reader.line_num + self.first_line - 1}: {error}"
            if "unexpected end" in str(error):
                problem = "a quotation mark opens a field and is never closed"
            raise DataError(self.part.name, problem) from None
        return pl.DataFrame(
            {str(c): pl.Series(v, dtype=pl.String) for c, v in zip(columns, picked, strict=True)}
        )


def plain_column(series: pl.Series) -> pl.Series:
    """Text as String with empty fields null; NaN is null too."""
    if series.dtype in (pl.Categorical, pl.Enum):
        series = series.cast(pl.String)
    if series.dtype == pl.String:
        return series.set(series == "", None)
    return series.fill_nan(None) if series.dtype.is_float() else series


def one_character(part: Part, content: bytes, separator: str) -> tuple[bytes, str]:
    """Content and separator such that the separator is one ASCII character."""
    if separator == " " and b'"' not in content:
        content = re.sub(rb" {2,}", b" ", content)  # columns aligned by spaces
        content = re.sub(rb"(?m)^ | (?=\r?$)", b"", content)
    if len(separator) == 1 and separator.isascii():
        return content, separator
    if _UNIT.encode() in content:
        raise DataError(part.name, f"separator {separator!r} cannot be used: the file holds U+001F")
    return content.replace(separator.encode(), _UNIT.encode()), _UNIT


def _first_rows(part: Part, head: str, separator: str, *, whole: bool) -> list[list[str]]:
    rows: list[list[str]] = []
    reader = csv.reader(io.StringIO(head, newline=""), delimiter=separator)
    try:
        for row in reader:
            rows.append(row)
            if len(rows) > LINES_LOOKED_AT:
                break
        else:
            if not whole and len(rows) > 1:
                rows.pop()  # cut off in its middle
    except csv.Error as error:
        if not rows:
            raise DataError(part.name, f"line 1: {error}") from None
    if not rows or not rows[0]:
        raise DataError(part.name, "the first line is empty")
    return rows


def unreadable(part: Part, kind: str, error: Exception) -> DataError:
    """What to raise where polars cannot read a file of that kind."""
    lines = str(error).splitlines() or [type(error).__name__]
    return DataError(part.name, f"cannot be read as {kind} ({one_line(lines[0])})")
