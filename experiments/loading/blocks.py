"""Plain files in blocks of bounded size, cut between rows, each read as `tables` reads a file.

Only tables whose quotation marks all enclose whole fields can be cut safely, so that is checked,
with the encoding, before a block is parsed.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from experiments.loading.errors import DataError
from experiments.loading.opening import Part, check_utf8, files, is_packed
from experiments.loading.sniff import table_separator
from experiments.loading.tables import Column, Table, one_character, plain_column, unreadable

BLOCK_BYTES = 1 << 25
_HEAD_BYTES = 1 << 21
_ROWS_OF_PARQUET = 1 << 20
_PACKED = 4
_LONGEST_ROW = 1 << 28
_QUOTE, _LINE_END, _RETURN = b'"\n\r'


@dataclass(frozen=True)
class PlainFile:
    """One uncompressed table on disk, of which only the first lines have been looked at.

    Attributes:
        name: What messages call it.
        path: Where it is.
        table: Header and column names; its separator is None for Parquet.
        separator: As the file has it, of any length; empty for Parquet.
        rows: Number of rows; of a text file an estimate from its first lines.
        num_bytes: Bytes of text, or of Parquet times a guess of how well it is packed.
    """

    name: str
    path: Path
    table: Table
    separator: str
    rows: int
    num_bytes: int

    @classmethod
    def peek(
        cls,
        name: str,
        path: Path,
        *,
        separator: str | None,
        header: bool | None,
        asked: Sequence[Column],
    ) -> PlainFile:
        """Find separator, header and column names as `Table.peek` does.

        Raises:
            DataError: The file is missing, empty, packed, or no table of plain text or Parquet.
        """
        try:
            size = os.stat(path).st_size
            with path.open("rb") as file:
                head = file.read(_HEAD_BYTES)
        except FileNotFoundError:
            raise DataError(str(path), "no such file or folder") from None
        except (OSError, ValueError) as error:  # ValueError: a NUL in the path
            raise DataError(str(path), getattr(error, "strerror", None) or str(error)) from None
        if is_packed(head):
            problem = "a packed file; a scan reads plain files only, so unpack it first"
            raise DataError(name, problem)
        part = Part(name, head)
        if part.is_parquet:
            part = Part(name, b"")
            try:
                names = tuple(pl.read_parquet_schema(path))
                rows = int(pl.scan_parquet(path).select(pl.len()).collect().item())
            except (pl.exceptions.PolarsError, OSError) as error:
                raise unreadable(part, "Parquet", error) from None
            return cls(
                name, path, Table(part, b"", None, True, False, names), "", rows, _PACKED * size
            )
        if len(head) < size:
            head = head[: head.rfind(b"\n") + 1] or head
        if b"\r" in head and b"\n" not in head:
            raise DataError(name, "no line ends but the old Mac ones; save it with usual line ends")
        part = Part(name, head)
        if separator is None:
            separator = table_separator(part.text().decode(), part.suffix)
        table = Table.peek(part, separator=separator, header=header, asked=asked)
        lines = head.count(b"\n") + 1
        table = replace(table, part=Part(name, b""), content=b"")
        return cls(name, path, table, separator, -(-size * lines // len(head)), size)

    def read(self, columns: Sequence[int], *, block_bytes: int) -> Iterator[pl.DataFrame]:
        """The columns, named "0", "1" and so on, a block of rows at a time.

        Args:
            columns: Numbers of columns from 0.
            block_bytes: Text parsed at once.

        Raises:
            DataError: Damaged or uneven rows, or text that is not UTF-8.
        """
        if self.table.separator is None:
            yield from self._read_parquet(columns)
        else:
            yield from self._read_text(columns, block_bytes)

    def empty(self, columns: Sequence[int]) -> pl.DataFrame:
        """What `read` yields, without rows: its types."""
        if self.table.separator is not None:
            return pl.DataFrame(schema={str(i): pl.String for i in range(len(columns))})
        return self._picked(self._lazy().head(0).collect(), columns)

    def _lazy(self) -> pl.LazyFrame:
        return pl.scan_parquet(self.path)

    def _read_parquet(self, columns: Sequence[int]) -> Iterator[pl.DataFrame]:
        names = list(dict.fromkeys(self.table.names[i] for i in columns))
        try:
            for start in range(0, self.rows, _ROWS_OF_PARQUET):
                rows = self._lazy().select(names).slice(start, _ROWS_OF_PARQUET).collect()
                yield self._picked(rows, columns)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise unreadable(self.table.part, "Parquet", error) from None

    def _picked(self, rows: pl.DataFrame, columns: Sequence[int]) -> pl.DataFrame:
        picked = [plain_column(rows[self.table.names[i]]) for i in columns]
        return pl.DataFrame([series.alias(str(i)) for i, series in enumerate(picked)])

    def _read_text(self, columns: Sequence[int], block_bytes: int) -> Iterator[pl.DataFrame]:
        header = self.table.header
        for first_line, content in _blocks(self.name, self.path, block_bytes):
            check_utf8(self.name, content)
            _check_line_ends(self.name, content, first_line)
            quoted = b'"' in content
            if quoted and self.separator == " ":
                problem = "quotation marks between spaces; save it as CSV, or read it with load"
                raise DataError(self.name, problem)
            content, separator = one_character(self.table.part, content, self.separator)
            if quoted:
                _check_quotes(self.name, content, separator, first_line)
            if not header:
                # A first line of the right width, so that every row is held to that width.
                names = separator.join(map(str, range(len(self.table.names)))).encode()
                content, first_line = names + b"\n" + content, first_line - 1
            # Without its line end polars takes "a,b," for two fields.
            content += b"\n"
            block = replace(
                self.table, content=content, separator=separator, header=True, first_line=first_line
            )
            yield block.read(columns)
            header = False


def plain_files(
    paths: Sequence[str | os.PathLike[str]],
    *,
    separator: str | None,
    header: bool | None,
    asked: Sequence[Column],
) -> list[PlainFile]:
    """All files of a data set, looked at; a header found in the first holds for the others."""
    found: list[PlainFile] = []
    for name, path in files(paths):
        file = PlainFile.peek(name, path, separator=separator, header=header, asked=asked)
        table = file.table
        if table.separator is not None and header is None and not table.guessed:
            header = table.header
        found.append(file)
    return found


def _blocks(name: str, path: Path, block_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Number of the first line, and whole rows; blank lines at the file's ends are left out."""
    rest, line, first = b"", 1, True
    with path.open("rb") as file:
        while chunk := file.read(block_bytes):
            text = rest + chunk
            if first:
                text = text.removeprefix(codecs.BOM_UTF8).lstrip(b"\r\n")
            end = last = _end_of_rows(text)
            # Line ends after the last row wait: they are blank lines only if a row follows.
            while end and text[end - 1] == _LINE_END:
                last, end = end, end - 1
                end -= end > 0 and text[end - 1] == _RETURN
            if end:
                yield line, text[:end]
                line += text.count(b"\n", 0, last)
                first = False
            rest = text[last:] if end else text
            if len(rest) > _LONGEST_ROW:
                problem = f"a row from line {line} on is longer than {len(rest)} bytes"
                raise DataError(name, problem + "; is a quotation mark never closed?")
    rest = rest.rstrip(b"\r\n")
    if rest := rest.lstrip(b"\r\n") if first else rest:
        yield line, rest


