"""Moments given the subsample: against enumeration, exact laws, and plain simulation."""

import itertools
from collections import Counter

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from experiments.statistics.means import mean_interval
from theory import InvalidInput, UserItems, calibrate
from theory.calibration import Calibration
from wgm_jax import synthetic
from wgm_jax.conditional import conditional_moments
from wgm_jax.engine import simulate

# Three clipped users at Delta0 = 2: 3 * 6 * 3 subsamples. Item 5 has no clipped holder, items 1
# and 6 no other ones: they may weigh nothing.
TINY = [{0, 1, 2}, {0, 6, 3, 4}, {0, 2, 4}, {0, 5}, {0}, {0, 3}, {5}, {2}, {2}, {4}, {4}, {4}]
NOISE = calibrate(eps=[3.0, 8.0], delta=0.1, max_items_per_user=2)
SIZES = synthetic.SetSizes("lognormal", mean=6, spread=1.0, cap=60)
DATA = synthetic.zipf_draws(s=1.2, num_pairs=4000, set_sizes=SIZES, support=3000, seed=3)
FOUND = calibrate(eps=[1.0, 3.0], delta=1e-2, max_items_per_user=4)


def enumerated(sets, noise):
    """Mean and variance given each subsample of equal probability, (2, subsamples, points)."""
    keep, items = noise.max_items_per_user[0], sorted(set().union(*sets))
    frequency = np.array([sum(x in held for held in sets) for x in items])
    mass = frequency / frequency.sum()
    choices = [list(itertools.combinations(sorted(s), min(len(s), keep))) for s in sets]
    found = []
    for subsample in itertools.product(*choices):
        weights = np.array([sum(len(s) ** -0.5 for s in subsample if x in s) for x in items])
        z = (noise.threshold[:, None] - weights) / noise.sigma[:, None]
        miss = np.where(weights > 0, ndtr(z), 1.0)
        hit = np.where(weights > 0, ndtr(-z), 0.0)
        found.append([miss @ mass, (miss * hit) @ mass**2])
    return np.moveaxis(np.array(found), 1, 0)


def test_every_trial_is_one_of_the_enumerated_subsamples_as_often_as_it_should():
    means, variances = enumerated(TINY, NOISE)
    trials = 3000
    ours = conditional_moments(UserItems.from_sets(TINY), NOISE, num_trials=trials, seed=4)
    # Subsamples with equal moments are one outcome.
    key = np.round(np.concatenate([means, variances], axis=1), 11)
    expected = Counter(map(tuple, key.tolist()))
    table = np.array(list(expected))
    seen = np.concatenate([ours.mean, ours.variance], axis=1)
    nearest = np.abs(seen[:, None] - table).max(axis=2).argmin(axis=1)
    np.testing.assert_allclose(seen, table[nearest], rtol=0, atol=2e-11)
    assert len(expected) > 20
    for index, times in enumerate(expected.values()):
        count = int(np.sum(nearest == index))
        probability = times / len(key)
        assert stats.binomtest(count, trials, probability).pvalue > 1e-7 / len(expected)


def test_moments_keep_float64_precision():
    means, variances = enumerated(TINY, NOISE)
    ours = conditional_moments(UserItems.from_sets(TINY), NOISE, num_trials=50)
    for mean, variance in zip(ours.mean, ours.variance, strict=True):
        index = np.abs(means - mean).sum(axis=1).argmin()
        np.testing.assert_allclose(mean, means[index], rtol=1e-13)
        np.testing.assert_allclose(variance, variances[index], rtol=1e-12)


def test_small_moments_keep_their_relative_precision():
    noise = calibrate(eps=[20.0, 200.0], delta=1e-2, max_items_per_user=2)
    sets = [{0, 1, 2}] + [{i, 3} for i in range(3)] * 3
    means, variances = enumerated(sets, noise)
    ours = conditional_moments(UserItems.from_sets(sets), noise, num_trials=20)
    assert 1e-100 < means[:, 1].max() < 1e-12
    for mean, variance in zip(ours.mean, ours.variance, strict=True):
        index = np.abs(means / mean - 1).sum(axis=1).argmin()
        np.testing.assert_allclose(mean, means[index], rtol=1e-12)
        np.testing.assert_allclose(variance, variances[index], rtol=1e-12)


def test_the_law_of_total_variance():
    means, variances = enumerated(TINY, NOISE)
    first, second = means.mean(axis=0), (variances + means**2).mean(axis=0)
    data = UserItems.from_sets(TINY)
    ours = conditional_moments(data, NOISE, num_trials=4000)
    plain = simulate(data, NOISE, num_trials=4000, seed=1, sampler="padded").missing_mass
    for point in range(2):
        for samples, exact in (
            (ours.mean[:, point], first[point]),
            (ours.variance[:, point] + ours.mean[:, point] ** 2, second[point]),
            (plain[:, point], first[point]),
            (plain[:, point] ** 2, second[point]),
        ):
            low, high = mean_interval(samples, alpha=1e-8)
            assert low <= exact <= high
            assert high - low < 0.15
    mean, variance = ours.mean, ours.variance
    total = variance.mean(axis=0) + mean.var(axis=0, ddof=1)
    np.testing.assert_allclose(ours.variance_of_missing_mass, total, rtol=1e-12)
    np.testing.assert_allclose(ours.standard_error, mean.std(axis=0, ddof=1) / 4000**0.5)
    np.testing.assert_allclose(ours.variance_reduction, total / mean.var(axis=0, ddof=1))


