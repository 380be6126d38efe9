"""What the data look like: Figures 4 and 5, rank against frequency; 6 and 7, sizes of sets."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.figures.data import Case, Group, in_group
from experiments.figures.paper import BETA, BOUNDS, DELTA, EPSILONS
from experiments.figures.record import FigureSpec
from experiments.figures.shape_statements import (
    best_bounds,
    judge_sizes,
    judge_table_1,
    judge_zipfian,
)
from experiments.figures.task import Kind, Task
from experiments.figures.words import data_in, headings

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

# The paper's contribution bounds and the largest set; the least bound over them is told.
_ASKED: tuple[int | str, ...] = (*BOUNDS, "max")
MARKS = (100, 300)
_NAMED = ("num_users", "num_items", "num_pairs", "max_set_size")


def rank_rows(case: Case | None, settings: Mapping[str, Any]) -> pl.DataFrame:
    """Points of the rank-frequency curve (`row` is "point"), and what Theorem 3.3 makes of them.

    Args:
        case: The data set.
        settings: eps (several), delta, beta, max_items_per_user (several, also "max").

    Returns:
        dataset, sizes, row; rank and frequency of the points; eps, max_items_per_user, tau,
        zipf_s, zipf_log_constant, upper_instance, upper_zipf of the rows "bound", for which the
        certificate is the one of the least bound [U3].
    """
    import numpy as np
    import polars as pl

    from experiments.plots.rank_frequency import rank_points
    from theory import calibrate, instance_bound, tau_u1, zipf_bound

    assert case is not None
    made = []
    for asked in settings["max_items_per_user"]:
        bound = case.contribution_bound(asked)
        at = case.profile(bound)
        noise = calibrate(
            eps=np.array(settings["eps"]), delta=settings["delta"], max_items_per_user=bound
        )
        upper = zipf_bound(at, noise, settings["beta"])
        made.append(
            pl.DataFrame(
                {
                    "eps": settings["eps"],
                    "max_items_per_user": [bound] * len(noise),
                    "tau": tau_u1(at, noise, settings["beta"]).value,
                    "zipf_s": upper.details["s"],
                    "zipf_log_constant": upper.details["log_constant"],
                    "upper_instance": instance_bound(at, noise, settings["beta"]).value,
                    "upper_zipf": upper.value,
                }
            ).with_columns(
                row=pl.lit("bound"), delta=pl.lit(settings["delta"]), beta=pl.lit(settings["beta"])
            )
        )
    points = rank_points(case.profile(1)).with_columns(row=pl.lit("point"))
    return _named(pl.concat([points, *made], how="diagonal"), case)


def size_rows(case: Case | None, settings: Mapping[str, Any]) -> pl.DataFrame:
    """Distribution of the set sizes, with the certificate that Lemma 3.1 is told with.

    Args:
        case: The data set.
        settings: eps, delta and beta of the certificate, that of the least [U3] at the largest set.

    Returns:
        dataset, sizes, size, users, pairs_kept (`plots.set_sizes.size_table`), zipf_s,
        zipf_log_constant, size_bound ((C N)^(1/s) of Lemma 3.1).
    """
    import numpy as np
    import polars as pl

    from experiments.plots.set_sizes import size_table
    from theory import ZipfCertificate, calibrate, max_set_size_bound, zipf_bound

    assert case is not None
    profile = case.profile(case.data.max_set_size)
    noise = calibrate(
        eps=settings["eps"], delta=settings["delta"], max_items_per_user=profile.max_items_per_user
    )
    found = zipf_bound(profile, noise, settings["beta"]).details
    best = ZipfCertificate(float(found["log_constant"]), float(found["s"]))
    sizes = np.asarray(case.user_items.set_sizes).astype(np.int64)
    table = size_table(sizes).with_columns(
        zipf_s=pl.lit(best.s),
        zipf_log_constant=pl.lit(best.log_constant),
        size_bound=pl.lit(float(max_set_size_bound(best, case.data.num_pairs))),
    )
    return _named(table, case)


def _named(table: pl.DataFrame, case: Case) -> pl.DataFrame:
    """With the name and the sizes of the data set on every row."""
    import polars as pl

    sizes = [pl.lit(int(getattr(case.data, name)), pl.Int64).alias(name) for name in _NAMED]
    return table.select(pl.lit(case.name).alias("dataset"), *sizes, pl.all())


def _rank_tasks(group: Group, present: Sequence[str], trials: int, seed: int) -> list[Task]:
    settings = {
        "eps": list(EPSILONS), "delta": DELTA, "beta": BETA, "max_items_per_user": list(_ASKED),
    }  # fmt: skip
    return [Task("rank-frequency", name, settings) for name in in_group(present, group)]


def _size_tasks(group: Group, present: Sequence[str], trials: int, seed: int) -> list[Task]:
    settings = {"eps": EPSILONS[0], "delta": DELTA, "beta": BETA}
    return [Task("set-sizes", name, settings) for name in in_group(present, group)]


def _draw_ranks(frame: pl.DataFrame) -> tuple[Figure, pl.DataFrame]:
    import polars as pl

    from experiments.plots.rank_frequency import rank_frequency_panels

    points = frame.filter(pl.col("row") == "point").select("dataset", "rank", "frequency")
    return rank_frequency_panels(points, best_bounds(frame, EPSILONS[0]), titles=headings())


def _draw_sizes(frame: pl.DataFrame) -> tuple[Figure, pl.DataFrame]:
    from experiments.plots.set_sizes import set_size_panels

    return set_size_panels(
        frame.select("dataset", "size", "users", "pairs_kept"), MARKS, titles=headings()
    )


def _rank_caption(frame: pl.DataFrame) -> str:
    import polars as pl

    bounds = frame.filter(pl.col("row") == "bound")
    return (
        "Number of users of the r-th most frequent item. Line: the Zipf certificate C N / r^s "
        "that gives the least bound [U3] of Theorem 3.3 for the WGM at "
        f"ε = {EPSILONS[0]:g}, δ = {bounds['delta'][0]:g}, failure probability "
        f"{bounds['beta'][0]:g}, at the best of Δ0 = {', '.join(map(str, BOUNDS))} and the "
        "largest set. Shaded: items of frequency at most τ, above which nothing is missed with "
        "that probability; their share of the pairs is the instance bound [U2]. No random number "
        f"is drawn. Data: {data_in(frame)}."
    )


def _size_caption(frame: pl.DataFrame) -> str:
    return (
        "Black: share of users with at most k items. Blue: share of the user-item pairs that a "
        f"contribution bound Δ0 = k keeps, written for Δ0 = {' and '.join(map(str, MARKS))}. "
        f"Data: {data_in(frame)}."
    )


_ZIPFIAN = (
    "log-log plots of frequency against rank; all data sets are (C, s)-Zipfian for some s > 1 and "
    "C large enough, of which only an upper envelope is asked."
)
_SIZES = "the distribution of the users' set sizes, without a word on it."


def _figure(name: str, group: Group) -> FigureSpec:
    ranks = name in ("4", "5")
    source = f"Appendix E.{1 if ranks else 2}, Figure {name}"
    judges: list[Any] = [judge_zipfian] if ranks else [judge_sizes]
    if name == "5":
        judges.append(judge_table_1)
    return FigureSpec(
        name=name,
        stem=f"figure-{int(name):02d}",
        title=f"{'Rank and frequency' if ranks else 'Set sizes'}, {group} data sets",
        paper=_ZIPFIAN if ranks else _SIZES,
        tasks=functools.partial(_rank_tasks if ranks else _size_tasks, group),
        draw=_draw_ranks if ranks else _draw_sizes,
        judge=lambda frame: [each for judges_one in judges for each in judges_one(frame, source)],
        caption=_rank_caption if ranks else _size_caption,
    )


SPECS: tuple[FigureSpec, ...] = (
    _figure("4", "large"),
    _figure("5", "small"),
    _figure("6", "large"),
    _figure("7", "small"),
)
KINDS: dict[str, Kind] = {"rank-frequency": rank_rows, "set-sizes": size_rows}
