"""How likely a random weight plus Gaussian noise is to stay below the threshold, item by item.

Two methods, both good to about 1e-11 relative in either tail, share the work: the recursion for
items with few subsampled holders, the inversion for items with many; and items whose fate is
certain need neither.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64

from theory.holder_laws import NEVER, HolderLaws, normal_tails
from theory.inversion import by_inversion
from theory.recursion import by_recursion, recursion_width, size_by_size_time

# Up to this many holders the recursion is always used.
_FEW_HOLDERS = 64
# Noise of less than this many steps of the weight shows the steps: no single tilt fits then.
_COARSE = 0.25


def noisy_tails(
    base: Float64[np.ndarray, " classes"],
    offsets: Int64[np.ndarray, " classes_and_one"],
    sizes: Int64[np.ndarray, " entries"],
    counts: Int64[np.ndarray, " entries"],
    *,
    max_items_per_user: int,
    sigma: Float64[np.ndarray, " points"],
    threshold: Float64[np.ndarray, " points"],
) -> tuple[Float64[np.ndarray, "points classes"], Float64[np.ndarray, "points classes"]]:
    """Probability that an item of each class is missed, and that it is released.

    Args:
        base: h0, weight from the holders who keep all they hold; 0 exactly where there are none.
        offsets: Class c has the entries offsets[c] to offsets[c + 1] of the next two.
        sizes: Set sizes above Delta0.
        counts: Holders of an item of the class whose set has this size, at least 1.
        max_items_per_user: Delta0.
        sigma: Noise standard deviations above 0, one for each point.
        threshold: Thresholds T, one for each point.

    Returns:
        (miss, hit), which add up to 1. Each is accurate to 1e-10 relative where it is above 1e-30,
        and to 1e-40 absolute below.

    Source:
        [E1].

    Example:
        Three items at Delta0 = 1: held by one user alone, by one of 100 items, and by both.

        >>> miss, hit = noisy_tails(
        ...     np.array([1.0, 0.0, 1.0]), np.array([0, 0, 1, 2]), np.array([100, 100]),
        ...     np.array([1, 1]), max_items_per_user=1, sigma=np.array([0.5]),
        ...     threshold=np.array([2.0]),
        ... )
        >>> hit.round(6)
        array([[0.02275 , 0.000228, 0.027523]])
    """
    laws = HolderLaws.of(base, offsets, sizes, counts, max_items_per_user)
    miss = np.empty((sigma.size, base.size))
    hit = np.empty_like(miss)
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        fixed = np.flatnonzero(laws.holders == 0)
        miss[:, fixed], hit[:, fixed] = normal_tails(base[fixed], sigma, threshold)
        random = np.flatnonzero(laws.holders)
        never, always = _certain(laws, random, sigma[:, None], threshold[:, None])
        miss[:, random], hit[:, random] = never, always
        open_ = ~(never | always)
        width = recursion_width(laws, random, sigma, threshold)
        direct = _recursion_pays(laws, random, width, sigma, open_.sum(axis=0))
        used = direct & np.any(open_, axis=0)
        by_recursion(laws, random[used], width[used], sigma, threshold, miss, hit)
        for point in range(sigma.size):
            rows = random[~direct & open_[point]]
            at = slice(point, point + 1)
            left = by_inversion(
                laws, rows, float(sigma[point]), float(threshold[point]), miss[point], hit[point]
            )
            if left.size:  # no tilt found: not seen so far, but the recursion needs none
                width_left = recursion_width(laws, left, sigma[at], threshold[at])
                by_recursion(laws, left, width_left, sigma[at], threshold[at], miss[at], hit[at])
    # Sums of positive terms may round to just above 1.
    return np.minimum(miss, 1.0, out=miss), np.minimum(hit, 1.0, out=hit)


def log_none_kept(
    base: Float64[np.ndarray, " classes"],
    offsets: Int64[np.ndarray, " classes_and_one"],
    sizes: Int64[np.ndarray, " entries"],
    counts: Int64[np.ndarray, " entries"],
    *,
    max_items_per_user: int,
) -> Float64[np.ndarray, " classes"]:
    """Log of P(K = 0): that all holders with more than Delta0 items drop this one.

    Args:
        base: As in `noisy_tails`, like the others; only its length matters.
        offsets: Class c has the entries offsets[c] to offsets[c + 1] of the next two.
        sizes: Set sizes above Delta0.
        counts: Holders of an item of the class whose set has this size, at least 1.
        max_items_per_user: Delta0.

    Returns:
        Natural logarithms, at most 0, each to about 1e-15 relative.

    Source:
        [E1].

    Example:
        >>> log_none_kept(
        ...     np.zeros(1), np.array([0, 1]), np.array([100]), np.array([200]),
        ...     max_items_per_user=1,
        ... ).round(4)
        array([-2.0101])
    """
    return HolderLaws.of(base, offsets, sizes, counts, max_items_per_user).log_none


def _certain(
    laws: HolderLaws, rows: np.ndarray, sigma: np.ndarray, threshold: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where being released, and being missed, is less likely than exp(-95): (points, rows).

    Sums of independent Bernoullis have Gaussian lower tails of variance at most their mean, and
    Bernstein's upper tails.
    """
    base, mean, root = laws.base[rows], laws.mean[rows], laws.root
    gap = base + mean / root - threshold
    below = gap**2 > 2 * NEVER * (sigma**2 + mean / root**2)
    spread = sigma**2 + laws.variance[rows] / root**2 + np.abs(gap) / (3 * root)
    above = gap**2 > 2 * NEVER * spread
    always = (gap > 0) & below & ((base > 0) | (laws.log_none[rows] < -NEVER))
    return (gap < 0) & above, always


def _recursion_pays(
    laws: HolderLaws, rows: np.ndarray, width: np.ndarray, sigma: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """Whether the recursion is the better method for a class; times in nanoseconds."""
    entries = np.diff(laws.table.indptr)[rows]
    # About twenty nodes cover one peak of the characteristic function; small noise shows more.
    noise = np.min(sigma, initial=np.inf) * laws.root
    nodes = 20 + 30 / noise
    recursion = np.minimum(3 * laws.holders[rows] * width, size_by_size_time(laws, rows))
    inversion = points * (2000 + nodes * (100 + 2 * entries))
    recursion = recursion + 60 * width * points
    pays = (recursion < inversion) | (laws.holders[rows] <= _FEW_HOLDERS) | (noise < _COARSE)
    # The groups of tilts have a price of their own, too high for a few classes.
    saved = np.sum(recursion[~pays] - inversion[~pays])
    return pays | (saved < 5e5 * sigma.size)
