"""Synthetic Zipfian data against the bounds: sweeps with trials, and decades by exact methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.figures.data import Case
from experiments.figures.paper import BETA, DELTA
from experiments.figures.record import FigureSpec
from experiments.figures.task import Kind, Task
from experiments.figures.zipf_statements import judge_decades, judge_sweeps

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from theory import Profile

_SHORT = {"law": "geometric", "mean": 3, "cap": 30}
_LONG = {"law": "lognormal", "mean": 30, "cap": 300}
_MILLION = 10**6
# One panel each: what varies, and what stays.
SWEEPS: dict[str, dict[str, Any]] = {
    "N, s = 1.5": {"x": "num_pairs", "s": [1.5]},
    "N, s = 2": {"x": "num_pairs", "s": [2.0]},
    "N, s = 3": {"x": "num_pairs", "s": [3.0]},
    "eps": {"x": "eps", "s": [2.0], "pairs": [_MILLION], "eps": [0.03, 0.1, 0.3, 1.0, 3.0, 10.0]},
    "s": {"x": "s", "s": [1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0], "pairs": [_MILLION]},
    "Delta0": {
        "x": "max_items_per_user", "s": [1.5], "pairs": [_MILLION], "set_sizes": _LONG,
        "max_items_per_user": [1, 3, 10, 30, 100, 300],
    },
}  # fmt: skip
_COMMON: dict[str, Any] = {
    "pairs": [1000, 3160, 10_000, 31_600, 100_000, 316_000, _MILLION, 3_160_000, 10_000_000],
    "eps": [1.0], "max_items_per_user": ["max"], "set_sizes": _SHORT, "support": 10_000_000,
    "delta": DELTA, "beta": BETA,
}  # fmt: skip

EXPONENTS = (1.25, 1.5, 2.0, 3.0)
PAIRS = tuple(10**power for power in range(3, 13))
# What else varies at the largest N: eps at the paper's delta, and delta at eps = 1.
LEVELS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
DELTAS = (1e-2, 1e-3, 1e-5, 1e-8, 1e-12)
# Bounds that would lie on others.
_LEFT_OUT = ("upper_instance_star", "upper_printed")


def sweep_tasks(present: Sequence[str], trials: int, seed: int) -> list[Task]:
    """One task per panel."""
    return [
        Task("zipf-sweep", None, {"sweep": name, **_COMMON, **own, "trials": trials, "seed": seed})
        for name, own in SWEEPS.items()
    ]


def sweep_rows(case: Case | None, settings: Mapping[str, Any]) -> pl.DataFrame:
    """Ladder rows with trials over every combination of s, pairs, Delta0 and eps.

    Args:
        case: None.
        settings: sweep (its name), x (what varies), s, pairs, max_items_per_user, eps (several
            each), set_sizes, support, delta, beta, trials, seed.

    Returns:
        Rows of `experiments.cells.rows` with sweep, x and set_sizes.
    """
    import polars as pl

    from experiments.cells import as_table, rows, run_case
    from wgm_jax.synthetic import SetSizes, zipf_draws

    made = []
    for s in settings["s"]:
        for pairs in settings["pairs"]:
            data = zipf_draws(
                s=s,
                num_pairs=pairs,
                set_sizes=SetSizes(**settings["set_sizes"]),
                support=settings["support"],
                seed=settings["seed"],
            )
            made_of = Case(f"Zipf {s:g}", data, {"kind": "zipf_draws", "s": s, "N": pairs})
            for bound in settings["max_items_per_user"]:
                run = run_case(
                    made_of,
                    max_items_per_user=bound,
                    eps=settings["eps"],
                    delta=settings["delta"],
                    beta=settings["beta"],
                    num_trials=settings["trials"],
                    seed=settings["seed"],
                )
                made += rows(run)
    sizes = settings["set_sizes"]
    return as_table(made).with_columns(
        sweep=pl.lit(settings["sweep"]),
        x=pl.lit(settings["x"]),
        set_sizes=pl.lit(f"{sizes['law']}, mean {sizes['mean']}, at most {sizes['cap']}"),
    )


def decade_tasks(present: Sequence[str], trials: int, seed: int) -> list[Task]:
    """One task per exponent; nothing is random."""
    settings = {
        "pairs": list(PAIRS), "eps": list(LEVELS), "deltas": list(DELTAS), "delta": DELTA,
        "beta": BETA,
    }  # fmt: skip
    return [Task("zipf-decades", None, {"s": s, **settings}) for s in EXPONENTS]


def decade_rows(case: Case | None, settings: Mapping[str, Any]) -> pl.DataFrame:
    """Ladder rows of the hard Zipfian data of Theorem 3.5 at C = 1, L = Delta0 = 1, exact.

    Args:
        case: None.
        settings: s, pairs, eps and deltas (all but 1 and `delta` only at the most pairs), delta,
            beta.

    Returns:
        Rows of `experiments.cells.rows` with lower_theorem ([L3]) and varies: "num_pairs", "eps"
        or "delta", what a row belongs to.
    """
    import polars as pl

    from experiments.decades import decades
    from theory import hard_zipf_bound, hard_zipf_profile

    s, delta, beta = settings["s"], settings["delta"], settings["beta"]
    found = decades(exponents=[s], pairs=settings["pairs"], delta=delta, beta=beta)
    least = [
        float(hard_zipf_bound(1.0, s, pairs, eps=1.0, delta=delta).value)
        for pairs in found["num_pairs"].to_list()
    ]
    found = found.with_columns(
        pl.Series("lower_theorem", least), pl.lit("num_pairs").alias("varies")
    )
    points = [("eps", eps, delta) for eps in settings["eps"]]
    points += [("delta", 1.0, each) for each in settings["deltas"]]
    most = max(settings["pairs"])
    profile = hard_zipf_profile(1.0, s, most)
    others = [{"varies": varies, **_at(profile, s, eps, d, beta)} for varies, eps, d in points]
    return pl.concat([found, pl.DataFrame(others)], how="diagonal")


def _at(profile: Profile, s: float, eps: float, delta: float, beta: float) -> dict[str, Any]:
    """Exact mean and bounds at one point; laws, hence certificates, would be too long here."""
    from theory import (
        calibrate,
        hard_zipf_bound,
        instance_lower_bound,
        miss_probabilities,
        zipf_bound,
    )

    pairs = profile.num_pairs
    noise = calibrate(eps=eps, delta=delta, max_items_per_user=1)
    return {
        "dataset": f"hard zipf s={s:g}",
        "s": s,
        "num_pairs": pairs,
        "eps": eps,
        "delta": delta,
        "exact_mean": float(miss_probabilities(profile, noise).mean_missing_mass),
        "upper_zipf": float(zipf_bound(profile, noise, beta).value),
        "lower_instance": float(instance_lower_bound(profile, eps=eps, delta=delta).value),
        "lower_theorem": float(hard_zipf_bound(1.0, s, pairs, eps=eps, delta=delta).value),
    }


def _draw_sweeps(frame: pl.DataFrame) -> tuple[Figure, pl.DataFrame]:
    import polars as pl

    from experiments.plots.missing_mass import Sweep, missing_mass_sweeps

    panels = []
    for name in frame["sweep"].unique(maintain_order=True):
        rows = frame.filter(pl.col("sweep") == name)
        panels.append(Sweep(rows.drop(_LEFT_OUT), rows["x"][0], _stays(rows)))
    return missing_mass_sweeps(panels)


def _stays(rows: pl.DataFrame) -> str:
    """What does not vary in a panel, as matplotlib text."""
    from experiments.plots.style import number

    known = {
        "s": ("$s$", rows["s"][0]),
        "N_asked": ("$N$", rows["N_asked"][0]),
        "eps": (r"$\varepsilon$", rows["eps"][0]),
    }
    told = [
        f"{symbol} = {number(value)}"
        for column, (symbol, value) in known.items()
        if rows[column].n_unique() == 1
    ]
    return ", ".join(told)


def _draw_decades(frame: pl.DataFrame) -> tuple[Figure, pl.DataFrame]:
    import polars as pl

    from experiments.plots.missing_mass import missing_mass_curves

    rows = frame.filter(pl.col("varies") == "num_pairs").drop(_LEFT_OUT)
    return missing_mass_curves(rows, "num_pairs", by=["s"])


_LADDER = (
    "Black line: exact mean [E2] of the WGM; above it the hinge certificate [E6] and, for the "
    "95 % quantile, the bounds [U2] (instance) and [U3] (Theorem 3.3 with its constants), "
    "dotted and in a strip of their own where they say nothing (1 or more); below it [L2], which "
    "no private algorithm is below on average"
)


def _sweep_caption(frame: pl.DataFrame) -> str:
    import polars as pl

    sizes = "; ".join(
        f"{'last panel' if name.startswith('lognormal') else 'others'}: {name}"
        for name in frame["set_sizes"].unique(maintain_order=True)
    )
    trials = frame.select(pl.col("trials").max()).item()
    return (
        "Missing mass of the WGM on users who draw items from a Zipf law of exponent s, against "
        "the number of pairs N, ε, s and Δ0 (elsewhere the largest set). Grey: 5 to 95 % of "
        f"{trials:,} trials, circles: their median, seed {frame['seed'][0]}. {_LADDER}. Triangle: "
        f"the slope −(s−1)/s of Corollary 3.4. δ = {frame['delta'][0]:g}, β = "
        f"{frame['beta'][0]:g}, calibration [P1]. Draws per user, {sizes}."
    )


def _decade_caption(frame: pl.DataFrame) -> str:
    return (
        "Missing mass on the hard Zipfian data of Theorem 3.5 (C = 1, one item per user), up to "
        f"sizes that no memory holds. {_LADDER}, and [L3], Theorem 3.5 with its constants. "
        f"ε = 1, δ = {frame['delta'][0]:g}, β = {frame['beta'][0]:g}, Δ0 = 1, calibration [P1]. "
        "Triangle: the slope −(s−1)/s of Corollary 3.4. No random number is drawn."
    )


SPECS: tuple[FigureSpec, ...] = (
    FigureSpec(
        name="zipf",
        stem="zipf",
        title="Synthetic Zipfian data: missing mass against N, ε, s and Δ0, between the bounds",
        paper="no such figure; of Theorem 3.3 it says that the missing mass falls as N grows, and "
        "that a larger s helps when N is large.",
        tasks=sweep_tasks,
        draw=_draw_sweeps,
        judge=judge_sweeps,
        caption=_sweep_caption,
        trials=1000,
    ),
    FigureSpec(
        name="zipf-decades",
        stem="zipf-decades",
        title="Hard Zipfian data up to N = 1e12: rates of Theorems 3.3 and 3.5",
        paper="no such figure; Theorem 3.5 is to show that the dependence of Corollary 3.4 on ε "
        "and N can be tight.",
        tasks=decade_tasks,
        draw=_draw_decades,
        judge=judge_decades,
        caption=_decade_caption,
    ),
)
KINDS: dict[str, Kind] = {"zipf-sweep": sweep_rows, "zipf-decades": decade_rows}
