"""Numbers behind the figures of top-k and hitting sets: means, bounds, and paired differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.figures.data import DATA_SETS, Case
from experiments.figures.paper import DELTA, EPSILONS
from experiments.figures.task import Task

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

    from experiments.selection import Comparison, Method
    from experiments.selection.methods import Task as Selection

# The paper's settings (Sections 5.2 and 5.3).
SIZES = (5, 10, 20, 50, 100, 200)
BOUND = 100
TRIALS = 100
# Data sets in the paper's own panels, in its order.
FEATURED = ("steam", "amazon-magazine-subscriptions", "amazon-prime-pantry")

# Pairs times trials is about the time a task takes: large data sets get fewer trials, but enough
# for an interval.
_MOST_WORK = 20_000_000
_FEWEST_TRIALS = 6


def selection_tasks(kind: str, present: Sequence[str], trials: int, seed: int) -> list[Task]:
    """One task per data set, those of the paper's panels first.

    Data sets that the paper does not show here get two fifths of the trials.
    """
    order = [*FEATURED, *(name for name in DATA_SETS if name not in FEATURED)]
    common = {
        "eps": list(EPSILONS), "delta": DELTA, "k": list(SIZES), "max_items_per_user": BOUND,
        "most_work": _MOST_WORK, "seed": seed,
    }  # fmt: skip
    return [
        Task(
            kind,
            name,
            {**common, "trials": trials if name in FEATURED else -(-2 * trials // 5)},
        )
        for name in order
        if name in present
    ]


def selection_rows(
    case: Case,
    settings: Mapping[str, Any],
    task: Selection,
    chosen: Sequence[Method],
    rivals: Mapping[str, Sequence[str]],
) -> pl.DataFrame:
    """`Comparison.table` of one data set, and paired differences below it.

    Args:
        case: The data set.
        settings: eps, delta, k, max_items_per_user, trials, seed, and most_work: no more trials
            than this over the number of pairs, but six.
        task: "top-k" or "hitting-set".
        chosen: The methods.
        rivals: Label of a method -> labels of those it is compared with.

    Returns:
        The rows with users, items, pairs and seed of the data set; and in addition, for losses,
        role "ahead": what `rival` loses more than `method`, mean and 95 % interval over paired
        trials (null where one trial tells nothing of chance); and role "growth": by how much the
        lead over the best rival at this k is larger than at the k before.
    """
    import polars as pl

    from experiments.selection import compare

    fewest = max(_FEWEST_TRIALS, settings["most_work"] // case.data.num_pairs)
    found = compare(
        case.user_items,
        task,
        chosen,
        eps=settings["eps"],
        delta=settings["delta"],
        k=settings["k"],
        max_items_per_user=settings["max_items_per_user"],
        num_trials=min(settings["trials"], fewest),
        seed=settings["seed"],
        dataset=case.name,
    )
    rows = found.rows()
    for ours, others in rivals.items():
        rows += _paired(found, ours, others)
    return pl.DataFrame(rows, infer_schema_length=None).with_columns(
        users=pl.lit(case.data.num_users, pl.Int64),
        items=pl.lit(case.data.num_items, pl.Int64),
        pairs=pl.lit(case.data.num_pairs, pl.Int64),
        seed=pl.lit(settings["seed"], pl.Int64),
    )


def _paired(found: Comparison, ours: str, rivals: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rows of the roles "ahead" and "growth"."""
    place = {method.label: number for number, method in enumerate(found.methods)}
    first = found.trials[0]
    for metric in found.metrics:
        if metric == "num_released":
            continue
        own = found.samples(place[ours], metric)
        leads = {rival: found.samples(place[rival], metric) - own for rival in rivals}
        for e, eps in enumerate(first.eps):
            before = None
            for j, k in enumerate(first.k):
                common = {
                    "dataset": found.dataset, "task": found.task, "eps": eps, "delta": first.delta,
                    "max_items_per_user": first.max_items_per_user, "k": k, "metric": metric,
                    "method": ours, "trials": first.num_trials,
                }  # fmt: skip
                here = {rival: lead[:, e, j] for rival, lead in leads.items()}
                for rival, lead in here.items():
                    yield {**common, "role": "ahead", "rival": rival, **_mean(lead)}
                least = min(here.values(), key=lambda lead: float(lead.mean()))
                if before is not None:
                    yield {**common, "role": "growth", "rival": None, **_mean(least - before)}
                before = least


def _mean(samples: np.ndarray) -> dict[str, float | None]:
    from experiments.selection.compare import mean_of

    found = mean_of(samples)
    if samples.size < 2:
        return {"mean": found.mean, "low": None, "high": None}
    return found._asdict()
