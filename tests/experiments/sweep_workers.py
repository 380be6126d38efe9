"""Processes for the tests of sweeps: run as a script, so that forks are cheap and clean.

    python sweep_workers.py WHAT FOLDER TOLD

Every process is a fork of this one, which holds no threads; all share one log, to which each adds a
line with a single write.
"""

import contextlib
import fcntl
import importlib
import json
import os
import random
import signal
import sys
import time
import traceback
from functools import partial
from pathlib import Path

import numpy as np

from experiments.sweep import Measured, cell_files, parse_grid, store, sweep

EPS = (0.5, 1.0)
# Calls that change the folder or take and give back a claim.
_STEPS = ((os, "replace"), (os, "fsync"), (os, "unlink"), (os, "mkdir"), (fcntl, "lockf"))


def grid_of(num_groups, eps=(1.0,)):
    return parse_grid(
        {
            "data": {"kind": "singletons", "N": list(range(1, num_groups + 1))},
            "privacy": {"eps": list(eps), "delta": 1e-5, "max_items_per_user": 1},
        }
    )


class Logged:
    """A cheap function of the group that says in a log when it was called and returned."""

    def __init__(self, folder, seconds=0.0, before=None):
        self.folder, self.seconds, self.before = folder, seconds, before

    def __call__(self, group):
        records = [cell_files.read_cell(self.folder, cell) for cell in group.cells]
        complete = sum(record is not None and record.ok for record in records)
        size = group.data.settings["N"]
        log(self.folder, "begin", group=size, complete=complete)
        if self.before is not None:
            self.before(group)
        time.sleep(self.seconds)
        log(self.folder, "end", group=size)
        return [
            Measured({"value": size / e, "run_seconds": time.monotonic()}, {"each": np.full(3, e)})
            for e in group.eps
        ]


def log_path(folder):
    return folder.with_name(folder.name + ".log")


def log(folder, what, **more):
    line = json.dumps({"what": what, "pid": os.getpid(), "time": time.monotonic_ns(), **more})
    with open(log_path(folder), "ab", buffering=0) as file:
        file.write(line.encode() + b"\n")


def read_log(folder):
    path = log_path(folder)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def fork(function, *args, **kwargs):
    """Call a function in a child; its exit status tells whether it raised."""
    child = os.fork()
    if child:
        return child
    try:
        function(*args, **kwargs)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def ended(child):
    """Wait for a child that nobody kills; anything but success is an error."""
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def kill(child, folder):
    """SIGKILL; returns whether the child was still alive."""
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        assert os.waitstatus_to_exitcode(status) == 0
        return False
    log(folder, "kill", victim=child)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def wait_for_work(child, folder):
    """Wait until a child has begun a group, or has ended."""
    options = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while not any(line["what"] == "begin" and line["pid"] == child for line in read_log(folder)):
        if os.waitid(os.P_PID, child, options) is not None:
            return
        time.sleep(0.002)


# ---- what tests ask for


def random_kills(base, told):
    """Two workers at a time, killed at random moments, until there were enough kills."""
    seed, least = map(int, told.split(","))
    rng = random.Random(seed)
    grid = grid_of(20)
    ended(fork(sweep, grid, base / "whole", measure=Logged(base / "whole")))
    kills = number = 0
    while kills < least:
        folder = base / f"killed-{number}"
        number += 1
        for _ in range(3):
            measure = Logged(folder, 0.004)
            workers = [fork(sweep, grid, folder, measure=measure, worker=(i, 2)) for i in range(2)]
            rng.shuffle(workers)
            for worker in workers:
                if rng.random() < 0.5:
                    wait_for_work(worker, folder)
                time.sleep(rng.uniform(0, 0.1))
                kills += kill(worker, folder)
        ended(fork(sweep, grid, folder, measure=Logged(folder)))
    print(kills)


def kill_at_every_step(base, _):
    """One worker, killed before its first, second, ... step, in turn."""
    grid = grid_of(2, EPS)
    whole = base / "whole"
    ended(fork(sweep, grid, whole, measure=Logged(whole), keep_trials=True))
    steps = 0
    while True:
        folder = base / f"step-{steps}"
        code = os.waitstatus_to_exitcode(os.waitpid(fork(_die_at, steps, grid, folder), 0)[1])
        if code == 0:
            break
        assert code == -signal.SIGKILL
        ended(fork(sweep, grid, folder, measure=Logged(folder), keep_trials=True))
        steps += 1
    print(steps)


