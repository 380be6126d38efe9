"""From names of figures to a folder with drawings, numbers, captions and statements."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.figures.record import FigureSpec, Statement, full_caption
from experiments.figures.run import Outcome, Progress, key_of, read_numbers, run_tasks
from experiments.figures.statements import (
    COLUMNS,
    statement_frame,
    statement_markdown,
    statement_rows,
)
from experiments.figures.task import Task
from experiments.sweep.data_specs import DataSpec
from experiments.sweep.store import manifest, read_json, write_atomic, write_json

if TYPE_CHECKING:
    import polars as pl

NUMBERS = "numbers"
MANIFEST = "manifest.json"
COMMAND = "figure"


@dataclass(frozen=True)
class Drawn:
    """One figure that was made.

    Attributes:
        spec: The figure.
        files: What was written.
        caption: Its whole caption.
        statements: What it says of the paper.
        data: Names of the data sets in it.
    """

    spec: FigureSpec
    files: tuple[Path, ...]
    caption: str
    statements: tuple[Statement, ...]
    data: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The record as plain Python values."""
        return {
            "name": self.spec.name,
            "stem": self.spec.stem,
            "title": self.spec.title,
            "files": [str(file) for file in self.files],
            "caption": self.caption,
        }


@dataclass
class Made:
    """What a call made.

    Attributes:
        drawn: The figures.
        left_out: Figures that could not be drawn, with the reason.
        missing: Presets that are not there.
        ran: Number of tasks run now.
        failed: What went wrong, by label of the task.
        older: Number of numbers that another state of the code with the same version has made.
        files: Everything written, numbers of tasks apart.
    """

    drawn: list[Drawn] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    missing: Sequence[str] = ()
    ran: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    older: int = 0
    files: list[Path] = field(default_factory=list)

    @property
    def statements(self) -> list[dict[str, Any]]:
        """Rows of the table of statements, those of figures made now."""
        return statement_rows({each.spec.name: each.statements for each in self.drawn})


def make_figures(
    specs: Sequence[FigureSpec],
    out: Path,
    *,
    sources: Mapping[str, DataSpec],
    missing: Sequence[str] = (),
    trials: int | None = None,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress = lambda done, total, label: None,
) -> Made:
    """Compute what is missing, draw, judge, and write a results folder.

    Figures of an earlier call that are still in the folder stay in its manifest and its table of
    statements. The manifest is written last.

    Args:
        specs: The figures.
        out: Folder, which must exist; numbers of tasks go to `numbers` in it.
        sources: Data sets that are present and wanted.
        missing: Presets that are not present, to be told.
        trials: Trials; default each figure's own.
        seed: Seed.
        jobs: Worker processes.
        progress: Called as progress(done, total, label).

    Returns:
        A `Made`.

    Example:
        >>> import tempfile
        >>> from experiments.figures import chosen
        >>> made = make_figures(chosen(["6"]), Path(tempfile.mkdtemp()), sources={})
        >>> made.left_out
        {'6': 'no data'}
    """
    folder = out / NUMBERS
    folder.mkdir(exist_ok=True)
    needed = {spec.name: spec.tasks(list(sources), trials or spec.trials, seed) for spec in specs}
    outcome = run_tasks(
        [task for tasks in needed.values() for task in tasks],
        folder,
        sources=sources,
        jobs=jobs,
        prepare=_prepare(specs, needed),
        progress=progress,
    )
    made = Made(missing=missing, ran=outcome.ran, failed=outcome.failed, older=outcome.older)
    for spec in specs:
        frame = _frame(needed[spec.name], outcome, sources)
        if frame is None:
            made.left_out[spec.name] = "no numbers" if needed[spec.name] else "no data"
        else:
            made.drawn.append(_draw(spec, frame, out))
    settings = {"presets": list(sources), "trials": trials}
    _write_tables(out, made, settings, seed)
    return made


def _prepare(
    specs: Sequence[FigureSpec], needed: Mapping[str, Sequence[Task]]
) -> Callable[[Sequence[Task]], None]:
    """What the figures want done before workers start, for their tasks among the missing ones."""

    def prepare(missing: Sequence[Task]) -> None:
        by_function: dict[Callable[[Sequence[Task]], None], list[Task]] = {}
        for spec in specs:
            if spec.prepare is not None:
                mine = [task for task in needed[spec.name] if task in missing]
                by_function.setdefault(spec.prepare, []).extend(mine)
        for function, tasks in by_function.items():
            if tasks:
                function(tasks)

    return prepare


