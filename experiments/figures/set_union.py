"""Set union: Figures 1, 8, 9 and 10 of the paper, and the Bernoulli flow beside them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.figures.data import DATA_SETS, Case, Group, in_group
from experiments.figures.paper import BOUNDS, DELTA, EPSILONS
from experiments.figures.record import FigureSpec, Statement
from experiments.figures.task import Kind, Task
from experiments.figures.union_flow import flow_sentences, flow_table
from experiments.figures.union_statements import judge_items, judge_same, judge_within
from experiments.figures.words import data_in, headings
from experiments.flow_store import NAME as FLOW
from experiments.flow_store import TWO_ROUNDS

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

FLOW_BOUND = 300
MECHANISMS = ("wgm", "wgm (full)", "policy-gaussian", "policy-greedy")
# The second round is integrated out: a few trials have little spread.
_TWO_ROUND_TRIALS = 4


def union_tasks(names: Sequence[str], trials: int, seed: int) -> list[Task]:
    """One task per data set and Delta0, and one for the flow; all values of eps in each."""
    made = []
    for name in names:
        for bound in BOUNDS:
            made.append(_task(name, bound, MECHANISMS, trials, seed))
        made.append(flow_task(name))
    return made


def flow_task(name: str) -> Task:
    """The flow on one data set; nothing is random."""
    return _task(name, FLOW_BOUND, [FLOW], trials=1, seed=0)


def flow_figure_tasks(names: Sequence[str], trials: int, seed: int) -> list[Task]:
    """Those of `union_tasks`, and one per data set for the flow in two rounds."""
    few = min(trials, _TWO_ROUND_TRIALS)
    more = [_task(name, FLOW_BOUND, [TWO_ROUNDS], few, seed) for name in names]
    return union_tasks(names, trials, seed) + more


def _task(name: str, bound: int, mechanisms: Sequence[str], trials: int, seed: int) -> Task:
    settings = {
        "eps": list(EPSILONS), "delta": DELTA, "max_items_per_user": bound,
        "mechanisms": list(mechanisms), "trials": trials, "seed": seed,
    }  # fmt: skip
    return Task("set-union", name, settings)


def compared(case: Case | None, settings: Mapping[str, Any]) -> pl.DataFrame:
    """Rows of `Comparison.to_frame` for one Delta0; `trials` and `seed` as in the settings."""
    from experiments.comparison import compare

    assert case is not None
    found = compare(
        case.user_items,
        dataset=case.name,
        eps=settings["eps"],
        delta=settings["delta"],
        max_items_per_user=[settings["max_items_per_user"]],
        mechanisms=settings["mechanisms"],
        num_trials=settings["trials"],
        seed=settings["seed"],
    )
    import polars as pl

    return found.to_frame().with_columns(seed=pl.lit(settings["seed"], pl.Int64))


def calibrate_flows(tasks: Sequence[Task]) -> None:
    """Calibrate every flow once for all workers, which then read it from its file."""
    from experiments.flow_store import make_ready
    from theory import calibrate

    wanted = {
        (mechanism, eps, task.settings["delta"], task.settings["max_items_per_user"])
        for task in tasks
        if task.kind in KINDS
        for mechanism in task.settings["mechanisms"]
        for eps in task.settings["eps"]
    }
    for mechanism, eps, delta, bound in sorted(wanted):
        make_ready(mechanism, calibrate(eps=eps, delta=delta, max_items_per_user=bound))


def _draw(eps: float, frame: pl.DataFrame) -> tuple[Figure, pl.DataFrame]:
    from experiments.plots.union import union_panels

    return union_panels(frame, eps=eps, titles=headings())


def _draw_flow(frame: pl.DataFrame) -> tuple[Figure, pl.DataFrame]:
    from experiments.plots.union import flow_dots

    return flow_dots(flow_table(frame), titles={})


def _settings(frame: pl.DataFrame) -> str:
    """Data, delta, trials and seed in words."""
    import polars as pl

    drawn = frame.filter((pl.col("kind") != "exact") & (pl.col("mechanism") != TWO_ROUNDS))
    trials = drawn["trials"].unique().sort().to_list()
    seeds = drawn["seed"].unique().sort().to_list()
    data = data_in(frame)
    if not trials:
        return f"Data: {data}. δ = {frame['delta'][0]:g}. All means are exact: no trials."
    return (
        f"Data: {data}. δ = {frame['delta'][0]:g}; trials of the policies: "
        f"{', '.join(map(str, trials))} (none where nothing is random), "
        f"seed {', '.join(map(str, seeds))}."
    )


def _caption(eps: float, frame: pl.DataFrame) -> str:
    return (
        f"Mean missing mass at ε = {eps:g} against Δ0, above [L2], which no private algorithm is "
        "below on average; under it the distance to the WGM at equal Δ0 in per cent, 5 % shaded "
        "(what is beyond 45 % is left out). wgm: the paper's calibration, δ/2 and δ/2 [P1]; wgm "
        "(full): all of δ for both [P3]. Both are exact means, and so is the Bernoulli flow, "
        f"which has one Δ0, {FLOW_BOUND}. Policy Gaussian (l2 form) and Policy Greedy are the "
        "sound forms with α = 3; the published ones are not private. Bars, mostly narrower than "
        f"the lines: 95 % intervals. {_settings(frame)}"
    )


def _flow_caption(frame: pl.DataFrame) -> str:
    import polars as pl

    own = frame.filter(pl.col("mechanism") == TWO_ROUNDS)
    trials = ", ".join(map(str, own["trials"].unique().sort().to_list()))
    two = f"Two rounds: means of {trials} trials, the second round integrated out."
    return (
        f"Missing mass of the Bernoulli flow with Δ0 = {FLOW_BOUND}, and of the WGM and the better "
        "of two policies each at the best Δ0 of "
        f"{', '.join(map(str, BOUNDS))}, chosen with the data in view: a handicap for the flow. "
        f"[L2]: no private algorithm leaves less on average. {' '.join(flow_sentences(frame))} "
        f"{_settings(frame)}{' ' + two if trials else ''}"
    )


def _union(
    name: str,
    eps: float,
    group: Group,
    where: str,
    paper: str,
    more: Sequence[Callable[[pl.DataFrame, str], list[Statement]]] = (),
) -> FigureSpec:
    def judge(frame: pl.DataFrame) -> list[Statement]:
        source = f"{where}, Figure {name}"
        found = judge_within(frame, eps, source)
        return found + [each for judges in more for each in judges(frame, source)]

    return FigureSpec(
        name=name,
        stem=f"figure-{int(name):02d}",
        title=f"Set union: missing mass against Δ0, ε = {eps:g}, {group} data sets",
        paper=paper,
        tasks=lambda present, trials, seed: union_tasks(in_group(present, group), trials, seed),
        draw=functools.partial(_draw, eps),
        judge=judge,
        caption=functools.partial(_caption, eps),
        prepare=calibrate_flows,
    )


_WITHIN = (
    "average missing mass over 5 trials of the WGM, Policy Gaussian and Policy Greedy; across data "
    "sets the WGM is within 5 % of the policies"
)
SPECS: tuple[FigureSpec, ...] = (
    _union("1", 1.0, "large", "Section 5.1", f"{_WITHIN}.", [judge_items]),
    _union("8", 1.0, "small", "Appendix F.1.1", "as Figure 1 for the small data sets, a similar "
           "trend: the WGM is comparable to the policies.", [judge_items]),
    _union("9", 0.1, "large", "Appendix F.1.2", "as Figure 1 at ε = 0.1, not qualitatively "
           "different.", [judge_same]),
    _union("10", 0.1, "small", "Appendix F.1.2", "as Figure 8 at ε = 0.1, not qualitatively "
           "different.", [judge_same]),
    FigureSpec(
        name="bernoulli-flow",
        stem="bernoulli-flow",
        title="Set union: what the Bernoulli flow leaves beside the WGM and the policies",
        paper=None,
        tasks=lambda present, trials, seed: flow_figure_tasks(
            [name for name in DATA_SETS if name in present], trials, seed
        ),
        draw=_draw_flow,
        judge=lambda frame: [],  # the paper does not know it
        caption=_flow_caption,
        prepare=calibrate_flows,
    ),
)  # fmt: skip

KINDS: dict[str, Kind] = {"set-union": compared}
