"""On a GPU: both samplers run there unchanged, with the law of the mechanism."""

import jax
import numpy as np
import pytest
from scipy.stats import binom

from theory import Profile, calibrate, miss_probabilities
from wgm_jax import simulate
from wgm_jax.synthetic import SetSizes, zipf_draws

pytestmark = pytest.mark.gpu
TRIALS = 4000


@pytest.fixture(scope="module")
def gpus():
    try:
        return jax.local_devices(backend="gpu")
    except RuntimeError:
        pytest.skip("JAX sees no GPU")


@pytest.mark.parametrize("sampler", ["padded", "lanes"])
@pytest.mark.parametrize("bound", [1, 3, 20])
def test_the_top_item_is_missed_as_often_as_it_should(gpus, sampler, bound):
    data = zipf_draws(s=1.5, num_pairs=3000, set_sizes=SetSizes("geometric", mean=3, cap=20))
    noise = calibrate(eps=np.array([0.5, 2.0]), delta=1e-5, max_items_per_user=bound)
    trials = simulate(data, noise, num_trials=TRIALS, sampler=sampler, devices=gpus)
    assert trials.sampler.endswith("gpu")
    miss = miss_probabilities(Profile.from_user_items(data, max_items_per_user=bound), noise)
    # Trials in which the top item is missed: binomial, with its exact probability.
    top = data.top_count / data.num_pairs
    if np.count_nonzero(data.frequencies == data.top_count) == 1:
        for index in range(2):
            missed = np.count_nonzero(trials.max_missing_mass[:, index] == top)
            chance = miss.at(index).miss[0]
            assert binom.sf(missed - 1, TRIALS, chance) > 1e-8
            assert binom.cdf(missed, TRIALS, chance) > 1e-8


def test_a_gpu_and_the_cpu_keep_the_same_copies(gpus):
    """Item counts are integers: equal numbers wherever the noise does not decide by a rounding."""
    data = zipf_draws(s=1.5, num_pairs=3000, set_sizes=SetSizes("geometric", mean=3, cap=20))
    noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=2)
    here = simulate(data, noise, num_trials=500, sampler="padded", devices=jax.devices("cpu"))
    there = simulate(data, noise, num_trials=500, sampler="padded", devices=gpus)
    assert np.count_nonzero(here.num_released != there.num_released) <= 5
