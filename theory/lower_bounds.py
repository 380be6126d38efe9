"""Lower bounds on missing mass: what no sound (eps, delta)-private algorithm can beat.

An algorithm is sound if it only releases items that some user holds. Desfontaines et al. (2022)
found the largest probability pi(n) with which such an algorithm can release an item of n holders.
"""

from __future__ import annotations

import numpy as np

from theory._check import Reals, check_delta, check_eps, invalid
from theory.bound import Bound
from theory.hard_zipf import hard_zipf_profile, hard_zipf_tail_pairs
from theory.profile import Profile
from theory.zipf import plain


def optimal_selection_probability(counts: Reals, *, eps: Reals, delta: Reals) -> np.ndarray:
    """Largest probability of releasing an item held by `counts` users.

    pi(0) = 0, pi(k+1) = min(e^eps pi(k) + delta, 1 - e^(-eps) (1 - pi(k) - delta), 1), in closed
    form: O(1) for each entry, whatever the count.

    Args:
        counts: Whole numbers of at least 0, any shape.
        eps: Privacy parameter in [0, 1e5], any shape.
        delta: Privacy parameter in (0, 0.5], any shape; the three are broadcast.

    Returns:
        float64 array of the broadcast shape. Where it is near 1, use `optimal_miss_probability`.

    Raises:
        InvalidInput: A count below 0 or not whole, eps or delta out of range.

    Source:
        [L0], Desfontaines et al. 2022, Theorem 1.

    Example:
        >>> optimal_selection_probability([0, 10, 12, 40], eps=1.0, delta=1e-5).round(5)
        array([0.     , 0.12818, 0.76031, 1.     ])
    """
    return _selection(counts, eps, delta)[0]


def optimal_miss_probability(counts: Reals, *, eps: Reals, delta: Reals) -> np.ndarray:
    """Least probability of missing an item, 1 - pi, without cancellation where pi is near 1.

    Args:
        counts: Whole numbers of at least 0, any shape.
        eps: Privacy parameter in [0, 1e5], any shape.
        delta: Privacy parameter in (0, 0.5], any shape; the three are broadcast.

    Returns:
        float64 array of the broadcast shape; exactly 0 once pi has reached 1.

    Raises:
        InvalidInput: A count below 0 or not whole, eps or delta out of range.

    Source:
        [L0], 1 - pi.

    Example:
        >>> float(optimal_miss_probability(20, eps=1.0, delta=1e-5).round(9))
        7.4589e-05
    """
    return _selection(counts, eps, delta)[1]


def _selection(counts: Reals, eps: Reals, delta: Reals) -> tuple[np.ndarray, np.ndarray]:
    """Optimal pi and 1 - pi.

    First branch, up to the turn k1: pi(k) = delta (e^(k eps) - 1)/(e^eps - 1). It gives way to the
    second when pi(k) >= (1-delta)/(1+e^eps), where both agree. Then the miss probability obeys
    m(k+1) = e^(-eps) (m(k) - delta), hence
    m(k1+j) = e^(-j eps) m(k1) - delta (1 - e^(-j eps))/(e^eps - 1),
    until it would fall below 0.
    """
    k, e, d = np.broadcast_arrays(_check_counts(counts), check_eps(eps), check_delta(delta))
    step = np.where(e > 0, e, 1.0)  # eps = 0 has its own line below
    shrink = -np.expm1(-step)
    turn = np.ceil(np.log1p((1 - d) / d * np.tanh(step / 2)) / step)
    # Written with e^(-eps) only: e^((k-1) eps) delta stays below e^eps/(1+e^eps), so no overflow.
    first = np.minimum(k, turn)
    rise = np.exp(np.minimum((first - 1) * step, 709.0)) * -np.expm1(-first * step) / shrink
    pi_first = np.minimum(d * rise, 1.0)
    late = np.maximum(k - turn, 0.0) * step
    decayed = np.exp(-late) * (1 - pi_first)
    miss = decayed - d * -np.expm1(-late) * np.exp(-step) / shrink
    miss = np.where(e > 0, np.maximum(miss, 0.0), np.maximum(1 - k * d, 0.0))
    early = np.where(e > 0, pi_first, np.minimum(k * d, 1.0))
    pi = np.where((e == 0) | (k <= turn), early, 1 - miss)
    return pi, miss


def _check_counts(counts: Reals) -> np.ndarray:
    accepted = "must be whole numbers of at least 0"
    array = np.asarray(counts)
    if array.dtype.kind not in "iuf":
        invalid("counts", counts, accepted)
    floats = array.astype(np.float64)
    bad = ~(np.isfinite(floats) & (floats >= 0) & (np.floor(floats) == floats))
    if np.any(bad):
        invalid("counts", floats[bad].flat[0], accepted)
    return floats


