"""[V2] Any number of looks at a binomial count: two e-processes and their anytime p-values.

An e-process E_1, E_2, ... has expectation at most 1 at every stopping time while its null
hypothesis holds, so P(sup E >= 1/alpha) <= alpha (Ville). One may look after every trial, add
trials until decided, and stop for any reason. min(1, 1/E) at the look where one stops is a valid
p-value; so is min(1, 1/max E) over all prefixes seen, which is never larger and keeps a decision
once it is reached.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool
from scipy import special

from experiments.statistics._types import Floats
from experiments.statistics.binomial import as_p_value, check_binomial
from theory._check import Reals, check_beta

__all__ = ["anytime_p_values", "confirm_log_e", "refute_log_e"]


def confirm_log_e(exceedances: Reals, trials: Reals, *, beta: Reals) -> Floats:
    """Log e-process against "p > beta": half on rate 0, half on rate beta/2.

    E = (1/2)(1-beta)^(-R) 1[K=0] + (1/2)(1/2)^K ((1-beta/2)/(1-beta))^(R-K).

    Args:
        exceedances: K so far, any shape, whole numbers.
        trials: R so far, any shape, at least K.
        beta: Claimed rate, in (0, 1).

    Returns:
        ln E, float64 of the broadcast shape. The claim is confirmed at level alpha once it
        reaches ln(1/alpha).

    Raises:
        InvalidInput: K, R or beta is outside its range.

    Source: [V2], Ville's inequality.

    Example:
        >>> int(np.argmax(confirm_log_e(0, np.arange(400), beta=0.05) >= np.log(1e4)))
        193
    """
    k, r = check_binomial(exceedances, trials)
    b = check_beta(beta)
    never = np.where(k == 0, -r * np.log1p(-b), -np.inf)
    half = k * np.log(0.5) + (r - k) * (np.log1p(-b / 2) - np.log1p(-b))
    return (np.logaddexp(never, half) - np.log(2))[()]


def refute_log_e(exceedances: Reals, trials: Reals, *, beta: Reals) -> Floats:
    """Log e-process against "p <= beta": a third each on rates 1.5 beta, 2 beta and 4 beta.

    A rate is cut to (1+beta)/2, which is below 1 and still above beta: any such rate is valid.

    Args:
        exceedances: K so far, any shape, whole numbers.
        trials: R so far, any shape, at least K.
        beta: Claimed rate, in (0, 1).

    Returns:
        ln E, float64 of the broadcast shape. The claim is refuted at level alpha once it reaches
        ln(1/alpha).

    Raises:
        InvalidInput: K, R or beta is outside its range.

    Source: [V2], Ville's inequality.

    Example:
        >>> bool(refute_log_e(40, 200, beta=0.05) >= np.log(1e4))
        True
        >>> bool(refute_log_e(10, 200, beta=0.05) >= 0)
        False
    """
    k, r = check_binomial(exceedances, trials)
    b = check_beta(beta)
    terms = []
    for factor in (1.5, 2.0, 4.0):
        rate = np.minimum(factor * b, (1 + b) / 2)
        terms.append(k * (np.log(rate) - np.log(b)) + (r - k) * (np.log1p(-rate) - np.log1p(-b)))
    return (special.logsumexp(np.stack(terms), axis=0) - np.log(3))[()]


def anytime_p_values(exceeds: Bool[np.ndarray, " trials"], *, beta: Reals) -> tuple[float, float]:
    """Anytime-valid p-values of one cell, from its trials in the order they were run.

    Args:
        exceeds: (trials,) bool, whether each trial exceeded the bound.
        beta: Claimed rate, in (0, 1).

    Returns:
        (against "p > beta", against "p <= beta"): min(1, 1 / max over prefixes of E). Both can
        only fall as trials are appended. (1, 1) without trials.

    Raises:
        InvalidInput: beta is outside (0, 1).

    Source: [V2].

    Example:
        >>> confirm, refute = anytime_p_values(np.zeros(300, dtype=bool), beta=0.05)
        >>> confirm < 1e-6, refute
        (True, 1.0)
    """
    r = np.arange(exceeds.size + 1)
    k = np.concatenate([[0], np.cumsum(exceeds)])
    confirm = np.max(confirm_log_e(k, r, beta=beta))
    refute = np.max(refute_log_e(k, r, beta=beta))
    return float(as_p_value(-confirm)), float(as_p_value(-refute))
