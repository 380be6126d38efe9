"""`wgm sweep` with several processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.cli import main

GRID = """
[data]
kind = "hard_zipf"
s = [1.5, 3]
C = 1
N = [200, 300]
[privacy]
eps = [0.5, 5]
delta = 1e-5
max_items_per_user = 1
[run]
trials = 30
"""


# Said at the end by the process itself.
DEVICES = "import jax; print('devices:', len(jax.local_devices()))"


def _wgm(*arguments, after="pass"):
    """`wgm` in a process of its own: status, stdout, stderr."""
    typed = [str(a) for a in arguments]
    code = f"from experiments.cli import main\ntry: main({typed!r})\nfinally: {after}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    return done.returncode, done.stdout, done.stderr


def test_processes_share_a_grid(tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text(GRID)
    status, out, err = _wgm("sweep", grid, "--out", tmp_path / "two", "--processes", 2, "--json")
    assert status == 0, err
    told = json.loads(out)
    assert (told["cells"], told["computed"], told["failed"], told["notes"]) == (8, 8, 0, [])
    with pytest.raises(SystemExit):
        main(["sweep", str(grid), "--out", str(tmp_path / "one"), "--worker", "1/2"])
    tables = [Path(tmp_path, name, "results.parquet").read_bytes() for name in ("one", "two")]
    assert tables[0] == tables[1]


def test_devices_share_the_trials_of_a_cell(tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text(GRID)
    one, two = (
        _wgm("sweep", grid, "--out", tmp_path / n, "--devices", n, "--keep-trials", after=DEVICES)
        for n in ("1", "2")
    )
    assert (one[0], two[0]) == (0, 0), one[2] + two[2]
    assert [out.splitlines()[-1] for _, out, _ in (one, two)] == ["devices: 1", "devices: 2"]
    files = sorted(path.relative_to(tmp_path / "1") for path in tmp_path.glob("1/**/*.parquet"))
    assert len(files) == 9
    for file in files:
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--worker", "2/2"),
        ("--worker", "1"),
        ("--worker", "-1/2"),
        ("--processes", "0"),
        ("--devices", "0"),
        ("--devices", "some"),
    ],
)
def test_bad_numbers_are_one_line(tmp_path, capsys, option, value):
    grid = tmp_path / "grid.toml"
    grid.write_text(GRID)
    with pytest.raises(SystemExit) as stopped:
        main(["sweep", str(grid), "--out", str(tmp_path / "out"), option, value])
    err = capsys.readouterr().err
    assert stopped.value.code == 2 and err.count("\n") == 1
    assert err.startswith(f"wgm: {option} {value}: {option[2:]} must be")
    assert not (tmp_path / "out").exists()