def selection_threshold(*, eps: Reals, delta: Reals) -> np.ndarray:
    """Frequency up to which every sound private algorithm misses an item half of the time.

    Args:
        eps: Privacy parameter in [0, 1e5], any shape.
        delta: Privacy parameter in (0, 0.5], any shape; broadcast against `eps`.

    Returns:
        k* = (1/eps) ln(1 + (e^eps - 1)/(2 delta)), 1/(2 delta) at eps = 0: float64 array of the
        broadcast shape. N(x) <= k* implies P(x released) <= 1/2.

    Raises:
        InvalidInput: eps or delta out of range.

    Source:
        [L1], Lemma D.1.

    Example:
        >>> selection_threshold(eps=[0.0, 1.0, 1e5], delta=1e-5).round(3)
        array([5.0000e+04, 1.1361e+01, 1.0000e+00])
    """
    e, d = np.broadcast_arrays(check_eps(eps), check_delta(delta))
    small = np.clip(e, np.finfo(np.float64).tiny, 1.0)
    low = np.log1p(np.expm1(small) / (2 * d)) / small
    # e^eps overflows: ln(1 + (e^eps - 1)/2d) = eps - ln 2d + ln(1 - e^(-eps) (1 - 2d)).
    large = np.maximum(e, 1.0)
    high = 1 + (np.log1p(-np.exp(-large) * (1 - 2 * d)) - np.log(2 * d)) / large
    return np.asarray(np.where(e == 0, 1 / (2 * d), np.where(e < 1, low, high)))


def instance_lower_bound(profile: Profile, *, eps: Reals, delta: Reals) -> Bound:
    """Least expected missing mass of any sound private algorithm on these very data.

    Args:
        profile: Data; only the frequencies matter.
        eps: Privacy parameter in [0, 1e5], any shape.
        delta: Privacy parameter in (0, 0.5], any shape; broadcast against `eps`.

    Returns:
        Bound on E[MM], of the broadcast shape: sum_x a(x) (1 - pi(N(x))). details: `half_tail`
        = tail(k*)/2, smaller and as printed in the proof of Theorem 3.5, and `k_star`.

    Raises:
        InvalidInput: eps or delta out of range.

    Source:
        [L2]; attained, by a mechanism that knows W.

    Example:
        >>> data = Profile.from_frequencies([50, 9, 9, 3], max_set_size=1, max_items_per_user=1)
        >>> bound = instance_lower_bound(data, eps=1.0, delta=1e-5)
        >>> round(bound.value, 4), round(bound.details["half_tail"], 4)
        (0.2838, 0.1479)
    """
    e, d = np.broadcast_arrays(check_eps(eps), check_delta(delta))
    share = profile.frequencies * profile.multiplicity / profile.num_pairs
    # One grid point at a time: classes times grid may be large.
    values = [
        float(share @ optimal_miss_probability(profile.frequencies, eps=float(x), delta=float(y)))
        for x, y in zip(e.flat, d.flat, strict=True)
    ]
    k_star = selection_threshold(eps=e, delta=d)
    details = {"half_tail": plain(profile.tail(k_star) / 2), "k_star": plain(k_star)}
    return Bound(
        plain(np.reshape(values, e.shape)), "[L2]", "Theorem 3.5 (instance form)", "missing_mass",
        "lower", "mean", None, ("any sound (eps, delta)-DP algorithm",), details,
    )  # fmt: skip


def hard_zipf_bound(
    constant: float, s: float, num_pairs: int, *, eps: Reals, delta: Reals
) -> Bound:
    """Least expected missing mass of any sound private algorithm on the hard Zipfian data W*.

    E[MM] >= tail(k*)/2, from the frequencies of W* themselves. With K = floor(k*) this is

        (1/2N) [sum_{j<=K} floor((C N/j)^(1/s)) - K floor((C N/(K+1))^(1/s))]

    as long as K < floor(C N/r1^s), the value of W*'s first rank before the remainder is added;
    beyond, the sum would count ranks that W* does not have.

    Args:
        constant: C >= 1.
        s: Zipf exponent, above 1.
        num_pairs: N = n, one item per user.
        eps: Privacy parameter in [0, 1e5], any shape.
        delta: Privacy parameter in (0, 0.5], any shape; broadcast against `eps`.

    Returns:
        Bound on E[MM], of the broadcast shape. details: `k_star`; `formula`, the sum above, nan
        where it does not apply; `smooth` = (1/2) C^(1/s)/(s-1) N^(-(s-1)/s) (k*^((s-1)/s) - 1), a
        shape that may exceed the bound.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        [L3], Theorem 3.5.

    Example:
        >>> bound = hard_zipf_bound(1.0, 2.0, 10**6, eps=1.0, delta=1e-5)
        >>> round(bound.value, 6), round(bound.details["smooth"], 6)
        (0.001076, 0.001185)
    """
    e, d = np.broadcast_arrays(check_eps(eps), check_delta(delta))
    profile = hard_zipf_profile(constant, s, num_pairs)
    k_star = selection_threshold(eps=e, delta=d)
    formula = np.full(k_star.shape, np.nan)
    for index, level in np.ndenumerate(k_star):
        pairs = hard_zipf_tail_pairs(profile, constant, s, num_pairs, int(level))
        if pairs is not None:
            formula[index] = pairs / (2 * num_pairs)
    power = (s - 1) / s
    smooth = np.exp(np.log(constant) / s - power * np.log(num_pairs)) / (2 * (s - 1))
    details = {
        "k_star": plain(k_star),
        "formula": plain(formula),
        "smooth": plain(smooth * (k_star**power - 1)),
    }
    return Bound(
        plain(profile.tail(k_star) / 2), "[L3]", "Theorem 3.5", "missing_mass", "lower", "mean",
        None, ("any sound (eps, delta)-DP algorithm, on W*",), details,
    )  # fmt: skip
