"""One file per cell, and the table merged from them."""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.sweep.grid import Cell
from experiments.sweep.store import read_json, versions, write_atomic, write_json

_CELLS = "cells"
_TABLES = ("results.parquet", "results.csv")


@dataclass(frozen=True)
class Measured:
    """Outcome of one cell.

    Attributes:
        row: Its row of the merged table: texts, numbers, booleans and None. Names that end in
            "seconds" stay in the cell's file, for they differ from run to run.
        values: Numbers of every trial by name, (trials,) each, where they are to be kept.

    Example:
        >>> Measured({"missing_mass": 0.25, "seconds": 0.1}).values is None
        True
    """

    row: Mapping[str, Any]
    values: Mapping[str, np.ndarray] | None = None


@dataclass(frozen=True)
class CellRecord:
    """What a cell's file holds.

    Attributes:
        status: "ok" or "failed".
        row: Row of the merged table, empty after a failure.
        error: What went wrong, one line.
        versions: Versions the cell was computed with.
        attempt: After a failure, a random word that tells one attempt from the next.
    """

    status: str
    row: Mapping[str, Any]
    error: str | None
    versions: Mapping[str, str]
    attempt: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the cell is complete."""
        return self.status == "ok"


def prepare(folder: Path) -> Path:
    """The folder of cell files inside a results folder, created if need be."""
    cells = folder / _CELLS
    cells.mkdir(exist_ok=True)
    return cells


def look_anew(folder: Path) -> None:
    """See what other hosts have written: opening a folder renews what NFS remembers of it."""
    if os.name == "posix":
        os.close(os.open(folder / _CELLS, os.O_RDONLY))


def has_cells(folder: Path) -> bool:
    """Whether a results folder holds any cell file."""
    return any((folder / _CELLS).glob("[!.]*.json"))


def write_measured(folder: Path, cell: Cell, measured: Measured) -> None:
    """Store a cell that went well; numbers of trials first, so that the cell file vouches for them.

    Args:
        folder: Results folder.
        cell: The cell.
        measured: Its row and, where they are to be kept, the numbers of every trial.
    """
    if measured.values is not None:
        import polars as pl

        columns = {name: np.asarray(column) for name, column in measured.values.items()}
        buffer = io.BytesIO()
        pl.DataFrame(columns).write_parquet(buffer)
        write_atomic(_trials_path(folder, cell), buffer.getvalue())
    _write(folder, cell, {"status": "ok", "row": measured.row, "error": None})


def write_failed(folder: Path, cell: Cell, error: str, where: Sequence[str]) -> None:
    """Store a cell that failed, so that the failure is on record and the cell is tried again."""
    entries = {"error": error, "where": where, "attempt": secrets.token_hex(4)}
    _write(folder, cell, {"status": "failed", "row": {}, **entries})


def _write(folder: Path, cell: Cell, entries: Mapping[str, Any]) -> None:
    told = {"cell": cell.name, "parameters": cell.parameters, **entries, "versions": versions()}
    write_json(_path(folder, cell), told)


def read_cell(folder: Path, cell: Cell) -> CellRecord | None:
    """The record of a cell, or None where there is no file or it is damaged."""
    try:
        told = read_json(_path(folder, cell))
        names = ("status", "row", "error", "versions")
        record = CellRecord(*(told[name] for name in names), attempt=told.get("attempt"))
        # A file that was renamed or edited is no evidence for these parameters.
        return record if told["parameters"] == cell.parameters else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def has_trials(folder: Path, cell: Cell) -> bool:
    """Whether the numbers of every trial of a cell were kept."""
    return _trials_path(folder, cell).exists()


def merge(folder: Path, records: Sequence[tuple[Cell, CellRecord | None]]) -> Path | None:
    """Write `results.parquet` and `results.csv` from what the cell files hold, in their order.

    The table is made from the files alone: an interrupted and resumed sweep and one that ran
    through give the same bytes, whoever merges.

    Args:
        folder: Results folder.
        records: Every cell of the grid and what its file holds.

    Returns:
        The Parquet file, or None (and no table) where no cell is complete.
    """
    rows = []
    for cell, record in records:
        if record is not None and record.ok:
            told = {k: v for k, v in record.row.items() if not k.endswith("seconds")}
            rows.append({"cell": cell.name, **_flat(cell.parameters), **told})
    parquet, csv = (folder / name for name in _TABLES)
    if not rows:
        parquet.unlink(missing_ok=True)
        csv.unlink(missing_ok=True)
        return None
    import polars as pl

    names = dict.fromkeys(name for row in rows for name in row)
    frame = pl.DataFrame({name: _column([row.get(name) for row in rows]) for name in names})
    for path, write in ((parquet, frame.write_parquet), (csv, frame.write_csv)):
        buffer = io.BytesIO()
        write(buffer)
        write_atomic(path, buffer.getvalue())
    return parquet


def _column(values: list[Any]) -> Any:
    """A polars column of one type: numbers as floats if any is, text if types are mixed."""
    import polars as pl

    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and kinds != {int}:  # also a column of nulls: a number not available
        return pl.Series(values, dtype=pl.Float64, strict=False)
    if len(kinds) > 1:
        return pl.Series([None if value is None else str(value) for value in values])
    return pl.Series(values)


def _flat(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as columns; a law of set sizes or a list of files becomes one text."""
    columns: dict[str, Any] = {**parameters["data"]}
    columns |= {k: v for k, v in parameters.items() if k not in ("data", "schema")}
    return {name: _text_or_number(value) for name, value in columns.items()}


def _text_or_number(value: Any) -> Any:
    if isinstance(value, dict):
        return " ".join(f"{k}={v}" for k, v in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _path(folder: Path, cell: Cell) -> Path:
    return folder / _CELLS / f"{cell.name}.json"


def _trials_path(folder: Path, cell: Cell) -> Path:
    return folder / _CELLS / f"{cell.name}.trials.parquet"
