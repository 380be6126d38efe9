"""Hill climbing over small data sets: random changes of a pair of neighbours."""

from __future__ import annotations

import dataclasses

import numpy as np

from experiments.audit.families import random_items
from experiments.audit.pairs import Pair, Run
from experiments.audit.set_union_subjects import Subject

_MOST_RUNS = 14


def neighbour(generator: np.random.Generator, pair: Pair, subject: Subject) -> Pair:
    """The pair after one to three random changes, still of a size that can be evaluated."""
    changed = pair
    for _ in range(int(generator.choice((1, 1, 2, 3)))):
        tried = _change(generator, changed, subject)
        few_items = tried.num_items <= max(subject.most_items, pair.num_items)
        if few_items and tried.num_users <= max(subject.most_users, pair.num_users):
            changed = tried
    return dataclasses.replace(changed, family="climb")


def _change(generator: np.random.Generator, pair: Pair, subject: Subject) -> Pair:
    """One change of a kind that matters to the subject."""
    kinds = ["repeat", "repeat", "repeat", "items", "extra", "insert", "delete", "level"]
    if subject.sequential:
        kinds += ["swap", "side", "split", "names", "repeat"]
    kind = str(generator.choice(kinds))
    count = min(subject.most_items, pair.num_items + 1)
    if kind == "extra":
        return dataclasses.replace(pair, extra=_toggle(generator, pair.extra, count))
    if kind == "names":
        return rename(generator, pair)
    runs = [*pair.before, *pair.after]
    border = len(pair.before)
    if kind == "insert" and len(runs) < _MOST_RUNS:
        place = int(generator.integers(0, len(runs) + 1))
        repeat = int(generator.choice((1, 1, 2, 5, 10)))
        runs.insert(place, Run(random_items(generator, count), repeat))
        border += place < border or (place == border and generator.random() < 0.5)
    elif kind == "side":
        border = int(np.clip(border + generator.choice((-1, 1)), 0, len(runs)))
    elif runs:
        place = int(generator.integers(0, len(runs)))
        run = runs[place]
        if kind == "repeat":
            step = int(generator.choice((1, 1, 1, 2, 3, 5, 10))) * int(generator.choice((-1, 1)))
            runs[place] = dataclasses.replace(run, repeat=max(1, run.repeat + step))
        elif kind == "items":
            runs[place] = dataclasses.replace(run, items=_toggle(generator, run.items, count))
        elif kind == "delete" and len(runs) > 1:
            del runs[place]
            border -= place < border
        elif kind == "level":  # all stacks together
            step = int(generator.choice((-2, -1, 1, 2)))
            runs = [
                dataclasses.replace(r, repeat=max(1, r.repeat + step)) if len(r.items) == 1 else r
                for r in runs
            ]
        elif kind == "swap" and place + 1 < len(runs):
            runs[place], runs[place + 1] = runs[place + 1], runs[place]
        elif kind == "split" and run.repeat > 1 and len(runs) < _MOST_RUNS:
            part = int(generator.integers(1, run.repeat))
            runs[place : place + 1] = [Run(run.items, part), Run(run.items, run.repeat - part)]
            border += place < border and not (place == border - 1 and generator.random() < 0.5)
    return Pair(tuple(runs[:border]), pair.extra, tuple(runs[border:]), pair.family)


def rename(generator: np.random.Generator, pair: Pair) -> Pair:
    """The same pair under other item names; every list is in the order of names."""
    known = sorted({x for r in (*pair.before, *pair.after) for x in r.items} | {*pair.extra})
    other = dict(zip(known, generator.permutation(known).tolist(), strict=True))

    def named(items: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(sorted(other[x] for x in items))

    def runs(given: tuple[Run, ...]) -> tuple[Run, ...]:
        return tuple(Run(named(run.items), run.repeat) for run in given)

    return Pair(runs(pair.before), named(pair.extra), runs(pair.after), pair.family)


def _toggle(generator: np.random.Generator, items: tuple[int, ...], count: int) -> tuple[int, ...]:
    """Add or remove one item; never the last one."""
    x = int(generator.integers(0, count))
    changed = set(items) ^ {x}
    return tuple(sorted(changed)) if changed else items
