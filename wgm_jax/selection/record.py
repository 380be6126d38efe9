"""What a run of selections returns: the chosen items of every trial, and what they are worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float64, Int32, Int64

from theory import UserItems


@dataclass(frozen=True, eq=False)
class SelectionTrials:
    """Outcomes of independent trials over a grid of eps and k; metrics are computed when asked for.

    Attributes:
        mechanism: Name of the mechanism, or its repr if it was passed as an object.
        data: The data set.
        eps: Privacy parameters of the whole algorithm, one per point.
        k: Numbers of items to select, ascending.
        delta: Privacy parameter of the whole algorithm.
        max_items_per_user: Delta0.
        chosen: chosen[e][j] holds the items selected at eps[e] and k[j], (trials, k[j]), in the
            order of their release, -1 where there is none.
        domain_sizes: Items of every trial's domain, (trials, eps); None on a public domain, or
            where the mechanism finds its own.
        seed: Seed of the run; trial i depends on the seed and i only.
        first_trial: Index i of the first trial.
        seconds: Time that the selections took, summed over threads.
        domain_seconds: Time to find the domains, shared by all mechanisms of the run.
        versions: Versions of the packages that determine the numbers.
    """

    mechanism: str
    data: UserItems
    eps: tuple[float, ...]
    k: tuple[int, ...]
    delta: float
    max_items_per_user: int
    chosen: tuple[tuple[Int32[np.ndarray, "trials _"], ...], ...]
    domain_sizes: Int64[np.ndarray, "trials eps"] | None
    seed: int
    first_trial: int
    seconds: float
    domain_seconds: float
    versions: Mapping[str, str]

    @property
    def num_trials(self) -> int:
        """Number of trials."""
        return self.chosen[0][0].shape[0]

    @cached_property
    def top_k_missing_mass(self) -> Float64[np.ndarray, "trials eps k"]:
        """Pairs of the k most frequent items less those of the selected items, over all pairs.

        An exact count divided in float64; MM^k of theory section 6, 0 for the k best items.
        """
        sorted_counts = self._sorted_counts

        def missed(chosen: np.ndarray) -> np.ndarray:
            best = sorted_counts[: chosen.shape[1]].sum()
            return (best - self._counts(chosen).sum(axis=1)) / np.float64(self.data.num_pairs)

        return self._grid(missed)

    @cached_property
    def l1_loss(self) -> Int64[np.ndarray, "trials eps k"]:
        """Sum over positions of the difference of counts to the true order; missing ones count 0.

        Positions beyond the number of items have a true count of 0.
        """
        sorted_counts = self._sorted_counts

        def loss(chosen: np.ndarray) -> np.ndarray:
            best = sorted_counts[: chosen.shape[1]]
            best = np.pad(best, (0, chosen.shape[1] - best.size))
            return np.abs(best - self._counts(chosen)).sum(axis=1)

        return self._grid(loss)

    @cached_property
    def num_released(self) -> Int64[np.ndarray, "trials eps k"]:
        """Number of selected items, at most k."""
        return self._grid(lambda chosen: np.sum(chosen >= 0, axis=1, dtype=np.int64))

    @cached_property
    def users_hit(self) -> Int64[np.ndarray, "trials eps k"]:
        """Users who hold a selected item. A pass over all pairs per trial and point."""
        from wgm_jax.selection.hitting import users_hit

        return self._grid(lambda chosen: users_hit(self.data, chosen))

    @property
    def users_missed(self) -> Int64[np.ndarray, "trials eps k"]:
        """Users who hold none."""
        return self.data.num_users - self.users_hit

    def to_frame(self, *, users: bool = False) -> Any:
        """One row per trial, eps and k, as a polars DataFrame.

        Args:
            users: Also users hit and missed.

        Returns:
            Columns mechanism, trial, eps, k, delta, max_items_per_user, the metrics, and
            domain_size where there is one.
        """
        import polars as pl

        shape = self.num_trials, len(self.eps), len(self.k)
        trials = np.arange(self.first_trial, self.first_trial + self.num_trials)
        columns: dict[str, Any] = {
            "trial": trials[:, None, None],
            "eps": np.array(self.eps)[:, None],
            "k": np.array(self.k),
            "delta": np.array(self.delta),
            "max_items_per_user": np.array(self.max_items_per_user),
            "top_k_missing_mass": self.top_k_missing_mass,
            "l1_loss": self.l1_loss,
            "num_released": self.num_released,
        }
        if users:
            columns |= {"users_hit": self.users_hit, "users_missed": self.users_missed}
        if self.domain_sizes is not None:
            columns["domain_size"] = self.domain_sizes[:, :, None]
        flat = {name: np.broadcast_to(values, shape).ravel() for name, values in columns.items()}
        return pl.DataFrame(flat).insert_column(
            0, pl.Series("mechanism", [self.mechanism] * int(np.prod(shape)), dtype=pl.String)
        )

    @cached_property
    def _sorted_counts(self) -> np.ndarray:
        return np.sort(self.data.frequencies)[::-1]

    def _counts(self, chosen: np.ndarray) -> np.ndarray:
        """Counts of chosen items, 0 where there is none."""
        return np.where(chosen >= 0, self.data.frequencies[chosen], 0)

    def _grid(self, metric: Callable[[np.ndarray], Any]) -> np.ndarray:
        """A metric of every point, (trials, eps, k)."""
        rows = [np.stack([metric(chosen) for chosen in row], axis=1) for row in self.chosen]
        return np.stack(rows, axis=1)
