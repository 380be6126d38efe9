"""Bernoulli flow selection in two rounds, as a mechanism for the engine.

A trial evaluates both flows on what its own first release leaves, in float64 and on the host: the
traced trial is a call of NumPy. See docs/bernoulli-flow-2.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
from jaxtyping import Bool, Int32, UInt32

from theory import UserItems
from theory.calibration import Calibration
from theory.flow.two_rounds import TwoRoundFlow
from wgm_jax.mechanism import Array, Release, grid_field, padded_length
from wgm_jax.set_union.flows import known_two_rounds
from wgm_jax.set_union.two_round_trials import TwoRounds


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TwoRoundState:
    """What a trial needs: the data, and which flow.

    Attributes:
        items: Item of every pair, grouped by user; then padding.
        offsets: User i holds items[offsets[i]:offsets[i + 1]]; padded with users of no items.
        present: Which entries of a release are items, and which are padding.
        keep: Contribution bound Delta0.
        claim: eps and delta, two float64 as four words: JAX has no float64 by default.
    """

    items: Int32[Array, " padded_pairs"]
    offsets: Int32[Array, " padded_users_and_one"]
    present: Bool[Array, " padded_items"]
    keep: UInt32[Array, ""]
    claim: UInt32[Array, "*grid 4"] = grid_field()


@dataclass(frozen=True)
class BernoulliFlow2:
    """A cheap first round for the heaviest items; a second round on what it leaves.

    Of a calibration only eps, delta and Delta0 are used.

    Source:
        Bernoulli flow note, two rounds (docs/bernoulli-flow-2.md).
    """

    def flow(self, eps: float, delta: float, max_items_per_user: int) -> TwoRoundFlow:
        """The certified pair of flows for these parameters."""
        return known_two_rounds(eps, delta, max_items_per_user)

    def prepare(self, data: UserItems, calibration: Calibration) -> TwoRoundState:
        """Pad the data; make the flows that are not known yet."""
        keep = int(np.max(calibration.max_items_per_user))
        claims = np.stack((np.ravel(calibration.eps), np.ravel(calibration.delta)), axis=1)
        for eps, delta in claims.tolist():
            self.flow(eps, delta, keep)
        users = padded_length(data.num_users) - data.num_users
        pairs = padded_length(data.num_pairs) - data.num_pairs
        return TwoRoundState(
            items=np.pad(data.items, (0, pairs)),
            offsets=np.pad(data.offsets, (0, users), mode="edge").astype(np.int32),
            present=np.arange(padded_length(data.num_items)) < data.num_items,
            keep=np.asarray(keep, np.uint32),
            claim=np.ascontiguousarray(claims).view(np.uint32),
        )

    def run(self, key: jax.Array, state: TwoRoundState) -> Release:
        """One trial: a call of the host, one trial and one point at a time."""
        shape = jax.ShapeDtypeStruct(state.present.shape, np.bool_)
        words = jax.random.key_data(key)
        released = jax.pure_callback(self._released, shape, words, state, vmap_method="sequential")
        return Release(released)

    def _released(self, words: jax.Array, state: TwoRoundState) -> Bool[np.ndarray, " items"]:
        """The same on the host, where all arrays become NumPy's."""
        seed, (items, offsets, present, keep, claim) = (
            np.asarray(words).tolist(), map(np.asarray, jax.tree.leaves(state)),
        )  # fmt: skip
        eps, delta = claim.view(np.float64).tolist()
        flow = self.flow(eps, delta, int(keep))
        sizes = np.diff(offsets).astype(np.int64)
        rounds = TwoRounds(flow, items[: offsets[-1]], sizes, int(np.sum(present)))
        first_rng, second_rng = (np.random.default_rng((*seed, stage)) for stage in range(2))
        first = rounds.first(first_rng)
        released = first | rounds.second(second_rng, first)
        return np.pad(released, (0, present.size - released.size))
