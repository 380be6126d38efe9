"""Structured neighbouring pairs for selections: counts that differ by a few scales of the noise.

One more user raises some counts by one. What tells most is whether the items it raises are those
that are selected, how close the others are, and whether it brings an item near a threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import chain, combinations, product

import numpy as np

from experiments.audit.families import heights, random_items
from experiments.audit.pairs import Items, Pair, Run
from experiments.audit.selection_subjects import SelectionSubject

# Differences of counts, in scales of the selection's noise.
_GAPS = (0.0, -2.0, 2.0, -4.0, 4.0, -8.0, 8.0, -0.5, 0.5)


def base(subject: SelectionSubject) -> int:
    """A count that is as good as certain to be in the domain, and large enough to be lowered."""
    certain = max((now.threshold + 7 * now.scale for now in subject.rounds), default=0.0)
    return math.ceil(certain) + 8 * subject.num_counts + 1


def last_user(subject: SelectionSubject) -> Iterator[Pair]:
    """Users who all hold item 0, and one more who does not: is somebody left when 0 is chosen?"""
    many, step = base(subject), subject.num_counts
    for size, alone, shared in product(
        (2, 3), (8 * step, 2 * step, 0, 20 * step), (2 * many, many, 1)
    ):
        others = tuple(range(1, size))
        runs = [Run((0, *others), shared)] + ([Run((0,), alone)] if alone else [])
        yield Pair(tuple(runs), others[:1], family="last user")
        yield Pair(tuple(runs), others, family="last user")


def raised_counts(subject: SelectionSubject) -> Iterator[Pair]:
    """The extra user holds some of a few items; these and the others differ by a gap."""
    low, step = base(subject), subject.num_counts
    sizes = sorted(range(2, 6), key=lambda size: abs(size - subject.k - 1))
    for size, gap in product(sizes, _GAPS):
        for raised in range(1, size + 1):
            for place in (0, size - raised):
                extra = tuple(range(place, place + raised))
                shift = round(gap * step)
                runs = tuple(Run((x,), low + (shift if x in extra else 0)) for x in range(size))
                yield Pair(runs, extra, family="raised counts")
    # Counts in steps: every item ahead of the next.
    for size, gap in product(sizes, _GAPS):
        runs = tuple(Run((x,), max(1, low + round(gap * step * x))) for x in range(size))
        for extra in _subsets(size):
            yield Pair(runs, extra, family="counts in steps")


def near_the_threshold(subject: SelectionSubject) -> Iterator[Pair]:
    """One item near a threshold, or new, beside items far above it."""
    if not subject.rounds:
        return
    high, step = base(subject), subject.num_counts
    now = subject.rounds[0]
    worst = round(now.threshold + now.scale**2 * subject.eps)
    levels = sorted({0, worst, *heights(subject, 10)})
    for count, others in product(sorted({1, 2, subject.max_items_per_user}), (0, 1, 2)):
        old = tuple(Run((x,), high) for x in range(others))
        fresh = tuple(range(others, min(others + count, subject.most_items)))
        yield Pair(old or (Run((9,), 1),), fresh, family="new items")
    for (others, gap), level in product(((2, 2.0), (1, 0.0), (3, 2.0), (2, 0.0)), levels):
        runs = [Run((0,), level)] if level else []
        runs += [Run((x,), high + round(gap * step * (x % 2))) for x in range(1, others + 1)]
        for more in chain([()], ((x,) for x in range(1, others + 1))):
            yield Pair(tuple(runs), (0, *more), family="near the threshold")
        yield Pair(tuple(runs), tuple(range(others + 1)), family="near the threshold")


def all_near(subject: SelectionSubject) -> Iterator[Pair]:
    """All items near the threshold, so that both stages tell something."""
    if subject.finder is None:
        return
    now, size = subject.rounds[0], min(3, subject.k + 1)
    levels = [max(1, round(now.threshold + shift * now.scale)) for shift in (0, -2, 1, 3)]
    for counts in product(levels, repeat=size):
        runs = tuple(Run((x,), level) for x, level in enumerate(counts))
        for raised in (2, 1):
            yield Pair(runs, tuple(range(size - raised, size)), family="all near")


def border(subject: SelectionSubject) -> Iterator[Pair]:
    """Equal counts, and one more user who makes a later item the larger one."""
    levels = [base(subject)] if subject.finder else [base(subject), 1, *heights(subject, 5)]
    for level, size in product(levels, sorted({subject.k + 1, 2, 3, 4})):
        runs = tuple(Run((x,), level) for x in range(size))
        for extra in ((size - 1,), (0,), tuple(range(1, size)), tuple(range(size))):
            yield Pair(runs, extra, family="border")
            lifted = (Run((0,), level + round(subject.num_counts)), *runs[1:])
            yield Pair(lifted, extra, family="border")


# Those that refute what has been proposed come first.
SELECTION_FAMILIES: tuple[Callable[[SelectionSubject], Iterator[Pair]], ...] = (
    last_user, border, all_near, near_the_threshold, raised_counts,
)  # fmt: skip


def random_selection_pair(generator: np.random.Generator, subject: SelectionSubject) -> Pair:
    """A few items of random counts, some users with several of them, and the extra user."""
    count = int(generator.integers(2, 6))
    near = heights(subject, 6) if subject.rounds else [1]
    runs = []
    for x in range(count):
        if generator.random() < 0.7:
            level = base(subject) + round(float(generator.normal(0, 3)) * subject.num_counts)
        else:
            level = int(generator.choice(near))
        runs.append(Run((x,), max(1, level)))
    for _ in range(int(generator.integers(0, 3))):
        repeat = int(generator.integers(1, 2 + base(subject)))
        runs.append(Run(random_items(generator, count), repeat))
    return Pair(tuple(runs), random_items(generator, count), family="random")


def _subsets(size: int) -> Iterator[Items]:
    for number in range(1, size + 1):
        yield from combinations(range(size), number)
