"""Several processes on one results folder: kills, claims, failures, interrupts."""

import contextlib
import importlib.util
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from experiments.sweep import cell_files, claims, store, sweep
from experiments.sweep.claims import Claims
from theory import InvalidInput

SCRIPT = Path(__file__).with_name("sweep_workers.py")
workers = importlib.util.module_from_spec(
    spec := importlib.util.spec_from_file_location("sweep_workers", SCRIPT)
)
spec.loader.exec_module(workers)
EPS, Logged, grid_of, read_log = workers.EPS, workers.Logged, workers.grid_of, workers.read_log
posix = pytest.mark.skipif(os.name != "posix", reason="forks and record locks")


def start(what, folder, told=""):
    command = [sys.executable, str(SCRIPT), what, str(folder), told]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def run(what, folder, told=""):
    process = start(what, folder, told)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return out


def tables(folder):
    return [(folder / name).read_bytes() for name in ("results.parquet", "results.csv")]


def assert_complete_and_tidy(folder, grid, trials=False):
    """Every cell is there and nothing else: no temporary file, no claim, no other cell."""
    expected = {"manifest.json", "results.parquet", "results.csv", "lock"}
    expected |= {f"cells/{cell.name}.json" for cell in grid.cells}
    if trials:
        expected |= {f"cells/{cell.name}.trials.parquet" for cell in grid.cells}
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert files == expected and not list(folder.rglob(".*"))
    assert (folder / "lock").stat().st_size == 0
    assert store.read_json(folder / "manifest.json")["status"] == "complete"


def assert_never_computed_twice(folder):
    """No group was computed when it was complete or by two at once; only the killed left one."""
    log = read_log(folder)
    killed_at = {line["victim"]: line["time"] for line in log if line["what"] == "kill"}
    last = {line["pid"]: line for line in log if line["what"] == "begin"}
    begins = [line for line in log if line["what"] == "begin"]
    for _, group in itertools.groupby(
        sorted(begins, key=lambda b: b["group"]), lambda b: b["group"]
    ):
        first, *later = sorted(group, key=lambda b: b["time"])
        for before, after in zip([first, *later], later, strict=False):
            assert before["pid"] in killed_at and last[before["pid"]] is before
            assert killed_at[before["pid"]] < after["time"]


# ---- kills


@posix
@pytest.mark.parametrize("least", [24, pytest.param(300, marks=pytest.mark.slow)])
def test_random_kills_lose_nothing_and_compute_nothing_twice(tmp_path, least):
    kills = int(run("random_kills", tmp_path, f"20260730,{least}"))
    folders = sorted(path for path in tmp_path.glob("killed-*") if path.is_dir())
    assert kills >= least and len(folders) >= 4
    whole = tables(tmp_path / "whole")
    taken_over = 0
    for folder in folders:
        assert tables(folder) == whole
        assert_complete_and_tidy(folder, grid_of(20))
        assert_never_computed_twice(folder)
        begins = [line for line in read_log(folder) if line["what"] == "begin"]
        assert all(line["complete"] == 0 for line in begins)
        taken_over += len(begins) - 20
    assert taken_over > 0  # kills did hit workers at work


@posix
def test_a_kill_at_any_step_is_repaired_by_the_next_run(tmp_path):
    steps = int(run("kill_at_every_step", tmp_path))
    assert steps >= 40  # 4 cells of 2 files, manifest twice, 2 tables, claims
    whole = tables(tmp_path / "whole")
    for step in range(steps):
        folder = tmp_path / f"step-{step}"
        assert tables(folder) == whole
        assert_complete_and_tidy(folder, grid_of(2, EPS), trials=True)
        assert_never_computed_twice(folder)
        for line in read_log(folder):  # a group of two cells may be half complete
            assert line["what"] != "begin" or line["complete"] < 2


# ---- at the same time


@posix
def test_one_two_or_three_processes_compute_each_cell_once_to_equal_numbers(tmp_path):
    run("at_once", tmp_path)
    for count in (1, 2, 3):
        folder = tmp_path / f"at-once-{count}"
        begins = [line for line in read_log(folder) if line["what"] == "begin"]
        assert sorted(line["group"] for line in begins) == list(range(1, 13))
        assert len({line["pid"] for line in begins}) == count
        assert tables(folder) == tables(tmp_path / "at-once-1")
        assert_complete_and_tidy(folder, grid_of(12, EPS))


