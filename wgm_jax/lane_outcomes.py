"""How the fast sampler decides which items come out: by noise and threshold, or by a table.

A form of outcomes is a pytree that goes into the kernel. `draw` makes what a group of items needs
that is the same for all points of a grid, `hits` says who is released. Rows are numbers of many
trials, see `wgm_jax.lanes`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64, UInt32

from theory._check import invalid
from wgm_jax.coins import WORDS, probability_words, settle, split_head
from wgm_jax.count_law import CountLaw
from wgm_jax.mechanism import Array

# Items that are decided in one step.
GROUP = 8
# Positions of the random words that all items take, and of those that few do.
FIRST, FURTHER = np.uint32(2**31), np.uint32(3 * 2**30)

# Two words for each of some positions, in every trial: two arrays (*positions, lanes).
Words: TypeAlias = Callable[[jax.Array], tuple[jax.Array, jax.Array]]


@runtime_checkable
class Outcomes(Protocol):
    """What the kernel asks: open items are numbered, and come in groups of `GROUP`."""

    @property
    def num_points(self) -> int:
        """Points of the grid."""
        ...

    def draw(self, group: jax.Array, kept: jax.Array, words: Words) -> Any:
        """For kept copies (GROUP, lanes), whatever `hits` needs."""
        ...

    def hits(self, group: jax.Array, drawn: Any, words: Words) -> list[jax.Array]:
        """Released items of the group: `GROUP` arrays (points, lanes) of bool."""
        ...


def first_bits(group: jax.Array, words: Words) -> UInt32[jax.Array, "items lanes"]:
    """32 bits for every item of a group."""
    start = group.astype(jnp.uint32) * np.uint32(GROUP // 2) + FIRST
    return jnp.concatenate(words(start + jnp.arange(GROUP // 2, dtype=jnp.uint32)))


def of_group(values: Array, group: jax.Array) -> jax.Array:
    """The values of a group's items."""
    return jax.lax.dynamic_slice_in_dim(jnp.asarray(values), group * GROUP, GROUP)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GaussianThreshold:
    """Weight plus Gaussian noise above a threshold; all points share the noise.

    Attributes:
        needed: Kept copies from which an item can be released at all: 0 or 1.
        cut: Kept copies at which an item reaches the threshold without noise, (T - base)/weight.
        spread: Noise in units of a kept copy, sigma/weight.
    """

    needed: Float32[Array, " items"]
    cut: Float32[Array, "items points"]
    spread: Float32[Array, " points"]

    @property
    def num_points(self) -> int:
        """Points of the grid."""
        return self.spread.shape[0]

    def draw(self, group: jax.Array, kept: jax.Array, words: Words) -> tuple[jax.Array, jax.Array]:
        """Kept copies and noise."""
        copies, noise = kept.astype(jnp.float32), normal(first_bits(group, words))
        # An item in nobody's subset is never released.
        return copies, jnp.where(copies < of_group(self.needed, group)[:, None], -jnp.inf, noise)

    def hits(self, group: jax.Array, drawn: Any, words: Words) -> list[jax.Array]:
        """Copies plus noise above the cut."""
        (kept, noise), cut = drawn, of_group(self.cut, group)
        spread = jnp.asarray(self.spread)[:, None]
        return [kept[i][None] + spread * noise[i][None] > cut[i][:, None] for i in range(GROUP)]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class ReleaseRows:
    """A coin of 128 bits, with a probability looked up by the number of kept copies.

    Items of the same kind share a row of entries, over the copies that can occur.

    Attributes:
        low: Copies of the first entry of an item's row; fewer count like it.
        last: Number of further entries; more copies count like the last.
        first: Where the row begins; padding points to an entry of probability 0.
        words: Every entry's probability as an integer, see `probability_words`.
        by_copies: Whether any row has more than one entry; otherwise copies are not looked at.
    """

    low: Int32[Array, " items"]
    last: Int32[Array, " items"]
    first: Int32[Array, " items"]
    words: tuple[UInt32[Array, "points entries"], ...]
    by_copies: bool = dataclasses.field(metadata={"static": True})

    @classmethod
    def of(
        cls,
        law: CountLaw,
        items: Int64[np.ndarray, " items"],
        copies: tuple[Int64[np.ndarray, " items"], Int64[np.ndarray, " items"]],
        kinds: Int64[np.ndarray, " items"],
        *,
        padded: int,
        memory_budget: int,
    ) -> ReleaseRows:
        """Tabulate a law.

        Args:
            law: The law.
            items: Items to be decided.
            copies: Least and largest number of kept copies of each that can occur.
            kinds: Of each; items of one kind are alike for the law, and their copies too.
            padded: Length to be padded to.
            memory_budget: Bytes that the table may take.

        Raises:
            InvalidInput: The table does not fit into the budget.
        """
        _, chosen, row = np.unique(kinds, return_index=True, return_inverse=True)
        low, high = copies[0][chosen], copies[1][chosen]
        np.minimum.at(low, row, copies[0])  # alike up to rounding
        np.maximum.at(high, row, copies[1])
        last = high - low
        offsets = np.concatenate(([0], np.cumsum(last + 1)))
        # One entry more, of probability 0, for padding.
        length = 1 << int(offsets[-1]).bit_length()
        needed = 4 * WORDS * law.num_points * length
        if needed > memory_budget:
            accepted = f"must be at least {needed}: bytes of a table of probabilities"
            invalid("memory_budget", memory_budget, accepted)
        entries = np.arange(offsets[-1])
        kind = np.repeat(np.arange(chosen.size), last + 1)
        release, miss = law.chances(items[chosen][kind], low[kind] + entries - offsets[kind])
        spare = ((0, 0), (0, 0), (0, length - entries.size))
        words = np.pad(probability_words(release.T, miss.T), spare)
        room = padded - items.size
        return cls(
            low=np.pad(low[row], (0, room)).astype(np.int32),
            last=np.pad(last[row], (0, room)).astype(np.int32),
            first=np.pad(offsets[row], (0, room), constant_values=entries.size).astype(np.int32),
            words=tuple(np.ascontiguousarray(word) for word in words),
            by_copies=bool(last.any()),
        )

    @property
    def num_points(self) -> int:
        """Points of the grid."""
        return self.words[0].shape[0]

    def draw(self, group: jax.Array, kept: jax.Array, words: Words) -> tuple[jax.Array, jax.Array]:
        """Entries, of all lanes together where copies do not matter, and the first 32 bits."""
        entry = of_group(self.first, group)[:, None]
        if self.by_copies:
            low, last = (of_group(part, group)[:, None] for part in (self.low, self.last))
            entry = entry + jnp.clip(kept.astype(jnp.int32) - low, 0, last)
        return entry, first_bits(group, words)

    def hits(self, group: jax.Array, drawn: Any, words: Words) -> list[jax.Array]:
        """Coins."""
        entry, bits = drawn

        def decided(further: list[jax.Array] | None) -> jax.Array:
            """Bits 0 to 7: the item is released. Bit 8: 32 bits do not decide."""
            status = jnp.zeros((self.num_points, bits.shape[1]), jnp.uint32)
            for i in range(GROUP):
                likely, flip, count = split_head(self._looked_up(0, entry[i]))
                word = bits[i][None] ^ flip
                below, tied = word < count, word == count
                if further is None:
                    status |= tied.astype(jnp.uint32) << GROUP
                else:
                    drawn = [more[i][None] ^ flip for more in further]
                    rest = [self._looked_up(k, entry[i]) for k in range(1, WORDS)]
                    below = settle(below, tied, drawn, rest)
                status |= (below ^ likely).astype(jnp.uint32) << i
            return status

        def settled() -> jax.Array:
            need = GROUP * (WORDS - 1) // 2
            start = group.astype(jnp.uint32) * np.uint32(need) + FURTHER
            more = jnp.concatenate(words(start + jnp.arange(need, dtype=jnp.uint32)))
            return decided(list(more.reshape(WORDS - 1, GROUP, -1)))

        # A group in which all first words decide is by far the most frequent one. One row holds
        # the results, or looking up would be repeated in all that reads them.
        status = decided(None)
        status = jax.lax.cond(jnp.any(status >> GROUP > 0), settled, lambda: status)
        return [(status >> i) & 1 > 0 for i in range(GROUP)]

    def _looked_up(self, word: int, entry: jax.Array) -> jax.Array:
        """(points, lanes), or (points, 1) where copies do not matter."""
        return jnp.asarray(self.words[word])[:, entry]


