"""Random bits: Threefry-2x32 written out, so that XLA vectorises it on the CPU too."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64, UInt32

from wgm_jax.mechanism import Array

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def key_words(seed: int) -> UInt32[np.ndarray, " 2"]:
    """The cipher's key of a seed, 0 to 2^63 - 1."""
    return np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32)


def seed_key(seed: int) -> jax.Array:
    """The same as a JAX key, of which trial i folds in i."""
    return jax.random.wrap_key_data(jnp.asarray(key_words(seed)), impl="threefry2x32")


def uniform(words: tuple[Array, Array]) -> Float64[np.ndarray, "*shape"]:
    """Uniform on [0, 1) with 53 bits from two words each, on the host."""
    high, low = (np.asarray(word).astype(np.uint64) for word in words)
    return ((high << np.uint64(21)) | (low >> np.uint64(11))).astype(np.float64) * 2.0**-53


def random_bits(key: jax.Array, shape: tuple[int, ...]) -> UInt32[jax.Array, " ..."]:
    """Independent uniform 32-bit words.

    The same cipher as JAX's default generator (Salmon et al., SC 2011), but `jax.random.bits` runs
    it as a rolled loop on the CPU, several times slower than this unrolled form.

    Args:
        key: Key of the implementation "threefry2x32".
        shape: Last axis even. Of a matrix, words do not change when rows are added.

    Returns:
        uint32 array of that shape.
    """
    half = (*shape[:-1], shape[-1] // 2)
    counter = jnp.arange(math.prod(half), dtype=jnp.uint32).reshape(half)
    first, second = threefry(jax.random.key_data(key), jnp.zeros_like(counter), counter)
    return jnp.concatenate([first, second], axis=-1)


def threefry(
    key: UInt32[Array, " 2 *keys"], high: UInt32[Array, "*shape"], low: UInt32[Array, "*shape"]
) -> tuple[UInt32[Array, "*shape"], UInt32[Array, "*shape"]]:
    """Threefry-2x32 with 20 rounds: the block cipher at counters (high, low), in JAX or NumPy.

    One key for all counters, or the two words of a key per counter; these broadcast in NumPy.
    """
    schedule = (key[0], key[1], key[0] ^ key[1] ^ _PARITY)
    high, low = high + schedule[0], low + schedule[1]
    for i in range(5):
        for rotation in _ROTATIONS[i % 2]:
            high = high + low
            low = high ^ ((low << rotation) | (low >> (32 - rotation)))
        high, low = high + schedule[(i + 1) % 3], low + schedule[(i + 2) % 3] + (i + 1)
    return high, low
