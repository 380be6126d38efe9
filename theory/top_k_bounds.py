"""Bounds on top-k selection: what peeling loses, what a domain loses, what nobody can avoid."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.special import betaln, gammainccinv, gammaln

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
from theory.lower_bounds import optimal_miss_probability, optimal_selection_probability
from theory.peeling import check_rounds
from theory.profile import Profile
from theory.upper_bounds import tau_u1, tau_u1_star
from theory.zipf import plain

LossForm = Literal["explicit", "sharp", "printed"]
_ANY = "any sound (eps, delta)-DP algorithm"


def peeling_loss_bound(
    num_items: Reals, *, k: Reals, scale: Reals, beta: float, form: LossForm = "explicit"
) -> Bound:
    """Count that peeling loses within a given domain: the k largest there less the k released.

    In every round the count picked is below the largest left by more than lambda (ln(D_i) + t)
    with probability at most e^-t, D_i the items left, whatever happened before. So

    - "explicit": k lambda ln(k D/beta), a union bound over the rounds;
    - "sharp": lambda [ln(D!/(D-k)!) + the 1-beta quantile of Gamma(k, 1)], because the excesses
      are dominated by independent exponentials; 0 where D <= k, since then all is released;
    - "printed": 2 k lambda ln(2 D/beta), the paper's proof, by Lemma A.2.

    Args:
        num_items: D, items of the domain, whole numbers of at least 0, any shape.
        k: Items to release, whole numbers of at least 1, any shape.
        scale: Gumbel scale lambda above 0, any shape; the three are broadcast.
        beta: Failure probability in (0, 1).
        form: "explicit", "sharp" or "printed".

    Returns:
        Bound on sum over the k largest of D of N(x) - sum over S of N(x), of the broadcast shape;
        0 where the domain is empty.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        [K2], Lemma 4.2; with `peeling_scale` Corollary C.6.

    Example:
        >>> forms = ("sharp", "explicit", "printed")
        >>> [round(peeling_loss_bound(1000, k=10, scale=7.75, beta=0.05, form=form).value)
        ...  for form in forms]
        [657, 946, 1642]
    """
    if form not in ("explicit", "sharp", "printed"):
        invalid("form", form, "must be 'explicit', 'sharp' or 'printed'")
    beta = float(check_beta(beta))
    domain, rounds, noise = np.broadcast_arrays(
        check_domain(num_items), check_rounds(k), check_positive("scale", scale)
    )
    some = np.maximum(domain, 1.0)
    if form == "explicit":
        units = rounds * np.log(rounds * some / beta)
    elif form == "printed":
        units = 2 * rounds * np.log(2 * some / beta)
    else:
        picked = np.minimum(rounds, some)
        # ln(D!/(D-k)!) with k of the D factors only, so that large D do not cancel.
        falling = gammaln(picked) - betaln(picked, some - picked + 1)
        units = np.where(domain <= rounds, 0.0, falling + gammainccinv(picked, beta))
    value = np.where(domain > 0, noise * units, 0.0)
    note = {"explicit": "explicit form", "sharp": "sharp form", "printed": "as its proof prints it"}
    return Bound(
        plain(value), "[K2]", f"Lemma 4.2 ({note[form]})", "top_k_loss", "upper", "quantile", beta,
        ("the k largest noisy counts of a given domain",),
    )  # fmt: skip


def top_k_bound(
    profile: Profile,
    calibration: Calibration,
    *,
    k: int,
    scale: Reals,
    beta: float,
    form: Literal["explicit", "sharp"] = "explicit",
    tau: Literal["u1", "u1_star"] = "u1",
) -> Bound:
    """Top-k missing mass of the weighted Gaussian mechanism followed by peeling.

    With probability 1 - beta/2 every item outside the domain has N(x) <= tau, so that the k most
    frequent lose at most sum_{i<=k} min(N_(i), tau) <= k tau there; peeling loses [K2] at beta/2
    and D <= M on top.

    Args:
        profile: Data at one Delta0.
        calibration: Noise and threshold of the domain stage (its part of the budget) at the same
            Delta0, any shape.
        k: Items to release, at least 1.
        scale: Gumbel scale lambda of the selection stage, above 0, broadcast with the calibration.
        beta: Failure probability in (0, 1).
        form: "explicit", (k/N) (tau + lambda ln(2 k M/beta)), or "sharp", with the sum above for
            k tau and the sharp form of [K2].
        tau: Which frequency: "u1" ([U1]) or "u1_star" ([U1*], smaller).

    Returns:
        Bound on MM^k, of the broadcast shape. details: `tau`, and the shares `domain` and
        `selection` that add up to the value.

    Raises:
        InvalidInput: An argument out of range, or a calibration for another Delta0.

    Source:
        [K3], Theorem 4.3.

    Example:
        >>> from theory.calibration import calibrate
        >>> data = Profile.from_frequencies(
        ...     [40_000, 30_000, 20_000, 10_000, 100], max_set_size=4, max_items_per_user=4)
        >>> noise = calibrate(eps=0.5, delta=5e-6, max_items_per_user=4)
        >>> point = {"k": 2, "scale": 4.0, "beta": 0.05}
        >>> round(top_k_bound(data, noise, **point).value, 5)
        0.00277
        >>> round(top_k_bound(data, noise, **point, form="sharp").value, 5)
        0.00262
    """
    if form not in ("explicit", "sharp"):
        invalid("form", form, "must be 'explicit' or 'sharp'")
    beta = float(check_beta(beta))
    k = check_count("k", k)
    level = domain_frequency(profile, calibration, beta / 2, tau)
    above = np.asarray(level.value)
    if form == "sharp":
        lost = top_sum(profile, k, np.floor(above))
    else:
        lost = k * above
    picked = peeling_loss_bound(profile.num_items, k=k, scale=scale, beta=beta / 2, form=form)
    domain, selection = np.broadcast_arrays(
        lost / profile.num_pairs, np.asarray(picked.value) / profile.num_pairs
    )
    details = {"tau": level.value, "domain": plain(domain), "selection": plain(selection)}
    return Bound(
        plain(domain + selection), "[K3]", f"Theorem 4.3 ({form} form)", "top_k_missing_mass",
        "upper", "quantile", beta, level.conditions, details,
    )  # fmt: skip


def top_k_lower_bound(profile: Profile, *, k: int, eps: Reals, delta: Reals) -> Bound:
    """Least expected top-k missing mass of any sound private algorithm on these very data.

    A released set of at most k items has sum of P(x released) =: y_x at most k, and
    y_x <= pi(N(x)); what it gets is sum N(x) y_x. The largest such sum is a fractional knapsack
    whose items all have size one, so it is filled in the order of N(x): moving any share of y from
    an item to a more frequent one that has room never lowers it, and the greedy filling is where
    no such move is left.

    Args:
        profile: Data; only the frequencies matter.
        k: Items to release, at least 1.
        eps: Privacy parameter in [0, 1e5], any shape.
        delta: Privacy parameter in (0, 0.5], any shape; broadcast against `eps`.

    Returns:
        Bound on E[MM^k], of the broadcast shape.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        [L4], Corollary 4.4 for any data.

    Example:
        >>> data = Profile.from_frequencies([50, 9, 9, 3], max_set_size=1, max_items_per_user=1)
        >>> round(top_k_lower_bound(data, k=2, eps=1.0, delta=1e-5).value, 4)
        0.1148
    """
    k = check_count("k", k)
    e, d = np.broadcast_arrays(check_eps(eps), check_delta(delta))
    values = [
        _least_loss(profile, k, float(x), float(y)) / profile.num_pairs
        for x, y in zip(e.flat, d.flat, strict=True)
    ]
    return Bound(
        plain(np.reshape(values, e.shape)), "[L4]", "Corollary 4.4 (instance form)",
        "top_k_missing_mass", "lower", "mean", None, (_ANY,),
    )  # fmt: skip


def hard_top_k_bound(*, k: int, eps: float, delta: float) -> Bound:
    """Least expected top-k missing mass of any sound private algorithm on the hard data.

    Args:
        k: Items of the data and items to release, at least 1.
        eps: Privacy parameter in [0, 1e5].
        delta: Privacy parameter in (0, 0.5].

    Returns:
        Bound 1/2 on E[MM^k] for `hard_selection_data`. details: `frequency`, floor(k*); `exact`
        = 1 - pi(floor(k*)), which is attained.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        [L4], Corollary 4.4.

    Example:
        >>> bound = hard_top_k_bound(k=20, eps=1.0, delta=1e-5)
        >>> bound.value, bound.details["frequency"], round(bound.details["exact"], 3)
        (0.5, 11, 0.652)
    """
    check_count("k", k)
    level = hard_frequency(eps=eps, delta=delta)
    exact = float(optimal_miss_probability(level, eps=eps, delta=delta))
    return Bound(
        0.5, "[L4]", "Corollary 4.4", "top_k_missing_mass", "lower", "mean", None,
        (f"{_ANY}, on k items of frequency floor(k*)",), {"frequency": level, "exact": exact},
    )  # fmt: skip


def top_sum(profile: Profile, k: int, cap: Any = np.inf) -> Any:
    """Sum over the k most frequent items of min(N_(i), cap), of the shape of `cap`."""
    taken = _taken(profile, k)
    counts, times = profile.frequencies[: taken.size], taken
    return np.minimum(counts, np.expand_dims(np.asarray(cap, np.float64), -1)) @ times


def domain_frequency(profile: Profile, calibration: Calibration, beta: float, tau: str) -> Bound:
    """[U1] or [U1*], by name: frequency above which the domain holds every item."""
    if tau not in ("u1", "u1_star"):
        invalid("tau", tau, "must be 'u1' or 'u1_star'")
    return (tau_u1 if tau == "u1" else tau_u1_star)(profile, calibration, beta)


def check_domain(num_items: Reals) -> np.ndarray:
    """Sizes of domains, whole and at least 0, any shape, as float64."""
    array = np.asarray(num_items)
    if array.dtype.kind in "iuf" and np.all((array >= 0) & (np.floor(array) == array)):
        return array.astype(np.float64)
    invalid("num_items", num_items, "must be a whole number of at least 0")


def _taken(profile: Profile, k: int) -> np.ndarray:
    """How many of the k most frequent items lie in each class, up to the last one that has any."""
    classes = int(np.searchsorted(profile.ranks, k)) + 1
    ranks, times = profile.ranks[:classes], profile.multiplicity[:classes]
    return np.minimum(times, k - (ranks - times))


def _least_loss(profile: Profile, k: int, eps: float, delta: float) -> float:
    """Sum of the k largest N less the largest sum of N(x) y_x, without subtracting the two."""
    counts = profile.frequencies
    taken = _taken(profile, k)
    miss = optimal_miss_probability(counts[: taken.size], eps=eps, delta=delta)
    room = float(taken @ miss)
    lost = float((taken * counts[: taken.size]) @ miss)
    # What the k most frequent leave unused of y goes to the next ones in order.
    left = profile.multiplicity.copy()
    left[: taken.size] -= taken
    first = max(taken.size - 1, 0)
    rest = counts[first:]
    capacity = left[first:] * optimal_selection_probability(rest, eps=eps, delta=delta)
    before = np.concatenate(([0.0], np.cumsum(capacity)[:-1]))
    filled = np.clip(room - before, 0.0, capacity)
    return max(lost - float(filled @ rest), 0.0)
