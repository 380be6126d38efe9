"""The noisy threshold: which items come out, given their weights."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Bool, Float, Float32, UInt32

from wgm_jax.mechanism import Array


def release(
    bits: UInt32[jax.Array, " items"],
    weights: Float32[jax.Array, " items"],
    sigma: Float32[Array, ""],
    threshold: Float32[Array, ""],
) -> Bool[jax.Array, " items"]:
    """Items with weight + sigma * noise above the threshold, noise standard normal.

    No normal is drawn. JAX's float32 normals end near 5.4, inside the range of our thresholds
    (ten items of one user at eps = 1, delta = 1e-6 need 5.33), so tail events would be wrong or
    never seen. An item is released iff U < Phi((weight - threshold)/sigma), U uniform on a 32-bit
    grid: exactly the same event.

    The smaller of the two tails is compared, so both probabilities are right to 2^-32 absolute
    (rounded down: an event below 2^-32 never happens) and to float32 accuracy relative. Above 1/2
    the complement of the bits is compared with the probability of a miss. Thus for fixed bits an
    item that is released stays released when its weight grows or the threshold falls: curves over
    a (sigma, threshold) grid from common draws are smooth.

    An item of weight zero is in no user's subset and is never released (soundness).

    Source: Algorithm 1 of the paper; `S` of theory section 0.
    """
    z = (weights - threshold) / sigma
    tail = jax.scipy.special.ndtr(-jnp.abs(z))  # at most 1/2, so that its count fits in 32 bits
    return decide(bits, tail, z >= 0) & (weights > 0)


def decide(
    bits: UInt32[Array, " items"],
    tail: Float[Array, " items"],
    likely: Bool[Array, " items"],
) -> Bool[jax.Array, " items"]:
    """An event of probability 1 - tail where it is `likely`, else tail; tail at most 1/2."""
    count = (tail * jnp.asarray(2**32, tail.dtype)).astype(jnp.uint32)
    return (jnp.where(likely, ~bits, bits) < count) ^ likely
