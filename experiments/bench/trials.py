"""Seconds per 1,000 trials of one case, by every way, and whether all ways agree on the mean."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

from experiments.bench.cases import Case, Settings
from experiments.bench.limits import LIMITS, Limits, lanes_work
from experiments.bench.rounds import Spread, in_turns
from experiments.bench.ways import NumpyProcesses, Simulation, UserLoop, Way
from experiments.statistics.means import mean_interval
from theory import Calibration, InvalidInput, Profile, UserItems, miss_probabilities

# Probability that a mean is called different although it is not, per way and case.
ALPHA = 1e-9
# Trials of a way that are held against the exact mean.
_CHECKED = 20_000
_MOST_TRIALS = 2**17

Key = tuple[str, int]


def time_case(
    case: Case, settings: Settings, limits: Limits, report: Callable[[], object]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Run all ways on one case, in turns.

    Args:
        case: The case.
        settings: Repeats, seconds and seed.
        limits: Loops of the machine's limits, run in the same rounds.
        report: Called after every timing.

    Returns:
        A row for every way and number of eps points, and sentences to be read with them.
    """
    data = case.data()
    grids = {points: case.calibration(data, points) for points in case.points}
    notes: list[str] = []
    with ExitStack() as stack:
        ways = _ways(case, settings, data, grids)
        for way in ways.values():
            stack.callback(way.close)
        counts: dict[Key, int] = {}
        for key, way in list(ways.items()):
            try:
                counts[key] = _count(way, settings.seconds)
            except InvalidInput as error:
                del ways[key]
                notes.append(f"{key[0]} left out at N = {case.num_pairs:,}: {error}")
        masses: dict[Key, list[np.ndarray]] = {key: [] for key in ways}

        def trials(key: Key) -> float:
            seconds, values = ways[key].run(counts[key])
            if sum(map(len, masses[key])) < _CHECKED:
                masses[key].append(values)
            return 1000 * seconds / counts[key]

        timed: dict[Any, Callable[[], float]] = {key: lambda key=key: trials(key) for key in ways}
        timed |= {
            name: lambda name=name: limits.measure(name, settings.seconds / 4) for name in LIMITS
        }
        found = in_turns(timed, settings.repeats, report)

    clipped = data.set_sizes > int(grids[1].max_items_per_user[0])
    about = {
        "num_pairs": case.num_pairs,
        "max_items_per_user": int(grids[1].max_items_per_user[0]),
        "max_items_is_max": case.max_items_per_user == "max",
        "s": case.s,
        "num_users": data.num_users,
        "num_items": data.num_items,
        "clipped_users": int(np.count_nonzero(clipped)),
        "clipped_slots": int(data.set_sizes[clipped].sum()),
    }
    profile = Profile.from_user_items(data, max_items_per_user=about["max_items_per_user"])
    exact = {
        points: np.atleast_1d(miss_probabilities(profile, grid).mean_missing_mass)
        for points, grid in grids.items()
    }
    rows = []
    for (name, points), way in ways.items():
        seconds = found[name, points]
        row = {**about, "points": points, "way": name, "repeats": settings.repeats}
        row |= {"trials_per_round": counts[name, points]}
        row |= _spread("seconds_per_1000", seconds)
        row |= _spread("times_lanes", seconds / found["lanes", points])
        row |= _spread("times_one_point", seconds / found[name, 1])
        starts = way.starts if isinstance(way, Simulation) else []
        row |= {
            "first_start_seconds": starts[0] if starts else None,
            "later_start_seconds": min(starts[1:]) if starts else None,
        }
        row |= _checked(np.concatenate(masses[name, points]), exact[points])
        row |= _work(data, grids[points], seconds, found) if name == "lanes" else {}
        rows.append(row)
    return rows, notes


def _ways(
    case: Case, settings: Settings, data: UserItems, grids: dict[int, Calibration]
) -> dict[Key, Way]:
    from wgm_jax.devices import num_cores

    ways: dict[Key, Way] = {}
    for points, grid in grids.items():
        for sampler in ("lanes", "padded"):
            ways[sampler, points] = Simulation(data, grid, sampler, seed=settings.seed)
        ways["numpy", points] = NumpyProcesses(
            data, grid, processes=num_cores(), seed=settings.seed
        )
    if case.num_pairs <= settings.largest_loop:
        ways["loop", 1] = UserLoop(data, grids[1], seed=settings.seed)
    return ways


def _count(way: Way, seconds: float) -> int:
    """Trials that take about so many seconds; the first call also warms up."""
    count = way.batch
    way.run(count)
    while True:
        taken, _ = way.run(count)
        if taken > seconds / 2 or 2 * count > _MOST_TRIALS:
            return count
        count *= 2


def _spread(name: str, values: np.ndarray) -> dict[str, Any]:
    found = Spread.of(values)
    return {name: found.median, f"{name}_low": found.low, f"{name}_high": found.high}


def _checked(masses: np.ndarray, exact: np.ndarray) -> dict[str, Any]:
    """Mean at the first point with its interval, and whether all means are as they should be."""
    masses = masses[:_CHECKED].astype(np.float64)
    intervals = [mean_interval(column, alpha=ALPHA / exact.size) for column in masses.T]
    agrees = all(
        interval.low <= mean <= interval.high
        for interval, mean in zip(intervals, exact.tolist(), strict=True)
    )
    return {
        "mean": float(masses[:, 0].mean()),
        "mean_low": intervals[0].low,
        "mean_high": intervals[0].high,
        "exact_mean": float(exact[0]),
        "agrees": agrees,
    }


def _work(
    data: UserItems, grid: Calibration, seconds: np.ndarray, found: dict[Any, np.ndarray]
) -> dict[str, Any]:
    """What the fast sampler did per second, as a share of each limit."""
    work = lanes_work(data, grid)
    row = {name: work[name] for name in ("open_items", "open_slots")}
    for name in LIMITS:
        row |= {f"{name}_limit": float(np.median(found[name]))}
        row |= _spread(f"{name}_share", 1000 * work[name] / seconds / found[name])
    return row
