"""Seconds of the exact methods, beside 200 trials of the NumPy peer on one core."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from experiments.bench.cases import Case, Settings
from experiments.bench.numpy_peer import NumpyTrials
from experiments.bench.rounds import Spread, in_turns
from theory import Profile, miss_probabilities
from theory.certificates import hinge_bound, missing_mass_law

TRIALS = 200
POINTS = 16
_BETA = 0.05
_NUMPY = "numpy trials"


def time_exact(
    case: Case, settings: Settings, report: Callable[[], object]
) -> list[dict[str, Any]]:
    """Time the exact methods on one data set; its profile is given.

    Args:
        case: The case.
        settings: Repeats, seconds and seed.
        report: Called after every timing.

    Returns:
        A row for every method: means (miss probabilities of all items) at one and at 16 points, the
        hinge certificate, and where no user is clipped the law of the missing mass.
    """
    data = case.data()
    one, grid = (case.calibration(data, points) for points in (1, POINTS))
    profile = Profile.from_user_items(data, max_items_per_user=int(one.max_items_per_user[0]))
    misses = miss_probabilities(profile, one).at(0)
    peer = NumpyTrials(data, one[0], seed=settings.seed)
    jobs: dict[str, Callable[[], object]] = {
        _NUMPY: lambda: peer.missing_masses(TRIALS),
        "mean": lambda: miss_probabilities(profile, one),
        f"mean, {POINTS} points": lambda: miss_probabilities(profile, grid),
        "certificate": lambda: hinge_bound(misses, _BETA),
    }
    if misses.independent:
        jobs["law"] = lambda: missing_mass_law(misses)
    timed = {name: _timer(job, settings.seconds / 4) for name, job in jobs.items()}
    found = in_turns(timed, settings.repeats, report)
    rows = []
    for name, seconds in found.items():
        ratio = Spread.of(seconds / found[_NUMPY])
        taken = Spread.of(seconds)
        rows.append(
            {
                "num_pairs": case.num_pairs,
                "max_items_per_user": int(one.max_items_per_user[0]),
                "max_items_is_max": case.max_items_per_user == "max",
                "s": case.s,
                "classes": misses.frequencies.size,
                "what": name,
                "repeats": settings.repeats,
                "times_numpy": ratio.median,
                "times_numpy_low": ratio.low,
                "times_numpy_high": ratio.high,
                "times_mean": Spread.of(seconds / found["mean"]).median,
                "seconds": taken.median,
                "seconds_low": taken.low,
                "seconds_high": taken.high,
            }
        )
    return rows


def _timer(job: Callable[[], object], seconds: float) -> Callable[[], float]:
    """Seconds per call, of as many calls as fit into `seconds`, at least one."""
    job()

    def timed() -> float:
        start = time.perf_counter()
        calls = 0
        while calls == 0 or time.perf_counter() - start < seconds:
            job()
            calls += 1
        return (time.perf_counter() - start) / calls

    return timed
