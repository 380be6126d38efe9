"""Exact means where nothing is subsampled, against high precision item by item."""

import mpmath
import numpy as np
import pytest

from theory import InvalidInput, Profile, UserItems, calibrate, exact_mean, exact_means

SETS = {
    "one item": [{0}],
    "mixed": [{0, 1, 2, 3}, {0}, {0, 1}, {4, 5, 6}, {4}, {7}] + [{0, 8}] * 30,
    "singletons": [{i} for i in range(50)],
    "popular": [{0, 1}] * 200 + [{0, i} for i in range(2, 40)],
}


def mean_of(sets, calibration, bound=4):
    data = UserItems.from_sets(sets)
    return exact_mean(Profile.from_user_items(data, max_items_per_user=bound), calibration)


def slow_mean(sets, calibration):
    """Item by item, user by user, in 40 digits."""
    with mpmath.workdps(40):
        total = sum(len(held) for held in sets)
        sigma, threshold = mpmath.mpf(calibration.sigma), mpmath.mpf(calibration.threshold)
        mean = mpmath.mpf(0)
        for item in set().union(*sets):
            sizes = [len(held) for held in sets if item in held]
            weight = sum(1 / mpmath.sqrt(size) for size in sizes)
            mean += mpmath.mpf(len(sizes)) / total * mpmath.ncdf((threshold - weight) / sigma)
        return float(mean)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("eps", [0.1, 1.0, 20.0])
def test_the_mean_is_that_of_a_slow_sum(name, eps):
    made = calibrate(eps=eps, delta=1e-5, max_items_per_user=4)
    mean = mean_of(SETS[name], made)
    assert isinstance(mean, float)
    assert mean == pytest.approx(slow_mean(SETS[name], made), rel=1e-11)


def test_a_small_mean_keeps_its_relative_precision():
    sets = [{0}] * 20
    made = calibrate(eps=10.0, delta=1e-5, max_items_per_user=1)
    exact = slow_mean(sets, made)
    assert 0 < exact < 1e-100
    assert mean_of(sets, made, bound=1) == pytest.approx(exact, rel=1e-7, abs=0)


@pytest.mark.parametrize("shape", [(3,), (3, 1), (1, 3), (3, 2)])
def test_a_grid_gives_an_array_of_its_shape(shape):
    eps = np.linspace(0.5, 3.0, int(np.prod(shape))).reshape(shape)
    made = calibrate(eps=eps, delta=1e-5, max_items_per_user=4)
    mean = mean_of(SETS["mixed"], made)
    assert mean.shape == shape
    assert mean.dtype == np.float64
    alone = [
        mean_of(SETS["mixed"], calibrate(eps=float(e), delta=1e-5, max_items_per_user=4))
        for e in eps.ravel()
    ]
    np.testing.assert_allclose(mean.ravel(), alone, rtol=1e-13)


def test_one_call_for_many_contribution_bounds():
    data = UserItems.from_sets(SETS["mixed"])
    grid = calibrate(
        eps=np.array([[0.5], [3.0]]), delta=1e-5, max_items_per_user=np.array([[1, 2, 4]])
    )
    found = exact_means(data.item_classes, grid)
    assert found.shape == (2, 3)
    for (i, j), value in np.ndenumerate(found):
        bound = (1, 2, 4)[j]
        assert value == pytest.approx(mean_of(SETS["mixed"], grid[i, j], bound), rel=1e-14)
    alone = exact_means(data.item_classes, grid[0, 1])
    assert isinstance(alone, float)
    assert alone == pytest.approx(found[0, 1], rel=1e-14)


def test_a_calibration_for_another_bound_is_refused():
    made = calibrate(eps=1.0, delta=1e-5, max_items_per_user=np.array([4, 3]))
    with pytest.raises(InvalidInput, match="max_items_per_user = 3: must be 4"):
        mean_of(SETS["mixed"], made)


def test_bare_frequencies_are_refused():
    made = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    profile = Profile.from_frequencies([3, 2], max_set_size=2, max_items_per_user=1)
    with pytest.raises(InvalidInput, match="profile = .*must know the .*set sizes"):
        exact_mean(profile, made)