def _die_at(step, grid, folder):
    left = iter(range(step))

    def counted(function):
        def call(*args, **kwargs):
            if next(left, None) is None:
                log(folder, "kill", victim=os.getpid())
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **kwargs)

        return call

    for module, name in _STEPS:
        setattr(module, name, counted(getattr(module, name)))
    sweep(grid, folder, measure=Logged(folder), keep_trials=True)


def meet(folder, workers, group=None):
    """Wait until as many workers have begun: nobody may have done all before others start."""
    deadline = time.monotonic() + 60
    while len({line["pid"] for line in read_log(folder) if line["what"] == "begin"}) < workers:
        assert time.monotonic() < deadline
        time.sleep(0.002)


def at_once(base, _):
    """One, two and three processes at the same time on one folder."""
    grid = grid_of(12, EPS)
    for count in (1, 2, 3):
        folder = base / f"at-once-{count}"
        measure = Logged(folder, 0.003, before=partial(meet, folder, count))
        for worker in [fork(sweep, grid, folder, measure=measure) for _ in range(count)]:
            ended(worker)


def hold(folder, group):
    """Stay in the first group until the file `go` is there."""
    if group.data.settings["N"] == 1:
        while not folder.with_name("go").exists():
            time.sleep(0.005)


def others_done(folder, groups):
    """Wait until all groups but the first are complete."""
    while sum(line["what"] == "end" for line in read_log(folder)) < groups - 1:
        time.sleep(0.005)
    time.sleep(0.2)  # time in which the other might wrongly take the first


def held(base, _):
    """A worker is suspended and goes on; another is suspended and killed. Others must wait."""
    grid = grid_of(6)
    for fate in ("goes-on", "dies"):
        folder = base / fate
        measure = Logged(folder, before=partial(hold, folder))
        first = fork(sweep, grid, folder, measure=measure)
        meet(folder, 1)
        os.kill(first, signal.SIGSTOP)
        second = fork(sweep, grid, folder, measure=measure)
        others_done(folder, 6)
        log(folder, fate)
        if fate == "dies":
            kill(first, folder)
        folder.with_name("go").touch()
        if fate == "goes-on":
            os.kill(first, signal.SIGCONT)
            ended(first)
        ended(second)
        folder.with_name("go").unlink()


# ---- measured functions for `processes`, which are pickled


class Dies:
    """Ends its process in the third group, once or every time, and then fails in the second."""

    def __init__(self, folder, always):
        self.logged, self.always = Logged(folder), always

    def __call__(self, group):
        found = self.logged(group)
        size = group.data.settings["N"]
        if size == 2 and self.always:
            raise RuntimeError("no such luck")
        if size == 3:
            with contextlib.suppress(FileExistsError):
                log_path(self.logged.folder).with_suffix(".died").touch(exist_ok=self.always)
                os.kill(os.getpid(), signal.SIGKILL)
        return found


class Full:
    """A row that cannot be stored: what goes wrong is not the cell's fault."""

    def __call__(self, group):
        return [Measured({"value": object()}) for _ in group.eps]


def processes(base, told):
    grid = grid_of(6)
    folder = base / "out"
    measure = {
        "logged": lambda: Logged(folder),
        "dies": lambda: Dies(folder, always=False),
        "always-dies": lambda: Dies(folder, always=True),
        "full": lambda: Full(),
        "slow": lambda: Logged(folder, 60),
    }[told]()
    entries = []
    result = sweep(
        grid, folder, measure=measure, processes=2, progress=lambda *entry: entries.append(entry)
    )
    print(
        json.dumps(
            {
                "ok": result.ok,
                "computed": result.computed,
                "errors": [failure.error for failure in result.failures],
                "progress": entries,
                "notes": result.notes,
            }
        )
    )


if __name__ == "__main__":
    # Once, not in every fork.
    store.versions()
    importlib.import_module("polars")
    what = {
        function.__name__: function
        for function in (random_kills, kill_at_every_step, at_once, held, processes)
    }
    what[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
