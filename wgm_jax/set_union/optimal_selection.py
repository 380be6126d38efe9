"""The optimal selection probability, item by item, with the budget split over Delta0 items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, UInt32

from theory import UserItems
from theory.calibration import Calibration
from theory.lower_bounds import optimal_miss_probability, optimal_selection_probability
from wgm_jax.count_law import WeightLaw
from wgm_jax.mechanism import Array, padded_length
from wgm_jax.set_union.frame import FramedMechanism, Weights
from wgm_jax.set_union.kept_sets import KeptSets
from wgm_jax.set_union.weight_law import weight_law


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SelectionParameters:
    """Budget of one item, per calibration and round.

    Attributes:
        eps: eps/Delta0.
        delta: delta/Delta0.
    """

    eps: Float[Array, "*shape"]
    delta: Float[Array, "*shape"]

    def round(self, index: int) -> SelectionParameters:
        """Parameters of one round."""
        return jax.tree.map(lambda leaf: leaf[..., index], self)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SelectionTable:
    """Decisions in 32 bits for every count.

    Attributes:
        rare: 2^32 times the smaller of the probabilities of release and miss, rounded down.
        likely: Whether release is the more probable.
    """

    rare: UInt32[Array, "*points counts"]
    likely: Bool[Array, "*points counts"]


@dataclass(frozen=True)
class OptimalSelection(FramedMechanism):
    """Release every item with the optimal probability pi of its count, at (eps, delta)/Delta0.

    Optimal for Delta0 = 1; above, items are composed and something is lost. A user who holds one
    item loses too: the split does not know.

    Source:
        Desfontaines, Voss, Gipson, Mandayam 2022, [L0]; the split as in Google's library.
    """

    def parameters(self, calibration: Calibration) -> SelectionParameters:
        """eps/Delta0 and delta/Delta0."""
        bound = np.asarray(calibration.max_items_per_user, np.float64)
        eps, delta = (np.asarray(v / bound) for v in (calibration.eps, calibration.delta))
        return SelectionParameters(eps[..., None], delta[..., None])

    def weigh(self, sets: KeptSets, parameters: SelectionParameters) -> Weights:
        """Counts, as floats."""
        ones = jnp.ones(sets.items.shape, parameters.eps.dtype)
        return Weights(sets.add_up(ones), sets.support)

    def probabilities(
        self, weights: np.ndarray, parameters: SelectionParameters
    ) -> tuple[np.ndarray, np.ndarray]:
        """Optimal probability of the count, and its complement."""
        budget = {"eps": np.asarray(parameters.eps), "delta": np.asarray(parameters.delta)}
        counts = np.rint(weights)
        return (
            optimal_selection_probability(counts, **budget),
            optimal_miss_probability(counts, **budget),
        )

    def count_law(self, data: UserItems, calibration: Calibration) -> WeightLaw:
        """Release probabilities by kept copies, for the fast sampler."""
        return weight_law(self, data, calibration, np.ones_like)

    def tables(self, data: UserItems, calibration: Calibration) -> SelectionTable:
        """Probabilities of all counts that occur, (points, counts)."""
        counts = np.arange(padded_length(data.top_count + 1), dtype=np.float64)
        hit, miss = self.probabilities(counts, self.parameters(calibration))
        rare = np.floor(2.0**32 * np.minimum(hit, miss)).astype(np.uint32)
        return SelectionTable(rare, hit >= 0.5)

    def released(
        self, bits: jax.Array, weights: jax.Array, parameters: Any, tables: SelectionTable
    ) -> jax.Array:
        """Look the count up."""
        counts = weights.astype(jnp.int32)
        rare, likely = jnp.asarray(tables.rare)[counts], jnp.asarray(tables.likely)[counts]
        return (jnp.where(likely, ~bits, bits) < rare) ^ likely
