"""Exact miss probabilities of data sets against a plain per-user reading of the theory."""

import importlib.util
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from theory import InvalidInput, Profile, UserItems, calibrate, hard_zipf_profile
from theory.miss_probability import exact_mean, loss_probabilities, miss_probabilities


@pytest.fixture(scope="module")
def weight_laws():
    """Laws of the weights from the slow implementation in tests/oracle_wgm.py."""
    path = Path(__file__).resolve().parents[1] / "oracle_wgm.py"
    spec = importlib.util.spec_from_file_location("oracle_wgm", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.weight_laws


def some_sets(seed, num_users=60, num_items=40, most=12):
    """Sets of uneven sizes with popular and rare items, all items in use."""
    rng = np.random.default_rng(seed)
    chances = 1 / np.arange(1, num_items + 1)
    sets = [
        set(rng.choice(num_items, size=k, replace=False, p=chances / chances.sum()).tolist())
        for k in rng.integers(1, most, num_users)
    ]
    return [*sets, set(range(num_items))]


def slow_misses(base, laws, calibration):
    """Miss and hit of every item from the test suite's own weight laws, in float64."""
    bound = calibration.max_items_per_user
    miss, hit = np.zeros(base.size), np.zeros(base.size)
    for item, law in enumerate(laws):
        weight = base[item] + np.arange(law.size) / np.sqrt(bound)
        margin = (calibration.threshold - weight) / calibration.sigma
        miss[item] = law @ np.where(weight == 0, 1.0, ndtr(margin))
        hit[item] = law @ np.where(weight == 0, 0.0, ndtr(-margin))
    return miss, hit


@pytest.mark.parametrize("bound", [1, 2, 5, 100])
@pytest.mark.parametrize("seed", range(3))
def test_every_item_agrees_with_the_plain_reading(seed, bound, weight_laws):
    sets = some_sets(seed)
    data = UserItems.from_sets(sets)
    made = calibrate(eps=2.0, delta=1e-5, max_items_per_user=bound)
    misses = miss_probabilities(Profile.from_user_items(data, max_items_per_user=bound), made)
    place = data.item_classes.class_of_item
    coded = np.split(data.items, data.offsets[1:-1])
    miss, hit = slow_misses(*weight_laws(coded, data.num_items, bound), made)
    np.testing.assert_allclose(misses.miss[place], miss, rtol=1e-12)
    np.testing.assert_allclose(misses.hit[place], hit, rtol=1e-12)
    np.testing.assert_array_equal(misses.frequencies[place], data.frequencies)
    shares = data.frequencies / data.num_pairs
    assert misses.mean_missing_mass == pytest.approx(shares @ miss, rel=1e-12)
    assert misses.mean_missed == pytest.approx(miss.sum(), rel=1e-12)
    assert misses.mean_power(2.0) == pytest.approx(shares**2 @ miss, rel=1e-12)
    assert misses.independent == (bound >= data.max_set_size)


@pytest.mark.parametrize("shape", [(4,), (2, 3), (1, 1), (2, 1, 2)])
def test_a_grid_is_its_points(shape):
    profile = Profile.from_user_items(UserItems.from_sets(some_sets(3)), max_items_per_user=3)
    eps = np.geomspace(0.2, 20, int(np.prod(shape))).reshape(shape)
    made = calibrate(eps=eps, delta=1e-6, max_items_per_user=3)
    misses = miss_probabilities(profile, made)
    mean = exact_mean(profile, made)
    assert misses.miss.shape == (*shape, misses.frequencies.size)
    assert mean.shape == misses.mean_missed.shape == shape
    for index in np.ndindex(shape):
        alone = miss_probabilities(profile, made[index])
        np.testing.assert_allclose(misses.at(index).miss, alone.miss, rtol=1e-11)
        np.testing.assert_allclose(misses.at(index).hit, alone.hit, rtol=1e-11)
        assert isinstance(alone.mean_missing_mass, float)
        assert mean[index] == pytest.approx(alone.mean_missing_mass, rel=1e-11)


@pytest.mark.parametrize("eps", [0.1, 1.0, 20.0])
def test_without_clipping_it_is_the_sum_over_users(eps):
    sets = some_sets(4)
    data = UserItems.from_sets(sets)
    made = calibrate(eps=eps, delta=1e-5, max_items_per_user=40)
    exact = mpmath.mpf(0)
    with mpmath.workdps(40):
        for item in range(40):
            sizes = [len(held) for held in sets if item in held]
            weight = mpmath.fsum(1 / mpmath.sqrt(size) for size in sizes)
            miss = mpmath.ncdf((made.threshold - weight) / made.sigma)
            exact += mpmath.mpf(len(sizes)) / data.num_pairs * miss
    mean = exact_mean(Profile.from_user_items(data, max_items_per_user=40), made)
    assert mean == pytest.approx(float(exact), rel=1e-12)


def test_the_mean_falls_with_eps_and_stays_above_what_subsampling_loses():
    data = UserItems.from_sets([{0, i} for i in range(1, 31)] * 3)
    profile = Profile.from_user_items(data, max_items_per_user=1)
    made = calibrate(eps=np.geomspace(0.1, 1e5, 30), delta=0.4, max_items_per_user=1)
    means = exact_mean(profile, made)
    assert np.all(np.diff(means) < 1e-12)
    assert means[-1] < means[0] - 0.1
    # Every rare item has 3 holders who keep it with probability 1/2; item 0 is never lost.
    lost = loss_probabilities(profile)
    assert lost.mean_missing_mass == pytest.approx(0.5 / 8, rel=1e-12)
    assert lost.mean_missing_mass < means[-1]


def test_losses_are_products_over_the_holders():
    sets = some_sets(5)
    data = UserItems.from_sets(sets)
    for bound in (1, 3, 40):
        lost = loss_probabilities(Profile.from_user_items(data, max_items_per_user=bound))
        place = data.item_classes.class_of_item
        users = np.repeat(np.arange(data.num_users), data.set_sizes)
        for item in range(data.num_items):
            sizes = data.set_sizes[users[data.items == item]]
            drops = [1 - mpmath.mpf(min(bound, int(size))) / int(size) for size in sizes]
            exact = mpmath.fprod(drops)
            assert lost.miss[place[item]] == pytest.approx(float(exact), rel=1e-13, abs=0)
            assert lost.hit[place[item]] == pytest.approx(float(1 - exact), rel=1e-13, abs=0)


@pytest.mark.parametrize("pairs", [10**6, 10**12])
def test_a_zipf_profile_of_single_items_is_a_sum_of_normal_tails(pairs):
    profile = hard_zipf_profile(1.0, 1.5, pairs)
    made = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    with mpmath.workdps(30):
        rare = profile.frequencies < 80
        terms = [
            int(n) * int(times) * mpmath.ncdf((made.threshold - int(n)) / made.sigma)
            for n, times in zip(profile.frequencies[rare], profile.multiplicity[rare], strict=True)
        ]
        exact = mpmath.fsum(terms) / profile.num_pairs
    assert exact_mean(profile, made) == pytest.approx(float(exact), rel=1e-11)


def test_bare_frequencies_are_refused():
    profile = Profile.from_frequencies([5, 3], max_set_size=4, max_items_per_user=2)
    made = calibrate(eps=1.0, delta=1e-5, max_items_per_user=2)
    for ask in (miss_probabilities, exact_mean):
        with pytest.raises(InvalidInput, match="profile = .*must know the set sizes"):
            ask(profile, made)
    with pytest.raises(InvalidInput, match="profile = .*must know the set sizes"):
        loss_probabilities(profile)


@pytest.mark.parametrize("bound", [3, [2, 3]])
def test_a_calibration_for_another_bound_is_refused(bound):
    profile = Profile.from_user_items(UserItems.from_sets(some_sets(6)), max_items_per_user=2)
    made = calibrate(eps=1.0, delta=1e-5, max_items_per_user=bound)
    with pytest.raises(InvalidInput, match="must be 2, the Delta0 of the profile"):
        miss_probabilities(profile, made)
