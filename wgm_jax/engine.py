"""Many independent trials of a mechanism: calls of a sampler from the host."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

import numpy as np

from theory import UserItems
from theory._check import check_count, invalid
from theory.calibration import Calibration, verify_calibration
from wgm_jax import metrics, registry, samplers
from wgm_jax.censored import censoring, contribution_bound
from wgm_jax.devices import Devices
from wgm_jax.mechanism import Mechanism
from wgm_jax.trials import Trials
from wgm_jax.wgm import WeightedGaussian

# Calls grow until one takes this long, so that progress is seen and calls cost nothing.
_SECONDS_PER_CALL = 0.5
# Trials of a last call that are computed beyond the number asked for.
_SPARE = 2**24


def simulate(
    data: UserItems,
    calibration: Calibration,
    mechanism: str | Mechanism = "wgm",
    *,
    num_trials: int | float | np.number,
    seed: int | float | np.number = 0,
    first_trial: int | float | np.number = 0,
    sampler: str = "auto",
    chunk_size: int | float | np.number | None = None,
    memory_budget: int | float | np.number = 2**30,
    devices: Sequence[Any] | None = None,
    num_threads: int | float | np.number | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Trials:
    """Independent trials of a mechanism on one data set.

    The numbers of trial i are a function of data, calibration, sampler, seed and i: they depend
    neither on the number of trials nor on chunk size, memory budget, devices or threads. Call again
    with `first_trial` to add trials.

    Args:
        data: The data set, below 2^31 pairs.
        calibration: From `theory.calibrate`; a grid of any shape at one Delta0 is served by the
            same draws (common random numbers) at little more than the price of one point.
        mechanism: Name from `wgm_jax.mechanisms`, or a mechanism.
        num_trials: Number of trials, at least 1.
        seed: Seed, 0 to 2^63 - 1.
        first_trial: Index of the first trial.
        sampler: "padded" runs the mechanism as it defines itself; "lanes" is a second, much faster
            way on a CPU for mechanisms that say their law by kept copies (`wgm_jax.count_law`: the
            weighted Gaussian one, the Bernoulli flow, counts and more), of the same law (to 2^-30
            in total variation and 2^-32 per probability) but with other numbers. There a point of a
            grid differs from a run of this point alone, too. "auto" chooses.
        chunk_size: Trials per call; default adapts to about half a second.
        memory_budget: Bytes that the trials in flight may take, beside the data themselves.
        devices: JAX devices that share the trials; default all of this process.
        num_threads: Calls in flight; default one for a GPU, on a CPU one per core.
        progress: Called as progress(done, total) after every call.

    Returns:
        A `Trials` record.

    Raises:
        InvalidInput: An argument is out of range; the calibration does not keep its promise
            ([P2] re-derives delta), mixes several Delta0, or is not a `Calibration`; a single trial
            does not fit into the memory budget.

    Example:
        >>> from theory.calibration import calibrate
        >>> from wgm_jax import synthetic
        >>> data = synthetic.equal_frequencies(num_items=5, frequency=40)
        >>> trials = simulate(data, calibrate(eps=1.0, delta=1e-5, max_items_per_user=1),
        ...                   num_trials=100)
        >>> trials.missing_mass.shape, float(trials.missing_mass.max())
        ((100,), 0.0)
    """
    num_trials = check_count("num_trials", num_trials)
    seed = check_count("seed", seed, minimum=0, maximum=2**63 - 1)
    # Indices of trials are 32-bit words of the cipher's counter.
    last = 2**32 - 1 - num_trials - _SPARE
    first_trial = check_count("first_trial", first_trial, minimum=0, maximum=last)
    memory_budget = check_count("memory_budget", memory_budget)
    if chunk_size is not None:
        chunk_size = check_count("chunk_size", chunk_size)
    if num_threads is not None:
        num_threads = check_count("num_threads", num_threads)
    check_inputs(data, calibration)

    start = time.perf_counter()
    used = (
        mechanism if isinstance(mechanism, Mechanism) else registry.get(mechanism, task="set-union")
    )
    where = Devices.of(devices)
    chosen = samplers.choose(sampler, used, data, calibration, where)
    callers = num_threads or samplers.default_callers(where)
    run = samplers.make(
        chosen,
        used,
        data,
        _flat(calibration),
        seed=seed,
        devices=where,
        num_trials=num_trials,
        callers=callers,
        memory_budget=memory_budget,
    )
    compiled = time.perf_counter()
    parts, done = [], 0
    for part in in_calls(run, first_trial, num_trials, chunk_size, callers):
        parts.append(part)
        done += len(part["num_released"])
        if progress is not None:
            progress(done, num_trials)
    run_seconds = time.perf_counter() - compiled

    raw = {
        name: np.concatenate([part[name] for part in parts]).reshape(num_trials, *calibration.shape)
        for name in parts[0]
    }
    released = raw["num_released"].astype(np.int64)
    return Trials(
        missing_mass=raw["missed_pairs"] / np.float64(data.num_pairs),
        missing_mass_l2=np.sqrt(raw["missed_squares"].astype(np.float64)) / data.num_pairs,
        max_missing_mass=raw["largest_missed"] / np.float64(data.num_pairs),
        num_missed=data.num_items - released,
        num_released=released,
        seed=seed,
        first_trial=first_trial,
        mechanism=mechanism if isinstance(mechanism, str) else repr(mechanism),
        sampler=f"{chosen}, threefry2x32, {where.platform}",
        calibration=calibration,
        censoring=censoring(data, calibration) if isinstance(used, WeightedGaussian) else None,
        compile_seconds=compiled - start,
        run_seconds=run_seconds,
        versions={name: version(name) for name in ("jax", "jaxlib", "numpy")},
    )


def in_calls(
    run: samplers.Sampler, first: int, count: int, chunk_size: int | None, callers: int
) -> Iterator[dict[str, np.ndarray]]:
    """Results of all calls, in the order of trials; `callers` calls are in flight.

    Threads, because XLA and NumPy release Python's lock while they compute. Calls are independent,
    so an idle core takes the next one.
    """

    def timed(start: int, number: int) -> tuple[dict[str, np.ndarray], float]:
        called = time.perf_counter()
        return run(start, number), time.perf_counter() - called

    size = min(chunk_size or run.trials_per_call, run.most_trials_per_call)
    submitted = 0
    with ThreadPoolExecutor(callers, thread_name_prefix="trials") as pool:
        flying: deque[Future] = deque()
        while flying or submitted < count:
            while submitted < count and len(flying) < callers + 1:
                number = min(size, count - submitted)
                flying.append(pool.submit(timed, first + submitted, number))
                submitted += number
            part, seconds = flying.popleft().result()
            yield part
            if not chunk_size and seconds < _SECONDS_PER_CALL / 2:
                size = min(2 * size, run.most_trials_per_call)


def check_inputs(data: UserItems, calibration: Calibration) -> None:
    """What every simulation asks of its data and its calibration."""
    if not isinstance(data, UserItems):
        invalid("data", type(data).__name__, "must be a theory.UserItems")
    if not isinstance(calibration, Calibration):
        accepted = "must be a theory.Calibration: sigma and threshold belong together"
        invalid("calibration", calibration, accepted)
    if data.num_pairs > metrics.MOST_PAIRS:
        invalid("num_pairs", data.num_pairs, "must be below 2^31: sums are exact in 32 bits")
    contribution_bound(calibration)
    verify_calibration(calibration)


def _flat(calibration: Calibration) -> Calibration:
    """The same calibration with one axis, of length 1 for a single point."""
    names = ("eps", "delta", "max_items_per_user", "sigma", "threshold")
    values = {name: np.ravel(getattr(calibration, name)) for name in names}
    return Calibration(method=calibration.method, **values)
