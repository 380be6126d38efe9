"""Confidence and evidence for the mean of independent [0, 1] variables, valid at every size.

Betting: a gambler who starts with 1 and bets that the mean is above m multiplies the capital by
1 + f (x/m - 1) at each sample x, with 0 < f <= 1. The capital is never negative, and has
expectation at most 1 whenever the mean is at most m, so it is evidence (an e-process) against
"mean <= m", and all m at which it stays below 1/alpha form a confidence set. We spread the stake
evenly over the constant fractions f = 1, 1/2, 1/4, ...: "diversified Kelly betting", where one of
the fractions is within sqrt(2) of the best and the spread costs ln(16) = 2.8 nats. No tuning
depends on alpha or on the number of samples, so the limits are nested in alpha, the final capital
does not depend on the order of the samples, and stopping at any time is allowed.

The capital falls as m grows, so the confidence set is a half-line and its end a root.

Sources: Waudby-Smith and Ramdas (2024), "Estimating means of bounded random variables by
betting"; Maurer and Pontil (2009), "Empirical Bernstein bounds", as the cheap fallback.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from jaxtyping import Float64
from scipy import optimize

from experiments.statistics._types import Floats
from theory._check import Reals, check_beta, invalid

__all__ = [
    "Interval",
    "empirical_bernstein_lower",
    "empirical_bernstein_upper",
    "log_e_above",
    "log_e_below",
    "mean_interval",
    "mean_lower",
    "mean_upper",
]

# 2**-15 is still of use at 1e8 samples; each further fraction costs ln(17/16) nats.
_FRACTIONS = 2.0 ** -np.arange(16)
# Values this far outside [0, 1] are rounding of a share, and are moved onto it.
_ROUNDING = 1e-9
_ROOT_TOLERANCE = 1e-12


class Interval(NamedTuple):
    """Two confidence limits, in [0, 1]."""

    low: float
    high: float


def check_unit_samples(samples: Reals) -> np.ndarray:
    """`samples` as float64 with a leading trial axis and values in [0, 1]."""
    x = np.asarray(samples, dtype=np.float64)
    good = (x >= -_ROUNDING) & (x <= 1 + _ROUNDING)
    if x.ndim < 1 or not np.all(good):
        value = x[~good].flat[0] if x.ndim and not np.all(good) else samples
        invalid("samples", value, "must be an array of numbers in [0, 1], trials first")
    return np.clip(x, 0.0, 1.0)


def log_e_above(samples: Reals, mean: Reals, *, running: bool = False) -> Floats:
    """Log of the evidence that the mean is above a value: an e-value against "mean <= m".

    Args:
        samples: (trials,) or (trials, columns...), independent with values in [0, 1].
        mean: m, a scalar or one per column.
        running: Return the largest evidence over all prefixes of the trials, for any number of
            looks (Ville), instead of the final one, which no reordering changes.

    Returns:
        Log e-value, a scalar or one per column; P(it reaches ln(1/alpha)) <= alpha whenever the
        true mean is at most m. 0 without samples.

    Raises:
        InvalidInput: a sample is outside [0, 1].

    Source: Waudby-Smith and Ramdas (2024), diversified Kelly betting; Ville's inequality.

    Example:
        >>> x = np.tile([0.2, 0.4], 500)
        >>> bool(log_e_above(x, 0.25) > np.log(1e6)), bool(log_e_above(x, 0.3) <= 0)
        (True, True)
    """
    x = check_unit_samples(samples)
    m = np.broadcast_to(np.asarray(mean, dtype=np.float64), x.shape[1:])
    with np.errstate(divide="ignore", invalid="ignore"):
        # A mean of at most 0 is contradicted by any positive sample, and by nothing else.
        gain = np.where(m > 0, x / m - 1.0, np.where(x > 0, np.inf, 0.0))
        total = np.full(gain.shape if running else m.shape, -np.inf)
        for fraction in _FRACTIONS:
            steps = np.log1p(fraction * gain)  # -inf at f = 1, x = 0: that stake is lost
            total = np.logaddexp(total, np.cumsum(steps, 0) if running else np.sum(steps, 0))
    log_e = total - np.log(_FRACTIONS.size)
    return (np.max(log_e, axis=0, initial=0.0) if running else log_e)[()]


def log_e_below(samples: Reals, mean: Reals, *, running: bool = False) -> Floats:
    """Log of the evidence that the mean is below a value: an e-value against "mean >= m".

    Arguments, result and guarantee are those of `log_e_above` for 1 - samples and 1 - mean.

    Args:
        samples: (trials,) or (trials, columns...), independent with values in [0, 1].
        mean: Hypothetical mean m in [0, 1].
        running: Best prefix instead of all trials, as in `log_e_above`.

    Returns:
        Natural logarithm of the e-value, float64.

    Raises:
        InvalidInput: a sample or a mean is outside [0, 1].

    Example:
        >>> x = np.tile([0.2, 0.4], 500)
        >>> bool(log_e_below(x, 0.4) > np.log(1e6)), bool(log_e_below(x, 0.3) <= 0)
        (True, True)
    """
    x = check_unit_samples(samples)
    return log_e_above(1.0 - x, 1.0 - np.asarray(mean, dtype=np.float64), running=running)


def mean_lower(samples: Float64[np.ndarray, " trials"], *, alpha: float) -> float:
    """One-sided lower betting limit: P(limit > true mean) <= alpha.

    Args:
        samples: (trials,) float64, independent with values in [0, 1].
        alpha: Error probability of this one side, in (0, 1).

    Returns:
        Lower confidence limit, rounded down; 0 without samples.

    Raises:
        InvalidInput: a sample is outside [0, 1], or alpha outside (0, 1).

    Source: Waudby-Smith and Ramdas (2024).

    Example:
        >>> 0.35 < mean_lower(np.tile([0.2, 0.6], 500), alpha=0.01) < 0.4
        True
    """
    x = check_unit_samples(samples)
    check_beta(alpha, "alpha")
    if x.size == 0 or not np.any(x > 0):
        return 0.0
    # Missing masses repeat (integers over N): sums over distinct values are much shorter.
    values, counts = np.unique(x, return_counts=True)

    def excess(log_m: float) -> float:
        gain = values / np.exp(log_m) - 1.0
        with np.errstate(divide="ignore"):
            sums = [np.dot(counts, np.log1p(f * gain)) for f in _FRACTIONS]
        return float(np.logaddexp.reduce(sums) - np.log(_FRACTIONS.size) + np.log(alpha))

    # At the sample mean the evidence is at most 1 (Jensen): the root lies below it.
    high = low = float(np.log(np.mean(x)))
    step = 0.01
    while excess(low) < 0:
        high, low, step = low, low - step, 2 * step
        if low < -690.0:
            return 0.0
    if low == high:  # only by rounding: alpha next to 1
        return 0.0
    root = cast(float, optimize.brentq(excess, low, high, xtol=_ROOT_TOLERANCE))
    # Rounded down by twice the tolerance of the root, in log m (brentq adds 4 ulp of the root).
    return float(np.exp(root - 2 * _ROOT_TOLERANCE * (1 + abs(root))))


def mean_upper(samples: Float64[np.ndarray, " trials"], *, alpha: float) -> float:
    """One-sided upper betting limit: P(limit < true mean) <= alpha.

    Args:
        samples: (trials,) float64, independent with values in [0, 1].
        alpha: Error probability of this one side, in (0, 1).

    Returns:
        Upper confidence limit, rounded up; 1 without samples.

    Raises:
        InvalidInput: a sample is outside [0, 1], or alpha outside (0, 1).

    Source: Waudby-Smith and Ramdas (2024).

    Example:
        >>> 0.4 < mean_upper(np.tile([0.2, 0.6], 500), alpha=0.01) < 0.45
        True
    """
    return 1.0 - mean_lower(1.0 - check_unit_samples(samples), alpha=alpha)


def mean_interval(samples: Float64[np.ndarray, " trials"], *, alpha: float) -> Interval:
    """Two-sided betting interval: both one-sided limits at alpha/2.

    Args:
        samples: (trials,) float64, independent with values in [0, 1].
        alpha: Probability that the interval misses the mean, in (0, 1).

    Returns:
        `Interval` that contains the sample mean.

    Raises:
        InvalidInput: a sample is outside [0, 1], or alpha outside (0, 1).

    Source: Waudby-Smith and Ramdas (2024), hedged over the two directions.

    Example:
        >>> low, high = mean_interval(np.tile([0.2, 0.6], 500), alpha=0.01)
        >>> low < 0.4 < high
        True
    """
    return Interval(mean_lower(samples, alpha=alpha / 2), mean_upper(samples, alpha=alpha / 2))


def empirical_bernstein_lower(samples: Reals, *, alpha: float) -> Floats:
    """Closed-form lower limit for one look, cheaper and wider than `mean_lower`.

    Args:
        samples: (trials,) or (trials, columns...), at least two trials, values in [0, 1].
        alpha: Error probability of this one side, in (0, 1).

    Returns:
        mean - sqrt(2 V ln(2/alpha)/R) - 7 ln(2/alpha)/(3(R-1)), at least 0; V the sample variance.

    Raises:
        InvalidInput: fewer than two trials, a sample outside [0, 1], or alpha outside (0, 1).

    Source: Maurer and Pontil (2009), Theorem 4.

    Example:
        >>> bool(0.3 < empirical_bernstein_lower(np.tile([0.2, 0.6], 500), alpha=0.01) < 0.4)
        True
    """
    x = check_unit_samples(samples)
    check_beta(alpha, "alpha")
    if x.shape[0] < 2:
        invalid("samples", samples, "must hold at least two trials")
    log_term = np.log(2.0 / alpha)
    width = np.sqrt(2.0 * np.var(x, axis=0, ddof=1) * log_term / x.shape[0])
    return np.maximum(np.mean(x, axis=0) - width - 7.0 * log_term / (3.0 * (x.shape[0] - 1)), 0.0)


def empirical_bernstein_upper(samples: Reals, *, alpha: float) -> Floats:
    """Closed-form upper limit for one look: `empirical_bernstein_lower` of 1 - samples.

    Args:
        samples: (trials,) or (trials, columns...), at least two trials, values in [0, 1].
        alpha: Error probability of this one side, in (0, 1).

    Returns:
        mean + sqrt(2 V ln(2/alpha)/R) + 7 ln(2/alpha)/(3(R-1)), at most 1; V the sample variance.

    Raises:
        InvalidInput: fewer than two trials, a sample outside [0, 1], or alpha outside (0, 1).

    Source: Maurer and Pontil (2009), Theorem 4.

    Example:
        >>> bool(0.4 < empirical_bernstein_upper(np.tile([0.2, 0.6], 500), alpha=0.01) < 0.5)
        True
    """
    lower = empirical_bernstein_lower(1.0 - check_unit_samples(samples), alpha=alpha)
    return np.subtract(1.0, lower)[()]
