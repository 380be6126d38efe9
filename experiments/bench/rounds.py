"""Timing in turns: every competitor once per round, in the same order, round after round."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class Spread:
    """Middle and ends of what was measured in several rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: np.ndarray | list[float]) -> Spread:
        """Of one number per round."""
        return cls(float(np.median(values)), float(np.min(values)), float(np.max(values)))


def in_turns(
    timed: Mapping[Name, Callable[[], float]],
    repeats: int,
    report: Callable[[], object] = lambda: None,
) -> dict[Name, np.ndarray]:
    """Call everything once per round.

    Args:
        timed: Functions that return what they measured.
        repeats: Number of rounds.
        report: Called after every call.

    Returns:
        (repeats,) float64 for every name. A ratio of two of them is a ratio within rounds.

    Example:
        >>> calls = iter(range(6))
        >>> in_turns({"a": lambda: 1.0 * next(calls), "b": lambda: 2.0 * next(calls)}, 3)
        {'a': array([0., 2., 4.]), 'b': array([ 2.,  6., 10.])}
    """
    found: dict[Name, list[float]] = {name: [] for name in timed}
    for _ in range(repeats):
        for name, function in timed.items():
            found[name].append(function())
            report()
    return {name: np.array(values) for name, values in found.items()}
