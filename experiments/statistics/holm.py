"""Family-wise error over the cells of a claim: Holm's step-down procedure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from theory._check import Reals, check_beta, invalid

__all__ = ["Holm", "holm"]


class Holm(NamedTuple):
    """Outcome of Holm's procedure.

    Attributes:
        rejected: (cells,) bool, null hypotheses rejected at family-wise level alpha.
        adjusted: (cells,) float64, least family-wise level at which each would be rejected.
    """

    rejected: Bool[np.ndarray, " cells"]
    adjusted: Float64[np.ndarray, " cells"]


def holm(p_values: Reals, *, alpha: float) -> Holm:
    """Reject as many of several null hypotheses as the family-wise level allows.

    The probability of rejecting any true one is at most alpha, whatever the dependence between
    the p-values (cells may share random draws).

    Args:
        p_values: (cells,), each in [0, 1].
        alpha: Family-wise level, in (0, 1).

    Returns:
        `Holm`: the rejected mask and the adjusted p-values, in the order given.

    Raises:
        InvalidInput: a p-value is outside [0, 1] or not one-dimensional, or alpha outside (0, 1).

    Source: Holm (1979); theory section 8.

    Example:
        >>> holm([0.01, 0.04, 0.03, 0.005], alpha=0.05).rejected.tolist()
        [True, False, False, True]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not np.all((p >= 0) & (p <= 1)):
        invalid("p_values", p_values, "must be a flat list of numbers in [0, 1]")
    check_beta(alpha, "alpha")
    order = np.argsort(p, kind="stable")
    remaining = np.arange(p.size, 0, -1)
    adjusted = np.empty_like(p)
    # A hypothesis falls only after all smaller p-values fell: hence the running maximum.
    adjusted[order] = np.minimum(np.maximum.accumulate(remaining * p[order]), 1.0)
    return Holm(adjusted <= alpha, adjusted)
