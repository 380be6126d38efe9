"""Exact means where nothing is subsampled, against high precision item by item."""

import mpmath
import numpy as np
import pytest

from theory import InvalidInput, UserItems, calibrate
from theory.exact import exact_mean_unclipped, item_weights

SETS = {
    "one item": [{0}],
    "mixed": [{0, 1, 2, 3}, {0}, {0, 1}, {4, 5, 6}, {4}, {7}] + [{0, 8}] * 30,
    "singletons": [{i} for i in range(50)],
    "popular": [{0, 1}] * 200 + [{0, i} for i in range(2, 40)],
}


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
    mean = exact_mean_unclipped(UserItems.from_sets(SETS[name]), made)
    assert isinstance(mean, float)
    assert mean == pytest.approx(slow_mean(SETS[name], made), rel=1e-11)


def test_a_small_mean_keeps_its_relative_precision():
    sets = [{0}] * 20
    made = calibrate(eps=10.0, delta=1e-5, max_items_per_user=1)
    exact = slow_mean(sets, made)
    assert 0 < exact < 1e-100
    mean = exact_mean_unclipped(UserItems.from_sets(sets), made)
    assert mean == pytest.approx(exact, rel=1e-7, abs=0)


def test_weights_are_sums_over_the_holders():
    weights = item_weights(UserItems.from_sets(SETS["mixed"]))
    expected = [0.5 + 1 + 31 / 2**0.5, 0.5 + 1 / 2**0.5, 0.5, 0.5, 1 + 1 / 3**0.5]
    expected += [1 / 3**0.5, 1 / 3**0.5, 1, 30 / 2**0.5]
    np.testing.assert_allclose(weights, expected, rtol=1e-14)


@pytest.mark.parametrize("shape", [(3,), (3, 1), (1, 3), (3, 2)])
def test_a_grid_gives_an_array_of_its_shape(shape):
    data = UserItems.from_sets(SETS["mixed"])
    eps = np.linspace(0.5, 3.0, int(np.prod(shape))).reshape(shape)
    made = calibrate(eps=eps, delta=1e-5, max_items_per_user=4)
    mean = exact_mean_unclipped(data, made)
    assert mean.shape == shape
    assert mean.dtype == np.float64
    alone = [
        exact_mean_unclipped(data, calibrate(eps=float(e), delta=1e-5, max_items_per_user=4))
        for e in eps.ravel()
    ]
    np.testing.assert_allclose(mean.ravel(), alone, rtol=1e-13)


@pytest.mark.parametrize("bound", [1, 3, np.array([4, 3])])
def test_clipped_data_are_refused(bound):
    data = UserItems.from_sets(SETS["mixed"])
    made = calibrate(eps=1.0, delta=1e-5, max_items_per_user=bound)
    with pytest.raises(InvalidInput, match="must be at least the largest set, 4"):
        exact_mean_unclipped(data, made)
