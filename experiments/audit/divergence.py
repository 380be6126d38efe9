"""How far apart two exact laws are: the hockey-stick divergence, with proved limits.

    delta(eps) = sum over outputs S of max(0, P(S) - e^eps Q(S)),

in both directions, is the smallest delta for which a pair of neighbours is (eps, delta)-close.

Outputs are cut into atoms. Merging atoms is post-processing: it can only lower delta, whatever
eps. So is looking at some items only. Hence what is computed here never exceeds the truth by more
than rounding, and where atoms were merged or items left out it is a lower limit; the upper limit
follows from how far the losses ln(P/Q) within an atom differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy.special import comb, gammaln, xlogy

from experiments.audit.laws import Law, TableLaw
from theory._check import Reals

# Every mass is a product of at most a few thousand factors good to some units in the last place,
# every sum one of positive numbers; probabilities in a normal tail lose z^2 units.
RELATIVE_ERROR = 1e-11
# Items whose probabilities differ by less than this (relative) are left out: rounding of sums of
# weights in another order. What that can hide is counted in the upper limit.
_SAME = 1e-12
_NEGLIGIBLE = 1e-40
_LARGEST_EXPONENT = 700.0
# Exact powers below, logarithms above (where the powers could underflow).
_MOST_BY_POWERS = 60
MOST_ATOMS = 2**18


class Limits(NamedTuple):
    """Lower and upper limit of a delta.

    Example:
        >>> from experiments.audit import Limits, SetLaw, compare
        >>> pair = compare(SetLaw.product("a", [0.5]), SetLaw.product("a", [0.25]))
        >>> limits = pair.limits(0.0)
        >>> isinstance(limits, Limits), 0.25 - 1e-9 < limits.low <= 0.25 <= limits.high
        (True, True)
    """

    low: float
    high: float


@dataclass(frozen=True)
class Event:
    """A set of outputs that tells two neighbours apart.

    Attributes:
        first: Its probability under the first law, the larger one.
        second: Its probability under the second law.
        num_outcomes: Number of its outcomes, among the items in which the laws differ.
        outcome: The outcome that contributes most; None where outcomes were merged.
        share: The part of delta that this outcome contributes.

    Example:
        >>> from experiments.audit import Event, SetLaw, compare
        >>> pair = compare(SetLaw.product("a", [0.5]), SetLaw.product("a", [0.25]))
        >>> event = pair.worst_event(0.5)
        >>> isinstance(event, Event), event.first, event.outcome
        (True, 0.5, {'released': ['a'], 'missed': []})
    """

    first: float
    second: float
    num_outcomes: int
    outcome: Any
    share: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two laws on one partition of the outputs.

    Attributes:
        first: Mass of every atom under the first law, P.
        second: Mass of every atom under the second law, Q.
        spread: Losses ln(P/Q) of the outputs in an atom differ by at most this; infinite where
            outputs were left out.
        slack: Mass that may have been moved to another atom.
        describe: The outcome behind an atom, by index.
    """

    first: Float64[np.ndarray, " atoms"]
    second: Float64[np.ndarray, " atoms"]
    spread: float
    slack: float
    describe: Callable[[int], Any]

    def delta(self, eps: float, *, reverse: bool = False) -> float:
        """Value at eps of P against Q, or of Q against P: never above the truth.

        Example:
            >>> from experiments.audit import SetLaw
            >>> pair = compare(SetLaw.product("a", [0.5]), SetLaw.product("a", [0.25]))
            >>> pair.delta(0.0), pair.delta(0.0, reverse=True)
            (0.25, 0.25)
        """
        return float(np.sum(self._gains(eps, reverse)[0]))

    def limits(self, eps: float, *, reverse: bool = False) -> Limits:
        """Proved limits of delta(eps), rounding included."""
        gains, error = self._gains(eps, reverse)
        low = max(0.0, float(np.sum(gains)) - error)
        if not math.isfinite(self.spread):
            return Limits(low, 1.0)
        # With every loss raised by the spread: P - e^(eps - spread) Q.
        gains, error = self._gains(eps - self.spread, reverse)
        moved = (1 + math.exp(min(eps, _LARGEST_EXPONENT))) * self.slack
        return Limits(low, min(1.0, float(np.sum(gains)) + error + moved))

    def lows(self, eps: Reals) -> Float64[np.ndarray, "points 2"]:
        """Lower limits of delta at several eps, P against Q and Q against P; any sign of eps.

        Example:
            >>> from experiments.audit import SetLaw
            >>> compare(SetLaw.product("a", [0.5]), SetLaw.product("a", [0.25])).lows(0.0).round(9)
            array([[0.25, 0.25]])
        """
        levels = np.ravel(np.asarray(eps, np.float64))
        factors = np.exp(np.minimum(levels, _LARGEST_EXPONENT))[:, None]
        found = np.empty((levels.size, 2))
        for side, (p, q) in enumerate(((self.first, self.second), (self.second, self.first))):
            scaled = factors * q
            inside = p > scaled
            gains = np.where(inside, p - scaled, 0.0).sum(axis=1)
            error = RELATIVE_ERROR * np.where(inside, p + scaled, 0.0).sum(axis=1)
            found[:, side] = np.maximum(gains - error, 0.0)
        return found

    def worst_event(self, eps: float, *, reverse: bool = False) -> Event:
        """The set of outputs that attains delta(eps)."""
        gains = self._gains(eps, reverse)[0]
        inside = gains > 0
        p, q = (self.second, self.first) if reverse else (self.first, self.second)
        total, best = float(gains.sum()), int(np.argmax(gains))
        return Event(
            first=float(p[inside].sum()),
            second=float(q[inside].sum()),
            num_outcomes=int(inside.sum()),
            outcome=self.describe(best) if total > 0 and self.spread == 0 else None,
            share=float(gains[best]) / total if total > 0 else 0.0,
        )

    def _gains(self, eps: float, reverse: bool) -> tuple[np.ndarray, float]:
        """Positive parts of P - e^eps Q by atom, and the rounding error of their sum."""
        p, q = (self.second, self.first) if reverse else (self.first, self.second)
        scaled = math.exp(min(eps, _LARGEST_EXPONENT)) * q
        inside = p > scaled
        gains = np.where(inside, p - scaled, 0.0)
        return gains, RELATIVE_ERROR * float((p[inside] + scaled[inside]).sum())


