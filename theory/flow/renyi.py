"""Accountant in closed form: which one-step maps a user with t items may follow.

Adding a user with t items multiplies the law of the released set by t likelihood ratios, one item
at a time. With a mass d taken away from every release of the larger side, u = P'/(e^eps Q) and
(u - 1)_+ <= k u^(1 + order), k = order^order / (1 + order)^(1 + order),

    delta(eps) <= t d + k e^(-eps order) max(M)^t,
    M(a, b) = (a - d)_+^(1 + order) b^(-order) + (1 - a)^(1 + order) (1 - b)^(-order),

for pairs chosen in any way, also after seeing earlier outcomes. Removing the user is the same
with (1 - b, 1 - a) in place of (a, b). M is jointly convex: a piecewise linear map has its largest
M at a vertex.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import elementwise, minimize

from theory.flow.pairs import UNIT, OneStepMap

_LIBRARY = 8 * UNIT
# Beyond, 1 - p underflows the smallest delta by far.
LARGEST_LOGIT = 60.0


@dataclass(frozen=True)
class RenyiRegion:
    """Pairs (a, b) that a user with `items` items may follow, by the closed form.

    Attributes:
        eps: Privacy parameter, above 0.
        delta: Privacy parameter, in (0, 1).
        items: t, items of the user.
        order: Exponent above 0; Renyi order minus 1.
        jump_share: Share of delta for releases that the other side would not make, in (0, 1).

    Example:
        >>> region = RenyiRegion(eps=1.0, delta=1e-5, items=10, order=13.0, jump_share=0.27)
        >>> step = OneStepMap.from_probabilities(before=[0.0, 0.5], after=[2.6e-7, 0.535])
        >>> round(region.jump, 9), max(region.delta_bounds(step)) <= 1e-5
        (2.7e-07, True)
    """

    eps: float
    delta: float
    items: int
    order: float
    jump_share: float

    @property
    def jump(self) -> float:
        """The mass d: release probability up to which nobody else needs to hold the item."""
        return self.jump_share * self.delta / self.items

    @cached_property
    def log_constant(self) -> float:
        """Ln of k e^(-eps order)."""
        s = self.order
        return float(s * np.log(s) - (1 + s) * np.log1p(s) - self.eps * s)

    @property
    def budget(self) -> float:
        """Ln M that each item may cost: the t-th part of what is left of delta after the jumps."""
        left = np.log1p(-self.jump_share) + np.log(self.delta)
        return float((left - self.log_constant) / self.items)

    def delta_bounds(self, step: OneStepMap) -> tuple[float, float]:
        """Upper bounds on the delta at eps of adding and of removing the user, rounded up."""
        adding = self._delta(step.after, step.after_miss, step.before, step.before_miss)
        removing = self._delta(step.before_miss, step.before, step.after_miss, step.after)
        return adding, removing

    def _delta(self, a: np.ndarray, a_miss: np.ndarray, b: np.ndarray, b_miss: np.ndarray) -> float:
        """T d + k e^(-eps order) max(M)^t, with a bound on every rounding error added."""
        s, d = self.order, self.jump * (1 - 4 * UNIT)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Subtracting d from a slightly larger a: the difference errs upwards.
            log_above = np.log(np.maximum(a * (1 + 4 * UNIT) - d, 0.0))
            log_b, log_a_miss, log_b_miss = np.log(b), np.log(a_miss), np.log(b_miss)
            release = np.where(np.isneginf(log_above), -np.inf, (1 + s) * log_above - s * log_b)
            kept = np.where(a_miss == 0, -np.inf, (1 + s) * log_a_miss - s * log_b_miss)
        # b = 0 < a - d leaves release = +inf, and no bound.
        logs = np.stack((log_above, log_b, log_a_miss, log_b_miss))
        size = np.sum(np.where(np.isfinite(logs), np.abs(logs), 0.0), axis=0) + 8
        error = 2 * _LIBRARY * (1 + s) * size
        largest = float(np.max(np.logaddexp(release, kept) + error))
        sizes = abs(s * np.log(s)) + (1 + s) * np.log1p(s) + self.eps * s
        sizes += self.items * (1 + abs(largest))
        exponent = self.log_constant + self.items * largest + 4 * _LIBRARY * sizes
        with np.errstate(over="ignore"):
            return float((self.items * self.jump + np.exp(exponent)) * (1 + 2 * _LIBRARY))


def largest_step(region: RenyiRegion, logits: np.ndarray) -> np.ndarray:
    """Logit of the largest a that the region allows when the user is added, for each logit of b.

    To root-finding accuracy: a proposal, certified elsewhere by `RenyiRegion.delta_bounds`.

    Args:
        region: Which pairs are allowed.
        logits: (vertices,) logits of b.
    """
    s, d, budget = region.order, region.jump, region.budget
    log_b, log_b_miss = -np.logaddexp(0, -logits), -np.logaddexp(0, logits)
    low = np.maximum(logits, np.log(d) - np.log1p(-d))

    def excess(u: np.ndarray, log_b: np.ndarray, log_b_miss: np.ndarray) -> np.ndarray:
        a = 1 / (1 + np.exp(-u))
        with np.errstate(divide="ignore"):
            release = (1 + s) * np.log(np.maximum(a - d, 0)) - s * log_b
        return np.logaddexp(release, -(1 + s) * np.logaddexp(0, u) - s * log_b_miss) - budget

    high = np.minimum(low + 0.5, LARGEST_LOGIT)
    while np.any(short := (excess(high, log_b, log_b_miss) < 0) & (high < LARGEST_LOGIT)):
        high = np.where(short, np.minimum(low + 2 * (high - low), LARGEST_LOGIT), high)
    stays = excess(low, log_b, log_b_miss) >= 0
    ends = ~stays & (excess(high, log_b, log_b_miss) < 0)
    root = elementwise.find_root(
        excess,
        (low, high),
        args=(log_b, log_b_miss),
        tolerances={"xatol": 1e-13, "xrtol": 1e-13},
    )
    return np.where(stays, low, np.where(ends, LARGEST_LOGIT, root.x))


def fastest_region(
    *, eps: float, delta: float, items: int, start: tuple[float, float] | None = None
) -> RenyiRegion:
    """The order and the jump share with which the fewest holders reach probability 1/2.

    Steps from 0 are counted by integrating 1/(step in logits) at the middle of each step. Any
    choice is private; this one only decides how many holders an item needs.

    Args:
        eps: Privacy parameter, above 0.
        delta: Privacy parameter, in (0, 1).
        items: t, items of the user.
        start: Order and jump share of a similar case.
    """

    def region(point: np.ndarray) -> RenyiRegion:
        order, odds = np.exp(np.clip(point, (-6.0, -12.0), (16.0, 12.0)))
        return RenyiRegion(eps, delta, items, float(order), float(odds / (1 + odds)))

    def holders(point: np.ndarray) -> float:
        choice = region(point)
        low = np.log(choice.jump) - np.log1p(-choice.jump)
        if low >= 0 or choice.budget <= 0:
            return 1e9
        logits = np.linspace(low, 0.0, 120)
        step = largest_step(choice, logits) - logits
        if np.min(step) <= 1e-9:
            return 1e9
        middle = np.interp(logits, logits + step / 2, 1 / step)
        return 1.0 + float(np.trapezoid(middle, logits))

    # The order at which delta is reached at all, and multiples of it.
    scale = -np.log(delta) / eps
    near = [(scale * times, 0.4) for times in (0.6, 1.0, 1.5, 2.5, 5.0)]
    tried = [np.log([order, share / (1 - share)]) for order, share in ([start] if start else near)]
    first = min(tried, key=holders)
    simplex = first + np.array([[0.0, 0.0], [0.3, 0.0], [0.0, -0.3]])
    found = minimize(
        holders,
        first,
        method="Nelder-Mead",
        options={"initial_simplex": simplex, "xatol": 5e-3, "fatol": 1e-4, "maxiter": 120},
    )
    return region(found.x)
