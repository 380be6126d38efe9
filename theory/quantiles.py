"""Where a quantile of the missing mass lies, as exactly as it can be known without simulation."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from theory._check import check_beta, invalid
from theory.certificates import (
    certificate,
    chernoff_bound,
    exact_quantile,
    hinge_bound,
    max_missing_mass_bracket,
)
from theory.miss_probability import MissProbabilities
from theory.zipf import plain


def quantile_interval(
    misses: MissProbabilities,
    beta: float,
    *,
    metric: Literal["missing_mass", "max_missing_mass"] = "missing_mass",
) -> tuple[Any, Any, str]:
    """An interval that holds the (1 - beta)-quantile of a metric for sure.

    Args:
        misses: Miss probabilities, any grid.
        beta: In (0, 1).
        metric: "missing_mass" or "max_missing_mass".

    Returns:
        (low, high, source): floats, or float64 of the grid's shape; equal where the law is known,
        that is where no user is clipped; and the tags of what was used. "The metric is at most v
        with probability 1 - beta" is true for v >= high and false for v < low.

    Raises:
        InvalidInput: beta outside (0, 1), or another metric.

    Source:
        [E3]; [E5], [E6] from both sides; [E7].

    Example:
        >>> misses = MissProbabilities(
        ...     miss=np.array([0.5]), hit=np.array([0.5]), frequencies=np.array([2]),
        ...     multiplicity=np.array([50]), num_pairs=100, independent=True,
        ... )
        >>> quantile_interval(misses, 0.05)
        (0.62, 0.62, '[E3] exact law')
    """
    beta = float(check_beta(beta))
    if metric == "max_missing_mass":
        low, high = (bound.value for bound in max_missing_mass_bracket(misses, beta))
        return low, high, "[E3] exact law" if misses.independent else "[E7] bracket"
    if metric != "missing_mass":
        invalid("metric", metric, "must be missing_mass or max_missing_mass")
    if misses.independent:
        value = exact_quantile(misses, 1 - beta)
        return value, value, "[E3] exact law"
    # MM >= low with probability at least beta says that the (1 - beta)-quantile is at least low.
    high = certificate(misses, beta).value
    low = np.maximum(
        hinge_bound(misses, 1 - beta, side="lower").value,
        chernoff_bound(misses, 1 - beta, side="lower").value,
    )
    return plain(low), high, "[E5, E6] certificate"
