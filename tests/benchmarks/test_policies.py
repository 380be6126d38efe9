"""Policies beside a plain Python loop, printed; nothing is asserted of the times.

pytest tests/benchmarks/test_policies.py -m benchmark
"""

import json
import subprocess
import sys

import pytest

from experiments.bench.policies import POLICIES


@pytest.mark.benchmark
def test_policies(capsys):
    # In a process of its own: the checks of the tests would be timed too.
    command = [sys.executable, "-m", "experiments.bench.policies"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    with capsys.disabled():
        for name, seconds in told["seconds"].items():
            faster = told["times_loop"][name]
            print(f"\n{name:32s} {seconds['median']:8.2f} s {faster:6.2f} × faster", end="")
        print()
    ways = {f"{name} {way}" for name in POLICIES for way in ("simulate", "integrated")}
    assert set(told["seconds"]) == {"python loop", *ways}
