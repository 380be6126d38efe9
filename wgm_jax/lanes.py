"""The fast sampler for a CPU: trials are the lanes of vector instructions.

It runs every mechanism that says its law by kept copies (`wgm_jax.count_law`). The padded sampler
runs one trial after the other and lays users side by side. Here everything is turned by a quarter:
a row of an array is one number of *many trials*, and the program walks through the data once for
all of them. A *slot* is an item of a user with more than Delta0 items. The walk reads, slot after
slot,

    need, left     how many items this user must still keep, of how many left (need: a row)
    u < need/left  keep this item in these trials (selection sampling, exact)
    counts[item]   one row plus one

so there is no sort, no gather, no padding of users, and every step is the same instruction on
neighbouring numbers. When all slots are done, a second walk over the items decides which of them
come out (`wgm_jax.lane_outcomes`: noise and a threshold, or a coin with a probability looked up by
the counts) and adds up the metrics of all points of a grid, from the same draws.

Only slots of items whose fate is open are walked (`wgm_jax.fates` decides). A user's slots may be
walked in any order and left unfinished: subsets are exchangeable.

Random words are Threefry-2x32 of the counter (trial, position) under a key made from the seed, so
the numbers of a trial depend on nothing but seed, trial and data.

One cipher call gives four draws of 16 bits. Where 16 bits do not decide u < need/left (about one
slot and trial in 65,536), 16 more are drawn, and the comparison is exact to 32: a probability is
off by less than 2^-32. In the same way a noise is the normal quantile of a 32-bit number; coins
are exact to 128 bits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int32, UInt32

from wgm_jax.bits import threefry
from wgm_jax.devices import on_every_device
from wgm_jax.lane_outcomes import Outcomes, of_group
from wgm_jax.mechanism import Array

# Slots per step: what one call of the cipher serves.
STEP = 4
# Random words of a trial: those of slots begin at position 0, further ones of slots here, and those
# of outcomes at 2^31 and above (`wgm_jax.lane_outcomes`).
REFINEMENT = np.uint32(2**30)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LaneState:
    """What the kernel reads; sizes are rounded up, so that few programs are compiled.

    Attributes:
        items: Row of `counts` that a slot adds to.
        left: Items of this user from this slot on, itself included, below 2^16; 1 in padding.
        first: The slot is the first of its user.
        num_steps: Steps of `STEP` slots that hold any.
        keep: Contribution bound Delta0.
        frequencies: Users of every open item, descending; 0 in padding.
        outcomes: How these items come out.
        num_groups: Groups of `GROUP` items that hold any.
        dtype: Integer type of counts.
    """

    items: Int32[Array, " slots"]
    left: UInt32[Array, " slots"]
    first: Bool[Array, " slots"]
    num_steps: Int32[Array, ""]
    keep: UInt32[Array, ""]
    frequencies: Int32[Array, " items"]
    outcomes: Outcomes
    num_groups: Int32[Array, ""]
    dtype: str = field(metadata={"static": True}, default="int16")


@partial(jax.jit, static_argnames=("lanes", "mesh"))
def lane_metrics(
    key: UInt32[Array, " 2"],
    first: UInt32[Array | np.uint32, ""],
    state: LaneState,
    *,
    lanes: int,
    mesh: jax.sharding.Mesh,
) -> dict[str, jax.Array]:
    """Metrics of the open items in trials first, first + 1, ...: `lanes` on every device.

    Returns:
        missed_pairs, largest_missed, num_released: int32; missed_squares and its rounding error,
        missed_squares_rest: float32. All (points, trials).
    """

    def shard(device: jax.Array, key: Array, first: Array, state: LaneState) -> dict:
        trials = first + device.astype(jnp.uint32) * lanes + jnp.arange(lanes, dtype=jnp.uint32)

        def words(position: jax.Array) -> tuple[jax.Array, jax.Array]:
            shape = *position.shape, lanes
            positions = jnp.broadcast_to(position[..., None], shape)
            first, second = threefry(key, jnp.broadcast_to(trials, shape), positions)
            return jnp.asarray(first), jnp.asarray(second)

        return _observe(state, _subsample(state, words, lanes), words, lanes)

    return on_every_device(shard, mesh, axis=1)(key, first, state)


def _subsample(state: LaneState, words, lanes: int) -> jax.Array:
    """Kept copies of every open item, (items, lanes)."""

    def step(index: jax.Array, carry: tuple) -> tuple:
        counts, status, drawn = carry
        items, left, first = (
            jax.lax.dynamic_slice_in_dim(jnp.asarray(part), index * STEP, STEP)
            for part in (state.items, state.left, state.first)
        )
        need = status >> 16
        status = _select(need, drawn, None, left, first, state.keep)

        def refined() -> jax.Array:
            more = words(index.astype(jnp.uint32) + REFINEMENT)
            return _select(need, drawn, more, left, first, state.keep)

        # A step in which all 16-bit draws decide is by far the most frequent one.
        status = jax.lax.cond(jnp.any((status >> STEP) & 1 > 0), refined, lambda: status)
        for slot in range(STEP):
            row = jax.lax.dynamic_slice_in_dim(counts, items[slot], 1)
            row = row + ((status >> slot) & 1).astype(counts.dtype)[None]
            counts = jax.lax.dynamic_update_slice_in_dim(counts, row, items[slot], 0)
        # Drawn one step ahead and carried: XLA would repeat the cipher in all that reads it.
        return counts, status, words(index.astype(jnp.uint32) + 1)

    counts = jnp.zeros((state.frequencies.shape[0], lanes), state.dtype)
    start = counts, jnp.zeros(lanes, jnp.uint32), words(jnp.uint32(0))
    return jax.lax.fori_loop(jnp.int32(0), state.num_steps, step, start)[0]


def _select(need, drawn, more, left, first, keep) -> jax.Array:
    """Selection sampling on `STEP` slots; the result is packed into one row, read only once.

    Bits 0 to 3: the slot is kept. Bit 4: the draws do not decide (never if `more` are given). From
    bit 16 on: items that the user still needs.
    """
    kept, undecided = jnp.zeros_like(need), jnp.zeros(need.shape, bool)
    for slot, high in enumerate(_halves(drawn)):
        need = jnp.where(first[slot], keep, need)
        product = high * left[slot]
        if more is None:
            # The 16 bits not drawn yet could add up to left - 1.
            undecided |= (product >> 16 < need) & ((product + (left[slot] - 1)) >> 16 >= need)
        else:
            product = product + ((_halves(more)[slot] * left[slot]) >> 16)
        take = (product >> 16 < need).astype(jnp.uint32)
        kept, need = kept | (take << slot), need - take
    return (need << 16) | (undecided.astype(jnp.uint32) << STEP) | kept


def _halves(words: tuple[Array, Array]) -> tuple[Array, ...]:
    first, second = words
    return first & 0xFFFF, first >> 16, second & 0xFFFF, second >> 16


def _observe(state: LaneState, counts: jax.Array, words, lanes: int) -> dict[str, jax.Array]:
    """Outcomes and metrics."""
    outcomes = state.outcomes
    shape = outcomes.num_points, lanes

    def draw(index: jax.Array) -> Any:
        return outcomes.draw(index, of_group(counts, index), words)

    def group(index: jax.Array, carry: dict) -> dict:
        frequencies = of_group(state.frequencies, index)
        pairs, squares = carry["missed_pairs"], jnp.zeros(shape, jnp.float32)
        largest, released = carry["largest_missed"], carry["num_released"]
        for i, hit in enumerate(outcomes.hits(index, carry["drawn"], words)):
            missed = jnp.where(hit, 0, frequencies[i])
            pairs, largest = pairs + missed, jnp.maximum(largest, missed)
            squares = squares + missed.astype(jnp.float32) ** 2
            released = released + hit.astype(jnp.int32)
        # Two float32 hold a sum of any length: the second collects what the first rounds away.
        total = carry["missed_squares"] + squares
        lost = squares - (total - carry["missed_squares"])
        return {
            "missed_pairs": pairs,
            "missed_squares": total,
            "missed_squares_rest": carry["missed_squares_rest"] + lost,
            "largest_missed": largest,
            "num_released": released,
            # One group ahead and carried, for the same reason as above.
            "drawn": draw(index + 1),
        }

    whole, real = jnp.zeros(shape, jnp.int32), jnp.zeros(shape, jnp.float32)
    start = {
        "missed_pairs": whole,
        "missed_squares": real,
        "missed_squares_rest": real,
        "largest_missed": whole,
        "num_released": whole,
        "drawn": draw(jnp.int32(0)),
    }
    found = jax.lax.fori_loop(jnp.int32(0), state.num_groups, group, start)
    del found["drawn"]
    return found
