"""Seconds of selections beside plain NumPy and Python's sets, on the same data and domains."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.bench import selection_peers as peers
from experiments.bench.cases import DELTA
from experiments.bench.rounds import Spread, in_turns
from experiments.bench.selection_cases import (
    EPS,
    MAX_ITEMS_PER_USER,
    SelectionCase,
    SelectionSettings,
)
from theory import UserItems
from theory.budget import Budget
from theory.calibration import calibrate
from theory.peeling import peeling_scale

if TYPE_CHECKING:
    import polars as pl

OURS, NUMPY, SETS = "wgm-jax", "numpy", "sets"
_PARTS = Budget(EPS, DELTA)


@dataclass(frozen=True, eq=False)
class SelectionFindings:
    """What a run of the suite found.

    Attributes:
        settings: The suite.
        machine: Cores, and the machine's load (1 minute) before and after.
        selections: Per case, task and way: seconds per 100 trials, ratios to the library within
            rounds, and whether the choices are the library's.
    """

    settings: SelectionSettings
    machine: dict[str, Any]
    selections: pl.DataFrame

    @property
    def agrees(self) -> bool:
        """Whether all ways choose the same items when given the same noise."""
        return bool(self.selections["agrees"].all())


@dataclass(frozen=True)
class _Task:
    """One selection, and how the peers do it.

    Attributes:
        name: Its name.
        select: The library's choices of some trials, by key and domain.
        peer: Ways to run one trial: (domain, noise) -> chosen items.
        domains: Domain of every trial; None if there is none to be given.
        trials: Trials of the library per round.
    """

    name: str
    select: Callable[[np.ndarray, np.ndarray | None], np.ndarray]
    peer: dict[str, Callable[[np.ndarray, peers.Noise], list[int]]]
    domains: np.ndarray | None
    trials: int


def run_selection_suite(
    settings: SelectionSettings,
    progress: Callable[[int, int, str], object] = lambda done, total, label: None,
) -> SelectionFindings:
    """Run a suite.

    Args:
        settings: `SELECTION`, `SELECTION_QUICK`, `SELECTION_LARGE` or one's own.
        progress: Called as progress(done, total, label) around every case.
    """
    import polars as pl

    from wgm_jax.devices import num_cores

    before = os.getloadavg()[0]
    rows: list[dict[str, Any]] = []
    for done, case in enumerate(settings.cases):
        progress(done, len(settings.cases), f"N = {case.num_pairs:,}, k = {case.k}")
        rows += _time_case(case, settings)
    progress(len(settings.cases), len(settings.cases), "")
    machine = {"cores": num_cores(), "load_before": before, "load_after": os.getloadavg()[0]}
    return SelectionFindings(settings, machine, pl.DataFrame(rows, infer_schema_length=None))


def _time_case(case: SelectionCase, settings: SelectionSettings) -> list[dict[str, Any]]:
    """Every task on one data set."""
    from wgm_jax.selection.domains import released_sets

    data = case.source.data()
    eps, delta = _PARTS.part(0)
    found = calibrate(eps=np.array([eps]), delta=delta, max_items_per_user=MAX_ITEMS_PER_USER)
    start = time.perf_counter()
    masks = list(released_sets(data, found, num_trials=settings.trials, seed=settings.seed))
    about = {
        "num_pairs": data.num_pairs,
        "num_users": data.num_users,
        "num_items": data.num_items,
        "k": case.k,
        "s": case.s,
        "domain_seconds": time.perf_counter() - start,
    }
    sets = case.num_pairs <= settings.largest_sets
    tasks = _tasks(data, case, np.concatenate(masks)[:, 0], settings.trials, sets=sets)
    return [about | row for task in tasks for row in _time_task(task, data.num_items, settings)]


def _time_task(task: _Task, num_items: int, settings: SelectionSettings) -> list[dict[str, Any]]:
    """All ways of one task, in turns; before, their choices with the library's noise."""
    from wgm_jax.selection.noise import trial_keys

    keys = trial_keys(settings.seed, 0, task.trials)
    rng = np.random.default_rng(settings.seed)
    if task.domains is None:
        inside = [np.arange(num_items)] * task.trials
    else:
        inside = [np.flatnonzero(row) for row in task.domains]
    counts = {OURS: task.trials}
    counts |= {
        way: 1 if way == SETS else min(settings.peer_trials, task.trials) for way in task.peer
    }
    chosen = task.select(keys, task.domains)  # compiles
    agrees = {OURS: True}
    for way, run in task.peer.items():
        agrees[way] = all(
            run(inside[i], _noise_of(keys[i])) == [x for x in chosen[i].tolist() if x >= 0]
            for i in range(counts[way])
        )

    def timed(way: str) -> float:
        start = time.perf_counter()
        if way == OURS:
            task.select(keys, task.domains)
        else:
            for i in range(counts[way]):
                task.peer[way](inside[i], peers.fresh_gumbel(rng))
        return (time.perf_counter() - start) * settings.trials / counts[way]

    found = in_turns({way: partial(timed, way) for way in counts}, settings.repeats)
    return [
        {
            "task": task.name,
            "domain_size": float(np.mean([items.size for items in inside])),
            "way": way,
            "trials": settings.trials,
            "trials_per_round": counts[way],
            "repeats": settings.repeats,
            **_spread("seconds", seconds),
            **_spread("times_ours", seconds / found[OURS]),
            "agrees": agrees[way],
        }
        for way, seconds in found.items()
    ]


