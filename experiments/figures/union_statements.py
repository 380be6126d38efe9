"""What the set-union figures say of the paper's sentences, computed from the comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from experiments.figures.data import DATA_SETS
from experiments.figures.paper import EPSILONS
from experiments.figures.record import Statement, Verdict, verdict_of
from experiments.figures.union_cells import (
    GREEDY,
    POLICIES,
    WGM,
    Cell,
    Distance,
    Standing,
    above,
    best,
    cells,
    distances,
    percent,
    standing,
)

if TYPE_CHECKING:
    import polars as pl

# What is clear enough to be called better or worse.
_CLEAR = 0.01
# Missing mass from which nearly nothing comes out.
_NOTHING = 0.99
# "About twice as many", with what rounding leaves.
_TWICE = 1.75


def judge_within(frame: pl.DataFrame, eps: float, source: str) -> list[Statement]:
    """The paper's "within 5 % of the policy mechanisms": one statement per policy."""
    found = cells(frame)
    made = []
    for policy, name in POLICIES.items():
        those = distances(found, eps, policy)
        if not those:
            continue
        stands: dict[str, Standing] = {name: standing(each) for name, each in those.items()}
        kept = [dataset for dataset, stand in stands.items() if stand == "holds"]
        bad = [dataset for dataset, stand in stands.items() if stand == "fails"]
        worst = {dataset: max(each, key=lambda at: at.mean) for dataset, each in those.items()}
        number = f"{len(kept)} of {len(those)} data sets"
        if kept:
            listed = (f"{dataset} {percent(worst[dataset].mean)}" for dataset in kept)
            number += f" ({', '.join(listed)})"
        rest = sorted(set(those) - set(kept), key=lambda dataset: -worst[dataset].mean)
        if rest:
            number += "; not " + ", ".join(f"{dataset} {worst[dataset]}" for dataset in rest)
        made.append(
            Statement(
                source,
                f"missing mass of the WGM within 5 % of {name}'s at every Δ0, ε = {eps:g}",
                verdict_of(len(kept), len(bad), len(those)),
                number,
                " ".join((*_notes(those, stands), *_more_notes(found, eps, policy))),
            )
        )
    return made


def _more_notes(found: Sequence[Cell], eps: float, policy: str) -> Iterable[str]:
    names = list(dict.fromkeys(cell.dataset for cell in found if cell.eps == eps))
    empty = [name for name in names if best(found, name, eps, WGM).mass > _NOTHING]
    if empty:
        yield f"Nearly nothing comes out on {', '.join(empty)}, which says little."
    if policy == GREEDY:
        yield "Policy Greedy in its sound form; as published it is not private."


def _notes(
    those: Mapping[str, Sequence[Distance]], stands: Mapping[str, Standing]
) -> Iterable[str]:
    yield "Per data set: the largest distance of the WGM at equal Δ0, negative if it is ahead."
    far = sorted({at.bound for each in those.values() for at in each if at.standing == "fails"})
    if far:
        yield f"Further than 5 % at Δ0 = {', '.join(map(str, far))} only."
    unclear = [dataset for dataset, stand in stands.items() if stand == "open"]
    if unclear:
        yield f"Too few trials to tell on {', '.join(unclear)}."
    own = [dataset for dataset in those if dataset in DATA_SETS and DATA_SETS[dataset].own]
    if own and set(stands.values()) != {"holds"}:
        good = [dataset for dataset in own if stands[dataset] == "holds"]
        yield f"On the paper's own complete data sets it holds on {len(good)} of {len(own)}."


def judge_items(frame: pl.DataFrame, source: str) -> list[Statement]:
    """The quoted "sequential methods often output about twice as many items"."""
    eps = EPSILONS[0]
    found = [cell for cell in cells(frame) if cell.eps == eps]
    own = {(c.dataset, c.bound): c.released for c in found if c.mechanism == WGM}
    most: dict[str, tuple[float, Cell]] = {}
    for other in found:
        mine = own.get((other.dataset, other.bound), 0.0)
        # Less than one item on average is nothing to compare with.
        if other.mechanism in POLICIES and mine >= 1:
            ratio = other.released / mine
            if ratio > most.get(other.dataset, (-math.inf,))[0]:
                most[other.dataset] = (ratio, other)
    if not most:
        return []
    twice = [dataset for dataset, (ratio, _) in most.items() if ratio >= _TWICE]
    verdict: Verdict = "not reproduced"
    if twice:
        verdict = "reproduced" if 2 * len(twice) >= len(most) else "with reservation"
    listed = ", ".join(
        f"{dataset} {ratio:.2f} ({POLICIES[at.mechanism]}, Δ0 = {at.bound})"
        for dataset, (ratio, at) in most.items()
    )
    return [
        Statement(
            source,
            "sequential methods often output about twice as many items (quoted by the paper)",
            verdict,
            f"{_TWICE:g} times or more on {len(twice)} of {len(most)} data sets; most: {listed}",
            f"Items released by a policy over those of the WGM at equal Δ0, the most over Δ0 and "
            f"the two policies, ε = {eps:g}.",
        )
    ]


def judge_same(frame: pl.DataFrame, source: str) -> list[Statement]:
    """The paper's "not significantly qualitatively different" at the smaller eps."""
    large, small = EPSILONS
    found = cells(frame)
    policy = next(iter(POLICIES))
    at = {eps: distances(found, eps, policy) for eps in EPSILONS}
    names = [dataset for dataset in at[large] if dataset in at[small]]
    if not names:
        return []
    differ = {}
    for dataset in names:
        told = []
        stands = [standing(at[eps][dataset]) for eps in EPSILONS]
        if stands[0] != stands[1]:
            worst = [percent(max(each.mean for each in at[eps][dataset])) for eps in EPSILONS]
            told.append(f"within 5 % {stands[0]} and {stands[1]}, {worst[0]} and {worst[1]}")
        one = [_gain_of_one(found, dataset, eps) for eps in EPSILONS]
        if min(one) < -_CLEAR and max(one) > _CLEAR:
            told.append(f"Δ0 = 1 leaves {percent(one[0])} and {percent(one[1])}")
        if told:
            differ[dataset] = "; ".join(told)
    masses = [
        sorted(best(found, dataset, eps, WGM).mass for dataset in names)[len(names) // 2]
        for eps in EPSILONS
    ]
    number = f"same conclusions on {len(names) - len(differ)} of {len(names)} data sets"
    if differ:
        number += "; not on " + ", ".join(f"{name} ({what})" for name, what in differ.items())
    return [
        Statement(
            source,
            f"ε = {small:g} is not qualitatively different from ε = {large:g}",
            verdict_of(len(names) - len(differ), len(differ), len(names)),
            number,
            f"Conclusions: whether the WGM is within 5 % of {POLICIES[policy]} at every Δ0, and "
            "whether it does better with Δ0 = 1 or with more. The missing mass itself is another: "
            f"of the WGM at its best Δ0, {masses[0]:.3f} and {masses[1]:.3f} in the middle of the "
            "data sets.",
        )
    ]


def _gain_of_one(found: Sequence[Cell], dataset: str, eps: float) -> float:
    """By which share the WGM leaves more or less with one item per user than with more."""
    own = [c for c in found if (c.dataset, c.eps, c.mechanism) == (dataset, eps, WGM)]
    one = [cell.mass for cell in own if cell.bound == 1]
    more = [cell.mass for cell in own if cell.bound > 1]
    return above(min(one), min(more)) if one and more else 0.0
