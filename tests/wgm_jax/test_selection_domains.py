import jax.numpy as jnp
import numpy as np
import pytest

from theory import InvalidInput
from theory.calibration import calibrate
from wgm_jax import metrics, synthetic
from wgm_jax.engine import simulate
from wgm_jax.mechanism import Release
from wgm_jax.selection.domains import released_sets

SIZES = synthetic.SetSizes("lognormal", mean=6, spread=1.0, cap=60)
DATA = synthetic.zipf_draws(s=1.2, num_pairs=4000, set_sizes=SIZES, support=3000, seed=3)
GRID = calibrate(eps=np.array([1.0, 0.3]), delta=1e-2, max_items_per_user=4)


def masks(**options):
    return np.concatenate(list(released_sets(DATA, GRID, seed=9, **options)))


def test_sets_are_those_of_a_simulation_whatever_the_chunks():
    # Numbers of trials and budgets as in the tests of the engine: programs are shared.
    whole = masks(num_trials=40)
    assert whole.shape == (40, 2, DATA.num_items)
    trials = simulate(DATA, GRID, num_trials=40, seed=9, sampler="padded")
    np.testing.assert_array_equal(whole.sum(axis=2), trials.num_released)
    missed = (~whole * DATA.frequencies).sum(axis=2)
    np.testing.assert_array_equal(missed / DATA.num_pairs, trials.missing_mass)
    np.testing.assert_array_equal(masks(num_trials=15, first_trial=20), whole[20:35])
    small = list(released_sets(DATA, GRID, seed=9, num_trials=40, memory_budget=10**6))
    assert len(small) > 4
    np.testing.assert_array_equal(np.concatenate(small), whole)


@pytest.mark.parametrize("num_items", [1, 32, 33])
def test_masks_survive_packing(num_items):
    rng = np.random.default_rng(num_items)
    mask = rng.random(num_items) < 0.5
    padded = np.pad(mask, (0, 7))
    words = metrics.released_words(Release(jnp.asarray(padded)), jnp.ones(num_items + 7, jnp.int32))
    unpacked = metrics.unpack_words(np.asarray(words["released"]), num_items)
    np.testing.assert_array_equal(unpacked, mask)


def test_a_grid_has_one_axis():
    with pytest.raises(InvalidInput, match="one axis"):
        next(released_sets(DATA, GRID[0], num_trials=1))
