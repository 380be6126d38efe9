"""Draws from the exact law: the law itself, and the same as the mechanism's trials."""

import numpy as np
import pytest
from scipy.stats import binom

from theory import InvalidInput, Profile, calibrate, miss_probabilities, missing_mass_law
from wgm_jax import simulate
from wgm_jax.law_draws import missing_mass_draws
from wgm_jax.synthetic import SetSizes, zipf_draws

DATA = zipf_draws(s=1.5, num_pairs=3000, set_sizes=SetSizes("geometric", mean=3, cap=20))
GRID = calibrate(eps=np.array([0.5, 2.0]), delta=1e-5, max_items_per_user=20)
TRIALS = 20_000


def counts_are_those_of(law, values, alarm):
    """Counts below a few quantiles, each an exact binomial; alarm for both sides together."""
    for q in (0.01, 0.2, 0.5, 0.8, 0.99):
        level = law.quantile(q)
        below, chance = np.count_nonzero(values <= level), law.cdf(level)
        tail = min(binom.cdf(below, values.size, chance), binom.sf(below - 1, values.size, chance))
        assert tail > alarm / 2, q


def test_draws_and_trials_have_the_exact_law():
    profile = Profile.from_user_items(DATA, max_items_per_user=20)
    miss = miss_probabilities(profile, GRID)
    draws = missing_mass_draws(DATA, GRID, num_trials=TRIALS, seed=5)
    trials = simulate(DATA, GRID, num_trials=TRIALS, seed=5)
    assert draws.missing_mass.shape == (TRIALS, 2)
    assert draws.error < 1e-11
    for index in range(2):
        law = missing_mass_law(miss.at(index))
        for mass in (draws.missing_mass, trials.missing_mass):
            pairs = np.rint(mass[:, index] * DATA.num_pairs)
            np.testing.assert_allclose(pairs / DATA.num_pairs, mass[:, index], rtol=1e-14)
            counts_are_those_of(law, pairs, 1e-6 / 20)


def test_a_draw_depends_on_seed_and_index_only():
    many = missing_mass_draws(DATA, GRID, num_trials=100, seed=7).missing_mass
    part = missing_mass_draws(DATA, GRID, num_trials=10, seed=7, first_trial=30).missing_mass
    np.testing.assert_array_equal(many[30:40], part)
    alone = missing_mass_draws(DATA, GRID[1], num_trials=100, seed=7)
    np.testing.assert_array_equal(many[:, 1], alone.missing_mass)
    assert "exact law" in alone.sampler
    other = missing_mass_draws(DATA, GRID, num_trials=100, seed=8).missing_mass
    assert np.any(other != many)


def test_a_profile_without_users_will_do():
    from theory import hard_zipf_profile

    profile = hard_zipf_profile(1.0, 1.5, 10**12)
    noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    mass = missing_mass_draws(profile, noise, num_trials=1000).missing_mass
    law = missing_mass_law(miss_probabilities(profile, noise))
    counts_are_those_of(law, np.rint(mass * 10**12), 1e-7)


@pytest.mark.parametrize("bound", [3, np.array([20, 30])])
def test_clipped_data_are_refused(bound):
    noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=bound)
    with pytest.raises(InvalidInput, match="at least the largest set"):
        missing_mass_draws(DATA, noise, num_trials=10)
