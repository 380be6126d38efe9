import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from theory.calibration import calibrate
from wgm_jax import synthetic
from wgm_jax.bits import random_bits
from wgm_jax.engine import simulate
from wgm_jax.release import release


def released_counts(weights, sigma, threshold, trials, seed=0):
    weights = jnp.asarray(weights, jnp.float32)

    @jax.jit
    def run(keys, sigma, threshold):
        bits = jax.vmap(lambda key: random_bits(key, weights.shape))(keys)
        passed = jax.vmap(lambda b: release(b, weights, sigma, threshold))(bits)
        return jnp.sum(passed, axis=0, dtype=jnp.int32)

    keys = jax.random.split(jax.random.key(seed, impl="threefry2x32"), trials)
    return np.asarray(run(keys, np.float32(sigma), np.float32(threshold)))


@pytest.mark.parametrize(
    ("delta", "method", "bound"),
    [(0.1, "split", 1), (1e-3, "full", 1), (1e-5, "split", 10), (1e-5, "full", 1),
     (1e-6, "full", 1), (2e-7, "full", 1)],
)  # fmt: skip
def test_singletons_are_released_with_the_exact_probability(delta, method, bound):
    """1e8 decisions; a sampler of float32 normals gets the last cases wrong or never sees them."""
    found = calibrate(eps=1.0, delta=delta, max_items_per_user=bound, method=method)
    trials = simulate(synthetic.singletons(10_000), found, num_trials=10_000, seed=11)
    probability = float(ndtr((1 - found.threshold) / found.sigma))
    released = int(trials.num_released.sum())
    assert stats.binomtest(released, 10**8, probability).pvalue > 1e-7
    assert released > 0


@pytest.mark.parametrize("z", [-5.2, -4.5, -3.0, -0.1, 0.0, 0.1, 3.0, 4.5, 5.2])
def test_both_tails_are_exact(z):
    """1e8 decisions far on either side: misses of heavy items are as exact as lucky light ones."""
    weights = np.full(10_000, 10.0 + z)
    released = int(released_counts(weights, 1.0, 10.0, 10_000, seed=2).sum(dtype=np.int64))
    z = float(np.float32(10 + z) - 10)
    tail = float(ndtr(-abs(z)))
    rare = released if z < 0 else 10**8 - released
    assert stats.binomtest(rare, 10**8, tail).pvalue > 1e-8


def test_probability_of_a_release_over_the_whole_range():
    """The number of words that release equals 2^32 Phi(z), by bisection over the words."""
    z = np.linspace(-6, 6, 241)

    @jax.jit
    def passes(word, weights):
        return release(word, weights, jnp.float32(1), jnp.float32(8))

    weights = (z + 8).astype(np.float32)
    low, high = np.zeros(z.size, np.int64), np.full(z.size, 2**32, np.int64)
    for _ in range(33):  # least word that is not released
        middle = (low + high) // 2
        inside = np.minimum(middle, 2**32 - 1).astype(np.uint32)
        yes = np.asarray(passes(jnp.asarray(inside), jnp.asarray(weights)))
        yes = yes & (middle < 2**32)
        low, high = np.where(yes, middle + 1, low), np.where(yes, high, middle)
    exact = ndtr(weights.astype(np.float64) - 8)
    smaller = np.where(exact < 0.5, low / 2.0**32, 1 - low / 2.0**32)
    np.testing.assert_allclose(smaller, np.minimum(exact, 1 - exact), rtol=2e-5, atol=2.0**-32)


def test_zero_weight_is_never_released():
    counts = released_counts([0.0, 0.0, 1e-3, 0.0], 5.0, 1.0, 4000)
    assert counts[2] > 0 and counts[[0, 1, 3]].sum() == 0
    negative = released_counts([0.0, 0.0], 5.0, -100.0, 1000)
    assert negative.sum() == 0


def test_weighted_gaussian_of_unweighted_noise_is_caught():
    """PipelineDP scales noise and threshold by sqrt(Delta0); the right probabilities are these."""
    found = calibrate(eps=1.0, delta=1e-6, max_items_per_user=10)
    assert (round(found.threshold, 2), round(found.sigma, 3)) == (23.57, 4.365)
    weights = np.array([100.0, 100 / np.sqrt(10), 32.0, 32.0])
    exact = ndtr((weights - found.threshold) / found.sigma)
    np.testing.assert_allclose(exact[:3], [1.0, 0.9675, 0.9733], atol=5e-5)
    counts = released_counts(weights, found.sigma, found.threshold, 50_000)
    for count, probability in zip(counts, exact, strict=True):
        assert stats.binomtest(int(count), 50_000, float(probability)).pvalue > 1e-8

    # The same through data: 100 users who hold the same ten items.
    data = synthetic.equal_frequencies(num_items=10, frequency=100, set_size=10)
    released = simulate(data, found, num_trials=5000).num_released.sum()
    assert stats.binomtest(int(released), 50_000, float(exact[1])).pvalue > 1e-8


def test_common_draws_are_monotone_in_threshold_sigma_and_weight():
    key = jax.random.key(0, impl="threefry2x32")
    bits = random_bits(key, (20_000,))
    weights = jnp.linspace(0.1, 30, 20_000, dtype=jnp.float32)
    before = None
    for threshold in np.linspace(25, 5, 60, dtype=np.float32):
        now = np.asarray(release(bits, weights, jnp.float32(4), jnp.asarray(threshold)))
        assert before is None or not (before & ~now).any()
        before = now
    constant = jnp.full(20_000, 2**31 + 12345, jnp.uint32)
    rising = np.asarray(release(constant, weights, jnp.float32(4), jnp.float32(12)))
    assert (np.diff(rising.astype(int)) >= 0).all() and 0 < rising.sum() < rising.size


def test_jax_normals_end_inside_the_range_that_is_needed():
    """Why no normal is drawn: the largest float32 normal, and a threshold beyond it."""
    largest = np.nextafter(np.float32(1), np.float32(0))
    end = float(jnp.sqrt(jnp.float32(2)) * jax.lax.erf_inv(jnp.float32(largest)))
    assert end < 5.5
    found = calibrate(eps=0.1, delta=1e-10, max_items_per_user=100)
    assert (found.threshold - 0.1) / found.sigma > 7
