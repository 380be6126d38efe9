"""Run a grid: skip what is done, record what fails, merge what is there.

Any number of processes may call `sweep` on one folder at once. Each of them begins (the folder must
belong to the same grid and version), works until every cell has been dealt with, and ends by
merging all cell files. The last to end has seen them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.sweep import cell_files
from experiments.sweep.cell_files import CellRecord
from experiments.sweep.claims import Claims
from experiments.sweep.grid import Cell, Grid
from experiments.sweep.processes import work_in_processes
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
from experiments.sweep.worker import Event, Measure, Task, work
from theory._check import check_count, invalid

Progress = Callable[[int, int, str], None]
_Records = Sequence[tuple[Cell, CellRecord | None]]

_MANIFEST = "manifest.json"
_MOST_PROCESSES = 1024


@dataclass(frozen=True)
class Failure:
    """A cell that failed: name of its file, its parameters in words, the error in one line.

    Attributes:
        cell: Name of its file.
        label: Its parameters in words.
        error: The error in one line.

    Example:
        >>> Failure("0123456789abcdef", "hard_zipf wgm eps=1", "MemoryError").error
        'MemoryError'
    """

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
        computed: Cells computed by this call, failed ones included.
        skipped: Cells found complete, or computed meanwhile by another call.
        failures: Cells that failed, in the order of the grid.
        samplers: Samplers that the rows name.
        notes: Sentences the user should read.
    """

    folder: Path
    table: Path | None
    total: int
    computed: int
    skipped: int
    failures: tuple[Failure, ...]
    samplers: tuple[str, ...]
    notes: tuple[str, ...] = ()

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
    processes: int = 1,
    worker: tuple[int, int] = (0, 1),
    progress: Progress | None = None,
) -> SweepResult:
    """Compute every cell of a grid that is not in the folder yet, and merge all of them.

    May be called by several processes at once, also on several hosts that share the folder: they
    divide the cells, and each call returns when all cells have been dealt with.

    Args:
        grid: From `load_grid` or `parse_grid`, checked as a whole.
        folder: Results folder; created if need be.
        measure: Gives one `Measured` per eps of a group. Default: simulate.
        keep_trials: Also store the numbers of every trial, one Parquet file per cell.
        accept_other_version: Go on in a folder that holds another grid or was computed by another
            version. Its complete cells are kept; the table holds those of this grid.
        processes: Worker processes to start on this host; with 1 the work is done in this one.
            Each imports the main module, so a script must start under `if __name__ == "__main__"`.
        worker: Index of this call and number of calls, such as `(jax.process_index(),
            jax.process_count())`: where in the grid to begin. Which cells a call then computes
            depends on how fast the others are; the results do not.
        progress: Called with cells done, cells in all and what comes next.

    Returns:
        Counts, failures and where the table is.

    Raises:
        InvalidInput: The folder cannot be written to, or belongs to another grid or version.

    Example:
        With a measure of one's own instead of a simulation:

        >>> import tempfile
        >>> from experiments.sweep import Measured, parse_grid, sweep
        >>> grid = parse_grid({
        ...     "data": {"kind": "hard_zipf", "s": 1.5, "C": 1, "N": 1e4},
        ...     "privacy": {"eps": [0.1, 1], "delta": 1e-5, "max_items_per_user": 1},
        ... })
        >>> def measure(group):
        ...     return [Measured({"x": eps}) for eps in group.eps]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     first = sweep(grid, Path(folder), measure=measure)
        ...     again = sweep(grid, Path(folder), measure=measure)
        >>> first.computed, again.computed, again.skipped
        (2, 0, 2)
    """
    processes = check_count("processes", processes, maximum=_MOST_PROCESSES)
    worker = _checked_worker(worker)
    entries = _begin(grid, folder, keep_trials, accept_other_version)
    # Failures on record by now are tried again; one that happens from now on is not, by anybody.
    retry = {r.attempt for _, r in _read(grid, folder) if r is not None and not r.ok}
    measure = measure or Simulation(keep_trials=keep_trials)
    task = Task(grid, folder, measure, keep_trials, retry)
    tally = _Tally(grid, progress)
    try:
        if processes == 1:
            notes = work(task, worker, tally)
        else:
            notes = work_in_processes(task, worker, processes, tally)
    except BaseException:
        with Claims(folder) as claims:
            _tidy(folder, claims)
        raise
    if progress is not None:
        progress(len(grid.cells), len(grid.cells), "done")
    return _finish(grid, folder, entries, tally.computed, notes)


