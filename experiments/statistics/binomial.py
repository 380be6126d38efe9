"""[V1] One look at a binomial count: Clopper-Pearson limits and exact one-sided p-values.

Everywhere, R trials are independent, each exceeds the bound with the same unknown rate p, and K is
the number of exceedances. Of "p <= beta" and "p > beta" exactly one is true, so the two tests of
one cell may each use the whole level.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from experiments.statistics._types import Floats
from theory._check import Reals, check_beta, invalid

__all__ = [
    "as_p_value",
    "clopper_pearson_lower",
    "clopper_pearson_upper",
    "log_p_confirm",
    "log_p_refute",
]

# Below this the regularised incomplete beta function is about to leave float64.
_UNDERFLOW = 1e-290


def check_binomial(exceedances: Reals, trials: Reals) -> tuple[np.ndarray, np.ndarray]:
    """K and R as float64 arrays of one shape, whole numbers with 0 <= K <= R."""
    k, r = np.broadcast_arrays(np.asarray(exceedances), np.asarray(trials))
    if k.dtype.kind not in "iuf" or r.dtype.kind not in "iuf":
        invalid("exceedances", exceedances, "must be whole numbers from 0 to the number of trials")
    k, r = k.astype(np.float64), r.astype(np.float64)
    if np.any(~np.isfinite(r) | (r < 0) | (np.floor(r) != r)):
        invalid("trials", trials, "must be whole numbers of at least 0")
    if np.any(~np.isfinite(k) | (k < 0) | (k > r) | (np.floor(k) != k)):
        invalid("exceedances", exceedances, "must be whole numbers from 0 to the number of trials")
    return k, r


def clopper_pearson_lower(exceedances: Reals, trials: Reals, *, alpha: Reals) -> Floats:
    """One-sided lower confidence limit of a binomial rate: P(limit > p) <= alpha for every p.

    Args:
        exceedances: K, any shape, whole numbers.
        trials: R, any shape, at least K.
        alpha: Error probability of this one side, in (0, 1).

    Returns:
        float64 of the broadcast shape, in [0, 1]; 0 where K = 0.

    Raises:
        InvalidInput: K or R is not a whole number with 0 <= K <= R, or alpha is outside (0, 1).

    Source: Clopper and Pearson (1934); [V1].

    Example:
        >>> round(float(clopper_pearson_lower(20, 20, alpha=0.05)), 4)  # alpha**(1/R)
        0.8609
    """
    k, r = check_binomial(exceedances, trials)
    # p with P(Bin(R, p) >= K) = alpha; the first shape is kept legal where K = 0.
    limit = special.betaincinv(np.maximum(k, 1), r - k + 1, check_beta(alpha, "alpha"))
    return np.where(k == 0, 0.0, limit)[()]


def clopper_pearson_upper(exceedances: Reals, trials: Reals, *, alpha: Reals) -> Floats:
    """One-sided upper confidence limit of a binomial rate: P(limit < p) <= alpha for every p.

    Args:
        exceedances: K, any shape, whole numbers.
        trials: R, any shape, at least K.
        alpha: Error probability of this one side, in (0, 1).

    Returns:
        float64 of the broadcast shape, in [0, 1]; 1 where K = R.

    Raises:
        InvalidInput: K or R is not a whole number with 0 <= K <= R, or alpha is outside (0, 1).

    Source: Clopper and Pearson (1934); [V1].

    Example:
        >>> bool(clopper_pearson_upper(0, 179, alpha=1e-4) <= 0.05)
        False
        >>> bool(clopper_pearson_upper(0, 180, alpha=1e-4) <= 0.05)
        True
    """
    k, r = check_binomial(exceedances, trials)
    # p with P(Bin(R, p) <= K) = alpha; the complement form keeps alpha = 1e-20 exact.
    limit = special.betainccinv(k + 1, np.maximum(r - k, 1), check_beta(alpha, "alpha"))
    return np.where(k == r, 1.0, limit)[()]


def log_p_confirm(exceedances: Reals, trials: Reals, *, beta: Reals) -> Floats:
    """Log of the exact p-value against "p > beta": ln P(Bin(R, beta) <= K).

    It is at most ln(alpha) exactly where the upper Clopper-Pearson limit is at most beta.

    Args:
        exceedances: K, any shape, whole numbers.
        trials: R, any shape, at least K.
        beta: Claimed rate, in (0, 1).

    Returns:
        float64 of the broadcast shape, at most 0. Where the probability leaves float64 this is an
        upper bound on it (a geometric series), so rounding never helps the claim.

    Raises:
        InvalidInput: K, R or beta is outside its range.

    Source: [V1].

    Example:
        >>> round(float(np.exp(log_p_confirm(0, 180, beta=0.05))), 7)
        9.78e-05
        >>> round(float(log_p_confirm(0, 100_000, beta=0.05)), 4)
        -5129.3294
    """
    k, r = check_binomial(exceedances, trials)
    b = check_beta(beta)
    tail = np.where(k == r, 1.0, special.betaincc(k + 1, np.maximum(r - k, 1), b))
    return _log_tail(tail, k, r, b, ratio=k * (1 - b) / ((r - k + 1) * b))


def log_p_refute(exceedances: Reals, trials: Reals, *, beta: Reals) -> Floats:
    """Log of the exact p-value against "p <= beta": ln P(Bin(R, beta) >= K).

    It is at most ln(alpha) exactly where the lower Clopper-Pearson limit is at least beta.

    Args:
        exceedances: K, any shape, whole numbers.
        trials: R, any shape, at least K.
        beta: Claimed rate, in (0, 1).

    Returns:
        float64 of the broadcast shape, at most 0; an upper bound where float64 underflows.

    Raises:
        InvalidInput: K, R or beta is outside its range.

    Source: [V1].

    Example:
        >>> round(float(np.exp(log_p_refute(4, 4, beta=0.1))), 7)
        0.0001
    """
    k, r = check_binomial(exceedances, trials)
    b = check_beta(beta)
    tail = np.where(k == 0, 1.0, special.betainc(np.maximum(k, 1), r - k + 1, b))
    return _log_tail(tail, k, r, b, ratio=(r - k) * b / ((k + 1) * (1 - b)))


def as_p_value(log_p: Reals) -> Floats:
    """Exp of a log p-value, cut to 1 and rounded up to the least normal float64: never 0.

    Args:
        log_p: Natural logarithm of a p-value, any shape.

    Returns:
        float64 of the same shape, in (0, 1].

    Example:
        >>> float(as_p_value(-5000.0)), float(as_p_value(0.2))
        (2.2250738585072014e-308, 1.0)
    """
    p = np.exp(np.minimum(np.asarray(log_p, dtype=np.float64), 0.0))
    return np.maximum(p, np.finfo(np.float64).tiny)[()]


def _log_tail(
    tail: np.ndarray, k: np.ndarray, r: np.ndarray, b: np.ndarray, *, ratio: Floats
) -> Floats:
    """Ln of a binomial tail that starts at k and whose terms fall at least by `ratio`."""
    log_pmf = (
        special.gammaln(r + 1)
        - special.gammaln(k + 1)
        - special.gammaln(r - k + 1)
        + special.xlogy(k, b)
        + special.xlog1py(r - k, -b)
    )
    # The ratio of successive terms shrinks away from k: the geometric sum rounds the tail up.
    # In the deep tail the ratio is below 1; the clip only keeps unused entries finite.
    bound = log_pmf - np.log1p(-np.minimum(ratio, 1 - 1e-15))
    exact = np.log(np.maximum(tail, _UNDERFLOW))
    return np.where(tail > _UNDERFLOW, exact, np.minimum(bound, 0.0))[()]
