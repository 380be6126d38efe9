"""Selections under audit: top-k and hitting sets, on a found, a public or their own domain.

The law of a meta-algorithm is a sum over domains D: the exact law of the weighted Gaussian
mechanism gives P(D), and the selector's own score step the law of its output on D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments.audit.divergence import as_table
from experiments.audit.laws import Law, TableLaw
from experiments.audit.pairs import Pair
from experiments.audit.set_union_subjects import Data, NoExactLaw, Round, SetUnionSubject, Subject
from theory import UserItems
from theory._check import InvalidInput, check_count
from theory.budget import Budget
from wgm_jax.selection.limited_domain import LimitedDomain
from wgm_jax.selection.selector import Selector

MOST_ITEMS = 6
# Domains of less probability are left out: far below what rounding is allowed to change.
_NEGLIGIBLE = 1e-25


@dataclass(frozen=True, eq=False)
class SelectionSubject(Subject):
    """A selection at its claim; outputs are sequences of items.

    Attributes:
        k: Items to select.
        selector: The selection.
        budget: (eps, delta) of the selection alone.
        finder: What finds the domain, None if it is public or the selector finds its own.
        public: Whether the domain is all items, and these are public.
    """

    k: int
    selector: Selector
    budget: tuple[float, float]
    finder: SetUnionSubject | None
    public: bool
    _known: dict[Data, TableLaw] = field(default_factory=dict, init=False, repr=False)

    @property
    def most_items(self) -> int:
        """Items up to which a search may add more."""
        return MOST_ITEMS - 1

    @property
    def num_counts(self) -> int:
        """By how much counts must differ, about, so that the larger one is selected."""
        return max(1, round(self.k / self.budget[0]))

    def pair_laws(self, pairs: Sequence[Pair]) -> list[tuple[Law, Law] | NoExactLaw]:
        """Laws of both data sets of every pair; a public domain is the same in both."""
        found = super().pair_laws(pairs)
        if not self.public:
            return found
        fixed = NoExactLaw("a public domain does not depend on the data")
        return [
            laws if _items(pair.data[0]) == _items(pair.data[1]) else fixed
            for pair, laws in zip(pairs, found, strict=True)
        ]

    def laws_where_exact(self, data_sets: Sequence[Data]) -> list[Law | NoExactLaw]:
        """Exact law of the output sequence on every data set, or why there is none."""
        small = [len(_items(data)) <= MOST_ITEMS for data in data_sets]
        able = [data for data, few in zip(data_sets, small, strict=True) if few]
        domains: list[Law | NoExactLaw | None] = [None] * len(able)
        if self.finder is not None:
            domains = [*self.finder.laws_where_exact(able)]
        laws = iter([self._law(*both) for both in zip(able, domains, strict=True)])
        return [
            next(laws) if few else NoExactLaw(f"{len(_items(data))} items in a selection")
            for data, few in zip(data_sets, small, strict=True)
        ]

    def _law(self, data: Data, domains: Law | NoExactLaw | None) -> Law | NoExactLaw:
        if isinstance(domains, NoExactLaw):
            return domains
        if data not in self._known:
            if len(self._known) > 20_000:
                self._known.clear()
            try:
                self._known[data] = self._enumerate(data, domains)
            except InvalidInput as reason:
                return NoExactLaw(str(reason))
        return self._known[data]

    def _enumerate(self, data: Data, domains: Law | None) -> TableLaw:
        """The selection on every domain; items are renumbered so that no number is unused."""
        names = _items(data)
        if not names:
            return TableLaw({(): 1.0})
        place = {x: i for i, x in enumerate(names)}
        state = self.selector.prepare(
            _renumbered(data, place),
            eps=self.budget[0],
            delta=self.budget[1],
            k=self.k,
            max_items_per_user=self.max_items_per_user,
        )
        if domains is None:
            weights: dict[Any, float] = {None: 1.0}
        else:
            weights = {
                tuple(sorted(place[x] for x in domain)): mass
                for domain, mass in as_table(domains).probabilities.items()
                if isinstance(domain, frozenset) and mass > _NEGLIGIBLE
            }
        total: dict[Any, float] = {}
        for domain, weight in weights.items():
            law = {(): 1.0} if domain == () else self.selector.law(state, domain)
            for sequence, probability in law.items():
                output = tuple(names[x] for x in sequence)
                total[output] = total.get(output, 0.0) + weight * probability
        return TableLaw(total)


def selection_subject(
    selector: Selector,
    *,
    name: str,
    private: bool,
    budget: Budget,
    k: int,
    max_items_per_user: int,
    finder: SetUnionSubject | None,
) -> SelectionSubject:
    """A selector at a claimed budget.

    Args:
        selector: What selects.
        name: What to call it.
        private: Whether the claim is made.
        budget: The claim; its second part is the selector's if there is a finder, else all of it.
        k: Items to select.
        max_items_per_user: Delta0.
        finder: The weighted Gaussian mechanism with the first part of the budget, or None.
    """
    part = budget.part(1) if finder is not None else (float(budget.eps), float(budget.delta))
    k = check_count("k", k)
    rounds = () if finder is None else finder.rounds
    own = isinstance(selector, LimitedDomain)
    if own:  # its threshold is a height to look at, too
        state: Any = selector.prepare(
            UserItems.from_sets([{0}]),
            eps=part[0],
            delta=part[1],
            k=k,
            max_items_per_user=max_items_per_user,
        )
        rounds = (Round(1 / float(state.eps_round), float(state.offset), np.inf),)
    return SelectionSubject(
        name=name,
        eps=float(budget.eps),
        delta=float(budget.delta),
        max_items_per_user=max_items_per_user,
        private=private,
        sequential=False,
        rounds=rounds,
        k=k,
        selector=selector,
        budget=part,
        finder=finder,
        public=finder is None and not own,
    )


def _items(data: Data) -> list[int]:
    """Items of a data set, ascending."""
    return sorted({x for run in data for x in run.items})


def _renumbered(data: Data, place: dict[int, int]) -> UserItems:
    users = [[place[x] for x in run.items] for run in data for _ in range(run.repeat)]
    sizes = np.array([len(items) for items in users], np.int64)
    flat = np.array([x for items in users for x in sorted(items)], np.int32)
    return UserItems(items=flat, offsets=np.concatenate(([0], np.cumsum(sizes))))
