"""Policies: users act one after the other on the weights that earlier users have left."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from theory._check import check_positive, invalid
from wgm_jax.mechanism import Array
from wgm_jax.set_union.frame import FramedMechanism, Parameters, Weights
from wgm_jax.set_union.kept_sets import KeptSets

ORDERS = ("stored", "random")
_ROW = 64


@dataclass(frozen=True)
class Policy(FramedMechanism):
    """Users one by one raise the weights of their kept items, none beyond the cap.

    A policy is sound if a step has norm at most 1 and the map from gaps to gaps - step is
    non-expansive in that norm: later users then cannot widen the difference that one more user
    makes. The order of the other users must be the same in neighbouring data: stored, or uniform
    and secret, never a shuffle of fixed seed.

    Attributes:
        alpha: The cap is the threshold plus alpha times the noise scale; above 0.
        order: "stored", or "random": a secret uniform order, new in every trial.

    Raises:
        InvalidInput: alpha is not above 0, or the order is unknown.

    Source:
        Gopi et al. 2020, Section 4, for the idea.
    """

    sequential: ClassVar[bool] = True
    alpha: float | int = 3.0
    order: str = "stored"

    def __post_init__(self) -> None:
        check_positive("alpha", self.alpha)
        if self.order not in ORDERS:
            invalid("order", self.order, f"must be one of {', '.join(ORDERS)}")

    @abstractmethod
    def step(
        self, gaps: Float[Array, " slots"], kept: Bool[Array, " slots"]
    ) -> Float[jax.Array, " slots"]:
        """What one user adds to its items, in the order of its list.

        Args:
            gaps: Cap minus weight of every kept item, but at least 0; 0 where nothing is kept.
            kept: Whether the slot holds a kept item.

        Returns:
            Increments, 0 where nothing is kept.
        """

    def weigh(self, sets: KeptSets, parameters: Parameters) -> Weights:
        """All users, in the order of `sets`."""
        items, mask, cap = (jnp.asarray(v) for v in (sets.items, sets.kept, parameters.cap))
        slots = jnp.arange(sets.longest, dtype=jnp.int32)

        def act(weights: jax.Array, user: tuple) -> tuple[jax.Array, None]:
            start, size = user
            own = jax.lax.dynamic_slice(items, (start,), (sets.longest,))
            kept = jax.lax.dynamic_slice(mask, (start,), (sets.longest,)) & (slots < size)
            found = weights.at[own].get(mode="fill", fill_value=0)
            gaps = jnp.where(kept, jnp.maximum(cap - found, 0), 0)
            return weights.at[own].add(self.step(gaps, kept), mode="drop"), None

        zero = jnp.zeros(sets.num_items, cap.dtype)
        users = jnp.asarray(sets.starts), jnp.asarray(sets.sizes)
        return Weights(jax.lax.scan(act, zero, users)[0], sets.support)

    def arranged(self, key: jax.Array, sets: KeptSets) -> KeptSets:
        """Stored or shuffled users."""
        if self.order == "stored":
            return sets
        shuffled = jax.random.permutation(key, sets.starts.shape[0])
        starts, sizes = jnp.asarray(sets.starts)[shuffled], jnp.asarray(sets.sizes)[shuffled]
        return dataclasses.replace(sets, starts=starts, sizes=sizes)


def before(values: Float[Array, " slots"]) -> Float[jax.Array, " slots"]:
    """Sum of the entries before every entry.

    By two triangular matrices, over rows of 64 entries and over the sums of rows: XLA's own
    cumulative sum is a hundred small kernels on the CPU, and would dominate the step of a user.
    """
    length = values.shape[0]
    rows = -(-length // _ROW)
    table = jnp.pad(jnp.asarray(values), (0, rows * _ROW - length)).reshape(rows, _ROW)
    within = _sums_before(table)
    above = _sums_before(jnp.sum(table, axis=1)[None, :])[0]
    return (within + above[:, None]).ravel()[:length]


def _sums_before(table: jax.Array) -> jax.Array:
    size = table.shape[1]
    earlier = np.triu(np.ones((size, size), table.dtype), 1)
    # Highest: a GPU would round the factors to ten bits.
    return jnp.matmul(table, earlier, precision="highest")
