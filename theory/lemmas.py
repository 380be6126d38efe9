"""The helper lemmas behind the bounds: noise maxima (A.1, A.2) and the bad events (C.2-C.5).

Each union bound over items runs over heavy items only. There are at most M of them, and at most
N/tau with N(x) > tau, so tau is the least number with tau >= rhs(min(M, max(1, N/tau))), a right
side that falls as tau grows. The form with plain M, as theory states it, is `plain` in the details.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtri_exp

from theory._check import Reals, check_beta, check_count, check_positive, invalid
from theory.bound import Bound
from theory.calibration import Calibration
from theory.profile import Profile
from theory.zipf import plain

NOTHING_CLIPPED = "Delta0 >= L: nothing is subsampled"
CLIPPED = "Delta0 < L: users are subsampled"


def gaussian_maximum_bound(num: int, *, sigma: Reals, beta: float) -> Any:
    """Largest absolute value of `num` independent N(0, sigma^2): at most sigma sqrt(2 ln(2n/beta)).

    Args:
        num: Number of draws, at least 1.
        sigma: Standard deviation above 0, any shape.
        beta: Failure probability in (0, 1).

    Returns:
        Float or float64 array of the shape of `sigma`; exceeded with probability at most beta.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        Lemma A.1.

    Example:
        >>> round(gaussian_maximum_bound(100, sigma=1.0, beta=0.05), 3)
        4.073
    """
    return plain(check_positive("sigma", sigma) * np.sqrt(2 * _log_two_sided(num, beta)))


def gumbel_maximum_bound(num: int, *, scale: Reals, beta: float) -> Any:
    """Largest absolute value of `num` independent Gumbel(scale): at most scale ln(2n/beta).

    Args:
        num: Number of draws, at least 1.
        scale: Scale lambda above 0, any shape.
        beta: Failure probability in (0, 1).

    Returns:
        Float or float64 array of the shape of `scale`; exceeded with probability at most beta.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        Lemma A.2.

    Example:
        >>> round(gumbel_maximum_bound(100, scale=1.0, beta=0.05), 3)
        8.294
    """
    return plain(check_positive("scale", scale) * _log_two_sided(num, beta))


def lemma_c2_frequency(profile: Profile, beta: float) -> Bound:
    """Frequency from which no item is lost to subsampling.

    Args:
        profile: Data at one Delta0.
        beta: Failure probability in (0, 1).

    Returns:
        Bound on the frequency: with probability at least 1 - beta every x with N(x) >= value
        survives subsampling. 0 when Delta0 >= L. details: `plain` = ln(M/beta)/p*.

    Raises:
        InvalidInput: beta outside (0, 1).

    Source:
        [C.2], Lemma C.2: P(x lost) <= exp(-p* N(x)).

    Example:
        >>> data = Profile.from_frequencies([9, 5, 1], max_set_size=3, max_items_per_user=1)
        >>> round(lemma_c2_frequency(data, 0.05).value, 3)
        10.157
    """
    return _subsampling_frequency(profile, beta, 1.0, "[C.2]", "Lemma C.2")


def lemma_c3_frequency(profile: Profile, beta: float) -> Bound:
    """Frequency from which every item keeps at least half of its expected copies.

    Args:
        profile: Data at one Delta0.
        beta: Failure probability in (0, 1).

    Returns:
        Bound on the frequency: with probability at least 1 - beta every x with N(x) >= value keeps
        at least p* N(x)/2 copies. 0 when Delta0 >= L. details: `plain` = (8/p*) ln(M/beta).

    Raises:
        InvalidInput: beta outside (0, 1).

    Source:
        [C.3], Lemma C.3 (multiplicative Chernoff).

    Example:
        >>> data = Profile.from_frequencies([9, 5, 1], max_set_size=3, max_items_per_user=1)
        >>> round(lemma_c3_frequency(data, 0.05).details["plain"], 3)
        98.264
    """
    return _subsampling_frequency(profile, beta, 8.0, "[C.3]", "Lemma C.3")


def _subsampling_frequency(
    profile: Profile, beta: float, factor: float, tag: str, source: str
) -> Bound:
    beta = float(check_beta(beta))
    scale = factor / profile.keep_probability
    log_beta = np.log(beta)

    def rhs(log_count: Any) -> Any:
        return scale * (log_count - log_beta)

    full = rhs(np.log(np.float64(profile.num_items)))
    value = least_above(rhs, profile) if profile.clipped else np.float64(0)
    conditions = (CLIPPED if profile.clipped else NOTHING_CLIPPED,)
    details = {"plain": plain(full)}
    return Bound(
        plain(value), tag, source, "frequency", "upper", "quantile", beta, conditions, details
    )


def lemma_c4_weight(profile: Profile, calibration: Calibration, beta: float) -> Bound:
    """Largest weight with which an item can still be missed.

    Args:
        profile: Data at one Delta0.
        calibration: Noise and threshold at the same Delta0, any shape.
        beta: Failure probability in (0, 1).

    Returns:
        Bound on the weight, of the calibration's shape: with probability at least 1 - beta every
        missed item that survived subsampling has H(x) <= value. details: `plain`
        = T + sigma Phi^-1(1 - beta/M).

    Raises:
        InvalidInput: beta outside (0, 1), or a calibration for another Delta0.

    Source:
        [C.4], Lemma C.4; the paper's T0 is `printed_bounds.lemma_c4_printed`.

    Example:
        >>> from theory.calibration import calibrate
        >>> data = Profile.from_frequencies([9] * 10, max_set_size=1, max_items_per_user=1)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> round(lemma_c4_weight(data, noise, 0.05).details["plain"], 2)
        28.16
    """
    beta = float(check_beta(beta))
    sigma, threshold = noise_of(profile, calibration)

    def rhs(log_count: Any) -> Any:
        return threshold - sigma * ndtri_exp(np.log(beta) - log_count)

    # Items with H(x) > v number at most N/v, because a copy weighs at most 1.
    details = {"plain": plain(rhs(np.log(np.float64(profile.num_items))))}
    value = plain(least_above(rhs, profile))
    return Bound(value, "[C.4]", "Lemma C.4", "weight", "upper", "quantile", beta, (), details)


def lemma_c5(profile: Profile, beta: float) -> Bound:
    """Largest mass of an item lost to subsampling: at most ln(N/beta)/(p* N).

    Args:
        profile: Data at one Delta0.
        beta: Failure probability in (0, 1).

    Returns:
        Bound on the maximal mass that subsampling loses, valid.

    Raises:
        InvalidInput: beta outside (0, 1).

    Source:
        Lemma C.5.

    Example:
        >>> data = Profile.from_frequencies([90, 10], max_set_size=2, max_items_per_user=1)
        >>> round(lemma_c5(data, 0.05).value, 3)
        0.152
    """
    beta = float(check_beta(beta))
    pairs = profile.num_pairs
    value = np.log(pairs / beta) / (profile.keep_probability * pairs)
    return Bound(
        float(value), "Lemma C.5", "Lemma C.5", "max_missing_mass", "upper", "quantile", beta,
        ("valid as printed",),
    )  # fmt: skip


def _log_two_sided(num: int, beta: float) -> float:
    """ln(2n/beta)."""
    return float(np.log(2 * check_count("num", num)) - np.log(check_beta(beta)))


def noise_of(profile: Profile, calibration: Calibration) -> tuple[Any, Any]:
    """Noise and threshold of a calibration made for the Delta0 of the profile."""
    bounds = np.asarray(calibration.max_items_per_user)
    if np.any(bounds != profile.max_items_per_user):
        accepted = f"must be {profile.max_items_per_user}, the Delta0 of the profile"
        invalid(
            "max_items_per_user", bounds[bounds != profile.max_items_per_user].flat[0], accepted
        )
    return calibration.sigma, calibration.threshold


def least_above(rhs: Callable[[Any], Any], profile: Profile) -> Any:
    """Least tau >= 0 with tau >= rhs(ln min(M, max(1, N/tau))), rounded up to a float.

    rhs grows with the count, so tau - rhs grows with tau; it is settled at rhs(ln M).
    """
    log_items, log_pairs = np.log(np.float64(profile.num_items)), np.log(profile.num_pairs)
    high = np.maximum(np.asarray(rhs(log_items), np.float64), 0.0)
    low = np.zeros_like(high)
    while True:
        middle = (low + high) / 2
        open_ = (low < middle) & (middle < high)
        if not np.any(open_):
            return high
        log_count = np.minimum(
            log_items, np.maximum(0.0, log_pairs - np.log(np.where(open_, middle, 1.0)))
        )
        settled = middle >= rhs(log_count)
        high = np.where(open_ & settled, middle, high)
        low = np.where(open_ & ~settled, middle, low)
