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
from jaxtyping import Float64, Int32, Int64, UInt32

from theory import UserItems
from theory._check import invalid
from theory.calibration import Calibration
from theory.flow import FlowCalibration
from theory.flow.calibration import Accountant
from theory.flow.release_table import ReleaseTable, base_state, most_telling, select_items
from theory.flow.state import FlowState
from wgm_jax.coins import coins, probability_words
from wgm_jax.mechanism import Array, Release, grid_field, padded_length
from wgm_jax.sampling import Slots, pack_slots, subset_counts
from wgm_jax.set_union.flows import known_flow


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


@dataclass(frozen=True, eq=False)
class FlowLaw:
    """Release probabilities by the number of clipped users who keep an item.

    Attributes:
        keep: Contribution bound Delta0.
        rows: Class of every item.
        states: Per point every class, with the holders who keep all they hold.
        alone: Release and miss probabilities of the classes without further holders.
    """

    keep: int
    rows: Int64[np.ndarray, " items"]
    states: tuple[FlowState, ...]
    alone: tuple[Float64[np.ndarray, "classes points"], Float64[np.ndarray, "classes points"]]

    @classmethod
    def of(cls, data: UserItems, flows: list[FlowCalibration]) -> FlowLaw:
        """The law of one flow for each point, at one Delta0."""
        states = tuple(base_state(data.item_classes, flow) for flow in flows)
        alone = _columns([state.probabilities(0) for state in states])
        return cls(flows[0].max_items_per_user, _class_of_item(data), states, alone)

    @property
    def num_points(self) -> int:
        """Points of the grid."""
        return len(self.states)

    def chances(
        self, items: Int64[np.ndarray, " rows"], copies: Int64[np.ndarray, " rows"]
    ) -> tuple[Float64[np.ndarray, "rows points"], Float64[np.ndarray, "rows points"]]:
        """See `wgm_jax.count_law.CountLaw`: monotone by Lemma A."""
        rows = self.rows[items]
        release, miss = (part[rows] for part in self.alone)
        some = np.flatnonzero(copies)
        found = [select_items(s, rows[some]).probabilities(copies[some]) for s in self.states]
        release[some], miss[some] = _columns(found)
        return release, miss


def _columns(points: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Release and miss probabilities, one column per point."""
    release, miss = (np.stack(part, axis=1) for part in zip(*points, strict=True))
    return release, miss


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
        found = [probability_words(table.release, table.miss) for table in tables]
        # The spare entry, of probability 0, is that of padding.
        words = np.pad(np.stack(found, axis=1), ((0, 0), (0, 0), (0, 1)))
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

    def count_law(self, data: UserItems, calibration: Calibration) -> FlowLaw:
        """Release probabilities by kept copies, for the fast sampler."""
        return FlowLaw.of(data, self.flows(calibration))

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
