"""What a subject of an audit is, and exact laws of set-union mechanisms.

Given kept sets and the order of the users, items come out independently. Subsets and orders are
enumerated, several rounds by what has been released so far.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice, product
from typing import TypeAlias, TypeVar

import numpy as np

from experiments.audit.laws import Law, SetLaw, TableLaw
from experiments.audit.pairs import Items, Pair, Run

Found = TypeVar("Found")
# A data set as runs of equal users.
Data: TypeAlias = tuple[Run, ...]
# Weights, support, P(released), P(missed) of one kept data set, each (num_items,).
Step: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
# The items of a kept data set and, for each, P(released) and P(missed).
Released: TypeAlias = tuple[Items, np.ndarray, np.ndarray]

MOST_COMPONENTS = 500
# Orders cost little: they are enumerated for a handful of users only.
MOST_ORDERS = 5040
_MOST_CACHED = 50_000
# Less is not followed into the next round: far below what rounding is allowed to change.
_NEGLIGIBLE = 1e-25


class NoExactLaw(Exception):
    """The law of this data set is too large to enumerate.

    Example:
        >>> from experiments.audit import NoExactLaw, Pair, Run, examine, subject
        >>> wgm = subject("wgm", eps=1.0, delta=1e-5, max_items_per_user=2)
        >>> try:
        ...     examine(wgm, Pair((Run(tuple(range(60))),), (0,)))
        ... except NoExactLaw as reason:
        ...     print(reason)
        1770 subsamples
    """


@dataclass(frozen=True)
class Round:
    """Where one round decides: heights that a search should look at.

    Attributes:
        scale: Scale of the noise.
        threshold: Threshold.
        cap: Weight from which a policy adds nothing; infinite if none.
    """

    scale: float
    threshold: float
    cap: float


@dataclass(frozen=True, eq=False)
class Subject(ABC):
    """A mechanism at its claim, ready to be asked for laws.

    Attributes:
        name: Name of the mechanism.
        eps: Claimed eps.
        delta: Claimed delta.
        max_items_per_user: Delta0 of the claim.
        private: Whether the mechanism claims to keep it.
        sequential: Whether the order of the users matters.
        rounds: What decides in each round.
    """

    name: str
    eps: float
    delta: float
    max_items_per_user: int
    private: bool
    sequential: bool
    rounds: tuple[Round, ...]

    @property
    def most_items(self) -> int:
        """Items up to which a search may add more."""
        return 8

    @property
    def most_users(self) -> int:
        """Users up to which a search may add more."""
        return 400

    @abstractmethod
    def laws_where_exact(self, data_sets: Sequence[Data]) -> list[Law | NoExactLaw]:
        """Exact law of the output on every data set, or why there is none."""

    def laws(self, data_sets: Sequence[Data]) -> list[Law]:
        """Exact law of the output on every data set; items are whole numbers from 0.

        Raises:
            NoExactLaw: Too many subsamples or orders, or too many items.
        """
        found: list[Law] = []
        for law in self.laws_where_exact(data_sets):
            if isinstance(law, NoExactLaw):
                raise law
            found.append(law)
        return found

    def pair_laws(self, pairs: Sequence[Pair]) -> list[tuple[Law, Law] | NoExactLaw]:
        """Laws of both data sets of every pair, the larger one first, or why there are none."""
        laws = iter(self.laws_where_exact([data for pair in pairs for data in pair.data]))
        found: list[tuple[Law, Law] | NoExactLaw] = []
        for first, second in zip(laws, laws, strict=True):
            if isinstance(first, NoExactLaw):
                found.append(first)
            elif isinstance(second, NoExactLaw):
                found.append(second)
            else:
                found.append((first, second))
        return found


@dataclass(frozen=True, eq=False)
class SetUnionSubject(Subject):
    """A set-union mechanism: given kept sets and an order, items come out independently.

    Attributes:
        clips: Whether users are subsampled to Delta0 items.
        shuffles: Whether users come in a secret uniform order.
        step: (kept data sets, num_items, round) -> one `Step` per data set.
    """

    clips: bool
    shuffles: bool
    step: Callable[[Sequence[Data], int, int], list[Step]] = field(repr=False)
    _known: dict[tuple[int, Data], Released] = field(default_factory=dict, init=False, repr=False)

    @property
    def most_users(self) -> int:
        """Users up to which a search may add more: few where all orders are enumerated."""
        return 6 if self.shuffles else 400

    def laws_where_exact(self, data_sets: Sequence[Data]) -> list[Law | NoExactLaw]:
        """Exact law of the released set on every data set, or why there is none."""
        if len(self.rounds) > 1:
            return self._laws_of_rounds(data_sets)
        kept = [attempt(self.arrangements, data) for data in data_sets]
        able = [sets for sets in kept if not isinstance(sets, NoExactLaw)]
        steps = iter(self._released([data for sets in able for data in sets], 0))
        return [
            sets if isinstance(sets, NoExactLaw) else _mixture(list(islice(steps, len(sets))))
            for sets in kept
        ]

    def arrangements(self, data: Data) -> list[Data]:
        """All equally likely outcomes of the subsampling and of the order of the users.

        Raises:
            NoExactLaw: There are too many.
        """
        kept = self._kept_sets(data)
        if not self.shuffles:
            return kept
        # Every outcome of the subsampling has n! orders; where equal users only change places, one
        # of them stands for many, as often as to keep the outcomes equally likely.
        repeats = [_repeats(sets) for sets in kept]
        common = math.gcd(*repeats)
        number = len(kept) * math.factorial(_num_users(data)) // common
        if number > MOST_ORDERS:
            raise NoExactLaw(f"{number} orders")
        return [
            order
            for sets, repeat in zip(kept, repeats, strict=True)
            for order in _orders(sets) * (repeat // common)
        ]

    def _kept_sets(self, data: Data) -> list[Data]:
        """All equally likely outcomes of the subsampling."""
        bound = self.max_items_per_user
        if not self.clips or all(len(run.items) <= bound for run in data):
            return [data]
        sizes = ((math.comb(len(run.items), bound), run.repeat) for run in data)
        count = math.prod(max(1, choices) ** repeat for choices, repeat in sizes)
        if count > MOST_COMPONENTS:
            raise NoExactLaw(f"{count} subsamples")
        choices: list[list[Run]] = []
        for run in data:
            if len(run.items) <= bound:
                choices.append([run])
            else:
                subsets = [Run(kept) for kept in combinations(run.items, bound)]
                choices += [subsets] * run.repeat
        return [*product(*choices)]

    def _released(self, kept: Sequence[Data], index: int) -> list[Released]:
        """Probabilities of every kept data set in a round, each computed once."""
        keys = [data if self.sequential else _merged(data) for data in kept]
        if len(self._known) > _MOST_CACHED:
            self._known.clear()
        fresh = [key for key in dict.fromkeys(keys) if (index, key) not in self._known]
        if fresh:
            items = [sorted({x for run in data for x in run.items}) for data in fresh]
            num_items = 1 + max((names[-1] for names in items if names), default=0)
            steps = self.step(fresh, num_items, index)
            for data, names, (_, support, hit, miss) in zip(fresh, items, steps, strict=True):
                here = support[names]
                released = np.where(here, hit[names], 0.0), np.where(here, miss[names], 1.0)
                self._known[index, data] = (tuple(names), *released)
        return [self._known[index, key] for key in keys]

    def _laws_of_rounds(
        self, data_sets: Sequence[Data], most_items: int = 10
    ) -> list[Law | NoExactLaw]:
        """Laws of the union of what the rounds release, by what is released so far."""
        found: list[Law | NoExactLaw] = []
        present = [sorted({x for run in data for x in run.items}) for data in data_sets]
        masses = [np.eye(1, 2 ** min(len(names), most_items + 1))[0] for names in present]
        refused: dict[int, NoExactLaw] = {
            place: NoExactLaw(f"{len(names)} items in {len(self.rounds)} rounds")
            for place, names in enumerate(present)
            if len(names) > most_items
        }
        for index in range(len(self.rounds)):
            wanted: list[tuple[int, list[int], list[list[Data]]]] = []
            for place, (data, names) in enumerate(zip(data_sets, present, strict=True)):
                if place in refused:
                    continue
                states = np.flatnonzero(masses[place] > _NEGLIGIBLE).tolist()
                kept = [
                    attempt(self.arrangements, left) for left in _leftovers(data, names, states)
                ]
                able = [sets for sets in kept if not isinstance(sets, NoExactLaw)]
                if len(able) == len(kept):
                    wanted.append((place, states, able))
                else:
                    refused[place] = next(sets for sets in kept if isinstance(sets, NoExactLaw))
            every = [data for _, _, kept in wanted for sets in kept for data in sets]
            steps = iter(self._released(every, index))
            for place, states, kept in wanted:
                counts = [len(sets) for sets in kept]
                parts = list(islice(steps, sum(counts)))
                masses[place] = _advance(masses[place], present[place], states, counts, parts)
        for place, names in enumerate(present):
            found.append(refused[place] if place in refused else _table(names, masses[place]))
        return found


def _advance(
    masses: np.ndarray,
    names: list[int],
    states: list[int],
    counts: list[int],
    parts: list[Released],
) -> np.ndarray:
    """Masses of the released sets after one more round; bit i stands for item i of `names`."""
    place = {x: i for i, x in enumerate(names)}
    hit, miss = np.zeros((len(parts), len(names))), np.ones((len(parts), len(names)))
    for row, (items, released, missed) in enumerate(parts):
        columns = [place[x] for x in items]
        hit[row, columns], miss[row, columns] = released, missed
    rest = masses.copy()
    rest[states] = 0
    origin = np.repeat(states, counts)
    outcomes = (masses[origin] / np.repeat(counts, counts))[:, None]
    for i in range(len(names)):
        outcomes = np.concatenate((outcomes * miss[:, i, None], outcomes * hit[:, i, None]), axis=1)
    # Items of a state cannot come out again: their bits are not among those of an outcome.
    target = origin[:, None] | np.arange(masses.size)
    return rest + np.bincount(target.ravel(), outcomes.ravel(), minlength=masses.size)


def _table(names: list[int], masses: np.ndarray) -> TableLaw:
    sets: list[Hashable] = [
        frozenset(x for i, x in enumerate(names) if index >> i & 1) for index in range(masses.size)
    ]
    return TableLaw(dict(zip(sets, masses.tolist(), strict=True)))


def attempt(find: Callable[[Data], Found], data: Data) -> Found | NoExactLaw:
    """What is found for a data set, or why there is nothing."""
    try:
        return find(data)
    except NoExactLaw as reason:
        return reason


def _num_users(data: Data) -> int:
    return sum(run.repeat for run in data)


def _repeats(data: Data) -> int:
    """Number of ways to permute equal users among themselves."""
    return math.prod(math.factorial(run.repeat) for run in _merged(data))


def _orders(data: Data) -> list[Data]:
    """All distinct orders of the users."""
    left = [(run.items, run.repeat) for run in _merged(data)]
    found: list[Data] = []

    def extend(so_far: tuple[Run, ...]) -> None:
        if not any(repeat for _, repeat in left):
            found.append(so_far)
        for place, (items, repeat) in enumerate(left):
            if repeat:
                left[place] = (items, repeat - 1)
                extend((*so_far, Run(items)))
                left[place] = (items, repeat)

    extend(())
    return found


def _merged(data: Data) -> Data:
    """Runs of equal users joined, in an order of their own."""
    repeats: dict[Items, int] = {}
    for run in data:
        repeats[run.items] = repeats.get(run.items, 0) + run.repeat
    return tuple(Run(items, repeat) for items, repeat in sorted(repeats.items()))


def _mixture(parts: list[Released]) -> SetLaw:
    """Components of equal weight, equal ones joined."""
    items = tuple(sorted({x for names, _, _ in parts for x in names}))
    place = {x: i for i, x in enumerate(items)}
    released, missed = np.zeros((len(parts), len(items))), np.ones((len(parts), len(items)))
    for row, (names, hit, miss) in enumerate(parts):
        columns = [place[x] for x in names]
        released[row, columns], missed[row, columns] = hit, miss
    if len(parts) == 1:
        return SetLaw(items, np.ones(1), released, missed)
    _, first, counts = np.unique(
        np.hstack((released, missed)), axis=0, return_index=True, return_counts=True
    )
    order = np.argsort(first)
    chosen = first[order]
    return SetLaw(items, counts[order] / counts.sum(), released[chosen], missed[chosen])


def _leftovers(data: Data, names: list[int], states: list[int]) -> list[Data]:
    """The data after deleting the released items of every state; empty users are dropped."""
    place = {x: i for i, x in enumerate(names)}
    masks = [(sum(1 << place[x] for x in run.items), run) for run in data]
    known: dict[tuple[int, int], Items] = {}

    def left(mask: int, run: Run, state: int) -> Items:
        key = mask, mask & ~state
        if key not in known:
            known[key] = tuple(x for x in run.items if not state >> place[x] & 1)
        return known[key]

    return [
        tuple(
            Run(left(mask, run, state), run.repeat) if mask & state else run
            for mask, run in masks
            if mask & ~state
        )
        for state in states
    ]
