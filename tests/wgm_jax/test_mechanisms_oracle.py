"""The policies against plain Python, user by user with a dictionary, as the published codes run."""

import json
import math
import random
import time

import jax
import numpy as np
import pytest

from theory.calibration import calibrate
from wgm_jax.engine import simulate
from wgm_jax.set_union.frame import Parameters
from wgm_jax.set_union.kept_sets import KeptSets
from wgm_jax.set_union.policy_gaussian import (
    PolicyGaussian,
    PolicyGaussianL1,
    PolicyGaussianL1Published,
)
from wgm_jax.set_union.policy_greedy import PolicyGreedy
from wgm_jax.set_union.policy_laplace import PolicyLaplace
from wgm_jax.synthetic import SetSizes, zipf_draws


def descend_l2(weights, items, cap):
    gaps = {x: cap - weights.get(x, 0.0) for x in items if weights.get(x, 0.0) < cap}
    length = math.sqrt(sum(g * g for g in gaps.values()))
    for x, gap in gaps.items():
        weights[x] = cap if length <= 1 else weights.get(x, 0.0) + gap / length


def descend_l1(weights, items, cap):
    for x in items:
        weights[x] = min(cap, weights.get(x, 0.0) + len(items) ** -0.5)


def descend_l1_published(weights, items, cap):
    below = sorted(x for x in items if weights.get(x, 0.0) < cap)
    budget = 1.0
    for position, x in enumerate(below):
        left = len(below) - position
        gap = cap - weights.get(x, 0.0)
        if gap * gap * left < budget:
            weights[x] = cap
            budget -= gap * gap
        else:
            for y in below[position:]:
                weights[y] = weights.get(y, 0.0) + budget / math.sqrt(left)
            return


def fill_evenly(weights, items, cap):
    gaps = sorted((cap - weights.get(x, 0.0), x) for x in items)
    spent, number = 0.0, len(gaps)
    for k, (gap, _) in enumerate(gaps):
        level = (1 - spent) / (number - k)
        if level <= gap:
            for _, y in gaps[k:]:
                weights[y] = weights.get(y, 0.0) + level
            break
        spent += gap
    else:
        k = number
    for _, y in gaps[:k]:
        weights[y] = cap


def fill_greedily(weights, items, cap):
    budget = 1.0
    for x in items:
        gap = cap - weights.setdefault(x, 0.0)
        if gap >= budget:
            weights[x] += budget
            return
        weights[x] = cap
        budget -= gap


ORACLES = [
    (PolicyGaussian(), descend_l2),
    (PolicyGaussianL1(), descend_l1),
    (PolicyGaussianL1Published(), descend_l1_published),
    (PolicyLaplace(), fill_evenly),
    (PolicyGreedy(), fill_greedily),
]


def lists_of(data):
    return [row.tolist() for row in np.split(data.items, data.offsets[1:-1])]


@pytest.mark.parametrize(("mechanism", "act"), ORACLES)
def test_weights_of_many_users(mechanism, act):
    """600 users with up to 150 items, to 1e-11 in float64 and 2e-4 in float32."""
    sizes = SetSizes("lognormal", mean=9, spread=1.2, cap=150)
    data = zipf_draws(s=1.1, num_users=600, support=900, set_sizes=sizes, seed=3)
    assert data.max_set_size > 64  # more than one row of a prefix sum
    expected = {}
    for items in lists_of(data):
        act(expected, items, 6.5)
    assert sum(w > 6.4 for w in expected.values()) > 10  # many are full
    exact = np.array([expected.get(x, 0.0) for x in range(data.num_items)])

    weigh = jax.jit(lambda cap: mechanism.weigh(sets, Parameters(cap, cap, cap)).weights)
    sets = KeptSets.from_data(data)
    single = np.asarray(weigh(np.array(6.5, np.float32)))[: data.num_items]
    with jax.enable_x64(True):
        double = np.asarray(weigh(np.array(6.5)))[: data.num_items]
    np.testing.assert_allclose(double, exact, atol=1e-11)
    np.testing.assert_allclose(single, exact, atol=2e-4)


def python_trial(act, lists, bound, rng, scale, threshold, cap):
    """Missing pairs of one trial in plain Python."""
    weights: dict[int, float] = {}
    for items in lists:
        kept = items if len(items) <= bound else [items[i] for i in sorted(
            rng.sample(range(len(items)), bound))]  # fmt: skip
        act(weights, kept, cap)
    released = {x for x, w in weights.items() if w + rng.gauss(0.0, scale) > threshold}
    return sum(x not in released for items in lists for x in items)


@pytest.mark.benchmark
@pytest.mark.parametrize("bound", [10, 100])
def test_time_of_20_trials_beside_plain_python(bound):
    """N = 1e5; prints seconds for 20 trials, with and without compilation, and in plain Python."""
    sizes = SetSizes("lognormal", mean=8, spread=1.1, cap=1000)
    data = zipf_draws(s=1.2, num_pairs=100_000, set_sizes=sizes)
    calibration = calibrate(eps=1.0, delta=1e-5, max_items_per_user=bound)
    lists, rng = lists_of(data), random.Random(0)
    for name, act in (("policy-gaussian", descend_l2), ("policy-gaussian-l1", descend_l1)):
        start = time.perf_counter()
        trials = simulate(data, calibration, name, num_trials=20)
        ours = time.perf_counter() - start
        numbers = calibration.sigma, calibration.threshold
        cap = calibration.threshold + 3 * calibration.sigma
        start = time.perf_counter()
        missed = [python_trial(act, lists, bound, rng, *numbers, cap) for _ in range(3)]
        python = (time.perf_counter() - start) * 20 / 3
        shown = {
            "mechanism": name,
            "bound": bound,
            "seconds": round(ours, 3),
            "run_seconds": round(trials.run_seconds, 3),
            "python_seconds": round(python, 3),
        }
        print(json.dumps(shown))
        assert np.mean(missed) / data.num_pairs == pytest.approx(
            trials.missing_mass.mean(), rel=0.05
        )
