"""Permute-and-flip peeling on a known domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int32, Int64, UInt32
from numpy.polynomial import legendre

from theory import UserItems
from theory._check import check_count, check_delta, check_eps, invalid
from wgm_jax.selection.deck import Deck
from wgm_jax.selection.laws import in_rounds
from wgm_jax.selection.noise import uniform
from wgm_jax.selection.selector import (
    Domain,
    Law,
    by_count,
    check_few_sequences,
    domain_items,
    pad_columns,
)

# Noises of one block of trials, over all rounds.
_BLOCK = 2**20
# Counter for the place of the item within its class; classes are numbered from 0.
_WITHIN = np.array([-1])


@dataclass(frozen=True)
class ClassState:
    """Items in classes of equal counts, by descending count.

    Attributes:
        items: Item indices, class after class.
        starts: Where every class starts, and the end.
        scores: Count of every class times eps/k.
        k: Items released.
    """

    items: Int32[np.ndarray, " items"]
    starts: Int64[np.ndarray, " classes_and_end"]
    scores: np.ndarray
    k: int


@dataclass(frozen=True)
class PermuteAndFlip:
    """k rounds of permute-and-flip at eps/k each: the largest count plus fresh exponential noise.

    Counts move one way by at most one, so exponential noise of scale k/eps (no factor 2) makes a
    round (eps/k, 0)-DP and the whole (eps, 0)-DP. Items of one class have the same chances: a round
    draws the largest noise of every class, and an item of the best class.

    Source:
        McKenna and Sheldon (2020).
    """

    def prepare(
        self, data: UserItems, *, eps: Any, delta: Any, k: Any, max_items_per_user: Any
    ) -> ClassState:
        """Classes of equal counts; delta is not spent."""
        k = check_count("k", k)
        eps, _ = float(check_eps(eps)), check_delta(delta)
        if eps == 0:
            invalid("eps", eps, "must be a number in (0, 1e5]")
        items = by_count(data.frequencies)
        counts, starts = np.unique(-data.frequencies[items], return_index=True)
        ends = np.append(starts, items.size).astype(np.int64)
        return ClassState(items, ends, -counts * (eps / k), k)

    def select(
        self,
        state: ClassState,
        keys: UInt32[np.ndarray, "trials 2"],
        domain: Bool[np.ndarray, "trials items"] | None,
    ) -> Int32[np.ndarray, "trials k"]:
        """Class by class, then item by item."""
        parts = []
        rows = max(1, _BLOCK // state.scores.size)
        for start in range(0, len(keys), rows):
            block = slice(start, start + rows)
            parts.append(_block(state, keys[block], None if domain is None else domain[block]))
        return pad_columns(np.concatenate(parts), state.k)

    def law(self, state: ClassState, domain: Domain) -> Law:
        """Probability of every sequence."""
        items = domain_items(domain, state.items.size)
        check_few_sequences(len(items), state.k)
        classes = np.repeat(np.arange(state.scores.size), np.diff(state.starts))
        scores = dict(zip(state.items.tolist(), state.scores[classes].tolist(), strict=True))
        return in_rounds(
            lambda left: chances(np.array([scores[item] for item in left])).tolist(),
            tuple(items),
            state.k,
        )


def chances(scores: np.ndarray) -> np.ndarray:
    """Probability that permute-and-flip picks each of these scores.

    Items come at uniform times and are accepted with chance q = e^(score - largest); the first
    accepted wins: q_x times the integral over [0, 1] of the product of 1 - q_y t over the others.

    Example:
        >>> chances(np.array([5.0, 3.0])).round(5).tolist()
        [0.93233, 0.06767]
    """
    accept = np.exp(scores - scores.max())
    # A polynomial of degree n - 1: exact.
    points, weights = legendre.leggauss(scores.size // 2 + 1)
    refuse = 1 - accept[:, None] * (points + 1) / 2
    others = np.stack([np.prod(np.delete(refuse, i, axis=0), axis=0) for i in range(scores.size)])
    return accept * (others @ weights) / 2


def _block(state: ClassState, keys: np.ndarray, domain: np.ndarray | None) -> np.ndarray:
    """Items of one block of trials, (trials, rounds)."""
    trials = np.arange(len(keys))
    if domain is None:
        left = np.tile(np.diff(state.starts), (len(keys), 1))
        members, offsets = state.items, np.zeros(len(keys), np.int64)
    else:
        mask = domain[:, state.items]
        left = np.add.reduceat(mask, state.starts[:-1], axis=1, dtype=np.int64)
        members = state.items[np.nonzero(mask)[1]]
        offsets = np.cumsum(left.sum(axis=1)) - left.sum(axis=1)
    ends = np.cumsum(left, axis=1)  # positions within a trial's own list of items
    rounds = min(state.k, state.items.size)
    chosen = np.full((len(keys), rounds), -1, np.int32)
    deck = Deck(len(keys), rounds)
    for turn in range(rounds):
        # The largest of m exponential noises, -ln(1 - U^(1/m)).
        u = uniform(keys[:, None], turn, np.arange(state.scores.size))
        with np.errstate(divide="ignore"):
            noise = -np.log(-np.expm1(np.log(u) / left))
        best = np.argmax(np.where(left > 0, state.scores + noise, -np.inf), axis=1)
        alive = left[trials, best] > 0
        if not alive.any():
            break
        high = ends[trials, best]
        low = high - np.maximum(left[trials, best], 1)
        place = deck.draw(low, low, high, uniform(keys, turn, _WITHIN))
        chosen[alive, turn] = members[(offsets + place)[alive]]
        left[trials, best] -= alive
    return chosen
