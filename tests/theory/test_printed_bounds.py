import numpy as np
import pytest
from scipy.special import log_ndtr

from theory import InvalidInput, Profile
from theory.calibration import calibrate
from theory.lemmas import (
    gaussian_maximum_bound,
    gumbel_maximum_bound,
    lemma_c2_frequency,
    lemma_c4_weight,
    lemma_c5,
)
from theory.printed_bounds import (
    corollary_34_shape,
    lemma_c2_mass,
    lemma_c2_printed,
    lemma_c4_printed,
    theorem_33_printed,
    theorem_33_shape,
    theorem_36_printed,
)
from theory.upper_bounds import linf_bound, zipf_bound
from theory.zipf import ZipfCertificate, zipf_certificate


def one_item_each(frequencies, size=1, bound=1):
    return Profile.from_frequencies(frequencies, max_set_size=size, max_items_per_user=bound)


@pytest.mark.parametrize(("s", "log2", "printed"), [(7.0, 6.0, 0.39945), (29.5, 28.5, 0.094)])
def test_erratum_1_lemma_c2(s, log2, printed):
    """One user, two items, Delta0 = 1: half of the mass is lost, always."""
    data = one_item_each([1, 1], size=2)
    certificate = ZipfCertificate(log2 * np.log(2), s)
    assert certificate.holds_for(data)
    false = lemma_c2_printed(data, 0.5, certificate=certificate).value
    assert false == pytest.approx(printed, abs=6e-6 if s == 7 else 5e-4)
    assert false < 0.5 <= lemma_c2_mass(data, 0.5, certificate=certificate).value


def test_corrected_lemma_c2_covers_the_tail_of_lost_items():
    rng = np.random.default_rng(3)
    for _ in range(300):
        frequencies = rng.integers(1, 30, int(rng.integers(1, 12)))
        data = one_item_each(frequencies, size=4)
        for s in (1.1, 2.0, 9.0, 60.0):
            mass = lemma_c2_mass(data, 0.2, certificate=zipf_certificate(data, s))
            # M <= (C N)^(1/s), so the mass form starts from a larger frequency than [C.2].
            frequency = lemma_c2_frequency(data, 0.2).details["plain"]
            assert mass.details["frequency"] >= frequency * (1 - 1e-12)
            assert data.tail(frequency) <= mass.value


def test_erratum_1_theorem_33():
    """One user, one item: missed with probability 1 - delta/2 at least, for every s."""
    data = one_item_each([1])
    noisy = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    certificate = ZipfCertificate(0.0, 500.0)
    false = theorem_33_printed(data, noisy, 0.05, certificate=certificate).value
    assert false == pytest.approx(0.538, abs=5e-4)
    assert zipf_bound(data, noisy, 0.05, certificate=certificate).value >= 1


