"""Searches among whole numbers: the least that reaches a target, and the best of a curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64

# Says how far a search is: done, total (a guess while it is not known), what is tried.
Progress = Callable[[int, int, str], Any]

_DIGITS = 5
_DECADE = 9 * 10 ** (_DIGITS - 1)  # numbers of five digits in a decade
_FINE = 8  # numbers tried at a time around the best


@dataclass(frozen=True, eq=False)
class Search:
    """Looks among whole numbers of five significant digits for the least that reaches a target."""

    value: Callable[[int], float]
    target: float
    low: int
    high: int
    label: Callable[[int], str]
    progress: Progress | None

    def least(self, guess: int, factor: float) -> int | None:
        """The least n from `low` to `high` with value(n) <= target, None if `high` misses it.

        Exact for a falling value. Otherwise n reaches the target and the number before misses it.
        """
        known: dict[int, float] = {}

        def excess(index: int) -> float:
            if index not in known:
                number = number_of(index)
                if self.progress is not None:
                    self.progress(len(known), max(12, len(known) + 1), self.label(number))
                # In logarithms the curve is nearly straight.
                known[index] = float(np.log(max(self.value(number), 1e-300) / self.target))
            return known[index]

        low, high = self._bracket(excess, min(max(guess, self.low), self.high), factor)
        if high is None:
            return None
        above, below = excess(low), excess(high)
        width, slow, side = high - low, 0, 0
        while high - low > 1:
            # False position (Illinois); bisection where that has hardly narrowed the bracket.
            middle = (low + high) // 2
            if slow < 2 and np.isfinite(above):
                ends = np.log(number_of(low)), np.log(number_of(high))
                log_number = ends[0] + (ends[1] - ends[0]) * above / (above - below)
                middle = min(max(index_of(round(np.exp(log_number))), low + 1), high - 1)
            at = excess(middle)
            if at <= 0:
                high, below, above = middle, at, above / 2 if side < 0 else above
            else:
                low, above, below = middle, at, below / 2 if side > 0 else below
            side = -1 if at <= 0 else 1
            slow = slow + 1 if high - low > width / 2 else 0
            width = high - low
        return number_of(high)

    def _bracket(
        self, excess: Callable[[int], float], start: int, factor: float
    ) -> tuple[int, int | None]:
        """Indices of a number that misses and a larger one that reaches the target.

        Equal ones where `low` reaches it, None for the second where `high` does not.
        """
        first, last = index_of(self.low), index_of(self.high)
        at = index_of(start)
        reached = excess(at) <= 0
        while at != (first if reached else last):
            number = number_of(at) / factor if reached else number_of(at) * factor
            after = min(max(index_of(int(number)), first), last)
            # With few digits a small factor may lead nowhere.
            after = after if after != at else at + (-1 if reached else 1)
            if (excess(after) <= 0) != reached:
                return (after, at) if reached else (at, after)
            at, factor = after, min(factor**2, 10.0)
        return (first, first) if reached else (last, None)


def number_of(index: int) -> int:
    """The index-th whole number of at most five significant digits.

    Example:
        >>> [number_of(i) for i in (1, 99_999, 100_000, 100_001, 189_999, 190_000)]
        [1, 99999, 100000, 100010, 999990, 1000000]
    """
    first = 10 ** (_DIGITS - 1)
    if index < first:
        return index
    power, mantissa = divmod(index - first, _DECADE)
    return (first + mantissa) * 10**power


def index_of(number: int) -> int:
    """Index of the largest number of at most five significant digits that is at most `number`."""
    power = max(len(str(number)) - _DIGITS, 0)
    return number // 10**power + power * _DECADE


def geometric(low: int, high: int, points: int) -> np.ndarray:
    """Distinct whole numbers in about geometric steps, the ends included."""
    return np.unique(np.rint(np.geomspace(low, high, points)).astype(np.int64))


def around_best(known: dict[int, float]) -> Int64[np.ndarray, " missing"]:
    """Between the least value and its neighbours, to be evaluated next; none if adjacent."""
    at = sorted(known)
    best = int(np.argmin([known[bound] for bound in at]))
    ends = at[max(best - 1, 0)], at[min(best + 1, len(at) - 1)]
    wanted = [geometric(min(end, at[best]), max(end, at[best]), _FINE) for end in ends]
    found = np.unique(np.concatenate(wanted))
    return found[~np.isin(found, at)]


def around(
    number: int, low: int, high: int, reach: tuple[float, float], each_decade: int
) -> list[int]:
    """Numbers of five digits in geometric steps around one of them, itself included."""
    least, most = (round(each_decade * np.log10(factor)) for factor in reach)
    near = (round(number * 10 ** (k / each_decade)) for k in range(least, most + 1))
    return sorted({number_of(index_of(min(max(n, low), high))) for n in near})
