import itertools

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm

from theory import InvalidInput, Profile, UserItems
from theory.calibration import Calibration, calibrate
from theory.lemmas import lemma_c2_frequency, lemma_c3_frequency, lemma_c4_weight
from theory.miss_bound import miss_probability_bound
from theory.upper_bounds import instance_bound, linf_bound, tau_u1, tau_u1_star, zipf_bound
from theory.zipf import ZipfCertificate, zipf_certificate


def noise(sigma, threshold, bound):
    """A calibration by hand, small enough for exact enumeration to see events."""
    return Calibration(1.0, 1e-5, bound, "split", sigma, threshold)


def zipf_profile(bound=1, size=1, top=10**6):
    frequencies = [top // r**2 for r in range(1, int(top**0.5) + 1)]
    return Profile.from_frequencies(frequencies, max_set_size=size, max_items_per_user=bound)


# --- the union bounds as formulas -----------------------------------------------------------------


def test_plain_forms_are_the_formulas():
    data = Profile.from_frequencies([40, 9, 9, 2], max_set_size=12, max_items_per_user=3)
    noisy, beta, items, size, kept = noise(2.0, 9.0, 3), 0.02, 4, 12, 3
    assert lemma_c2_frequency(data, beta).details["plain"] == pytest.approx(
        np.log(items / beta) * size / kept, rel=1e-14
    )
    assert lemma_c3_frequency(data, beta).details["plain"] == pytest.approx(
        8 * size / kept * np.log(items / beta), rel=1e-14
    )
    assert lemma_c4_weight(data, noisy, beta).details["plain"] == pytest.approx(
        9 + 2 * norm.isf(beta / items), rel=1e-13
    )
    weight = 2 * size / kept**0.5 * (9 + 2 * norm.isf(beta / 2 / items))
    assert tau_u1(data, noisy, beta).details["plain"] == pytest.approx(
        max(8 * size / kept * np.log(2 * items / beta), weight), rel=1e-13
    )
    whole = Profile.from_frequencies([40, 9, 9, 2], max_set_size=12, max_items_per_user=12)
    assert tau_u1(whole, noise(2.0, 9.0, 12), beta).details["plain"] == pytest.approx(
        size**0.5 * (9 + 2 * norm.isf(beta / items)), rel=1e-13
    )


def test_value_is_the_least_solution_with_both_counts():
    noisy, beta, ratio = noise(4.0, 20.0, 2), 0.05, 5 / 2
    for frequencies in ([30] * 5, [3] * 10**4, [900] + [1] * 1000):
        data = Profile.from_frequencies(frequencies, max_set_size=5, max_items_per_user=2)

        def count(level, data=data):
            return min(data.num_items, max(1.0, data.num_pairs / level))

        def rhs(level, count=count):
            weight = 2 * 5 / 2**0.5 * (20 + 4 * norm.isf(beta / 2 / count(level)))
            return max(8 * ratio * np.log(2 * count(level) / beta), weight)

        for bound, right in [
            (tau_u1(data, noisy, beta), rhs),
            (lemma_c2_frequency(data, beta), lambda v, c=count: ratio * np.log(c(v) / beta)),
            (lemma_c3_frequency(data, beta), lambda v, c=count: 8 * ratio * np.log(c(v) / beta)),
            (lemma_c4_weight(data, noisy, beta), lambda v, c=count: 20 + 4 * norm.isf(beta / c(v))),
        ]:
            assert bound.value <= bound.details["plain"]
            assert bound.value * (1 + 1e-12) >= right(bound.value)
            below = bound.value * (1 - 1e-9)
            assert below < right(below)


def test_nothing_is_lost_without_clipping():
    data = Profile.from_frequencies([4, 2], max_set_size=2, max_items_per_user=2)
    assert lemma_c2_frequency(data, 0.1).value == 0.0
    assert lemma_c3_frequency(data, 0.1).value == 0.0


def test_never_below_zero():
    data = Profile.from_frequencies([4], max_set_size=1, max_items_per_user=1)
    easy = noise(50.0, 1.0, 1)
    assert tau_u1(data, easy, 0.9).value == 0.0
    assert tau_u1_star(data, easy, 0.9).value == 0.0
    assert linf_bound(data, easy, 0.9).value == 0.0
    assert zipf_bound(data, easy, 0.9).value == 0.0


def test_tiny_failure_probabilities_are_finite():
    data = zipf_profile()
    bound = tau_u1(data, calibrate(eps=1.0, delta=1e-5, max_items_per_user=1), 1e-300)
    assert np.isfinite(bound.value) and bound.value > 140


def test_erratum_3_equal_frequencies():
    """One item a user: the frequency missed with 5 % grows with M, and [U1] is just above it."""
    noisy = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    for items, expected in [(10, 28.1), (10**3, 33.2), (10**6, 38.8), (10**9, 43.3)]:
        # P(some item missed) = 1 - (1 - m)^M = 0.05, m = Phi((T - f)/sigma).
        each = -np.expm1(np.log1p(-0.05) / items)
        frequency = noisy.threshold + noisy.sigma * norm.isf(each)
        assert round(frequency, 1) == expected
        data = Profile.from_frequencies(
            [int(frequency)], multiplicity=[items], max_set_size=1, max_items_per_user=1
        )
        bound = tau_u1(data, noisy, 0.05)
        assert frequency < bound.details["plain"] < frequency + 0.15
        star = tau_u1_star(data, noisy, 0.05).value
        assert np.floor(frequency) <= star <= bound.value < frequency + 0.15


# --- mbar -----------------------------------------------------------------------------------------


def exact_mbar(n, p, kept, sigma, threshold):
    with mpmath.workdps(50):
        p = mpmath.mpf(p)
        total = (1 - p) ** n
        for k in range(1, n + 1):
            margin = (mpmath.mpf(threshold) - k / mpmath.sqrt(kept)) / mpmath.mpf(sigma)
            total += mpmath.binomial(n, k) * p**k * (1 - p) ** (n - k) * mpmath.ncdf(margin)
        return float(total), float(1 - total)


@pytest.mark.parametrize("n", [1, 2, 7, 60, 300])
@pytest.mark.parametrize(("p", "kept"), [(1.0, 1), (0.5, 1), (0.03, 4), (0.999, 50)])
def test_mbar_to_both_tails(n, p, kept):
    for sigma, threshold in [(3.9, 18.2), (0.3, 2.0), (20.0, 1.0)]:
        miss, hit = miss_probability_bound(
            n, keep_probability=p, max_kept=kept, sigma=sigma, threshold=threshold
        )
        exact_miss, exact_hit = exact_mbar(n, p, kept, sigma, threshold)
        assert miss == pytest.approx(exact_miss, rel=1e-11, abs=1e-290)
        assert hit == pytest.approx(exact_hit, rel=1e-11, abs=1e-48)


def test_windowed_mbar_is_accurate_far_down():
    # n p = 2e5: the window leaves out most of 0..n. Against a normal-scale sum in high precision.
    n, p, kept, sigma, threshold = 400_000, 0.5, 16, 200.0, 48_000.0
    miss, hit = miss_probability_bound(
        n, keep_probability=p, max_kept=kept, sigma=sigma, threshold=threshold
    )
    with mpmath.workdps(30):
        total, pmf = mpmath.mpf(0), mpmath.binomial(n, 185_000) * mpmath.mpf(2) ** -n
        for k in range(185_000, 203_000):
            total += pmf * mpmath.ncdf((threshold - mpmath.mpf(k) / 4) / sigma)
            pmf *= mpmath.mpf(n - k) / (k + 1)
    assert 1e-27 < miss < 1e-20
    assert miss == pytest.approx(float(total), rel=1e-9)
    assert hit == pytest.approx(1.0, rel=1e-12)


def subsets(data, bound):
    """All outcomes of subsampling with probability: items kept by every user."""
    choices = []
    for i in range(data.num_users):
        mine = data.items[data.offsets[i] : data.offsets[i + 1]].tolist()
        choices.append(list(itertools.combinations(mine, min(bound, len(mine)))))
    weight = 1 / np.prod([len(c) for c in choices])
    for outcome in itertools.product(*choices):
        yield weight, outcome


def miss_vector(data, bound, outcome, noisy):
    weights = np.zeros(data.num_items)
    for i, mine in enumerate(outcome):
        weights[list(mine)] += min(data.set_sizes[i], bound) ** -0.5
    return weights, np.where(weights == 0, 1.0, ndtr((noisy.threshold - weights) / noisy.sigma))


SMALL = (
    UserItems.from_sets([{1, 2, 3}, {1, 2}, {1, 3, 4}, {1}, {1, 2, 4}]),
    UserItems.from_sets([{1, 2, 3, 4}] * 4),
    UserItems.from_sets([{1, 2}, {1, 2}, {1, 2}, {1}, {3, 1}, {1}]),
)


@pytest.mark.parametrize("data", SMALL)
@pytest.mark.parametrize("bound", [1, 2, 3, 9])
def test_mbar_bounds_every_exact_miss_probability(data, bound):
    noisy = noise(0.4, 1.3, bound)
    profile = Profile.from_user_items(data, max_items_per_user=bound)
    exact = np.zeros(data.num_items)
    for weight, outcome in subsets(data, bound):
        exact += weight * miss_vector(data, bound, outcome, noisy)[1]
    mbar = [
        miss_probability_bound(
            int(n),
            keep_probability=profile.keep_probability,
            max_kept=profile.q_star,
            sigma=0.4,
            threshold=1.3,
        )[0]
        for n in data.frequencies
    ]
    assert np.all(exact <= np.array(mbar) * (1 + 1e-12))
    if np.all(data.set_sizes == data.max_set_size):
        np.testing.assert_allclose(exact, mbar, rtol=1e-12)


@pytest.mark.parametrize("data", SMALL)
@pytest.mark.parametrize("bound", [1, 2, 3, 9])
@pytest.mark.parametrize("beta", [0.05, 0.3, 0.8])
@pytest.mark.parametrize(("sigma", "threshold"), [(0.05, 0.1), (0.2, 0.3), (0.4, 1.3), (1.0, 0.5)])
def test_bounds_hold_in_exact_enumeration(data, bound, beta, sigma, threshold):
    """Failure probabilities of [C.2]-[C.4], [U1], [U1*], every subset and the noise exactly."""
    noisy = noise(sigma, threshold, bound)
    profile = Profile.from_user_items(data, max_items_per_user=bound)
    n, p = data.frequencies, profile.keep_probability
    c2, c3 = lemma_c2_frequency(profile, beta).value, lemma_c3_frequency(profile, beta).value
    c4 = lemma_c4_weight(profile, noisy, beta).value
    tau, star = tau_u1(profile, noisy, beta).value, tau_u1_star(profile, noisy, beta).value
    fails = dict.fromkeys(("C.2", "C.3", "C.4", "U1", "U1*"), 0.0)
    for weight, outcome in subsets(data, bound):
        heights, miss = miss_vector(data, bound, outcome, noisy)
        copies = np.bincount(np.concatenate(outcome), minlength=data.num_items)
        fails["C.2"] += weight * np.any((copies == 0) & (n >= c2))
        fails["C.3"] += weight * np.any((copies < p * n / 2) & (n >= c3))
        fails["C.4"] += weight * (1 - np.prod(1 - miss[(copies > 0) & (heights > c4)]))
        fails["U1"] += weight * (1 - np.prod(1 - miss[n > tau]))
        fails["U1*"] += weight * (1 - np.prod(1 - miss[n > star]))
    assert all(rate <= beta + 1e-12 for rate in fails.values()), fails
    assert star <= tau


def test_u1_star_is_the_least_frequency():
    for frequencies, size, bound in [([9] * 99, 4, 2), ([500] + [2] * 4000, 20, 1), ([60], 3, 3)]:
        data = Profile.from_frequencies(frequencies, max_set_size=size, max_items_per_user=bound)
        noisy = calibrate(eps=2.0, delta=1e-3, max_items_per_user=bound)
        star = int(tau_u1_star(data, noisy, 0.05).value)

        def total(n, data=data, noisy=noisy):
            miss = exact_mbar(n, data.keep_probability, data.q_star, noisy.sigma, noisy.threshold)[
                0
            ]
            return min(data.num_items, data.num_pairs / n) * miss

        assert total(star + 1) <= 0.05 < total(star)


# --- what follows from tau ------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "bound"), [(1, 1), (30, 1), (30, 10), (30, 30)])
def test_ladder_is_ordered_on_a_grid(size, bound):
    data = zipf_profile(bound, size)
    grid = calibrate(eps=np.array([0.1, 1.0, 5.0]), delta=1e-6, max_items_per_user=bound)
    tau, star = tau_u1(data, grid, 0.05), tau_u1_star(data, grid, 0.05)
    two, sharp = instance_bound(data, grid, 0.05), instance_bound(data, grid, 0.05, tau="u1_star")
    three = zipf_bound(data, grid, 0.05)
    assert tau.value.shape == star.value.shape == three.value.shape == (3,)
    assert np.all(star.value <= tau.value) and np.all(tau.value <= tau.details["plain"])
    assert np.all(sharp.value <= two.value) and np.all(two.value <= three.value)
    assert np.all(np.diff(tau.value) <= 0) and np.all(np.diff(three.value) <= 0)
    if bound < size:
        assert np.all(star.value < 0.75 * tau.value)
    linf = linf_bound(data, grid, 0.05)
    np.testing.assert_array_equal(linf.value, np.floor(tau.value) / data.num_pairs)
    for index in range(3):
        alone = grid[index]
        assert tau_u1(data, alone, 0.05).value == tau.value[index]
        assert tau_u1_star(data, alone, 0.05).value == star.value[index]
        assert instance_bound(data, alone, 0.05).value == two.value[index]
        assert zipf_bound(data, alone, 0.05).value == three.value[index]
        assert three.at(index).details["s"] == three.details["s"][index]


def test_zipf_bound_is_the_formula():
    data = zipf_profile()
    noisy = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    given = zipf_certificate(data, 1.8)
    bound = zipf_bound(data, noisy, 0.05, certificate=given)
    share = bound.details["tau"] / data.num_pairs
    by_hand = 1.8 / 0.8 * given.constant ** (1 / 1.8) * share ** (0.8 / 1.8)
    assert bound.value == pytest.approx(by_hand, rel=1e-13)
    assert zipf_bound(data, noisy, 0.05).value < bound.value
    assert bound.details["tau"] == tau_u1(data, noisy, 0.05).value


def test_a_false_certificate_is_refused():
    data = zipf_profile()
    noisy = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    with pytest.raises(InvalidInput, match="log_constant = 0.0: must be at least"):
        zipf_bound(data, noisy, 0.05, certificate=ZipfCertificate(0.0, 3.0))


def test_bad_arguments_are_named():
    data = zipf_profile(bound=2, size=3)
    noisy = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    with pytest.raises(InvalidInput, match="max_items_per_user = 1: must be 2"):
        tau_u1(data, noisy, 0.05)
    right = calibrate(eps=1.0, delta=1e-5, max_items_per_user=2)
    for beta in (0.0, 1.0, float("nan")):
        with pytest.raises(InvalidInput, match=r"beta = .*: must be in \(0, 1\)"):
            linf_bound(data, right, beta)
