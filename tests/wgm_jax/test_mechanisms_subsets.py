"""Uniform subsets of what is left of every user."""

import itertools

import jax
import numpy as np
import pytest
from scipy import stats

from theory import UserItems
from wgm_jax import synthetic
from wgm_jax.set_union.kept_sets import KeptSets
from wgm_jax.set_union.subsets import clip, keep_subsets


def masks(data, keep, alive, trials, seed=0):
    """(trials, num_pairs) bool."""
    sets = KeptSets.from_data(data)
    length = sets.items.shape[0]
    clipped = clip(data, max_items_per_user=keep, num_pairs=length)
    padded = np.pad(alive, (0, length - alive.size))
    keys = jax.random.split(jax.random.key(seed, impl="threefry2x32"), trials)
    run = jax.jit(jax.vmap(keep_subsets, in_axes=(0, None, None, None)))
    kept = np.asarray(run(keys, clipped, padded, np.uint32(keep)))
    assert not kept[:, data.num_pairs :].any()
    return kept[:, : data.num_pairs]


@pytest.mark.parametrize("left", [[0, 1, 2, 3, 4, 5], [0, 2, 3, 5], [1, 4, 5]])
def test_every_subset_of_what_is_left_is_equally_likely(left):
    data = UserItems.from_sets([{9}, set(range(6)), {9, 1}])
    alive = np.ones(9, bool)
    alive[1:7] = np.isin(np.arange(6), left)
    kept = masks(data, 2, alive, 40_000)
    assert kept[:, [0, 7, 8]].all()  # users of at most two items keep all
    codes = kept[:, 1:7] @ (1 << np.arange(6))
    subsets = [(1 << a) + (1 << b) for a, b in itertools.combinations(left, 2)]
    seen = np.array([np.sum(codes == code) for code in subsets])
    assert seen.sum() == 40_000
    assert stats.chisquare(seen).pvalue > 1e-8


@pytest.mark.parametrize("keep", [1, 3, 10])
def test_sizes_are_exact_whatever_is_left(keep):
    sizes = synthetic.SetSizes("lognormal", mean=9, spread=1.3, cap=200)
    data = synthetic.zipf_draws(s=1.0, num_users=400, support=900, set_sizes=sizes, seed=4)
    alive = np.random.default_rng(0).random(data.num_pairs) < 0.4
    kept = masks(data, keep, alive, 10)
    assert not (kept & ~alive).any()
    owners = np.repeat(np.arange(data.num_users), data.set_sizes)
    left = np.bincount(owners[alive], minlength=data.num_users)
    for mask in kept:
        number = np.bincount(owners[mask], minlength=data.num_users)
        np.testing.assert_array_equal(number, np.minimum(left, keep))


def test_rows_and_data_hold_the_same_sets():
    data = UserItems.from_sets([{0, 1, 2}, {3}, {1, 3}])
    stored = KeptSets.from_data(data)
    rows = np.array([[0, 1, 2], [3, 8, 8], [1, 3, 8]], np.int32)
    built = KeptSets.from_rows(rows, stored.num_items)
    for sets in (stored, built):
        assert sets.counts[:3].tolist() == [3, 1, 2]
        assert sets.support[:5].tolist() == [True] * 4 + [False]
        ones = np.ones(sets.items.shape, np.float32)
        assert sets.add_up(ones)[:4].tolist() == [1, 2, 1, 2]
        assert sets.by_user(ones)[:3].tolist() == [3, 1, 2]
        # A window of the longest set fits from every start.
        assert int(np.max(sets.starts)) + sets.longest <= sets.items.shape[0]
