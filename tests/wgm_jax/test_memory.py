"""Peak memory of a simulation, measured from outside in a process of its own."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json, resource, sys
import numpy as np
from theory import calibrate
from wgm_jax import simulate
from wgm_jax.synthetic import SetSizes, zipf_draws

pairs, bound, budget, trials, sampler = json.loads(sys.argv[1])
data = zipf_draws(s=1.2, num_pairs=pairs, set_sizes=SetSizes("lognormal", mean=8, cap=1000))
noise = calibrate(eps=np.array([0.3, 1.0]), delta=1e-5, max_items_per_user=bound)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
simulate(data, noise, num_trials=trials, memory_budget=budget, sampler=sampler)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([before * 1024, after * 1024]))
"""


def peak(*settings):
    command = [sys.executable, "-c", SCRIPT, json.dumps(settings)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("sampler", ["lanes", "padded"])
def test_the_budget_is_kept(sampler):
    budget = 2**27
    before, after = peak(100_000, 5, budget, 512 if sampler == "padded" else 4096, sampler)
    assert after - before <= 1.3 * budget + 300e6


@pytest.mark.slow
@pytest.mark.parametrize("bound", [1, 10, 1000])
def test_ten_million_pairs_within_6_gigabytes(bound):
    _, after = peak(10_000_000, bound, 2**30, 1000, "auto")
    assert after <= 6e9
