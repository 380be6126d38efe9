"""Policy Gaussian: users descend towards the cap within a Euclidean ball, then Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from theory.calibration import Calibration, calibrate
from wgm_jax.mechanism import Array
from wgm_jax.set_union.frame import Parameters, one_round
from wgm_jax.set_union.noise import Noise
from wgm_jax.set_union.sequential import Policy, before


@dataclass(frozen=True)
class PolicyGaussian(Policy):
    """l2 descent: a step of length at most 1 straight towards the cap in all kept items.

    The map gaps -> gaps - step is the proximal operator of the Euclidean norm, hence non-expansive.

    The calibration is used as it is, full delta included: new items have equal, largest gaps, so
    each of m gets w = t^(-1/2), t real with m <= t <= Delta0, and the others move by at most
    (1 - m/t)^(1/2). That is the case x = m/t of the inequality behind [P2], which holds for every
    real x (docs/audit.md has the proof).

    Source:
        Gopi et al. 2020, Algorithm 6; alpha = 3 in the code of Carvalho et al. 2022 and of the
        missing-mass paper (5 in that of Gopi et al.). With "split" delta/2 for noise and delta/2
        for new items, as published.
    """

    noise: ClassVar[Noise] = Noise.GAUSSIAN

    def parameters(self, calibration: Calibration) -> Parameters:
        """Noise and threshold of the calibration; cap = threshold + alpha sigma."""
        return one_round(calibration.sigma, calibration.threshold, self.alpha)

    def step(self, gaps: Array, kept: Array) -> jax.Array:
        """Gaps times min(1, 1/their length)."""
        return jnp.asarray(gaps) / jnp.maximum(jnp.sqrt(jnp.sum(gaps * gaps)), 1)


@dataclass(frozen=True)
class PolicyGaussianL1(Policy):
    """Sound l1 descent: every kept item rises by q^(-1/2), q kept items, but not beyond the cap.

    The map gaps -> gaps - step is soft thresholding, the proximal operator of a multiple of the l1
    norm, hence non-expansive in the Euclidean norm; the step is at most 1 long. q counts the kept
    items, not those still below the cap, which would depend on other users.

    The calibration is used as it is, full delta included: a user who keeps t items, m of them new,
    gives each new one exactly t^(-1/2) and moves the others by at most ((t - m)/t)^(1/2), before
    and, as later users do not expand it, after all users. These are the cases of [P2], and its
    divergences grow with the movement.

    Source:
        Repaired from the published code; the proof is the text above.
    """

    noise: ClassVar[Noise] = Noise.GAUSSIAN

    def parameters(self, calibration: Calibration) -> Parameters:
        """Noise and threshold of the calibration; cap = threshold + alpha sigma."""
        return one_round(calibration.sigma, calibration.threshold, self.alpha)

    def step(self, gaps: Array, kept: Array) -> jax.Array:
        """The smaller of gap and q^(-1/2)."""
        return jnp.minimum(gaps, jax.lax.rsqrt(jnp.sum(kept, dtype=gaps.dtype)))


@dataclass(frozen=True)
class PolicyGaussianL1Published(Policy):
    """l1 descent as in two published codes. Not private: a specimen for audits.

    Items below the cap in the order of their names; with r of them left, the current one included,
    and budget B = 1 at first: while g^2 r < B, fill the item's gap g and reduce B by g^2; else add
    B r^(-1/2) to all that are left. Sorting by name, not by gap, lets steps overshoot the cap, and
    one more user can move the others' weights by more than 1.

    Source:
        Code of Gopi et al. 2020 (`maxsum`) and of the missing-mass paper.
    """

    noise: ClassVar[Noise] = Noise.GAUSSIAN
    by_name: ClassVar[bool] = True

    def parameters(self, calibration: Calibration) -> Parameters:
        """Noise and threshold of [P1]; cap = threshold + alpha sigma."""
        half = split_half(calibration)
        return one_round(half.sigma, half.threshold, self.alpha)

    def step(self, gaps: Array, kept: Array) -> jax.Array:
        """Fill in list order, names ascending, then spread what is left of the budget."""
        below = gaps > 0
        here = below.astype(gaps.dtype)
        left = jnp.sum(here) - before(here)
        budget = 1 - before(gaps * gaps)
        stops = below & (gaps * gaps * left >= budget)
        earlier = before(stops.astype(gaps.dtype)) > 0
        first = stops & ~earlier
        spread = jnp.sum(jnp.where(first, budget * jax.lax.rsqrt(jnp.maximum(left, 1)), 0))
        return jnp.where(earlier | first, spread * here, gaps)


def split_half(calibration: Calibration) -> Calibration:
    """The calibration [P1] of the same eps, delta and Delta0."""
    return calibrate(
        eps=calibration.eps,
        delta=calibration.delta,
        max_items_per_user=calibration.max_items_per_user,
        method="split",
    )
