"""Mechanisms with one planted bug each, for the audit to find."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri

from theory.lower_bounds import optimal_miss_probability, optimal_selection_probability
from wgm_jax.set_union.dp_sips import DpSips
from wgm_jax.set_union.frame import Weights, one_round
from wgm_jax.set_union.noise import Noise
from wgm_jax.set_union.optimal_selection import OptimalSelection
from wgm_jax.set_union.sequential import Policy
from wgm_jax.set_union.thresholds import gaussian_threshold, laplace_threshold


@dataclass(frozen=True)
class Weighted(DpSips):
    """The weighted Gaussian mechanism in the frame, [P1]: one round. No bug."""

    split: tuple[float, ...] = (1.0,)


@dataclass(frozen=True)
class HalfSigma(Weighted):
    """Noise is half of what was calibrated; the threshold is as it was."""

    def parameters(self, calibration):
        right = super().parameters(calibration)
        return dataclasses.replace(right, scale=right.scale / 2)


@dataclass(frozen=True)
class ThresholdAtMost(Weighted):
    """The threshold looks only at t = Delta0 new items, not at t = 1."""

    def parameters(self, calibration):
        right = super().parameters(calibration)
        count = np.asarray(calibration.max_items_per_user)
        each = -np.expm1(np.log1p(-calibration.delta / 2) / count)
        wrong = count**-0.5 - calibration.sigma * ndtri(each)
        return dataclasses.replace(right, threshold=np.asarray(wrong)[..., None])


@dataclass(frozen=True)
class NoSubsampling(Weighted):
    """Users keep all items, each with the weight of one of Delta0."""

    clips: ClassVar[bool] = False
    bound: int = 4

    def weigh(self, sets, parameters):
        count = jnp.clip(sets.counts, 1, self.bound).astype(parameters.scale.dtype)
        return Weights(sets.add_up(sets.to_pairs(1 / jnp.sqrt(count))), sets.support)


@dataclass(frozen=True)
class NotNormalised(Weighted):
    """Every kept item weighs 1."""

    def weigh(self, sets, parameters):
        ones = jnp.ones(sets.items.shape, parameters.scale.dtype)
        return Weights(sets.add_up(ones), sets.support)


@dataclass(frozen=True)
class SpentTwice(DpSips):
    """Two rounds, each with the noise and the threshold of a single one."""

    split: tuple[float, ...] = (0.5, 0.5)

    def parameters(self, calibration):
        one = Weighted().parameters(calibration)
        return jax.tree.map(lambda leaf: np.repeat(leaf, 2, axis=-1), one)


@dataclass(frozen=True)
class DeltaNotShared(DpSips):
    """Two rounds, noise composed correctly, but all of delta for new items in each."""

    split: tuple[float, ...] = (0.5, 0.5)

    def parameters(self, calibration):
        right = super().parameters(calibration)
        shape = right.scale.shape
        threshold = gaussian_threshold(
            sigma=right.scale,
            delta=np.broadcast_to(np.asarray(calibration.delta)[..., None], shape),
            max_items_per_user=np.broadcast_to(
                np.asarray(calibration.max_items_per_user)[..., None], shape
            ),
        )
        return dataclasses.replace(right, threshold=threshold)


@dataclass(frozen=True)
class NotAbove(OptimalSelection):
    """At least the threshold, not above it: one holder less is needed."""

    def probabilities(self, weights, parameters):
        budget = {"eps": parameters.eps, "delta": parameters.delta}
        counts = np.rint(weights) + 1
        return (
            optimal_selection_probability(counts, **budget),
            optimal_miss_probability(counts, **budget),
        )


@dataclass(frozen=True)
class TiesByName(Policy):
    """Users fill the heaviest of their items first, ties by name, then Laplace noise."""

    noise: ClassVar[Noise] = Noise.LAPLACE

    def parameters(self, calibration):
        threshold = laplace_threshold(
            eps=calibration.eps,
            delta=calibration.delta,
            max_items_per_user=calibration.max_items_per_user,
        )
        return one_round(1 / np.asarray(calibration.eps, np.float64), threshold, self.alpha)

    def step(self, gaps, kept):
        order = jnp.argsort(jnp.where(gaps > 0, gaps, jnp.inf), stable=True)
        ordered = gaps[order]
        spent = jnp.cumsum(ordered) - ordered
        return (
            jnp.zeros_like(gaps)
            .at[order]
            .set(jnp.minimum(ordered, jnp.maximum(1 - spent, 0)), unique_indices=True)
        )


# Mechanism, claimed eps, least found / claimed delta that the search must reach.
BUGS = {
    "sigma halved": (HalfSigma(), 1.0, 100.0),
    "threshold at t = Delta0 only, eps = 10": (ThresholdAtMost(), 10.0, 1.5),
    "no subsampling": (NoSubsampling(), 1.0, 10.0),
    "weights not normalised": (NotNormalised(), 1.0, 10.0),
    "budget spent twice": (SpentTwice(), 1.0, 1.5),
    "delta not shared by two rounds": (DeltaNotShared(), 1.0, 1.5),
    ">= for >": (NotAbove(), 1.0, 2.0),
    "name-dependent tie-breaking": (TiesByName(), 1.0, 1000.0),
}
