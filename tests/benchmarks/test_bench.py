"""The quick benchmark suite, printed; nothing is asserted of the times.

    pytest tests/benchmarks -m benchmark

`wgm bench` runs the whole suite.
"""

import subprocess
import sys

import pytest

PROGRAM = "from experiments.cli import main; main()"


@pytest.mark.benchmark
def test_quick_suite(tmp_path, capsys):
    # In a process of its own: the checks of the tests would be timed too.
    command = [sys.executable, "-c", PROGRAM, "bench", "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    with capsys.disabled():
        print("\n" + done.stdout)
    assert done.returncode == 0, done.stderr
    assert "All means agree" in done.stdout
    assert (tmp_path / "trials.parquet").exists()
