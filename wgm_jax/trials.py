"""What a simulation returns: one number per trial, and all it takes to repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from theory._notebook import notebook_table
from theory.calibration import Calibration
from wgm_jax.censored import Censoring


@dataclass(frozen=True, eq=False)
class Trials:
    """Metrics of independent trials; the last axes are those of the calibration grid, if any.

    Attributes:
        missing_mass: Share of pairs whose item is not released, MM. An exact integer count,
            divided in float64.
        missing_mass_l2: Euclidean norm of the missed item masses, MM_2 (relative error 1e-5).
        max_missing_mass: Mass of the most frequent missed item, MM_inf.
        num_missed: Items not released.
        num_released: Items released.
        seed: Seed of the run; trial i depends on the seed and i only.
        first_trial: Index i of the first trial.
        mechanism: Name of the mechanism, or its repr if it was passed as an object.
        sampler: Which implementation drew the samples, and on what device.
        calibration: The calibration simulated.
        censoring: Whether anything can be released at all; None for other mechanisms than the WGM,
            whose weights and thresholds are not its.
        compile_seconds: Time until the first trial could start (tracing, compilation, transfer).
        run_seconds: Time of the trials themselves.
        versions: Versions of the packages that determine the numbers.
    """

    missing_mass: Float64[np.ndarray, " num_trials *grid"]
    missing_mass_l2: Float64[np.ndarray, " num_trials *grid"]
    max_missing_mass: Float64[np.ndarray, " num_trials *grid"]
    num_missed: Int64[np.ndarray, " num_trials *grid"]
    num_released: Int64[np.ndarray, " num_trials *grid"]
    seed: int
    first_trial: int
    mechanism: str
    sampler: str
    calibration: Calibration
    censoring: Censoring | None
    compile_seconds: float
    run_seconds: float
    versions: Mapping[str, str]

    @property
    def num_trials(self) -> int:
        """Number of trials."""
        return self.missing_mass.shape[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences a user should read before the numbers."""
        if self.censoring is None or not self.censoring.everything:
            return ()
        return (self.censoring.message,)

    def quantile(self, q: float | np.ndarray) -> np.ndarray:
        """Empirical quantiles of the missing mass, observed values (no interpolation).

        Args:
            q: Levels in [0, 1], any shape.

        Returns:
            Array of shape (*q.shape, *grid).
        """
        return np.asarray(np.quantile(self.missing_mass, q, axis=0, method="inverted_cdf"))

    def summary(self) -> dict[str, Any]:
        """Mean, 5 %, 50 % and 95 % quantile of the missing mass; floats or arrays over the grid."""
        low, middle, high = (self.quantile(q) for q in (0.05, 0.5, 0.95))
        values = {"mean": self.missing_mass.mean(axis=0), "q05": low, "q50": middle, "q95": high}
        return {name: v if np.ndim(v) else float(v) for name, v in values.items()}

    def to_frame(self) -> Any:
        """One row per trial and grid point, as a polars DataFrame.

        Columns: trial, eps, delta, max_items_per_user, sigma, threshold and the five metrics.
        """
        import polars as pl

        points = max(1, int(np.prod(self.calibration.shape)))
        index = np.arange(self.first_trial, self.first_trial + self.num_trials)
        columns: dict[str, np.ndarray] = {"trial": np.repeat(index, points)}
        for name in ("eps", "delta", "max_items_per_user", "sigma", "threshold"):
            columns[name] = np.tile(np.ravel(getattr(self.calibration, name)), self.num_trials)
        for name in ("missing_mass", "missing_mass_l2", "max_missing_mass"):
            columns[name] = np.ravel(getattr(self, name))
        for name in ("num_missed", "num_released"):
            columns[name] = np.ravel(getattr(self, name))
        return pl.DataFrame(columns)

    def _repr_html_(self) -> str:
        noise, found = self.calibration, self.summary()
        columns = [
            np.ravel(column)
            for column in (
                noise.eps, noise.delta, noise.max_items_per_user,
                *found.values(), self.num_released.mean(axis=0),
            )
        ]  # fmt: skip
        return notebook_table(
            f"{self.mechanism}: missing mass in {self.num_trials:,} trials, seed {self.seed}",
            ("ε", "δ", "Δ0", "mean", "5 %", "50 %", "95 %", "released"),
            zip(*(column.tolist() for column in np.broadcast_arrays(*columns)), strict=True),
            " ".join((*self.notes, self.sampler)),
        )
