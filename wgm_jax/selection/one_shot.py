"""One noise per item and the k largest, for many trials at once.

Most items are far too rare to be among the k largest. The k-th largest noisy score of the most
frequent items is a bar, and an item below them passes it only if its uniform number is above the
probability that noise stays below the gap: one comparison, no logarithm. The few that pass get
their noise, and the result is the one of scoring all items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int32, UInt32

from wgm_jax.selection.noise import Law, uniform
from wgm_jax.selection.selector import by_count

# Items scored in full: at least these and 2k, at most 8k, between them those not further below the
# k-th count than this, in scales. Where noise flattens all counts, the k best of few are a low bar.
_LEAST_HEAD, _WINDOW = 256, 2.0
# Noisy scores of a block of trials, in numbers.
_BLOCK = 2**20
# How far below the bar candidates are still scored: more than all rounding errors.
_SLACK = 1e-9


@dataclass(frozen=True)
class Ranking:
    """Items by descending score.

    Attributes:
        items: Item indices.
        scores: Their counts in units of the noise's scale, descending. Float64: counts of millions
            at scale 1 keep nine digits of their noise.
    """

    items: Int32[np.ndarray, " items"]
    scores: Float64[np.ndarray, " items"]

    @staticmethod
    def of(counts: np.ndarray, scale: Any) -> Ranking:
        """Ranking of all items; equal counts in the order of the items."""
        items = by_count(counts)
        return Ranking(items, counts[items] / np.float64(scale))

    def first(self, length: int) -> Ranking:
        """The first items of it."""
        return Ranking(self.items[:length], self.scores[:length])


@dataclass(frozen=True)
class Largest:
    """The k largest noisy scores of every trial.

    Attributes:
        items: Items by descending noisy score, -1 where the domain has no more.
        scores: Their noisy scores, -inf likewise.
    """

    items: Int32[np.ndarray, "trials k"]
    scores: Float64[np.ndarray, "trials k"]


def one_shot(
    ranking: Ranking,
    law: Law,
    k: int,
    keys: UInt32[np.ndarray, "trials 2"],
    domain: Bool[np.ndarray, "trials items"] | None,
) -> Largest:
    """Add noise to all scores once and keep the k largest.

    Args:
        ranking: The scores.
        law: Law of the noise, of scale 1.
        k: Number kept.
        keys: One per trial; the noise is that of round 0.
        domain: Items of every trial; None is all of the ranking.

    Example:
        >>> from wgm_jax.selection.noise import GUMBEL, trial_keys
        >>> found = one_shot(Ranking.of(np.array([0, 900, 800]), 1.0), GUMBEL, 2,
        ...                  trial_keys(0, 0, 1), None)
        >>> found.items.tolist()
        [[1, 2]]
    """
    items = np.full((len(keys), k), -1, np.int32)
    scores = np.full((len(keys), k), -np.inf)
    if domain is not None:  # a few items of all, as a rule
        used = np.flatnonzero(np.asarray(domain.any(axis=0))[ranking.items])
        ranking = Ranking(ranking.items[used], ranking.scores[used])
        domain = domain[:, ranking.items]
    rows = max(1, _BLOCK // max(1, ranking.items.size))
    for start in range(0, len(keys) if ranking.items.size else 0, rows):
        block = slice(start, start + rows)
        mask = None if domain is None else domain[block]
        _block(ranking, law, k, keys[block], mask, items[block], scores[block])
    return Largest(items, scores)


def _block(
    ranking: Ranking,
    law: Law,
    k: int,
    keys: np.ndarray,
    mask: np.ndarray | None,
    items: np.ndarray,
    scores: np.ndarray,
) -> None:
    """One block of trials, written into `items` and `scores`."""
    head = _head(ranking.scores, k)
    noisy = ranking.scores[:head] + law.quantile(uniform(keys[:, None], 0, ranking.items[:head]))
    if mask is not None:
        noisy[~mask[:, :head]] = -np.inf
    bar = _bar(noisy, k)
    rows, columns = np.nonzero((noisy >= bar) & (noisy > -np.inf))
    found = [(rows, columns, noisy[rows, columns])]
    if head < ranking.items.size:
        least = bar.min()
        gap = least - _SLACK * max(1.0, abs(least)) - ranking.scores[head:]
        u = uniform(keys[:, None], 0, ranking.items[head:])
        passes = u > law.cdf(gap) - 2.0**-50
        if mask is not None:
            passes &= mask[:, head:]
        rows, columns = np.nonzero(passes)
        late = ranking.scores[head + columns] + law.quantile(u[rows, columns])
        above = late >= bar[rows, 0]
        found.append((rows[above], head + columns[above], late[above]))
    _keep_largest(found, ranking.items, items, scores)


def _head(scores: np.ndarray, k: int) -> int:
    """How many of the first items are scored in full."""
    last = scores[min(k, scores.size) - 1]
    near = int(np.searchsorted(-scores, _WINDOW - last, side="right"))
    wanted = min(max(near, 2 * k), 8 * k)
    return min(scores.size, max(_LEAST_HEAD, wanted))


def _bar(noisy: np.ndarray, k: int) -> np.ndarray:
    """The k-th largest of every row, (rows, 1); the least where there are fewer."""
    place = max(0, noisy.shape[1] - k)
    return np.partition(noisy, place, axis=1)[:, place, None]


def largest(
    noisy: Float64[np.ndarray, "trials items"], items: Int32[np.ndarray, " items"], k: int
) -> Largest:
    """The k largest of every row; entries of -inf are not in the domain.

    Example:
        >>> largest(np.array([[0.5, -np.inf, 2.5]]), np.arange(3, dtype=np.int32), 3).items.tolist()
        [[2, 0, -1]]
    """
    result = np.full((len(noisy), k), -1, np.int32), np.full((len(noisy), k), -np.inf)
    rows, columns = np.nonzero((noisy >= _bar(noisy, k)) & (noisy > -np.inf))
    _keep_largest([(rows, columns, noisy[rows, columns])], items, *result)
    return Largest(*result)


def _keep_largest(
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]],
    names: np.ndarray,
    items: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Write the largest of (row, column, noisy score), by row, into rows of `items` and `scores`.

    Equal scores come in the order of columns.
    """
    k = items.shape[1]
    noisy, columns = _side_by_side(found, len(items))
    if noisy.shape[1] > k:
        rows, places = np.nonzero((noisy >= _bar(noisy, k)) & (noisy > -np.inf))
        part = rows, columns[rows, places], noisy[rows, places]
        noisy, columns = _side_by_side([part], len(items))
    order = np.argsort(-noisy, axis=1, kind="stable")[:, :k]
    scores[:, : order.shape[1]] = np.take_along_axis(noisy, order, axis=1)
    kept = names[np.take_along_axis(columns, order, axis=1)]
    items[:, : order.shape[1]] = np.where(scores[:, : order.shape[1]] > -np.inf, kept, -1)


def _side_by_side(
    found: list[tuple[np.ndarray, np.ndarray, np.ndarray]], num_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and columns of every row, one part after the other, filled up with -inf and 0."""
    lengths = [np.bincount(rows, minlength=num_rows) for rows, _, _ in found]
    width = int(np.sum(lengths, axis=0).max(initial=0))
    noisy, columns = np.full((num_rows, width), -np.inf), np.zeros((num_rows, width), np.int64)
    filled = np.zeros(num_rows, np.int64)
    for (rows, column, score), length in zip(found, lengths, strict=True):
        starts = np.cumsum(length) - length
        place = np.arange(rows.size) - starts[rows] + filled[rows]
        noisy[rows, place], columns[rows, place] = score, column
        filled += length
    return noisy, columns
