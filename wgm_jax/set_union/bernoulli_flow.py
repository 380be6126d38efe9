"""Bernoulli flow selection: items come out independently, by a probability made for the set.

Users keep a uniform subset of min(|W|, Delta0) items. The release probability of an item depends
on how many holders keep how many items, and is accounted for as what it is: the probability of one
Bernoulli, not the tail of a noisy weight. See docs/bernoulli-flow.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float64, Int32, UInt32

from theory import UserItems
from theory._check import invalid
from theory.calibration import Calibration
from theory.flow import FlowCalibration
from theory.flow.calibration import Accountant
from theory.flow.release_table import ReleaseTable, base_state, most_telling
from wgm_jax.bits import random_bits
from wgm_jax.mechanism import Array, Release, grid_field, padded_length
from wgm_jax.sampling import Slots, pack_slots, subset_counts
from wgm_jax.set_union.flows import known_flow

# A probability is an integer multiple of 2^-128: exact for every float64 above 2^-75.
_WORDS = 4
_LIKELY = np.uint32(2**31)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FlowTrialState:
    """What a trial needs, prepared once per data set and calibration.

    Only holders with more than Delta0 items are random, and each of them who keeps an item keeps
    Delta0: so one row per class of items, over the number who keep it, holds every probability
    that can occur. Where nobody is clipped there is one entry per item.

    Attributes:
        slots: Pairs of the users that must be subsampled.
        keep: Contribution bound Delta0.
        first: Entry of an item that no clipped user keeps.
        last: Number of further entries of its row; more users who keep it count like the last.
        words: Every entry's probability as an integer, see `probability_words`.
    """

    slots: Slots
    keep: UInt32[Array, ""]
    first: Int32[Array, " padded_items"]
    last: Int32[Array, " padded_items"]
    words: tuple[UInt32[Array, "*grid entries"], ...] = grid_field()


@dataclass(frozen=True)
class BernoulliFlow:
    """Subsample every user to Delta0 items, look the release probability up, throw a coin.

    Of a calibration only eps, delta and Delta0 are used.

    Attributes:
        accountant: What certifies the flow, see `theory.flow.calibrate_flow`.

    Source:
        Bernoulli flow note (docs/bernoulli-flow.md).
    """

    accountant: Accountant = "bellman"

    def flow(self, eps: float, delta: float, max_items_per_user: int) -> FlowCalibration:
        """The certified flow for these parameters."""
        return known_flow(eps, delta, max_items_per_user, self.accountant)

    def flows(self, calibration: Calibration) -> list[FlowCalibration]:
        """One flow for each point of a calibration of shape (num_points,)."""
        points = (calibration.eps, calibration.delta, calibration.max_items_per_user)
        return [
            self.flow(eps, delta, bound)
            for eps, delta, bound in zip(*(np.ravel(v).tolist() for v in points), strict=True)
        ]

    def prepare(self, data: UserItems, calibration: Calibration) -> FlowTrialState:
        """Fold the users with at most Delta0 items into the table's rows; pack the others."""
        keep = int(np.max(calibration.max_items_per_user))
        slots = pack_slots(data, max_items_per_user=keep)
        states = [base_state(data.item_classes, flow) for flow in self.flows(calibration)]
        clipped = _holders_at_random(data, keep)
        last = np.minimum(clipped, np.max([most_telling(state) for state in states], axis=0))
        tables = [ReleaseTable.of(state, last) for state in states]
        rows = _class_of_item(data)
        padding = padded_length(data.num_items) - data.num_items
        first = tables[0].offsets[rows]
        words = np.stack([probability_words(table, spare=1) for table in tables], axis=1)
        # The spare entry, of probability 0, is that of padding.
        first = np.pad(first, (0, padding), constant_values=words.shape[-1] - 1)
        last = np.pad(last[rows], (0, padding))
        if not slots.items.size:
            words, first = words[..., first], np.arange(first.size)
        return FlowTrialState(
            slots=slots,
            keep=np.asarray(keep, np.uint32),
            first=first.astype(np.int32),
            last=last.astype(np.int32),
            words=tuple(np.ascontiguousarray(word) for word in words),
        )

    def run(self, key: jax.Array, state: FlowTrialState) -> Release:
        """One trial."""
        subsampling_key, release_key = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
        words = tuple(jnp.asarray(word) for word in state.words)
        if state.slots.items.size:
            kept = subset_counts(subsampling_key, state.slots, state.keep, state.first.shape[0])
            entry = jnp.asarray(state.first) + jnp.minimum(kept, jnp.asarray(state.last))
            return Release(coins(release_key, words, entry))
        return Release(coins(release_key, words))

    def probabilities(
        self, kept: UserItems, calibration: Calibration
    ) -> tuple[Float64[np.ndarray, " items"], Float64[np.ndarray, " items"]]:
        """Probability that each item is released, and that it is not, given what users keep.

        Args:
            kept: Kept sets, of at most Delta0 items each.
            calibration: A single one.

        Raises:
            InvalidInput: A set has more than Delta0 items.
        """
        (flow,) = self.flows(calibration)
        largest = int(np.max(kept.set_sizes, initial=0))
        if largest > flow.max_items_per_user:
            accepted = f"must be kept sets of at most Delta0 = {flow.max_items_per_user} items"
            invalid("kept", f"a set of {largest}", accepted)
        rows = _class_of_item(kept)
        release, miss = base_state(kept.item_classes, flow).probabilities(0)
        return release[rows], miss[rows]


