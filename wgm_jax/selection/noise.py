"""Noise by counter: the number of an item is a function of seed, trial, round and item only.

So it is the same for every domain, k, eps, mechanism and chunk of trials (common random numbers:
curves over k and eps are smooth, differences of mechanisms have little noise), and the same in
NumPy and in JAX: uniforms agree bit by bit, their logarithms to the last digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64, Integer, UInt32

from wgm_jax.bits import key_words, threefry
from wgm_jax.mechanism import Array

# Counters of the seed's key that give keys of trials: no other mechanism uses this word.
_TAG = np.uint32(0x746F706B)
# Numbers computed at once: temporaries of NumPy stay in the cache; XLA compiles a single shape.
_NUMPY_PIECE, _XLA_PIECE = 2**14, 2**18


def trial_keys(seed: int, first_trial: int, num_trials: int) -> UInt32[np.ndarray, "trials 2"]:
    """One cipher key per trial, of which rounds and items are the counter.

    Args:
        seed: Seed, 0 to 2^63 - 1.
        first_trial: Index of the first trial.
        num_trials: Number of trials.

    Example:
        >>> whole, part = trial_keys(7, 0, 10), trial_keys(7, 4, 3)
        >>> bool((whole[4:7] == part).all())
        True
    """
    trials = np.arange(first_trial, first_trial + num_trials, dtype=np.uint32)
    words = threefry(key_words(seed), np.full(num_trials, _TAG), trials)
    return np.stack(words, axis=1)


def uniform(
    keys: UInt32[Array, "*batch 2"], round: Any, items: Integer[Array, "*items"]
) -> Float64[Array, "*shape"]:
    """Uniform numbers inside (0, 1): odd multiples of 2^-53, symmetric around 1/2.

    The shapes of keys (without the last axis), round and items are broadcast together. JAX arrays
    under `jax.enable_x64(True)` only: float64.

    Args:
        keys: From `trial_keys`.
        round: Round, a whole number or an array of them below 2^32.
        items: Item of every number, from -2^31 to 2^31 - 1 (negative: for other purposes than
            items).

    Returns:
        float64 array of the common shape.

    Example:
        >>> keys = trial_keys(0, 0, 4)
        >>> both = uniform(keys[:, None], 1, np.arange(5))
        >>> both.shape, bool((both[2, 3] == uniform(keys[2], 1, np.array([3]))).all())
        ((4, 5), True)
    """
    xp = _namespace(keys, items)
    rounds = xp.asarray(round).astype(np.uint32)
    shape = np.broadcast_shapes(keys.shape[:-1], rounds.shape, items.shape)
    parts = (keys[..., 0], keys[..., 1], items.astype(np.uint32), rounds)
    parts = [xp.broadcast_to(part, shape) for part in parts]
    if xp is jnp:
        return _uniform(*parts)
    flat = np.empty(int(np.prod(shape)), np.float64)
    columns = [np.ravel(part) for part in parts]
    start = 0
    while start < flat.size:
        length = _XLA_PIECE if flat.size - start > _XLA_PIECE // 4 else _NUMPY_PIECE
        piece = [column[start : start + length] for column in columns]
        used = piece[0].size
        if length == _XLA_PIECE:
            piece = [np.pad(column, (0, length - used)) for column in piece]
            flat[start : start + used] = _on_host(*piece)[:used]
        else:
            flat[start : start + used] = _uniform(*piece)
        start += used
    return flat.reshape(shape)


def _uniform(first: Any, second: Any, items: Any, rounds: Any) -> Any:
    xp = _namespace(items)
    high, low = threefry(xp.stack([first, second]), items, rounds)
    # 52 bits and a half: exact in float64, never 0 nor 1.
    bits = (high.astype(np.uint64) << np.uint64(20)) | (low.astype(np.uint64) >> np.uint64(12))
    return bits.astype(np.float64) * 2.0**-52 + 2.0**-53


def _on_host(*columns: np.ndarray) -> np.ndarray:
    """The same by XLA on the CPU, four times faster than NumPy."""
    with jax.enable_x64(True), jax.default_device(jax.local_devices(backend="cpu")[0]):
        return np.asarray(_compiled(*columns))


_compiled = jax.jit(_uniform)


def _namespace(*arrays: Any) -> Any:
    """jax.numpy if any array is one of JAX's, else NumPy."""
    return jnp if any(isinstance(array, jax.Array) for array in arrays) else np


# ---- laws


@dataclass(frozen=True)
class Law:
    """A law of noise, of scale 1.

    Attributes:
        quantile: Its value at a uniform number of (0, 1), rising; NumPy or JAX.
        cdf: The inverse of it, NumPy.
    """

    quantile: Callable[[Any], Any]
    cdf: Callable[[Any], Any]


def _gumbel_quantile(u: Array) -> Array:
    xp = _namespace(u)
    return -xp.log(-xp.log(u))


def _laplace_quantile(u: Array) -> Array:
    xp = _namespace(u)
    tail = xp.log(2 * xp.minimum(u, 1 - u))
    return xp.where(u < 0.5, tail, -tail)


def _laplace_cdf(x: np.ndarray) -> np.ndarray:
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x < 0, tail, 1 - tail)


GUMBEL = Law(_gumbel_quantile, lambda x: np.exp(-np.exp(np.minimum(-x, 700.0))))
LAPLACE = Law(_laplace_quantile, _laplace_cdf)
# 1 - U is exact.
EXPONENTIAL = Law(lambda u: -_namespace(u).log(1 - u), lambda x: -np.expm1(-np.maximum(x, 0.0)))


def gumbel(
    keys: UInt32[Array, "*batch 2"], round: Any, items: Integer[Array, "*items"]
) -> Float64[Array, "*shape"]:
    """Standard Gumbel noise: -ln(-ln U), U of `uniform`; from -3.6 to 36.7."""
    return GUMBEL.quantile(uniform(keys, round, items))


def exponential(
    keys: UInt32[Array, "*batch 2"], round: Any, items: Integer[Array, "*items"]
) -> Float64[Array, "*shape"]:
    """Standard exponential noise, -ln(1 - U), U of `uniform`: large where Gumbel noise is."""
    return EXPONENTIAL.quantile(uniform(keys, round, items))
