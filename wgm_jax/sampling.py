"""Uniform subsets of fixed size, one from every clipped user, as padded blocks of users."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int32, UInt32

from theory import UserItems
from wgm_jax.bits import random_bits
from wgm_jax.mechanism import Array, padded_length

_LANES = (16, 32, 64, 128, 256, 512, 1024)
_WASTE = 1.25


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Slots:
    """The pairs of users with more than Delta0 items, users side by side.

    Users are sorted by set size and cut into blocks of `lanes` users, a power of two. A block is a
    matrix [its largest set, lanes], one column per user; blocks are stacked. Sorted users differ
    little in size, so little is padding, and a data set is described by two sizes only (rows and
    lanes): few programs are compiled.

    Attributes:
        items: Item index; padding points past the last item, where scatters are dropped.
        left: Items of this user from this row on, itself included; 0 in padding.
        first: Row starts a new block.
    """

    items: Int32[Array, "rows lanes"]
    left: UInt32[Array, "rows lanes"]
    first: Bool[Array, " rows"]


def pack_slots(data: UserItems, *, max_items_per_user: int) -> Slots:
    """Blocks of the users with more than `max_items_per_user` items.

    Example:
        >>> data = UserItems.from_sets([{0, 1, 2}, {0}, {1, 2}])
        >>> slots = pack_slots(data, max_items_per_user=1)
        >>> slots.items.shape, slots.left[:, :3].tolist()
        ((8, 16), [[3, 2, 0], [2, 1, 0], [1, 0, 0], [0, 0, 0], ...])
    """
    clipped = np.flatnonzero(data.set_sizes > max_items_per_user)
    clipped = clipped[np.argsort(-data.set_sizes[clipped], kind="stable")]
    sizes = data.set_sizes[clipped]
    lanes = _choose_lanes(sizes)
    heights = sizes[::lanes]  # sorted, so the first user of a block has its largest set
    starts = np.concatenate(([0], np.cumsum(heights)))
    rows = padded_length(int(starts[-1]))
    items = np.full((rows, lanes), padded_length(data.num_items), np.int32)
    left = np.zeros((rows, lanes), np.uint32)
    first = np.zeros(rows, bool)
    first[starts[:-1]] = True

    # Position of every pair of a clipped user, without a loop over users.
    user = np.repeat(np.arange(clipped.size), sizes)
    within = np.arange(user.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    row, lane = starts[user // lanes] + within, user % lanes
    items[row, lane] = data.items[np.repeat(data.offsets[clipped], sizes) + within]
    left[row, lane] = np.repeat(sizes, sizes) - within
    return Slots(items, left, first)


def _choose_lanes(sizes: np.ndarray) -> int:
    """Widest block that wastes at most a quarter; if none does, the one that wastes least."""
    padded = {lanes: int(sizes[::lanes].sum()) * lanes for lanes in _LANES}
    limit = max(_WASTE * sizes.sum(), min(padded.values()))
    return max(lanes for lanes in _LANES if padded[lanes] <= limit)


def subset_counts(
    key: jax.Array, slots: Slots, keep: UInt32[Array, ""], num_items: int
) -> Int32[jax.Array, " num_items"]:
    """How many clipped users keep each item, in one draw of all subsets.

    Selection sampling (Fan, Muller and Rezucha 1962): with `need` items still to take out of
    `left`, take the next with probability need/left. Every subset of size `keep` is equally
    likely. A probability need/left is realised as ceil(2^32 need/left)/2^32: too high by less than
    2^-32 at every step, and the size of the subset is always exact.

    Args:
        key: Key of the draw.
        slots: Blocks of clipped users.
        keep: Delta0, traced.
        num_items: Length of the result.
    """
    bits = random_bits(key, slots.items.shape)

    def step(need: jax.Array, row: tuple) -> tuple[jax.Array, jax.Array]:
        word, left, first = row
        need = jnp.where(first, keep, need)
        take = scaled(word, left) < need
        return need - take.astype(jnp.uint32), take

    start = jnp.zeros(slots.items.shape[1], jnp.uint32)
    _, taken = jax.lax.scan(step, start, (bits, slots.left, slots.first))
    counts = jnp.zeros(num_items, jnp.int32)
    return counts.at[slots.items.ravel()].add(taken.ravel().astype(jnp.int32), mode="drop")


def scaled(word: jax.Array, factor: jax.Array) -> jax.Array:
    """floor(word * factor / 2^32) for uint32, without 64-bit integers (16-bit halves)."""
    word_low, word_high = word & 0xFFFF, word >> 16
    factor_low, factor_high = factor & 0xFFFF, factor >> 16
    middle = word_high * factor_low + ((word_low * factor_low) >> 16)
    carry = word_low * factor_high + (middle & 0xFFFF)
    return word_high * factor_high + (middle >> 16) + (carry >> 16)
