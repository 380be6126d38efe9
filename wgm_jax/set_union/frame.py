"""The common frame of set-union mechanisms, and its contract with exact analysis.

One round keeps a uniform subset of min(|W_i|, Delta0) items of every user, weighs, adds noise to
every item of the support and releases those above a threshold. A mechanism of several rounds
deletes what was released and repeats with other parameters; one that is not `clips` keeps every set
whole.

**Contract.** For fixed kept sets items are released independently, with probabilities that anyone
can compute from the mechanism's own code in float64:

    parameters = mechanism.parameters(calibration)     # float64, leaves (*grid, rounds)
    now = parameters.round(0)                          # of one round, leaves (*grid,)
    with jax.enable_x64(True):
        found = mechanism.weigh(KeptSets.from_rows(rows, num_items), now)
    hit, miss = mechanism.probabilities(np.asarray(found.weights), now)   # where found.support

`rows` are kept sets, (users, slots) int32, users in the order in which they are processed and every
row in the order of the user's list; items outside the support are never released. `weigh` is traced
and can be jitted and vmapped over `rows`, `kept` masks and parameters of shape (); it computes in
the dtype of the parameters. Item indices stand for names: neighbouring data sets must number common
items alike. A sequential mechanism with `order = "random"` permutes the users of a trial first,
uniformly; `weigh` takes them as they come.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, UInt32

from theory import UserItems
from theory.calibration import Calibration
from theory.gaussian import Floats
from wgm_jax.bits import random_bits
from wgm_jax.mechanism import Array, Release, grid_field
from wgm_jax.set_union.kept_sets import KeptSets
from wgm_jax.set_union.noise import Noise, exact_probabilities, passes
from wgm_jax.set_union.subsets import Clipped, clip, keep_subsets

__all__ = ["FramedMechanism", "Parameters", "Weights", "one_round"]

# Keys of rounds are counted from 0.
_ORDER_KEY = 2**20


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Parameters:
    """What a round needs to know of privacy; float64 as computed, float32 inside a trial.

    Attributes:
        scale: Scale of the noise.
        threshold: An item is released if its noisy weight is above.
        cap: Weight above which a policy adds nothing, or a mechanism reroutes; infinite if none.
    """

    scale: Float[Array, "*shape"]
    threshold: Float[Array, "*shape"]
    cap: Float[Array, "*shape"]

    def round(self, index: int) -> Parameters:
        """Parameters of one round: the last axis of every leaf is over rounds."""
        return jax.tree.map(lambda leaf: leaf[..., index], self)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Weights:
    """What a weight step returns.

    Attributes:
        weights: H, weight of every item, 0 outside the support.
        support: Items that get noise at all; the others are never released.

    Example:
        Two users keep item 0, one of them item 1 as well, nobody item 2:

        >>> found = Weights(np.array([2.0, 1.0, 0.0]), np.array([True, True, False]))
        >>> found.weights[found.support].tolist()
        [2.0, 1.0]
    """

    weights: Float[Array, " num_items"]
    support: Bool[Array, " num_items"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class FrameState:
    """What a trial needs, prepared once per data set and calibration.

    Attributes:
        sets: All pairs of the data.
        clipped: Those of users that must be subsampled.
        keep: Contribution bound Delta0.
        parameters: Leaves (points, rounds).
        tables: What else a mechanism prepares, None for most.
    """

    sets: KeptSets
    clipped: Clipped
    keep: UInt32[Array, ""]
    parameters: Any = grid_field()
    tables: Any = grid_field()


@dataclass(frozen=True)
class FramedMechanism(ABC):
    """A mechanism of the frame: subclasses say how to weigh, and with what noise and threshold.

    Attributes:
        noise: Law of the noise.
        clips: Whether users are subsampled to Delta0 items.
        sequential: Whether users are processed one after the other, so that their order matters.
        by_name: Whether the order of a user's list matters, too: then it is that of the items'
            names, because the order in which items are numbered may depend on other users.

    Example:
        Counts of holders with Laplace noise; the threshold is a guess, so it may claim no privacy:

        >>> @dataclass(frozen=True)
        ... class PlainCount(FramedMechanism):
        ...     noise = Noise.LAPLACE
        ...     def parameters(self, calibration):
        ...         scale = calibration.max_items_per_user / np.asarray(calibration.eps)
        ...         return one_round(scale, 10 * scale)
        ...     def weigh(self, sets, parameters):
        ...         ones = jnp.ones(sets.counts.shape, parameters.scale.dtype)
        ...         return Weights(sets.add_up(sets.to_pairs(ones)), sets.support)
        >>> from theory import calibrate
        >>> calibration = calibrate(eps=1.0, delta=1e-5, max_items_per_user=2)
        >>> now = PlainCount().parameters(calibration).round(0)
        >>> hit, miss = PlainCount().probabilities(np.array([10.0, 20.0, 30.0]), now)
        >>> hit.round(6).tolist()
        [0.003369, 0.5, 0.996631]
    """

    noise: ClassVar[Noise]
    clips: ClassVar[bool] = True
    sequential: ClassVar[bool] = False
    by_name: ClassVar[bool] = False

    @property
    def num_rounds(self) -> int:
        """Number of rounds."""
        return 1

    @abstractmethod
    def parameters(self, calibration: Calibration) -> Any:
        """Noise scale, threshold and cap in float64; leaves (*calibration.shape, num_rounds).

        Of the calibration, only what the mechanism's proof allows is used: eps, delta and Delta0
        always, sigma and threshold where the accountant [P2] covers the mechanism.
        """

    @abstractmethod
    def weigh(self, sets: KeptSets, parameters: Any) -> Weights:
        """Weight step of one round, traced, in the dtype of `parameters` (of one round)."""

    def probabilities(self, weights: np.ndarray, parameters: Any) -> tuple[np.ndarray, np.ndarray]:
        """Probability that an item of the support with this weight is released, and that it is not.

        Args:
            weights: float64, any shape that broadcasts with the parameters of one round.
            parameters: Float64 parameters of one round.

        Returns:
            Two float64 arrays, each to full relative accuracy.
        """
        return exact_probabilities(self.noise, weights, parameters.scale, parameters.threshold)

    def released(
        self, bits: jax.Array, weights: jax.Array, parameters: Any, tables: Any
    ) -> jax.Array:
        """The same event inside a trial, from 32 random bits for every item; (num_items,) bool."""
        return passes(self.noise, bits, weights, parameters.scale, parameters.threshold)

    def tables(self, data: UserItems, calibration: Calibration) -> Any:
        """What else `released` needs; leaves with a leading axis over calibrations."""
        return None

    def arranged(self, key: jax.Array, sets: KeptSets) -> KeptSets:
        """The users in the order in which a trial processes them."""
        return sets

    # ---- the engine's protocol

    def prepare(self, data: UserItems, calibration: Calibration) -> FrameState:
        """State for a data set and a calibration of shape (num_points,)."""
        keep = int(np.max(calibration.max_items_per_user)) if self.clips else data.max_set_size
        sets = KeptSets.from_data(data, data.name_ranks if self.by_name else None)
        single = jax.tree.map(
            lambda leaf: np.asarray(leaf, np.float32), self.parameters(calibration)
        )
        return FrameState(
            sets=sets,
            clipped=clip(data, max_items_per_user=keep, num_pairs=sets.items.shape[0]),
            keep=np.asarray(keep, np.uint32),
            parameters=single,
            tables=self.tables(data, calibration),
        )

    def run(self, key: jax.Array, state: FrameState) -> Release:
        """One trial."""
        sets = self.arranged(jax.random.fold_in(key, _ORDER_KEY), state.sets)
        released = jnp.zeros(sets.num_items, bool)
        for index in range(self.num_rounds):
            subset_key, noise_key = (jax.random.fold_in(key, 2 * index + i) for i in range(2))
            now = state.parameters.round(index)
            alive = jnp.asarray(state.sets.kept)
            if index:  # deleted items are gone before the next subset is drawn
                alive = alive & ~released.at[sets.items].get(mode="fill", fill_value=True)
            kept = keep_subsets(subset_key, state.clipped, alive, state.keep)
            found = self.weigh(dataclasses.replace(sets, kept=kept), now)
            bits = random_bits(noise_key, (sets.num_items,))
            above = self.released(bits, jnp.asarray(found.weights), now, state.tables)
            released = released | (above & found.support)
        return Release(released)


def one_round(
    scale: float | Floats,
    threshold: float | Floats,
    alpha: float | int = np.inf,
) -> Parameters:
    """Parameters of one round over a grid: adds the axis over rounds; cap alpha scales above T.

    Args:
        scale: Scale of the noise, one or a grid.
        threshold: Threshold, of the same shape.
        alpha: How many scales above the threshold the cap lies; infinite for no cap.

    Returns:
        Parameters with leaves (*grid, 1), float64.

    Example:
        >>> one_round(np.array([2.0, 2.0]), np.array([10.0, 20.0]), alpha=3).cap.tolist()
        [[16.0], [26.0]]
    """
    scales, thresholds = (np.asarray(v, np.float64)[..., None] for v in (scale, threshold))
    return Parameters(scales, thresholds, thresholds + alpha * scales)
