"""The simulated law of the released set is the exact one, for every mechanism of the frame.

The exact law sums over subsets, user orders and rounds, with weights and probabilities from the
frame's contract in float64. False alarms: below 400 binomial tests at LEVEL, under 1e-6 in all.
"""

import dataclasses
import itertools
from functools import cache

import jax
import numpy as np
import pytest
from scipy import stats

from theory import UserItems
from theory.calibration import calibrate
from wgm_jax import registry
from wgm_jax.engine import simulate
from wgm_jax.set_union.dp_sips import DpSips
from wgm_jax.set_union.frame import FramedMechanism
from wgm_jax.set_union.kept_sets import KeptSets
from wgm_jax.set_union.policy_gaussian import PolicyGaussian
from wgm_jax.set_union.policy_greedy import PolicyGreedy

LEVEL = 2e-9
TRIALS = 30_000
SETS = [(0, 1, 2), (0,), (0, 1), (0, 1), (2,)]
ITEMS, SLOTS = 3, 3
SLOW = pytest.mark.slow
QUICK = ("policy-gaussian", "policy-greedy-positive", "optimal-selection", "dp-sips-two-rounds")


def framed():
    """Names of all mechanisms of the frame; most are marked slow: each compiles for a second."""
    names = [info.name for info in registry.mechanisms() if info.task == "set-union"]
    names = [name for name in names if isinstance(registry.get(name), FramedMechanism)]
    return [name if name in QUICK else pytest.param(name, marks=SLOW) for name in names]


@cache
def weigher(mechanism):
    def weigh(rows, parameters):
        found = mechanism.weigh(KeptSets.from_rows(rows, ITEMS), parameters)
        return found.weights, found.support

    return jax.jit(jax.vmap(weigh, in_axes=(0, None)))


def one_round(mechanism, sets, bound, parameters):
    """Law of the set released in one round, (2^ITEMS,)."""
    kept = [
        list(itertools.combinations(s, min(len(s), bound))) if mechanism.clips else [s]
        for s in sets
    ]
    rows = np.full((int(np.prod([len(k) for k in kept])), len(sets), SLOTS), ITEMS, np.int32)
    for row, choice in zip(rows, itertools.product(*kept), strict=True):
        for slots, items in zip(row, choice, strict=True):
            slots[: len(items)] = items
    with jax.enable_x64(True):
        weights, support = map(np.asarray, weigher(mechanism)(rows, parameters))
    hit, miss = mechanism.probabilities(weights, parameters)
    hit, miss = np.where(support, hit, 0), np.where(support, miss, 1)
    law = np.zeros(2**ITEMS)
    for code in range(2**ITEMS):
        inside = [(code >> item) & 1 == 1 for item in range(ITEMS)]
        law[code] = np.where(inside, hit, miss).prod(axis=1).mean()
    return law


def exact_law(mechanism, sets, bound, calibration):
    """Law of the released set, (2^ITEMS,), users in the given order."""
    parameters = mechanism.parameters(calibration)
    law = np.zeros(2**ITEMS)
    law[0] = 1
    for index in range(mechanism.num_rounds):
        after = np.zeros_like(law)
        for code in np.flatnonzero(law):
            left = [tuple(item for item in s if not (code >> item) & 1) for s in sets]
            now = one_round(mechanism, left, bound, parameters.round(index))
            for more, probability in enumerate(now):
                after[code | more] += law[code] * probability
        law = after
    assert law.sum() == pytest.approx(1, abs=1e-12)
    return law


def check_law(mechanism, bound, law, calibration):
    data = UserItems.from_sets(SETS)
    states = mechanism.prepare(data, calibration)
    keys = jax.random.split(jax.random.key(3, impl="threefry2x32"), TRIALS)
    state = dataclasses.replace(
        states,
        parameters=jax.tree.map(lambda leaf: leaf[0], states.parameters),
        tables=jax.tree.map(lambda leaf: leaf[0], states.tables),
    )
    run = jax.jit(jax.vmap(lambda key, s: mechanism.run(key, s).released, in_axes=(0, None)))
    released = np.asarray(run(keys, state))
    assert not released[:, ITEMS:].any()
    seen = np.bincount(released[:, :ITEMS] @ (1 << np.arange(ITEMS)), minlength=2**ITEMS)
    for count, probability in zip(seen, law, strict=True):
        probability = min(1.0, float(probability))
        assert stats.binomtest(int(count), TRIALS, probability).pvalue > LEVEL


def calibration_of(bound):
    # Every item is sometimes released and sometimes not.
    return calibrate(eps=[4.0], delta=0.3, max_items_per_user=bound)


@pytest.mark.parametrize("bound", [2, pytest.param(1, marks=SLOW), pytest.param(5, marks=SLOW)])
@pytest.mark.parametrize("name", framed())
def test_released_set_has_the_exact_law(name, bound):
    mechanism, calibration = registry.get(name), calibration_of(bound)
    law = exact_law(mechanism, SETS, bound, calibration[0])
    assert np.sort(law)[-3] > 0.01  # several outputs are common
    check_law(mechanism, bound, law, calibration)


@pytest.mark.parametrize(
    "mechanism",
    [PolicyGreedy(order="random"), pytest.param(PolicyGaussian(order="random"), marks=SLOW)],
)
def test_random_order_averages_over_all_orders(mechanism):
    calibration = calibration_of(2)
    orders = list(itertools.permutations(range(len(SETS))))
    laws = [exact_law(mechanism, [SETS[i] for i in order], 2, calibration[0]) for order in orders]
    check_law(mechanism, 2, np.mean(laws, axis=0), calibration)
    stored = exact_law(mechanism, SETS, 2, calibration[0])
    assert np.abs(stored - np.mean(laws, axis=0)).max() > 1e-3


def test_the_comparison_sees_a_small_mistake():
    """Another split of the budget over two rounds."""
    calibration = calibration_of(2)
    wrong = exact_law(DpSips(split=(0.25, 0.75)), SETS, 2, calibration[0])
    with pytest.raises(AssertionError):
        check_law(DpSips(split=(0.3, 0.7)), 2, wrong, calibration)


@pytest.mark.parametrize("name", framed())
def test_the_engine_runs_it_over_a_grid(name):
    data = UserItems.from_sets([set(range(k % 7 + 1)) for k in range(40)])
    grid = calibrate(eps=[2.0, 8.0], delta=0.01, max_items_per_user=3)
    trials = simulate(data, grid, name, num_trials=40, seed=1)
    assert trials.missing_mass.shape == (40, 2) and trials.mechanism == name
    easy, hard = trials.num_released[:, 1].mean(), trials.num_released[:, 0].mean()
    assert easy > hard and trials.num_released.max() <= 7
    again = simulate(data, grid, name, num_trials=10, first_trial=30, seed=1, chunk_size=3)
    np.testing.assert_array_equal(again.num_released, trials.num_released[30:])
    # As it defines itself, a point of the grid is the same trial run for that point alone.
    options = {"num_trials": 40, "seed": 1, "sampler": "padded"}
    whole, alone = simulate(data, grid, name, **options), simulate(data, grid[1], name, **options)
    np.testing.assert_array_equal(alone.num_released, whole.num_released[:, 1])
