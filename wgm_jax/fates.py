"""Which items the fast sampler must look at: open, rare or settled fates. NumPy, float64.

Most items of a data set are surely missed or surely released. From the law of an item's kept
copies we get a range that they leave with negligible probability, and from it the largest chance of
the unexpected outcome, over all points of a grid:

    open       more than `RARE`: the item is simulated in every trial
    rare       less: its unexpected outcomes are proposed at that rate, and checked
    settled    so small that all of them together may be ignored: nothing is done

Only the ranges and the settled items are approximations. They change a trial with probability at
most `ERROR`, whatever the data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.special import xlogy

from theory import UserItems
from wgm_jax.count_law import CountLaw

# Probability that the law of a trial is not exactly that of the mechanism (total variation).
ERROR = 2.0**-30
# A larger value moves work from the device (all trials) to the host (proposals); measured. For
# items of constant weight proposals are cheap: no draws of clipped users have to be repeated.
RARE, RARE_CONSTANT = 2.0**-11, 2.0**-6
_NEWTON_STEPS = 4
# Items looked at together: a few arrays of so many numbers per point.
_ITEMS = 2**18


@dataclass(frozen=True, eq=False)
class Fates:
    """Items by how certain their outcome is.

    Attributes:
        low: Least number of clipped users who keep the item, up to the error.
        high: Largest number.
        open: The item must be simulated.
        missed: Of the others: the expected outcome is a miss, else a release.
        rate: Largest probability of the other outcome, 0 for settled items.
    """

    low: Int64[np.ndarray, " items"]
    high: Int64[np.ndarray, " items"]
    open: Bool[np.ndarray, " items"]
    missed: Bool[np.ndarray, " items"]
    rate: Float64[np.ndarray, " items"]


def fates(data: UserItems, law: CountLaw) -> Fates:
    """Fate of every item under a law on a grid.

    Example:
        >>> from theory.calibration import calibrate
        >>> from wgm_jax.wgm import WeightedGaussian
        >>> data = UserItems.from_sets([{"hit"}] * 80 + [{"open"}] * 20 + [{"miss"}])
        >>> noise = calibrate(eps=[1.0], delta=1e-5, max_items_per_user=1)
        >>> found = fates(data, WeightedGaussian().count_law(data, noise))
        >>> found.open, found.missed[[0, 2]]
        (array([False,  True, False]), array([False,  True]))
    """
    sizes = np.repeat(data.set_sizes, data.set_sizes)
    clipped = sizes > law.keep
    items = data.items[clipped]
    holders = np.bincount(items, minlength=data.num_items)
    # The casts: without any item bincount returns integers.
    mean = np.bincount(items, law.keep / sizes[clipped], minlength=data.num_items).astype(float)
    low, high = kept_range(holders, mean, ERROR / 2 / data.num_items)

    miss, hit = np.zeros(data.num_items), np.zeros(data.num_items)
    for start in range(0, data.num_items, max(1, _ITEMS // law.num_points)):
        some = np.arange(start, min(start + max(1, _ITEMS // law.num_points), data.num_items))
        # The law is monotone: the extremes are at the ends of the range.
        miss[some] = np.max(law.chances(some, low[some])[1], axis=1)
        hit[some] = np.max(law.chances(some, high[some])[0], axis=1)
    rare = np.where(holders > 0, RARE, RARE_CONSTANT)
    missed = hit <= rare
    rate = np.where(missed, hit, miss)
    rate[rate <= ERROR / 2 / data.num_items] = 0.0
    return Fates(low=low, high=high, open=rate > rare, missed=missed, rate=rate)


def kept_range(
    holders: Int64[np.ndarray, " items"], mean: Float64[np.ndarray, " items"], error: float
) -> tuple[Int64[np.ndarray, " items"], Int64[np.ndarray, " items"]]:
    """Least and largest number of kept copies, either one wrong with probability below `error`.

    A sum K of n independent indicators with mean n p has P(K >= n x) <= exp(-n KL(x, p)) for x > p,
    and P(K <= n x) likewise for x < p (Hoeffding 1963). The bound is solved for x by Newton steps
    on a convex function from outside, so that every step is a valid, wider range.

    Example:
        >>> kept_range(np.array([3, 1000]), np.array([1.5, 500.0]), 1e-9)
        (array([  0, 399]), array([  3, 601]))
    """
    n, center = holders.astype(float), np.minimum(mean, holders)
    goal = -np.log(error)

    def excess(x: np.ndarray) -> np.ndarray:
        rest, rest_center = n - x, n - center
        return xlogy(x, x / _some(center)) + xlogy(rest, rest / _some(rest_center)) - goal

    # Bernstein's inequality, on both sides.
    variance = center * (1 - center / _some(n))
    reach = goal / 3 + np.sqrt(goal**2 / 9 + 2 * variance * goal)
    ends = []
    for sign, outermost in ((-1, np.zeros_like(n)), (1, n)):
        x = center + sign * reach
        inside = (x > 0) & (x < n)
        x = np.where(inside, x, outermost)
        for _ in range(_NEWTON_STEPS):
            with np.errstate(divide="ignore", invalid="ignore"):
                slope = np.log(x / center) - np.log((n - x) / (n - center))
                step = np.where(inside, np.maximum(excess(x), 0) / slope, 0.0)
            x = x - np.where(np.isfinite(step), step, 0.0)
        ends.append(x)
    return np.ceil(ends[0]).astype(np.int64), np.floor(ends[1]).astype(np.int64)


def _some(values: np.ndarray) -> np.ndarray:
    """The values, 1 for 0: they are divided by where the result does not matter."""
    return np.where(values > 0, values, 1.0)
