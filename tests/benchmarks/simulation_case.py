"""Time and memory of one simulation case, beside NumPy: `python simulation_case.py PAIRS BOUND`.

Runs in its own process, so that peak memory is its own. NumPy runs in one process per core; rounds
of all ways alternate, and medians and ratios are of the same run. Prints one JSON object.
"""

import importlib.util
import json
import multiprocessing
import os
import resource
import sys
import time

import numpy as np

from theory.calibration import calibrate
from wgm_jax.synthetic import SetSizes, zipf_draws

ROUNDS = 5
# Seconds of a round of one way.
ROUND = 1.0


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


def make_case(num_pairs, bound):
    """Data set and the calibration of one point."""
    sizes = SetSizes("lognormal", mean=8, spread=1.1, cap=1000)
    data = zipf_draws(s=1.2, num_pairs=num_pairs, set_sizes=sizes)
    return data, calibrate(eps=1.0, delta=1e-5, max_items_per_user=bound)


_worker = {}


def _start(num_pairs, bound, peer):
    """Prepare one worker process; `peer` is a file with a class `WGM`, or None."""
    made = VectorisedNumpy
    if peer:
        spec = importlib.util.spec_from_file_location("peer", peer)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made = module.WGM
    data, found = make_case(num_pairs, bound)
    _worker["run"] = made(data.items, data.offsets, bound, found.sigma, found.threshold)
    _worker["run"].trial()


def _trials(count):
    return sum(_worker["run"].trial() for _ in range(count)) / count


class Processes:
    """Trials of a NumPy way in one process per core."""

    def __init__(self, num_pairs, bound, peer=None):
        self.cores = len(os.sched_getaffinity(0))
        context = multiprocessing.get_context("spawn")
        self.pool = context.Pool(self.cores, _start, (num_pairs, bound, peer))
        # Every worker takes one and so has started.
        self.pool.map(time.sleep, [0.5] * self.cores, chunksize=1)
        self.share = 1
        while self.seconds() * 1e-3 * self.share * self.cores < ROUND / 2:
            self.share *= 2

    def seconds(self):
        """Seconds per 1,000 trials of a round."""
        start = time.perf_counter()
        means = self.pool.map(_trials, [self.share] * self.cores, chunksize=1)
        self.mean = float(np.mean(means))
        return 1000 * (time.perf_counter() - start) / (self.share * self.cores)


class Simulation:
    """Trials of `simulate`, run time only."""

    def __init__(self, data, found, num_trials, **options):
        from wgm_jax import simulate

        def run(count):
            self.trials = simulate(data, found, num_trials=count, **options)
            return self.trials.run_seconds

        self.run, self.count = run, num_trials
        start = time.perf_counter()
        taken = run(num_trials)
        self.compile = self.trials.compile_seconds
        self.first = time.perf_counter() - start
        while taken < ROUND / 2 and self.count < 2**17:
            self.count *= 2
            taken = run(self.count)

    def seconds(self):
        """Seconds per 1,000 trials of a round."""
        return 1000 * self.run(self.count) / self.count


def main(num_pairs, bound):
    data, found = make_case(num_pairs, bound)
    grid = calibrate(eps=np.geomspace(0.1, 3, 16), delta=1e-5, max_items_per_user=bound)
    near = calibrate(eps=np.geomspace(0.8, 1.25, 16), delta=1e-5, max_items_per_user=bound)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ways = {"numpy": Processes(num_pairs, bound)}
    if peer := os.environ.get("WGM_PEER"):
        ways["peer"] = Processes(num_pairs, bound, peer)
    ways["lanes"] = Simulation(data, found, 1000, sampler="lanes")
    ways["lanes_grid_of_16"] = Simulation(data, grid, 1000, sampler="lanes")
    ways["lanes_narrow_grid_of_16"] = Simulation(data, near, 1000, sampler="lanes")
    few = int(np.clip(2 * 10**7 / num_pairs, 8, 500))
    ways["padded"] = Simulation(data, found, few, sampler="padded")
    rounds = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            rounds[name].append(way.seconds())
    seconds = {name: float(np.median(values)) for name, values in rounds.items()}

    result = {"num_pairs": num_pairs, "max_items_per_user": bound, "num_items": data.num_items}
    result["seconds_per_1000"] = seconds
    result["ratios"] = {name: seconds[name] / seconds["lanes"] for name in seconds}
    result["lanes_compile"] = ways["lanes"].compile
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result["peak_megabytes"], result["megabytes_before"] = after / 1024, before / 1024
    means = {name: ways[name].mean for name in ("numpy", "peer") if name in ways}
    for name in ("lanes", "padded"):
        means[name] = float(ways[name].trials.missing_mass.mean())
    result["means"] = means
    print(json.dumps(result))


if __name__ == "__main__":
    main(int(float(sys.argv[1])), int(sys.argv[2]))
