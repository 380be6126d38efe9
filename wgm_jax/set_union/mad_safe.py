"""Rerouted weights after the idea of MAD, with constants that we can prove."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from theory._check import check_count, check_positive
from wgm_jax.set_union.dp_sips import InRounds
from wgm_jax.set_union.frame import Parameters, Weights
from wgm_jax.set_union.kept_sets import KeptSets


@dataclass(frozen=True)
class MadSafe(InRounds):
    """Users of few items reroute what lies beyond the cap to all of their items.

    With q kept items and the cap tau = T + beta sigma: (1) users with q <= d_max give 1/q to each
    item, w0 in total; r(x) = max(0, 1 - tau/w0(x)) is beyond the cap and is taken back; (2) such a
    user gets back e = sum of r(x)/q, and adds e/(2 d_max) to each of its items; (3) it adds
    q^(-1/2) - 1/q, and users with more items q^(-1/2).

    This is not the published MAD, whose code we do not have: with e/d_max, as remembered, the l2
    sensitivity exceeds 1. With half of it and d_max >= 2 it is at most 1. New items get q^(-1/2)
    or more, so that in one round all of delta may be spent twice, as in [P3] (docs/audit.md).

    Attributes:
        split: Shares of the budget; one round by default.
        d_max: Most kept items of a user who reroutes, at least 2.
        beta: The cap is the threshold plus beta sigma; above 0.

    Raises:
        InvalidInput: d_max below 2, beta not above 0, or a bad split.

    Source:
        The idea: Chen, Cohen-Addad, Epasto, Zadimoghaddam 2025; the constants are ours.
    """

    split: tuple[float, ...] = (1.0,)
    d_max: int = 50
    beta: float | int = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("d_max", self.d_max, minimum=2)
        check_positive("beta", self.beta)

    @property
    def scales_to_cap(self) -> float | int:
        """The attribute beta."""
        return self.beta

    def weigh(self, sets: KeptSets, parameters: Parameters) -> Weights:
        """Four sums over pairs."""
        number = sets.counts
        count = jnp.maximum(number, 1).astype(parameters.scale.dtype)
        reroutes = number <= self.d_max
        even = jnp.where(reroutes, 1 / count, 0)
        first = sets.add_up(sets.to_pairs(even))
        cap = jnp.asarray(parameters.cap)
        beyond = jnp.where(first > cap, 1 - cap / jnp.maximum(first, cap), 0)
        back = sets.by_user(beyond.at[sets.items].get(mode="fill", fill_value=0)) * even
        rest = 1 / jnp.sqrt(count) - even + back / (2 * self.d_max)
        return Weights(jnp.minimum(first, cap) + sets.add_up(sets.to_pairs(rest)), sets.support)


# Our stand-in for MAD2R, whose rule for the second round is not known to us.
TWO_ROUNDS = MadSafe(split=(0.1, 0.9))
