from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from theory import InvalidInput
from wgm_jax import synthetic
from wgm_jax.synthetic import SetSizes


def assert_zipfian(data, C, s, num_pairs):
    """Exactly N pairs and N_(r) <= C N/r^s; s = p/q is compared in integers."""
    assert data.num_pairs == num_pairs and data.duplicates_removed == 0
    exponent = Fraction(repr(s))
    p, q = exponent.numerator, exponent.denominator
    limit = Fraction(repr(C)) * num_pairs
    for rank, count in enumerate(np.sort(data.frequencies)[::-1].tolist(), start=1):
        assert Fraction(count) ** q * rank**p <= limit**q


SHAPES = {
    "C": st.sampled_from([1.0, 1.5, 4.0, 64.0]),
    "s": st.sampled_from([1.1, 1.2, 1.5, 2.0, 3.0, 7.0]),
    "num_pairs": st.integers(1, 800),
}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(**SHAPES)
def test_hard_instance_is_zipfian_with_one_item_per_user(C, s, num_pairs):
    data = synthetic.hard_zipf(C=C, s=s, num_pairs=num_pairs)
    assert_zipfian(data, C, s, num_pairs)
    assert data.max_set_size == 1 and data.num_users == num_pairs


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    **SHAPES,
    law=st.sampled_from(["constant", "geometric", "lognormal"]),
    mean=st.integers(1, 6),
    seed=st.integers(0, 5),
)
def test_profile_is_zipfian_and_never_deals_an_item_twice(C, s, num_pairs, law, mean, seed):
    sizes = SetSizes(law, mean=mean, cap=50)
    try:
        data = synthetic.zipf_profile(C=C, s=s, num_pairs=num_pairs, set_sizes=sizes, seed=seed)
    except InvalidInput as error:
        assert error.name == "set_sizes" and sizes != SetSizes("constant", mean=1, cap=50)
        return
    # from_codes would have removed a repetition, so exactly N pairs means none.
    assert_zipfian(data, C, s, num_pairs)
    assert data.max_set_size <= 50


def test_dealing_succeeds_exactly_when_gale_and_ryser_say_so():
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(400):
        capacities = rng.integers(1, 6, rng.integers(1, 8))
        # A random composition of the same total into item frequencies.
        total = int(capacities.sum())
        cuts = np.sort(rng.choice(np.arange(1, total), min(total - 1, 3), replace=False))
        frequencies = np.sort(np.diff(np.concatenate(([0], cuts, [total]))))[::-1]
        ordered = np.sort(capacities)[::-1]
        feasible = all(
            ordered[:k].sum() <= sum(np.minimum(frequencies, k)) for k in range(1, ordered.size + 1)
        )
        try:
            users, items = synthetic._deal(frequencies, capacities)
        except InvalidInput:
            outcomes.add(False)
            assert not feasible
            continue
        pairs = set(zip(users.tolist(), items.tolist(), strict=True))
        dealt = len(pairs) == total
        if dealt:
            np.testing.assert_array_equal(np.bincount(users), capacities)
            np.testing.assert_array_equal(np.bincount(items), frequencies)
        assert dealt == feasible
        outcomes.add(dealt)
    assert outcomes == {True, False}


def test_profile_that_does_not_fit_says_what_helps():
    with pytest.raises(InvalidInput, match="copies") as error:
        synthetic.zipf_profile(C=1.0, s=2.0, num_pairs=1000, set_sizes=SetSizes("constant", 10))
    assert error.value.name == "set_sizes" and "100 users" in str(error.value)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_draws_reach_the_number_of_pairs_exactly(seed):
    sizes = SetSizes("lognormal", mean=8, spread=1.1, cap=200)
    for num_pairs in (1, 10, 999, 20_000):
        data = synthetic.zipf_draws(s=1.3, num_pairs=num_pairs, set_sizes=sizes, seed=seed)
        assert data.num_pairs == num_pairs and data.max_set_size <= 200


def test_draws_follow_the_law():
    """One draw per user: frequencies are multinomial with probabilities r^(-s)."""
    data = synthetic.zipf_draws(s=1.5, num_users=50_000, support=30, seed=5)
    law = np.arange(1, 31) ** -1.5
    assert data.num_items == 30  # so that item i is rank i + 1
    assert stats.chisquare(data.frequencies, 50_000 * law / law.sum()).pvalue > 1e-8


def test_everything_is_reproducible_and_depends_on_the_seed():
    sizes = SetSizes("geometric", mean=4)
    for make in (
        lambda seed: synthetic.zipf_draws(s=1.2, num_users=200, set_sizes=sizes, seed=seed),
        lambda seed: synthetic.zipf_profile(
            C=8.0, s=1.2, num_pairs=500, set_sizes=sizes, seed=seed
        ),
    ):
        first, again, other = make(1), make(1), make(2)
        np.testing.assert_array_equal(first.items, again.items)
        np.testing.assert_array_equal(first.offsets, again.offsets)
        assert first.items.tolist() != other.items.tolist()


@pytest.mark.parametrize("law", ["geometric", "lognormal"])
def test_set_sizes_have_the_stated_mean_and_cap(law):
    drawn = SetSizes(law, mean=20, spread=0.5).draw(np.random.default_rng(0), 200_000)
    assert drawn.min() >= 1
    # Rounding moves the mean by less than 0.05; the standard error is below 0.05.
    assert drawn.mean() == pytest.approx(20, abs=0.4)
    capped = SetSizes(law, mean=20, cap=25).draw(np.random.default_rng(0), 1000)
    assert capped.max() == 25


def test_small_data_sets():
    alone = synthetic.singletons(7)
    assert (alone.num_users, alone.num_items, alone.top_count) == (7, 7, 1)
    equal = synthetic.equal_frequencies(num_items=6, frequency=4, set_size=3)
    assert set(equal.frequencies) == {4} and set(equal.set_sizes) == {3}
    one = synthetic.one_user(2)
    assert (one.num_users, one.num_items, one.num_pairs) == (1, 2, 2)
    pair = synthetic.nested_pair(num_both=120, num_first=200)
    assert pair.frequencies.tolist() == [320, 120] and pair.num_users == 320


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: synthetic.zipf_draws(s=0.0, num_users=3), "s"),
        (lambda: synthetic.zipf_draws(s=1.0), "num_users"),
        (lambda: synthetic.zipf_draws(s=1.0, num_users=3, num_pairs=3), "num_users"),
        (lambda: synthetic.zipf_draws(s=1.0, num_users=0), "num_users"),
        (lambda: synthetic.zipf_draws(s=1.0, num_users=3, seed=-1), "seed"),
        (lambda: synthetic.zipf_profile(C=0.5, s=2.0, num_pairs=9), "C"),
        (lambda: synthetic.zipf_profile(C=1.0, s=1.0, num_pairs=9), "s"),
        (lambda: synthetic.hard_zipf(C=1.0, s=2.0, num_pairs=0), "num_pairs"),
        (lambda: synthetic.singletons(0), "num_users"),
        (lambda: synthetic.equal_frequencies(num_items=4, frequency=1, set_size=3), "set_size"),
        (lambda: SetSizes("constant", mean=2.5), "mean"),
        (lambda: SetSizes("geometric", mean=0.5), "mean"),
        (lambda: SetSizes("lognormal", mean=5, spread=-1.0), "spread"),
        (lambda: SetSizes("lognormal", mean=5, cap=3), "cap"),
    ],
)
def test_bad_arguments_are_named(call, name):
    with pytest.raises(InvalidInput) as error:
        call()
    assert error.value.name == name
