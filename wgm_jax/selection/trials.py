"""Many independent trials of meta-algorithms: a domain by the WGM, then a selection from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import version
from typing import Any

import numpy as np

from theory import UserItems
from theory._check import Reals, check_count, check_eps, invalid
from theory.budget import Budget
from theory.calibration import Calibration, calibrate
from wgm_jax import registry
from wgm_jax.devices import num_cores
from wgm_jax.selection.domains import released_sets
from wgm_jax.selection.noise import trial_keys
from wgm_jax.selection.record import SelectionTrials
from wgm_jax.selection.selector import OnFoundDomain, Selector

# Most trials between two calls of progress.
_MOST_TRIALS = 1024

Shares = Sequence[float | int | Fraction]


def run_selection(
    data: UserItems,
    mechanism: Any,
    *,
    eps: Reals,
    delta: Any,
    k: Any,
    max_items_per_user: Any,
    num_trials: Any,
    **options: Any,
) -> SelectionTrials:
    """Independent trials of one mechanism; arguments as those of `run_selections`.

    Example:
        >>> from wgm_jax import synthetic
        >>> from wgm_jax.selection.mechanisms import PEELING
        >>> data = synthetic.equal_frequencies(num_items=5, frequency=400)
        >>> trials = run_selection(data, PEELING, eps=1.0, delta=1e-5, k=[1, 5, 9],
        ...                        max_items_per_user=1, num_trials=20)
        >>> trials.num_released.max(axis=0).tolist(), float(trials.top_k_missing_mass.max())
        ([[1, 5, 5]], 0.0)
    """
    (trials,) = run_selections(
        data,
        [mechanism],
        eps=eps,
        delta=delta,
        k=k,
        max_items_per_user=max_items_per_user,
        num_trials=num_trials,
        **options,
    )
    return trials


def run_selections(
    data: UserItems,
    mechanisms: Sequence[Any],
    *,
    eps: Reals,
    delta: Any,
    k: Any,
    max_items_per_user: Any,
    num_trials: Any,
    seed: Any = 0,
    first_trial: Any = 0,
    eps_shares: Shares = (0.5, 0.5),
    delta_shares: Shares = (0.5, 0.5),
    method: str = "split",
    memory_budget: Any = 2**30,
    progress: Callable[[int, int], Any] | None = None,
) -> tuple[SelectionTrials, ...]:
    """Independent trials of several mechanisms on one data set, over a grid of eps and k.

    The WGM runs once per trial for the whole grid of eps; its domains are shared by all k and all
    mechanisms, and so is the noise of an item. The numbers of trial i are a function of data,
    mechanism, eps, k, delta, Delta0, shares, seed and i.

    Args:
        data: The data set, below 2^31 pairs.
        mechanisms: Names from `wgm_jax.mechanisms` or objects: an `OnFoundDomain` splits the budget
            and runs the WGM first, a bare selector gets all items and the whole budget.
        eps: Privacy parameters of the whole algorithm, in (0, 1e5], each once.
        delta: Privacy parameter of the whole algorithm, in (0, 0.5].
        k: Numbers of items to select, at least 1, ascending; may exceed the number of items.
        max_items_per_user: Delta0 of the WGM, and of selectors that clip users.
        num_trials: Number of trials, at least 1.
        seed: Seed, 0 to 2^63 - 1.
        first_trial: Index of the first trial.
        eps_shares: Shares of eps for the WGM and for the selection, of sum 1.
        delta_shares: Shares of delta, likewise.
        method: Calibration of the WGM, "split" [P1] or "full" [P3].
        memory_budget: Bytes that the trials in flight may take, beside the data and the results.
        progress: Called as progress(done, total) after every chunk of trials.

    Returns:
        One record per mechanism, in the given order.

    Raises:
        InvalidInput: An argument is out of range, or a mechanism is unknown or does not select.
    """
    num_trials = check_count("num_trials", num_trials)
    seed = check_count("seed", seed, minimum=0, maximum=2**63 - 1)
    first_trial = check_count("first_trial", first_trial, minimum=0, maximum=2**31 - num_trials)
    memory_budget = check_count("memory_budget", memory_budget)
    bound = check_count("max_items_per_user", max_items_per_user)
    eps_grid, k_grid = _eps_grid(eps), _k_grid(k)
    budgets = [Budget(e, delta, tuple(eps_shares), tuple(delta_shares)) for e in eps_grid]
    if budgets[0].num_parts != 2:
        invalid("eps_shares", tuple(eps_shares), "must be two: for the domain and the selection")
    if not mechanisms:
        invalid("mechanisms", mechanisms, "must name at least one mechanism")
    plans = [_Plan.of(m, data, budgets, k_grid, bound) for m in mechanisms]
    chunks = _chunks(num_trials, _chunk_size(data, memory_budget))
    if any(plan.on_found_domain for plan in plans):
        chunks = released_sets(
            data,
            _calibration(budgets, bound, method),
            num_trials=num_trials,
            seed=seed,
            first_trial=first_trial,
            memory_budget=memory_budget,
        )
    sizes: list[np.ndarray] = []
    done, domain_seconds, start = 0, 0.0, time.perf_counter()
    with ThreadPoolExecutor(num_cores(), thread_name_prefix="selections") as pool:
        for chunk in chunks:
            domain_seconds += time.perf_counter() - start
            found = None if isinstance(chunk, int) else np.moveaxis(chunk, 1, 0).copy()
            count = chunk if isinstance(chunk, int) else len(chunk)
            keys = trial_keys(seed, first_trial + done, count)
            waiting = [(plan, pool.submit(plan.run, job, keys, found)) for plan, job in _all(plans)]
            if found is not None:
                sizes.append(found.sum(axis=2, dtype=np.int64).T)
            for plan, future in waiting:
                plan.seconds += future.result()
            done += count
            if progress is not None:
                progress(done, num_trials)
            start = time.perf_counter()

    return tuple(
        SelectionTrials(
            mechanism=plan.name,
            data=data,
            eps=eps_grid,
            k=k_grid,
            delta=budgets[0].delta,
            max_items_per_user=bound,
            chosen=plan.chosen(len(eps_grid), k_grid),
            domain_sizes=np.concatenate(sizes) if plan.on_found_domain else None,
            seed=seed,
            first_trial=first_trial,
            seconds=plan.seconds,
            domain_seconds=domain_seconds,
            versions={name: version(name) for name in ("jax", "jaxlib", "numpy")},
        )
        for plan in plans
    )


@dataclass
class _Job:
    """Points served by one call per chunk: those for a smaller k are beginnings of its result.

    Attributes:
        state: State of the largest k.
        eps: Index of its eps.
        points: Indices (eps, k) of all points.
        parts: Results so far.
    """

    state: Any
    eps: int
    points: list[tuple[int, int]]
    parts: list[np.ndarray] = field(default_factory=list)


@dataclass
class _Plan:
    """One mechanism over the grid.

    Attributes:
        name: Its name in the record.
        selector: Its selector.
        on_found_domain: Whether the WGM finds the domain.
        jobs: What is run per chunk.
        seconds: Time so far.
    """

    name: str
    selector: Any
    on_found_domain: bool
    jobs: list[_Job]
    seconds: float = 0.0

    @staticmethod
    def of(
        mechanism: Any, data: UserItems, budgets: list[Budget], k_grid: tuple[int, ...], bound: int
    ) -> _Plan:
        used = registry.get(mechanism) if isinstance(mechanism, str) else mechanism
        found = isinstance(used, OnFoundDomain)
        selector = used.selector if isinstance(used, OnFoundDomain) else used
        if not isinstance(selector, Selector):
            invalid("mechanism", mechanism, "must select: a top-k or hitting-set mechanism")
        jobs: dict[Any, _Job] = {}
        for e, budget in enumerate(budgets):
            eps, delta = budget.part(1) if found else (budget.eps, budget.delta)
            for j, k in enumerate(k_grid):
                state = selector.prepare(data, eps=eps, delta=delta, k=k, max_items_per_user=bound)
                family = getattr(state, "family", None)
                alone = (e, j) if family is None else (e if found else None, "family", family)
                job = jobs.setdefault(alone, _Job(state, e, []))
                job.points.append((e, j))
                if k > k_grid[job.points[0][1]]:
                    job.state = state
        name = mechanism if isinstance(mechanism, str) else repr(mechanism)
        return _Plan(name, selector, found, list(jobs.values()))

    def run(self, job: _Job, keys: np.ndarray, found: np.ndarray | None) -> float:
        """One chunk of a job; the time it took."""
        start = time.perf_counter()
        domain = found[job.eps] if self.on_found_domain and found is not None else None
        job.parts.append(self.selector.select(job.state, keys, domain))
        return time.perf_counter() - start

    def chosen(self, num_eps: int, k_grid: tuple[int, ...]) -> tuple[tuple[np.ndarray, ...], ...]:
        """Results of all points."""
        by_point = {}
        for job in self.jobs:
            whole = np.concatenate(job.parts)
            for e, j in job.points:
                by_point[e, j] = whole[:, : k_grid[j]]
        return tuple(tuple(by_point[e, j] for j in range(len(k_grid))) for e in range(num_eps))


def _all(plans: list[_Plan]) -> Iterator[tuple[_Plan, _Job]]:
    for plan in plans:
        for job in plan.jobs:
            yield plan, job


def _chunks(num_trials: int, size: int) -> Iterator[Any]:
    """Numbers of trials of consecutive chunks."""
    for start in range(0, num_trials, size):
        yield min(size, num_trials - start)


def _chunk_size(data: UserItems, memory_budget: int) -> int:
    """Trials whose states over users and items fit, at 16 bytes each."""
    fitting = memory_budget // (16 * (data.num_users + data.num_items))
    return max(1, min(_MOST_TRIALS, fitting))


def _calibration(budgets: list[Budget], bound: int, method: str) -> Calibration:
    """Calibration of the WGM at every eps."""
    parts = [budget.part(0) for budget in budgets]
    return calibrate(
        eps=np.array([eps for eps, _ in parts]),
        delta=np.array([delta for _, delta in parts]),
        max_items_per_user=bound,
        method=method,
    )


def _eps_grid(eps: Any) -> tuple[float, ...]:
    values = np.atleast_1d(check_eps(eps))
    if values.ndim != 1 or values.size == 0 or np.any(values == 0):
        invalid("eps", eps, "must be one or more numbers in (0, 1e5]")
    if np.unique(values).size < values.size:
        invalid("eps", eps, "must not name a value twice")
    return tuple(values.tolist())


def _k_grid(k: Any) -> tuple[int, ...]:
    values = [check_count("k", value) for value in (k if np.ndim(k) else [k])]
    if not values or values != sorted(set(values)):
        invalid("k", k, "must be one or more whole numbers in ascending order")
    return tuple(values)
