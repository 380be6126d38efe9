"""The simulated law is that of a slow oracle, and has the exact marginals [E1].

False alarms: every test below compares p-values, valid for discrete data, with LEVEL; there are
fewer than 1,500 of them, hence below 1e-6 in all. Seeds are fixed.
"""

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from theory import UserItems
from theory.calibration import calibrate
from wgm_jax import synthetic
from wgm_jax.engine import simulate
from wgm_jax.wgm import WeightedGaussian

LEVEL = 6e-10
ORACLE_TRIALS, TRIALS = 1500, 6000

SIZES = synthetic.SetSizes("lognormal", mean=5, spread=0.8, cap=20)
DATA = {
    "zipf": synthetic.zipf_draws(s=1.1, num_users=25, support=40, set_sizes=SIZES, seed=1),
    "profile": synthetic.zipf_profile(
        C=2.0, s=1.5, num_pairs=90, set_sizes=synthetic.SetSizes("geometric", mean=4), seed=2
    ),
    "equal": synthetic.equal_frequencies(num_items=12, frequency=8, set_size=6),
    "mixed": UserItems.from_sets(
        [set(range(9))] * 6 + [{0}] * 4 + [{0, 1}] * 5 + [{2, 5, 7}] * 3 + [{10}, {11, 12}]
    ),
}
SETTINGS = [(name, bound) for name in DATA for bound in (1, 3, 100)]


def sets_of(data):
    return np.split(data.items, data.offsets[1:-1])


def calibration(bound):
    # Low thresholds, so that every item is sometimes released and sometimes not.
    return calibrate(eps=3.0, delta=0.1, max_items_per_user=bound)


def simulated_sets(data, bound, trials, seed=0):
    """(trials, num_items) bool from the mechanism itself."""
    mechanism = WeightedGaussian()
    state = mechanism.prepare(data, calibration(bound))
    keys = jax.random.split(jax.random.key(seed, impl="threefry2x32"), trials)
    run = jax.jit(jax.vmap(lambda key, s: mechanism.run(key, s).released, in_axes=(0, None)))
    return np.asarray(run(keys, state))[:, : data.num_items]


def oracle_sets(oracle, data, bound, trials, sampled=None):
    rng = np.random.default_rng(7)
    found = calibration(bound)
    return np.array(
        [
            oracle.released(
                sets_of(data),
                data.num_items,
                max_items_per_user=sampled or bound,
                sigma=found.sigma,
                threshold=found.threshold,
                rng=rng,
            )
            for _ in range(trials)
        ]
    )


def least_p_value(data, ours, theirs):
    """Smallest p-value over tests of marginals and of three functions of the whole set."""
    p_values = [
        stats.ks_2samp(ours @ weights, theirs @ weights).pvalue
        for weights in (
            data.frequencies.astype(float),  # missing mass
            np.ones(data.num_items),  # number released
            np.cos(np.arange(data.num_items) + 1.0),  # a generic direction: joint law
        )
    ]
    for a, b in zip(ours.sum(axis=0), theirs.sum(axis=0), strict=True):
        table = [[a, len(ours) - a], [b, len(theirs) - b]]
        p_values.append(stats.fisher_exact(table).pvalue)
    return min(p_values)


@pytest.mark.parametrize(("name", "bound"), SETTINGS)
def test_same_law_as_the_oracle(oracle, name, bound):
    data = DATA[name]
    theirs = oracle_sets(oracle, data, bound, ORACLE_TRIALS)
    assert least_p_value(data, simulated_sets(data, bound, TRIALS), theirs) > LEVEL


def test_the_comparison_sees_a_wrong_subset_size(oracle):
    data = DATA["equal"]
    theirs = oracle_sets(oracle, data, 3, ORACLE_TRIALS, sampled=2)
    assert least_p_value(data, simulated_sets(data, 3, TRIALS), theirs) < LEVEL


@pytest.mark.parametrize(("name", "bound"), SETTINGS)
def test_release_frequencies_have_the_exact_probability(oracle, name, bound):
    data, found, trials = DATA[name], calibration(bound), 40_000
    counts = simulated_sets(data, bound, trials, seed=3).sum(axis=0)
    base, laws = oracle.weight_laws(sets_of(data), data.num_items, bound)
    for item, law in enumerate(laws):
        weights = base[item] + np.arange(law.size) * bound**-0.5
        passes = ndtr((weights - found.threshold) / found.sigma) * (weights > 0)
        exact = min(1.0, float(law @ passes))  # the dot product may end at 1 + 1e-16
        assert stats.binomtest(int(counts[item]), trials, exact).pvalue > LEVEL


def test_engine_reports_what_the_mechanism_releases():
    """The engine's metrics have the law of metrics computed from the released sets."""
    data = DATA["zipf"]
    trials = simulate(data, calibration(3), num_trials=TRIALS, seed=5)
    missed = ~simulated_sets(data, 3, TRIALS, seed=6)
    mass = data.frequencies / data.num_pairs
    for ours, theirs in (
        (trials.missing_mass, missed @ mass),
        (trials.missing_mass_l2, np.sqrt(missed @ mass**2)),
        (trials.max_missing_mass, (missed * mass).max(axis=1)),
        (trials.num_missed, missed.sum(axis=1)),
        (trials.num_released, (~missed).sum(axis=1)),
    ):
        # Rounded: equal values that differ in the last digit would count as different.
        same = stats.ks_2samp(np.round(ours, 6), np.round(theirs, 6))
        assert same.pvalue > LEVEL
