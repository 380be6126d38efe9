import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from theory import UserItems
from theory.calibration import calibrate
from wgm_jax import synthetic
from wgm_jax.bits import random_bits, threefry
from wgm_jax.mechanism import padded_length
from wgm_jax.sampling import _LANES, pack_slots, scaled, subset_counts
from wgm_jax.wgm import WeightedGaussian, draw


def counts(data, keep, trials, seed=0):
    slots = pack_slots(data, max_items_per_user=keep)
    keys = jax.random.split(jax.random.key(seed, impl="threefry2x32"), trials)
    length = padded_length(data.num_items)
    run = jax.jit(
        jax.vmap(lambda key, s, k: subset_counts(key, s, k, length), in_axes=(0, None, None))
    )
    return np.asarray(run(keys, slots, np.uint32(keep)))


@pytest.mark.parametrize(("size", "keep"), [(2, 1), (5, 2), (6, 3), (7, 1), (4, 3), (8, 7), (9, 4)])
def test_every_subset_is_equally_likely(size, keep):
    drawn = counts(synthetic.one_user(size), keep, 50_000)[:, :size]
    codes = drawn @ (1 << np.arange(size))
    subsets = [sum(1 << i for i in chosen) for chosen in itertools.combinations(range(size), keep)]
    seen = np.array([np.sum(codes == code) for code in subsets])
    assert seen.sum() == 50_000  # nothing but subsets of that size
    assert stats.chisquare(seen).pvalue > 1e-8


def test_users_draw_independently():
    data = UserItems.from_sets([{0, 1, 2}, {3, 4, 5}, {6, 7}])
    drawn = counts(data, 1, 40_000)
    choices = [drawn[:, a:b].argmax(axis=1) for a, b in ((0, 3), (3, 6), (6, 8))]
    table = np.bincount(choices[0] * 6 + choices[1] * 2 + choices[2], minlength=18)
    assert stats.chisquare(table).pvalue > 1e-8


@pytest.mark.parametrize("keep", [1, 4, 30])
def test_every_clipped_user_keeps_exactly_that_many(keep):
    sizes = synthetic.SetSizes("lognormal", mean=9, spread=1.3, cap=300)
    data = synthetic.zipf_draws(s=1.0, num_users=700, support=2000, set_sizes=sizes, seed=4)
    clipped = data.set_sizes > keep
    drawn = counts(data, keep, 20)
    assert (drawn.sum(axis=1) == keep * clipped.sum()).all()
    held = np.bincount(data.items[np.repeat(clipped, data.set_sizes)], minlength=drawn.shape[1])
    assert (drawn <= held).all()


def test_packing_holds_every_pair_once_with_little_padding():
    sizes = synthetic.SetSizes("lognormal", mean=20, spread=0.5, cap=100)
    data = synthetic.zipf_draws(s=1.0, num_users=3000, set_sizes=sizes, seed=4)
    slots = pack_slots(data, max_items_per_user=10)
    real = slots.left > 0
    clipped = np.repeat(data.set_sizes > 10, data.set_sizes)
    np.testing.assert_array_equal(np.sort(slots.items[real]), np.sort(data.items[clipped]))
    assert slots.items.shape[1] in _LANES
    assert real.mean() > 1 / (1.25 * 1.25)
    assert (slots.items[~real] == padded_length(data.num_items)).all()
    # A block's columns count down, one user each.
    inside = real[:-1] & ~slots.first[1:, None]
    assert (slots.left[:-1][inside] == slots.left[1:][inside] + 1).all()


def test_nobody_to_clip_is_an_empty_stack():
    slots = pack_slots(synthetic.singletons(5), max_items_per_user=1)
    assert slots.items.shape[0] == 0


def test_scaled_product_is_exact():
    rng = np.random.default_rng(0)
    edge = np.array([0, 1, 0xFFFF, 0x10000, 0x7FFFFFFF, 0xFFFFFFFF], np.uint64)
    word = np.concatenate([rng.integers(0, 2**32, 10_000, np.uint64), np.repeat(edge, 6)])
    factor = np.concatenate([rng.integers(0, 2**32, 10_000, np.uint64), np.tile(edge, 6)])
    ours = scaled(jnp.asarray(word.astype(np.uint32)), jnp.asarray(factor.astype(np.uint32)))
    np.testing.assert_array_equal(np.asarray(ours, np.uint64), (word * factor) >> np.uint64(32))


def test_cipher_matches_published_vectors():
    """Known answers of Random123 for threefry2x32 with 20 rounds."""
    words = np.array(
        [
            [0, 0, 0, 0, 0x6B200159, 0x99BA4EFE],
            [0xFFFFFFFF] * 4 + [0x1CB996FC, 0xBB002BE7],
            [0x13198A2E, 0x03707344, 0x243F6A88, 0x85A308D3, 0xC4923A9C, 0x483DF7A0],
        ],
        np.uint32,
    )
    for key0, key1, high, low, *expected in words:
        key = jnp.array([key0, key1])
        found = threefry(key, jnp.array([high]), jnp.array([low]))
        assert [int(w[0]) for w in found] == [int(e) for e in expected]


def test_words_do_not_depend_on_padding_rows():
    key = jax.random.key(3, impl="threefry2x32")
    np.testing.assert_array_equal(random_bits(key, (5, 16)), random_bits(key, (9, 16))[:5])


def test_subsampling_and_noise_are_independent():
    """Noise words of an item have the same law whether or not the item was kept."""
    data = synthetic.equal_frequencies(num_items=8, frequency=4, set_size=4)
    state = WeightedGaussian().prepare(data, calibrate(eps=1.0, delta=0.1, max_items_per_user=2))
    keys = jax.random.split(jax.random.key(1, impl="threefry2x32"), 20_000)
    weights, bits = jax.jit(jax.vmap(draw, in_axes=(0, None)))(keys, state)
    weights, uniform = np.asarray(weights), np.asarray(bits) / 2.0**32
    for item in range(8):
        for word in range(8):
            light = weights[:, item] < np.median(weights[:, item])
            same = stats.ks_2samp(uniform[light, word], uniform[~light, word])
            assert same.pvalue > 1e-9
    correlation = np.corrcoef(weights[:, :8].T, uniform.T)[:8, 8:]
    assert np.abs(correlation).max() < 7 / np.sqrt(20_000)


@pytest.mark.parametrize("length", [*range(1, 200), 999, 12_345, 10**6])
def test_padding_is_even_and_small(length):
    padded = padded_length(length)
    assert padded >= length and padded % 2 == 0
    assert padded <= max(8, 1.25 * length)
