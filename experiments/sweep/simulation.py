"""What a sweep measures unless told otherwise: the rows of `experiments.cells`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from experiments.sweep.cell_files import Measured
from experiments.sweep.data_specs import DataSpec
from experiments.sweep.grid import Group
from theory._check import invalid

if TYPE_CHECKING:
    from experiments.cells import Case

_PER_TRIAL = ("missing_mass", "missing_mass_l2", "max_missing_mass", "num_missed", "num_released")


class Simulation:
    """Simulates groups; groups that follow each other on the same data share it.

    Args:
        keep_trials: Whether to return the numbers of every trial.
        devices: How many of the process's JAX devices share the trials; default all. The numbers
            do not depend on it. Where JAX has not started, a CPU is made to look like as many.
    """

    def __init__(self, *, keep_trials: bool = False, devices: int | None = None) -> None:
        self._keep_trials = keep_trials
        self._devices = devices
        self._spec: DataSpec | None = None
        self._case: Any = None

    def __call__(self, group: Group) -> Sequence[Measured]:
        """One `Measured` per eps of a group."""
        from experiments import cells

        run = cells.run_case(
            self._case_of(group.data),
            max_items_per_user=group.max_items_per_user,
            eps=group.eps,
            delta=group.delta,
            beta=group.beta,
            method=group.method,
            mechanism=group.mechanism,
            num_trials=group.trials,
            seed=group.seed,
            **self._chosen_devices(),
        )
        return [
            Measured(row, self._values(run.trials, column))
            for column, row in enumerate(cells.rows(run))
        ]

    def _chosen_devices(self) -> dict[str, Any]:
        if self._devices is None:
            return {}
        import jax

        with contextlib.suppress(RuntimeError):  # JAX has started
            jax.config.update("jax_num_cpu_devices", self._devices)
        found = jax.local_devices()
        if self._devices > len(found):
            accepted = f"must be at most {len(found)}, the devices of this process"
            invalid("devices", self._devices, accepted)
        return {"devices": found[: self._devices]}

    def _case_of(self, spec: DataSpec) -> Case:
        from experiments.cells import Case

        if self._case is None or spec != self._spec:
            self._spec, self._case = None, None  # one data set in memory, not two
            self._case = Case(name=spec.name, data=spec.build(), settings=spec.parameters)
            self._spec = spec
        return self._case

    def _values(self, trials: Any, column: int) -> dict[str, Any] | None:
        if not self._keep_trials:
            return None
        return {name: getattr(trials, name)[:, column] for name in _PER_TRIAL}
