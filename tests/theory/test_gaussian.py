"""delta_G and its inverse against high precision, another library, and known numbers."""

import mpmath as mp
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from hypothesis import given, settings
from hypothesis import strategies as st

from theory import InvalidInput
from theory.gaussian import gaussian_delta, gaussian_sigma, log_gaussian_delta

EPS = st.just(0.0) | st.floats(-5, 5).map(lambda e: 10.0**e)
DELTA = st.floats(-300, -0.302).map(lambda e: 10.0**e) | st.floats(-15, -0.302).map(
    lambda e: 10.0**e
)
no_flakes = settings(max_examples=100, deadline=None, derandomize=True)


def precise_delta(eps, sigma, sensitivity=1.0):
    """The printed difference of two cdfs, with digits added until it does not cancel."""
    for digits in (50, 400, 1500):
        with mp.workdps(digits):
            e, h = mp.mpf(eps), mp.mpf(sensitivity) / mp.mpf(sigma)
            first = mp.ncdf(h / 2 - e / h)
            delta = first - mp.exp(e) * mp.ncdf(-h / 2 - e / h)
            if delta > first * mp.mpf(10) ** (25 - digits):
                return delta
    raise AssertionError("more digits are needed")


def test_against_high_precision_at_calibrated_noise():
    rng = np.random.default_rng(20)
    for i in range(200):
        eps = 0.0 if i % 10 == 0 else 10 ** rng.uniform(-8, 5)
        delta = 10 ** -rng.uniform(0.302, 300 if i % 2 else 15)
        sigma = gaussian_sigma(eps=eps, delta=delta)
        truth = precise_delta(eps, sigma)
        assert abs(gaussian_delta(eps=eps, sigma=sigma) / truth - 1) < 1e-11
        assert abs(log_gaussian_delta(eps=eps, sigma=sigma) - mp.log(truth)) < 1e-11
        # Private in exact arithmetic too, not only as evaluated; and tight.
        assert truth <= mp.mpf(delta)
        assert precise_delta(eps, sigma * (1 - 1e-9)) > mp.mpf(delta)


def test_against_high_precision_anywhere():
    """Large and small sigma, delta close to 1, other sensitivities, both sides of each branch."""
    rng = np.random.default_rng(21)
    for _ in range(200):
        h = 10 ** rng.uniform(-6, 2)
        low = rng.uniform(-6, 12)  # eps/h - h/2: from delta near 1 to delta near 1e-33
        eps = max(0.0, (low + h / 2) * h)
        sensitivity = 10 ** rng.uniform(-2, 1)
        sigma = sensitivity / h
        truth = precise_delta(eps, sigma, sensitivity)
        ours = gaussian_delta(eps=eps, sigma=sigma, sensitivity=sensitivity)
        assert abs(ours / truth - 1) < 1e-11, (eps, sigma, sensitivity)


def test_branches_meet():
    """No step where integration (h < max(1, low)) hands over to the differences."""
    for eps, h in [(0.0, 1.0), (0.4, 1.0), (0.6, 1.0), (13.5, 3.0), (54.0, 6.0)]:
        sigma = 1 / (h * (1 + np.array([-1e-13, 1e-13])))
        below, above = gaussian_delta(eps=np.full(2, eps), sigma=sigma)
        assert below == pytest.approx(above, rel=1e-11)


def test_far_tail_stays_finite_in_logs():
    assert gaussian_delta(eps=100.0, sigma=10.0) == 0.0
    assert log_gaussian_delta(eps=100.0, sigma=10.0) == pytest.approx(
        float(mp.log(precise_delta(100.0, 10.0))), rel=1e-13
    )
    with np.errstate(all="raise"):
        assert log_gaussian_delta(eps=1e5, sigma=1e300) == -np.inf
        assert gaussian_delta(eps=0.0, sigma=1e308, sensitivity=1e-300) == 0.0
        assert gaussian_delta(eps=1e5, sigma=1e-310) == 1.0


def test_zero_eps_where_log_ndtr_cancels():
    # At eps = 0 it is 2 Phi(h/2) - 1 = erf(h/sqrt 8); log_ndtr alone is off by 8e-4 here.
    sigma = gaussian_sigma(eps=0.0, delta=1e-14)
    assert gaussian_delta(eps=0.0, sigma=sigma) == pytest.approx(1e-14, rel=1e-12)
    assert sigma == pytest.approx(1 / (1e-14 * np.sqrt(2 * np.pi)), rel=1e-12)