def _end_of_rows(text: bytes) -> int:
    """Where the last whole row ends, its line end included; 0 if no row is whole."""
    quotes = _positions(text)
    end = len(text)
    while True:
        end = text.rfind(b"\n", 0, end)
        if end < 0:
            return 0
        before = int(np.searchsorted(quotes, end))
        if before % 2 == 0:
            return end + 1
        end = int(quotes[before - 1])  # inside a field that opens here


def _positions(text: bytes, byte: int = _QUOTE) -> np.ndarray:
    return np.flatnonzero(np.frombuffer(text, np.uint8) == byte)


def _check_line_ends(name: str, content: bytes, first_line: int) -> None:
    """Raise where an old Mac line end stands among others outside of quotes: readers differ."""
    returns = _positions(content, _RETURN)
    if not returns.size:
        return
    after = np.frombuffer(content + b" ", np.uint8)[returns + 1]
    alone = returns[after != _LINE_END]
    alone = alone[np.searchsorted(_positions(content), alone) % 2 == 0]
    if alone.size:
        line = first_line + content.count(b"\n", 0, int(alone[0]))
        raise DataError(name, f"line {line}: an old Mac line end among others; save the file anew")


def _check_quotes(name: str, content: bytes, separator: str, first_line: int) -> None:
    """Raise unless every quotation mark encloses a whole field or is doubled inside one."""
    around = np.frombuffer(b"\n" + content + b"\n", np.uint8)
    quotes = _positions(content)
    edges = (_QUOTE, _LINE_END, ord(separator))
    wrong = ~np.isin(around[quotes], edges)  # what stands before an opening one
    wrong[1::2] = ~np.isin(around[quotes[1::2] + 2], (*edges, _RETURN))  # after a closing one
    if quotes.size % 2 and not wrong.any():
        raise DataError(name, "a quotation mark opens a field and is never closed")
    if wrong.any():
        line = first_line + content.count(b"\n", 0, int(quotes[np.argmax(wrong)]))
        problem = f"line {line}: a quotation mark inside a field; double it and enclose the field,"
        raise DataError(name, problem + " or read the file with load")
