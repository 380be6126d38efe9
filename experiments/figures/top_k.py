"""Top-k: Figures 2, 11 and 12 of the paper."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.figures.data import Case
from experiments.figures.paper import EPSILONS
from experiments.figures.record import FigureSpec, Statement, Verdict, verdict_of
from experiments.figures.selection_drawing import READING, draw_selections, settings_in_words
from experiments.figures.selection_rows import (
    FEATURED,
    TRIALS,
    selection_rows,
    selection_tasks,
)
from experiments.figures.selection_statements import (
    LARGE,
    Point,
    by_data_set,
    grows,
    idle,
    idle_in_words,
    in_points,
    large,
    leads_in_words,
    points,
    smaller_everywhere,
    statement,
)
from experiments.figures.task import Kind

if TYPE_CHECKING:
    import polars as pl

TOP_K = "top-k"
OURS = "peeling"
BASELINES = tuple(f"limited-domain k̄={size}" for size in ("k", "5k", "10k", "∞"))
NAMES = {"missing_mass": "top-k missing mass", "l1_loss": "ℓ1 loss"}
_NEAR_ZERO = 0.01


def compared(case: Case | None, settings: Mapping[str, Any]) -> pl.DataFrame:
    """WGM with peeling and the paper's four limited-domain baselines on one data set."""
    from experiments.selection import methods

    assert case is not None
    chosen = methods("top-k", ["peeling", "limited-domain"])
    return selection_rows(case, settings, "top-k", chosen, {OURS: BASELINES})


# ---- what the paper says


def judge_smaller(
    frame: pl.DataFrame, *, eps: float, metric: str, says: str, source: str
) -> list[Statement]:
    """Smaller than all four baselines at every k."""
    found = points(frame, eps=eps, metric=metric, ours=OURS, rivals=BASELINES)
    # Where nothing is released, nobody can be ahead; the paper's panels count all the same.
    still = idle(frame, eps=eps, metric=metric)
    verdicts: dict[str, Verdict] = {
        name: smaller_everywhere(those)
        for name, those in found.items()
        if name in FEATURED or name not in still
    }
    number = by_data_set(found, leads_in_words)
    notes = (
        "In points of all pairs, against the best of the four baselines at each k; ahead and "
        "behind by more than chance at 95 %, paired over trials.",
        idle_in_words(still),
    )
    return statement(source, says, verdicts, number, notes)


def judge_growth(frame: pl.DataFrame, *, source: str) -> list[Statement]:
    """The advantage in top-k missing mass grows with k."""
    import polars as pl

    eps, metric = EPSILONS[0], "missing_mass"
    found = points(frame, eps=eps, metric=metric, ours=OURS, rivals=BASELINES)
    steps: dict[str, list[tuple[float, float]]] = {name: [] for name in found}
    rows = frame.filter(
        (pl.col("role") == "growth")
        & (pl.col("eps") == eps)
        & (pl.col("metric") == metric)
        & pl.col("dataset").is_in(list(found))
    )
    for name, mean, low in rows.select("dataset", "mean", "low").iter_rows():
        steps[name].append((mean, low))
    verdicts: dict[str, Verdict] = {
        name: grows(those, found[name][-1].lead) for name, those in steps.items()
    }

    def words(those: Sequence[Point]) -> str:
        return ", ".join(f"{in_points(each.lead)}" for each in those)

    where = ", ".join(str(each.k) for each in next(iter(found.values()), ()))
    return statement(
        source,
        f"the advantage grows with k, ε = {eps:g}",
        verdicts,
        f"lead in points at k = {where}: {by_data_set(found, words)}",
        ["Over the best of the four baselines at each k."],
    )