def _tasks(
    data: UserItems, case: SelectionCase, masks: np.ndarray, trials: int, *, sets: bool
) -> list[_Task]:
    from wgm_jax.selection.hitting import UserPeeling
    from wgm_jax.selection.limited_domain import LimitedDomain
    from wgm_jax.selection.selector import by_count
    from wgm_jax.selection.top_k import Peeling

    k, counts = case.k, data.frequencies.astype(np.int64)
    made: list[_Task] = []

    def prepared(selector: Any, eps: float, delta: float) -> Any:
        bound = MAX_ITEMS_PER_USER
        return selector.prepare(data, eps=eps, delta=delta, k=k, max_items_per_user=bound)

    for where, domains, (eps, delta) in (
        ("found domain", masks, _PARTS.part(1)),
        ("public domain", None, (EPS, DELTA)),
    ):
        peeling, state = Peeling(), prepared(Peeling(), eps, delta)
        scale = float(peeling_scale(eps=eps, delta=delta, k=k))
        made.append(
            _Task(
                f"top-k, {where}",
                partial(peeling.select, state),
                {NUMPY: partial(peers.top_k, counts, k, scale)},
                domains,
                trials,
            )
        )

    ranked = by_count(counts)
    for multiple in (1, 10):
        limited = LimitedDomain(multiple=multiple)
        state = prepared(limited, EPS, DELTA)
        peer = partial(
            peers.limited_domain,
            counts[ranked],
            ranked,
            k,
            multiple * k,
            1 / state.eps_round,
            state.offset,
        )
        name = "limited domain, k" if multiple == 1 else f"limited domain, {multiple}k"
        made.append(_Task(name, partial(limited.select, state), {NUMPY: peer}, None, trials))

    for where, domains, (eps, delta) in (
        ("found domain", masks, _PARTS.part(1)),
        ("public domain", None, (EPS, DELTA)),
    ):
        peeling = UserPeeling()
        state = prepared(peeling, eps, delta)
        by = {NUMPY: partial(peers.hitting_set_by_pairs, data, k, state.scale)}
        if sets and domains is not None:
            holders = peers.holders_of(data, np.flatnonzero(domains[0]))
            by[SETS] = partial(peers.hitting_set_by_sets, holders, k, state.scale)
        # On all items noise is most of the work, and trials share none of it.
        few = trials if domains is not None else max(1, trials // 10)
        select = partial(peeling.select, state)
        made.append(_Task(f"hitting set, {where}", select, by, domains, few))
    return made


def _noise_of(key: np.ndarray) -> peers.Noise:
    """The library's noise of one trial."""
    from wgm_jax.selection.noise import gumbel

    return lambda round, items: np.asarray(gumbel(key, round, items))


def _spread(name: str, values: np.ndarray) -> dict[str, float]:
    found = Spread.of(values)
    return {name: found.median, f"{name}_low": found.low, f"{name}_high": found.high}