def compare(first: Law, second: Law, *, max_atoms: int = MOST_ATOMS) -> Comparison:
    """Put two laws on a common partition of their outputs.

    Items with the same probability in both laws and in all components cancel. For two products
    equal items are counted together; beyond `max_atoms` outcomes, atoms of like loss are merged.
    Mixtures are enumerated over the items that differ, at most log2(max_atoms) of them.

    Args:
        first: Law P.
        second: Law Q.
        max_atoms: Most atoms kept.

    Returns:
        A `Comparison`.

    Example:
        Two new items that come out with probability 0.1 each cannot be hidden by any eps:

        >>> from experiments.audit import SetLaw
        >>> new = SetLaw.product("xy", [0.1, 0.1])
        >>> round(compare(new, SetLaw.product("", [])).delta(50.0), 6)
        0.19
    """
    if isinstance(first, TableLaw) or isinstance(second, TableLaw):
        return _compare_tables(as_table(first), as_table(second))
    items = tuple(dict.fromkeys((*first.items, *second.items)))
    p, p_missed = first.columns(items)
    q, q_missed = second.columns(items)
    released, missed = np.concatenate((p, q)), np.concatenate((p_missed, q_missed))
    differs = _differs(released) | _differs(missed)
    slack = float(np.sum(np.ptp(released[:, ~differs], axis=0)))
    kept = np.flatnonzero(differs)
    if first.num_components == second.num_components == 1:
        columns = np.stack((released[0], missed[0], released[1], missed[1]))[:, kept]
        return _compare_products([items[i] for i in kept], columns, slack, max_atoms)
    most = max(1, int(math.log2(max_atoms * 8 / released.shape[0])))
    complete = kept.size <= most
    if not complete:  # those that move most; leaving out items is post-processing
        kept = kept[np.argsort(-np.ptp(released[:, kept], axis=0), kind="stable")[:most]]
    names = [items[i] for i in kept]
    split = first.num_components
    return Comparison(
        first=_enumerate(first.weights, released[:split, kept], missed[:split, kept]),
        second=_enumerate(second.weights, released[split:, kept], missed[split:, kept]),
        spread=0.0 if complete else math.inf,
        slack=slack,
        describe=lambda index: _outcome({x: index >> i & 1 for i, x in enumerate(names)}),
    )


def as_table(law: Law, *, most_items: int = 16) -> TableLaw:
    """A law output by output, sets as frozensets; for few items."""
    if isinstance(law, TableLaw):
        return law
    if len(law.items) > most_items:
        raise ValueError(f"a table of {len(law.items)} items is too large")
    masses = _enumerate(law.weights, law.released, law.missed)
    sets = (
        frozenset(x for i, x in enumerate(law.items) if index >> i & 1)
        for index in range(masses.size)
    )
    return TableLaw(dict(zip(sets, masses.tolist(), strict=True)))


