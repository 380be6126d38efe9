"""Exact law of the two-round flow on tiny data: every subset, every first release, every second."""

from itertools import combinations, product
from math import comb, exp, prod

import numpy as np

from wgm_jax.set_union.two_round_trials import round_probabilities


class TwoRoundLaw:
    """Laws for one pair of flows; users are (set, copies), items are 0 to num_items - 1.

    `class_after(size, left)` and `left_over(set, released)` are what the mechanism does; others
    plant mistakes.
    """

    def __init__(self, flow, num_items, *, class_after=None, left_over=None):
        self.flow, self.num_items = flow, num_items
        self.bound = flow.max_items_per_user
        self.class_after = class_after or self._class_after
        self.left_over = left_over or (lambda held, released: held - released)
        self._known = {}

    def _class_after(self, size, left):
        return int(self.flow.second_classes(np.array([size]), np.array([left]))[0])

    def kept(self, users):
        """(probability, kept sets) of all ways to subsample; copies of a clipped user differ."""
        single = []
        for held, copies, of_class in users:
            if of_class == 0 or not held:
                continue
            if len(held) <= self.bound:
                single.append([(1.0, (held, copies, of_class))])
                continue
            ways = [frozenset(c) for c in combinations(sorted(held), self.bound)]
            chance = 1 / comb(len(held), self.bound)
            single += [[(chance, (way, 1, of_class)) for way in ways]] * copies
        for choice in product(*single):
            yield prod(p for p, _ in choice), tuple(state for _, state in choice)

    def outcomes(self, which, kept):
        """Probability of every released set, given what users keep in a round."""
        key = which, kept
        if key not in self._known:
            items = [i for held, copies, _ in kept for _ in range(copies) for i in held]
            classes = [c for held, copies, c in kept for _ in range(copies) for _ in held]
            hit, miss = round_probabilities(
                getattr(self.flow, which),
                np.array(items, np.int64), np.array(classes, np.int64), self.num_items,
            )  # fmt: skip
            table = {frozenset(): 1.0}
            for item in range(self.num_items):
                if hit[item] > 0:
                    table = {
                        out: p
                        for old, q in table.items()
                        for out, p in ((old | {item}, q * hit[item]), (old, q * miss[item]))
                    }
            self._known[key] = table
        return self._known[key]

    def law(self, users):
        """P(first release, both releases) as a dictionary."""
        start = [
            (held, copies, int(self.flow.first_classes(np.array([len(held)]))[0]))
            for held, copies in users
        ]
        first = {}
        for chance, kept in self.kept(start):
            for released, p in self.outcomes("first", kept).items():
                first[released] = first.get(released, 0.0) + chance * p
        law = {}
        for released, p in first.items():
            after = []
            for held, copies in users:
                left = self.left_over(held, released)
                after.append((left, copies, self.class_after(len(held), len(left))))
            for chance, kept in self.kept(after):
                for second, q in self.outcomes("second", kept).items():
                    pair = released, released | second
                    law[pair] = law.get(pair, 0.0) + p * chance * q
        return law


def hockey_stick(p, q, eps):
    return sum(max(value - exp(eps) * q.get(out, 0.0), 0.0) for out, value in p.items())


def union_alone(law):
    out = {}
    for (_, union), p in law.items():
        out[union] = out.get(union, 0.0) + p
    return out


def spent(laws, eps):
    """Worst direction, with both releases seen, and with the union alone."""
    (p, q), (u, v) = laws, [union_alone(law) for law in laws]
    both = max(hockey_stick(p, q, eps), hockey_stick(q, p, eps))
    return both, max(hockey_stick(u, v, eps), hockey_stick(v, u, eps))


def random_neighbours(rng, num_items, bound, most):
    """Users without and with one more: a few kinds with many copies, at most one copy clipped."""
    kinds = []
    for _ in range(int(rng.integers(1, 5))):
        size = int(rng.integers(1, num_items + 1))
        held = frozenset(rng.choice(num_items, size, replace=False).tolist())
        copies = int(rng.integers(1, most)) if size <= bound else int(rng.integers(0, 2))
        if copies:
            kinds.append((held, copies))
    size = int(rng.integers(1, num_items + 1))
    extra = frozenset(rng.choice(num_items, size, replace=False).tolist())
    return kinds, [*kinds, (extra, 1)]
