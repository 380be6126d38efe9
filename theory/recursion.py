"""Tails of weight plus noise from the law of K itself, built holder by holder.

Only positive numbers are multiplied and added, so every probability keeps its relative precision,
and all grid points share the law. For items with few holders; with very many holders of few set
sizes, binomials are convolved instead.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from theory.holder_laws import CHUNK, NEVER, HolderLaws, normal_tails
from theory.miss_bound import binomial_window

# Beyond this many standard deviations the noise alone is less likely than exp(-95).
_NEVER_DEVIATIONS = 13.7
# Beyond so many holders the rounding of the recursion would count.
_MANY_HOLDERS = 200_000


def recursion_width(
    laws: HolderLaws, rows: np.ndarray, sigma: np.ndarray, threshold: np.ndarray
) -> np.ndarray:
    """States of K to tell apart: 0, 1, ... and a last one for all beyond.

    Beyond, either the item is surely released or K is surely not.
    """
    surely_released = laws.root * (np.max(threshold + _NEVER_DEVIATIONS * sigma) - laws.base[rows])
    last = np.minimum(np.maximum(np.ceil(surely_released), 0) + 1, most_states(laws.mean[rows]))
    return (np.minimum(last, laws.holders[rows]) + 1).astype(np.int64)


def most_states(mean: np.ndarray) -> np.ndarray:
    """Number k with P(K >= k) < exp(-97) for every sum K of Bernoullis of this mean."""
    # P(K >= k) <= exp(-(k ln(k/mean) - k + mean)): Newton from the right, on a convex function.
    exponent = NEVER + 2
    k = mean + exponent / 3 + np.sqrt(exponent**2 / 9 + 2 * mean * exponent)
    for _ in range(4):
        log_ratio = np.log(k / mean)
        k = k - (k * log_ratio - k + mean - exponent) / log_ratio
    return np.ceil(k)


def size_by_size_time(laws: HolderLaws, rows: np.ndarray) -> np.ndarray:
    """Nanoseconds of `_law_size_by_size`."""
    return np.diff(laws.table.indptr)[rows] * (1e5 + most_states(laws.mean[rows]) ** 2.0)


def by_recursion(
    laws: HolderLaws,
    rows: np.ndarray,
    width: np.ndarray,
    sigma: np.ndarray,
    threshold: np.ndarray,
    miss: np.ndarray,
    hit: np.ndarray,
) -> None:
    """Fill in the columns `rows` of miss and hit."""
    for chosen, law in count_laws(laws, rows, width):
        weight = laws.base[chosen] + np.arange(law.shape[0])[:, None] / laws.root
        nothing = weight[0] == 0  # an item that nobody kept is never released
        size = max(1, CHUNK // law.size)
        for first in range(0, sigma.size, size):
            at = slice(first, first + size)
            below, above = normal_tails(weight, sigma[at], threshold[at])
            below[:, 0, nothing], above[:, 0, nothing] = 1.0, 0.0
            miss[at, chosen] = np.sum(law * below, axis=1)
            hit[at, chosen] = np.sum(law * above, axis=1)


def count_laws(
    laws: HolderLaws, rows: np.ndarray, width: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Laws of K, alike classes together: (classes, P(K = k) as (states, classes)).

    At least `width` states of a class are told apart, unless those beyond are less likely than
    exp(-97); the last state stands for all beyond as well.
    """
    holders = laws.holders[rows]
    alike = (3 * holders * width < size_by_size_time(laws, rows)) & (holders <= _MANY_HOLDERS)
    for row in rows[~alike]:
        yield np.array([row]), _law_size_by_size(laws, int(row))
    for part, states in _alike(holders[alike], width[alike]):
        chosen = rows[alike][part]
        yield chosen, _count_laws(_keep_chances(laws, chosen), states)


def _alike(holders: np.ndarray, width: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Groups of classes with about equally many holders and states, and their most states."""
    if not holders.size:
        return
    key = np.ceil(_steps(holders)) * 1e4 + np.ceil(_steps(width))
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1.0))
    for group in np.split(order, starts[1:]):
        most = int(width[group].max())
        size = max(1, CHUNK // max(most, int(holders[group].max())))
        for first in range(0, group.size, size):
            yield group[first : first + size], most


def _steps(count: np.ndarray) -> np.ndarray:
    """A scale on which counts of equal ceiling are within a third or so of each other."""
    return np.where(count <= 4, count, 4 + 2.5 * np.log2(np.maximum(count, 4) / 4))


def _keep_chances(laws: HolderLaws, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Chances of keeping and of dropping, (holders, classes), filled up with certain drops."""
    part = laws.table[rows]
    times = part.data.astype(np.int64)
    holders = laws.holders[rows].astype(np.int64)
    column = np.repeat(part.indices, times)
    owner = np.repeat(np.arange(rows.size), holders)
    place = np.arange(column.size) - np.repeat(np.cumsum(holders) - holders, holders)
    keep = np.zeros((int(holders.max()), rows.size))
    drop = np.ones_like(keep)
    keep[place, owner], drop[place, owner] = laws.keep[column], laws.drop[column]
    return keep, drop


def _count_laws(chances: tuple[np.ndarray, np.ndarray], states: int) -> np.ndarray:
    """P(K = k), (states, classes); the last state takes all that is beyond."""
    law = np.zeros((states, chances[0].shape[1]))
    law[0] = 1.0
    moved = np.empty_like(law)
    for holder, (keep, drop) in enumerate(zip(*chances, strict=True)):
        top = min(holder + 1, states - 1)
        np.multiply(law[:top], keep, out=moved[:top])
        law[:top] *= drop
        law[1 : top + 1] += moved[:top]
    return law


def _law_size_by_size(laws: HolderLaws, row: int) -> np.ndarray:
    """P(K = k), (states, 1), for a class with many holders of each set size: binomials convolved.

    Left out are states of less than exp(-97) in all.
    """
    entries = slice(*laws.table.indptr[row : row + 2])
    states = int(most_states(laws.mean[row : row + 1])[0])
    law = np.ones(1)
    for column, count in zip(laws.table.indices[entries], laws.table.data[entries], strict=True):
        kept, chance, _ = binomial_window(int(count), float(laws.keep[column]))
        binomial = np.zeros(int(kept[-1]) + 1)
        binomial[kept.astype(np.int64)] = chance
        law = np.convolve(law, binomial[:states])[:states]
    return law[:, None]
