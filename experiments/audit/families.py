"""Structured neighbouring pairs: what has gone wrong in published mechanisms, and its limits.

Every family is a list of pairs built from the heights at which a mechanism decides: thresholds,
caps, and what lies around them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import combinations, combinations_with_replacement, product

import numpy as np

from experiments.audit.pairs import Items, Pair, Run
from experiments.audit.set_union_subjects import Subject

_NEW_ITEMS = (1, 2, 3, 4, 5, 8, 10, 20, 50, 100, 200, 500, 1000)
_MOST_USERS = 1200
_LEVELS = 24


def heights(subject: Subject, levels: int = _LEVELS) -> list[int]:
    """Numbers of users that bring one item near a threshold or a cap, and in between."""
    found: set[int] = set()
    for now in subject.rounds:
        top = now.threshold + 4 * now.scale
        if math.isfinite(now.cap):
            top = max(top, now.cap + 1)
            found |= {math.floor(now.cap) + k for k in (-1, 0, 1)}
        found |= {math.floor(now.threshold) + k for k in (-1, 0, 1)}
        found |= set(np.round(np.linspace(1, max(2.0, top), levels)).astype(int).tolist())
    return sorted(n for n in found if 1 <= n <= _MOST_USERS)


def new_items(subject: Subject) -> Iterator[Pair]:
    """A user whose items nobody else has."""
    bound = subject.max_items_per_user
    for count in sorted({*_NEW_ITEMS, bound, bound + 1}):
        yield Pair((Run((0,)),), tuple(range(1, count + 1)), family="new items")


def one_item(subject: Subject) -> Iterator[Pair]:
    """A user with an item that n others have, alone or beside items of their own."""
    for n in heights(subject):
        yield Pair((Run((0,), n),), (0,), family="one item")
        for size, shared in ((2, 1), (3, 1), (2, 2)):
            # Users with more items give less weight: heights between the whole numbers.
            fillers = [tuple((0, *range(start, start + size - 1))) for start in (1, size)]
            runs = (Run((0,), n), *(Run(items) for items in fillers[:shared]))
            yield Pair(runs, (0,), family="one item, between whole numbers")


def several_items(subject: Subject) -> Iterator[Pair]:
    """A user with t items of equal height, of which m are new."""
    sizes = sorted({2, 3, subject.max_items_per_user, subject.max_items_per_user + 1})
    for size in (s for s in sizes if 2 <= s <= 12):
        for n, new in product(heights(subject, 10), (0, 1, size - 1)):
            old = tuple(range(size - new))
            if n * len(old) > _MOST_USERS:
                continue
            alone = tuple(Run((x,), n) for x in old)
            yield Pair(alone, tuple(range(size)), family="several items")
            whole = math.ceil(n * math.sqrt(len(old)))
            yield Pair((Run(old, whole),), tuple(range(size)), family="several items of the same")


def _cap(subject: Subject) -> float | None:
    """Weight from which users who act one after the other add nothing; None where there is none."""
    if not subject.sequential:
        return None
    return next((now.cap for now in subject.rounds if math.isfinite(now.cap)), None)


def shifted_fill(subject: Subject) -> Iterator[Pair]:
    """The extra user fills an item, so that later users spend on other items instead."""
    cap = _cap(subject)
    if cap is None:
        return
    full = math.floor(cap)
    for n, size, later in product(range(full - 3, full + 2), (1, 2, 5), (1, 2, 5)):
        if n < 1:
            continue
        fresh = tuple(tuple(range(1 + k * size, 1 + (k + 1) * size)) for k in range(later))
        yield Pair(
            (Run((0,), n),), (0,), tuple(Run((0, *b)) for b in fresh), family="shifted fill, new"
        )
        items = tuple(range(1, size + 1))
        for stack in (1, full // 2, full - 1):
            yield Pair(
                (Run((0,), n), *(Run((x,), stack) for x in items)),
                (0, *items),
                (Run((0, *items), later),),
                family="shifted fill, old",
            )


def first_comer(subject: Subject) -> Iterator[Pair]:
    """The extra user comes first and breaks a tie between items that all later users hold."""
    if not subject.sequential:
        return
    for size, n in product((2, 4), heights(subject, 8)):
        items = tuple(range(size))
        for extra in ((size - 1,), (0,), items[1:]):
            yield Pair((), extra, (Run(items, n),), family="first comer")


def gathered(subject: Subject) -> Iterator[Pair]:
    """The extra user raises m items a little; then each of m users spends that much less on one.

    Each of the later users fills one of the m items and spends the rest on a common item, the last
    one. What the extra user gave to each of the m items adds up there.
    """
    cap = _cap(subject)
    if cap is None:
        return
    bound = max(2, min(subject.max_items_per_user, 30))
    for size, alone, common in product(
        sorted({min(3, bound), min(6, bound), bound}, reverse=True), range(4), (1, 3, 6, 12, 24)
    ):
        if common > max(12, size):
            continue
        items = tuple(range(size))
        # Users with all m items raise each by m^(-1/2) or 1/m: gaps from 3/4 down, in fine steps.
        for share in (math.sqrt(size), size):
            last, reach = math.floor((cap - alone) * share), max(2, math.ceil(0.75 * share))
            for n in sorted({last - reach * k // 3 for k in range(4)}):
                stack = max(1, math.floor(cap) - common)
                if n < 1 or n + size * (alone + 1) + stack > _MOST_USERS:
                    continue
                before = [Run(items, n), Run((size,), stack)]
                before += [Run((x,), alone) for x in items if alone]
                after = tuple(Run((x, size)) for x in items)
                yield Pair(tuple(before), items, after, family="gathered")


def few_users(subject: Subject) -> Iterator[Pair]:
    """All data sets of a few users and three items, for mechanisms whose orders are enumerated."""
    sets = [items for size in (1, 2, 3) for items in combinations(range(3), size)]
    for number in range(subject.most_users):
        for users in combinations_with_replacement(sets, number):
            for extra in sets:
                yield Pair(tuple(Run(items) for items in users), extra, family="few users")


def spilled(subject: Subject) -> Iterator[Pair]:
    """The extra user fills items a little; later users then spill on to items of their own.

    Later user i has the list d_i, e_i, b_i: without the extra user it spends all on d_i and e_i,
    with it something is left for b_i, which nobody else has. Heights between the whole numbers
    come from users that fill an item up to the cap and give the rest to another.
    """
    cap = _cap(subject)
    if cap is None:
        return
    full = math.floor(cap)
    rest = 1 - (cap - full)  # what a user has left who fills an item held by `full` others
    for deep, small, count in product(range(4), range(6), (2, 3, 5)):
        names = iter(range(10_000))
        fillers = [[next(names) for _ in range(deep + small)] for _ in range(count)]
        d, e, b = ([next(names) for _ in range(count)] for _ in range(3))
        before: list[Run] = []
        for i in range(count):
            before += [Run((x,), full) for x in fillers[i]]
            for target, helpers in ((d[i], fillers[i][:deep]), (e[i], fillers[i][deep:])):
                height = math.floor(cap - len(helpers) * rest)
                before += [Run((target,), height)] if height > 0 else []
                before += [Run((x, target)) for x in helpers]
        after = tuple(Run((d[i], e[i], b[i])) for i in range(count))
        pair = Pair(tuple(before), tuple(d), after, family="spilled")
        if pair.num_users <= _MOST_USERS // 2:
            yield pair


# Those that have refuted published mechanisms come first.
FAMILIES: tuple[Callable[[Subject], Iterator[Pair]], ...] = (
    new_items, first_comer, gathered, one_item, several_items, shifted_fill, spilled,
)  # fmt: skip


def random_pair(generator: np.random.Generator, subject: Subject) -> Pair:
    """Items stacked to random heights, the extra user, then users with several items."""
    count = int(generator.integers(2, 7))
    levels = heights(subject, 8)
    total = max(levels)
    stacks = []
    for x in range(count):
        if generator.random() < 0.7:
            stacks.append(Run((x,), int(generator.choice(levels))))
    before, after = stacks, []
    for _ in range(int(generator.integers(0, 4))):
        run = Run(random_items(generator, count), int(generator.integers(1, max(2, total // 2))))
        (before if generator.random() < 0.5 else after).append(run)
    return Pair(tuple(before), random_items(generator, count), tuple(after), family="random")


def random_items(generator: np.random.Generator, count: int) -> Items:
    """A nonempty random set of items."""
    size = int(generator.integers(1, count + 1))
    return tuple(sorted(generator.choice(count, size, replace=False).tolist()))
