"""The whole suite: its cases one after the other, and what follows from all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.bench.cases import Case, Settings
from experiments.bench.exact import time_exact
from experiments.bench.limits import LIMITS, Limits
from experiments.bench.trials import time_case
from experiments.statistics.slopes import log_log_slope

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Findings:
    """What a run of the suite found.

    Attributes:
        settings: The suite.
        machine: Cores, platform and device.
        trials: Per case, number of eps points and way: seconds per 1,000 trials, ratios to the fast
            sampler within rounds, start times, shares of the machine's limits, means.
        exact: Per data set and exact method: seconds, and ratio to 200 trials of the NumPy peer.
        growth: Per way or method: exponent of the time in N, and the points it comes from.
        notes: Sentences to be read with the numbers.
    """

    settings: Settings
    machine: dict[str, Any]
    trials: pl.DataFrame
    exact: pl.DataFrame
    growth: pl.DataFrame
    notes: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        """Whether the mean of every way is consistent with the exact mean."""
        return bool(self.trials["agrees"].all())


def run_suite(
    settings: Settings,
    progress: Callable[[int, int, str], object] = lambda done, total, label: None,
) -> Findings:
    """Run a suite.

    Args:
        settings: `QUICK`, `DEFAULT`, `LARGE` or one's own.
        progress: Called as progress(done, total, label) after every timing.

    Returns:
        `Findings`.
    """
    import jax

    # Programs kept from earlier runs would hide what compilation costs.
    kept = jax.config.jax_enable_compilation_cache  # pyright: ignore[reportAttributeAccessIssue]
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        return _run(settings, progress)
    finally:
        jax.config.update("jax_enable_compilation_cache", kept)


def _run(settings: Settings, progress: Callable[[int, int, str], object]) -> Findings:
    import polars as pl

    exact = [
        Case(num_pairs=n, max_items_per_user=k) for n in settings.exact_pairs for k in (10, "max")
    ]
    total, done = len(settings.cases) + len(exact), 0
    limits = Limits()
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    for case in settings.cases:
        label = f"N = {case.num_pairs:,}, Δ0 = {case.max_items_per_user}, s = {case.s:g}"
        progress(done, total, label)
        found, said = time_case(case, settings, limits, lambda: None)
        rows += found
        notes += said
        done += 1
    numbers: list[dict[str, Any]] = []
    for case in exact:
        progress(done, total, f"exact, N = {case.num_pairs:,}, Δ0 = {case.max_items_per_user}")
        numbers += time_exact(case, settings, lambda: None)
        done += 1
    progress(done, total, "")
    trials = pl.DataFrame(rows, infer_schema_length=None)
    exact_frame = pl.DataFrame(numbers, infer_schema_length=None)
    growth = [*_growth(trials, "way", "seconds_per_1000"), *_growth(exact_frame, "what", "seconds")]
    schema = {"what": pl.String, "max_items_per_user": pl.String, "exponent": pl.Float64}
    schema |= {"num_pairs": pl.List(pl.Int64), "seconds": pl.List(pl.Float64)}
    return Findings(
        settings, _machine(trials), trials, exact_frame, pl.DataFrame(growth, schema), tuple(notes)
    )


def _growth(frame: pl.DataFrame, name: str, seconds: str) -> list[dict[str, Any]]:
    """Exponents in N where a way or method was timed at several N and otherwise alike."""
    import polars as pl

    found = []
    bound = pl.when(pl.col("max_items_is_max")).then(pl.lit("max"))
    bound = bound.otherwise(pl.col("max_items_per_user").cast(pl.String))
    frame = frame.with_columns(bound.alias("bound"))
    if "points" in frame.columns:
        frame = frame.filter(pl.col("points") == 1)
    for (what, k, _), group in frame.sort("num_pairs").group_by(
        [name, "bound", "s"], maintain_order=True
    ):
        if group.height < 2:
            continue
        n, t = group["num_pairs"].to_list(), group[seconds].to_list()
        found.append(
            {
                "what": what,
                "max_items_per_user": k,
                "exponent": float(log_log_slope(n, t)),
                "num_pairs": n,
                "seconds": t,
            }
        )
    return found


def _machine(trials: pl.DataFrame) -> dict[str, Any]:
    import jax

    from wgm_jax.devices import Devices, num_cores

    found: dict[str, Any] = {"cores": num_cores(), "platform": Devices.of().platform}
    found["device"] = jax.local_devices()[0].device_kind
    # Over all rounds of all cases.
    for name in LIMITS:
        found[f"{name}_per_second"] = float(
            np.median(trials[f"{name}_limit"].drop_nulls().to_numpy())
        )
    return found