@pytest.mark.parametrize(
    ("eps", "delta", "sigma"),
    [
        (0.0, 1e-6, 398942.28),
        (1.0, 1e-6, 4.2246789),
        (10.0, 1e-6, 0.54109),
        (1000.0, 1e-300, 0.0475377),
    ],
)
def test_known_sigma(eps, delta, sigma):
    assert gaussian_sigma(eps=eps, delta=delta) == pytest.approx(sigma, rel=1e-5)


def test_classical_formula_is_not_private_at_large_eps():
    classical = np.sqrt(2 * np.log(1.25 / 1e-6))
    assert classical == pytest.approx(5.2988, abs=1e-4)
    assert gaussian_sigma(eps=1.0, delta=1e-6) < classical
    assert gaussian_delta(eps=10.0, sigma=classical / 10) > 1e-6
    assert gaussian_sigma(eps=10.0, delta=1e-6) > classical / 10


@pytest.mark.parametrize("eps", [0.01, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("delta", [1e-10, 1e-5, 0.1])
def test_against_dp_accounting(eps, delta):
    theirs = gaussian_mechanism.get_sigma_gaussian(eps, delta)
    assert gaussian_sigma(eps=eps, delta=delta) == pytest.approx(theirs, rel=1e-8)


@pytest.mark.parametrize("eps", [10.0, 100.0, 1000.0, 1e5])
def test_round_trip_at_large_eps(eps):
    for delta in (1e-300, 1e-18, 1e-6, 0.5):
        sigma = gaussian_sigma(eps=eps, delta=delta)
        assert gaussian_delta(eps=eps, sigma=sigma) == pytest.approx(delta, rel=1e-9)


@no_flakes
@given(EPS, DELTA)
def test_sigma_is_private_and_tight_as_evaluated(eps, delta):
    sigma = gaussian_sigma(eps=eps, delta=delta)
    assert gaussian_delta(eps=eps, sigma=sigma) <= delta
    assert gaussian_delta(eps=eps, sigma=sigma * (1 - 1e-9)) > delta


@no_flakes
@given(EPS, DELTA, st.floats(1.001, 3.0))
def test_delta_falls_in_eps_and_sigma(eps, delta, factor):
    sigma = gaussian_sigma(eps=eps, delta=delta)
    here = log_gaussian_delta(eps=eps, sigma=sigma)
    assert log_gaussian_delta(eps=eps, sigma=sigma * factor) < here
    assert log_gaussian_delta(eps=min(eps * factor, 1e5), sigma=sigma) <= here + 1e-11


def test_only_sensitivity_over_sigma_matters():
    assert gaussian_delta(eps=0.7, sigma=6.0, sensitivity=3.0) == pytest.approx(
        gaussian_delta(eps=0.7, sigma=2.0), rel=1e-13
    )


def test_scalars_and_shapes():
    assert type(gaussian_delta(eps=1, sigma=2)) is float
    assert type(gaussian_sigma(eps=1, delta=0.1)) is float
    assert gaussian_delta(eps=np.ones((3, 1)), sigma=np.ones(4)).shape == (3, 4)
    assert log_gaussian_delta(eps=[0.0, 1.0], sigma=2.0).shape == (2,)


def test_arguments_are_keywords():
    with pytest.raises(TypeError):
        gaussian_delta(1.0, 2.0)  # pyright: ignore


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eps": -1.0, "sigma": 1.0}, r"eps = -1.0: must be a number in \[0, 1e5\]"),
        ({"eps": np.nan, "sigma": 1.0}, "eps = nan: must be"),
        ({"eps": np.inf, "sigma": 1.0}, "eps = inf: must be"),
        ({"eps": 1.0, "sigma": 0.0}, "sigma = 0.0: must be a finite number above 0"),
        ({"eps": 1.0, "sigma": np.inf}, "sigma = inf: must be"),
        ({"eps": 1.0, "sigma": 1.0, "sensitivity": -2}, "sensitivity = -2.0: must be"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        gaussian_delta(**arguments)