def judge_near_zero(frame: pl.DataFrame) -> list[Statement]:
    """All methods near 0 on large data."""
    import polars as pl

    rows = frame.filter(
        (pl.col("role") == "method")
        & (pl.col("eps") == EPSILONS[0])
        & (pl.col("metric") == "missing_mass")
    )
    holds, ours_only, fails = [], [], []
    for name in large(rows):
        own = rows.filter(pl.col("dataset") == name)
        worst = own.sort("mean", descending=True).row(0, named=True)
        ours = max(own.filter(pl.col("method") == OURS)["mean"])
        told = f"{name} {in_points(worst['mean'])} %"
        if worst["mean"] <= _NEAR_ZERO:
            holds.append(told)
            continue
        told += f" ({worst['method']}, k = {worst['k']}; {OURS} {in_points(ours)} %)"
        (ours_only if ours <= _NEAR_ZERO else fails).append(told)
    total = len(holds) + len(ours_only) + len(fails)
    if not total:
        return []
    number = f"at most 1 % for every method and k on {len(holds)} of {total} data sets, for {OURS} "
    number += f"on {len(holds) + len(ours_only)}: {', '.join([*holds, *ours_only, *fails])}"
    note = (
        f"Stand for the paper's large data sets: those of its large group with at least {LARGE:,} "
        f"pairs. The worst method at its worst k each, and {OURS} at its own."
    )
    return [
        Statement(
            "Section 5.2",
            f"on large data all methods have near 0 top-k missing mass at every k, "
            f"ε = {EPSILONS[0]:g}",
            verdict_of(len(holds), len(fails), total),
            number,
            note,
        )
    ]


# ---- figures


def _caption(eps: float, metrics: Sequence[str], frame: pl.DataFrame) -> str:
    what = " and ".join(NAMES[metric] for metric in metrics)
    return (
        f"Mean {what} against k at ε = {eps:g}, in per cent of the pairs. {OURS}: the WGM "
        "finds the domain, peeling selects from it. limited-domain: Durfee and Rogers (2019) with "
        "the k̄ of the paper; users are cut to Δ0 items where k̄ = ∞ only. "
        f"{READING.format(rival='the best of the four baselines')} {settings_in_words(frame)}"
    )


def _figure(
    number: int,
    eps: float,
    metrics: Sequence[str],
    paper: str,
    judge: Callable[[pl.DataFrame], list[Statement]],
) -> FigureSpec:
    what = " and ".join(NAMES[metric] for metric in metrics)
    return FigureSpec(
        name=str(number),
        stem=f"figure-{number:02d}",
        title=f"Top-k: {what} against k, ε = {eps:g}",
        paper=paper,
        tasks=functools.partial(selection_tasks, TOP_K),
        draw=functools.partial(
            draw_selections, eps=eps, metrics=metrics, rivals=BASELINES,
        ),
        judge=judge,
        caption=functools.partial(_caption, eps, metrics),
        trials=TRIALS,
    )  # fmt: skip


def _judge_2(frame: pl.DataFrame) -> list[Statement]:
    source = "Section 5.2, Figure 2"
    says = f"smaller top-k missing mass than all limited-domain baselines, ε = {EPSILONS[0]:g}"
    return [
        *judge_smaller(frame, eps=EPSILONS[0], metric="missing_mass", says=says, source=source),
        *judge_growth(frame, source=source),
        *judge_near_zero(frame),
    ]


def _judge_11(frame: pl.DataFrame) -> list[Statement]:
    says = f"significantly less ℓ1 loss than all baselines, ε = {EPSILONS[0]:g}"
    source = "Appendix F.2, Figure 11"
    return judge_smaller(frame, eps=EPSILONS[0], metric="l1_loss", says=says, source=source)


def _judge_12(frame: pl.DataFrame) -> list[Statement]:
    return [
        each
        for metric, name in NAMES.items()
        for each in judge_smaller(
            frame,
            eps=EPSILONS[1],
            metric=metric,
            says=f"continues to outperform the baselines at every k: {name}, ε = {EPSILONS[1]:g}",
            source="Appendix F.2, Figure 12",
        )
    ]


SPECS: tuple[FigureSpec, ...] = (
    _figure(
        2, EPSILONS[0], ("missing_mass",), "average top-k missing mass over 5 trials; on all data "
        "sets the method consistently obtains smaller top-k missing mass than all limited-domain "
        "baselines, and its advantage grows with k.", _judge_2,
    ),
    _figure(
        11, EPSILONS[0], ("l1_loss",), "as Figure 2 with the more stringent ℓ1 loss: significantly "
        "less than all baselines.", _judge_11,
    ),
    _figure(
        12, EPSILONS[1], ("missing_mass", "l1_loss"), "as Figures 2 and 11 at ε = 0.1: the method "
        "continues to outperform the baselines across all k.", _judge_12,
    ),
)  # fmt: skip

KINDS: dict[str, Kind] = {TOP_K: compared}
