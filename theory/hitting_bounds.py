"""Bounds on the users hit: what user peeling reaches, and what nobody can exceed."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, gammainccinv

from theory._check import (
    Reals,
    check_beta,
    check_count,
    check_delta,
    check_eps,
    check_positive,
    invalid,
)
from theory.bound import Bound
from theory.calibration import Calibration
from theory.hard_selection import hard_frequency
from theory.hitting_optimum import greedy_share, opt_upper_bound
from theory.lower_bounds import optimal_selection_probability
from theory.profile import Profile
from theory.residual import Incidence, distinct, rows_of
from theory.top_k_bounds import check_domain, domain_frequency, top_k_lower_bound, top_sum
from theory.user_items import UserItems
from theory.zipf import plain

_ANY = "any sound (eps, delta)-DP algorithm"
# Users' neighbours are counted exactly up to this many user-holder pairs in all.
_MOST_NEIGHBOURS = 10**7
_CHUNK = 2 * 10**6


def lemma_c7(
    domain_optimum: Reals,
    num_items: int,
    *,
    k: int,
    scale: Reals,
    beta: float,
    form: Literal["explicit", "sharp", "printed"] = "explicit",
) -> Bound:
    """Users that user peeling hits from a given domain.

    Round i misses the largest residual count by more than lambda (ln(D_i) + t) with probability at
    most e^-t, and the largest is at least 1/k of what the optimum still has over the hits so far.
    So what round i loses shrinks by 1 - 1/k in each later round, w_i = (1-1/k)^(k-i) in the end:

    - "explicit": g (Opt_D - k lambda ln(k D/beta)), g = 1 - (1-1/k)^k;
    - "sharp": g Opt_D - lambda [sum_i w_i ln(D-i+1) + Q], Q >= the 1-beta quantile of
      sum_i w_i E_i with E_i independent Exponential(1); Opt_D where D <= k: all is released;
    - "printed": (1-1/e) Opt_D - 2 k lambda ln(2 D k/beta).

    Args:
        domain_optimum: Opt(W, D, k), what k items of the domain can hit, or less; any shape.
        num_items: D, items of the domain, or more.
        k: Items to choose, at least 1.
        scale: Gumbel scale lambda above 0, broadcast with the optimum.
        beta: Failure probability in (0, 1).
        form: "explicit", "sharp" or "printed".

    Returns:
        Lower bound on the hits, of the broadcast shape, at least 0 (but not clipped in the printed
        form).

    Raises:
        InvalidInput: An argument out of range.

    Source:
        Lemma C.7, [H1].

    Example:
        >>> forms = ("printed", "explicit", "sharp")
        >>> [round(lemma_c7(5000, 100, k=10, scale=8.8, beta=0.05, form=form).value)
        ...  for form in forms]
        [1296, 2689, 2877]
    """
    if form not in ("explicit", "sharp", "printed"):
        invalid("form", form, "must be 'explicit', 'sharp' or 'printed'")
    beta = float(check_beta(beta))
    k = check_count("k", k)
    noise = check_positive("scale", scale)
    best = _check_hits("domain_optimum", domain_optimum)
    domain = float(check_domain(num_items))
    if form == "printed":
        loss = 2 * k * noise * np.log(2 * max(domain, 1.0) * k / beta)
        value = (1 - np.exp(-1)) * best - loss
    else:
        value = _reached(best, domain, k, noise, beta, form)
    return Bound(
        plain(value), "Lemma C.7", f"Lemma C.7 ({form} form)", "hits", "lower", "quantile", beta,
        ("user peeling on a given domain, k rounds",),
    )  # fmt: skip


def lemma_c8(optimum: Reals, *, k: int, tau: Reals) -> Bound:
    """Users that k items of a domain can hit, when it holds all items above a frequency.

    Args:
        optimum: Opt(W, k) of all items, or less; any shape.
        k: Items to choose, at least 1.
        tau: Frequency above which every item is in the domain, at least 0, any shape.

    Returns:
        Lower bound Opt - k tau on Opt(W, D, k), of the broadcast shape, at least 0: each of the
        best k items that is not in D hits at most tau.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        Lemma C.8.

    Example:
        >>> lemma_c8(500, k=10, tau=20.0).value
        300.0
    """
    best, level = _check_hits("optimum", optimum), _check_hits("tau", tau)
    value = np.maximum(best - check_count("k", k) * level, 0.0)
    return Bound(plain(value), "Lemma C.8", "Lemma C.8", "hits", "lower", "sure")


def hits_bound(
    profile: Profile,
    calibration: Calibration,
    *,
    optimum: Reals,
    k: int,
    scale: Reals,
    beta: float,
    form: Literal["explicit", "sharp"] = "explicit",
    tau: Literal["u1", "u1_star"] = "u1",
) -> Bound:
    """Users hit by the weighted Gaussian mechanism followed by user peeling.

    Lemma C.8 with tau at beta/2 and Lemma C.7 at beta/2 and D <= M.

    Args:
        profile: Data at one Delta0.
        calibration: Noise and threshold of the domain stage (its part of the budget) at the same
            Delta0, any shape.
        optimum: Opt(W, k), or less (the greedy hits); broadcast with the calibration.
        k: Items to choose, at least 1.
        scale: Gumbel scale lambda of the selection stage, above 0, broadcast likewise.
        beta: Failure probability in (0, 1).
        form: "explicit", g (Opt - k tau - k lambda ln(2 k M/beta)), or "sharp", with
            sum_{i<=k} min(N_(i), tau) for k tau and the sharp form of Lemma C.7.
        tau: Which frequency: "u1" ([U1]) or "u1_star" ([U1*], smaller).

    Returns:
        Lower bound on the hits, of the broadcast shape, at least 0. details: `tau`;
        `domain_optimum`, what is left of Opt in the domain.

    Raises:
        InvalidInput: An argument out of range, or a calibration for another Delta0.

    Source:
        [H1], Theorem 4.5 with k where it has k^(3/2).

    Example:
        >>> from theory.calibration import calibrate
        >>> data = Profile.from_frequencies(
        ...     [4000, 3000, 2000, 1000, 10], max_set_size=1, max_items_per_user=1)
        >>> noise = calibrate(eps=0.5, delta=5e-6, max_items_per_user=1)
        >>> point = {"optimum": 7000, "k": 2, "scale": 4.0, "beta": 0.05}
        >>> round(hits_bound(data, noise, **point).value)
        5130
        >>> round(hits_bound(data, noise, **point, form="sharp").value)
        5136
    """
    if form not in ("explicit", "sharp"):
        invalid("form", form, "must be 'explicit' or 'sharp'")
    beta = float(check_beta(beta))
    k = check_count("k", k)
    noise = check_positive("scale", scale)
    best = _check_hits("optimum", optimum)
    level = domain_frequency(profile, calibration, beta / 2, tau)
    above = np.asarray(level.value)
    lost = top_sum(profile, k, np.floor(above)) if form == "sharp" else k * above
    left = np.maximum(best - lost, 0.0)
    value = _reached(left, float(profile.num_items), k, noise, beta / 2, form)
    details = {"tau": level.value, "domain_optimum": plain(left)}
    return Bound(
        plain(value), "[H1]", f"Theorem 4.5 ({form} form)", "hits", "lower", "quantile", beta,
        level.conditions, details,
    )  # fmt: skip


def hits_upper_bound(data: UserItems, *, k: int, eps: Reals, delta: Reals) -> Bound:
    """Most users that any sound private algorithm hits on average on these very data.

    User i is hit when S meets W_i. Three bounds on that chance: 1; the sum of
    P(x in S) <= pi(N(x)) over W_i; and pi(deg_i), deg_i = number of users who hold an item of W_i.
    For the last, remove those deg_i users one by one. Then nobody holds an item of W_i, and a
    sound algorithm hits it with probability 0. Each removal changes the chance p of the event
    "S meets W_i" by (eps, delta)-DP, so back to the data it is at most pi(deg_i), whose recursion
    these are. Two more bounds on the whole: sum N(x) y_x of [L4], and Opt.

    Args:
        data: User-item sets.
        k: Items to choose, at least 1.
        eps: Privacy parameter in [0, 1e5], any shape.
        delta: Privacy parameter in (0, 0.5], any shape; broadcast against `eps`.

    Returns:
        Upper bound on E[Hits], of the broadcast shape, the least of the three in details: `users`
        = sum_i min(1, pi(deg_i), sum of pi(N(x))); `released` = the largest sum N(x) y_x with
        y_x <= pi(N(x)), sum y <= k; `optimum`, `opt_upper_bound`. Where counting all deg_i would
        take more than 1e7 pairs, the largest are replaced by upper bounds, which is valid since pi
        rises.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        [L5], Corollary 4.6 for any data.

    Example:
        >>> data = UserItems.from_sets([["a"]] * 12 + [["b", "c"]] * 5)
        >>> bound = hits_upper_bound(data, k=2, eps=1.0, delta=1e-5)
        >>> round(bound.value, 3), round(bound.details["released"], 3)
        (9.128, 9.132)
    """
    k = check_count("k", k)
    e, d = np.broadcast_arrays(check_eps(eps), check_delta(delta))
    counts = data.frequencies
    grid = list(zip(e.flat, d.flat, strict=True))

    def released(x: np.ndarray, point: tuple[float, float]) -> np.ndarray:
        eps, delta = point
        return optimal_selection_probability(x, eps=float(eps), delta=float(delta))

    # deg_i is at least the frequency of every item of i: where pi of that is no less than the sum,
    # the sum is the least of the three, and deg_i is not needed.
    sums, most = [], np.maximum.reduceat(counts[data.items], data.offsets[:-1])
    wanted = np.zeros(data.num_users, bool)
    for point in grid:
        sums.append(np.add.reduceat(released(counts, point)[data.items], data.offsets[:-1]))
        wanted |= np.minimum(sums[-1], 1.0) > released(most, point)
    degrees = most.copy()
    degrees[wanted] = _degrees(data, np.flatnonzero(wanted))
    each = [
        np.minimum(by_items, released(degrees, point)).sum()
        for by_items, point in zip(sums, grid, strict=True)
    ]
    users = np.reshape(each, e.shape)
    profile = Profile.from_frequencies(
        counts, max_set_size=data.max_set_size, max_items_per_user=1, num_users=data.num_users
    )
    lost = np.asarray(top_k_lower_bound(profile, k=k, eps=e, delta=d).value) * data.num_pairs
    in_all = float(top_sum(profile, k)) - lost
    optimum = opt_upper_bound(data, k).value
    details = {"users": plain(users), "released": plain(in_all), "optimum": optimum}
    return Bound(
        plain(np.minimum(np.minimum(users, in_all), optimum)), "[L5]",
        "Corollary 4.6 (instance form)", "hits", "upper", "mean", None, (_ANY,), details,
    )  # fmt: skip


def hard_hits_bound(*, k: int, eps: float, delta: float) -> Bound:
    """Most users that any sound private algorithm hits on average on the hard data.

    Args:
        k: Items of the data and items to choose, at least 1.
        eps: Privacy parameter in [0, 1e5].
        delta: Privacy parameter in (0, 0.5].

    Returns:
        Upper bound Opt - k floor(k*)/2 on E[Hits] for `hard_selection_data`, Opt = k floor(k*).
        details: `frequency`, floor(k*); `optimum`; `exact` = Opt pi(floor(k*)), which is attained.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        [L5], Corollary 4.6 with the sign that it needs (printed with >=).

    Example:
        >>> hard_hits_bound(k=20, eps=1.0, delta=1e-5).value
        110.0
    """
    k = check_count("k", k)
    level = hard_frequency(eps=eps, delta=delta)
    released = float(optimal_selection_probability(level, eps=eps, delta=delta))
    optimum = k * level
    details = {"frequency": level, "optimum": optimum, "exact": optimum * released}
    return Bound(
        optimum - k * level / 2, "[L5]", "Corollary 4.6", "hits", "upper", "mean", None,
        (f"{_ANY}, on k items of frequency floor(k*)",), details,
    )  # fmt: skip


def _reached(best: Any, domain: float, k: int, noise: Any, beta: float, form: str) -> Any:
    """Lemma C.7 in its explicit or sharp form, at least 0."""
    share = float(greedy_share(k))
    if form == "explicit":
        loss = k * np.log(k * max(domain, 1.0) / beta)
        return share * np.maximum(best - noise * loss, 0.0)
    if domain <= k:
        return best + 0.0 * noise
    weights = np.power(1 - 1 / k, np.arange(k - 1, -1, -1.0))  # 0^0 = 1 at k = 1
    loss = weights @ np.log(domain - np.arange(k)) + _weighted_quantile(weights, beta)
    return np.maximum(share * best - noise * loss, 0.0)


def _weighted_quantile(weights: np.ndarray, beta: float) -> float:
    """At least the 1-beta quantile of sum of w_i E_i: Chernoff, or w_i = 1 in Gamma's quantile.

    Any 0 < a < 1 proves (ln(1/beta) - sum ln(1 - a w_i))/a, as the largest weight is 1.
    """

    def chernoff(logit: float) -> float:
        a = expit(logit)
        return float((-np.log1p(-a * weights).sum() - np.log(beta)) / a)

    best = minimize_scalar(chernoff, bounds=(-12.0, 20.0), method="bounded")
    return min(float(best.fun), float(gammainccinv(float(weights.size), beta)))


def _degrees(data: UserItems, users: np.ndarray) -> np.ndarray:
    """Users who hold an item of each of the given users, themselves included.

    Where the holders of all their items are too many to go through, their number instead.
    """
    counts = data.frequencies
    per_user = np.add.reduceat(counts[data.items], data.offsets[:-1])[users]
    # Of all holders counted, user i itself is counted once an item.
    degrees = np.minimum(per_user - data.set_sizes[users] + 1, data.num_users)
    order = np.argsort(per_user, kind="stable")
    work = np.cumsum(per_user[order])
    order = order[(work <= _MOST_NEIGHBOURS) & (per_user[order] <= _CHUNK)]
    if not order.size:
        return degrees
    known = Incidence.of(data)
    for part in np.split(order, np.flatnonzero(np.diff(work[: order.size] // _CHUNK)) + 1):
        rows = users[part]
        items = rows_of(data.items, data.offsets, rows)
        whose = np.repeat(np.arange(part.size), data.set_sizes[rows])
        holders = rows_of(known.holders, known.holder_starts, items)
        pairs = holders + np.repeat(whose, counts[items]) * data.num_users
        degrees[part] = np.bincount(distinct(pairs) // data.num_users, minlength=part.size)
    return degrees


def _check_hits(name: str, value: Reals) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "iuf" or not np.all((array >= 0) & np.isfinite(array)):
        invalid(name, value, "must be a finite number of at least 0")
    return array.astype(np.float64)
