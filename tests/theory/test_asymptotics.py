"""The closed forms on either side of sigma and T, their limits, and where the Theta ends."""

import numpy as np
import pytest

from theory import InvalidInput
from theory.asymptotics import (
    regime_map,
    sandwich,
    sigma_limit_large_eps,
    sigma_limit_small_eps,
    sigma_necessary,
    sigma_sufficient,
    threshold_upper,
)
from theory.calibration import calibrate
from theory.gaussian import gaussian_delta, gaussian_sigma

EPS = np.r_[0.0, np.logspace(-300, -6, 15), np.logspace(-5, 5, 41)][:, None]
DELTA = np.r_[np.logspace(-300, -12, 25), np.logspace(-11, np.log10(0.5), 25)]


@pytest.mark.parametrize("method", ["split", "full"])
@pytest.mark.parametrize("count", [1, 100, 10**9])
def test_sandwich_holds_everywhere(method, count):
    result = sandwich(calibrate(eps=EPS, delta=DELTA, max_items_per_user=count, method=method))
    assert result.holds.shape == (57, 50)
    assert result.holds.all()
    # The claim of sigma_necessary's docstring.
    assert np.max(result.sigma / result.sigma_lower) < 2.5


def test_sandwich_can_fail():
    good = sandwich(calibrate(eps=1.0, delta=1e-5, max_items_per_user=100))
    assert good.holds is True
    for name, factor in [("sigma", 0.5), ("sigma", 2.0), ("threshold", 0.5), ("threshold", 2.0)]:
        changed = type(good)(**(vars(good) | {name: getattr(good, name) * factor}))
        assert changed.holds is False


def test_sufficient_sigma_suffices_and_necessary_is_too_small():
    for eps in (0.1, 1.0, 30.0):
        for delta in (1e-12, 1e-3):
            suffices = sigma_sufficient(eps=eps, delta=delta, method="full")
            assert gaussian_delta(eps=eps, sigma=suffices) <= delta
            needed = sigma_necessary(eps=eps, delta=delta, method="full")
            assert gaussian_delta(eps=eps, sigma=needed) >= delta


def test_split_uses_half_of_delta():
    for bound in (sigma_sufficient, sigma_necessary):
        assert bound(eps=1.0, delta=2e-6) == bound(eps=1.0, delta=1e-6, method="full")
    assert sigma_limit_small_eps(delta=2e-6) == sigma_limit_small_eps(delta=1e-6, method="full")
    here = {"sigma": 2.0, "max_items_per_user": 7}
    assert threshold_upper(delta=2e-6, **here) == threshold_upper(delta=1e-6, method="full", **here)


def test_limit_of_small_eps_is_finite():
    for delta in (1e-300, 1e-17, 1e-6, 0.5):
        limit = sigma_limit_small_eps(delta=delta, method="full")
        assert gaussian_sigma(eps=0.0, delta=delta) == pytest.approx(limit, rel=1e-12)
        assert gaussian_sigma(eps=delta * 1e-6, delta=delta) == pytest.approx(limit, rel=1e-5)
        assert sigma_sufficient(eps=0.0, delta=delta) == np.inf


def test_limit_of_large_eps():
    eps = np.array([1e3, 1e4, 1e5])
    ratio = gaussian_sigma(eps=eps, delta=1e-6) / sigma_limit_large_eps(eps=eps)
    # sigma_suf gives 1 + z/sqrt(2 eps) + O(1/eps), z = 4.75, and the ratio is below it.
    assert np.all(ratio > 1) and np.all(ratio < 1 + 4.8 / np.sqrt(2 * eps) + 25 / eps)
    assert np.all(np.diff(ratio) < 0)
    assert sigma_limit_large_eps(eps=0.0) == np.inf


def test_regime_map_shows_where_the_theta_ends():
    eps = np.array([1e-12, 1e-11, 1e-2, 1e-1, 1.0, 1e4, 1e5])
    values = regime_map(eps=eps, delta=[1e-6, 1e-30])
    assert values.shape == (7, 2)
    # Inside the regime it is flat; outside it follows eps and sqrt(eps).
    assert np.all((values[2:5] > 0.8) & (values[2:5] < 1.5))
    assert values[1, 0] / values[0, 0] == pytest.approx(10, rel=1e-4)
    assert values[6, 0] / values[5, 0] == pytest.approx(np.sqrt(10), rel=0.05)
    expected = calibrate(eps=1.0, delta=1e-30, max_items_per_user=1).sigma
    assert values[4, 1] == pytest.approx(expected / np.sqrt(30 * np.log(10)), rel=1e-13)


def test_no_floating_point_trouble():
    with np.errstate(all="raise"):
        for eps in (0.0, 1e-12, 1e5):
            for delta in (1e-300, 0.5):
                for method in ("split", "full"):
                    ours = calibrate(eps=eps, delta=delta, max_items_per_user=10**9, method=method)
                    assert sandwich(ours).holds


def test_bad_input_is_named():
    with pytest.raises(InvalidInput, match="method = both: must be one of split, full"):
        sigma_sufficient(eps=1.0, delta=0.1, method="both")
    with pytest.raises(InvalidInput, match=r"delta = 0.7: must be in \(0, 0.5\]"):
        regime_map(eps=[1.0], delta=[0.7])