def _checked_worker(worker: tuple[int, int]) -> tuple[int, int]:
    index, count = worker
    count = check_count("worker", count)
    return check_count("worker", index, minimum=0, maximum=count - 1), count


class _Tally:
    """Adds up what workers report, and passes it on as progress."""

    def __init__(self, grid: Grid, progress: Progress | None) -> None:
        self.computed = 0
        self._grid, self._progress = grid, progress
        self._total, self._label = len(grid.cells), ""
        self._ended: set[int] = set()
        self._done = 0

    def __call__(self, event: Event) -> None:
        group = self._grid.groups[event.group]
        if event.what == "ends":
            self.computed += event.computed
            if event.group not in self._ended:
                self._ended.add(event.group)
                self._done += len(group.cells)
        elif event.group not in self._ended:
            waits = "another process is at work on " if event.what == "waits" else ""
            self._label = waits + group.label
        if self._progress is not None:
            self._progress(self._done, self._total, self._label)


# ---- begin and end


def _begin(grid: Grid, folder: Path, keep_trials: bool, accept: bool) -> dict[str, Any]:
    """Make the folder this grid's, or refuse it; returns the entries of the manifest."""
    _earlier(grid, folder, accept)  # before anything is written
    writable_folder(folder)
    cell_files.prepare(folder)
    with Claims(folder) as claims, claims.table():
        earlier = _earlier(grid, folder, accept)  # another process may have begun meanwhile
        entries = _start_manifest(grid, earlier, keep_trials)
        write_json(folder / _MANIFEST, entries)
    return entries


def _finish(
    grid: Grid, folder: Path, entries: Mapping[str, Any], computed: int, notes: tuple[str, ...]
) -> SweepResult:
    with Claims(folder) as claims:
        # Read inside the claim: whoever merges later has seen at least as many cells.
        with claims.table():
            cell_files.look_anew(folder)
            records = _read(grid, folder)
            table = cell_files.merge(folder, records)
            result = _result(folder, table, records, computed, notes)
            write_json(folder / _MANIFEST, {**entries, **_outcome(records, result)})
        _tidy(folder, claims)
    return result


def _tidy(folder: Path, claims: Claims) -> None:
    """Remove what killed processes left, unless it may be what a living one is writing."""
    with claims.everything() as alone:
        if alone:
            remove_leftovers(folder)
            remove_leftovers(cell_files.prepare(folder))


def _read(grid: Grid, folder: Path) -> _Records:
    return [(cell, cell_files.read_cell(folder, cell)) for cell in grid.cells]


# ---- manifest


def _earlier(grid: Grid, folder: Path, accept: bool) -> dict[str, Any] | None:
    """Manifest of an earlier run, if any; refuses that of another grid or version."""
    earlier = _earlier_manifest(folder)
    if earlier is not None and not accept:
        _refuse_other(folder, earlier, grid)
    return earlier


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


def _result(
    folder: Path, table: Path | None, records: _Records, computed: int, notes: tuple[str, ...]
) -> SweepResult:
    failures: list[Failure] = []
    samplers: set[str] = set()
    for cell, record in records:
        if record is None or not record.ok:
            error = record.error if record else None
            label = replace(cell.group, eps=(cell.eps,)).label
            failures.append(Failure(cell.name, label, error or "no result was stored"))
        elif "sampler" in record.row:
            samplers.add(str(record.row["sampler"]))
    return SweepResult(
        folder=folder,
        table=table,
        total=len(records),
        computed=computed,
        skipped=len(records) - computed,
        failures=tuple(failures),
        samplers=tuple(sorted(samplers)),
        notes=notes,
    )


def _outcome(records: _Records, result: SweepResult) -> dict[str, Any]:
    """What is known at the end; versions of cells kept from another version are listed too."""
    found: list[Mapping[str, str]] = [versions()]
    for _, record in records:
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
