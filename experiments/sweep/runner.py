"""Run a grid: skip what is done, record what fails, merge what is there."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.sweep import cell_files
from experiments.sweep.cell_files import Measured
from experiments.sweep.grid import Cell, Grid, Group
from experiments.sweep.simulation import Simulation
from experiments.sweep.store import (
    encode_json,
    manifest,
    read_json,
    remove_leftovers,
    versions,
    writable_folder,
    write_json,
)
from theory._check import invalid

Measure = Callable[[Group], Sequence[Measured]]
Progress = Callable[[int, int, str], None]

_MANIFEST = "manifest.json"
# A folder before the last part of an absolute path, POSIX or Windows.
_FOLDERS = re.compile(r"(?<![\w.])(?:/[^\s/:'\"]+)+/|\b[A-Za-z]:\\(?:[^\s\\:'\"]+\\)*")


@dataclass(frozen=True)
class Failure:
    """A cell that failed: name of its file, its parameters in words, the error in one line."""

    cell: str
    label: str
    error: str


@dataclass(frozen=True)
class SweepResult:
    """What a sweep did.

    Attributes:
        folder: The results folder.
        table: `results.parquet`, or None where no cell is complete.
        total: Cells of the grid.
        computed: Cells computed now, failed ones included.
        skipped: Cells found complete.
        failures: Cells that failed, in the order of the grid.
        samplers: Samplers that the rows name.
    """

    folder: Path
    table: Path | None
    total: int
    computed: int
    skipped: int
    failures: tuple[Failure, ...]
    samplers: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every cell of the grid is complete."""
        return not self.failures


def sweep(
    grid: Grid,
    folder: Path,
    *,
    measure: Measure | None = None,
    keep_trials: bool = False,
    accept_other_version: bool = False,
    progress: Progress | None = None,
) -> SweepResult:
    """Compute every cell of a grid that is not in the folder yet, and merge all of them.

    Args:
        grid: From `load_grid` or `parse_grid`, checked as a whole.
        folder: Results folder; created if need be. One process at a time may use it.
        measure: Gives one `Measured` per eps of a group. Default: simulate.
        keep_trials: Also store the numbers of every trial, one Parquet file per cell.
        accept_other_version: Go on in a folder that holds another grid or was computed by another
            version. Its complete cells are kept; the table holds those of this grid.
        progress: Called with cells done, cells in all and what comes next.

    Returns:
        Counts, failures and where the table is.

    Raises:
        InvalidInput: The folder cannot be written to, or belongs to another grid or version.
    """
    earlier = _earlier_manifest(folder)
    if earlier is not None and not accept_other_version:
        _refuse_other(folder, earlier, grid)
    writable_folder(folder)
    cells = cell_files.prepare(folder)
    remove_leftovers(folder)
    remove_leftovers(cells)
    entries = _start_manifest(grid, earlier, keep_trials)
    write_json(folder / _MANIFEST, entries)

    measure = measure or Simulation(keep_trials=keep_trials)
    total, done, computed = len(grid.cells), 0, 0
    for group in grid.groups:
        if progress is not None:
            progress(done, total, group.label)
        missing = [
            cell
            for cell in group.cells
            if not cell_files.is_complete(folder, cell, keep_trials=keep_trials)
        ]
        if missing:
            _compute(folder, group, missing, measure, keep_trials)
        computed += len(missing)
        done += len(group.cells)
    if progress is not None:
        progress(done, total, "done")

    table = cell_files.merge(folder, grid.cells)
    result = _result(grid, folder, table, computed)
    write_json(folder / _MANIFEST, {**entries, **_outcome(grid, folder, result)})
    return result


# ---- cells


def _compute(
    folder: Path, group: Group, missing: Sequence[Cell], measure: Measure, keep_trials: bool
) -> None:
    """Compute a group as a whole, so that a cell's numbers do not depend on what was missing."""
    try:
        outcome = _outcome_by_eps(group, measure, keep_trials)
    except Exception as error:
        if len(group.eps) == 1:
            _record_failure(folder, missing[0], error)
            return
        # One cell at a time, so that a bad one does not take the others with it.
        for cell in missing:
            _compute(folder, replace(group, eps=(cell.eps,)), [cell], measure, keep_trials)
        return
    for cell in missing:
        cell_files.write_measured(folder, cell, outcome[cell.eps])