def test_the_mean_is_unbiased(oracle):
    sets = [DATA.items[a:b] for a, b in itertools.pairwise(DATA.offsets)]
    base, laws = oracle.weight_laws(sets, DATA.num_items, 4)
    ours = conditional_moments(DATA, FOUND, num_trials=2000)
    for point in range(2):
        exact = 0.0
        for item, law in enumerate(laws):
            weights = base[item] + np.arange(law.size) / 2.0
            z = (FOUND.threshold[point] - weights) / FOUND.sigma[point]
            exact += DATA.frequencies[item] * (law @ np.where(weights > 0, ndtr(z), 1.0))
        low, high = mean_interval(ours.mean[:, point], alpha=1e-7)
        assert low <= exact / DATA.num_pairs <= high
        # No proof at a fixed level, but six standard errors are tighter and the seed is fixed.
        error = abs(ours.missing_mass[point] - exact / DATA.num_pairs)
        assert error < 6 * ours.standard_error[point] < 1e-3


def test_subsamples_are_those_of_simulate():
    """Next to no noise: a trial's missing mass is a function of its subsample alone."""
    noise = calibrate(eps=1e5, delta=1e-9, max_items_per_user=2)
    ours = conditional_moments(DATA, noise, num_trials=70, seed=11, first_trial=5)
    plain = simulate(DATA, noise, num_trials=70, seed=11, first_trial=5, sampler="padded")
    assert np.unique(plain.missing_mass).size > 20
    np.testing.assert_allclose(ours.mean, plain.missing_mass, rtol=0, atol=1e-8)


def test_numbers_depend_on_seed_and_index_only():
    grid = calibrate(eps=[[0.5], [1.0], [3.0]], delta=[1e-2, 1e-6], max_items_per_user=4)
    whole = conditional_moments(DATA, grid, num_trials=30, seed=2)
    assert whole.mean.shape == whole.variance.shape == (30, 3, 2)
    assert whole.missing_mass.shape == (3, 2)
    later = conditional_moments(DATA, grid, num_trials=17, seed=2, first_trial=13)
    np.testing.assert_allclose(later.mean, whole.mean[13:], rtol=1e-13)
    tight = conditional_moments(DATA, grid[1, 0], num_trials=30, seed=2, memory_budget=1)
    np.testing.assert_allclose(tight.mean, whole.mean[:, 1, 0], rtol=1e-13)
    assert isinstance(tight.missing_mass, float)
    other = conditional_moments(DATA, grid, num_trials=30, seed=2**40 + 2)
    assert (other.mean != whole.mean).any()


def test_without_clipping_nothing_is_random():
    noise = calibrate(eps=[1.0, 2.0], delta=1e-2, max_items_per_user=60)
    ours = conditional_moments(DATA, noise, num_trials=5)
    assert not ours.clipped
    assert (ours.mean == ours.mean[0]).all()
    assert ours.standard_error.tolist() == [0, 0]
    assert ours.variance_reduction.tolist() == [np.inf, np.inf]
    sizes = np.repeat(DATA.set_sizes, DATA.set_sizes)
    weights = np.bincount(DATA.items, sizes**-0.5)
    mass = DATA.frequencies / DATA.num_pairs
    miss = ndtr((noise.threshold[:, None] - weights) / noise.sigma[:, None])
    np.testing.assert_allclose(ours.missing_mass, miss @ mass, rtol=1e-13)
    np.testing.assert_allclose(
        ours.variance_of_missing_mass, (miss * (1 - miss)) @ mass**2, rtol=1e-9
    )


def test_the_global_precision_is_left_alone():
    before = jax.config.jax_enable_x64
    conditional_moments(DATA, FOUND, num_trials=3)
    assert jax.config.jax_enable_x64 == before
    assert jax.numpy.zeros(1).dtype == (np.float64 if before else np.float32)


def test_bad_arguments_are_named(monkeypatch):
    for bad, name in (
        ({"num_trials": 0}, "num_trials"),
        ({"num_trials": 1, "seed": -1}, "seed"),
        ({"num_trials": 1, "first_trial": 2**32}, "first_trial"),
        ({"num_trials": 1, "memory_budget": 0}, "memory_budget"),
    ):
        with pytest.raises(InvalidInput) as error:
            conditional_moments(DATA, FOUND, **bad)
        assert error.value.name == name
    mixed = calibrate(eps=1.0, delta=1e-2, max_items_per_user=[1, 4])
    with pytest.raises(InvalidInput, match="one value per call"):
        conditional_moments(DATA, mixed, num_trials=1)
    stolen = Calibration(1.0, 1e-5, 100, "split", FOUND.sigma, FOUND.threshold)
    with pytest.raises(InvalidInput, match="spend"):
        conditional_moments(DATA, stolen, num_trials=1)
    monkeypatch.setattr("wgm_jax.conditional._UNIT", 0.01)
    with pytest.raises(InvalidInput, match="tells kept copies"):
        conditional_moments(DATA, FOUND, num_trials=1)


def test_one_trial_has_no_standard_error():
    assert np.isnan(conditional_moments(DATA, FOUND, num_trials=1).standard_error).all()
