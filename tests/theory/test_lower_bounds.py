import json
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from theory import InvalidInput, Profile
from theory.calibration import calibrate
from theory.hard_zipf import hard_zipf_frequencies, hard_zipf_profile
from theory.lower_bounds import (
    hard_zipf_bound,
    instance_lower_bound,
    optimal_miss_probability,
    optimal_selection_probability,
    selection_threshold,
)

GOLDEN = json.loads((Path(__file__).parent / "golden" / "selection.json").read_text())


def recursion(eps, delta, last):
    """pi(0..last) in 700 digits (1 - pi reaches 1e-305), straight from [L0]."""
    with mpmath.workdps(700):
        grow, delta, pi = mpmath.e ** mpmath.mpf(eps), mpmath.mpf(delta), [mpmath.mpf(0)]
        for _ in range(last):
            now = pi[-1]
            pi.append(min(grow * now + delta, 1 - (1 - now - delta) / grow, mpmath.mpf(1)))
        return pi


def test_golden_selection_probabilities():
    for row in GOLDEN["optimal_selection_probability"]:
        point = {"eps": float(row["eps"]), "delta": float(row["delta"])}
        hit = float(optimal_selection_probability(row["n"], **point))
        miss = float(optimal_miss_probability(row["n"], **point))
        assert hit == pytest.approx(float(row["probability"]), rel=1e-10)
        assert miss == pytest.approx(float(row["miss_probability"]), rel=1e-10, abs=0)


def test_golden_selection_thresholds():
    for row in GOLDEN["kstar"]:
        k_star = selection_threshold(eps=float(row["eps"]), delta=float(row["delta"]))
        assert float(k_star) == pytest.approx(float(row["kstar"]), rel=1e-13)


@pytest.mark.parametrize("eps", [0.0, 1e-12, 1e-3, 0.05, 0.7, 1.0, 2.5, 8.0, 50.0, 700.0, 1e5])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-5, 0.01, 0.3, 0.5])
def test_closed_form_is_the_recursion(eps, delta):
    exact = recursion(eps, delta, 120)
    counts = np.arange(121)
    with mpmath.workdps(700):
        missed = [1 - p for p in exact]
    hit = optimal_selection_probability(counts, eps=eps, delta=delta)
    miss = optimal_miss_probability(counts, eps=eps, delta=delta)
    np.testing.assert_allclose(hit, [float(p) for p in exact], rtol=1e-11)
    # Near saturation 1 - pi is itself a difference of numbers of size delta.
    slack = 1e-13 * delta / np.expm1(min(eps, 700.0)) if eps else 1e-15
    np.testing.assert_allclose(miss, [float(q) for q in missed], rtol=1e-10, atol=slack)
    assert np.all(np.diff(hit) >= 0) and np.all((hit >= 0) & (hit <= 1))


def test_selection_probability_is_private():
    """Neighbouring counts satisfy both inequalities of (eps, delta)-DP, one of them tightly."""
    eps, delta = 0.3, 1e-4
    hit = optimal_selection_probability(np.arange(200), eps=eps, delta=delta)
    miss = optimal_miss_probability(np.arange(200), eps=eps, delta=delta)
    up = hit[1:] - np.exp(eps) * hit[:-1] - delta
    down = miss[:-1] - np.exp(eps) * miss[1:] - delta
    assert np.all(up <= 1e-14) and np.all(down <= 1e-14)
    open_ = hit[1:] < 1
    assert np.all(np.maximum(up, down)[open_] >= -1e-13)


def test_selection_is_fast_and_broadcasts():
    counts = np.array([0, 1, 10**6, 10**12])
    hit = optimal_selection_probability(counts, eps=np.geomspace(1e-9, 1, 400)[:, None], delta=1e-9)
    assert hit.shape == (400, 4)
    assert np.all(hit[:, 0] == 0) and np.all(hit[:, 3] == 1)
    tiny = optimal_selection_probability(10**6, eps=1e-9, delta=1e-9)
    assert float(tiny) == pytest.approx(1e-3 * (1 + 5e-4), rel=1e-6)


@pytest.mark.parametrize("bad", [[-1], [0.5], [np.nan], ["three"]])
def test_bad_counts_are_named(bad):
    with pytest.raises(InvalidInput, match="counts = .*whole numbers of at least 0"):
        optimal_selection_probability(bad, eps=1.0, delta=1e-5)


