"""Pairs of release probabilities with and without one user, and what one pair costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from theory._check import Reals, invalid

# The logarithm, exponential and power of NumPy are good to 4 units in the last place.
UNIT = 2.0**-53
_LIBRARY = 8 * UNIT


@dataclass(frozen=True, eq=False)
class OneStepMap:
    """What one holder may do to the release probability of an item: from b to at most a.

    A list of pairs b <= a, the vertices. It stands for their convex hull and for everything between
    the hull and the diagonal, because nothing there costs more than the worst vertex (see
    `theory.flow.accountant`). A concave or piecewise linear function is given by its vertices.

    Attributes:
        before: b, release probability without the user.
        before_miss: 1 - b, with its own relative precision.
        after: a >= b, release probability with the user.
        after_miss: 1 - a, with its own relative precision.

    Example:
        >>> step = OneStepMap.from_probabilities(before=[0.0, 0.5], after=[1e-5, 0.7])
        >>> step.num_vertices, step.after_miss.round(3)
        (2, array([1. , 0.3]))
    """

    before: Float64[np.ndarray, " vertices"]
    before_miss: Float64[np.ndarray, " vertices"]
    after: Float64[np.ndarray, " vertices"]
    after_miss: Float64[np.ndarray, " vertices"]

    def __post_init__(self) -> None:
        ok = (self.before >= 0) & (self.before <= self.after) & (self.after <= 1)
        ok &= (self.after_miss >= 0) & (self.after_miss <= self.before_miss)
        ok &= np.abs(self.before + self.before_miss - 1) < 1e-8
        ok &= np.abs(self.after + self.after_miss - 1) < 1e-8
        if not np.all(ok):
            invalid("pairs", int(np.argmin(ok)), "must have 0 <= before <= after <= 1, see index")

    @classmethod
    def from_probabilities(cls, *, before: Reals, after: Reals) -> OneStepMap:
        """Pairs given by the release probabilities alone, (vertices,) each."""
        b, a = np.atleast_1d(np.asarray(before, float)), np.atleast_1d(np.asarray(after, float))
        return cls(b, 1 - b, a, 1 - a)

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        return self.before.size

    def joined(self, other: OneStepMap) -> OneStepMap:
        """The union of two maps: for a user whose items may follow either."""
        return OneStepMap(
            np.concatenate((self.before, other.before)),
            np.concatenate((self.before_miss, other.before_miss)),
            np.concatenate((self.after, other.after)),
            np.concatenate((self.after_miss, other.after_miss)),
        )

    def part(self, which: slice) -> OneStepMap:
        """Some of the vertices."""
        return OneStepMap(
            self.before[which], self.before_miss[which], self.after[which], self.after_miss[which]
        )

    def widened(self, rounding: float, floor: float) -> OneStepMap:
        """Pairs moved apart: covers probabilities known up to rounding.

        Every p and 1 - p may be off by `rounding` times (itself + floor); b moves down, a up. The
        move is linear between vertices as long as 1/2 is among them wherever a piece crosses it.
        """
        down = rounding * (np.minimum(self.before, self.before_miss) + floor)
        up = rounding * (np.minimum(self.after, self.after_miss) + floor)
        return OneStepMap(
            np.maximum(self.before - down, 0.0),
            np.minimum(self.before_miss + down, 1.0),
            np.minimum(self.after + up, 1.0),
            np.maximum(self.after_miss - up, 0.0),
        )


def one_item_delta(step: OneStepMap, *, eps: float) -> tuple[float, float]:
    """Delta of a user with one item, exactly: adding and removing the user.

        adding:   max over pairs of (a - e^eps b)_+ + ((1-a) - e^eps (1-b))_+,
        removing: the same with a and b exchanged.

    Args:
        step: What one holder may do to an item.
        eps: Privacy parameter, at least 0.

    Returns:
        (adding, removing), rounded up.

    Source:
        [L0]; Bernoulli flow note, accountant at t = 1.

    Example:
        >>> from theory.lower_bounds import optimal_selection_probability
        >>> pi = optimal_selection_probability(range(30), eps=1.0, delta=1e-5)
        >>> step = OneStepMap.from_probabilities(before=pi[:-1], after=pi[1:])
        >>> [round(value, 12) for value in one_item_delta(step, eps=1.0)]
        [1e-05, 1e-05]
    """
    grow = float(np.exp(eps)) * (1 - _LIBRARY)

    def larger(p: np.ndarray, q: np.ndarray) -> np.ndarray:
        # The difference of two rounded numbers: one unit of each, away from zero.
        return np.maximum(p * (1 + 2 * UNIT) - grow * q * (1 - 2 * UNIT), 0.0)

    b, b_miss, a, a_miss = step.before, step.before_miss, step.after, step.after_miss
    adding = larger(a, b) + larger(a_miss, b_miss)
    removing = larger(b, a) + larger(b_miss, a_miss)
    return float(adding.max() * (1 + 4 * UNIT)), float(removing.max() * (1 + 4 * UNIT))
