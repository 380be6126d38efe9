"""Counts of holders with noise and a threshold: Gaussian, Laplace, and Korolova's threshold."""

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
from wgm_jax.set_union.policy_gaussian import split_half
from wgm_jax.set_union.thresholds import (
    count_gaussian_threshold,
    count_threshold,
    korolova_threshold,
)
from wgm_jax.set_union.weight_law import weight_law


@dataclass(frozen=True)
class Count(FramedMechanism):
    """Weight is the number of users who keep the item."""

    def weigh(self, sets: KeptSets, parameters: Parameters) -> Weights:
        """Counts, as floats."""
        ones = jnp.ones(sets.items.shape, parameters.scale.dtype)
        return Weights(sets.add_up(ones), sets.support)

    def by_copies(self, data: UserItems, calibration: Calibration) -> WeightLaw:
        """Release probabilities by kept copies; a class whose law it is says so by `count_law`."""
        return weight_law(self, data, calibration, np.ones_like)


@dataclass(frozen=True)
class GaussianCount(Count):
    """Counts with Gaussian noise of scale sigma Delta0^(1/2): l2 sensitivity Delta0^(1/2).

    Source:
        Code of Gopi et al. 2020 ("count histogram"); half of delta for noise, half for new items.
    """

    noise: ClassVar[Noise] = Noise.GAUSSIAN
    count_law = Count.by_copies

    def parameters(self, calibration: Calibration) -> Parameters:
        """Noise of [P1] times Delta0^(1/2), threshold for Delta0 new items of count 1."""
        half = split_half(calibration)
        scale = np.asarray(half.sigma * np.sqrt(half.max_items_per_user), np.float64)
        threshold = count_gaussian_threshold(
            scale=scale,
            delta=np.asarray(half.delta / 2),
            max_items_per_user=np.asarray(half.max_items_per_user),
        )
        return one_round(scale, threshold)


@dataclass(frozen=True)
class LaplaceCount(Count):
    """Counts of distinct holders with noise Lap(Delta0/eps), all of delta for new items.

    Source:
        Code of Gopi et al. 2020.
    """

    noise: ClassVar[Noise] = Noise.LAPLACE
    count_law = Count.by_copies

    def parameters(self, calibration: Calibration) -> Parameters:
        """Noise of scale Delta0/eps, `count_threshold`."""
        eps, bound = calibration.eps, calibration.max_items_per_user
        threshold = count_threshold(eps=eps, delta=calibration.delta, max_items_per_user=bound)
        return one_round(np.asarray(bound / np.asarray(eps)), threshold)


@dataclass(frozen=True)
class Korolova(Count):
    """Counts with noise Lap(d/eps), d = Delta0, and the published threshold.

    Korolova et al. keep a user's first d queries and let one query count up to d times; here users
    hold sets, and keep a uniform subset of d.

    Source:
        Korolova, Kenthapadi, Mishra, Ntoulas 2009; proof in `korolova_threshold`.
    """

    noise: ClassVar[Noise] = Noise.LAPLACE
    count_law = Count.by_copies

    def parameters(self, calibration: Calibration) -> Parameters:
        """Noise of scale d/eps, `korolova_threshold`."""
        eps, bound = calibration.eps, calibration.max_items_per_user
        threshold = korolova_threshold(eps=eps, delta=calibration.delta, max_items_per_user=bound)
        return one_round(np.asarray(bound / np.asarray(eps)), threshold)