def test_threshold_is_where_selection_reaches_one_half():
    for eps in (0.0, 1e-9, 0.01, 0.5, 1.0, 1.0000001, 4.0, 800.0, 1e5):
        for delta in (1e-300, 1e-9, 1e-5, 0.1):
            k_star = float(selection_threshold(eps=eps, delta=delta))
            assert np.isfinite(k_star) and k_star >= 1
            if k_star < 1e15:
                below = np.floor(k_star * (1 - 1e-12))
                hit = optimal_selection_probability([below, below + 2], eps=eps, delta=delta)
                assert hit[0] <= 0.5 + 1e-12 < hit[1] + 2e-12
    assert float(selection_threshold(eps=0.0, delta=0.125)) == 4.0


def test_instance_bound_by_hand_and_over_a_grid():
    data = Profile.from_frequencies([40, 9, 9, 2, 1], max_set_size=1, max_items_per_user=1)
    eps = np.array([0.0, 0.1, 1.0, 5.0])
    bound = instance_lower_bound(data, eps=eps, delta=1e-3)
    for index, value in enumerate(eps):
        pi = recursion(float(value), 1e-3, 40)
        by_hand = sum(n * (1 - pi[n]) for n in (40, 9, 9, 2, 1)) / 61
        assert bound.value[index] == pytest.approx(float(by_hand), rel=1e-12)
        alone = instance_lower_bound(data, eps=float(value), delta=1e-3)
        assert alone.value == bound.value[index]
    assert np.all(bound.details["half_tail"] <= bound.value)
    assert np.all(np.diff(bound.value) < 0)
    assert (bound.side, bound.statistic, bound.tag) == ("lower", "mean", "[L2]")
    np.testing.assert_allclose(
        bound.details["half_tail"], data.tail(bound.details["k_star"]) / 2, rtol=0
    )


def hard_by_hand(constant, s, pairs):
    """W* for whole s in exact arithmetic, rank by rank."""
    x = Fraction(constant) * pairs
    values = []
    while (value := int(x / (len(values) + 1) ** s)) >= 1:
        values.append(value)
    first = len(values)
    while first > 0 and sum(values[first - 1 :]) <= pairs:
        first -= 1
    kept = values[first:] or [0]
    kept[0] += pairs - sum(kept)
    return kept, values[first] if first < len(values) else 0


@given(st.sampled_from([1, Fraction(3, 2), 4, 64, 1000]), st.integers(2, 6), st.integers(1, 3000))
@settings(max_examples=300, deadline=None)
def test_hard_data_are_exact(constant, s, pairs):
    frequencies = hard_zipf_frequencies(float(constant), float(s), pairs)
    assert frequencies.tolist() == hard_by_hand(constant, s, pairs)[0]
    assert frequencies.sum() == pairs
    ranks = range(1, frequencies.size + 1)
    ok = (int(f) * r**s <= constant * pairs for f, r in zip(frequencies, ranks, strict=True))
    assert all(ok)


@pytest.mark.parametrize(
    ("constant", "s", "pairs"),
    [(1.0, 1.2, 3 * 6**6), (1.1, 3.0, 3430 * 10**4), (2.0, 2.5, 10**5)],
)
def test_floors_are_exact_where_floats_fall_below(constant, s, pairs):
    """C N/r^s is whole at some ranks (7776^(6/5) = 6^6; 1.1 is read as 11/10): none is off."""
    x, power = Fraction(str(constant)) * pairs, Fraction(str(s))
    num, den = power.numerator, power.denominator
    frequencies = hard_zipf_frequencies(constant, s, pairs).tolist()
    last = int(float(x) ** (1 / s)) + 2
    while last**num > x**den:
        last -= 1
    whole = 0
    # Consecutive ranks up to the last that reaches 1; the first entry also holds the remainder.
    for rank, value in zip(range(last, 0, -1), reversed(frequencies[1:]), strict=False):
        assert value**den * rank**num <= x**den < (value + 1) ** den * rank**num
        whole += value**den * rank**num == x**den
    assert whole >= 1


def test_irrational_exponents_use_high_precision():
    s, pairs = float(np.sqrt(2.0)), 10**5
    frequencies = hard_zipf_frequencies(1.0, s, pairs)
    with mpmath.workdps(50):
        values = [int(mpmath.floor(pairs / mpmath.mpf(r) ** mpmath.mpf(s))) for r in range(2, 3441)]
    assert frequencies[1:].tolist() == [v for v in values if v][-(frequencies.size - 1) :]


