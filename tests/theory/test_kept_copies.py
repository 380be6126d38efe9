"""Union bounds on the events of Lemmas C.3 and C.4, against enumeration of all subsets."""

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from theory import InvalidInput, Profile, UserItems, calibrate
from theory.kept_copies import few_copies_probability, heavy_miss_probability

SETS = st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=4), min_size=1, max_size=5)


def outcomes(sets, bound):
    """Kept copies and weights of every item, one pair of dicts per equally likely outcome."""
    choices = [list(combinations(sorted(held), min(bound, len(held)))) for held in sets]
    for kept in product(*choices):
        copies, weights = {}, {}
        for subset in kept:
            for item in subset:
                copies[item] = copies.get(item, 0) + 1
                weights[item] = weights.get(item, 0.0) + len(subset) ** -0.5
        yield copies, weights


@settings(max_examples=60, deadline=None)
@given(SETS, st.integers(1, 2), st.integers(1, 4))
def test_few_copies_are_no_likelier_than_said(sets, bound, level):
    profile = Profile.from_user_items(UserItems.from_sets(sets), max_items_per_user=bound)
    frequency = {x: sum(x in held for held in sets) for x in set().union(*sets)}
    heavy = [x for x, count in frequency.items() if count >= level]
    bad = [
        any(copies.get(x, 0) < profile.keep_probability * frequency[x] / 2 for x in heavy)
        for copies, _ in outcomes(sets, bound)
    ]
    assert np.mean(bad) <= few_copies_probability(profile, level) + 1e-12


@settings(max_examples=60, deadline=None)
@given(SETS, st.integers(1, 2), st.floats(0.3, 3.0), st.floats(0.1, 1.5))
def test_missed_heavy_items_are_no_likelier_than_said(sets, bound, level, sigma):
    profile = Profile.from_user_items(UserItems.from_sets(sets), max_items_per_user=bound)
    noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=bound)
    # Another sigma and threshold, by scaling: the statement holds for all.
    object.__setattr__(noise, "sigma", sigma)
    object.__setattr__(noise, "threshold", 1.0)
    bad = []
    for _, weights in outcomes(sets, bound):
        hit = [ndtr((h - 1.0) / sigma) for h in weights.values() if h > level]
        bad.append(1 - np.prod(hit))
    assert np.mean(bad) <= heavy_miss_probability(profile, noise, level) + 1e-12


def test_values_by_hand():
    # 100 users of two items each, one of them common: K ~ Bin(100, 1/2), p* N/2 = 25.
    data = UserItems.from_sets([{0, user} for user in range(1, 101)])
    profile = Profile.from_user_items(data, max_items_per_user=1)
    expected = np.exp(-(24 * np.log(24 / 50) - 24 + 50))
    assert few_copies_probability(profile, 50) == pytest.approx(expected, rel=1e-12)
    assert few_copies_probability(profile, 101) == 0.0
    noise = calibrate(eps=np.array([0.5, 1.0]), delta=1e-5, max_items_per_user=1)
    level = noise.threshold + noise.sigma
    found = heavy_miss_probability(profile, noise, level)
    np.testing.assert_allclose(found, ndtr(-1.0), rtol=1e-12)  # only the common item can
    assert heavy_miss_probability(profile, noise, np.array([200.0, 200.0])).tolist() == [0, 0]


def test_bare_frequencies_are_refused():
    profile = Profile.from_frequencies([3], max_set_size=2, max_items_per_user=1)
    with pytest.raises(InvalidInput, match="profile = .*set sizes"):
        few_copies_probability(profile, 1)
