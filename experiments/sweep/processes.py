"""Several worker processes on this host, started, watched and stopped by one.

Workers are fresh processes ("spawn"), so JAX's threads and devices are their own; they share the
processor cores, where the system lets a process choose. A worker may die at any moment, by any
signal, without harm to what is stored, so stopping one means killing it. A worker that dies on its
own is not started again: the others take over its group.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from experiments.sweep import cell_files
from experiments.sweep.claims import Claims
from experiments.sweep.worker import Event, Task, work

_SECONDS_TO_EXIT = 10


@dataclass
class _Worker:
    process: BaseProcess
    receiver: Connection
    group: int | None = None  # at work on
    ended: bool = False  # having dealt with everything


def work_in_processes(
    task: Task, worker: tuple[int, int], processes: int, report: Callable[[Event], object]
) -> tuple[str, ...]:
    """As `worker.work`, in several processes.

    Args:
        task: What is to be done; its `measure` is pickled.
        worker: Index and number of such calls.
        processes: Number of worker processes.
        report: Called with every `Event` of every worker.

    Returns:
        Sentences the user should read.

    Raises:
        RuntimeError: Every worker process ended before it began.
        Exception: What a worker could not go on after, such as a full disk.
    """
    index, count = worker
    workers: list[_Worker] = []
    notes: dict[str, None] = {}
    try:
        for number in range(processes):
            place = (index * processes + number, count * processes)
            workers.append(_start(task, place, cores_of(number, processes)))
        for told_by, message in _messages(workers):
            if isinstance(message, Exception):
                raise message
            if isinstance(message, Event):
                told_by.group = message.group if message.what == "begins" else None
                report(message)
            else:
                told_by.ended = True
                notes |= dict.fromkeys(message)
        for started in workers:
            started.process.join(_SECONDS_TO_EXIT)
    finally:
        for started in workers:
            started.process.kill()
        for started in workers:
            started.process.join()
    if not any(started.ended or started.group is not None for started in workers):
        codes = [started.process.exitcode for started in workers]
        raise RuntimeError(f"no worker process could begin; their exit statuses are {codes}")
    for started in workers:
        if not started.ended:
            notes[f"a worker process ended with {_how(started)}; was there enough memory?"] = None
            _record_death(task, started)
    return tuple(notes)


def _start(task: Task, worker: tuple[int, int], cores: set[int]) -> _Worker:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(task, worker, cores, sender), daemon=True)
    with interrupts_held_back():
        process.start()
    sender.close()
    return _Worker(process, receiver)


def cores_of(number: int, processes: int) -> set[int]:
    """A worker's share of the cores that this process may use; empty for no choice."""
    if not hasattr(os, "sched_setaffinity"):
        return set()
    cores = sorted(os.sched_getaffinity(0))
    return set(cores[number::processes]) or {cores[number % len(cores)]}


@contextlib.contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach: it is for the one that started them to act."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # by starting, it would let interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _messages(workers: list[_Worker]) -> Iterator[tuple[_Worker, Any]]:
    """What workers say, until all have ended."""
    open_ends: dict[Any, _Worker] = {started.receiver: started for started in workers}
    while open_ends:
        for receiver in wait(list(open_ends)):
            told_by = open_ends[receiver]
            try:
                yield told_by, told_by.receiver.recv()
            except (EOFError, ConnectionError):
                told_by.receiver.close()
                del open_ends[receiver]


def _record_death(task: Task, dead: _Worker) -> None:
    """Put a group on record that no worker was left to take over."""
    if dead.group is None:
        return
    group = task.grid.groups[dead.group]
    error = f"the process that computed it ended with {_how(dead)}"
    with Claims(task.folder) as claims, claims.group(group.name) as mine:
        for cell in task.missing(group) if mine else []:
            cell_files.write_failed(task.folder, cell, error, [])


def _how(dead: _Worker) -> str:
    code = dead.process.exitcode or 0
    return f"signal {-code}" if code < 0 else f"exit status {code}"


def _work(task: Task, worker: tuple[int, int], cores: set[int], sender: Connection) -> None:
    """Main function of a worker process."""
    if cores:
        os.sched_setaffinity(0, cores)
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        sender.send(work(task, worker, sender.send))
    except Exception as error:
        sender.send(_portable(error))
    sender.close()


def _portable(error: Exception) -> Exception:
    """The error, or one that can be pickled; it says where in the worker it happened."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(f"In a worker process:\n{traceback.format_exc()}")
    return error


def end_with_parent() -> None:
    """Wait for the end of the process that started this one, and end too."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
