"""The paper's asymptotics of sigma and T (Appendix C.2.1), with constants and limits.

The paper states sigma = Theta(sqrt(log 1/delta) / eps) and T = Theta(max(sigma sqrt(log
Delta0/delta), 1)). The upper halves hold always. The lower half for sigma holds only in a regime:
as eps falls to 0 the smallest sigma stays finite, and as eps grows it is about 1/sqrt(2 eps).

In every function delta is the whole budget and `method` says how much of it each condition may
use, as in `calibrate`: delta' = delta/2 for "split", delta for "full".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erfinv, ndtri

from theory._check import (
    Reals,
    check_delta,
    check_eps,
    check_max_items_per_user,
    check_positive,
)
from theory.calibration import Calibration, calibrate, check_method, delta_share
from theory.gaussian import Floats, float_or_array


def sigma_sufficient(*, eps: Reals, delta: Reals, method: str = "split") -> float | np.ndarray:
    """sigma_suf, a closed form that is always enough noise; infinite at eps = 0.

    Args:
        eps: Privacy parameter in [0, 1e5], any shape.
        delta: Privacy parameter in [1e-300, 0.5], any shape; broadcast against `eps`.
        method: "split" or "full".

    Returns:
        (z + sqrt(z^2 + 2 eps))/(2 eps), z = Phi^-1(1 - delta'); float, or float64 array.

    Raises:
        InvalidInput: An argument is outside its range.

    Source:
        Appendix C.2.1, Lemma C.1: Phi(1/(2 sigma) - eps sigma) <= delta' suffices.

    Example:
        >>> round(sigma_sufficient(eps=1.0, delta=1e-6), 4)
        4.9918
    """
    eps, share = np.broadcast_arrays(check_eps(eps), _share(delta, method))
    return float_or_array(_cdf_root(eps, share))


def sigma_necessary(*, eps: Reals, delta: Reals, method: str = "split") -> float | np.ndarray:
    """A closed form that the smallest sigma is never below: the lower half, with constants.

    For every c > 0 the privacy loss L of the Gaussian mechanism has
    delta_G(eps) = E(1 - e^(eps - L))_+ >= (1 - e^-c) P(L >= eps + c), and
    P(L >= eps + c) = Phi(1/(2 sigma) - (eps + c) sigma). The best of c = ln 2, eps, 6 delta' was
    within a factor 2.5 of the smallest sigma wherever we looked, eps 0 to 1e5, delta 1e-300 to 0.5.

    Args:
        eps: Privacy parameter in [0, 1e5], any shape.
        delta: Privacy parameter in [1e-300, 0.5], any shape; broadcast against `eps`.
        method: "split" or "full".

    Returns:
        A lower bound on the smallest sigma; float, or float64 array.

    Raises:
        InvalidInput: An argument is outside its range.

    Source:
        Ours, the counterpart of Appendix C.2.1, Lemma C.1.

    Example:
        >>> round(sigma_necessary(eps=1.0, delta=1e-6), 4)
        2.909
    """
    eps, share = np.broadcast_arrays(check_eps(eps), _share(delta, method))
    lower = np.zeros(eps.shape)
    for c in (np.full(eps.shape, np.log(2)), eps, 6 * share):
        with np.errstate(divide="ignore"):  # c = 0 at eps = 0: no event, no bound
            event = share / -np.expm1(-c)
        # An event of probability 1 gives no bound either: its root is 0.
        lower = np.maximum(lower, _cdf_root(eps + c, np.minimum(event, 1.0)))
    return float_or_array(lower)


def sigma_limit_small_eps(*, delta: Reals, method: str = "split") -> float | np.ndarray:
    """Limit of the smallest sigma as eps falls to 0: finite, so 1/eps is wrong there.

    Args:
        delta: Privacy parameter in [1e-300, 0.5], any shape.
        method: "split" or "full".

    Returns:
        1/(2 Phi^-1((1 + delta')/2)), an upper bound at every eps; float, or float64 array.

    Raises:
        InvalidInput: An argument is outside its range.

    Source:
        Theory note, section 1, Asymptotics; section 9, erratum 4.

    Example:
        >>> round(sigma_limit_small_eps(delta=1e-6, method="full"), 2)
        398942.28
    """
    # Phi^-1((1 + x)/2) = sqrt 2 erfinv(x); (1 + x)/2 itself would lose x below 1e-16.
    return float_or_array(1 / (np.sqrt(8) * erfinv(_share(delta, method))))


def sigma_limit_large_eps(*, eps: Reals) -> float | np.ndarray:
    """What the smallest sigma approaches as eps grows: 1/sqrt(2 eps), whatever delta is.

    Args:
        eps: Privacy parameter in [0, 1e5], any shape.

    Returns:
        1/sqrt(2 eps), infinite at eps = 0; float, or float64 array.

    Raises:
        InvalidInput: `eps` is outside its range.

    Source:
        Theory note, section 1, Asymptotics; section 9, erratum 4.

    Example:
        >>> round(sigma_limit_large_eps(eps=50.0), 3)
        0.1
    """
    with np.errstate(divide="ignore"):
        return float_or_array(1 / np.sqrt(2 * check_eps(eps)))


def threshold_upper(
    *,
    sigma: Reals,
    delta: Reals,
    max_items_per_user: Reals,
    method: str = "split",
) -> float | np.ndarray:
    """A closed form that the threshold never exceeds: 1 + sigma sqrt(2 ln(Delta0/delta')).

    Args:
        sigma: Noise standard deviation, above 0, any shape.
        delta: Privacy parameter in [1e-300, 0.5], any shape.
        max_items_per_user: Delta0, whole numbers from 1 to 1e9, any shape; the three are
            broadcast against each other.
        method: "split" or "full".

    Returns:
        float, or float64 array of the broadcast shape.

    Raises:
        InvalidInput: An argument is outside its range.

    Source:
        Appendix C.2.1, Lemma C.1.

    Example:
        >>> round(threshold_upper(sigma=4.3651549, delta=1e-6, max_items_per_user=100), 2)
        27.99
    """
    sigma, share = check_positive("sigma", sigma), _share(delta, method)
    count = check_max_items_per_user(max_items_per_user)
    return float_or_array(np.asarray(1 + sigma * np.sqrt(2 * (np.log(count) - np.log(share)))))


@dataclass(frozen=True)
class Sandwich:
    """sigma and T between closed forms; floats, or arrays of the calibration's shape.

    Attributes:
        sigma: The calibrated sigma.
        sigma_lower: `sigma_necessary`.
        sigma_upper: The smaller of `sigma_sufficient` and `sigma_limit_small_eps`.
        threshold: The calibrated T.
        threshold_lower: 1 + sigma Phi^-1(1 - delta'), what a single new item demands.
        threshold_upper: `threshold_upper`.
    """

    sigma: Any
    sigma_lower: Any
    sigma_upper: Any
    threshold: Any
    threshold_lower: Any
    threshold_upper: Any

    @property
    def holds(self) -> bool | np.ndarray:
        """True where both lie between their bounds, up to the 1e-9 of rounding up."""
        up = 1 + 1e-9  # sigma and T are rounded up, and so may pass a bound that is attained
        inside = np.asarray(
            np.less_equal(self.sigma_lower, self.sigma)
            & np.less_equal(self.sigma, np.multiply(self.sigma_upper, up))
            & np.less_equal(self.threshold_lower, self.threshold)
            & np.less_equal(self.threshold, np.multiply(self.threshold_upper, up))
        )
        return inside if inside.ndim else bool(inside)


def sandwich(calibration: Calibration) -> Sandwich:
    """Noise and threshold of a calibration, with the closed forms on either side of them.

    Args:
        calibration: From `calibrate`, any shape.

    Returns:
        A `Sandwich` of the same shape.

    Source:
        Appendix C.2.1, Lemma C.1, with explicit constants.

    Example:
        >>> result = sandwich(calibrate(eps=1.0, delta=1e-5, max_items_per_user=100))
        >>> [round(value, 2) for value in (result.sigma_lower, result.sigma, result.sigma_upper)]
        [2.63, 3.88, 4.53]
        >>> result.holds
        True
    """
    budget = {"delta": calibration.delta, "method": calibration.method}
    upper = np.minimum(
        sigma_sufficient(eps=calibration.eps, **budget), sigma_limit_small_eps(**budget)
    )
    share = _share(**budget)
    return Sandwich(
        sigma=calibration.sigma,
        sigma_lower=sigma_necessary(eps=calibration.eps, **budget),
        sigma_upper=float_or_array(upper),
        threshold=calibration.threshold,
        threshold_lower=float_or_array(np.asarray(1 - calibration.sigma * ndtri(share))),
        threshold_upper=threshold_upper(
            sigma=calibration.sigma,
            max_items_per_user=calibration.max_items_per_user,
            **budget,
        ),
    )


def regime_map(*, eps: Reals, delta: Reals, method: str = "split") -> np.ndarray:
    """The map of sigma eps / sqrt(ln(1/delta)), constant only where the paper's Theta holds.

    Args:
        eps: (num_eps,) privacy parameters in [0, 1e5].
        delta: (num_delta,) privacy parameters in [1e-300, 0.5].
        method: "split" or "full".

    Returns:
        (num_eps, num_delta) float64, without unit: 1 to 1.5 or so in the regime, where eps is well
        above delta and below ln(1/delta); it falls like eps below and grows like sqrt eps above.

    Raises:
        InvalidInput: An argument is outside its range.

    Source:
        Theory note, section 1, Asymptotics; section 9, erratum 4.

    Example:
        >>> regime_map(eps=[1e-6, 1e-2, 1e4], delta=[1e-30]).round(2).ravel().tolist()
        [1.18, 1.29, 9.23]
    """
    rows, columns = np.atleast_1d(check_eps(eps)), np.atleast_1d(check_delta(delta))
    sigma = calibrate(
        eps=rows[:, None], delta=columns[None, :], max_items_per_user=1, method=method
    ).sigma
    return sigma * rows[:, None] / np.sqrt(-np.log(columns))[None, :]


def _share(delta: Reals, method: str) -> Floats:
    check_method(method)
    return delta_share(check_delta(delta), method)


def _cdf_root(eps: Floats, share: Floats) -> Floats:
    """The sigma with Phi(1/(2 sigma) - eps sigma) = share, infinite at eps = 0, share <= 1/2."""
    z = -ndtri(share)
    # Two forms of one root, each without cancellation on its side of z = 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        for_tails = (z + np.sqrt(z * z + 2 * eps)) / (2 * eps)
        otherwise = 1 / (np.sqrt(z * z + 2 * eps) - z)
    return np.where(z > 0, for_tails, otherwise)