def test_printed_theorem_33_is_above_ours_where_it_is_valid():
    frequencies = [10**6 // r**2 for r in range(1, 1001)]
    for size, bound in [(1, 1), (40, 1), (40, 10), (40, 40)]:
        data = one_item_each(frequencies, size, bound)
        grid = calibrate(eps=np.array([0.1, 1.0]), delta=1e-5, max_items_per_user=bound)
        certificate = zipf_certificate(data, 2.0)
        printed = theorem_33_printed(data, grid, 0.05, certificate=certificate).value
        ours = zipf_bound(data, grid, 0.05, certificate=certificate).value
        assert np.all(printed > ours)
        assert np.all(
            theorem_36_printed(data, grid, 0.05).value > linf_bound(data, grid, 0.05).value
        )
        assert np.all(
            lemma_c4_printed(data, grid, 0.05).value > lemma_c4_weight(data, grid, 0.05).value
        )


def test_formulas_by_hand():
    data = one_item_each([30, 20, 14], size=8, bound=2)  # N = 64, p* = 1/4
    noisy = calibrate(eps=1.0, delta=1e-5, max_items_per_user=2)
    certificate = ZipfCertificate(np.log(4.0), 2.0)  # (C N)^(1/s) = 16
    beta, sigma, threshold = 0.1, noisy.sigma, noisy.threshold
    weight = 2**0.5 * (threshold + sigma * (2 * np.log(6 * 64 / beta)) ** 0.5)
    level = max(weight, np.log(3 * 16 / beta))
    shape = 8 / (64 * 2**0.5)
    lost = (np.log(160) / 16) ** 0.5
    expected = [
        (
            theorem_33_printed(data, noisy, beta, certificate=certificate),
            2 * (9 * level / 16) ** 0.5,
        ),
        (theorem_36_printed(data, noisy, beta), max(np.log(3 * 64 / beta), weight) / 2),
        (lemma_c2_printed(data, beta, certificate=certificate), 2 * lost),
        (lemma_c2_mass(data, beta, certificate=certificate), 4 * lost),
        (lemma_c4_printed(data, noisy, beta), threshold + sigma * (2 * np.log(1280)) ** 0.5),
        (lemma_c5(data, beta), np.log(640) / 16),
        (
            theorem_33_shape(data, noisy, certificate=certificate),
            2 * (shape * (threshold + sigma)) ** 0.5,
        ),
        (corollary_34_shape(data, eps=0.5, certificate=certificate), 2 * (shape / 0.5) ** 0.5),
    ]
    for bound, value in expected:
        assert bound.value == pytest.approx(value, rel=1e-13)


def test_shapes_have_the_exponents_of_the_theorem():
    noisy = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    for s in (1.5, 2.0, 3.0):
        certificate = ZipfCertificate(0.3, s)
        small, large = one_item_each([10**4]), one_item_each([10**8])
        for shape in (
            lambda data, c=certificate: theorem_33_shape(data, noisy, certificate=c).value,
            lambda data, c=certificate: corollary_34_shape(data, eps=1.0, certificate=c).value,
        ):
            slope = np.log(shape(large) / shape(small)) / np.log(10**4)
            assert slope == pytest.approx(-(s - 1) / s, rel=1e-12)
        eps = corollary_34_shape(small, eps=np.array([0.01, 0.1]), certificate=certificate).value
        assert np.log(eps[1] / eps[0]) / np.log(10) == pytest.approx(-(s - 1) / s, rel=1e-12)
    with pytest.raises(InvalidInput, match="eps = 0.0: must be a finite number above 0"):
        corollary_34_shape(small, eps=0.0, certificate=certificate)


def test_huge_constants_do_not_overflow():
    data = one_item_each([1] * 50, size=2)
    certificate = zipf_certificate(data, 5000.0)
    assert np.isinf(certificate.constant)
    noisy = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
    for bound in (
        lemma_c2_printed(data, 0.1, certificate=certificate),
        lemma_c2_mass(data, 0.1, certificate=certificate),
        theorem_33_printed(data, noisy, 0.1, certificate=certificate),
        theorem_33_shape(data, noisy, certificate=certificate),
    ):
        assert 0 < bound.value < np.inf


@pytest.mark.parametrize("count", [1, 10, 10**6, 10**12])
@pytest.mark.parametrize("beta", [1e-9, 0.05, 0.9])
def test_noise_maxima_hold(count, beta):
    bound = gaussian_maximum_bound(count, sigma=2.0, beta=beta)
    # P(max |Z| > b) = 1 - (1 - 2 Phi(-b/2))^n
    exceed = -np.expm1(count * np.log1p(-2 * np.exp(log_ndtr(-bound / 2))))
    assert exceed <= beta
    bound = gumbel_maximum_bound(count, scale=2.0, beta=beta)
    upper, lower = -np.expm1(-np.exp(-bound / 2)), np.exp(-np.exp(bound / 2))
    assert -np.expm1(count * np.log1p(-(upper + lower))) <= beta


def test_noise_maxima_scale_and_refuse():
    scales = np.array([1.0, 3.0])
    both = gaussian_maximum_bound(7, sigma=scales, beta=0.1)
    np.testing.assert_allclose(both, scales * both[0], rtol=1e-15)
    for bad in ({"sigma": 0.0, "beta": 0.1}, {"sigma": 1.0, "beta": 1.0}):
        with pytest.raises(InvalidInput):
            gaussian_maximum_bound(7, **bad)
    with pytest.raises(InvalidInput, match="num = 0: must be a whole number of at least 1"):
        gumbel_maximum_bound(0, scale=1.0, beta=0.1)
