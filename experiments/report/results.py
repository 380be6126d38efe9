"""Reading a results folder: its manifest, tables, documents and drawings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.plain import plain
from experiments.sweep.store import read_json
from theory._check import invalid

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Figure:
    """A drawing and the numbers plotted in it, None where there is no such table."""

    name: str
    svg: bytes
    numbers: pl.DataFrame | None


@dataclass(frozen=True)
class Results:
    """What a results folder holds.

    Attributes:
        folder: Where it lies.
        manifest: What it says about its origin, as plain JSON values.
        tables: By file name without suffix; tables of plotted numbers are with their figures.
        documents: JSON files other than the manifest, by name without suffix.
        figures: In the order of the manifest, otherwise by name.
    """

    folder: Path
    manifest: Mapping[str, Any]
    tables: Mapping[str, pl.DataFrame]
    documents: Mapping[str, Any]
    figures: tuple[Figure, ...]

    @property
    def command(self) -> str:
        """The command that made the results."""
        return str(self.manifest.get("command", "results"))


def read_results(folder: Path) -> Results:
    """Read a folder that a command of `wgm` has written.

    Args:
        folder: With a manifest.json, which is written last: without it a run is not complete.

    Returns:
        Its content. Nothing in it is trusted: names and notes are data.

    Raises:
        InvalidInput: No such folder, no manifest, or a file that cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "manifest.json").write_text('{"command": "simulate"}')
        ...     results = read_results(Path(folder))
        >>> results.command, dict(results.tables)
        ('simulate', {})
    """
    if not folder.is_dir():
        invalid("RESULTS", str(folder), "is not a folder")
    if not (folder / "manifest.json").is_file():
        invalid("RESULTS", str(folder), "holds no manifest.json: no results, or not complete yet")
    manifest = _json(folder / "manifest.json")
    if not isinstance(manifest, dict):
        invalid("RESULTS", "manifest.json", "must hold one JSON object")
    drawings = {path.stem: path for path in sorted(folder.glob("*.svg"))}
    plotted = {p.stem: p for p in folder.glob("*.csv") if p.stem in drawings}
    texts = {p.stem: p for p in folder.glob("*.csv") if p.stem not in drawings}
    # A Parquet file holds the same as a text file beside it, with the types.
    tables = {**texts, **{path.stem: path for path in folder.glob("*.parquet")}}
    named = [str(name) for name in manifest.get("files") or []]
    order = {name.removesuffix(".svg"): place for place, name in enumerate(named)}
    return Results(
        folder=folder,
        manifest=manifest,
        tables={stem: _table(path) for stem, path in sorted(tables.items())},
        documents={
            path.stem: _json(path)
            for path in sorted(folder.glob("*.json"))
            if path.name != "manifest.json"
        },
        figures=tuple(
            Figure(stem, path.read_bytes(), _table(plotted[stem]) if stem in plotted else None)
            for stem, path in sorted(
                drawings.items(), key=lambda pair: order.get(pair[0], len(order))
            )
        ),
    )


def _json(path: Path) -> Any:
    try:
        return plain(read_json(path))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        invalid("RESULTS", path.name, f"is not JSON ({error})")


def _table(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
        return pl.read_csv(path, infer_schema_length=None)
    except pl.exceptions.NoDataError:
        return pl.DataFrame()
    except (pl.exceptions.PolarsError, UnicodeDecodeError) as error:
        invalid("RESULTS", path.name, f"is not a table ({str(error).splitlines()[0]})")
