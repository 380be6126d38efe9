"""A confidence interval for a median that holds for every law and any number of trials.

With 20 trials an interval for the mean of a variable in [0, 1], of which nothing else is known, is
0.2 wide: useless here. The median's interval is as narrow as the trials are alike. Conditional
means of the missing mass vary by a thousandth of themselves, so their mean and median, which differ
by at most one standard deviation, are the same to all digits shown.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from scipy.stats import binom

from theory._check import check_beta


def median_interval(
    samples: Float64[np.ndarray, " trials"], *, alpha: float
) -> tuple[float, float]:
    """Order statistics between which the median lies, with probability 1 - alpha or more.

    Args:
        samples: (trials,), independent, of one law.
        alpha: Error probability, in (0, 1).

    Returns:
        The limits; infinite where there are too few trials, below 6 at alpha = 0.05.

    Source:
        Of R trials, the number below the median is at most Bin(R, 1/2).

    Example:
        >>> median_interval(np.arange(20.0), alpha=0.05), median_interval(np.ones(5), alpha=0.05)
        ((5.0, 14.0), (-inf, inf))
    """
    check_beta(alpha, "alpha")
    ordered = np.sort(samples)
    # P(Bin < k) <= alpha/2: the k smallest can be left out below.
    k = int(binom.ppf(alpha / 2, ordered.size, 0.5))
    if k < 1:
        return -np.inf, np.inf
    return float(ordered[k - 1]), float(ordered[ordered.size - k])
