"""Draws without replacement from ranges of positions, one range per draw, for many trials."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64

from wgm_jax.mechanism import Array


class Deck:
    """A deck of numbered cards per trial, shuffled only where it is drawn from.

    The cards start in order. A draw takes a uniform card of the positions low, ..., high - 1 and
    swaps it with the card at `to`, so that used cards leave the ranges to come (Fisher and Yates).
    Of every deck only the swaps are stored.

    Args:
        num_trials: Number of decks.
        num_draws: Number of draws.

    Example:
        >>> deck = Deck(1, 2)
        >>> half = np.array([0.5])
        >>> [deck.draw(i, np.array([i]), np.array([3]), half).tolist() for i in range(2)]
        [[1], [2]]
    """

    def __init__(self, num_trials: int, num_draws: int) -> None:
        self._positions = np.full((num_trials, num_draws), -1)
        self._cards = np.zeros((num_trials, num_draws), np.int64)
        self._draws = 0

    def draw(
        self,
        to: int | Int64[np.ndarray, " trials"],
        low: Int64[np.ndarray, " trials"],
        high: Int64[np.ndarray, " trials"],
        u: Float64[Array, " trials"],
    ) -> Int64[np.ndarray, " trials"]:
        """The card drawn in every trial.

        Args:
            to: Position of the used card, which no later range holds.
            low: First position of the range.
            high: End of the range, above `low`.
            u: Uniform numbers of (0, 1).
        """
        position = low + np.minimum((u * (high - low)).astype(np.int64), high - low - 1)
        drawn = self._at(position)
        self._positions[:, self._draws] = position
        self._cards[:, self._draws] = self._at(np.broadcast_to(to, position.shape))
        self._draws += 1
        return drawn

    def _at(self, position: np.ndarray) -> np.ndarray:
        """Card at a position: what the last swap has put there, or the one it started with."""
        swapped = self._positions[:, : self._draws] == position[:, None]
        last = self._draws - 1 - np.argmax(swapped[:, ::-1], axis=1) if self._draws else position
        moved = swapped.any(axis=1)
        return np.where(moved, self._cards[np.arange(len(last)), last * moved], position)
