"""The Gaussian mechanism's exact delta, to 1e-9 relative accuracy and far below 1e-300, and back.

Balle & Wang 2018: with h = sensitivity/sigma, the smallest delta of the Gaussian mechanism is
`delta_G(eps) = Phi(h/2 - eps/h) - e^eps Phi(-h/2 - eps/h)`. As printed the two terms cancel. With
the Mills ratio `R(x) = Phi(-x)/phi(x)` and the interval from `low = eps/h - h/2` to
`high = eps/h + h/2` it is

    delta_G = phi(low) (R(low) - R(high)) = phi(low) * integral_low^high (1 - x R(x)) dx,

whose integrand is positive: nothing cancels in the last form (theory note, section 1).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from scipy.optimize import elementwise
from scipy.special import erfcx, erfinv, ndtr, ndtri

from theory._check import Reals, check_delta, check_eps, check_positive

_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)
# Sixteen nodes: on [low, 2 low], the longest interval integrated, the nearest singularity of the
# large-x form 1/x^2 leaves an error of about 5.8^-32.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
# From here on 25 terms of the continued fraction are exact to the last digit.
_FRACTION_FROM, _FRACTION_TERMS = 5.0, 25
# sigma and T are moved up by this share, about 90 units in the last place. It dwarfs the error of
# evaluating delta_G, turned into an error of sigma (a few units), so that the guarantee holds in
# exact arithmetic too, and is dwarfed by the promised 1e-9.
PRIVATE_MARGIN = 2e-14


# Arithmetic turns arrays without dimensions into NumPy scalars.
Floats: TypeAlias = np.ndarray | np.floating


def float_or_array(values: Floats) -> float | np.ndarray:
    """A single number as a Python float, an array as it is."""
    return values if isinstance(values, np.ndarray) and values.ndim else float(values)


def gaussian_delta(*, eps: Reals, sigma: Reals, sensitivity: Reals = 1.0) -> float | np.ndarray:
    """Smallest delta for which the Gaussian mechanism is (eps, delta)-DP.

    Args:
        eps: Privacy parameter in [0, 1e5], any shape.
        sigma: Noise standard deviation, above 0, any shape; broadcast against `eps`.
        sensitivity: L2 sensitivity, above 0, any shape; broadcast likewise.

    Returns:
        delta in [0, 1], a Python float for scalars, else float64 of the broadcast shape; relative
        error below 1e-11 down to 1e-300. Below 1e-308 it underflows to 0: see
        `log_gaussian_delta`.

    Raises:
        InvalidInput: An argument is outside its range.

    Source:
        Balle & Wang 2018, Theorem 8; theory note, section 1.

    Example:
        >>> round(gaussian_delta(eps=1.0, sigma=4.2246789), 12)
        1e-06
    """
    return float_or_array(raw_gaussian_delta(check_eps(eps), _ratio(sensitivity, sigma)))


def log_gaussian_delta(*, eps: Reals, sigma: Reals, sensitivity: Reals = 1.0) -> float | np.ndarray:
    """Natural logarithm of `gaussian_delta`, which never underflows.

    Args:
        eps: Privacy parameter in [0, 1e5], any shape.
        sigma: Noise standard deviation, above 0, any shape; broadcast against `eps`.
        sensitivity: L2 sensitivity, above 0, any shape; broadcast likewise.

    Returns:
        ln(delta), a Python float for scalars, else float64 of the broadcast shape.

    Raises:
        InvalidInput: An argument is outside its range.

    Source:
        Balle & Wang 2018, Theorem 8; theory note, section 1.

    Example:
        >>> round(log_gaussian_delta(eps=10.0, sigma=10.0), 6)
        -5007.433414
    """
    return float_or_array(_raw_log_gaussian_delta(check_eps(eps), _ratio(sensitivity, sigma)))


def gaussian_sigma(*, eps: Reals, delta: Reals) -> float | np.ndarray:
    """Smallest sigma for which the Gaussian mechanism of sensitivity 1 is (eps, delta)-DP.

    Args:
        eps: Privacy parameter in [0, 1e5], any shape.
        delta: Privacy parameter in (0, 0.5], any shape; broadcast against `eps`.

    Returns:
        sigma, rounded up: `gaussian_delta(eps=eps, sigma=sigma) <= delta` holds as evaluated, and
        fails at `sigma * (1 - 1e-9)`. A Python float for scalars, else float64.

    Raises:
        InvalidInput: An argument is outside its range.

    Source:
        Balle & Wang 2018, Theorem 8 (the exact calibration, not the classical formula).

    Example:
        >>> round(gaussian_sigma(eps=1.0, delta=1e-6), 7)
        4.2246789
    """
    eps, delta = np.broadcast_arrays(check_eps(eps), check_delta(delta))
    return float_or_array(raw_gaussian_sigma(eps, delta))


def sufficient_sigma(eps: Floats, share: Floats) -> Floats:
    """A sigma that is large enough: sigma_suf, or the one for eps = 0 if that is smaller.

    sigma_suf solves Phi(h/2 - eps/h) = share, the first term of delta_G (infinite at eps = 0); and
    delta_G decreases in eps, with delta_G(0) = 2 Phi(h/2) - 1 = erf(h / sqrt 8).
    """
    z = -ndtri(share)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        by_first_term = (z + np.sqrt(z * z + 2 * eps)) / (2 * eps)
    # fmin: at eps = 0 and share = 1/2 the first is 0/0.
    return np.fmin(by_first_term, 1 / (np.sqrt(8) * erfinv(share)))


def raw_gaussian_sigma(eps: Floats, share: Floats) -> Floats:
    """`gaussian_sigma` of checked arrays of one shape, `share` down to 5e-301."""
    log_share = np.log(share)

    def excess(log_sigma: Floats, eps: Floats, log_share: Floats) -> Floats:
        return _raw_log_gaussian_delta(eps, np.exp(-log_sigma)) - log_share

    # Too small: at h = 2 + sqrt(4 + 2 eps) the low end is -2, and delta_G > 0.94 > 1/2.
    lower = -np.log(2 + np.sqrt(4 + 2 * eps))
    # Large enough, and then some, so that rounding cannot spoil the sign.
    upper = np.log(sufficient_sigma(eps, share)) + 1e-6
    root = elementwise.find_root(
        excess, (lower, upper), args=(eps, log_share), tolerances={"xatol": 1e-15, "xrtol": 1e-15}
    )
    if not np.all(root.success):
        raise RuntimeError(f"the search for sigma failed: status {root.status}")
    # Rounding up: first past the evaluation error, then until the condition holds as evaluated.
    sigma = np.exp(root.x) * (1 + PRIVATE_MARGIN)
    while np.any(short := raw_gaussian_delta(eps, 1 / sigma) > share):
        sigma = np.where(short, sigma * (1 + PRIVATE_MARGIN), sigma)
    return sigma


def _ratio(sensitivity: Reals, sigma: Reals) -> Floats:
    """Check, and divide: h = sensitivity/sigma, above 0 even where it underflows."""
    sensitivity, sigma = check_positive("sensitivity", sensitivity), check_positive("sigma", sigma)
    with np.errstate(over="ignore", under="ignore"):
        return np.maximum(sensitivity / sigma, np.nextafter(0.0, 1.0))


def raw_gaussian_delta(eps: Floats, h: Floats) -> Floats:
    """delta_G of checked arrays, h = sensitivity/sigma."""
    log_scale, factor = _scaled(eps, h)
    with np.errstate(under="ignore"):  # below 1e-308 it is 0, as documented
        return np.exp(log_scale) * factor


def _raw_log_gaussian_delta(eps: Floats, h: Floats) -> Floats:
    """Ln delta_G of checked arrays, h = sensitivity/sigma."""
    log_scale, factor = _scaled(eps, h)
    with np.errstate(divide="ignore"):  # log 0 where even low^2 overflows: -inf is right
        return log_scale + np.log(factor)


def _scaled(eps: Floats, h: Floats) -> tuple[Floats, Floats]:
    """delta_G as (log_scale, factor), delta_G = exp(log_scale) * factor, factor without cancelling.

    Each branch is evaluated everywhere and used where it is accurate, hence the ignored overflows.
    """
    with np.errstate(all="ignore"):
        low, high = eps / h - h / 2, eps / h + h / 2
        log_phi = -0.5 * low * low - _LOG_SQRT_2PI
        # Short against where it lies: the Mills ratios at both ends are close. Integrate.
        short = h < np.maximum(1.0, low)
        x = np.expand_dims(low, -1) + np.expand_dims(h, -1) * (0.5 * (1 + _NODES))
        integral = h * (0.5 * _mills_slope(x) @ _WEIGHTS)
        # Long: R(high) is at most about half of R(low), and the difference loses no digits.
        above_zero = _mills(low) - _mills(high)
        # Long and low < 0: R(low) overflows, so Phi(-low) = phi(low) R(low) is taken whole.
        below_zero = ndtr(-low) - np.exp(log_phi) * _mills(high)
        factor = np.where(short, integral, np.where(low < 0, below_zero, above_zero))
        log_scale = np.where(~short & (low < 0), 0.0, log_phi)
    return log_scale, factor


def _mills(x: Floats) -> Floats:
    """R(x) = Phi(-x)/phi(x)."""
    return np.sqrt(np.pi / 2) * erfcx(x / np.sqrt(2))


def _mills_slope(x: Floats) -> Floats:
    """-R'(x) = 1 - x R(x) > 0, accurate for large x, where x R(x) is close to 1."""
    far = np.maximum(x, _FRACTION_FROM)
    # R(x) = 1/(x + c), c = 1/(x + 2/(x + 3/(x + ...))), hence 1 - x R(x) = c/(x + c).
    c = np.zeros_like(far)
    for k in range(_FRACTION_TERMS, 0, -1):
        c = k / (far + c)
    return np.where(x < _FRACTION_FROM, 1 - x * _mills(x), c / (far + c))