def _differs(values: np.ndarray) -> np.ndarray:
    return np.ptp(values, axis=0) > _SAME * np.min(values, axis=0)


def _outcome(released: dict[Hashable, Any]) -> dict[str, list[Hashable]]:
    """What is released and what is not, of the items in which the laws differ."""
    return {
        "released": [x for x, count in released.items() if count],
        "missed": [x for x, count in released.items() if not count],
    }


def _compare_tables(first: TableLaw, second: TableLaw) -> Comparison:
    outputs = list(dict.fromkeys((*first.probabilities, *second.probabilities)))
    masses = [
        np.asarray([law.probabilities.get(output, 0.0) for output in outputs], np.float64)
        for law in (first, second)
    ]
    return Comparison(masses[0], masses[1], 0.0, 0.0, lambda index: outputs[index])


def _enumerate(weights: np.ndarray, released: np.ndarray, missed: np.ndarray) -> np.ndarray:
    """Mass of all 2^k outcomes of a mixture; bit i of the index says whether item i is released."""
    masses = weights[:, None]
    for item in range(released.shape[1]):
        masses = np.concatenate(
            (masses * missed[:, item, None], masses * released[:, item, None]), axis=1
        )
    return masses.sum(axis=0)


def _compare_products(
    items: list[Hashable], columns: np.ndarray, slack: float, max_atoms: int
) -> Comparison:
    """Two products, class by class of items with the same four probabilities."""
    classes, member = np.unique(columns, axis=1, return_inverse=True)
    counts = np.bincount(member.ravel(), minlength=classes.shape[1])
    groups = [
        [x for x, c in zip(items, member.ravel(), strict=True) if c == g]
        for g in range(counts.size)
    ]
    first, second, spread = np.ones(1), np.ones(1), 0.0
    for (p, p_missed, q, q_missed), count in zip(classes.T, counts.tolist(), strict=True):
        first = np.outer(_binomial(count, p, p_missed), first).ravel()
        second = np.outer(_binomial(count, q, q_missed), second).ravel()
        if first.size > max_atoms:
            first, second, width, moved = _merge(first, second, max(64, max_atoms // 8))
            spread, slack = spread + width, slack + moved
    shape = tuple(int(count) + 1 for count in counts[::-1])

    def describe(index: int) -> Any:
        numbers = np.unravel_index(index, shape)[::-1] if shape else ()
        chosen: dict[Hashable, Any] = {}
        for group, number in zip(groups, numbers, strict=True):
            chosen |= {x: True for x in islice(group, int(number))}
            chosen |= {x: False for x in group[int(number) :]}
        return _outcome(chosen)

    return Comparison(first, second, spread, slack, describe)


def _binomial(count: int, p: float, missed: float) -> np.ndarray:
    """Probabilities of 0..count successes."""
    k = np.arange(count + 1.0)
    if count <= _MOST_BY_POWERS:
        return comb(count, k) * p**k * missed ** (count - k)
    ways = gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1)
    return np.exp(ways + xlogy(k, p) + xlogy(count - k, missed))


def _merge(
    first: np.ndarray, second: np.ndarray, bins: int
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Merge atoms of like loss; also how much losses within an atom differ, and the mass moved.

    Atoms that only one of the laws has keep their own two atoms.
    """
    only_first, only_second = (second == 0) & (first > 0), (first == 0) & (second > 0)
    both = (first > 0) & (second > 0)
    p, q = first[both], second[both]
    loss = np.log(p) - np.log(q)
    large = p + q > _NEGLIGIBLE
    if not large.any():
        large[:] = True
    low, high = (float(loss[large].min()), float(loss[large].max())) if loss.size else (0.0, 0.0)
    width = (high - low) / bins
    moved = float((p + q)[(loss < low) | (loss > high)].sum())
    if width > 0:
        place = np.clip((loss - low) / width, 0, bins - 1).astype(np.int64)
    else:
        place = np.zeros(loss.size, np.int64)
    merged = [
        np.concatenate(([v[only].sum()], np.bincount(place, v[both], minlength=bins)))
        for v, only in ((first, only_first), (second, only_second))
    ]
    # The two lonely atoms must not share one.
    p_all = np.concatenate((merged[0], [0.0]))
    q_all = np.concatenate(([0.0], merged[1][1:], [merged[1][0]]))
    used = (p_all > 0) | (q_all > 0)
    return p_all[used], q_all[used], width, moved
