"""The ways to run trials that are compared, all with one method: so many trials, how long?"""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from experiments.bench.numpy_peer import NumpyTrials
from experiments.bench.user_loop import UserLoopTrials
from theory import Calibration, UserItems


@runtime_checkable
class Way(Protocol):
    """One way to run trials on one data set and a grid of calibrations.

    Attributes:
        batch: Trials run at least, and in multiples.
    """

    batch: int

    def run(self, count: int) -> tuple[float, Float64[np.ndarray, "count points"]]:
        """Run `count` new trials: seconds, and their missing masses."""
        ...

    def close(self) -> None:
        """Free what it holds."""
        ...


class Simulation:
    """`wgm_jax.simulate` with one sampler: run time without preparation and compilation.

    Args:
        data: The data set.
        calibration: Grid of shape (points,).
        sampler: "lanes" or "padded".
        seed: Seed.
    """

    def __init__(
        self, data: UserItems, calibration: Calibration, sampler: str, *, seed: int = 0
    ) -> None:
        from wgm_jax.devices import Devices
        from wgm_jax.samplers import default_callers

        self._arguments = data, calibration
        self._options: dict[str, Any] = {"sampler": sampler, "seed": seed}
        self._first = 0
        callers = default_callers(Devices.of())
        # The padded sampler starts with what takes about as long as a call costs anyway.
        few = int(np.clip(2e7 // data.num_pairs, 8, 512))
        self.batch = 1000 if sampler == "lanes" else callers * few
        # Until the first trial can start: what the host prepares, and compilation once.
        self.starts: list[float] = []

    def run(self, count: int) -> tuple[float, Float64[np.ndarray, "count points"]]:
        """Run `count` new trials: seconds, and their missing masses."""
        from wgm_jax import simulate

        trials = simulate(
            *self._arguments, num_trials=count, first_trial=self._first, **self._options
        )
        self._first += count
        self.starts.append(trials.compile_seconds)
        return trials.run_seconds, trials.missing_mass

    def close(self) -> None:
        """Nothing is held."""


class UserLoop:
    """A loop over users in this process.

    Args:
        data: The data set.
        calibration: Grid of shape (1,).
        seed: Seed.
    """

    batch = 1

    def __init__(self, data: UserItems, calibration: Calibration, *, seed: int = 0) -> None:
        self._trials = UserLoopTrials(data, calibration[0], seed=seed)

    def run(self, count: int) -> tuple[float, Float64[np.ndarray, "count points"]]:
        """Run `count` new trials: seconds, and their missing masses."""
        start = time.perf_counter()
        masses = self._trials.missing_masses(count)
        return time.perf_counter() - start, masses[:, None]

    def close(self) -> None:
        """Nothing is held."""


class NumpyProcesses:
    """Vectorised NumPy, one process per core; every point of a grid is simulated by itself.

    Args:
        data: The data set.
        calibration: Grid of shape (points,).
        processes: Number of processes.
        seed: Seed.
    """

    def __init__(
        self, data: UserItems, calibration: Calibration, *, processes: int, seed: int = 0
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self.batch = processes
        self._pool = ProcessPoolExecutor(
            processes,
            mp_context=context,
            initializer=_prepare,
            initargs=(data.items, data.offsets, calibration, seed, context.Value("i", 0)),
        )

    def run(self, count: int) -> tuple[float, Float64[np.ndarray, "count points"]]:
        """Run `count` new trials, a multiple of the processes: seconds, and missing masses."""
        start = time.perf_counter()
        shares = [self._pool.submit(_run, count // self.batch) for _ in range(self.batch)]
        masses = [share.result() for share in shares]
        return time.perf_counter() - start, np.concatenate(masses)

    def close(self) -> None:
        """End the processes."""
        self._pool.shutdown()


# Trials of every point of the grid, in a worker process.
_points: list[NumpyTrials] = []


def _prepare(
    items: np.ndarray, offsets: np.ndarray, calibration: Calibration, seed: int, started: Any
) -> None:
    with started.get_lock():
        worker, started.value = started.value, started.value + 1
    data = UserItems.from_csr(items, offsets)
    seeds = np.random.SeedSequence([seed, worker]).generate_state(calibration.sigma.size)
    for index, own in enumerate(seeds.tolist()):
        _points.append(NumpyTrials(data, calibration[index], seed=own))


def _run(count: int) -> np.ndarray:
    return np.stack([trials.missing_masses(count) for trials in _points], axis=1)
