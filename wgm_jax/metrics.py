"""Numbers taken from every trial, kept exact on the device and turned into masses on the host."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float32, Int32, UInt32

from wgm_jax.mechanism import Release

# A sum of this many pairs still fits into int32.
MOST_PAIRS = 2**31 - 1
_FOLD = 16


def missed_pairs(release: Release, frequencies: Int32[jax.Array, " items"]) -> Int32[jax.Array, ""]:
    """N * MM: pairs whose item is not released, exact below 2^31 pairs."""
    return jnp.sum(_missed(release, frequencies), dtype=jnp.int32)


def missed_squares(
    release: Release, frequencies: Int32[jax.Array, " items"]
) -> Float32[jax.Array, ""]:
    """Sum of squared frequencies of missed items, relative error below 1e-5.

    Sums of 16 terms at a time: a running float32 sum over a million items loses per cents.
    """
    values = _missed(release, frequencies).astype(jnp.float32) ** 2
    while values.shape[0] > 1:
        values = jnp.pad(values, (0, -values.shape[0] % _FOLD)).reshape(_FOLD, -1)
        # The barrier stops XLA from merging all levels into one running sum.
        values = jax.lax.optimization_barrier(jnp.sum(values, axis=0))
    return values[0]


def largest_missed(
    release: Release, frequencies: Int32[jax.Array, " items"]
) -> Int32[jax.Array, ""]:
    """N * MM_inf: frequency of the most frequent item that is not released; 0 if all are."""
    return jnp.max(_missed(release, frequencies))


def num_released(release: Release, frequencies: Int32[jax.Array, " items"]) -> Int32[jax.Array, ""]:
    """Number of released items; padding is never released."""
    return jnp.sum(release.released, dtype=jnp.int32)


def _missed(release: Release, frequencies: jax.Array) -> jax.Array:
    return jnp.where(release.released, 0, frequencies)


METRICS = (missed_pairs, missed_squares, largest_missed, num_released)


def measure(release: Release, frequencies: Int32[jax.Array, " items"]) -> dict[str, jax.Array]:
    """All metrics of one release, by name."""
    return {metric.__name__: metric(release, frequencies) for metric in METRICS}


def released_words(
    release: Release, frequencies: Int32[jax.Array, " items"]
) -> dict[str, UInt32[jax.Array, " words"]]:
    """Which items are released: bit i of word w is item 32 w + i."""
    del frequencies
    bits = jnp.pad(release.released, (0, -release.released.shape[0] % 32))
    places = jnp.arange(32, dtype=jnp.uint32)[None, :]
    words = jnp.where(bits.reshape(-1, 32), jnp.uint32(1) << places, jnp.uint32(0))
    return {"released": jnp.sum(words, axis=1, dtype=jnp.uint32)}


def unpack_words(
    words: UInt32[np.ndarray, "*batch words"], num_items: int
) -> Bool[np.ndarray, "*batch items"]:
    """The masks of `released_words`, on the host."""
    octets = np.ascontiguousarray(words.astype("<u4")).view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=num_items, bitorder="little").view(bool)
