import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from wgm_jax.bits import seed_key
from wgm_jax.selection import noise as noise_module
from wgm_jax.selection.noise import LAPLACE, exponential, gumbel, trial_keys, uniform

KEYS = trial_keys(5, 0, 64)
ITEMS = np.arange(3000)


def test_numbers_depend_on_seed_trial_round_and_item_only():
    whole = uniform(KEYS[:, None], 3, ITEMS)
    assert whole.shape == (64, 3000) and whole.dtype == np.float64
    some = np.array([2999, 7, 1234])
    np.testing.assert_array_equal(
        uniform(trial_keys(5, 10, 2)[:, None], 3, some), whole[10:12, some]
    )
    pairs = uniform(KEYS[[3, 9]], np.array([3, 3]), np.array([5, 6]))
    np.testing.assert_array_equal(pairs, whole[[3, 9], [5, 6]])
    for other in (
        uniform(KEYS[:, None], 4, ITEMS),
        uniform(trial_keys(6, 0, 64)[:, None], 3, ITEMS),
        uniform(trial_keys(5 + 2**32, 0, 64)[:, None], 3, ITEMS),
        uniform(KEYS[:, None], 3, -1 - ITEMS),
    ):
        assert not (other == whole).any()


def test_keys_are_none_that_a_simulation_folds_in():
    folded = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(
        seed_key(5), np.arange(64, dtype=np.uint32)
    )
    both = np.concatenate([KEYS, np.asarray(jax.random.key_data(folded))])
    assert len({tuple(row) for row in both.tolist()}) == 128


def laplace(keys, round, items):
    return LAPLACE.quantile(uniform(keys, round, items))


def test_large_and_small_calls_agree_bit_by_bit():
    """Large calls are compiled, small ones are NumPy."""
    items = np.arange(20_000)
    whole = uniform(KEYS[:20, None], 3, items)
    rows = np.concatenate([uniform(key[None], 3, items)[None] for key in KEYS[:20]])
    np.testing.assert_array_equal(whole, rows)


@pytest.mark.parametrize("noise", [uniform, gumbel, exponential, laplace])
def test_numpy_and_jax_agree(noise):
    host = noise(KEYS[:8, None], 2, ITEMS)
    with jax.enable_x64(True):
        traced = jax.jit(noise)(jnp.asarray(KEYS[:8, None]), jnp.uint32(2), jnp.asarray(ITEMS))
        assert traced.dtype == np.float64
        traced = np.asarray(traced)
    if noise is uniform:
        np.testing.assert_array_equal(traced, host)
    np.testing.assert_allclose(traced, host, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    ("noise", "law"),
    [
        (uniform, stats.uniform()),
        (gumbel, stats.gumbel_r()),
        (exponential, stats.expon()),
        (laplace, stats.laplace()),
    ],
)
def test_law_of_the_noise(noise, law):
    values = noise(KEYS[:, None], 0, ITEMS).ravel()
    assert stats.kstest(values, law.cdf).pvalue > 1e-6
    # The upper decile separately: selections live there.
    cut = law.isf(0.01)
    upper = values[values > cut]
    assert stats.binomtest(upper.size, values.size, 0.01).pvalue > 1e-6
    assert stats.kstest(upper, lambda x: 1 - law.sf(x) / 0.01).pvalue > 1e-6


def test_rounds_and_items_are_uncorrelated():
    first = uniform(KEYS[:, None], 0, ITEMS).ravel() - 0.5
    for other in (uniform(KEYS[:, None], 1, ITEMS), uniform(KEYS[:, None], 0, ITEMS + 1)):
        correlation = 12 * np.mean(first * (other.ravel() - 0.5))
        assert abs(correlation) < 5.5 / np.sqrt(first.size)


def test_uniforms_stay_inside_the_unit_interval(monkeypatch):
    for word in (0, 2**32 - 1):
        same = np.full(4, word, np.uint32)
        monkeypatch.setattr(noise_module, "threefry", lambda *_, same=same: (same, same))
        values = gumbel(KEYS[:4], 0, np.arange(4))
        assert np.isfinite(values).all() and np.isfinite(exponential(KEYS[:4], 0, ITEMS[:4])).all()
        assert values[0] == pytest.approx(-3.6 if word == 0 else 36.74, abs=0.02)


@pytest.mark.parametrize(
    ("law", "oracle"),
    [
        (noise_module.GUMBEL, stats.gumbel_r),
        (noise_module.LAPLACE, stats.laplace),
        (noise_module.EXPONENTIAL, stats.expon),
    ],
)
def test_quantiles_and_cdfs(law, oracle):
    u = np.concatenate([np.logspace(-15, -1, 50), np.linspace(0.1, 1 - 1e-12, 50)])
    u = (np.floor(u * 2.0**52) + 0.5) * 2.0**-52  # numbers that occur
    np.testing.assert_allclose(law.quantile(u), oracle.ppf(u), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(law.cdf(law.quantile(u)), u, rtol=1e-10)
