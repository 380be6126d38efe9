"""Policy Greedy: users fill one item after the other, in their own order, then Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from theory.calibration import Calibration
from wgm_jax.mechanism import Array
from wgm_jax.set_union.frame import Parameters, Weights, one_round
from wgm_jax.set_union.kept_sets import KeptSets
from wgm_jax.set_union.noise import Noise
from wgm_jax.set_union.sequential import Policy, before
from wgm_jax.set_union.thresholds import greedy_threshold


@dataclass(frozen=True)
class PolicyGreedy(Policy):
    """A user fills the gaps of its kept items in the order of its list until it has spent 1.

    The order does not depend on other users, so the Jacobian of gaps -> gaps - step has l1 column
    sums of at most 1: non-expansive. The list is by the user's own multiplicity where the data have
    one; in sets, that of the items' names. Every kept item gets noise, and the threshold pays for
    those of weight 0.

    Source:
        Carvalho, Wang, Gondara 2022 ("GW"), with a contribution bound and a repaired threshold.
    """

    noise: ClassVar[Noise] = Noise.LAPLACE
    by_name: ClassVar[bool] = True

    def parameters(self, calibration: Calibration) -> Parameters:
        """Noise of scale 1/eps, `greedy_threshold`; cap = threshold + alpha/eps."""
        return greedy_parameters(calibration, calibration.max_items_per_user, self.alpha)

    def step(self, gaps: Array, kept: Array) -> jax.Array:
        """The gap, as far as the budget goes."""
        return jnp.minimum(gaps, jnp.maximum(1 - before(gaps), 0))


@dataclass(frozen=True)
class PolicyGreedyPublished(PolicyGreedy):
    """As published: no contribution bound, threshold rho for one item. Not private: a specimen.

    The code's dictionary holds every item that a user looked at; those of weight 0 get noise and
    can be released: t new items have delta = 1 - (1 - delta)(1 - delta e^(-eps))^(t - 1).

    Source:
        Code of Carvalho, Wang, Gondara 2022.
    """

    clips: ClassVar[bool] = False

    def parameters(self, calibration: Calibration) -> Parameters:
        """Noise of scale 1/eps, threshold rho whatever Delta0; cap = threshold + alpha/eps."""
        return greedy_parameters(calibration, 1, self.alpha)


@dataclass(frozen=True)
class PolicyGreedyPositive(PolicyGreedyPublished):
    """As published, but only items of positive weight get noise. Not private: a specimen.

    One more user pushes later users on to items that had weight 0 and now may come out.

    Source:
        A plausible repair of the published code.
    """

    def weigh(self, sets: KeptSets, parameters: Parameters) -> Weights:
        """The same weights; support where they are positive."""
        weights = super().weigh(sets, parameters).weights
        return Weights(weights, jnp.asarray(weights > 0))


def greedy_parameters(
    calibration: Calibration, bound: int | np.ndarray, alpha: float | int
) -> Parameters:
    """One round with noise of scale 1/eps and the threshold for `bound` new items."""
    eps, delta = calibration.eps, calibration.delta
    threshold = greedy_threshold(eps=eps, delta=delta, max_items_per_user=bound)
    return one_round(1 / np.asarray(eps, np.float64), threshold, alpha)
