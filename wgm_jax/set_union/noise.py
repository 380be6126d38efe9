"""The two noise laws: tails in float64 for exact laws, and decisions from 32 random bits."""

from __future__ import annotations

from enum import Enum

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Float64, UInt32
from scipy.special import ndtr

from wgm_jax.mechanism import Array
from wgm_jax.release import decide

__all__ = ["Noise", "exact_probabilities"]


class Noise(Enum):
    """Law of the noise; the scale is the standard deviation, or b of Laplace's exp(-|x|/b)/2b.

    Example:
        >>> Noise("laplace")
        <Noise.LAPLACE: 'laplace'>
    """

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


def exact_probabilities(
    noise: Noise, weights: np.ndarray, scale: np.ndarray, threshold: np.ndarray
) -> tuple[Float64[np.ndarray, " ..."], Float64[np.ndarray, " ..."]]:
    """P(weight + noise > threshold) and its complement, each to full relative accuracy.

    Args:
        noise: Law of the noise.
        weights: Weights, any shape.
        scale: Scale of the noise, above 0, broadcast with the weights.
        threshold: Threshold, likewise.

    Returns:
        Probability of a release and of a miss, float64 of the broadcast shape.

    Example:
        >>> hit, miss = exact_probabilities(
        ...     Noise.LAPLACE, np.array([1.0, 3.0]), np.array(0.5), np.array(2.0))
        >>> hit.round(4), miss.round(4)
        (array([0.0677, 0.9323]), array([0.9323, 0.0677]))
    """
    z = np.asarray((weights - threshold) / scale, np.float64)
    if noise is Noise.GAUSSIAN:
        return np.asarray(ndtr(z)), np.asarray(ndtr(-z))
    tail = 0.5 * np.exp(-np.abs(z))
    return np.where(z < 0, tail, 1 - tail), np.where(z < 0, 1 - tail, tail)


def passes(
    noise: Noise,
    bits: UInt32[jax.Array, " items"],
    weights: Float[Array, " items"],
    scale: Float[Array, ""],
    threshold: Float[Array, ""],
) -> Bool[jax.Array, " items"]:
    """Whether weight + noise exceeds the threshold, decided in probability space.

    As in `wgm_jax.release`: the smaller tail is compared with the bits, rounded down to 2^-32, so
    that both tails are right and decisions are monotone for fixed bits.
    """
    z = (weights - threshold) / scale
    if noise is Noise.GAUSSIAN:
        tail = jax.scipy.special.ndtr(-jnp.abs(z))
    else:
        tail = jnp.exp(-jnp.abs(z)) * jnp.asarray(0.5, z.dtype)
    return decide(bits, tail, z >= 0)
