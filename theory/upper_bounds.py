"""Upper bounds on the missing mass of the weighted Gaussian mechanism, with every constant.

Three ways an item x can be missed, each an event with its own failure probability (Lemmas C.2-C.4),
are joined into one frequency tau such that with probability 1 - beta every missed item has
N(x) <= tau. What is then missed is at most the tail of the data below tau.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.special import ndtri_exp

from theory._check import check_beta, invalid
from theory.bound import Bound
from theory.calibration import Calibration
from theory.lemmas import CLIPPED, NOTHING_CLIPPED, least_above, noise_of
from theory.miss_bound import miss_probability_bound
from theory.profile import Profile
from theory.zipf import (
    ZipfCertificate,
    best_certificate,
    log_tail_bound,
    log_zipf_constant,
    plain,
)


def tau_u1(profile: Profile, calibration: Calibration, beta: float) -> Bound:
    """Frequency above which nothing is missed.

    Delta0 < L, b = beta/2:  tau >= (8L/q*) ln(count/b)  and
                             tau >= (2L/sqrt(q*)) (T + sigma Phi^-1(1 - b/count));
    Delta0 >= L:             tau >= sqrt(L) (T + sigma Phi^-1(1 - beta/count)),

    count = min(M, max(1, N/tau)).

    Args:
        profile: Data at one Delta0.
        calibration: Noise and threshold at the same Delta0, any shape.
        beta: Failure probability in (0, 1).

    Returns:
        Bound on the frequency, of the calibration's shape, at least 0, rounded up: with probability
        at least 1 - beta every missed item has N(x) <= value. details: `plain`, the form with M.

    Raises:
        InvalidInput: beta outside (0, 1), or a calibration for another Delta0.

    Source:
        [U1], Lemmas C.3 and C.4 joined.

    Example:
        >>> from theory.calibration import calibrate
        >>> data = Profile.from_frequencies([9] * 10, max_set_size=1, max_items_per_user=1)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> tau = tau_u1(data, noise, beta=0.05)
        >>> round(tau.details["plain"], 2), round(tau.value, 2)
        (28.16, 26.61)
    """
    beta = float(check_beta(beta))
    sigma, threshold = noise_of(profile, calibration)
    size, kept = profile.max_set_size, profile.q_star
    # An item of N(x) copies weighs at least N(x)/lever (half of the mean of the copies kept).
    log_b = np.log(beta / 2) if profile.clipped else np.log(beta)
    lever = 2 * size / np.sqrt(kept) if profile.clipped else np.sqrt(size)

    def rhs(log_count: Any) -> Any:
        weight = lever * (threshold - sigma * ndtri_exp(log_b - log_count))
        if not profile.clipped:
            return weight
        return np.maximum(weight, 8 * size / kept * (log_count - log_b))

    full = np.maximum(rhs(np.log(np.float64(profile.num_items))), 0.0)
    conditions = (CLIPPED if profile.clipped else NOTHING_CLIPPED,)
    value = plain(least_above(rhs, profile))
    details = {"plain": plain(full), "tau": value}
    source = "Theorem 3.3 (tau of its proof)"
    return Bound(value, "[U1]", source, "frequency", "upper", "quantile", beta, conditions, details)


def tau_u1_star(profile: Profile, calibration: Calibration, beta: float) -> Bound:
    """Frequency above which nothing is missed, from exact binomial sums: at most [U1].

    Args:
        profile: Data at one Delta0.
        calibration: Noise and threshold at the same Delta0, any shape.
        beta: Failure probability in (0, 1).

    Returns:
        Bound on the frequency, of the calibration's shape, whole numbers: one less than the least
        n >= 1 with min(M, N/n) mbar(n) <= beta, mbar of `miss_probability_bound`.

    Raises:
        InvalidInput: beta outside (0, 1), or a calibration for another Delta0.

    Source:
        [U1*].

    Example:
        >>> from theory.calibration import calibrate
        >>> data = Profile.from_frequencies([9] * 99, max_set_size=4, max_items_per_user=2)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=2)
        >>> tau_u1_star(data, noise, beta=0.05).value, round(tau_u1(data, noise, beta=0.05).value)
        (89.0, 162)
    """
    beta = float(check_beta(beta))
    sigma, threshold = (np.asarray(part) for part in noise_of(profile, calibration))
    # [U1] satisfies the condition that [U1*] looks for, so it ends the search.
    ends = np.asarray(tau_u1(profile, calibration, beta).value)
    values = [
        _least_frequency(profile, float(sd), float(cut), beta, int(np.ceil(end))) - 1.0
        for sd, cut, end in zip(sigma.flat, threshold.flat, ends.flat, strict=True)
    ]
    # Both are bounds by themselves: where [U1] is below the next whole number, it is taken.
    value = plain(np.minimum(np.reshape(values, ends.shape), np.floor(ends)))
    return Bound(
        value, "[U1*]", "Theorem 3.3 (tau, exact binomials)", "frequency", "upper", "quantile",
        beta, (CLIPPED if profile.clipped else NOTHING_CLIPPED,), {"tau": value},
    )  # fmt: skip


def _least_frequency(
    profile: Profile, sigma: float, threshold: float, beta: float, end: int
) -> int:
    """Least n in 1..max(end, 1) with min(M, N/n) mbar(n) <= beta, which `end` satisfies."""

    def enough(n: int) -> bool:
        miss, _ = miss_probability_bound(
            n,
            keep_probability=profile.keep_probability,
            max_kept=profile.q_star,
            sigma=sigma,
            threshold=threshold,
        )
        return min(profile.num_items, profile.num_pairs / n) * miss <= beta

    low, high = 0, max(end, 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def linf_bound(profile: Profile, calibration: Calibration, beta: float) -> Bound:
    """Largest mass of a missed item, for any data: MM_inf <= floor(tau)/N.

    Args:
        profile: Data at one Delta0.
        calibration: Noise and threshold at the same Delta0, any shape.
        beta: Failure probability in (0, 1).

    Returns:
        Bound on the maximal missing mass, of the calibration's shape. details: `tau` of [U1].

    Raises:
        InvalidInput: beta outside (0, 1), or a calibration for another Delta0.

    Source:
        [U-inf], Theorem 3.6.

    Example:
        >>> from theory.calibration import calibrate
        >>> data = Profile.from_frequencies([900, 90, 9], max_set_size=1, max_items_per_user=1)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> round(linf_bound(data, noise, beta=0.05).value, 3)
        0.026
    """
    tau = tau_u1(profile, calibration, beta)
    value = plain(np.floor(tau.value) / profile.num_pairs)
    return Bound(
        value, "[U-inf]", "Theorem 3.6", "max_missing_mass", "upper", "quantile",
        tau.failure_probability, tau.conditions, {"tau": tau.value},
    )  # fmt: skip


def instance_bound(
    profile: Profile,
    calibration: Calibration,
    beta: float,
    *,
    tau: Literal["u1", "u1_star"] = "u1",
) -> Bound:
    """Missing mass at most the share of pairs below tau, the exact tail of these data.

    Args:
        profile: Data at one Delta0.
        calibration: Noise and threshold at the same Delta0, any shape.
        beta: Failure probability in (0, 1).
        tau: Which frequency: "u1" ([U1]) or "u1_star" ([U1*], smaller).

    Returns:
        Bound on the missing mass, of the calibration's shape. details: `tau`.

    Raises:
        InvalidInput: beta outside (0, 1), or a calibration for another Delta0.

    Source:
        [U2], Theorem 3.3 before its Zipfian step.

    Example:
        >>> from theory.calibration import calibrate
        >>> data = Profile.from_frequencies([900, 90, 9], max_set_size=1, max_items_per_user=1)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> round(instance_bound(data, noise, beta=0.05).value, 3)
        0.009
    """
    if tau not in ("u1", "u1_star"):
        invalid("tau", tau, "must be 'u1' or 'u1_star'")
    level = (tau_u1 if tau == "u1" else tau_u1_star)(profile, calibration, beta)
    value = plain(profile.tail(level.value))
    return Bound(
        value, "[U2]" if tau == "u1" else "[U2*]", "Theorem 3.3 (instance form)",
        "missing_mass", "upper", "quantile", level.failure_probability, level.conditions,
        {"tau": level.value},
    )  # fmt: skip


def zipf_bound(
    profile: Profile,
    calibration: Calibration,
    beta: float,
    *,
    certificate: ZipfCertificate | None = None,
) -> Bound:
    """Missing mass at most s/(s-1) C^(1/s) (tau/N)^((s-1)/s).

    Args:
        profile: Data at one Delta0.
        calibration: Noise and threshold at the same Delta0, any shape.
        beta: Failure probability in (0, 1).
        certificate: (C, s) of the data with s > 1; default the best one for each tau.

    Returns:
        Bound on the missing mass, of the calibration's shape. details: `tau` of [U1], `s`,
        `log_constant`.

    Raises:
        InvalidInput: beta outside (0, 1), a calibration for another Delta0, s <= 1, or a
            certificate that the data do not satisfy.

    Source:
        [U3], Theorem 3.3.

    Example:
        >>> from theory.calibration import calibrate
        >>> frequencies = [10**7 // r**2 for r in range(1, 3000)]
        >>> data = Profile.from_frequencies(frequencies, max_set_size=1, max_items_per_user=1)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> round(zipf_bound(data, noise, beta=0.05).value, 4)
        0.0023
    """
    tau = tau_u1(profile, calibration, beta)
    if certificate is None:
        certificate = best_certificate(profile, tau.value)
    elif not certificate.holds_for(profile):
        accepted = f"must be at least {_log_least(profile, certificate):.9g}, that of the data"
        invalid("log_constant", certificate.log_constant, accepted)
    # Beyond float64 the bound says nothing; a huge finite number says so without a warning.
    value = np.exp(np.minimum(log_tail_bound(tau.value, certificate, profile.num_pairs), 700.0))
    details = {"tau": tau.value, "s": certificate.s, "log_constant": certificate.log_constant}
    return Bound(
        plain(value), "[U3]", "Theorem 3.3", "missing_mass", "upper", "quantile",
        tau.failure_probability, tau.conditions, details,
    )  # fmt: skip


def _log_least(profile: Profile, certificate: ZipfCertificate) -> float:
    """Smallest ln C(s) of the data, the largest over the certificate's entries."""
    return float(np.max(log_zipf_constant(profile, certificate.s)))
