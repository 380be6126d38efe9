"""Coins of given probabilities: U < p, with p a float64 and U of 128 bits.

A probability is kept as an integer multiple of 2^-128, exact for every float64 above 2^-75. The
first 32 bits decide but with probability 2^-32 a coin; only then are others drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float64, Int32, UInt32

from wgm_jax.bits import random_bits
from wgm_jax.mechanism import Array

# Words of a probability. The top bit of the first one says whether release is the likelier.
WORDS = 4
_LIKELY = np.uint32(2**31)


def probability_words(
    release: Float64[np.ndarray, "*shape"], miss: Float64[np.ndarray, "*shape"]
) -> UInt32[np.ndarray, "words ..."]:
    """Release probabilities as integers of 128 bits in four words, the most significant first.

    The smaller of p and 1 - p, at most 1/2, times 2^128, rounded down; the top bit says whether
    it is 1 - p. Nothing is lost of a float64 above 2^-75, so the coin is as exact as p itself.

    Args:
        release: Release probabilities p.
        miss: 1 - p, with its own relative precision.

    Example:
        >>> probability_words(np.array([0.25, 1.0]), np.array([0.75, 0.0]))[0]
        array([1073741824, 2147483648], dtype=uint32)
    """
    rest = np.minimum(release, miss)
    words = np.empty((WORDS, *rest.shape), np.uint32)
    for index in range(WORDS):
        rest = rest * 2.0**32
        whole = np.floor(rest)
        words[index] = whole
        rest = rest - whole
    # One half takes a bit more; 2^-32 less of it is as good only below the top bit.
    half = words[0] == _LIKELY
    words[:, half] = np.uint32(2**32 - 1)
    words[0, half] -= _LIKELY
    words[0] |= np.where(release > 0.5, _LIKELY, np.uint32(0))
    return words


def split_head(head: Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Of first words: whether release is likelier; what drawn bits are flipped by; the number.

    With flipped bits the rarer outcome happens if they are below the number. So for fixed bits the
    event U < p grows with p, and the points of a grid can share their draws.
    """
    likely = jnp.asarray(head) >= _LIKELY
    flip = jnp.where(likely, jnp.uint32(2**32 - 1), jnp.uint32(0))
    return likely, flip, head & jnp.uint32(_LIKELY - 1)


def settle(
    below: Bool[jax.Array, "*shape"],
    tied: Bool[jax.Array, "*shape"],
    drawn: Sequence[jax.Array],
    words: Sequence[jax.Array],
) -> Bool[jax.Array, "*shape"]:
    """Whether numbers are below others, by further words where the first one is tied."""
    for word, count in zip(drawn, words, strict=True):
        below, tied = below | (tied & (word < count)), tied & (word == count)
    return below


def coins(
    key: jax.Array,
    words: tuple[UInt32[jax.Array, " entries"], ...],
    entry: Int32[jax.Array, " items"] | None = None,
) -> Bool[jax.Array, " items"]:
    """Whether U < p for every item, U uniform with 128 bits.

    Args:
        key: Key of the draw.
        words: From `probability_words`.
        entry: Entry of every item; None if there is one for each, in order.
    """
    head, *others = words
    head = head if entry is None else head[entry]
    likely, flip, count = split_head(head)
    bits = random_bits(jax.random.fold_in(key, 0), head.shape) ^ flip

    def resolve(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        # All depends on the turn, always 1 here, or a compiler may do it before the loop.
        turn, below, tied = state
        shape = (len(others), *head.shape)
        drawn = random_bits(jax.random.fold_in(key, turn), shape) ^ flip[None]
        at = None if entry is None else entry + (turn.astype(jnp.int32) - 1)
        further = [word if at is None else word[at] for word in others]
        below = settle(below, tied, list(drawn), further)
        return turn + jnp.uint32(1), below, jnp.zeros_like(tied)

    start = (jnp.uint32(1), bits < count, bits == count)
    _, below, _ = jax.lax.while_loop(lambda state: jnp.any(state[2]), resolve, start)
    return below ^ likely
