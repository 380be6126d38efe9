"""Two processes joined by `jax.distributed` share a sweep: disjoint work, the numbers of one."""

import json
import socket
import subprocess
import sys

import pytest

from experiments.sweep import parse_grid, sweep
from experiments.sweep.cell_files import read_cell

GRID = {
    "data": {"kind": "hard_zipf", "s": [1.5, 2, 2.5, 3], "C": 1, "N": 300},
    "privacy": {"eps": [0.5, 5], "delta": 1e-5, "max_items_per_user": 1},
    "run": {"trials": 50, "seed": 3},
}
# Each waits in its first group until the other is in one too, so that both must work.
WORKER = """
import json, sys, time
from pathlib import Path
import jax
from experiments.sweep import parse_grid, sweep
from experiments.sweep.simulation import Simulation

address, index, folder, grid = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
jax.distributed.initialize(address, num_processes=2, process_id=index)
assert (jax.process_index(), jax.process_count()) == (index, 2)
assert len(jax.devices()) == 2 * len(jax.local_devices())
simulation, groups = Simulation(), []

def measure(group):
    groups.append(group.name)
    folder.with_name(f"began-{index}").touch()
    deadline = time.monotonic() + 60
    while not folder.with_name(f"began-{1 - index}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return simulation(group)

worker = (jax.process_index(), jax.process_count())
result = sweep(parse_grid(json.loads(grid)), folder, measure=measure, worker=worker)
print(json.dumps([result.ok, result.computed, groups]))
"""


def _free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def test_two_processes_share_a_sweep(tmp_path):
    pytest.importorskip("fcntl")
    grid, folder = parse_grid(GRID), tmp_path / "two"
    address = f"127.0.0.1:{_free_port()}"
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, address, str(index), str(folder), json.dumps(GRID)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(2)
    ]
    try:
        told = []
        for process in workers:
            out, err = process.communicate(timeout=240)
            assert process.returncode == 0, err
            told.append(json.loads(out))
    finally:
        for process in workers:
            process.kill()
    assert all(ok for ok, _, _ in told) and sum(computed for _, computed, _ in told) == 8
    shares = [groups for _, _, groups in told]
    assert all(shares) and sorted(sum(shares, [])) == sorted(g.name for g in grid.groups)
    assert shares[0][0] == grid.groups[0].name and shares[1][0] == grid.groups[2].name

    sweep(grid, tmp_path / "one")
    for name in ("results.parquet", "results.csv"):
        assert (folder / name).read_bytes() == (tmp_path / "one" / name).read_bytes()
    assert all(read_cell(folder, cell) is not None for cell in grid.cells)
