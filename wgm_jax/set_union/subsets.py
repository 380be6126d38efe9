"""Uniform subsets of what is left of every user's items, as a mask over pairs."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int32, UInt32

from theory import UserItems
from wgm_jax.bits import random_bits
from wgm_jax.mechanism import Array
from wgm_jax.sampling import pack_slots, scaled


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Clipped:
    """The pairs of users with more than Delta0 items, in blocks of users as in `Slots`.

    Attributes:
        pairs: Position of the pair in stored order; padding is past the end.
        first: Row starts a new block.
        last: Row ends a block.
        whole: Whether the user of a pair has at most Delta0 items, and keeps what is left.
    """

    pairs: Int32[Array, "rows lanes"]
    first: Bool[Array, " rows"]
    last: Bool[Array, " rows"]
    whole: Bool[Array, " pairs"]


def clip(data: UserItems, *, max_items_per_user: int, num_pairs: int) -> Clipped:
    """Blocks of the users with more than `max_items_per_user` items.

    Args:
        data: The data set.
        max_items_per_user: Delta0.
        num_pairs: Length of masks over pairs, padding included.
    """
    numbered = UserItems(items=np.arange(data.num_pairs, dtype=np.int32), offsets=data.offsets)
    slots = pack_slots(numbered, max_items_per_user=max_items_per_user)
    pairs = np.where(np.asarray(slots.left) > 0, slots.items, num_pairs).astype(np.int32)
    first = np.asarray(slots.first)
    whole = np.repeat(data.set_sizes <= max_items_per_user, data.set_sizes)
    padding = num_pairs - data.num_pairs
    return Clipped(
        pairs=pairs,
        first=first,
        last=np.append(first[1:], True) if first.size else first,
        whole=np.pad(whole, (0, padding)),
    )


def keep_subsets(
    key: jax.Array, clipped: Clipped, alive: Bool[Array, " pairs"], keep: UInt32[Array, ""]
) -> Bool[jax.Array, " pairs"]:
    """Mask of kept pairs: a uniform subset of min(left, Delta0) of every user's alive pairs.

    Selection sampling, as in `wgm_jax.sampling.subset_counts`; sizes are exact.

    Args:
        key: Key of the draw.
        clipped: From `clip`.
        alive: Pairs that may be kept.
        keep: Delta0, traced.
    """
    alive = jnp.asarray(alive)
    free = alive.at[clipped.pairs].get(mode="fill", fill_value=False)

    def count(left: jax.Array, row: tuple) -> tuple[jax.Array, jax.Array]:
        open_, last = row
        left = jnp.where(last, jnp.uint32(0), left) + open_.astype(jnp.uint32)
        return left, left

    def take(need: jax.Array, row: tuple) -> tuple[jax.Array, jax.Array]:
        word, open_, left, first = row
        # At a block's first row `left` counts all that the user has left.
        need = jnp.where(first, jnp.minimum(keep, left), need)
        taken = open_ & (scaled(word, left) < need)
        return need - taken.astype(jnp.uint32), taken

    none = jnp.zeros(clipped.pairs.shape[1], jnp.uint32)
    _, left = jax.lax.scan(count, none, (free, jnp.asarray(clipped.last)), reverse=True)
    bits = random_bits(key, clipped.pairs.shape)
    _, taken = jax.lax.scan(take, none, (bits, free, left, jnp.asarray(clipped.first)))
    kept = alive & jnp.asarray(clipped.whole)
    return kept.at[clipped.pairs.ravel()].max(taken.ravel(), mode="drop")
