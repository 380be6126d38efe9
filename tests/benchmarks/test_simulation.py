"""Seconds per 1,000 trials and peak memory, beside NumPy in the same run; nothing is asserted.

    pytest tests/benchmarks -m benchmark -s

With WGM_PEER=file.py, the class `WGM` of that file is timed too.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.benchmark
@pytest.mark.parametrize("bound", [1, 10, 1000])
@pytest.mark.parametrize("num_pairs", [10**4, 10**5, 10**6])
def test_seconds_per_thousand_trials(num_pairs, bound, capsys):
    command = [sys.executable, str(HERE / "simulation_case.py"), str(num_pairs), str(bound)]
    # The packages are found whether or not they are installed.
    path = os.pathsep.join(filter(None, [str(HERE.parents[1]), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    result = json.loads(done.stdout)
    with capsys.disabled():
        numbers = {k: round(v, 3) if isinstance(v, float) else v for k, v in result.items()}
        print("\n" + json.dumps(numbers))
