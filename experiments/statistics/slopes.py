"""Slopes in log-log scale: does a quantile fall like a power of N, and how surely?

The quantile of each cell is an order statistic of its trials. Resampling the R trials of a cell
with replacement and taking order statistic j again has a known law: the result is sample number
ceil(R U) in sorted order, U ~ Beta(j, R-j+1). So the bootstrap needs one beta variate per cell and
replicate, not R draws, and tens of thousands of replicates cost milliseconds.

The percentile interval is approximate (bootstrap), unlike everything else in this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from experiments.statistics._types import Floats
from theory._check import Reals, check_beta, check_count, invalid

__all__ = [
    "SlopeFit",
    "bootstrap_slope",
    "empirical_quantile",
    "log_log_slope",
    "order_statistic_index",
]


@dataclass(frozen=True, eq=False)
class SlopeFit:
    """Least-squares slope of ln(quantile) on ln(x) with its bootstrap law.

    Attributes:
        estimate: Slope of the observed quantiles.
        low: Lower end of the percentile interval.
        high: Upper end of the percentile interval.
        alpha: Nominal probability that the interval misses the slope.
        replicates: (replicates,) float64, slopes of the resampled quantiles.
        trials: Trials of all cells together.
        seed: Seed of the resampling.
    """

    estimate: float
    low: float
    high: float
    alpha: float
    replicates: Float64[np.ndarray, " replicates"]
    trials: int
    seed: int


def order_statistic_index(quantile: float, trials: int) -> int:
    """Number j (from 1) of the order statistic that is the empirical `quantile`: ceil(q R).

    Args:
        quantile: Level q, in (0, 1).
        trials: Number of trials R, at least 1.

    Returns:
        j, from 1 to R.

    Example:
        >>> order_statistic_index(0.95, 1000), order_statistic_index(0.95, 7)
        (950, 7)
    """
    # 0.95 * 1000 is 950.0000000000001 or the like: shaved before rounding up.
    return min(max(int(np.ceil(quantile * trials * (1 - 1e-12))), 1), trials)


def empirical_quantile(samples: np.ndarray, quantile: float) -> float:
    """Least sample with at least the given share of samples at or below it.

    Args:
        samples: (trials,) numbers, at least one.
        quantile: Level, in (0, 1).

    Returns:
        A sample: nothing is interpolated.

    Example:
        >>> empirical_quantile(np.arange(1.0, 101.0), 0.95)
        95.0
    """
    j = order_statistic_index(quantile, samples.size)
    return float(np.partition(samples, j - 1)[j - 1])


def log_log_slope(x: Reals, y: Reals) -> Floats:
    """Ordinary least squares slope of ln y on ln x.

    Args:
        x: (cells,), positive, at least two distinct values.
        y: (..., cells), positive.

    Returns:
        float64 slopes, one per leading index of y.

    Raises:
        InvalidInput: a value is not positive and finite, or x has fewer than two distinct values.

    Example:
        >>> round(float(log_log_slope([1e4, 1e5, 1e6], [0.3, 0.03, 0.003])), 12)
        -1.0
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    for name, values in (("x", x), ("y", y)):
        if not np.all((values > 0) & np.isfinite(values)):
            invalid(name, values, "must hold positive finite numbers")
    if x.ndim != 1 or np.unique(x).size < 2 or y.shape[-1:] != x.shape:
        invalid("x", x, "must hold at least two distinct values, one per last index of y")
    centred = np.log(x) - np.mean(np.log(x))
    return (np.log(y) @ centred / np.dot(centred, centred))[()]


def bootstrap_slope(
    x: Reals,
    samples: Sequence[np.ndarray],
    *,
    quantile: float = 0.95,
    alpha: float = 0.01,
    replicates: int = 20_000,
    seed: int = 0,
) -> SlopeFit:
    """Slope of ln(quantile of a cell) on ln(x of the cell), with a percentile interval.

    Trials are resampled within each cell and the quantile recomputed.

    Args:
        x: (cells,), the setting that varies (N or eps), positive.
        samples: One (trials,) array per cell; cells may differ in their numbers of trials.
        quantile: Which quantile of the trials, in (0, 1).
        alpha: Nominal miss probability of the interval, in (0, 1).
        replicates: Bootstrap replicates.
        seed: Seed; equal arguments give the equal result.

    Returns:
        `SlopeFit`.

    Raises:
        InvalidInput: a cell's quantile is not positive, sizes disagree, or a value is outside its
            range.

    Source: theory section 8 (shapes).

    Example:
        >>> rng = np.random.default_rng(1)
        >>> sizes = [1e3, 1e4, 1e5]
        >>> fit = bootstrap_slope(sizes, [n**-0.5 * rng.uniform(1, 2, 400) for n in sizes])
        >>> fit.low < -0.5 < fit.high
        True
    """
    x = np.asarray(x, dtype=np.float64)
    check_beta(quantile, "quantile")
    check_beta(alpha, "alpha")
    count = check_count("replicates", replicates, minimum=100)
    if len(samples) != x.size or any(np.size(cell) == 0 for cell in samples):
        invalid("samples", f"{len(samples)} cells", f"must be {x.size} cells with trials in each")
    rng = np.random.default_rng(seed)
    observed, resampled = np.empty(x.size), np.empty((count, x.size))
    for i, cell in enumerate(samples):
        ordered = np.sort(np.asarray(cell, dtype=np.float64))
        j = order_statistic_index(quantile, ordered.size)
        observed[i] = ordered[j - 1]
        if not observed[i] > 0:
            invalid("samples", observed[i], "must have a positive quantile in each cell (for ln)")
        drawn = np.ceil(ordered.size * rng.beta(j, ordered.size - j + 1, count)).astype(np.int64)
        chosen = ordered[np.clip(drawn, 1, ordered.size) - 1]
        # A zero has no logarithm; the least positive trial keeps the replicate and its direction.
        resampled[:, i] = np.maximum(chosen, ordered[ordered > 0][0])
    slopes = np.asarray(log_log_slope(x, resampled))
    low, high = np.quantile(slopes, [alpha / 2, 1 - alpha / 2])
    trials = sum(int(np.size(cell)) for cell in samples)
    estimate = float(log_log_slope(x, observed))
    return SlopeFit(estimate, float(low), float(high), alpha, slopes, trials, seed)
