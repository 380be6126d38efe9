"""Policy Laplace: users fill towards the cap by a total of at most 1, then Laplace noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from theory.calibration import Calibration
from wgm_jax.mechanism import Array
from wgm_jax.set_union.frame import Parameters
from wgm_jax.set_union.noise import Noise
from wgm_jax.set_union.sequential import Policy
from wgm_jax.set_union.weighted_laplace import laplace_parameters


@dataclass(frozen=True)
class PolicyLaplace(Policy):
    """Kept items rise by min(gap, level), the level such that the total is 1.

    In l1 the Jacobian of gaps -> gaps - step has column sums of at most 1 (what a filled item does
    not take goes to the m active ones, 1/m each), so the map is non-expansive. t new items have
    equal gaps and get at most 1/t each.

    Source:
        Gopi et al. 2020, Algorithm 5.
    """

    noise: ClassVar[Noise] = Noise.LAPLACE

    def parameters(self, calibration: Calibration) -> Parameters:
        """Noise of scale 1/eps, threshold T_L; cap = threshold + alpha/eps."""
        return laplace_parameters(calibration, self.alpha)

    def step(self, gaps: Array, kept: Array) -> jax.Array:
        """The smaller of gap and level."""
        return jnp.minimum(gaps, level(gaps, kept))


def level(gaps: Array, kept: Array) -> jax.Array:
    """The level with sum of min(gap, level) = 1; infinite if all gaps sum up to less.

    From below: given a level, the items under it are filled, and the rest of the budget divided by
    the number of the others is the next. Levels rise to the solution, in as many steps as there are
    distinct fillings; mostly two. No sorting.
    """
    count = jnp.sum(kept, dtype=gaps.dtype)

    def fill(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple:
        _, filled, level = state
        under = kept & (gaps < level)
        number = jnp.sum(under, dtype=gaps.dtype)
        rest = jnp.maximum(1 - jnp.sum(jnp.where(under, gaps, 0)), 0)
        return filled, number, jnp.where(number < count, rest / (count - number), jnp.inf)

    def changes(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        earlier, now, _ = state
        return now > earlier

    none = jnp.zeros((), gaps.dtype)
    start = (none - 2, none - 1, 1 / jnp.maximum(count, 1))
    return jax.lax.while_loop(changes, fill, start)[2]
