"""Guaranteed delta of t adaptive Bernoulli steps: the Bellman recursion, bounded from above.

A user's t items enter the released set one by one: Bernoulli(a) with the user, Bernoulli(b)
without, the pair chosen from a class of one-step maps, also after seeing earlier outcomes. With y
the likelihood ratio so far and V_0(y) = (1 - e^eps y)_+,

    V_(j+1)(y) = max over (a, b) of  a V_j(y b/a) + (1-a) V_j(y (1-b)/(1-a)),     V_j(0) = 1,

and delta = V_t(1) for adding the user; for removing, the same with (1-b, 1-a) in place of (a, b).

Why a maximum over vertices is the maximum. V_j is convex and non-increasing, so the bracket is
jointly convex in (a, b): on a convex set of pairs it is largest at an extreme point. It also grows
with a and falls with b as long as b <= a, because a pair between (a, b) and the diagonal is a
mixture of (a, b) with a pair of equal numbers, which is worth V_j(y), the least of all.

What is rounded up. Between the points of a geometric grid in y a convex function lies below its
chord; below the grid below the chord to V(0) = 1; above it below its last value. Likelihood ratios
are moved down, sums of positive terms multiplied up. So every computed value is at least V_j.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from numpy.lib.stride_tricks import sliding_window_view

from theory._check import check_count, check_positive, invalid
from theory.flow.pairs import UNIT, OneStepMap

# Each step multiplies up for the roundings of its four products and three sums, with room.
UP = 1 + 64 * UNIT
# Likelihood ratios are moved down by this share: more than the error of a logarithm of 1e-30.
DOWN = 1e-13
# The grid reaches this many standard deviations of ln y below e^(-eps) and above 1, and no further
# than these distances: below, V is linear but for what is unlikely; above, it is almost 0.
_DEVIATIONS, _FURTHEST_BELOW, _FURTHEST_ABOVE = 10.0, 4.0, 1.5
_CHUNK = 2_000_000


def adaptive_delta(
    step: OneStepMap, *, eps: float, items: int, spacing: float
) -> tuple[float, float]:
    """Upper bounds on the delta at eps of adding and of removing a user with `items` items.

    Args:
        step: What one holder may do to an item; pairs are chosen adaptively.
        eps: Privacy parameter, at least 0.
        items: Items of the user, t.
        spacing: Distance of the points of the grid in ln y. Smaller is sharper and slower; any
            value gives a bound.

    Returns:
        (adding, removing).

    Raises:
        InvalidInput: An argument is out of range.

    Source:
        Bernoulli flow note, accountant.

    Example:
        Two items released with probability 0.3 instead of 0.25:

        >>> step = OneStepMap.from_probabilities(before=[0.25], after=[0.3])
        >>> adding, removing = adaptive_delta(step, eps=0.1, items=2, spacing=1e-3)
        >>> exact = 0.09 - np.exp(0.1) * 0.0625 + 2 * (0.21 - np.exp(0.1) * 0.1875)
        >>> bool(exact <= adding <= exact + 1e-6)
        True
    """
    if not (np.isfinite(eps) and eps >= 0):
        invalid("eps", eps, "must be a finite number of at least 0")
    items = check_count("items", items)
    spacing = float(check_positive("spacing", spacing))
    points = ratio_points(step, eps=eps, items=items, spacing=spacing)
    start = hockey_stick(points, eps=eps, spacing=spacing)
    adding, removing = (
        after_steps(start, step, items=items, spacing=spacing, removing=removing)
        for removing in (False, True)
    )
    return float(adding[-points[0]]), float(removing[-points[0]])


def ratio_points(step: OneStepMap, *, eps: float, items: int, spacing: float) -> np.ndarray:
    """Indices of the grid in ln y, in units of its spacing, that `items` steps may reach."""
    reach = _DEVIATIONS * np.sqrt(items) * step_deviation(step)
    below = int(np.ceil((eps + min(reach, _FURTHEST_BELOW)) / spacing))
    above = int(np.ceil(min(reach, _FURTHEST_ABOVE) / spacing))
    return np.arange(-below, above + 1)


def hockey_stick(points: np.ndarray, *, eps: float, spacing: float) -> np.ndarray:
    """V_0 = (1 - e^eps y)_+ on the grid, rounded up."""
    return np.maximum(-np.expm1(eps + points * spacing - DOWN), 0.0) * UP


def step_deviation(step: OneStepMap) -> float:
    """Largest standard deviation of the log likelihood ratio of one item, b = 0 and a = 1 aside."""
    with np.errstate(divide="ignore", invalid="ignore"):
        release = np.log(step.after / step.before)
        kept = np.log(step.after_miss / step.before_miss)
        variance = step.after * step.after_miss * (release - kept) ** 2
    return float(np.sqrt(np.max(variance, where=np.isfinite(variance), initial=0.0)))


def after_steps(
    value: np.ndarray, step: OneStepMap, *, items: int, spacing: float, removing: bool
) -> np.ndarray:
    """The recursion from any convex, non-increasing function with the value 1 at 0, rounded up.

    Args:
        value: Upper bounds on the function at the points of the grid, which includes ln y = 0.
        step: What one holder may do to an item.
        items: Number of steps.
        spacing: Distance of the points in ln y.
        removing: Use the pairs (1 - b, 1 - a).

    Returns:
        Upper bounds on the value after all steps, at the same points.
    """
    a, a_miss, b, b_miss = step.after, step.after_miss, step.before, step.before_miss
    if removing:
        a, a_miss, b, b_miss = b_miss, b, a_miss, a
    release, kept = _Move(a, b, spacing), _Move(a_miss, b_miss, spacing)
    pad_low = max(release.pad_low, kept.pad_low)
    pad_high = max(release.pad_high, kept.pad_high) + 1
    # Chord to V(0) = 1, at the points of the grid continued downwards.
    fade = np.exp(-spacing * np.arange(pad_low, 0, -1))
    rows = max(1, _CHUNK // value.size)
    for _ in range(items):
        chord = 1 - (1 - min(value[0], 1.0)) * fade * (1 - 8 * UNIT)
        padded = np.concatenate((chord, value, np.full(pad_high, value[-1])))
        windows = sliding_window_view(padded, value.size)
        best = np.zeros(value.size)
        for low in range(0, a.size, rows):
            part = slice(low, low + rows)
            total = release.expectation(windows, pad_low, part)
            total += kept.expectation(windows, pad_low, part)
            np.maximum(best, total.max(axis=0), out=best)
        value = best * UP
    return value


class _Move:
    """One outcome of every pair: its probability and what it does to y."""

    def __init__(self, p: np.ndarray, q: np.ndarray, spacing: float) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where(p > 0, np.log(q) - np.log(p), 0.0) - DOWN
        # A shift beyond the grid's own length leads to y so small that V = 1 loses nothing.
        far = shift < -30.0
        shift = np.clip(shift, -30.0, 60.0) / spacing
        whole = np.floor(shift)
        # Position between two points, as a share of their distance in y.
        share = np.expm1((shift - whole) * spacing) / np.expm1(spacing)
        self.whole = whole.astype(np.int64)
        self.lower = np.where(far, 0.0, p * (1 - share))[:, None]
        self.upper = np.where(far, 0.0, p * share)[:, None]
        self.sure = np.where(far, p, 0.0)[:, None]
        self.whole[far] = 0
        self.pad_low = int(max(0, -self.whole.min()))
        self.pad_high = int(max(0, self.whole.max()))

    def expectation(self, windows: np.ndarray, pad_low: int, part: slice) -> np.ndarray:
        """P V(y q/p) for a part of the pairs (rows) and all points (columns)."""
        start = self.whole[part] + pad_low
        out = windows[start] * self.lower[part]
        out += windows[start + 1] * self.upper[part]
        out += self.sure[part]
        return out


def majorant(maps: list[OneStepMap], knots: Float64[np.ndarray, " knots"]) -> OneStepMap:
    """One map above several, with few vertices: the graph of each is a polygon over its b.

    On each interval between knots the chord is lifted until no vertex lies above it; a knot gets
    the larger lift of its two sides, and the largest value of the maps.

    Args:
        maps: Graphs of piecewise linear functions a(b), vertices in any order.
        knots: Increasing log-odds of b. They must reach over all vertices; -inf and inf are 0, 1.

    Returns:
        The map, one vertex per knot.

    Raises:
        InvalidInput: The knots do not reach over all vertices.

    Source: Bernoulli flow note, accountant.

    Example:
        >>> after = ([0.1, 1.0], [0.2, 1.0])
        >>> steps = [OneStepMap.from_probabilities(before=[0.0, 1.0], after=a) for a in after]
        >>> majorant(steps, np.array([-np.inf, 0.0, np.inf])).after.round(3).tolist()
        [0.2, 0.6, 1.0]
    """
    with np.errstate(over="ignore"):
        b, b_miss = 1 / (1 + np.exp(-knots)), 1 / (1 + np.exp(knots))
    after, after_miss = b.copy(), b_miss.copy()
    for step in maps:
        new, new_miss = _lifted(step, b, b_miss)
        after, after_miss = np.maximum(after, new), np.minimum(after_miss, new_miss)
    return OneStepMap(b, b_miss, np.minimum(after, 1.0), np.maximum(after_miss, 0.0))


def _lifted(step: OneStepMap, b: np.ndarray, b_miss: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values at the knots of a polygon above a graph."""
    order = np.lexsort((step.after, -step.before_miss, step.before))
    x, x_miss = step.before[order], step.before_miss[order]
    y, y_miss = step.after[order], step.after_miss[order]
    if x[0] < b[0] or x_miss[-1] < b_miss[-1]:
        invalid("knots", (b[0], b[-1]), "must reach over all vertices")
    low = b <= 0.5
    # By the smaller of b and 1 - b; outside of the graph its ends, which is what it may reach.
    value = np.where(low, np.interp(b, x, y), np.interp(-b_miss, -x_miss, y))
    value_miss = np.where(low, np.interp(b, x, y_miss), np.interp(-b_miss, -x_miss, y_miss))
    near = x <= 0.5
    by_release = np.searchsorted(b, x)
    by_miss = b.size - np.searchsorted(b_miss[::-1], x_miss, side="right")
    right = np.clip(np.where(near, by_release, by_miss), 1, b.size - 1)
    left = right - 1
    with np.errstate(divide="ignore", invalid="ignore"):  # in the half that is not used
        low_share = (x - b[left]) / (b[right] - b[left])
        high_share = (b_miss[left] - x_miss) / (b_miss[left] - b_miss[right])
    share = np.where(near, low_share, high_share)
    share = np.clip(share, 0.0, 1.0)
    above = np.where(
        value[left] <= 0.5,
        y - (value[left] * (1 - share) + value[right] * share),
        value_miss[left] * (1 - share) + value_miss[right] * share - y_miss,
    )
    scale = np.minimum(y, y_miss)
    lift = np.zeros(b.size)
    # Rounded up by more than the error of the chord.
    needed = np.where(
        above > -1e-12 * scale, np.maximum(above, 0.0) * (1 + 1e-9) + 1e-13 * scale, 0
    )
    np.maximum.at(lift, left, needed)
    np.maximum.at(lift, right, needed)
    return value + lift, value_miss - lift
