"""Weighted Laplace: every kept item gets 1/q, then Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from theory import UserItems
from theory.calibration import Calibration
from wgm_jax.count_law import WeightLaw
from wgm_jax.set_union.frame import FramedMechanism, Parameters, Weights, one_round
from wgm_jax.set_union.kept_sets import KeptSets
from wgm_jax.set_union.noise import Noise
from wgm_jax.set_union.thresholds import laplace_threshold
from wgm_jax.set_union.weight_law import weight_law


@dataclass(frozen=True)
class WeightedLaplace(FramedMechanism):
    """A user of q kept items adds 1/q to each: l1 sensitivity 1.

    Source:
        Gopi et al. 2020, Algorithm 3.
    """

    noise: ClassVar[Noise] = Noise.LAPLACE

    def parameters(self, calibration: Calibration) -> Parameters:
        """Noise of scale 1/eps, threshold T_L; all of delta is for new items."""
        return laplace_parameters(calibration, np.inf)

    def weigh(self, sets: KeptSets, parameters: Parameters) -> Weights:
        """Sum of 1/q."""
        share = 1 / jnp.maximum(sets.counts, 1).astype(parameters.scale.dtype)
        return Weights(sets.add_up(sets.to_pairs(share)), sets.support)

    def count_law(self, data: UserItems, calibration: Calibration) -> WeightLaw:
        """Release probabilities by kept copies, for the fast sampler."""
        return weight_law(self, data, calibration, np.reciprocal)


def laplace_parameters(calibration: Calibration, alpha: float | int) -> Parameters:
    """One round with noise of scale 1/eps, threshold T_L, cap alpha scales above it."""
    bound = calibration.max_items_per_user
    threshold = laplace_threshold(
        eps=calibration.eps, delta=calibration.delta, max_items_per_user=bound
    )
    return one_round(1 / np.asarray(calibration.eps, np.float64), threshold, alpha)