def _frame(
    tasks: Sequence[Task], outcome: Outcome, sources: Mapping[str, DataSpec]
) -> pl.DataFrame | None:
    keys = dict.fromkeys(key_of(task, sources) for task in tasks)
    files = [outcome.files[key] for key in keys if key in outcome.files]
    return read_numbers(files) if files else None


def _draw(spec: FigureSpec, frame: pl.DataFrame, out: Path) -> Drawn:
    from experiments.plots import save

    figure, numbers = spec.draw(frame)
    files = save(figure, out / spec.stem, numbers)
    table = out / f"{spec.stem}.parquet"
    write_atomic(table, numbers.write_parquet)
    statements = tuple(spec.judge(frame))
    caption = full_caption(spec, frame, statements)
    data = tuple(frame["dataset"].unique(maintain_order=True).drop_nulls())
    return Drawn(spec, (*files, table), caption, statements, data)


def _write_tables(out: Path, made: Made, settings: Mapping[str, Any], seed: int) -> None:
    """Statements and manifest, those of figures from earlier calls included."""
    before = _earlier(out)
    kept = [stem for stem in before["captions"] if (out / f"{stem}.svg").is_file()]
    captions = {stem: before["captions"][stem] for stem in kept}
    told = {stem: about for stem, about in before["figures"].items() if stem in kept}
    for each in made.drawn:
        stem, trials = each.spec.stem, settings["trials"] or each.spec.trials
        captions[stem] = {"title": each.spec.title, "caption": each.caption}
        told[stem] = {"name": each.spec.name, "trials": trials, "seed": seed, "data": each.data}
    fresh = {each.spec.name for each in made.drawn}
    old = [row for row in before["statements"] if row["figure"] not in fresh]
    stems = sorted(told, key=lambda stem: _place(told[stem]["name"]))
    known = {told[stem]["name"] for stem in stems}
    rows = [row for row in (*old, *made.statements) if row["figure"] in known]
    rows.sort(key=lambda row: _place(row["figure"]))
    table = statement_frame(rows)
    written = {
        "statements.parquet": table.write_parquet,
        "statements.csv": table.write_csv().encode(),
        "statements.md": statement_markdown(rows).encode(),
    }
    for name, content in written.items():
        write_atomic(out / name, content)
    entries = manifest(
        COMMAND,
        settings=settings,
        seeds=seed,
        files=[f"{stem}.svg" for stem in stems] + list(written),
        captions={stem: captions[stem] for stem in stems},
        figures={stem: told[stem] for stem in stems},
        statements=[{name: row[name] for name in COLUMNS} for row in rows],
        missing=list(made.missing),
        failed=made.failed,
        older=made.older,
    )
    write_json(out / MANIFEST, entries)
    made.files += [file for each in made.drawn for file in each.files]
    made.files += [out / name for name in (*written, MANIFEST)]


def _place(name: str) -> tuple[int, str]:
    """The paper's figures by number, then the others by name."""
    return (int(name), "") if name.isdigit() else (99, name)


def _earlier(out: Path) -> dict[str, Any]:
    """What the manifest of an earlier call says of its figures; nothing of another command's."""
    nothing: dict[str, Any] = {"captions": {}, "figures": {}, "statements": []}
    try:
        found = read_json(out / MANIFEST)
    except (OSError, json.JSONDecodeError, UnicodeDecodeError):
        return nothing
    if not isinstance(found, dict) or found.get("command") != COMMAND:
        return nothing
    about = {name: found.get(name) for name in nothing}
    sound = (
        isinstance(about["captions"], dict)
        and isinstance(about["figures"], dict)
        and about["captions"].keys() == about["figures"].keys()
        and all(isinstance(each, dict) and "name" in each for each in about["figures"].values())
        and isinstance(about["statements"], list)
        and all(isinstance(row, dict) and {*row} == {*COLUMNS} for row in about["statements"])
    )
    return about if sound else nothing
