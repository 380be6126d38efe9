"""The paper's own explicit forms and shapes, some of them false: what its proofs print.

Kept apart from `upper_bounds`, so that nobody takes one for a bound that we vouch for. Every Bound
says in its conditions whether the printed statement is valid.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from theory._check import (
    Reals,
    check_beta,
    check_eps,
    check_positive,
    check_zipf_exponent,
)
from theory.bound import Bound
from theory.calibration import Calibration
from theory.lemmas import gaussian_maximum_bound, noise_of
from theory.profile import Profile
from theory.upper_bounds import tau_u1
from theory.zipf import ZipfCertificate, best_certificate, plain

_SHAPE = "a shape: constants and logarithms are dropped"
_LARGE_S = "false for large s: 1/(s-1) stands where the tail needs s/(s-1)"


def theorem_33_shape(
    profile: Profile, calibration: Calibration, *, certificate: ZipfCertificate
) -> Bound:
    """Shape of Theorem 3.3: C^(1/s)/(s-1) (L (T+sigma)/(N sqrt(q*)))^((s-1)/s).

    Args:
        profile: Data at one Delta0.
        calibration: Noise and threshold at the same Delta0, any shape.
        certificate: (C, s) of the data with s > 1.

    Returns:
        Value of the calibration's shape. Not a bound: for slopes only.

    Raises:
        InvalidInput: s <= 1, or a calibration for another Delta0.

    Source:
        [U0], Theorem 3.3 with constant 1 and logarithms dropped.

    Example:
        >>> from theory.calibration import calibrate
        >>> data = Profile.from_frequencies([900, 90, 9], max_set_size=1, max_items_per_user=1)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> shape = theorem_33_shape(data, noise, certificate=ZipfCertificate(0.0, 2.0))
        >>> round(shape.value, 4)
        0.1485
    """
    sigma, threshold = noise_of(profile, calibration)
    level = profile.max_set_size / np.sqrt(profile.q_star) * (threshold + sigma)
    return _shape(level, profile.num_pairs, certificate, "Theorem 3.3")


def corollary_34_shape(profile: Profile, *, eps: Reals, certificate: ZipfCertificate) -> Bound:
    """Shape of Corollary 3.4: C^(1/s)/(s-1) (L/(eps N sqrt(q*)))^((s-1)/s).

    Args:
        profile: Data at one Delta0.
        eps: Privacy parameter above 0, any shape.
        certificate: (C, s) of the data with s > 1.

    Returns:
        Value of the shape of `eps`. Not a bound, and no shape either for eps >> 1, where
        the threshold stays above 1 (erratum 2).

    Raises:
        InvalidInput: eps not above 0 or above 1e5, or s <= 1.

    Source:
        [U0], Corollary 3.4 with constant 1 and logarithms dropped.

    Example:
        >>> data = Profile.from_frequencies([900, 90, 9], max_set_size=1, max_items_per_user=1)
        >>> shape = corollary_34_shape(data, eps=1.0, certificate=ZipfCertificate(0.0, 2.0))
        >>> round(shape.value, 4)
        0.0316
    """
    level = profile.max_set_size / np.sqrt(profile.q_star) / check_positive("eps", check_eps(eps))
    return _shape(level, profile.num_pairs, certificate, "Corollary 3.4")


def theorem_33_printed(
    profile: Profile,
    calibration: Calibration,
    beta: float,
    *,
    certificate: ZipfCertificate | None = None,
) -> Bound:
    """Theorem 3.3 as its proof prints it: C^(1/s)/(s-1) (9X/(p* N))^((s-1)/s).

    X = max(sqrt(q*) (T + sigma sqrt(2 ln(6N/beta))), ln(3 (C N)^(1/s)/beta)).

    Args:
        profile: Data at one Delta0.
        calibration: Noise and threshold at the same Delta0, any shape.
        beta: Failure probability in (0, 1).
        certificate: (C, s) of the data with s > 1; default the one that is best in [U3].

    Returns:
        Value claimed for the missing mass, of the calibration's shape. details: `s`,
        `log_constant`, `level` = X. Not valid for large s (erratum 1).

    Raises:
        InvalidInput: beta outside (0, 1), s <= 1, or a calibration for another Delta0.

    Source:
        [U3p], proof of Theorem 3.3.

    Example:
        >>> from theory.calibration import calibrate
        >>> data = Profile.from_frequencies([1], max_set_size=1, max_items_per_user=1)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> one = ZipfCertificate(0.0, 500.0)
        >>> round(theorem_33_printed(data, noise, 0.05, certificate=one).value, 3)
        0.538
    """
    beta = float(check_beta(beta))
    if certificate is None:
        certificate = best_certificate(profile, tau_u1(profile, calibration, beta).value)
    weight = gaussian_maximum_bound(3 * profile.num_pairs, sigma=1.0, beta=beta)
    sigma, threshold = noise_of(profile, calibration)
    level = np.maximum(
        np.sqrt(profile.q_star) * (threshold + sigma * weight),
        _log_most_items(certificate, profile.num_pairs) + np.log(3 / beta),
    )
    value = _mass(9 * level / profile.keep_probability, profile.num_pairs, certificate)
    details = {
        "s": certificate.s,
        "log_constant": certificate.log_constant,
        "level": plain(level),
    }
    return Bound(
        value, "[U3p]", "Theorem 3.3 as printed", "missing_mass", "upper", "quantile", beta,
        (_LARGE_S,), details,
    )  # fmt: skip


def theorem_36_printed(profile: Profile, calibration: Calibration, beta: float) -> Bound:
    """Theorem 3.6 as its proof prints it, valid.

    MM_inf <= 8/(p* N) max(ln(3N/beta), sqrt(q*) (T + sigma sqrt(2 ln(6N/beta)))).

    Args:
        profile: Data at one Delta0.
        calibration: Noise and threshold at the same Delta0, any shape.
        beta: Failure probability in (0, 1).

    Returns:
        Bound on the maximal missing mass, of the calibration's shape.

    Raises:
        InvalidInput: beta outside (0, 1), or a calibration for another Delta0.

    Source:
        [U-inf-p], proof of Theorem 3.6.

    Example:
        >>> from theory.calibration import calibrate
        >>> data = Profile.from_frequencies([9000, 9], max_set_size=1, max_items_per_user=1)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> round(theorem_36_printed(data, noise, 0.05).value, 4)
        0.0343
    """
    beta = float(check_beta(beta))
    pairs = profile.num_pairs
    weight = gaussian_maximum_bound(3 * pairs, sigma=1.0, beta=beta)
    sigma, threshold = noise_of(profile, calibration)
    level = np.maximum(
        np.log(3 * pairs / beta), np.sqrt(profile.q_star) * (threshold + sigma * weight)
    )
    value = plain(8 * level / (profile.keep_probability * pairs))
    return Bound(
        value, "[U-inf-p]", "Theorem 3.6 as printed", "max_missing_mass", "upper", "quantile",
        beta, ("valid as printed",),
    )  # fmt: skip


def lemma_c2_printed(profile: Profile, beta: float, *, certificate: ZipfCertificate) -> Bound:
    """Lemma C.2 as printed: C^(1/s)/(s-1) (ln((C N)^(1/s)/beta)/(p* N))^((s-1)/s).

    Args:
        profile: Data at one Delta0.
        beta: Failure probability in (0, 1).
        certificate: (C, s) of the data with s > 1.

    Returns:
        Value claimed for the mass lost to subsampling. False for large s (erratum 1); its corrected
        twin is `lemma_c2_mass`.

    Raises:
        InvalidInput: beta outside (0, 1), or s <= 1.

    Source:
        Lemma C.2 as printed.

    Example:
        >>> data = Profile.from_frequencies([1, 1], max_set_size=2, max_items_per_user=1)
        >>> certificate = ZipfCertificate(np.log(64.0), 7.0)
        >>> round(lemma_c2_printed(data, 0.5, certificate=certificate).value, 5)
        0.39945
    """
    beta = float(check_beta(beta))
    value = _mass(_lost_frequency(profile, beta, certificate), profile.num_pairs, certificate)
    return Bound(
        value, "Lemma C.2 (printed)", "Lemma C.2 as printed", "missing_mass", "upper", "quantile",
        beta, (_LARGE_S,), {"s": certificate.s, "log_constant": certificate.log_constant},
    )  # fmt: skip


def lemma_c2_mass(profile: Profile, beta: float, *, certificate: ZipfCertificate) -> Bound:
    """Lemma C.2 corrected: s/(s-1) C^(1/s) (ln((C N)^(1/s)/beta)/(p* N))^((s-1)/s).

    Args:
        profile: Data at one Delta0.
        beta: Failure probability in (0, 1).
        certificate: (C, s) of the data with s > 1.

    Returns:
        Bound on the mass lost to subsampling. details: `frequency`, below which items can be lost.

    Raises:
        InvalidInput: beta outside (0, 1), or s <= 1.

    Source:
        [C.2] with [Z1] for M and [Z2] for the tail.

    Example:
        >>> data = Profile.from_frequencies([1, 1], max_set_size=2, max_items_per_user=1)
        >>> certificate = ZipfCertificate(np.log(64.0), 7.0)
        >>> round(lemma_c2_mass(data, 0.5, certificate=certificate).value, 4)
        2.7962
    """
    beta = float(check_beta(beta))
    frequency = _lost_frequency(profile, beta, certificate)
    value = _mass(frequency, profile.num_pairs, certificate) * np.asarray(certificate.s)
    details = {
        "s": certificate.s,
        "log_constant": certificate.log_constant,
        "frequency": plain(frequency),
    }
    return Bound(
        plain(value), "[C.2]", "Lemma C.2, corrected", "missing_mass", "upper", "quantile", beta,
        (), details,
    )  # fmt: skip


def lemma_c4_printed(profile: Profile, calibration: Calibration, beta: float) -> Bound:
    """Lemma C.4 as printed: missed items that survived weigh at most T + sigma sqrt(2 ln(2N/beta)).

    Args:
        profile: Data at one Delta0.
        calibration: Noise and threshold at the same Delta0, any shape.
        beta: Failure probability in (0, 1).

    Returns:
        Bound on the weight, of the calibration's shape; valid, above `lemma_c4_weight`.

    Raises:
        InvalidInput: beta outside (0, 1), or a calibration for another Delta0.

    Source:
        Lemma C.4 as printed.

    Example:
        >>> from theory.calibration import calibrate
        >>> data = Profile.from_frequencies([9] * 10, max_set_size=1, max_items_per_user=1)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> round(lemma_c4_printed(data, noise, 0.05).value, 2)
        33.88
    """
    beta = float(check_beta(beta))
    sigma, threshold = noise_of(profile, calibration)
    weight = gaussian_maximum_bound(profile.num_pairs, sigma=1.0, beta=beta)
    return Bound(
        plain(threshold + sigma * weight), "Lemma C.4 (printed)", "Lemma C.4 as printed", "weight",
        "upper", "quantile", beta, ("valid as printed",),
    )  # fmt: skip


def _log_most_items(certificate: ZipfCertificate, num_pairs: int) -> Any:
    """Log of (C N)^(1/s), [Z1]."""
    return (np.asarray(certificate.log_constant) + np.log(num_pairs)) / np.asarray(certificate.s)


def _lost_frequency(profile: Profile, beta: float, certificate: ZipfCertificate) -> Any:
    """ln((C N)^(1/s)/beta)/p*, from which no item is lost to subsampling."""
    log_items = _log_most_items(certificate, profile.num_pairs)
    return (log_items - np.log(beta)) / profile.keep_probability


def _mass(level: Any, num_pairs: int, certificate: ZipfCertificate) -> Any:
    """C^(1/s)/(s-1) (level/N)^((s-1)/s), through logarithms because C overflows."""
    s = check_zipf_exponent(certificate.s)
    log_share = np.log(level) - np.log(num_pairs)
    log_value = np.asarray(certificate.log_constant) / s + (1 - 1 / s) * log_share - np.log(s - 1)
    return plain(np.exp(np.minimum(log_value, 700.0)))


def _shape(level: Any, num_pairs: int, certificate: ZipfCertificate, source: str) -> Bound:
    return Bound(
        _mass(level, num_pairs, certificate), "[U0]", source, "missing_mass", "upper", "quantile",
        None, (_SHAPE,), {"s": certificate.s, "log_constant": certificate.log_constant},
    )  # fmt: skip
