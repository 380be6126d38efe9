"""Zipf certificates: (C, s) with N_(r)/N <= C/r^s for every rank r, and the tails they bound.

A certificate is an upper envelope of the rank-frequency plot, not a regression through it. All is
in ln C: C itself leaves float64 for moderate s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from theory._check import Reals, check_count, check_zipf_exponent, invalid
from theory.profile import Profile

# s up to 1e6: beyond it the tail bound is M tau/N, which no certificate improves.
_LEAST_INVERSE_EXPONENT = 1e-6
# Relative error of exp(v), v made of a few rounded logarithms of size 1, with room.
_ULPS = 8 * np.finfo(np.float64).eps
_BLOCK = 1 << 20


@dataclass(frozen=True)
class ZipfCertificate:
    """A pair (C, s) for which some data are (C, s)-Zipfian.

    Attributes:
        log_constant: ln C, float or float64 array, at least 0.
        s: Exponent, float or float64 array of the same shape.

    Example:
        >>> ZipfCertificate(log_constant=0.0, s=2.0).constant
        1.0
    """

    log_constant: Any
    s: Any

    @property
    def constant(self) -> Any:
        """C; inf where it exceeds float64."""
        with np.errstate(over="ignore"):
            return plain(np.exp(np.asarray(self.log_constant, np.float64)))

    def holds_for(self, profile: Profile) -> bool:
        """Whether the data are (C, s)-Zipfian, up to rounding of ln C."""
        least = np.asarray(log_zipf_constant(profile, self.s))
        return bool(np.all(np.asarray(self.log_constant) >= least - _ULPS * (1 + least)))


def plain(value: Reals) -> Any:
    """A Python number for a zero-dimensional array, the array otherwise."""
    array = np.asarray(value)
    return array.item() if array.ndim == 0 else array


def as_profile(frequencies: Profile | Reals) -> Profile:
    """The profile itself, or that of a bare frequency vector."""
    if isinstance(frequencies, Profile):
        return frequencies
    return Profile.from_frequencies(frequencies, max_set_size=1, max_items_per_user=1)


def log_zipf_constant(frequencies: Profile | Reals, s: Reals) -> Any:
    """Logarithm of the smallest C for which the data are (C, s)-Zipfian.

    Args:
        frequencies: Profile, or (num_items,) whole numbers of at least 1, any order.
        s: Exponent above 0, any shape.

    Returns:
        ln max(1, max_r N_(r) r^s / N), float or float64 array of the shape of `s`. Never overflows;
        relative rounding error of a few ulps.

    Raises:
        InvalidInput: s not above 0, or no frequencies.

    Source:
        Definition of (C, s)-Zipfian data, Section 2.

    Example:
        >>> round(float(np.exp(log_zipf_constant([1, 1], 7.0))), 9)
        64.0
    """
    exponents = check_zipf_exponent(s, above=0.0)
    x, y = as_profile(frequencies).rank_envelope
    return plain(np.max(y + exponents[..., None] * x, axis=-1))


def zipf_certificate(frequencies: Profile | Reals, s: Reals) -> ZipfCertificate:
    """The certificate (C(s), s) of the data with the smallest C, see `log_zipf_constant`.

    Args:
        frequencies: Profile, or (num_items,) whole numbers of at least 1.
        s: Exponents above 1, any shape.

    Returns:
        Certificate whose `log_constant` has the shape of `s`.

    Raises:
        InvalidInput: An exponent is not above 1, or frequencies are not whole numbers.

    Source:
        Definition of (C, s)-Zipfian data, Section 2.

    Example:
        >>> zipf_certificate([8, 2, 1], 2.0).constant
        1.0
    """
    return ZipfCertificate(log_zipf_constant(frequencies, s), plain(check_zipf_exponent(s)))


def max_set_size_bound(certificate: ZipfCertificate, num_pairs: int) -> Any:
    """Largest possible number of items, (C N)^(1/s), which also bounds every set.

    Rounded up: M itself may attain it.

    Args:
        certificate: Certificate (C, s) of the data.
        num_pairs: Number of pairs N, at least 1.

    Returns:
        float64 of the certificate's shape, or a float.

    Source:
        [Z1], Lemma 3.1: L <= M <= (C N)^(1/s).

    Example:
        >>> round(max_set_size_bound(ZipfCertificate(np.log(64), 7.0), 2), 9)
        2.0
    """
    log_pairs = np.asarray(certificate.log_constant) + np.log(num_pairs)
    exponent = log_pairs / np.asarray(certificate.s)
    with np.errstate(over="ignore"):
        return plain(np.exp(exponent) * (1 + _ULPS * (1 + np.abs(exponent))))


def log_tail_bound(tau: Reals, certificate: ZipfCertificate, num_pairs: int) -> Any:
    """Logarithm of s/(s-1) C^(1/s) (tau/N)^((s-1)/s), not clipped; -inf at tau = 0. Needs s > 1."""
    s = check_zipf_exponent(certificate.s)
    with np.errstate(divide="ignore"):
        log_share = np.log(np.asarray(tau, np.float64)) - np.log(num_pairs)
    return -np.log1p(-1 / s) + np.asarray(certificate.log_constant) / s + (1 - 1 / s) * log_share


def zipf_tail_bound(
    tau: Reals,
    certificate: ZipfCertificate,
    *,
    num_pairs: int,
    num_items: int | None = None,
    form: Literal["closed", "floor", "sum"] = "closed",
) -> Any:
    """Upper bound on the share of pairs whose item is held by at most tau users.

    Args:
        tau: Frequency, any shape, at least 0.
        certificate: (C, s) with s > 1, scalar.
        num_pairs: N.
        num_items: M, used by the form "sum" only.
        form: "closed" min(1, s/(s-1) C^(1/s) (tau/N)^((s-1)/s)); "floor" the same at floor(tau);
            "sum" (1/N) sum_{r<=M} min(floor(tau), floor(C N/r^s)), the least of the three.

    Returns:
        Bound in [0, 1], float or float64 array of the shape of `tau`.

    Raises:
        InvalidInput: tau negative, or s <= 1.

    Source:
        [Z2], the tail step in the proof of Theorem 3.3, corrected.

    Example:
        >>> certificate = ZipfCertificate(log_constant=np.log(2.0), s=2.0)
        >>> forms = ("closed", "floor", "sum")
        >>> [round(zipf_tail_bound(3.5, certificate, num_pairs=99, form=f), 3) for f in forms]
        [0.532, 0.492, 0.313]
    """
    levels = np.asarray(tau, np.float64)
    if np.any(np.isnan(levels)) or np.any(levels < 0):
        invalid("tau", tau, "must be at least 0")
    if form != "closed":
        levels = np.floor(levels)
    if form == "sum":
        items = None if num_items is None else check_count("num_items", num_items)
        values = [
            zipf_tail_pairs(int(min(level, num_pairs)), certificate, num_pairs, items)
            for level in levels.flat
        ]
        return plain(np.minimum(1.0, np.reshape(values, levels.shape) / num_pairs))
    return plain(np.exp(np.minimum(0.0, log_tail_bound(levels, certificate, num_pairs))))


def zipf_tail_pairs(
    level: int, certificate: ZipfCertificate, num_pairs: int, num_items: int | None
) -> int:
    """sum_{r<=M} min(level, floor(C N/r^s)), never too small, in O((C N)^(1/(s+1))) steps.

    Values up to a pivot J are counted by value, sum_{j<=J} #{r <= M : floor(C N/r^s) >= j}, what
    lies above J by rank. At J near (C N)^(1/(s+1)) both parts are short.
    """
    s = float(check_zipf_exponent(certificate.s))
    log_pairs = float(certificate.log_constant) + float(np.log(num_pairs))
    most = num_pairs if num_items is None else min(num_items, num_pairs)
    pivot = int(min(level, np.ceil(np.exp(min(log_pairs / (s + 1), np.log(level + 1))))))
    total = 0
    for start in range(1, pivot + 1, _BLOCK):
        values = np.arange(start, min(start + _BLOCK, pivot + 1), dtype=np.float64)
        # Rank of the last item that can reach the value; rounded up, capped before it overflows.
        total += int(_floor_up((log_pairs - np.log(values)) / s, most, log_pairs / s).sum())
    if pivot < level:
        above = np.asarray((log_pairs - np.log(pivot + 1)) / s)
        last = int(_floor_up(above, most, log_pairs / s))
        for start in range(1, last + 1, _BLOCK):
            ranks = np.arange(start, min(start + _BLOCK, last + 1), dtype=np.float64)
            caps = _floor_up(log_pairs - s * np.log(ranks), level, log_pairs + s * np.log(last))
            total += int(np.maximum(caps - pivot, 0).sum())
    return total


def _floor_up(exponent: Any, most: int, scale: float) -> Any:
    """min(most, floor(exp(exponent))) as int64, rounded up where the floor is in doubt.

    `scale` is the size of the terms whose difference the exponent is: it sets the doubt.
    """
    capped = np.minimum(exponent, np.log(most) + 1)
    value = np.exp(capped) * (1 + _ULPS * (8 + scale))
    return np.minimum(np.floor(value), most).astype(np.int64)


def best_certificate(frequencies: Profile | Reals, tau: Reals) -> ZipfCertificate:
    """The certificate of the data that makes the closed form [Z2] least at tau.

    In u = 1/s the logarithm of the bound is -ln(1-u) + max_k(a_k u + b_k) + (1-u) ln(tau/N), k over
    the hull vertices of `envelope`: convex, and on the piece of one vertex least at
    1 - u = 1/(ln(tau/N) - a_k). So the minimum is found exactly, piece by piece. Any s is
    a valid choice, so rounding of the minimiser costs nothing in validity.

    Args:
        frequencies: Profile, or (num_items,) whole numbers of at least 1.
        tau: Frequency, any shape, at least 0.

    Returns:
        Certificate with `s` in (1, 1e6] and `log_constant` of the shape of `tau`.

    Raises:
        InvalidInput: tau negative.

    Source:
        [U3], Theorem 3.3 with the best of all certificates of the same data.

    Example:
        >>> best = best_certificate([5000 // r**2 for r in range(1, 71)], tau=100)
        >>> round(best.s, 3), round(best.constant, 3)
        (2.119, 1.0)
    """
    profile = as_profile(frequencies)
    levels = np.asarray(tau, np.float64)
    if np.any(np.isnan(levels)) or np.any(levels < 0):
        invalid("tau", tau, "must be at least 0")
    b, a = profile.rank_envelope
    # At tau = 0 the tail is empty and every certificate is as good: any small value will do.
    log_share = np.log(np.maximum(levels, 1e-300))[..., None] - np.log(profile.num_pairs)
    cuts = np.diff(b) / -np.diff(a)
    high = np.clip(np.concatenate(([1.0], cuts)), _LEAST_INVERSE_EXPONENT, 1.0)
    low = np.clip(np.concatenate((cuts, [0.0])), _LEAST_INVERSE_EXPONENT, 1.0)
    slope = log_share - a
    stationary = np.where(slope > 1, 1 - 1 / np.maximum(slope, 1), 0.0)
    # The last piece reaches u = 1 only for one item; there -ln(1-u) must stay finite.
    u = np.minimum(np.clip(stationary, np.minimum(low, high), high), 1 - 1e-9)
    value = -np.log1p(-u) + a * u + b + (1 - u) * log_share
    best = np.take_along_axis(u, np.argmin(value, axis=-1)[..., None], axis=-1)[..., 0]
    return zipf_certificate(profile, 1 / best)
