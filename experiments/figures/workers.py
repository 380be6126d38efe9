"""Which task comes next, and worker processes that are handed one task at a time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import Generic, TypeVar

from experiments.figures.task import Task
from experiments.sweep.processes import cores_of, end_with_parent, interrupts_held_back

_Job = TypeVar("_Job")
_NO_ANSWER = "a worker process ended; was there enough memory?"


class Schedule:
    """Hands out tasks: those of one data set after each other, the heaviest data set first.

    A worker that has nothing else to do helps with the data set that has most tasks left.

    Example:
        >>> schedule = Schedule([Task("a", "x"), Task("b", "x"), Task("a", "y")], {"y": 9, "x": 1})
        >>> taken = [schedule.take(None), schedule.take("y"), schedule.take("y")]
        >>> [(task.kind, task.dataset) for task in taken], schedule.take("x")
        ([('a', 'y'), ('a', 'x'), ('b', 'x')], None)
    """

    def __init__(self, tasks: Sequence[Task], weights: Mapping[str, int]) -> None:
        """Tasks without a data set come last; they fill the time of idle workers.

        Args:
            tasks: The tasks.
            weights: Weight of every data set.
        """
        self._left: dict[str | None, list[Task]] = {}
        for task in tasks:
            self._left.setdefault(task.dataset, []).append(task)
        self._fresh = sorted(
            self._left, key=lambda name: -1 if name is None else weights.get(name, 0), reverse=True
        )

    def take(self, current: str | None) -> Task | None:
        """The next task for a worker that has one data set in memory; None when all are taken."""
        left = {name: tasks for name, tasks in self._left.items() if tasks}
        if not left:
            return None
        if current is not None and current in left:
            chosen = current
        elif fresh := [name for name in self._fresh if name in left]:
            chosen = fresh[0]
        else:
            chosen = max(left, key=lambda name: len(left[name]))
        if chosen in self._fresh:
            self._fresh.remove(chosen)
        return self._left[chosen].pop(0)


class Worker(Generic[_Job]):
    """One process that calls a function on what it is sent."""

    def __init__(self, function: Callable[[_Job], str | None], number: int, processes: int) -> None:
        """Start the process.

        Args:
            function: Importable by name; returns None, or what went wrong with this job alone.
            number: Number of the worker, from 0.
            processes: Number of workers, which share the cores.
        """
        self._function, self._place = function, (number, processes)
        self.current: str | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        given = (self._function, cores_of(*self._place), other)
        self._process = context.Process(target=_serve, args=given, daemon=True)
        with interrupts_held_back():
            self._process.start()
        other.close()

    def send(self, job: _Job) -> None:
        """Have it done; the answer is for `answer`."""
        self.connection.send(job)

    def answer(self) -> str | None:
        """None, or what went wrong; a process that died is replaced.

        Raises:
            Exception: An error that is no matter of this job alone.
        """
        try:
            told = self.connection.recv()
        except (EOFError, ConnectionError):
            self.end()
            self.current = None
            self._start()
            return _NO_ANSWER
        if isinstance(told, Exception):
            raise told
        return told

    def end(self) -> None:
        """Stop the process at once; what it has stored is complete or not there."""
        self._process.kill()
        self._process.join()
        self.connection.close()


def answered(workers: Sequence[Worker[_Job]]) -> Iterator[Worker[_Job]]:
    """Workers that have an answer or died, once there is one."""
    by_connection = {worker.connection: worker for worker in workers}
    for connection in wait(list(by_connection)):
        yield by_connection[connection]  # pyright: ignore[reportArgumentType]


def _serve(function: Callable[[_Job], str | None], cores: set[int], connection: Connection) -> None:
    """Main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is for the parent to act
    if cores:
        os.sched_setaffinity(0, cores)
    threading.Thread(target=end_with_parent, daemon=True).start()
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        try:
            connection.send(function(job))
        except Exception as error:
            # Any error can be told as this one; some cannot be pickled.
            told = RuntimeError(f"{type(error).__name__}: {error}")
            told.add_note(f"In a worker process:\n{traceback.format_exc()}")
            connection.send(told)
