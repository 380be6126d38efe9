"""Time and memory of one simulation case, beside NumPy: `python simulation_case.py PAIRS BOUND`.

Runs in its own process, so that peak memory is its own. Prints one JSON object.
"""

import importlib.util
import json
import os
import resource
import sys
import time

import numpy as np

from theory.calibration import calibrate
from wgm_jax.synthetic import SetSizes, zipf_draws


class VectorisedNumpy:
    """The mechanism by whole-array NumPy: one sort of random keys over all clipped pairs."""

    def __init__(self, items, offsets, max_items_per_user, sigma, threshold, seed=0):
        self.rng = np.random.default_rng(seed)
        self.sigma, self.threshold = sigma, threshold
        sizes = np.diff(offsets)
        pair_sizes = np.repeat(sizes, sizes)
        clipped = pair_sizes > max_items_per_user
        self.frequencies = np.bincount(items)
        self.base = np.bincount(
            items[~clipped], pair_sizes[~clipped] ** -0.5, minlength=self.frequencies.size
        )
        self.items = items[clipped]
        self.rows = np.repeat(np.arange(sizes.size), sizes)[clipped].astype(float)
        large = sizes[sizes > max_items_per_user]
        starts = np.cumsum(large) - large
        self.take = (starts[:, None] + np.arange(max_items_per_user)).ravel()
        self.weight = max_items_per_user**-0.5

    def trial(self):
        weights = self.base
        if self.items.size:
            order = np.argsort(self.rows + self.rng.random(self.rows.size))
            kept = self.items[order[self.take]]
            weights = weights + self.weight * np.bincount(kept, minlength=weights.size)
        noise = self.rng.standard_normal(weights.size)
        missed = ~((weights + self.sigma * noise > self.threshold) & (weights > 0))
        return self.frequencies[missed].sum() / self.frequencies.sum()


def seconds_per_thousand(trial, seconds=2.0):
    """Time trials for about `seconds`; also the mean they return."""
    trial()
    values, start = [], time.perf_counter()
    while time.perf_counter() - start < seconds:
        values.append(trial())
    return 1000 * (time.perf_counter() - start) / len(values), float(np.mean(values))


def main(num_pairs, bound):
    sizes = SetSizes("lognormal", mean=8, spread=1.1, cap=1000)
    data = zipf_draws(s=1.2, num_pairs=num_pairs, set_sizes=sizes)
    found = calibrate(eps=1.0, delta=1e-5, max_items_per_user=bound)
    case = (data.items, data.offsets, bound, found.sigma, found.threshold)

    result = {"num_pairs": num_pairs, "max_items_per_user": bound, "num_items": data.num_items}
    result["numpy"], numpy_mean = seconds_per_thousand(VectorisedNumpy(*case).trial)
    if peer := os.environ.get("WGM_PEER"):
        spec = importlib.util.spec_from_file_location("peer", peer)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        result["peer"], _ = seconds_per_thousand(module.WGM(*case).trial)

    from wgm_jax import simulate

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grid = calibrate(eps=np.geomspace(0.1, 3, 16), delta=1e-5, max_items_per_user=bound)
    num_trials = int(np.clip(10**8 / num_pairs, 200, 4000))
    trials = simulate(data, found, num_trials=num_trials)
    result["jax"] = 1000 * trials.run_seconds / num_trials
    result["jax_compile"] = trials.compile_seconds
    many = simulate(data, grid, num_trials=num_trials // 4)
    result["jax_grid_of_16"] = 1000 * many.run_seconds / many.num_trials
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result["peak_megabytes"], result["megabytes_before"] = after / 1024, before / 1024
    result["means"] = [numpy_mean, float(trials.missing_mass.mean())]
    print(json.dumps(result))


if __name__ == "__main__":
    main(int(float(sys.argv[1])), int(sys.argv[2]))
