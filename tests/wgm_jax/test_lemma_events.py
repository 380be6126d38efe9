"""What is observed inside a trial is what happened there.

False alarms: two statistical tests, at 1e-7 each. Seeds are fixed.
"""

import math

import jax
import numpy as np
import pytest
from scipy import stats

from theory import Profile, UserItems, calibrate
from wgm_jax import simulate, synthetic
from wgm_jax.lemma_events import lemma_events
from wgm_jax.wgm import WeightedGaussian, draw

FALSE_ALARM = 1e-7
TRIALS = 60
SIZES = synthetic.SetSizes("geometric", mean=5, cap=12)
DATA = synthetic.zipf_draws(s=1.1, num_users=80, support=60, set_sizes=SIZES, seed=1)


def calibration(bound):
    # Low thresholds, so that items that are kept are sometimes missed and sometimes not.
    return calibrate(eps=np.array([1.0, 5.0]), delta=0.1, max_items_per_user=bound)


def inside(data, made, *, seed=0):
    """Weights (trials, items) and releases (trials, items, eps), one trial after the other."""
    mechanism = WeightedGaussian()
    state = mechanism.prepare(data, made)
    key = jax.random.key(seed, impl="threefry2x32")
    points = [mechanism.prepare(data, made[index]) for index in range(len(made))]
    weigh = jax.jit(draw)
    run = jax.jit(lambda key, state: mechanism.run(key, state).released)
    weights, released = [], []
    for number in range(TRIALS):
        own = jax.random.fold_in(key, np.uint32(number))
        weights.append(np.asarray(weigh(own, state)[0])[: data.num_items])
        outcome = [np.asarray(run(own, point))[: data.num_items] for point in points]
        released.append(np.stack(outcome, axis=-1))
    return np.stack(weights), np.stack(released)


@pytest.mark.parametrize("bound", [1, 3])
def test_a_slow_look_at_the_same_trials_sees_the_same(bound):
    made = calibration(bound)
    events = lemma_events(DATA, made, beta=0.05, num_trials=TRIALS, seed=3)
    weights, released = inside(DATA, made, seed=3)
    lost = np.where(weights > 0, 0, DATA.frequencies)
    np.testing.assert_allclose(events.lost_mass, lost.sum(axis=1) / DATA.num_pairs, rtol=1e-14)
    np.testing.assert_allclose(events.max_lost_mass, lost.max(axis=1) / DATA.num_pairs, rtol=1e-14)
    missed = np.where(released, 0, weights[:, :, None])
    np.testing.assert_allclose(events.heaviest_missed, missed.max(axis=1), rtol=1e-6)
    # The slow look is at the trials of the padded sampler, or the above says nothing.
    trials = simulate(DATA, made, num_trials=TRIALS, seed=3, sampler="padded")
    mass = np.where(released, 0, DATA.frequencies[:, None]).sum(axis=1) / DATA.num_pairs
    np.testing.assert_allclose(trials.missing_mass, mass, rtol=1e-12)
    assert np.all(events.lost_mass[:, None] <= trials.missing_mass + 1e-12)
    assert np.all(events.max_lost_mass[:, None] <= trials.max_missing_mass + 1e-12)
    assert np.all(events.heaviest_missed <= weights.max(axis=1)[:, None] * (1 + 1e-6))
    assert np.ptp(events.heaviest_missed) > 0


def test_nothing_is_lost_where_nothing_is_clipped():
    made = calibration(DATA.max_set_size)
    events = lemma_events(DATA, made, beta=0.05, num_trials=TRIALS)
    assert not events.lost_mass.any()
    assert not events.max_lost_mass.any()
    assert not events.few_copies.any()


def test_one_of_two_items_is_lost_always():
    made = calibration(1)
    events = lemma_events(synthetic.one_user(2), made, beta=0.5, num_trials=TRIALS)
    assert events.lost_mass.tolist() == [0.5] * TRIALS
    assert events.max_lost_mass.tolist() == [0.5] * TRIALS
    assert set(events.heaviest_missed.ravel()) <= {0.0, 1.0}


def test_few_copies_happens_as_often_as_it_should():
    """Twelve users hold the same two items and keep one: few if either keeps at most two."""
    data = UserItems.from_sets([{0, 1}] * 12)
    trials, beta = 4000, 0.99
    assert 12 >= 8 / 0.5 * math.log(2 / beta)
    made = calibration(1)
    count = int(lemma_events(data, made, beta=beta, num_trials=trials).few_copies.sum())
    rate = 2 * stats.binom.cdf(2, 12, 0.5)
    assert stats.binomtest(count, trials, rate).pvalue > FALSE_ALARM
    # One user fewer, and no item is frequent enough for the lemma to speak of it.
    data = UserItems.from_sets([{0, 1}] * 11)
    assert not lemma_events(data, made, beta=beta, num_trials=trials).few_copies.any()


@pytest.mark.parametrize("bound", [1, 2])
def test_the_mean_of_the_lost_mass_is_exact(bound):
    trials = 10_000
    keep = np.minimum(1.0, bound / np.repeat(DATA.set_sizes, DATA.set_sizes))
    lost = np.ones(DATA.num_items)
    np.multiply.at(lost, DATA.items, 1 - keep)
    exact = float(lost @ DATA.frequencies) / DATA.num_pairs
    assert Profile.from_user_items(DATA, max_items_per_user=bound).clipped
    seen = lemma_events(DATA, calibration(bound), beta=0.05, num_trials=trials).lost_mass
    # Hoeffding; the lost mass lies between 0 and what is not held by a user with a whole set.
    reach = DATA.frequencies[lost > 0].sum() / DATA.num_pairs
    radius = reach * math.sqrt(math.log(2 / FALSE_ALARM) / (2 * trials))
    assert exact > 2 * radius, "the test could not fail"
    assert abs(seen.mean() - exact) <= radius
