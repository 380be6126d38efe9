import numpy as np
import pytest

from theory import InvalidInput, UserItems
from theory.calibration import calibrate
from wgm_jax import synthetic
from wgm_jax.censored import censoring
from wgm_jax.engine import simulate


@pytest.mark.parametrize(("bound", "users"), [(1, 23), (10, 75), (100, 252), (1000, 845)])
def test_users_with_full_sets_that_an_item_needs(bound, users):
    found = calibrate(eps=1.0, delta=1e-6, max_items_per_user=bound)
    small = synthetic.equal_frequencies(num_items=bound, frequency=users - 1, set_size=bound)
    large = synthetic.equal_frequencies(num_items=bound, frequency=users, set_size=bound)
    assert censoring(small, found).users_with_full_sets == users
    assert censoring(small, found).everything
    assert not censoring(large, found).everything


def test_largest_weight_counts_clipped_users_as_keeping_the_item():
    data = UserItems.from_sets([{0, 1, 2, 3}, {0}, {1, 2}])
    found = censoring(data, calibrate(eps=1.0, delta=0.1, max_items_per_user=2))
    assert found.largest_weight == pytest.approx(1 + 2**-0.5)
    share = censoring(data, calibrate(eps=100.0, delta=0.5, max_items_per_user=1)).share_possible
    assert 0 < share < 1


def test_simulation_says_that_nothing_comes_out():
    data = synthetic.singletons(30)
    found = calibrate(eps=1.0, delta=1e-5, max_items_per_user=100)
    (note,) = simulate(data, found, num_trials=1).notes
    assert "largest weight is 1.0, the threshold 20.8" in note and "208 users" in note
    loose = synthetic.equal_frequencies(num_items=2, frequency=50)
    assert simulate(loose, found, num_trials=1).notes == ()


def test_a_grid_is_judged_at_its_easiest_point():
    data = synthetic.equal_frequencies(num_items=1, frequency=30)
    grid = calibrate(eps=[0.1, 1.0], delta=1e-5, max_items_per_user=1)
    assert censoring(data, grid).threshold == np.min(grid.threshold)
    with pytest.raises(InvalidInput, match="one value"):
        censoring(data, calibrate(eps=1.0, delta=1e-5, max_items_per_user=[1, 2]))
