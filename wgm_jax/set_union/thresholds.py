"""Thresholds of the mechanisms in float64, rounded to the private side. No JAX."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from theory._check import Reals, check_delta, check_eps, check_max_items_per_user, invalid
from theory.calibration import raw_threshold
from theory.gaussian import PRIVATE_MARGIN, Floats


def laplace_threshold(*, eps: Reals, delta: Reals, max_items_per_user: Reals) -> Floats:
    """Threshold of weighted and policy Laplace, T_L.

    A new user releases one of its t new items, each of weight at most 1/t, with probability at most
    delta if

        T >= 1/t + (1/eps) ln(1 / (2 (1 - (1 - delta)^(1/t)))).

    In u = 1/t this is u plus a convex function, so the largest over t = 1..Delta0 is at an end.

    Args:
        eps: Privacy parameter above 0, any shape.
        delta: Privacy parameter in (0, 0.5], any shape.
        max_items_per_user: Delta0, any shape.

    Raises:
        InvalidInput: An argument is outside its range.

    Source:
        Gopi et al. 2020, Algorithm 3 and its code.

    Example:
        >>> t = laplace_threshold(eps=1.0, delta=1e-5, max_items_per_user=[1, 10, 100])
        >>> t.round(4)
        array([11.8198, 13.2224, 15.4349])
    """
    eps, delta, count = _checked(eps, delta, max_items_per_user)
    one = 1 + half_tail(delta) / eps
    most = 1 / count + half_tail(share(delta, count)) / eps
    return rounded_up(np.maximum(one, most))


def count_threshold(*, eps: Reals, delta: Reals, max_items_per_user: Reals) -> Floats:
    """Threshold of counts with Laplace noise of scale Delta0/eps.

    A new user releases one of Delta0 new items of count 1 with probability at most delta if

        T >= 1 + (Delta0/eps) ln(1 / (2 (1 - (1 - delta)^(1/Delta0)))).

    Args:
        eps: Privacy parameter above 0, any shape.
        delta: Privacy parameter in (0, 0.5], any shape.
        max_items_per_user: Delta0, any shape.

    Raises:
        InvalidInput: An argument is outside its range.

    Source:
        Code of Gopi et al. 2020.

    Example:
        >>> float(count_threshold(eps=1.0, delta=1e-5, max_items_per_user=10).round(4))
        132.2236
    """
    eps, delta, count = _checked(eps, delta, max_items_per_user)
    return rounded_up(1 + half_tail(share(delta, count)) * count / eps)


def korolova_threshold(*, eps: Reals, delta: Reals, max_items_per_user: Reals) -> Floats:
    """K = d (1 - ln(2 delta/d)/eps), d = Delta0: threshold of counts with noise Lap(d/eps).

    A new user may add c_1 + c_2 + ... = d to new items. One of count c is released with probability
    (delta/d) e^(-(d - c) eps/d) at most, there are at most d of them, hence delta in all. With
    sets (every c is 1) the bound is slack; it is the published one.

    Args:
        eps: Privacy parameter above 0, any shape.
        delta: Privacy parameter in (0, 0.5], any shape.
        max_items_per_user: Delta0, any shape.

    Raises:
        InvalidInput: An argument is outside its range.

    Source:
        Korolova et al. 2009; the argument above is ours.

    Example:
        >>> float(korolova_threshold(eps=1.0, delta=1e-5, max_items_per_user=10).round(3))
        141.224
    """
    eps, delta, count = _checked(eps, delta, max_items_per_user)
    return rounded_up(count * (1 + half_tail(delta / count) / eps))


def greedy_threshold(*, eps: Reals, delta: Reals, max_items_per_user: Reals) -> Floats:
    """Threshold of the sound Policy Greedy: 1 + (1/eps) ln((1 + (Delta0 - 1) e^(-eps))/(2 delta)).

    A new user spreads at most 1 over t <= Delta0 new items, and all of them get noise, those of
    weight 0 too. The chance of a release is convex in the weights, so the worst case is one item of
    weight 1 and t - 1 of weight 0.

    Args:
        eps: Privacy parameter above 0, any shape.
        delta: Privacy parameter in (0, 0.5], any shape.
        max_items_per_user: Delta0, any shape; 1 gives the published threshold rho.

    Raises:
        InvalidInput: An argument is outside its range: above delta = 1/2 the threshold would be
            below the weight of a new item.

    Example:
        >>> t = greedy_threshold(eps=1.0, delta=1e-5, max_items_per_user=[1, 10, 100])
        >>> t.round(4)
        array([11.8198, 13.2809, 15.442 ])
    """
    eps, delta, count = _checked(eps, delta, max_items_per_user)
    return rounded_up(1 + (np.log1p((count - 1) * np.exp(-eps)) + half_tail(delta)) / eps)


def gaussian_threshold(*, sigma: Floats, delta: Floats, max_items_per_user: np.ndarray) -> Floats:
    """Largest over t of t^(-1/2) + sigma Phi^-1((1 - delta)^(1/t)), arrays of one shape, [P1]."""
    return raw_threshold(sigma, delta, max_items_per_user)


def count_gaussian_threshold(
    *, scale: np.ndarray, delta: np.ndarray, max_items_per_user: np.ndarray
) -> Floats:
    """1 + scale Phi^-1((1 - delta)^(1/Delta0)): Delta0 new items of count 1, Gaussian noise.

    Args:
        scale: Standard deviation, any shape.
        delta: Probability of releasing one of them, any shape.
        max_items_per_user: Delta0, any shape.

    Source:
        Code of Gopi et al. 2020.
    """
    return rounded_up(1 - scale * ndtri(share(delta, max_items_per_user)))


def half_tail(probability: Floats) -> Floats:
    """Where the tail of a Laplace law of scale 1 is that probability, at most 1/2: -ln(2 p)."""
    return -np.log(2 * probability)


def share(delta: Floats, count: Floats) -> Floats:
    """1 - (1 - delta)^(1/count), what each of `count` independent events may have."""
    return -np.expm1(np.log1p(-delta) / count)


def rounded_up(threshold: Floats) -> Floats:
    """Past the error of evaluation."""
    return threshold * (1 + PRIVATE_MARGIN)


def check_laplace_eps(eps: Reals) -> np.ndarray:
    """Privacy parameter of Laplace noise, any shape, above 0."""
    checked = check_eps(eps)
    if np.any(checked <= 0):
        invalid("eps", checked.min(), "must be above 0 for Laplace noise, whose scale is 1/eps")
    return checked


def _checked(eps: Reals, delta: Reals, count: Reals) -> list[np.ndarray]:
    checked = check_laplace_eps(eps), check_delta(delta), check_max_items_per_user(count)
    return [np.asarray(v, np.float64) for v in np.broadcast_arrays(*checked)]
