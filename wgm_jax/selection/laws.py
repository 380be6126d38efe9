"""Exact laws of noisy orders on a few items: the probability of every output sequence."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
from numpy.polynomial import legendre

from wgm_jax.selection.selector import Law, check_few_sequences

# The stop symbol among items.
STOP = -1
# Points per panel and noise scales per panel: polynomials of this degree meet e^x to 1e-16.
_POINTS, _PANEL, _TAIL = 24, 2.0, 45.0


def gumbel_order(scores: dict[int, float], k: int, stop: float | None = None) -> Law:
    """Law of the k largest scores plus Gumbel noise, in order.

    The next item is x with probability e^score(x) over the sum of what is left.

    Args:
        scores: Score of every item, in units of the noise.
        k: Length of a sequence, unless the items end before.
        stop: Score of a stop symbol, whose turn ends the sequence; None for none.

    Example:
        >>> law = gumbel_order({0: 5 / 2, 1: 3 / 2, 2: 1 / 2}, 2)
        >>> [round(law[s], 5) for s in ((0, 1), (1, 0), (0, 2))]
        [0.48633, 0.21556, 0.17891]
    """
    everything = scores if stop is None else scores | {STOP: stop}
    check_few_sequences(len(everything), k)
    top = max(everything.values(), default=0.0)
    weights = {item: float(np.exp(score - top)) for item, score in everything.items()}
    return in_rounds(lambda left: _shares(left, weights, everything), tuple(everything), k)


def _shares(
    left: tuple[int, ...], weights: dict[int, float], scores: dict[int, float]
) -> list[float]:
    """Chance of every item that is left."""
    total = sum(weights[item] for item in left)
    if total < 1e-290:  # far below the largest of all: scale again
        top = max(scores[item] for item in left)
        weights = {item: float(np.exp(scores[item] - top)) for item in left}
        total = sum(weights.values())
    return [weights[item] / total for item in left]


def in_rounds(
    chances: Callable[[tuple[int, ...]], list[float]], items: tuple[int, ...], k: int
) -> Law:
    """Law of a sequence in which every round draws from what is left, without memory otherwise.

    Args:
        chances: Probability of each of the items that are left, to be drawn next.
        items: All items; `STOP` among them ends a sequence.
        k: Most rounds.
    """
    law: Law = {}

    def extend(sequence: tuple[int, ...], left: tuple[int, ...], probability: float) -> None:
        if len(sequence) == k or not left:
            law[sequence] = law.get(sequence, 0.0) + probability
            return
        for item, chance in zip(left, chances(left), strict=True):
            if item == STOP:
                law[sequence] = law.get(sequence, 0.0) + probability * chance
            else:
                rest = tuple(other for other in left if other != item)
                extend((*sequence, item), rest, probability * chance)

    extend((), items, 1.0)
    return law


def laplace_order(scores: dict[int, float], k: int) -> Law:
    """Law of the k largest scores plus Laplace noise, in order.

    Nested integrals, in the order of the sequence from its end: all that was not chosen lies below
    the last item, the last below the last but one, ... Integrands are piecewise sums of
    exponentials and polynomials, integrated panel by panel.

    Args:
        scores: Score of every item, in units of the noise.
        k: Length of a sequence, unless the items end before.

    Example:
        >>> law = laplace_order({0: 1.0, 1: 0.0}, 1)
        >>> round(law[(0,)], 6), round(law[(1,)], 6)  # 3/4 e^(-1)
        (0.72409, 0.27591)
    """
    check_few_sequences(len(scores), k)
    length = min(k, len(scores))
    knots = _knots(sorted(set(scores.values())))
    points, weights = legendre.leggauss(_POINTS)
    half = np.diff(knots)[:, None] / 2
    x = knots[:-1, None] + half * (points + 1)
    below = _antiderivative(points)

    def up_to(values: np.ndarray) -> np.ndarray:
        """Integral of values from the left end to every point."""
        whole = (half * values) @ weights
        before = np.concatenate(([0.0], np.cumsum(whole)[:-1]))
        return before[:, None] + half * (values @ below.T)

    density = {item: np.exp(-np.abs(x - score)) / 2 for item, score in scores.items()}
    cdf = {
        item: np.where(x < score, density[item], 1 - density[item])
        for item, score in scores.items()
    }
    law: Law = {}
    for sequence in permutations(scores, length):
        lower = np.ones_like(x)
        for item in set(scores) - set(sequence):
            lower = lower * cdf[item]
        for item in sequence[:0:-1]:
            lower = up_to(density[item] * lower)
        whole = density[sequence[0]] * lower if sequence else np.zeros_like(x)
        law[sequence] = float(np.sum((half * whole) @ weights)) if sequence else 1.0
    return law


def _knots(scores: list[float]) -> np.ndarray:
    """Ends of panels: all scores, gaps cut into short ones, and tails with nothing beyond."""
    ends = [scores[0] - _TAIL, *scores, scores[-1] + _TAIL] if scores else [0.0, 1.0]
    pieces = [
        np.linspace(low, high, 1 + int(np.ceil((high - low) / _PANEL)))[:-1]
        for low, high in zip(ends, ends[1:], strict=False)
    ]
    return np.append(np.concatenate(pieces), ends[-1])


def _antiderivative(points: np.ndarray) -> np.ndarray:
    """Matrix from values at Gauss points of [-1, 1] to integrals from -1 up to each of them."""
    size = points.size
    to_series = np.linalg.inv(legendre.legvander(points, size - 1))
    integrals = np.stack(
        [legendre.legval(points, legendre.legint(row, lbnd=-1)) for row in np.eye(size)], axis=1
    )
    return integrals @ to_series
