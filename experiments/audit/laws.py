"""Exact laws of a released set: mixtures of independent releases, or a table of outputs.

A mixture component is one outcome of the randomness before the noise (which items every user
keeps); given it, items are released independently. Where nothing is subsampled there is one
component, and a law of thousands of items is two numbers per item.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float64

from theory._check import invalid

# Probabilities that should sum to 1 may miss it by this much.
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class SetLaw:
    """Law of a set: with probability weights[k], items come out independently.

    Attributes:
        items: Names, distinct.
        weights: Probability of every component, sum 1.
        released: P(item is released | component); exactly 0 for an item that cannot be.
        missed: 1 - released, computed from its own tail so that it does not cancel.

    Example:
        A user keeps one of two items, which then comes out with probability 0.1:

        >>> law = SetLaw(("a", "b"), np.array([0.5, 0.5]), 0.1 * np.eye(2), 1 - 0.1 * np.eye(2))
        >>> law.num_components, (law.weights @ law.released).tolist()
        (2, [0.05, 0.05])
    """

    items: tuple[Hashable, ...]
    weights: Float64[np.ndarray, " components"]
    released: Float64[np.ndarray, "components items"]
    missed: Float64[np.ndarray, "components items"]

    def __post_init__(self) -> None:
        if len(set(self.items)) < len(self.items):
            invalid("items", self.items, "must be distinct")
        _check_distribution("weights", self.weights)
        for name in ("released", "missed"):
            values = getattr(self, name)
            if not np.all((values >= 0) & (values <= 1)):
                invalid(name, values, "must be probabilities")
        if not np.allclose(self.released + self.missed, 1, rtol=0, atol=_ROUNDING):
            invalid("missed", self.missed, "must be 1 - released")

    @classmethod
    def product(cls, items: Any, released: Any, missed: Any | None = None) -> SetLaw:
        """One component.

        Example:
            >>> SetLaw.product("ab", [0.25, 0.5]).missed
            array([[0.75, 0.5 ]])
        """
        known = np.atleast_2d(np.asarray(released, np.float64))
        tail = 1 - known if missed is None else np.atleast_2d(np.asarray(missed, np.float64))
        return cls(tuple(items), np.ones(1), known, tail)

    @property
    def num_components(self) -> int:
        """Number of components."""
        return self.weights.size

    def columns(self, items: tuple[Hashable, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Released and missed, (components, items), in another order; absent items are missed."""
        place = {item: index for index, item in enumerate(self.items)}
        released = np.zeros((self.num_components, len(items)))
        missed = np.ones_like(released)
        known = [index for index, item in enumerate(items) if item in place]
        source = [place[items[index]] for index in known]
        released[:, known], missed[:, known] = self.released[:, source], self.missed[:, source]
        return released, missed


@dataclass(frozen=True, eq=False)
class TableLaw:
    """Law of any discrete output: its probability, output by output.

    Attributes:
        probabilities: Output to probability, sum 1. Outputs are sets, lists, or anything hashable.

    Example:
        >>> TableLaw({(): 0.25, ("a",): 0.75}).probabilities[("a",)]
        0.75
    """

    probabilities: Mapping[Hashable, float]

    def __post_init__(self) -> None:
        _check_distribution("probabilities", np.asarray([*self.probabilities.values()], float))


Law: TypeAlias = SetLaw | TableLaw
"""An exact law of an output."""


def _check_distribution(name: str, values: np.ndarray) -> None:
    if not (np.all(values >= 0) and abs(float(values.sum()) - 1) <= _ROUNDING):
        invalid(name, values, "must be probabilities that sum to 1")