@pytest.mark.parametrize(
    ("constant", "s", "pairs", "items"),
    [(1e300, 1.5, 10**6, 10**6), (1.5, 50.0, 100, 1), (1.0, 1e6, 7, 1), (1.0, 2.0, 1, 1)],
)
def test_extreme_hard_data(constant, s, pairs, items):
    profile = hard_zipf_profile(constant, s, pairs)
    assert (profile.num_pairs, profile.num_items) == (pairs, items)


def test_a_trillion_pairs_are_a_formula():
    profile = hard_zipf_profile(1.0, 1.5, 10**12)
    assert profile.num_pairs == 10**12
    log_caps = np.log(1e12) - 1.5 * np.log(profile.ranks)
    assert np.all(np.log(profile.frequencies) <= log_caps + 1e-12)


@pytest.mark.parametrize("s", [2, 3, 5])
@pytest.mark.parametrize("pairs", [10, 100, 1000, 30_000])
def test_hard_bound_is_half_of_the_exact_tail(s, pairs):
    eps = np.array([0.0, 0.05, 0.3, 1.0, 3.0, 20.0])
    for constant in (1, 4):
        bound = hard_zipf_bound(float(constant), float(s), pairs, eps=eps, delta=1e-3)
        frequencies, first_value = hard_by_hand(constant, s, pairs)
        formula = bound.details["formula"]
        for index, k_star in enumerate(bound.details["k_star"]):
            level = int(k_star)
            tail = sum(f for f in frequencies if f <= level)
            assert bound.value[index] == pytest.approx(tail / (2 * pairs), rel=1e-14)
            # The printed sum is right below the first rank's own value, and only there.
            assert np.isnan(formula[index]) == (level >= first_value)
            if level < first_value:
                assert formula[index] == pytest.approx(tail / (2 * pairs), rel=1e-14)


def test_the_sum_of_l3_overcounts_above_the_first_value():
    """K = 2 lies below the top frequency 9 of W* = (9, 1), yet the sum counts a rank it lost."""
    counts = [int((10 / j) ** 0.5) for j in (1, 2, 3)]
    printed = (counts[0] + counts[1] - 2 * counts[2]) / 20
    delta = 1 / 5  # eps = 0: k* = 2.5
    bound = hard_zipf_bound(1.0, 2.0, 10, eps=0.0, delta=delta)
    assert bound.details["k_star"] == 2.5
    assert (printed, bound.value) == (0.15, 0.05)
    assert np.isnan(bound.details["formula"])


def test_smooth_form_is_a_shape_not_a_bound():
    eps = np.geomspace(0.05, 5, 40)
    usual = hard_zipf_bound(1.0, 2.0, 10**8, eps=eps, delta=1e-5)
    ratio = usual.details["smooth"] / usual.value
    assert 1.13 < ratio.max()
    # Not by a little either, once K is 1 and N small.
    small = hard_zipf_bound(1.5, 5.0, 10**4, eps=5.0, delta=1e-5)
    assert small.details["smooth"] > 2.5 * small.value > 0


def test_hard_bound_never_exceeds_the_instance_optimum():
    for s in (1.2, 1.5, 2.0, 3.0):
        eps = np.array([0.1, 1.0, 4.0])
        optimum = instance_lower_bound(hard_zipf_profile(1.0, s, 10**5), eps=eps, delta=1e-5)
        assert np.all(hard_zipf_bound(1.0, s, 10**5, eps=eps, delta=1e-5).value <= optimum.value)


def test_singletons_are_missed():
    singletons = Profile.from_frequencies([1] * 10, max_set_size=1, max_items_per_user=1)
    for eps in (0.0, 1.0, 1e5):
        value = instance_lower_bound(singletons, eps=eps, delta=1e-5).value
        assert value == pytest.approx(1 - 1e-5, rel=1e-15)


def test_the_weighted_gaussian_mechanism_is_above_the_optimum():
    """One item a user: the exact mean of WGM, sum_x a(x) Phi((T - N(x))/sigma), beats no [L2]."""
    profile = hard_zipf_profile(1.0, 1.5, 10**5)
    share = profile.frequencies * profile.multiplicity / profile.num_pairs
    for method in ("split", "full"):
        grid = calibrate(
            eps=np.array([0.1, 1.0, 10.0]), delta=1e-5, max_items_per_user=1, method=method
        )
        mean = ndtr((grid.threshold[:, None] - profile.frequencies) / grid.sigma[:, None]) @ share
        least = instance_lower_bound(profile, eps=grid.eps, delta=grid.delta).value
        assert np.all(least < mean) and np.all(mean < 3 * least)