def _class_of_item(data: UserItems) -> np.ndarray:
    rows = data.item_classes.class_of_item
    assert rows is not None  # classes of users' data know their items
    return rows


def _holders_at_random(data: UserItems, keep: int) -> np.ndarray:
    """Holders with more than `keep` items, per class of items."""
    ends, _, counts = data.item_classes.clipped(keep)
    return np.diff(np.concatenate(([0], np.cumsum(counts)))[ends])


def probability_words(table: ReleaseTable, *, spare: int) -> UInt32[np.ndarray, "words entries"]:
    """Release probabilities as integers of 128 bits in four words, the most significant first.

    The smaller of p and 1 - p, at most 1/2, times 2^128, rounded down; the top bit says whether
    it is 1 - p. Nothing is lost of a float64 above 2^-75, so the coin is as exact as p itself.

    Args:
        table: Release and miss probabilities.
        spare: Entries of probability 0 to append.
    """
    rest = np.pad(np.minimum(table.release, table.miss), (0, spare))
    likely = np.pad(table.release > 0.5, (0, spare))
    words = np.empty((_WORDS, rest.size), np.uint32)
    for word in words:
        rest = rest * 2.0**32
        whole = np.floor(rest)
        word[:] = whole
        rest = rest - whole
    # One half takes a bit more; 2^-32 less of it is as good only below the top bit.
    half = words[0] == _LIKELY
    words[:, half] = np.uint32(2**32 - 1)
    words[0, half] -= _LIKELY
    words[0] |= np.where(likely, _LIKELY, np.uint32(0))
    return words


def coins(
    key: jax.Array,
    words: tuple[UInt32[jax.Array, " entries"], ...],
    entry: Int32[jax.Array, " items"] | None = None,
) -> Bool[jax.Array, " items"]:
    """Whether U < p for every item, U uniform with 128 bits.

    The first 32 bits decide but with probability 2^-32 an item; only then are others drawn. For
    fixed bits the event grows with p, so that points of a grid share their draws.

    Args:
        key: Key of the draw.
        words: From `probability_words`.
        entry: Entry of every item; None if there is one for each, in order.
    """
    head, *others = words
    head = head if entry is None else head[entry]
    likely = head >= _LIKELY
    flip = jnp.where(likely, jnp.uint32(2**32 - 1), jnp.uint32(0))
    bits = random_bits(jax.random.fold_in(key, 0), head.shape) ^ flip
    count = head & jnp.uint32(_LIKELY - 1)

    def resolve(state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        # All depends on the turn, always 1 here, or a compiler may do it before the loop.
        turn, below, tied = state
        shape = (len(others), *head.shape)
        drawn = random_bits(jax.random.fold_in(key, turn), shape) ^ flip[None]
        at = None if entry is None else entry + (turn.astype(jnp.int32) - 1)
        for word, count in zip(drawn, others, strict=True):
            count = count if at is None else count[at]
            below, tied = below | (tied & (word < count)), tied & (word == count)
        return turn + jnp.uint32(1), below, jnp.zeros_like(tied)

    start = (jnp.uint32(1), bits < count, bits == count)
    _, below, _ = jax.lax.while_loop(lambda state: jnp.any(state[2]), resolve, start)
    return below ^ likely
