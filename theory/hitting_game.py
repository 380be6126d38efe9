"""The exact worst case of user peeling's privacy loss, a game against adaptive rounds.

One user u is present or not. Until an item of u is released, round j picks one of u's items with
some chance p_j without u, and with u each of them is e^eps' times as likely and each other item as
likely as before, both over 1 + c p_j, c = e^eps' - 1. Once u is hit, it no longer matters. So with
u absent, the loss ln(P without u/P with u) grows by ln(1 + c p_j) a round and drops by eps' when u
is hit.

The game. State: rounds left j, loss so far L >= 0, u not hit. The adversary chooses p in [0, 1]:

    V_0(L) = (1 - e^(eps-L))_+,
    V_j(L) = max_p  p (1 - e^(eps+eps'-L-l))_+ + (1-p) V_(j-1)(L + l),    l = ln(1 + c p).

V_k(0) is the least delta that holds for all counts. Adding u instead has a loss of at most eps',
which is nothing for eps' <= eps.

Its value. For L >= B = eps + eps' no (.)_+ cuts, e^(-loss) is a martingale and V_j = V_0. A step
from L < B beyond B pays V_0(L) in all, no more than stopping. So only steps with L + l <= B
count, where being hit pays nothing: V_k(0) is the largest product of the chances
1 - p_j = (e^eps' - e^(l_j))/c of staying, times 1 - e^(eps-S), S = l_1 + ... + l_k <= B. The
logarithm of a factor is concave in l_j, so equal steps are best, and in t = S - eps the derivative
vanishes where eps' - S/k = t. Hence, with t = (k eps' - eps)/(k + 1) if that is above 0,

    V_k(0) = (1 - e^(-t))^(k+1) / (1 - e^(-eps'))^k.

It rises with k to the closed form of [K1h], its limit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import elementwise

from theory._check import Reals, check_delta, check_positive, invalid
from theory.gaussian import PRIVATE_MARGIN
from theory.peeling import TOLERANCES, check_eps_above_0, check_rounds, log_hitting_delta
from theory.zipf import plain


def hitting_game_delta(*, eps: Reals, eps_round: Reals, rounds: Reals) -> Any:
    """Exact worst-case delta of user peeling with a given scale and number of rounds.

    Args:
        eps: Privacy parameter in (0, 1e5], any shape.
        eps_round: eps' = 1/lambda of one round, above 0 and at most eps, any shape.
        rounds: k, whole numbers of at least 1, `numpy.inf` allowed; any shape. The three are
            broadcast.

    Returns:
        V_k(0) of the broadcast shape: 0 where k eps' <= eps, and [K1h]'s closed form at infinity.

    Raises:
        InvalidInput: An argument out of range, or eps_round above eps.

    Source:
        [K1h], before its limit.

    Example:
        >>> x = 1 / 8.825324763448672
        >>> deltas = hitting_game_delta(eps=1.0, eps_round=x, rounds=[8, 10, 20, 200, np.inf])
        >>> print(*(f"{delta:.2e}" for delta in deltas))
        0.00e+00 3.83e-12 3.27e-07 7.80e-06 1.00e-05
    """
    e, x, k = np.broadcast_arrays(
        check_eps_above_0(eps), check_positive("eps_round", eps_round), _check_or_infinite(rounds)
    )
    above = x > e * (1 + PRIVATE_MARGIN)  # eps' = 1/lambda is a rounded quotient
    if np.any(above):
        invalid("eps_round", x[above].flat[0], "must be at most eps: adding a user may lose it all")
    with np.errstate(under="ignore"):
        return plain(np.exp(_log_game_delta(e, x, k)))


def hitting_game_scale(*, eps: Reals, delta: Reals, k: Reals) -> Any:
    """Least Gumbel scale that the game proves for k rounds of user peeling.

    Never above `user_peeling_scale` while delta <= e^-2; beyond, [K1] may allow eps' > eps.

    Args:
        eps: Privacy parameter in (0, 1e5], any shape.
        delta: Privacy parameter in (0, 0.5], any shape.
        k: Rounds, whole numbers of at least 1, any shape; the three are broadcast.

    Returns:
        lambda = 1/eps', in counts, of the broadcast shape, with the largest eps' <= eps for which
        `hitting_game_delta` is at most delta, rounded to the private side.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        The exact form of [K1h].

    Example:
        >>> [round(hitting_game_scale(eps=1.0, delta=1e-5, k=k), 3) for k in (1, 10, 200)]
        [1.0, 5.674, 8.612]
    """
    e, d, rounds = np.broadcast_arrays(check_eps_above_0(eps), check_delta(delta), check_rounds(k))
    log_delta = np.log(d)

    def excess(x: Any, e: Any, log_delta: Any, rounds: Any) -> Any:
        # A finite number for delta = 0, so that the search can interpolate.
        return np.maximum(_log_game_delta(e, x, rounds), -1e4) - log_delta

    # delta is 0 up to eps/k, and rises with eps' to at least (1 - e^(-t))^2, t = (eps' - eps)/2.
    bracket = (e / rounds * (1 - PRIVATE_MARGIN), e + 20)
    root = elementwise.find_root(
        excess, bracket, args=(e, log_delta, rounds), tolerances=TOLERANCES
    )
    if not np.all(root.success):
        raise RuntimeError(f"the search for the scale failed: status {root.status}")
    by_root = (1 + PRIVATE_MARGIN) / root.x
    while np.any(short := _log_game_delta(e, 1 / by_root, rounds) > log_delta):
        by_root = np.where(short, by_root * (1 + PRIVATE_MARGIN), by_root)
    return plain(np.maximum(by_root, 1 / e))


def _log_game_delta(eps: Any, eps_round: Any, rounds: Any) -> Any:
    """Logarithm of V_k(0) of checked arrays; -inf where nothing is lost."""
    k = np.where(np.isinf(rounds), 1.0, rounds)
    step = np.where(k * eps_round > eps, (eps + eps_round) / (k + 1), eps_round)
    t = np.where(k * eps_round > eps, (k * eps_round - eps) / (k + 1), 0.0)
    with np.errstate(divide="ignore"):
        lost, full = np.log(-np.expm1(-t)), np.log(-np.expm1(-eps_round))
    # One round's chance of staying unhit: near 1 for many rounds, near 0 for t near 0. The chance
    # of being hit is (e^step - 1)/(e^eps' - 1), without overflow.
    hit = np.exp(step - eps_round) * np.expm1(-step) / np.expm1(-eps_round)
    near_one = np.log1p(-np.minimum(hit, 0.75))
    stay = np.where(step < eps_round / 2, near_one, lost - full)
    finite = np.where(t > 0, k * stay + lost, -np.inf)
    return np.where(np.isinf(rounds), log_hitting_delta(eps, eps_round), finite)


def _check_or_infinite(rounds: Reals) -> np.ndarray:
    array = np.asarray(rounds)
    if array.dtype.kind != "f":
        return check_rounds(rounds)
    infinite = np.isposinf(array)
    return np.where(infinite, np.inf, check_rounds(np.where(infinite, 1.0, array)))
