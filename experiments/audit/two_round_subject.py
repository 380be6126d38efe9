"""The Bernoulli flow in two rounds as a subject: exact laws by all outcomes of both rounds.

An output is both releases, one after the other: the certificate is for publishing both, and what
only their union hides would be no proof of privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import TypeAlias

import numpy as np
from jaxtyping import Float64

from experiments.audit.flow_subject import flow_round
from experiments.audit.laws import Law, TableLaw
from experiments.audit.set_union_subjects import (
    MOST_COMPONENTS,
    Data,
    NoExactLaw,
    Subject,
    attempt,
)
from theory.calibration import Calibration
from theory.flow import FlowCalibration
from theory.flow.two_rounds import TwoRoundFlow
from wgm_jax.set_union.bernoulli_flow_2 import BernoulliFlow2
from wgm_jax.set_union.two_round_trials import round_probabilities

# Both rounds of m items have 3^m outcomes.
_MOST_ITEMS = 8
# Users alike in a round: their items, their class, and how many they are.
Holders: TypeAlias = tuple[tuple[int, ...], int, int]


@dataclass(frozen=True, eq=False)
class TwoRoundSubject(Subject):
    """The mechanism with one pair of flows.

    Attributes:
        flow: Both flows; classes and probabilities are asked of it, none is written again here.
    """

    flow: TwoRoundFlow

    @property
    def most_items(self) -> int:
        """Items up to which a search may add more."""
        return _MOST_ITEMS - 3

    def laws_where_exact(self, data_sets: Sequence[Data]) -> list[Law | NoExactLaw]:
        """Exact law of both releases, a pair of sets, on every data set, or why there is none."""
        return [attempt(self._law, data) for data in data_sets]

    def _law(self, data: Data) -> Law:
        names = sorted({x for run in data for x in run.items})
        if len(names) > _MOST_ITEMS:
            raise NoExactLaw(f"{len(names)} items in two rounds")
        place = {x: i for i, x in enumerate(names)}
        users = [(tuple(place[x] for x in run.items), run.repeat) for run in data]
        sizes = np.array([len(items) for items, _ in users], np.int64)
        classes = self.flow.first_classes(sizes).tolist()
        start = [
            (items, of_class, repeat)
            for (items, repeat), of_class in zip(users, classes, strict=True)
            if of_class > 0
        ]
        (first,) = self._outcomes(self.flow.first, len(names), [start])
        states = np.flatnonzero(first).tolist()
        rests = [self._rest(users, sizes, state) for state in states]
        second = self._outcomes(self.flow.second, len(names), rests)
        sets = [
            frozenset(x for i, x in enumerate(names) if index >> i & 1)
            for index in range(first.size)
        ]
        return TableLaw(
            {
                (sets[state], sets[index]): float(first[state] * own[index])
                for state, own in zip(states, second, strict=True)
                for index in np.flatnonzero(own).tolist()
            }
        )

    def _rest(
        self, users: list[tuple[tuple[int, ...], int]], sizes: np.ndarray, released: int
    ) -> list[Holders]:
        """Users of the second round; bit i of `released` stands for item i."""
        rests = [tuple(i for i in items if not released >> i & 1) for items, _ in users]
        left = np.array([len(items) for items in rests], np.int64)
        classes = self.flow.second_classes(sizes, left).tolist()
        return [
            (items, of_class, repeat)
            for items, of_class, (_, repeat) in zip(rests, classes, users, strict=True)
            if items
        ]

    def _outcomes(
        self, flow: FlowCalibration, num_items: int, cases: list[list[Holders]]
    ) -> Float64[np.ndarray, "cases sets"]:
        """Probability of every released set of a round, for each case of who takes part."""
        kept = [self._subsamples(holders) for holders in cases]
        every = [holders for part in kept for holders in part]
        # Items are decided one by one: all outcomes of the subsampling are one data set.
        items, classes = [], []
        for index, holders in enumerate(every):
            for mine, of_class, repeat in holders:
                items += [index * num_items + i for i in mine] * repeat
                classes += [of_class] * (len(mine) * repeat)
        hit, miss = (
            values.reshape(len(every), num_items)
            for values in round_probabilities(
                flow, np.array(items, np.int64), np.array(classes, np.int64), num_items * len(every)
            )
        )
        masses = np.ones((len(every), 1))
        for i in range(num_items):
            masses = np.concatenate((masses * miss[:, i, None], masses * hit[:, i, None]), axis=1)
        starts = np.cumsum([0, *(len(part) for part in kept[:-1])])
        counts = np.array([len(part) for part in kept])
        return np.add.reduceat(masses, starts, axis=0) / counts[:, None]

    def _subsamples(self, holders: list[Holders]) -> list[list[Holders]]:
        """All equally likely outcomes of the subsampling."""
        bound = self.max_items_per_user
        ways = ((math.comb(len(items), bound), n) for items, _, n in holders if len(items) > bound)
        count = math.prod(number**repeat for number, repeat in ways)
        if count > MOST_COMPONENTS:
            raise NoExactLaw(f"{count} subsamples")
        choices: list[list[Holders]] = []
        for items, of_class, repeat in holders:
            if len(items) <= bound:
                choices.append([(items, of_class, repeat)])
            else:
                some = [(kept, of_class, 1) for kept in combinations(items, bound)]
                choices += [some] * repeat
        return [list(choice) for choice in product(*choices)]


def two_round_subject(
    name: str, mechanism: BernoulliFlow2, calibration: Calibration, private: bool
) -> TwoRoundSubject:
    """The mechanism at a claimed (eps, delta), with the flows that it would take.

    Args:
        name: Name of the mechanism.
        mechanism: The mechanism.
        calibration: A single one.
        private: Whether privacy is claimed.
    """
    eps, delta = float(calibration.eps), float(calibration.delta)
    bound = int(calibration.max_items_per_user)
    flow = mechanism.flow(eps, delta, bound)
    return TwoRoundSubject(
        name=name,
        eps=eps,
        delta=delta,
        max_items_per_user=bound,
        private=private,
        sequential=False,
        rounds=tuple(
            flow_round(of_round.holders(least), of_round.holders(bound))
            for of_round, least in ((flow.first, flow.cut + 1), (flow.second, 1))
        ),
        flow=flow,
    )
