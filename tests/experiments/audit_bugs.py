"""Mechanisms with one planted bug each, for the audit to find."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri

from theory import UserItems
from theory.lower_bounds import optimal_miss_probability, optimal_selection_probability
from wgm_jax.selection.hitting import UserPeeling, UserPeelingEarlyStop
from wgm_jax.selection.joint import Joint
from wgm_jax.selection.laws import in_rounds
from wgm_jax.selection.limited_domain import LimitedDomain
from wgm_jax.selection.permute_and_flip import PermuteAndFlip, chances
from wgm_jax.selection.selector import domain_items
from wgm_jax.selection.top_k import OneshotLaplace, Peeling
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


# ---- selections


@dataclass(frozen=True)
class HalfScale(Peeling):
    """Half of the noise, as if counts moved both ways and the factor 2 had been cancelled."""

    def prepare(self, data, *, eps, delta, k, max_items_per_user):
        found = super().prepare(
            data, eps=eps, delta=delta, k=k, max_items_per_user=max_items_per_user
        )
        ranking = dataclasses.replace(found.ranking, scores=2 * found.ranking.scores)
        return dataclasses.replace(found, ranking=ranking)


@dataclass(frozen=True)
class OneRoundOnly(Peeling):
    """The noise of one round for k of them."""

    def prepare(self, data, *, eps, delta, k, max_items_per_user):
        one = super().prepare(data, eps=eps, delta=delta, k=1, max_items_per_user=1)
        return dataclasses.replace(one, k=k)


@dataclass(frozen=True, kw_only=True)
class UserPeelingOneRound(UserPeeling):
    """The same in user peeling."""

    def noise_scale(self, *, eps, delta, k):
        return super().noise_scale(eps=eps, delta=delta, k=1)


@dataclass(frozen=True)
class FirstOfEqual(PermuteAndFlip):
    """Items of equal count get no noise of their own: the first of them has all their chances."""

    def law(self, state, domain):
        items = domain_items(domain, state.items.size)
        classes = np.repeat(np.arange(state.scores.size), np.diff(state.starts))
        scores = dict(zip(state.items.tolist(), state.scores[classes].tolist(), strict=True))

        def first(left):
            found = dict(zip(left, chances(np.array([scores[x] for x in left])), strict=True))
            total = {score: 0.0 for score in scores.values()}
            for item, chance in found.items():
                total[scores[item]] += float(chance)
            return [total.pop(scores[item], 0.0) for item in left]

        return in_rounds(first, tuple(items), state.k)


@dataclass(frozen=True)
class NoOffset(LimitedDomain):
    """The threshold is the largest count outside, nothing added."""

    def prepare(self, data, *, eps, delta, k, max_items_per_user):
        found = super().prepare(
            data, eps=eps, delta=delta, k=k, max_items_per_user=max_items_per_user
        )
        return dataclasses.replace(found, offset=0.0)


@dataclass(frozen=True)
class NotCut(OneshotLaplace):
    """Noise for users of one item, who may hold several."""

    def prepare(self, data, *, eps, delta, k, max_items_per_user):
        return OneshotLaplace(clip=True).prepare(
            UserItems(items=data.items, offsets=np.arange(data.items.size + 1)),
            eps=eps, delta=delta, k=k, max_items_per_user=1,
        )  # fmt: skip


@dataclass(frozen=True)
class TakenForMonotone(Joint):
    """The exponential mechanism of e^(-eps loss), as if the loss moved one way only."""

    def prepare(self, data, *, eps, delta, k, max_items_per_user):
        return super().prepare(
            data, eps=2 * eps, delta=delta, k=k, max_items_per_user=max_items_per_user
        )


# Mechanism, whether the domain is found, k, least found delta that the search must reach.
SELECTION_BUGS = {
    "scale halved": (HalfScale(), False, 2, 1e-2),
    "scale not times k": (OneRoundOnly(), False, 3, 1e-2),
    "user peeling, scale not times k": (UserPeelingOneRound(), True, 3, 1e-4),
    "early stop": (UserPeelingEarlyStop(), True, 2, 0.99),
    "name-dependent tie-breaking": (FirstOfEqual(), False, 2, 0.3),
    "limited domain without the offset": (NoOffset(), False, 2, 0.1),
    "users not cut": (NotCut(), False, 3, 1e-2),
    "loss taken for monotone": (TakenForMonotone(), False, 2, 1e-2),
}
