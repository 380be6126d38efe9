"""The weighted Gaussian mechanism's own law, accounted for as a set.

Its released set is a product of Bernoullis with p = Phi((H - T)/sigma). With the weights t^(-1/2)
nothing is won beyond [P3]: a user with one item at the worst height already spends all that the
noisy weights themselves would. But a user with more items spends less, and may weigh more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.special import ndtr

from theory._check import check_count, check_positive
from theory.calibration import calibrate
from theory.flow.accountant import adaptive_delta, step_deviation
from theory.flow.pairs import OneStepMap
from theory.flow.plan import block_ends

_DEVIATIONS = 9.0
_TANGENTS = 120
_SPACING, _SPACING_FEW = 0.25, 0.1
_RAISED = (1.0, 1.01, 1.02, 1.03, 1.05)


@dataclass(frozen=True, eq=False)
class SetOnlyWeights:
    """Weights of the Gaussian law when only the released set is accounted for.

    Attributes:
        eps: Privacy parameter.
        delta: Privacy parameter.
        sigma: Noise of the full calibration [P3].
        threshold: T, at least that of the same calibration.
        weights: Weight of a kept item of a user who keeps t items, t = 1..Delta0, at least
            t^(-1/2).
    """

    eps: float
    delta: float
    sigma: float
    threshold: float
    weights: Float64[np.ndarray, " classes"]

    def release(self, heights: np.ndarray) -> np.ndarray:
        """Release probability of items by the sum of their holders' weights; 0 at height 0."""
        return np.where(heights > 0, ndtr((heights - self.threshold) / self.sigma), 0.0)


def gaussian_step_map(*, shift: float, lowest: float, jump: float) -> OneStepMap:
    """A map above b -> Phi(Phi^-1(b) + shift), from b = Phi(lowest) on, and a jump from b = 0.

    The curve is concave: tangents lie above it, and meet in the vertices.

    Args:
        shift: What one user adds, in standard deviations of the noise, above 0.
        lowest: Least height of an item with a holder, minus the threshold, in the same units.
        jump: Release probability of an item with no other holder.

    Returns:
        The map; its vertices lie on or above the curve.

    Raises:
        InvalidInput: shift is not above 0.

    Source: Bernoulli flow note; [P2].

    Example:
        >>> step = gaussian_step_map(shift=0.5, lowest=-4.0, jump=1e-5)
        >>> at = np.linspace(-4.0, 4.0, 9)
        >>> order = np.argsort(step.before)
        >>> above = np.interp(ndtr(at), step.before[order], step.after[order])
        >>> bool(np.all(above >= ndtr(at + 0.5))), bool(np.all(above <= ndtr(at + 0.5) + 1e-3))
        (True, True)
    """
    check_positive("shift", shift)
    at = np.linspace(min(lowest, -1.0), _DEVIATIONS, _TANGENTS)
    b, b_miss, a, a_miss = ndtr(at), ndtr(-at), ndtr(at + shift), ndtr(-at - shift)
    slope = np.exp(-shift * at - shift**2 / 2)
    # Two tangents meet at distance x right of the left point; by 1 - p where that is smaller.
    gap = np.where(at[:-1] < 0, np.diff(b), -np.diff(b_miss))
    rise = np.where(at[:-1] + shift < 0, np.diff(a), -np.diff(a_miss))
    x = np.clip((rise - slope[1:] * gap) / (slope[:-1] - slope[1:]), 0.0, gap)
    up = 1 + 1e-9
    higher = slope[:-1] * x * up
    meet = (b[:-1] + x, b_miss[:-1] - x, a[:-1] + higher, a_miss[:-1] - higher)
    # The ends: the curve's first point, and (1, 1).
    ends = [(0.0, 1.0, jump, 1 - jump), (b[0], b_miss[0], a[0], a_miss[0]), (1.0, 0.0, 1.0, 0.0)]
    last = (b[-1], b_miss[-1], a[-1] + slope[-1] * b_miss[-1], 0.0)
    columns = [np.array([*m, *(end[k] for end in ends), last[k]]) for k, m in enumerate(meet)]
    b, b_miss = columns[:2]
    # Rounding must not bring a below b.
    a, a_miss = np.clip(columns[2], b, 1.0), np.clip(columns[3], 0.0, b_miss)
    return OneStepMap(b, b_miss, a, a_miss)


def set_only_weights(*, eps: float, delta: float, max_items_per_user: int) -> SetOnlyWeights:
    """Largest weights of the Gaussian law at the noise of [P3], accounted for as a set.

    The threshold of [P3] spends all of delta on the first release by a user of Delta0 items; here
    it is raised so that heavier weights gain most for users of Delta0 items.

    Args:
        eps: Privacy parameter, above 0.
        delta: Privacy parameter in (0, 0.5].
        max_items_per_user: Delta0.

    Returns:
        Weights certified by the Bellman recursion, alike within blocks of set sizes.

    Raises:
        InvalidInput: An argument is out of range.

    Source:
        Bernoulli flow note; [P2], [P3].

    Example:
        >>> found = set_only_weights(eps=1.0, delta=1e-5, max_items_per_user=4)
        >>> (found.weights * np.sqrt([1, 2, 3, 4])).round(2)
        array([1.  , 1.04, 1.07, 1.08])
    """
    bound = check_count("max_items_per_user", max_items_per_user)
    noise = calibrate(eps=eps, delta=delta, max_items_per_user=bound, method="full")
    sigma = float(noise.sigma)
    least = bound**-0.5  # the lightest weight that an item with a holder may have
    tried = []
    for raised in _RAISED if bound > 1 else _RAISED[:1]:
        threshold = float(noise.threshold) * raised
        law = _Law(eps, delta, sigma, threshold, (least - threshold) / sigma)
        weight = law.largest(bound, least)
        tried.append((threshold / weight, law, weight))
    _, law, top = min(tried, key=lambda entry: entry[0])
    weights, first = np.empty(bound), 0
    for t in block_ends(bound).tolist():
        weights[first:t] = top if t == bound else law.largest(t, t**-0.5)
        first = t
    weights = np.maximum(weights, np.arange(1, bound + 1) ** -0.5)
    return SetOnlyWeights(eps, delta, sigma, law.threshold, weights)


@dataclass(frozen=True)
class _Law:
    """Noise and threshold for which weights are looked for."""

    eps: float
    delta: float
    sigma: float
    threshold: float
    lowest: float

    def largest(self, t: int, least: float) -> float:
        """Largest certified weight of a user with t items, from `least`, which [P2] certifies."""
        low, high = least, 1.6 * least
        while t > 1 and high - low > 1e-3 * least:
            middle = (low + high) / 2
            low, high = (middle, high) if self._spent(middle, t) <= self.delta else (low, middle)
        return low

    def _spent(self, weight: float, t: int) -> float:
        jump = float(ndtr((weight - self.threshold) / self.sigma))
        step = gaussian_step_map(shift=weight / self.sigma, lowest=self.lowest, jump=jump)
        spacing = (_SPACING_FEW if t < 16 else _SPACING) * step_deviation(step)
        return max(adaptive_delta(step, eps=self.eps, items=t, spacing=spacing))