def _outcome_by_eps(group: Group, measure: Measure, keep_trials: bool) -> dict[float, Measured]:
    found = list(measure(group))
    if not keep_trials:
        found = [Measured(item.row) for item in found]
    elif any(item.values is None for item in found):
        raise ValueError("the numbers of single trials are to be kept, but none were returned")
    return dict(zip(group.eps, found, strict=True))


def _record_failure(folder: Path, cell: Cell, error: Exception) -> None:
    text = str(error)
    for path in cell.group.data.paths:
        text = text.replace(str(path), path.name)
    # Results travel; the folders of this host do not belong in them.
    text = " ".join(_FOLDERS.sub("", text).split())
    frames = list(traceback.walk_tb(error.__traceback__))[-4:]
    where = [f"{f.f_globals.get('__name__')}:{line} {f.f_code.co_name}" for f, line in frames]
    cell_files.write_failed(folder, cell, f"{type(error).__name__}: {text}", where)


# ---- manifest


def _earlier_manifest(folder: Path) -> dict[str, Any] | None:
    """Manifest of an earlier run; empty where there are cells that nothing vouches for."""
    try:
        told = read_json(folder / _MANIFEST)
        return told if isinstance(told, dict) else {}
    except FileNotFoundError:
        return {} if cell_files.has_cells(folder) else None
    except NotADirectoryError:
        return None  # refused in a moment, as a folder that cannot be written to
    except (OSError, ValueError):
        return {}


def _refuse_other(folder: Path, earlier: Mapping[str, Any], grid: Grid) -> None:
    otherwise = "take another folder, or accept it (accept_other_version)"
    if earlier.get("command") != "sweep" or earlier.get("grid") != grid.name:
        invalid("out", str(folder), f"holds results of another grid: {otherwise}")
    then, now = earlier.get("versions", {}), versions()
    changed = [
        f"{name} {then.get(name, 'unknown')} there, {now.get(name, 'unknown')} here"
        for name in sorted({*then, *now})
        if then.get(name) != now.get(name)
    ]
    if changed:
        found = "; ".join(changed)
        invalid("out", str(folder), f"holds results of another version ({found}): {otherwise}")


def _start_manifest(
    grid: Grid, earlier: Mapping[str, Any] | None, keep_trials: bool
) -> dict[str, Any]:
    settings = grid.settings
    entries = manifest(
        "sweep",
        settings={**settings, "keep_trials": keep_trials},
        seeds=settings["seed"],
        grid=grid.name,
        cells=len(grid.cells),
        status="running",
    )
    if earlier and "created" in earlier:
        entries["resumed"] = entries["created"]
        entries["created"] = earlier["created"]
    return entries


def _result(grid: Grid, folder: Path, table: Path | None, computed: int) -> SweepResult:
    failures: list[Failure] = []
    samplers: set[str] = set()
    for cell in grid.cells:
        record = cell_files.read_cell(folder, cell)
        if record is None or record.status != "ok":
            error = record.error if record else None
            label = replace(cell.group, eps=(cell.eps,)).label
            failures.append(Failure(cell.name, label, error or "no result was stored"))
        elif "sampler" in record.row:
            samplers.add(str(record.row["sampler"]))
    skipped = len(grid.cells) - computed
    return SweepResult(
        folder, table, len(grid.cells), computed, skipped, tuple(failures), tuple(sorted(samplers))
    )


def _outcome(grid: Grid, folder: Path, result: SweepResult) -> dict[str, Any]:
    """What is known at the end; versions of cells kept from another version are listed too."""
    found: list[Mapping[str, str]] = [versions()]
    for cell in grid.cells:
        record = cell_files.read_cell(folder, cell)
        if record is not None and record.versions not in found:
            found.append(record.versions)
    failures = [{"cell": f.cell, "label": f.label, "error": f.error} for f in result.failures]
    entries = {
        "status": "complete" if result.ok else "failures",
        "sampler": list(result.samplers),
        "failures": failures,
        "other_versions": found[1:],
    }
    return encode_json(entries)
