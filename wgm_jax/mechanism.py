"""What the engine asks of a mechanism: a host-side `prepare` and a traced `run`."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol, TypeAlias, runtime_checkable

import jax
import numpy as np
from jaxtyping import Bool

from theory import UserItems
from theory.calibration import Calibration

__all__ = ["Mechanism", "Release", "grid_field", "padded_length"]

# What a state holds: NumPy arrays when prepared, JAX arrays or tracers inside `run`.
Array: TypeAlias = jax.Array | np.ndarray


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Release:
    """Output of one trial of a set-union mechanism.

    Attributes:
        released: Entry i says whether item i is released; entries from num_items on are padding
            and never released.

    Example:
        >>> Release(np.array([True, False, False, False])).released.nonzero()
        (array([0]),)
    """

    released: Bool[Array, " *grid padded_items"]


@runtime_checkable
class Mechanism(Protocol):
    """Two pure functions. Implementations are frozen, hashable dataclasses.

    A state is a frozen dataclass registered as a pytree, holding arrays only: sizes belong into
    shapes (rounded up by `padded_length`), numbers such as sigma into traced scalars, so that a
    sweep compiles once per shape. Fields made by `grid_field` have a leading axis over
    calibrations; `run` sees them without it. All points of a grid are served by the same draws.

    Example:
        One that tosses a fair coin for every item, which is not private. `simulate` takes it as
        `mechanism=Coins()`:

        >>> @jax.tree_util.register_dataclass
        ... @dataclasses.dataclass(frozen=True)
        ... class State:
        ...     held: Array
        >>> @dataclasses.dataclass(frozen=True)
        ... class Coins:
        ...     def prepare(self, data, calibration):
        ...         return State(np.arange(padded_length(data.num_items)) < data.num_items)
        ...     def run(self, key, state):
        ...         coins = jax.random.bernoulli(key, shape=state.held.shape)
        ...         return Release(state.held & coins)
        >>> isinstance(Coins(), Mechanism)
        True
        >>> Coins().prepare(UserItems.from_sets([("a", "b")]), None).held.sum()
        np.int64(2)
    """

    def prepare(self, data: UserItems, calibration: Calibration) -> Any:
        """State for a data set and a calibration of shape (num_points,); NumPy, once per data."""
        ...

    def run(self, key: jax.Array, state: Any) -> Release:
        """One trial, traced: all randomness comes from `key`."""
        ...


def grid_field() -> Any:
    """Dataclass field of a state with a leading axis over the points of a calibration grid.

    Returns:
        The field, for `prepare` to fill and `run` to see without that axis.

    Example:
        >>> @jax.tree_util.register_dataclass
        ... @dataclasses.dataclass(frozen=True)
        ... class State:
        ...     base: Array
        ...     threshold: Array = grid_field()
        >>> grid_axes(State(np.zeros(4), np.ones(3)))
        [None, 0]
    """
    return dataclasses.field(metadata={"grid": True})


def grid_axes(state: Any) -> list[int | None]:
    """Per leaf of `state`: 0 where it has the grid axis, None where all points share it."""
    axes: list[int | None] = []
    for field in dataclasses.fields(state):
        leaves = jax.tree.leaves(getattr(state, field.name))
        axes += [0 if field.metadata.get("grid") else None] * len(leaves)
    return axes


def padded_length(length: int) -> int:
    """`length` rounded up to 4, 5, 6 or 7 times a power of two: at most 25 % more.

    Data sets of similar size then share one compiled program.

    Args:
        length: At least 0.

    Returns:
        The padded length; 0 for 0.

    Example:
        >>> [padded_length(k) for k in (0, 3, 9, 1000, 23392)]
        [0, 8, 10, 1024, 24576]
    """
    if length == 0:
        return 0
    step = 2
    while 7 * step < length:
        step *= 2
    return max(4 * step, -(-length // step) * step)
