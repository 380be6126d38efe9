"""Running tasks: each one's numbers in a file of their own, and what is there is not run again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.figures.data import Case, load_case
from experiments.figures.task import Task
from experiments.figures.workers import Schedule, Worker, answered
from experiments.sweep.data_specs import DataSpec
from experiments.sweep.store import remove_leftovers, versions, write_atomic

if TYPE_CHECKING:
    import polars as pl

_SOURCE = "source"
Progress = Callable[[int, int, str], Any]
# The data set that this process read last, by name and digest of its files.
_memory: dict[tuple[str, str], Case] = {}


@dataclass(frozen=True)
class Job:
    """A task with all a worker process needs.

    Attributes:
        task: What to compute.
        source: Its data set; None if it has none.
        file: Where the numbers go.
    """

    task: Task
    source: DataSpec | None
    file: Path


@dataclass
class Outcome:
    """What there is after a run.

    Attributes:
        files: Files of numbers by key of the task, whether made now or before.
        ran: Number of tasks run now.
        failed: What went wrong, by label of the task.
        older: Number of files from before that another state of the code has made.
    """

    files: dict[str, Path] = field(default_factory=dict)
    ran: int = 0
    older: int = 0
    failed: dict[str, str] = field(default_factory=dict)


def key_of(task: Task, sources: Mapping[str, DataSpec]) -> str:
    """Key of a task on the data that are present."""
    content = "" if task.dataset is None else sources[task.dataset].settings["content"]
    return task.key(content)


def run_tasks(
    tasks: Iterable[Task],
    folder: Path,
    *,
    sources: Mapping[str, DataSpec],
    jobs: int = 1,
    prepare: Callable[[Sequence[Task]], None] = lambda missing: None,
    progress: Progress = lambda done, total, label: None,
) -> Outcome:
    """Run every task whose numbers are not there yet.

    A file is complete or not there, and its name tells the task, the data and the version apart:
    a run that was killed goes on where it stopped. Files of another state of the code with the same
    version number are taken, and counted.

    Args:
        tasks: What is needed; equal tasks are run once.
        folder: Where the files are; it must exist.
        sources: Data sets that are present.
        jobs: Worker processes; 1 works in this one.
        prepare: Called with the missing tasks before the first is run.
        progress: Called as progress(done, total, label).

    Returns:
        An `Outcome`.

    Raises:
        Exception: An error of ours; unreadable data and lack of memory are in `Outcome.failed`.
    """
    remove_leftovers(folder)
    wanted = {key_of(task, sources): task for task in tasks}
    files = {key: folder / f"{key}.parquet" for key in wanted}
    outcome = Outcome({key: file for key, file in files.items() if file.exists()})
    outcome.older = sum(_source_of(file) != _source() for file in outcome.files.values())
    missing = [task for key, task in wanted.items() if key not in outcome.files]
    if not missing:
        return outcome
    progress(0, len(missing), "preparing")
    prepare(missing)
    schedule = Schedule(missing, {name: _bytes(source) for name, source in sources.items()})

    def job_for(current: str | None) -> Job | None:
        task = schedule.take(current)
        if task is None:
            return None
        key = key_of(task, sources)
        source = None if task.dataset is None else sources[task.dataset]
        return Job(task, source, files[key])

    def done(job: Job, error: str | None) -> None:
        outcome.ran += 1
        if error is None:
            outcome.files[job.file.stem] = job.file
        else:
            outcome.failed[job.task.label] = error
        progress(outcome.ran, len(missing), job.task.label)

    if jobs == 1 or len(missing) == 1:
        current = None
        while (job := job_for(current)) is not None:
            current = job.task.dataset or current
            done(job, run_job(job))
        _memory.clear()
    else:
        _work_in_processes(min(jobs, len(missing)), job_for, done)
    return outcome


def _work_in_processes(
    processes: int,
    job_for: Callable[[str | None], Job | None],
    done: Callable[[Job, str | None], None],
) -> None:
    workers = [Worker(run_job, number, processes) for number in range(processes)]
    busy: dict[Worker[Job], Job] = {}

    def hand_out(worker: Worker[Job]) -> None:
        job = job_for(worker.current)
        if job is not None:
            worker.current = job.task.dataset or worker.current
            busy[worker] = job
            worker.send(job)

    try:
        for worker in workers:
            hand_out(worker)
        while busy:
            for worker in answered(list(busy)):
                job = busy.pop(worker)
                done(job, worker.answer())
                hand_out(worker)
    finally:
        for worker in workers:
            worker.end()


def run_job(job: Job) -> str | None:
    """Compute one task's numbers and write them; returns what is wrong with its data, if so."""
    import polars as pl

    from experiments.figures.registry import kinds
    from experiments.loading import DataError

    try:
        found = kinds()[job.task.kind](_case(job), job.task.settings)
    except DataError as error:
        return str(error)
    except MemoryError:
        return "not enough memory"
    made = found.with_columns(pl.lit(job.task.kind).alias("made_by"))
    write_atomic(job.file, lambda file: made.write_parquet(file, metadata={_SOURCE: _source()}))
    return None


def _source() -> str:
    """Digest of the code that decides numbers."""
    return versions()["source"]


def _source_of(file: Path) -> str | None:
    import polars as pl

    return pl.read_parquet_metadata(file).get(_SOURCE)


def _case(job: Job) -> Case | None:
    """The task's data set; the last one read stays in memory, and only that."""
    if job.source is None:
        return None
    known = (job.source.name, str(job.source.settings["content"]))
    if known not in _memory:
        _memory.clear()
        _memory[known] = load_case(job.source.name, job.source)
    return _memory[known]


def read_numbers(files: Iterable[Path]) -> pl.DataFrame:
    """Results of tasks as one table, with a column `made_by`: the kind of the task."""
    import polars as pl

    return pl.concat([pl.read_parquet(file) for file in files], how="diagonal_relaxed")


def _bytes(source: DataSpec) -> int:
    return sum(file.stat().st_size for path in source.paths for file in path.iterdir())
