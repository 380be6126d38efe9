import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theory import Bound, InvalidInput, Profile, UserItems


@given(st.lists(st.integers(1, 12), min_size=1, max_size=30), st.integers(1, 5))
def test_classes_hold_the_same_data(frequencies, bound):
    profile = Profile.from_frequencies(frequencies, max_set_size=4, max_items_per_user=bound)
    assert profile.num_pairs == sum(frequencies)
    assert profile.num_items == len(frequencies)
    assert profile.top_count == max(frequencies)
    assert np.all(np.diff(profile.frequencies) < 0)
    for tau in (-1, 0, 0.5, 1, 3.5, 12, 100):
        brute = sum(f for f in frequencies if f <= tau) / sum(frequencies)
        assert profile.tail(tau) == pytest.approx(brute, abs=1e-15)
    again = Profile.from_frequencies(
        profile.frequencies, multiplicity=profile.multiplicity, max_set_size=4, max_items_per_user=1
    )
    assert again.ranks.tolist() == profile.ranks.tolist()


def test_keep_probability():
    data = UserItems.from_sets([range(8), range(3)])
    profiles = {b: Profile.from_user_items(data, max_items_per_user=b) for b in (1, 4, 8, 20)}
    assert {b: p.keep_probability for b, p in profiles.items()} == {1: 0.125, 4: 0.5, 8: 1, 20: 1}
    assert [p.clipped for p in profiles.values()] == [True, True, False, False]


def test_bad_profiles_are_named():
    with pytest.raises(InvalidInput, match=r"frequencies = .*whole numbers >= 1"):
        Profile.from_frequencies([3, 0], max_set_size=1, max_items_per_user=1)
    with pytest.raises(InvalidInput, match="max_items_per_user = 2.5: must be a whole number"):
        Profile.from_frequencies([3], max_set_size=1, max_items_per_user=2.5)  # pyright: ignore


def test_vacuous_bounds():
    upper = Bound(np.array([0.5, 1.0, 7.0]), "[U3]", "Theorem 3.3", "missing_mass", "upper", "mean")
    assert upper.vacuous.tolist() == [False, True, True]
    lower = Bound(0.0, "[L2]", "Theorem 3.5", "missing_mass", "lower", "mean")
    assert lower.vacuous
    weight = Bound(20.0, "[C.4]", "Lemma C.4", "weight", "upper", "quantile")
    assert not weight.vacuous
    assert upper.at(2).value == 7.0
