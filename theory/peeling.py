"""Noise of the private selections: peeling, user peeling and limited-domain top-k, and back.

A round of peeling releases the item of the largest count plus Gumbel(lambda) noise. Counts move
one way when a user is added and by at most one, so a round is eps'-bounded range, eps' = 1/lambda,
hence eps'^2/8-zCDP, and k rounds are (k eps'^2/8)-zCDP. What is left is to turn zCDP into
(eps, delta).
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from scipy.optimize import elementwise

from theory._check import Reals, check_delta, check_eps, check_positive, invalid
from theory.gaussian import PRIVATE_MARGIN
from theory.zipf import plain

Conversion = Literal["paper", "tight"]
CONVERSIONS: tuple[str, ...] = get_args(Conversion)

TOLERANCES = {"xatol": 1e-15, "xrtol": 1e-15}


def peeling_scale(*, eps: Reals, delta: Reals, k: Reals, conversion: Conversion = "paper") -> Any:
    """Gumbel scale with which k rounds of peeling are (eps, delta)-DP.

    lambda = 1/eps' with eps' the larger of eps/k (pure composition) and the largest eps' for which
    rho = k eps'^2/8 of zCDP is (eps, delta)-DP. For the latter

    - "paper" uses eps = rho + 2 sqrt(rho ln(1/delta)), that is
      eps' = sqrt((8 ln(1/delta) + 8 eps)/k) - sqrt(8 ln(1/delta)/k);
    - "tight" uses delta = inf over a > 1 of e^((a-1)(a rho - eps)) (1-1/a)^a / (a-1)
      (Canonne, Kamath, Steinke 2020), never more noise than "paper".

    Args:
        eps: Privacy parameter in (0, 1e5], any shape.
        delta: Privacy parameter in (0, 0.5], any shape.
        k: Rounds, whole numbers of at least 1, any shape; the three are broadcast.
        conversion: "paper" or "tight".

    Returns:
        lambda, in counts, of the broadcast shape, rounded to the private side.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        [K1], Lemmas 4.1 and B.1.

    Example:
        >>> round(peeling_scale(eps=1.0, delta=1e-5, k=200), 4)
        34.6522
        >>> round(peeling_scale(eps=1.0, delta=1e-5, k=200, conversion="tight"), 4)
        28.6034
    """
    _check_conversion(conversion)
    e, d, rounds = np.broadcast_arrays(check_eps_above_0(eps), check_delta(delta), check_rounds(k))
    log_need = -np.log(d)
    if conversion == "paper":
        # The difference of two square roots, without cancellation.
        rho = (e / (np.sqrt(log_need + e) + np.sqrt(log_need))) ** 2
    else:
        rho = _largest_rho(e, log_need)
    by_zcdp = np.sqrt(rounds / (8 * rho)) * (1 + PRIVATE_MARGIN)
    pure = rounds / e
    while np.any(short := _delta_of_zcdp(e, rounds / (8 * by_zcdp**2), conversion) > d):
        by_zcdp = np.where(short, by_zcdp * (1 + PRIVATE_MARGIN), by_zcdp)
    return plain(np.minimum(pure, by_zcdp))


def peeling_delta(*, eps: Reals, k: Reals, scale: Reals, conversion: Conversion = "paper") -> Any:
    """Delta that [K1] proves for k rounds of peeling with a given scale; inverse of its scale.

    Args:
        eps: Privacy parameter in (0, 1e5], any shape.
        k: Rounds, whole numbers of at least 1, any shape.
        scale: lambda above 0, any shape; the three are broadcast.
        conversion: "paper" or "tight", as in `peeling_scale`.

    Returns:
        delta in [0, 1], of the broadcast shape: 0 where k/lambda <= eps (pure composition).

    Raises:
        InvalidInput: An argument out of range.

    Source:
        [K1], Lemmas 4.1 and B.1.

    Example:
        >>> peeling_delta(eps=1.0, k=3, scale=3.0)
        0.0
        >>> f"{peeling_delta(eps=1.0, k=200, scale=34.652157913159383):.4g}"
        '1e-05'
        >>> f"{peeling_delta(eps=1.0, k=200, scale=34.652157913159383, conversion='tight'):.3g}"
        '1.5e-07'
    """
    _check_conversion(conversion)
    e, rounds, noise = np.broadcast_arrays(
        check_eps_above_0(eps), check_rounds(k), check_positive("scale", scale)
    )
    # lambda = k/eps is a rounded quotient.
    pure = rounds / noise <= e * (1 + PRIVATE_MARGIN)
    rho = rounds / (8 * np.where(pure, rounds / e, noise) ** 2)
    return plain(np.where(pure, 0.0, _delta_of_zcdp(e, rho, conversion)))


def hitting_scale(*, eps: Reals, delta: Reals) -> Any:
    """Gumbel scale with which user peeling is (eps, delta)-DP, whatever the number of rounds.

    lambda = 1/eps' with the largest eps' <= eps for which
    (1 - e^(-eps')) exp(-(eps + eps')/(e^eps' - 1)) <= delta: a user is hit once, and only until
    then do the rounds depend on it. `hitting_game_delta` is the exact value of the worst case.

    Args:
        eps: Privacy parameter in (0, 1e5], any shape.
        delta: Privacy parameter in (0, 0.5], any shape; broadcast against `eps`.

    Returns:
        lambda, in counts, of the broadcast shape, rounded to the private side.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        [K1h]; the idea is Gupta et al. 2010.

    Example:
        >>> round(hitting_scale(eps=1.0, delta=1e-5), 4)
        8.8253
    """
    e, d = np.broadcast_arrays(check_eps_above_0(eps), check_delta(delta))
    log_delta = np.log(d)

    def excess(x: Any, e: Any, log_delta: Any) -> Any:
        return log_hitting_delta(e, x) - log_delta

    # The left side rises with x. At the low end its second factor alone is at most delta; at the
    # high end it is above 0.99.
    bracket = (np.log1p(e / -log_delta), np.log1p(e) + 10)
    root = elementwise.find_root(excess, bracket, args=(e, log_delta), tolerances=TOLERANCES)
    if not np.all(root.success):
        raise RuntimeError(f"the search for the scale failed: status {root.status}")
    by_root = (1 + PRIVATE_MARGIN) / root.x
    while np.any(short := log_hitting_delta(e, 1 / by_root) > log_delta):
        by_root = np.where(short, by_root * (1 + PRIVATE_MARGIN), by_root)
    return plain(np.maximum(by_root, 1 / e))


def log_hitting_delta(eps: Any, eps_round: Any) -> Any:
    """Logarithm of [K1h]'s left side, of checked arrays: rises with eps_round, falls with eps."""
    with np.errstate(over="ignore"):  # e^eps' = inf: no round but the covering one loses anything
        return np.log(-np.expm1(-eps_round)) - (eps + eps_round) / np.expm1(eps_round)


def user_peeling_scale(*, eps: Reals, delta: Reals, k: Reals) -> Any:
    """Gumbel scale with which k rounds of user peeling are (eps, delta)-DP: the smaller one.

    Args:
        eps: Privacy parameter in (0, 1e5], any shape.
        delta: Privacy parameter in (0, 0.5], any shape.
        k: Rounds, whole numbers of at least 1, any shape; the three are broadcast.

    Returns:
        The smaller of `peeling_scale` (paper's conversion) and `hitting_scale`.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        [K1] and [K1h]; Algorithm 4 uses [K1].

    Example:
        >>> [round(user_peeling_scale(eps=1.0, delta=1e-5, k=k), 3) for k in (1, 10, 200)]
        [1.0, 7.748, 8.825]
    """
    by_rounds = peeling_scale(eps=eps, delta=delta, k=k)
    return plain(np.minimum(by_rounds, hitting_scale(eps=eps, delta=delta)))


def local_eps(*, eps: Reals, delta: Reals, k: Reals) -> Any:
    """Privacy parameter of one of k rounds of limited-domain top-k, which spend eps and delta/2.

    The largest e with min(k e, k e tanh(e/2) + e sqrt(2 k L), k e^2/2 + e sqrt(k L/2)) <= eps,
    L = ln(2/delta).

    Args:
        eps: Privacy parameter in (0, 1e5], any shape.
        delta: Privacy parameter in (0, 0.5], any shape.
        k: Rounds, whole numbers of at least 1, any shape; the three are broadcast.

    Returns:
        eps_loc of the broadcast shape; Gumbel noise of the counts has scale 1/eps_loc.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        Durfee and Rogers 2019.

    Example:
        >>> [round(local_eps(eps=1.0, delta=1e-5, k=k), 6) for k in (1, 10, 200)]
        [1.0, 0.118949, 0.026598]
    """
    e, d, rounds = np.broadcast_arrays(check_eps_above_0(eps), check_delta(delta), check_rounds(k))
    need = np.log(2) - np.log(d)
    linear = np.sqrt(rounds * need / 2)
    pure = e / rounds
    by_square = 2 * e / (linear + np.sqrt(linear**2 + 2 * rounds * e))

    def excess(x: Any, e: Any, rounds: Any, linear: Any) -> Any:
        return rounds * x * np.tanh(x / 2) + 2 * linear * x - e

    # excess(0) < 0; its linear part alone reaches eps at the high end.
    root = elementwise.find_root(
        excess, (np.zeros_like(e), e / linear), args=(e, rounds, linear), tolerances=TOLERANCES
    )
    best = np.maximum(by_square, root.x) * (1 - PRIVATE_MARGIN)
    return plain(np.maximum(pure, best))


def limited_domain_offset(
    *, delta: Reals, eps_round: Reals, k_bar: Reals, max_items_per_user: Reals
) -> Any:
    """What limited-domain top-k adds to the count of the first item outside its domain.

    1 + ln(min(Delta0, k_bar)/(delta/2))/eps_loc: the threshold that a released item must pass,
    before noise, is N_(k_bar + 1) plus this.

    Args:
        delta: Privacy parameter in (0, 0.5], any shape.
        eps_round: eps_loc of `local_eps`, above 0, any shape.
        k_bar: Size of the domain, at least 1, `numpy.inf` allowed, any shape.
        max_items_per_user: Delta0, at least 1, `numpy.inf` allowed, but not both; any shape.

    Returns:
        Offset in counts, of the broadcast shape.

    Raises:
        InvalidInput: An argument out of range, or k_bar and Delta0 both infinite.

    Source:
        Durfee and Rogers 2019.

    Example:
        >>> round(limited_domain_offset(
        ...     delta=1e-5, eps_round=1.0, k_bar=1, max_items_per_user=np.inf), 4)
        13.2061
    """
    touched = np.minimum(
        _check_size("max_items_per_user", max_items_per_user), _check_size("k_bar", k_bar)
    )
    if np.any(np.isinf(touched)):
        invalid("k_bar", np.inf, "must be finite where max_items_per_user is infinite")
    half = check_delta(delta) / 2
    return plain(1 + np.log(touched / half) / check_positive("eps_round", eps_round))


def _delta_of_zcdp(eps: Any, rho: Any, conversion: str) -> Any:
    """Delta of rho-zCDP at eps, of checked arrays of one shape."""
    if conversion == "paper":
        gap = np.maximum(eps - rho, 0.0)
        return np.exp(-(gap**2) / (4 * rho))

    def slope(log_a: Any, eps: Any, rho: Any) -> Any:
        return (2 * np.exp(log_a) + 1) * rho - eps - np.logaddexp(0.0, -log_a)

    # In a - 1 the logarithm of the infimand is convex. Its slope is below 0 at e^(-3 rho), where
    # the last term alone outweighs 3 rho, and above 0 at the high end.
    bracket = (-3 * rho, np.log(np.maximum(1.0, (eps + 1) / rho)))
    root = elementwise.find_root(slope, bracket, args=(eps, rho), tolerances=TOLERANCES)
    if not np.all(root.success):
        raise RuntimeError(f"the search for the order failed: status {root.status}")
    a = np.exp(root.x)
    log_delta = a * ((1 + a) * rho - eps - np.logaddexp(0.0, -root.x)) - np.log1p(a)
    return np.exp(np.minimum(log_delta, 0.0))


def _largest_rho(eps: Any, log_need: Any) -> Any:
    """Largest rho with the tight delta of `_delta_of_zcdp` at most e^(-log_need).

    Every order a proves rho(a) = [eps + (ln(a) - log_need)/(a-1) + ln(a/(a-1))]/a; the best one is
    where the order's own stationary rho, falling in a, has the wanted delta.
    """

    def excess(log_a: Any, eps: Any, log_need: Any) -> Any:
        a, late = np.exp(log_a), np.logaddexp(0.0, -log_a)
        gain = a / (2 * a + 1) * ((1 + a) * late - a * eps)
        return gain - a * late - np.log1p(a) + log_need

    bracket = (np.log(1e-3) - np.log1p(eps), log_need + 3)
    root = elementwise.find_root(excess, bracket, args=(eps, log_need), tolerances=TOLERANCES)
    if not np.all(root.success):
        raise RuntimeError(f"the search for the order failed: status {root.status}")
    a = np.exp(root.x)
    return (eps + (np.log1p(a) - log_need) / a + np.logaddexp(0.0, -root.x)) / (1 + a)


def _check_conversion(conversion: str) -> None:
    if conversion not in CONVERSIONS:
        invalid("conversion", conversion, "must be 'paper' or 'tight'")


def check_eps_above_0(eps: Reals) -> np.ndarray:
    """Privacy parameter eps in (0, 1e5]: a selection with eps = 0 would need infinite noise."""
    array = check_eps(eps)
    if np.any(array == 0):
        invalid("eps", 0.0, "must be a number in (0, 1e5]")
    return array


def check_rounds(k: Reals) -> np.ndarray:
    """Numbers of rounds or items, whole and at least 1, any shape, as float64."""
    array = np.asarray(k)
    accepted = "must be a whole number of at least 1"
    if array.dtype.kind not in "iuf":
        invalid("k", k, accepted)
    floats = array.astype(np.float64)
    bad = ~(np.isfinite(floats) & (floats >= 1) & (np.floor(floats) == floats))
    if np.any(bad):
        invalid("k", array[bad].flat[0], accepted)
    return floats


def _check_size(name: str, value: Reals) -> np.ndarray:
    """A size of at least 1, infinity allowed, any shape."""
    array = np.asarray(value, np.float64)
    if not np.all(array >= 1):
        invalid(name, value, "must be at least 1")
    return array
