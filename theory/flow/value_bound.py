"""A function of the likelihood ratio, known from above at the points of a grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from theory.flow.accountant import DOWN, UP, after_steps, hockey_stick, ratio_points
from theory.flow.pairs import UNIT, OneStepMap


@dataclass(frozen=True, eq=False)
class ValueBound:
    """Upper bounds on a convex, non-increasing function V of y with V(0) = 1.

    Attributes:
        points: Consecutive whole numbers, from below 0 to above; y = exp(points * spacing).
        spacing: Distance of the points in ln y.
        values: Upper bounds on V there.

    Example:
        >>> step = OneStepMap.from_probabilities(before=[0.25], after=[0.3])
        >>> adding, removing = steps_from_the_end(step, eps=0.1, items=2, spacing=1e-3)
        >>> adding.at(np.log([0.5, 1.0, 2.0])).round(4)
        array([0.4474, 0.0265, 0.    ])
    """

    points: Int64[np.ndarray, " points"]
    spacing: float
    values: Float64[np.ndarray, " points"]

    @property
    def at_one(self) -> float:
        """The bound at y = 1."""
        return float(self.values[-self.points[0]])

    def at(self, logs: Float64[np.ndarray, " logs"]) -> Float64[np.ndarray, " logs"]:
        """Upper bounds on V at any ln y: chords; below the grid the chord to V(0) = 1."""
        down = logs - DOWN
        place = down / self.spacing - self.points[0]
        low, high = place < 0, place >= self.values.size - 1
        cell = np.where(low | high, 0, np.floor(place)).astype(np.int64)
        inside = np.where(low | high, 0.0, place - cell)
        share = np.expm1(inside * self.spacing) / np.expm1(self.spacing)
        out = self.values[cell] * (1 - share) + self.values[cell + 1] * share
        first = min(float(self.values[0]), 1.0)
        fade = np.exp(np.minimum(down - self.points[0] * self.spacing, 0.0))
        out = np.where(low, 1 - (1 - first) * fade * (1 - 8 * UNIT), out)
        return np.where(high, self.values[-1], out) * UP


def steps_from_the_end(
    step: OneStepMap, *, eps: float, items: int, spacing: float
) -> tuple[ValueBound, ValueBound]:
    """V_items of the recursion, started from V_0 = (1 - e^eps y)_+: adding and removing."""
    points = ratio_points(step, eps=eps, items=items, spacing=spacing)
    start = hockey_stick(points, eps=eps, spacing=spacing)
    return _both(step, (start, start), points, items, spacing)


def steps_before(
    later: tuple[list[ValueBound], list[ValueBound]],
    step: OneStepMap,
    *,
    eps: float,
    items: int,
    spacing: float,
) -> tuple[ValueBound, ValueBound]:
    """The recursion, started from the largest of several functions.

    Args:
        later: What may follow, for adding and for removing; the largest counts, point by point.
        step: What one holder may do to an item before that.
        eps: Privacy parameter; it only says how far the grid is to reach.
        items: Number of steps.
        spacing: Distance of the points of the grid in ln y.

    Returns:
        Adding and removing.
    """
    points = ratio_points(step, eps=eps, items=items, spacing=spacing)
    logs = points * spacing
    adding, removing = (np.max([part.at(logs) for part in parts], axis=0) for parts in later)
    return _both(step, (adding, removing), points, items, spacing)


def _both(
    step: OneStepMap,
    starts: tuple[np.ndarray, np.ndarray],
    points: np.ndarray,
    items: int,
    spacing: float,
) -> tuple[ValueBound, ValueBound]:
    adding, removing = (
        ValueBound(
            points,
            spacing,
            after_steps(start, step, items=items, spacing=spacing, removing=removing),
        )
        for start, removing in zip(starts, (False, True), strict=True)
    )
    return adding, removing