def gaussian_threshold(
    base: Float64[np.ndarray, " items"],
    share: float,
    sigma: Float64[np.ndarray, " points"],
    threshold: Float64[np.ndarray, " points"],
    *,
    padded: int,
) -> GaussianThreshold:
    """Outcomes of weights with Gaussian noise, padded with items that are never released.

    Args:
        base: Weight of every item without kept copies.
        share: Weight of a kept copy.
        sigma: Standard deviation of the noise.
        threshold: Threshold.
        padded: Length to be padded to.
    """
    room = padded - base.size
    cut = (threshold - base[:, None]) / share
    return GaussianThreshold(
        needed=np.pad(base == 0, (0, room)).astype(np.float32),
        cut=np.pad(cut, ((0, room), (0, 0)), constant_values=np.inf).astype(np.float32),
        spread=np.asarray(sigma / share, np.float32),
    )


def normal(bits: UInt32[Array, "*shape"]) -> Float32[jax.Array, "*shape"]:
    """Standard normal quantile of (bits + 1/2)/2^32, accurate in both tails (to 6.3)."""
    bits = jnp.asarray(bits)
    lower = bits < np.uint32(2**31)
    tail = jnp.where(lower, bits, ~bits).astype(jnp.float32)
    quantile = jax.scipy.special.ndtri((tail + 0.5) * jnp.float32(2**-32))
    return jnp.where(lower, quantile, -quantile)
