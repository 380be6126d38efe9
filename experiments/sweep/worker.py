"""What one process does in a sweep: take the groups that are left, one after the other.

A group is claimed before it is looked at, so what is complete then stays complete, and nobody else
computes it meanwhile. A worker ends when every group has been dealt with, by itself or by another:
it waits for groups that others hold, and takes over where one of them died.
"""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from experiments.sweep import cell_files
from experiments.sweep.cell_files import Measured
from experiments.sweep.claims import PAUSE_SECONDS, Claims
from experiments.sweep.grid import Cell, Grid, Group

Measure = Callable[[Group], Sequence[Measured]]

_NOT_KEPT_APART = (
    "this system or file system has no locks; processes that work in the folder at the same time "
    "may compute a cell twice, to the same result"
)
# A folder before the last part of an absolute path, POSIX or Windows.
_FOLDERS = re.compile(r"(?<![\w.])(?:/[^\s/:'\"]+)+/|\b[A-Za-z]:\\(?:[^\s\\:'\"]+\\)*")


@dataclass(frozen=True)
class Event:
    """How far a worker is.

    Attributes:
        what: It "begins" a group, "ends" one (also one found complete), or "waits" for one.
        group: Place of the group in the grid.
        computed: Cells computed, where it ends.
    """

    what: Literal["begins", "ends", "waits"]
    group: int
    computed: int = 0


@dataclass(frozen=True)
class Task:
    """What all workers of a sweep are told.

    Attributes:
        grid: The grid.
        folder: Results folder.
        measure: Gives one `Measured` per eps of a group.
        keep_trials: Whether the numbers of every trial are to be kept.
        retry: Failures, by `CellRecord.attempt`, after which a cell is tried again; a failure that
            another process records during the sweep is not among them.
    """

    grid: Grid
    folder: Path
    measure: Measure
    keep_trials: bool
    retry: Collection[str | None]

    def missing(self, group: Group) -> list[Cell]:
        """Cells of a group that are to be computed."""
        return [cell for cell in group.cells if not self._is_done(cell)]

    def _is_done(self, cell: Cell) -> bool:
        record = cell_files.read_cell(self.folder, cell)
        if record is None:
            return False
        if record.status != "ok":
            return record.attempt not in self.retry
        return not self.keep_trials or cell_files.has_trials(self.folder, cell)


def work(task: Task, worker: tuple[int, int], report: Callable[[Event], object]) -> tuple[str, ...]:
    """Deal with every group of a grid that no other process deals with.

    Args:
        task: What is to be done.
        worker: Index and number of workers; says at which part of the grid to begin.
        report: Called with every `Event`.

    Returns:
        Sentences the user should read.
    """
    index, count = worker
    groups = list(enumerate(task.grid.groups))
    first = index * len(groups) // count
    # Workers start apart, so that they seldom meet and seldom make the same data set.
    left = groups[first:] + groups[:first]
    waits_for = None
    with Claims(task.folder) as claims:
        while left:
            busy = []
            for place, group in left:
                with claims.group(group.name) as mine:
                    if mine:
                        report(Event("ends", place, _deal_with(task, place, group, report)))
                    else:
                        busy.append((place, group))
            left = busy
            if left:
                if waits_for != left[0][0]:
                    waits_for = left[0][0]
                    report(Event("waits", waits_for))
                time.sleep(PAUSE_SECONDS)
        return () if claims.exclusive else (_NOT_KEPT_APART,)


def _deal_with(task: Task, place: int, group: Group, report: Callable[[Event], object]) -> int:
    cell_files.look_anew(task.folder)
    missing = task.missing(group)
    if missing:
        report(Event("begins", place))
        _compute(task, group, missing)
    return len(missing)


def _compute(task: Task, group: Group, missing: Sequence[Cell]) -> None:
    """Compute a group as a whole, so that a cell's numbers do not depend on what was missing."""
    try:
        outcome = _outcome_by_eps(task, group)
    except Exception as error:
        if len(group.eps) == 1:
            _record_failure(task.folder, missing[0], error)
            return
        # One cell at a time, so that a bad one does not take the others with it.
        for cell in missing:
            _compute(task, replace(group, eps=(cell.eps,)), [cell])
        return
    for cell in missing:
        cell_files.write_measured(task.folder, cell, outcome[cell.eps])


def _outcome_by_eps(task: Task, group: Group) -> dict[float, Measured]:
    found = list(task.measure(group))
    if not task.keep_trials:
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
