"""The Weighted Gaussian Mechanism (Algorithm 1 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32, UInt32

from theory import UserItems
from theory.calibration import Calibration
from wgm_jax.bits import random_bits
from wgm_jax.count_law import GaussianLaw, base_weights
from wgm_jax.mechanism import Array, Release, grid_field, padded_length
from wgm_jax.release import release
from wgm_jax.sampling import Slots, pack_slots, subset_counts


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class WgmState:
    """What a trial needs, prepared once per data set and calibration.

    Attributes:
        slots: Pairs of the users that must be subsampled.
        keep: Contribution bound Delta0.
        weight: Weight of a kept item of such a user, Delta0^(-1/2).
        base: Summed weight of every item from users with at most Delta0 items, which never changes.
        sigma: Standard deviation of the noise, per grid point.
        threshold: Threshold, per grid point.
    """

    slots: Slots
    keep: UInt32[Array, ""]
    weight: Float32[Array, ""]
    base: Float32[Array, " padded_items"]
    sigma: Float32[Array, " *grid"] = grid_field()
    threshold: Float32[Array, " *grid"] = grid_field()


@dataclass(frozen=True)
class WeightedGaussian:
    """Subsample every user to Delta0 items, add weights, add Gaussian noise, threshold.

    Source: Theorem 3.2 of the paper for privacy; [P2] for the delta it spends.
    """

    def prepare(self, data: UserItems, calibration: Calibration) -> WgmState:
        """Fold the users with at most Delta0 items into a base histogram; pack the others."""
        keep = int(np.max(calibration.max_items_per_user))
        padding = padded_length(data.num_items) - data.num_items
        return WgmState(
            slots=pack_slots(data, max_items_per_user=keep),
            keep=np.asarray(keep, np.uint32),
            weight=np.asarray(keep**-0.5, np.float32),
            base=np.pad(base_histogram(data, keep), (0, padding)).astype(np.float32),
            sigma=np.asarray(calibration.sigma, np.float32),
            threshold=np.asarray(calibration.threshold, np.float32),
        )

    def run(self, key: jax.Array, state: WgmState) -> Release:
        """One trial."""
        weights, noise_bits = draw(key, state)
        return Release(release(noise_bits, weights, state.sigma, state.threshold))

    def count_law(self, data: UserItems, calibration: Calibration) -> GaussianLaw:
        """Release probabilities by kept copies, for the fast sampler."""
        keep = int(np.max(calibration.max_items_per_user))
        return GaussianLaw(
            keep=keep,
            base=base_histogram(data, keep),
            share=keep**-0.5,
            sigma=np.asarray(calibration.sigma, np.float64),
            threshold=np.asarray(calibration.threshold, np.float64),
        )


def draw(key: jax.Array, state: WgmState) -> tuple[jax.Array, jax.Array]:
    """The randomness of one trial: the weighted histogram H and the bits of the noise."""
    subsampling_key, noise_key = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
    kept = subset_counts(subsampling_key, state.slots, state.keep, state.base.shape[0])
    weights = jnp.asarray(state.base) + kept.astype(jnp.float32) * state.weight
    return weights, random_bits(noise_key, state.base.shape)


def base_histogram(data: UserItems, max_items_per_user: int) -> np.ndarray:
    """Summed weight of every item from users with at most Delta0 items, (num_items,) float64."""
    return base_weights(data, max_items_per_user, lambda sizes: sizes**-0.5)
