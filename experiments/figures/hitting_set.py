"""k-hitting set: Figures 3 and 13 of the paper."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from experiments.figures.data import DATA_SETS, Case
from experiments.figures.paper import EPSILONS
from experiments.figures.record import FigureSpec, Statement, Verdict, verdict_of
from experiments.figures.selection_drawing import READING, draw_selections, settings_in_words
from experiments.figures.selection_rows import (
    FEATURED,
    SIZES,
    TRIALS,
    selection_rows,
    selection_tasks,
)
from experiments.figures.selection_statements import (
    LARGE,
    Point,
    by_data_set,
    comparable,
    idle,
    idle_in_words,
    in_points,
    large,
    leads_in_words,
    outperforms,
    points,
    statement,
)
from experiments.figures.task import Kind

if TYPE_CHECKING:
    import polars as pl

    from experiments.selection import Method

HITTING_SET = "hitting-set"
METRIC = "missed_share"
GREEDY = "greedy"
PRINTED, SMALLER = "[K1]", "[K1h]"
NOISES = {PRINTED: "noise as printed, [K1]", SMALLER: "the smaller noise [K1h]"}
# "Comparable": so many users more are missed at most, of all users.
_WITHIN = 0.05
# "A small number of items covers nearly all users": greedy, 20 items, 95 %.
_FEW, _NEARLY_ALL = 20, 0.05


def ours(noise: str) -> str:
    """Label of the WGM with user peeling."""
    return f"user-peeling {noise}"


def public(noise: str) -> str:
    """Label of user peeling on all items."""
    return f"user-peeling-public {noise}"


def compared(case: Case | None, settings: Mapping[str, Any]) -> pl.DataFrame:
    """User peeling on the domain of the WGM and on all items, each with two noises, and greedy.

    [K1]: the noise that the paper prints. [K1h]: the smaller of [K1] and [K1h].
    """
    assert case is not None
    rivals = {ours(noise): (public(noise), GREEDY) for noise in NOISES}
    return selection_rows(case, settings, "hitting-set", _methods(), rivals)


def _methods() -> tuple[Method, ...]:
    from experiments.selection import methods

    names = ["user-peeling", "user-peeling-public"]
    found = {
        noise: [
            dataclasses.replace(each, label=f"{each.label} {noise}")
            for each in methods("hitting-set", names, accountant=accountant)
        ]
        for noise, accountant in ((PRINTED, "paper"), (SMALLER, "closed"))
    }
    # Ours with both noises, then the public domain.
    pairs = zip(found[PRINTED], found[SMALLER], strict=True)
    return (*(each for pair in pairs for each in pair), *methods("hitting-set", [GREEDY]))


# ---- what the paper says


def judge_comparable(
    frame: pl.DataFrame, *, eps: float, noise: str, rivals: Mapping[str, str], source: str
) -> list[Statement]:
    """Comparable with some rivals, label -> name, by one noise."""
    found = points(frame, eps=eps, metric=METRIC, ours=ours(noise), rivals=list(rivals))
    verdicts: dict[str, Verdict] = {
        name: comparable(those, _WITHIN) for name, those in found.items()
    }

    def words(those: list[Point]) -> str:
        worst = min(those, key=lambda each: each.lead)
        good = [str(each.k) for each in those if each.at_least >= -_WITHIN]
        told = f"at k = {', '.join(good)}" if good else "at no k"
        told = "at every k" if len(good) == len(those) else told
        behind = f"at most {in_points(-worst.lead)} behind" if worst.lead < 0 else "never behind"
        return f"{told}, {behind}" + (
            f" ({rivals[worst.rival]}, k = {worst.k})" if worst.lead < 0 else ""
        )

    says = f"comparable with {' and '.join(rivals.values())}, ε = {eps:g} ({NOISES[noise]})"
    notes = (
        "Comparable: surely at most 5 % of all users more are missed. Differences in points.",
        _few_released(frame, eps, noise),
        idle_in_words(idle(frame, eps=eps, metric=METRIC)),
    )
    return statement(source, says, verdicts, by_data_set(found, words), notes)


def _few_released(frame: pl.DataFrame, eps: float, noise: str) -> str:
    """How many items are released where the domain has fewer than k."""
    import polars as pl

    rows = frame.filter(
        (pl.col("eps") == eps)
        & (pl.col("method") == ours(noise))
        & (pl.col("metric") == "num_released")
        & pl.col("dataset").is_in(list(FEATURED))
    ).sort("k")
    most = rows.unique("dataset", keep="last", maintain_order=True)
    few = [
        f"{name} {mean:.3g} of {k}"
        for name, mean, k in most.select("dataset", "mean", "k").iter_rows()
        if mean < 0.99 * k
    ]
    return f"The domain that is found ends before k: released, {', '.join(few)}." if few else ""


def judge_outperforms(frame: pl.DataFrame, *, noise: str, source: str) -> list[Statement]:
    """Better than user peeling on a public domain, on the two data sets that the paper names."""
    eps = EPSILONS[0]
    found = points(frame, eps=eps, metric=METRIC, ours=ours(noise), rivals=[public(noise)])
    verdicts: dict[str, Verdict] = {name: outperforms(those) for name, those in found.items()}
    named = [name for name in FEATURED if DATA_SETS[name].own]
    rest: dict[str, Verdict] = {
        name: each for name, each in verdicts.items() if name not in FEATURED
    }
    chosen: dict[str, Verdict] = {name: each for name, each in verdicts.items() if name in named}
    number = by_data_set(
        {name: those for name, those in found.items() if name in named}, leads_in_words
    )
    says = (
        f"outperforms the private greedy choice on a public domain, on Steam and Magazine, "
        f"ε = {eps:g} ({NOISES[noise]})"
    )
    notes = [
        "Both with noise by the same rule, the public one for all of the budget; in points of all "
        "users, paired over trials."
    ]
    return statement(source, says, chosen | rest, number, notes)


def judge_sometimes(frame: pl.DataFrame, *, noise: str, source: str) -> list[Statement]:
    """Sometimes better than user peeling on a public domain."""
    eps = EPSILONS[1]
    found = points(frame, eps=eps, metric=METRIC, ours=ours(noise), rivals=[public(noise)])
    shown = {name: those for name, those in found.items() if name in FEATURED}
    if not shown:
        return []
    ahead = any(each.ahead for those in shown.values() for each in those)
    others = [
        name
        for name, those in found.items()
        if name not in FEATURED and any(each.ahead for each in those)
    ]
    note = "In points of all users, paired over trials."
    if others:
        note += f" On data sets that the paper does not show here, on {', '.join(others)}."
    return [
        Statement(
            source,
            f"sometimes outperforms the public domain, ε = {eps:g} ({NOISES[noise]})",
            "reproduced" if ahead else "not reproduced",
            by_data_set(shown, leads_in_words),
            note,
        )
    ]


def judge_coverage(frame: pl.DataFrame) -> list[Statement]:
    """A small number of items covers nearly all users of large data."""
    import polars as pl

    rows = frame.filter(
        (pl.col("method") == GREEDY)
        & (pl.col("role") == "method")
        & (pl.col("metric") == METRIC)
        & (pl.col("eps") == EPSILONS[0])
    )
    missed = {
        name: [
            rows.filter((pl.col("dataset") == name) & (pl.col("k") == k))["mean"].item()
            for k in (_FEW, SIZES[-1])
        ]
        for name in large(rows)
    }
    if not missed:
        return []
    good = sum(few <= _NEARLY_ALL for few, _ in missed.values())
    return [
        Statement(
            "Section 5.3",
            "a small number of items covers nearly all users of large data",
            verdict_of(good, len(missed) - good, len(missed)),
            f"{_FEW} ({SIZES[-1]}) items, chosen greedily without privacy, miss "
            + ", ".join(
                f"{in_points(few)} ({in_points(many)}) % on {name}"
                for name, (few, many) in missed.items()
            ),
            f"Nearly all: {100 - 100 * _NEARLY_ALL:g} % by {_FEW} items. Stand for the paper's "
            f"large data sets: those of its large group with at least {LARGE:,} pairs.",
        )
    ]


# ---- figures


def _caption(eps: float, frame: pl.DataFrame) -> str:
    return (
        f"Mean share of users who hold none of the k items, in per cent, at ε = {eps:g}. "
        "user-peeling: the WGM finds the domain, user peeling selects from it. "
        "user-peeling-public: all of the budget for a selection from all items, taken as public. "
        f"Each with the noise that the paper prints, {PRINTED}, which grows like the root of k, "
        f"and with the smaller of it and {SMALLER}, which does not and is as private. greedy: no "
        f"noise, not private. {READING.format(rival='the public domain with the same noise')} "
        f"{settings_in_words(frame)}"
    )


def _figure(
    number: int, eps: float, paper: str, judge: Callable[[pl.DataFrame], list[Statement]]
) -> FigureSpec:
    return FigureSpec(
        name=str(number),
        stem=f"figure-{number:02d}",
        title=f"k-hitting set: users missed against k, ε = {eps:g}",
        paper=paper,
        tasks=functools.partial(selection_tasks, HITTING_SET),
        draw=functools.partial(
            draw_selections, eps=eps, metrics=(METRIC,), rivals=[public(noise) for noise in NOISES],
        ),
        judge=judge,
        caption=functools.partial(_caption, eps),
        trials=TRIALS,
    )  # fmt: skip


def _judge_3(frame: pl.DataFrame) -> list[Statement]:
    source = "Section 5.3, Figure 3"
    made = []
    for noise in NOISES:
        both = {public(noise): "the public domain", GREEDY: "non-private greedy"}
        made += judge_comparable(frame, eps=EPSILONS[0], noise=noise, rivals=both, source=source)
        made += judge_outperforms(frame, noise=noise, source=source)
    return [*made, *judge_coverage(frame)]


def _judge_13(frame: pl.DataFrame) -> list[Statement]:
    source = "Appendix F.3, Figure 13"
    made = []
    for noise in NOISES:
        rivals = {public(noise): "the public domain"}
        made += judge_comparable(frame, eps=EPSILONS[1], noise=noise, rivals=rivals, source=source)
        made += judge_sometimes(frame, noise=noise, source=source)
    return made


SPECS: tuple[FigureSpec, ...] = (
    _figure(
        3, EPSILONS[0], "users hit, with the standard error over 5 trials; the method performs "
        "comparably with both baselines, and outperforms the private greedy choice from the public "
        "domain on Steam and Magazine, since the domain of the WGM is smaller.", _judge_3,
    ),
    _figure(
        13, EPSILONS[1], "users missed at ε = 0.1: the method performs comparably with the case "
        "where the domain is public, and sometimes outperforms it.", _judge_13,
    ),
)  # fmt: skip

KINDS: dict[str, Kind] = {HITTING_SET: compared}