@posix
def test_a_suspended_worker_keeps_its_group_and_a_dead_one_loses_it(tmp_path):
    run("held", tmp_path)
    for fate, times in (("goes-on", 1), ("dies", 2)):
        folder = tmp_path / fate
        log = read_log(folder)
        decided = next(index for index, line in enumerate(log) if line["what"] == fate)
        first = [i for i, line in enumerate(log) if line["what"] == "begin" and line["group"] == 1]
        assert len(first) == times and first[0] < decided and all(i > decided for i in first[1:])
        assert sum(line["what"] == "begin" for line in log) == 5 + times
        assert_never_computed_twice(folder)
        assert_complete_and_tidy(folder, grid_of(6))


def test_workers_begin_apart(tmp_path):
    for index, first in enumerate((1, 3, 5)):
        folder = tmp_path / str(index)
        sweep(grid_of(6), folder, measure=Logged(folder), worker=(index, 3))
        groups = [line["group"] for line in read_log(folder) if line["what"] == "begin"]
        assert groups == [1 + (first - 1 + step) % 6 for step in range(6)]
    assert tables(tmp_path / "0") == tables(tmp_path / "1") == tables(tmp_path / "2")


@pytest.mark.parametrize(
    "options", [{"worker": (2, 2)}, {"worker": (-1, 2)}, {"worker": (0, 0)}, {"processes": 0}]
)
def test_bad_numbers_of_processes_are_refused(tmp_path, options):
    with pytest.raises(InvalidInput, match=next(iter(options))):
        sweep(grid_of(1), tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


def test_a_failure_that_happens_meanwhile_is_not_tried_again(tmp_path):
    """Another process fails in the second cell while this one is in the first."""
    grid = grid_of(3)
    logged = Logged(tmp_path)

    def measure(group):
        if group.data.settings["N"] == 1:
            cell_files.write_failed(tmp_path, grid.cells[1], "the other's", [])
        return logged(group)

    result = sweep(grid, tmp_path, measure=measure)
    assert (result.computed, [failure.error for failure in result.failures]) == (2, ["the other's"])
    begins = [line["group"] for line in read_log(tmp_path) if line["what"] == "begin"]
    assert begins == [1, 3]
    assert sweep(grid, tmp_path, measure=logged).ok  # but the next run does


# ---- claims


def _other_process(folder, name):
    """What another process is told: 1 if it may claim the group, 0 if not."""
    code = (
        "import sys; from fcntl import *\n"
        "try: lockf(open(sys.argv[1], 'a'), LOCK_EX | LOCK_NB, 1, int(sys.argv[2]))\n"
        "except BlockingIOError: print(0)\n"
        "else: print(1)\n"
    )
    command = [sys.executable, "-c", code, str(folder / "lock"), str(1 + int(name[:15], 16))]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@posix
def test_claims_shut_out_other_processes(tmp_path):
    names = [group.name for group in grid_of(2, EPS).groups]
    assert len(set(names)) == 2 and [group.name for group in grid_of(2).groups] == names
    with Claims(tmp_path) as held:
        with held.group(names[0]) as mine:
            assert mine
            assert [_other_process(tmp_path, name) for name in names] == [0, 1]
        with held.everything() as alone:
            assert alone and _other_process(tmp_path, names[0]) == 0
        assert _other_process(tmp_path, names[0]) == 1
    assert os.listdir(tmp_path) == ["lock"]


@contextlib.contextmanager
def _held_elsewhere(folder, byte, seconds=0.0):
    """Another process holds a byte of the lock file; it leaves a file `released` when it ends."""
    code = (
        "import sys, time, pathlib; from fcntl import *; file = open(sys.argv[1], 'a')\n"
        "lockf(file, LOCK_EX, 1, int(sys.argv[2])); print(flush=True)\n"
        "sys.stdin.read(); time.sleep(float(sys.argv[3]))\n"
        "pathlib.Path(sys.argv[1]).with_name('released').touch()\n"
    )
    command = [sys.executable, "-c", code, str(folder / "lock"), str(byte), str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        yield other
        other.stdin.close()


@posix
def test_the_table_waits_for_its_turn(tmp_path):
    with Claims(tmp_path) as claimed, _held_elsewhere(tmp_path, 0, seconds=0.3) as other:
        other.stdin.close()
        with claimed.table():
            assert (tmp_path / "released").exists()


@posix
def test_temporary_files_go_only_when_nobody_else_is_at_work(tmp_path):
    def interrupted(group):
        raise KeyboardInterrupt

    leftover = tmp_path / "cells" / ".0123.json.4567.tmp"
    sweep(grid_of(1), tmp_path, measure=Logged(tmp_path))
    leftover.touch()
    with _held_elsewhere(tmp_path, 77):
        sweep(grid_of(1), tmp_path, measure=Logged(tmp_path))
        assert leftover.exists()
        (tmp_path / "cells" / f"{grid_of(1).cells[0].name}.json").unlink()
        with pytest.raises(KeyboardInterrupt):
            sweep(grid_of(1), tmp_path, measure=interrupted)
        assert leftover.exists()
    with pytest.raises(KeyboardInterrupt):
        sweep(grid_of(1), tmp_path, measure=interrupted)
    assert not leftover.exists()


@posix
def test_without_locks_a_sweep_goes_on_and_says_so(tmp_path, monkeypatch):
    def none(*args):
        raise OSError(claims.errno.ENOLCK, "No locks available")

    monkeypatch.setattr("experiments.sweep.claims.fcntl.lockf", none)
    result = sweep(grid_of(2), tmp_path, measure=Logged(tmp_path))
    assert result.ok and "no locks" in result.notes[0]


# ---- worker processes


def test_processes_give_the_same_table(tmp_path):
    told = json.loads(run("processes", tmp_path, "logged"))
    assert (told["ok"], told["computed"], told["notes"]) == (True, 6, [])
    done = [done for done, _, _ in told["progress"]]
    assert done == sorted(done) and done[-1] == 6 and {t for _, t, _ in told["progress"]} == {6}
    log = read_log(tmp_path / "out")
    assert sorted(line["group"] for line in log if line["what"] == "begin") == list(range(1, 7))
    assert_complete_and_tidy(tmp_path / "out", grid_of(6))
    sweep(grid_of(6), tmp_path / "one", measure=Logged(tmp_path / "one"))
    assert tables(tmp_path / "out") == tables(tmp_path / "one")


@posix
def test_another_worker_takes_over_from_a_dead_one(tmp_path):
    told = json.loads(run("processes", tmp_path, "dies"))
    assert (told["ok"], told["computed"]) == (True, 6)
    assert told["notes"] == ["a worker process ended with signal 9; was there enough memory?"]
    groups = [line["group"] for line in read_log(tmp_path / "out") if line["what"] == "begin"]
    assert sorted(groups) == [1, 2, 3, 3, 4, 5, 6]
    assert_complete_and_tidy(tmp_path / "out", grid_of(6))


@posix
def test_a_cell_that_fails_or_kills_every_worker_is_on_record(tmp_path):
    told = json.loads(run("processes", tmp_path, "always-dies"))
    assert not told["ok"] and len(told["notes"]) == 1
    assert "RuntimeError: no such luck" in told["errors"]
    assert "the process that computed it ended with signal 9" in told["errors"]
    record = cell_files.read_cell(tmp_path / "out", grid_of(6).cells[2])
    assert record is not None and record.status == "failed"
    groups = [line["group"] for line in read_log(tmp_path / "out") if line["what"] == "begin"]
    assert (groups.count(2), groups.count(3)) == (1, 2)  # a failure is not tried by all in turn
    assert not list(tmp_path.rglob(".*.tmp"))


def test_an_error_outside_of_cells_stops_all_processes(tmp_path):
    process = start("processes", tmp_path, "full")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "In a worker process:" in err
    assert "TypeError: Object of type object is not JSON serializable" in err


def _wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _is_alive(pid):
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_one_that_started_them(tmp_path, how):
    process = start("processes", tmp_path, "slow")
    _wait_until(lambda: len(read_log(tmp_path / "out")) == 2)
    workers = [line["pid"] for line in read_log(tmp_path / "out")]
    assert len(set(workers)) == 2 and all(map(_is_alive, workers))
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does on Ctrl-C: to all of them
    else:
        os.kill(process.pid, how)
    _, err = process.communicate(timeout=30)
    assert process.returncode == -how
    _wait_until(lambda: not any(map(_is_alive, workers)))
    # One traceback by Python's own hand, none by workers.
    assert err.count("Traceback") == (how == signal.SIGINT)
    assert not list((tmp_path / "out" / "cells").iterdir())
    assert not list(tmp_path.rglob(".*"))
    sweep(grid_of(6), tmp_path / "out", measure=Logged(tmp_path / "out"))
    assert_complete_and_tidy(tmp_path / "out", grid_of(6))
