"""The joint exponential mechanism: whole sequences of k items, drawn at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64, UInt32

from theory import UserItems
from theory._check import check_count, check_delta, check_eps
from wgm_jax.selection.deck import Deck
from wgm_jax.selection.noise import uniform
from wgm_jax.selection.selector import (
    Domain,
    Law,
    by_count,
    check_few_sequences,
    domain_items,
    pad_columns,
)

# Counters of a trial's draws: the loss, and the item of a row (its round).
_LOSS, _ROW = np.array([-1]), np.array([-2])


@dataclass(frozen=True)
class LossLaw:
    """Law of a sequence's loss and of the first row that has it, on sorted counts.

    A sequence's loss is v = max over rows i of N_(i) - N(s_i), its probability proportional to
    e^(-eps v/2). Of the sequences of loss v whose first row with it is i, rows before i take items
    with a loss below v, row i takes an item of count N_(i) - v, which no row before can take, and
    rows after i take items with a loss of at most v. The allowed items of a row are the first of
    the sorted list, and at least those of the row before: the number of sequences is a product.

    Attributes:
        cumulative: Cumulative probability of every outcome (v, i).
        values: Its v.
        rows: Its i, from 0.
        counts: Counts, descending.
        k: Rows, at most as many as counts.
    """

    cumulative: Float64[np.ndarray, " outcomes"]
    values: Int64[np.ndarray, " outcomes"]
    rows: Int64[np.ndarray, " outcomes"]
    counts: Int64[np.ndarray, " items"]
    k: int

    @staticmethod
    def of(counts: Int64[np.ndarray, " items"], k: int, eps: float) -> LossLaw:
        """The law for counts in descending order.

        Example:
            >>> law = LossLaw.of(np.array([5, 3, 1]), 2, 1.0)
            >>> law.values.tolist(), law.rows.tolist(), law.cumulative.round(5).tolist()
            ([0, 2, 2, 4], [0, 1, 0, 0], [0.42118, 0.57612, 0.886, 1.0])
        """
        k = min(k, counts.size)
        distinct, starts = np.unique(-counts, return_index=True)
        distinct, ends = -distinct, np.append(starts[1:], counts.size)
        # Every row with every class of counts that loses something, or nothing, there.
        row, group = np.nonzero(distinct[None, :] <= counts[:k, None])
        value = counts[row] - distinct[group]
        # By loss, the last row first: when row i gets to v, later rows are there, earlier ones not.
        order = np.lexsort((-row, value))
        row, group, value = row[order], group[order], value[order]
        # Factor of a row: its allowed items less those that the rows before have taken.
        old, new = starts[group] - row, ends[group] - row
        # The product over the other rows: sum of logarithms of positive factors, number of zeros.
        logs = _sum_before(_log(new) - _log(old)) - _log(old)
        zeros = k + _sum_before((old > 0).astype(int) - (new > 0)) - (old <= 0)
        weight = logs + np.log(ends[group] - starts[group]) - eps * value / 2
        possible = zeros == 0
        weight, value, row = weight[possible], value[possible], row[possible]
        cumulative = np.cumsum(np.exp(weight - weight.max()))
        return LossLaw(cumulative / cumulative[-1], value, row, counts, k)

    def ranges(
        self, keys: UInt32[np.ndarray, "trials 2"]
    ) -> tuple[Int64[np.ndarray, "trials k"], Int64[np.ndarray, "trials k"]]:
        """Places in the sorted list from which every row takes its item: first one, and end."""
        outcome = np.searchsorted(self.cumulative, uniform(keys, 0, _LOSS))
        value, first = self.values[outcome, None], self.rows[outcome, None]
        rows = np.arange(self.k)
        high = self._allowed(np.where(rows < first, value - 1, value))
        # Row i takes one of those that are new at v.
        return np.where(rows == first, self._allowed(value - 1), rows), high

    def _allowed(self, value: np.ndarray) -> np.ndarray:
        """Items whose loss in every row is at most the value, (trials, k)."""
        return np.searchsorted(-self.counts, value - self.counts[: self.k], side="right")


def draw(
    low: Int64[np.ndarray, "trials k"],
    high: Int64[np.ndarray, "trials k"],
    keys: UInt32[np.ndarray, "trials 2"],
) -> Int64[np.ndarray, "trials k"]:
    """Places of a sequence, row by row uniform in its range among those not taken yet."""
    deck, drawn = Deck(*low.shape), np.empty(low.shape, np.int64)
    for row in range(low.shape[1]):
        u = uniform(keys, row, _ROW)
        drawn[:, row] = deck.draw(row, low[:, row], high[:, row], u)
    return drawn


@dataclass(frozen=True)
class JointState:
    """What a trial needs.

    Attributes:
        items: Item indices by descending count.
        counts: Their counts.
        k: Items released.
        eps: Privacy parameter.
        losses: Law of the loss on all items.
    """

    items: Int32[np.ndarray, " items"]
    counts: Int64[np.ndarray, " items"]
    k: int
    eps: float
    losses: LossLaw


@dataclass(frozen=True)
class Joint:
    """Exponential mechanism over sequences of k distinct items, (eps, 0)-DP.

    The loss of a sequence is its largest shortfall max N_(i) - N(s_i), of sensitivity 1 but not
    monotone, so the 2 of e^(-eps loss/2) stays. Its law is the same for all trials, computed once
    in O(k c log(k c)) for c distinct counts. A domain of fewer than k items is released whole.

    Source:
        Gillenwater, Joseph, Munoz Medina, Ribero (2022); the sampler is ours: it counts sequences
        by their loss instead of by tie-broken losses.
    """

    def prepare(
        self, data: UserItems, *, eps: Any, delta: Any, k: Any, max_items_per_user: Any
    ) -> JointState:
        """Law of the loss; delta is not spent."""
        k = check_count("k", k)
        eps, _ = float(check_eps(eps)), check_delta(delta)
        items = by_count(data.frequencies)
        counts = data.frequencies[items]
        return JointState(items, counts, k, eps, LossLaw.of(counts, k, eps))

    def select(
        self,
        state: JointState,
        keys: UInt32[np.ndarray, "trials 2"],
        domain: Bool[np.ndarray, "trials items"] | None,
    ) -> Int32[np.ndarray, "trials k"]:
        """The loss, then the items row by row."""
        if domain is None:
            places = draw(*state.losses.ranges(keys), keys)
            return pad_columns(state.items[places], state.k)
        mask = domain[:, state.items]
        rows = np.arange(min(state.k, state.items.size))
        # A range of one place for the rows that a small domain does not have.
        low, high = (np.tile(rows + end, (len(keys), 1)) for end in (0, 1))
        for trials in _alike(mask):
            counts = state.counts[mask[trials[0]]]
            if counts.size:
                few = slice(min(state.k, counts.size))
                law = LossLaw.of(counts, state.k, state.eps)
                low[trials, few], high[trials, few] = law.ranges(keys[trials])
        sizes = mask.sum(axis=1)
        members, starts = state.items[np.nonzero(mask)[1]], np.cumsum(sizes) - sizes
        places = draw(low, high, keys)
        inside = rows < sizes[:, None]
        chosen = np.full(low.shape, -1, np.int32)
        chosen[inside] = members[(starts[:, None] + places)[inside]]
        return pad_columns(chosen, state.k)

    def law(self, state: JointState, domain: Domain) -> Law:
        """Probability of every sequence, from its loss."""
        items = domain_items(domain, state.items.size)
        check_few_sequences(len(items), state.k)
        count = dict(zip(state.items.tolist(), state.counts.tolist(), strict=True))
        best = sorted((count[item] for item in items), reverse=True)[: state.k]
        weights = {
            sequence: float(np.exp(-state.eps / 2 * _loss(best, [count[x] for x in sequence])))
            for sequence in permutations(items, len(best))
        }
        total = sum(weights.values())
        return {sequence: weight / total for sequence, weight in weights.items()}


def _alike(mask: np.ndarray) -> list[list[int]]:
    """Rows of a mask that are the same, together."""
    groups: dict[bytes, list[int]] = {}
    for row, packed in enumerate(np.packbits(mask, axis=1)):
        groups.setdefault(packed.tobytes(), []).append(row)
    return list(groups.values())


def _loss(best: list[int], counts: list[int]) -> int:
    return max((high - n for high, n in zip(best, counts, strict=True)), default=0)


def _log(factor: np.ndarray) -> np.ndarray:
    """Logarithm of positive factors, 0 for the others."""
    return np.log(np.maximum(factor, 1))


def _sum_before(values: np.ndarray) -> np.ndarray:
    """Sum of all entries before each."""
    return np.cumsum(values) - values
