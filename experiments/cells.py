"""One data set at one contribution bound: its bounds, its trials, and the row of numbers they make.

Everything that compares theory with simulation (`wgm verify`, `wgm sweep`, `wgm bounds`, plots)
starts here, so that a bound is computed in one way only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.statistics.binomial import clopper_pearson_lower, clopper_pearson_upper
from experiments.statistics.evidence import QuantileEvidence
from experiments.statistics.means import mean_interval
from experiments.statistics.slopes import empirical_quantile
from theory import (
    Bound,
    Calibration,
    Profile,
    UserItems,
    calibrate,
    exact_mean_unclipped,
    instance_bound,
    instance_lower_bound,
    linf_bound,
    tau_u1,
    tau_u1_star,
    theorem_33_printed,
    zipf_bound,
)

if TYPE_CHECKING:
    from wgm_jax import Trials
    from wgm_jax.lemma_events import LemmaEvents

# Enough to confirm 5 % at a family-wise level of 1 % over dozens of cells.
_EVENT_TRIALS = 400


@dataclass(frozen=True, eq=False)
class Case:
    """A data set with a name for tables, and the settings it was made from."""

    name: str
    data: UserItems
    settings: Mapping[str, Any] = field(default_factory=dict)

    def contribution_bound(self, max_items_per_user: int | str) -> int:
        """Delta0 as a number: "max" is the largest set."""
        if max_items_per_user == "max":
            return self.data.max_set_size
        return int(max_items_per_user)


@dataclass(frozen=True, eq=False)
class Run:
    """A case at one Delta0, simulated at every eps of a grid by the same draws.

    Attributes:
        case: The data set.
        is_max: Delta0 was asked for as "max".
        profile: Sufficient statistics at this Delta0.
        calibration: One entry per eps.
        beta: Failure probability of quantile bounds.
        mechanism: Mechanism simulated.
        trials: Per-trial metrics, (trials, eps).
    """

    case: Case
    is_max: bool
    profile: Profile
    calibration: Calibration
    beta: float
    mechanism: str
    trials: Trials

    @property
    def cell(self) -> dict[str, Any]:
        """Settings that are the same at every eps."""
        return {
            "dataset": self.case.name,
            "max_items_per_user": self.profile.max_items_per_user,
            "delta": float(self.calibration.delta[0]),
        }

    @property
    def cells(self) -> list[dict[str, Any]]:
        """Settings of the cell at every eps."""
        return [{**self.cell, "eps": float(eps)} for eps in self.calibration.eps]

    @cached_property
    def bounds(self) -> dict[str, Bound]:
        """The ladder of bounds, every value one entry per eps."""
        return ladder(self.profile, self.calibration, self.beta)

    @cached_property
    def exact_mean(self) -> np.ndarray | None:
        """Exact mean of the missing mass per eps, None where subsampling makes it random."""
        if self.mechanism != "wgm" or self.profile.clipped:
            return None
        return exact_mean_unclipped(self.case.data, self.calibration)

    @cached_property
    def events(self) -> LemmaEvents:
        """What happened inside the mechanism, for Lemmas C.2 to C.5; on fewer trials."""
        from wgm_jax.lemma_events import lemma_events

        return lemma_events(
            self.case.data,
            self.calibration,
            beta=self.beta,
            num_trials=min(self.trials.num_trials, _EVENT_TRIALS),
            seed=self.trials.seed,
        )


def ladder(profile: Profile, calibration: Calibration, beta: float) -> dict[str, Bound]:
    """Every bound of the ladder, from the lower bound for all mechanisms to the Zipf bound."""
    return {
        "lower_instance": instance_lower_bound(
            profile, eps=calibration.eps, delta=calibration.delta
        ),
        "upper_instance_star": instance_bound(profile, calibration, beta, tau="u1_star"),
        "upper_instance": instance_bound(profile, calibration, beta),
        "upper_zipf": zipf_bound(profile, calibration, beta),
        "upper_printed": theorem_33_printed(profile, calibration, beta),
        "upper_max": linf_bound(profile, calibration, beta),
        "tau": tau_u1(profile, calibration, beta),
        "tau_star": tau_u1_star(profile, calibration, beta),
    }


def run_case(
    case: Case,
    *,
    max_items_per_user: int | str,
    eps: Sequence[float],
    delta: float,
    beta: float = 0.05,
    method: str = "split",
    mechanism: str = "wgm",
    num_trials: int = 1000,
    seed: int = 0,
    progress: Callable[[int, int], Any] | None = None,
) -> Run:
    """Simulate a case at one Delta0 over a grid of eps.

    Args:
        case: The data set.
        max_items_per_user: Delta0, or "max" for the largest set.
        eps: Privacy parameters, served by the same draws.
        delta: Privacy parameter.
        beta: Failure probability of quantile bounds.
        method: Calibration method.
        mechanism: Mechanism name.
        num_trials: Number of trials.
        seed: Seed of the trials.
        progress: Called as progress(done, total).

    Returns:
        A `Run`.

    Raises:
        InvalidInput: An argument is out of range.
    """
    from wgm_jax import simulate

    bound = case.contribution_bound(max_items_per_user)
    calibration = calibrate(
        eps=np.asarray(eps, np.float64), delta=delta, max_items_per_user=bound, method=method
    )
    trials = simulate(
        case.data, calibration, mechanism, num_trials=num_trials, seed=seed, progress=progress
    )
    return Run(
        case=case,
        is_max=max_items_per_user == "max",
        profile=Profile.from_user_items(case.data, max_items_per_user=bound),
        calibration=calibration,
        beta=beta,
        mechanism=mechanism,
        trials=trials,
    )


def rows(run: Run) -> list[dict[str, Any]]:
    """One flat row per eps: settings, sizes, what was seen, and the ladder (bounds not clipped)."""
    profile, trials, case = run.profile, run.trials, run.case
    shared = {
        "dataset": case.name,
        "kind": str(case.settings.get("kind", "file")),
        "s": _number(case.settings.get("s")),
        "C": _number(case.settings.get("C")),
        "N_asked": _number(case.settings.get("N")),
        "num_users": case.data.num_users,
        "num_items": case.data.num_items,
        "num_pairs": case.data.num_pairs,
        "max_set_size": case.data.max_set_size,
        "beta": run.beta,
        "max_items_per_user": profile.max_items_per_user,
        "max_items_is_max": run.is_max,
        "method": run.calibration.method,
        "mechanism": run.mechanism,
        "trials": trials.num_trials,
        "seed": trials.seed,
    }
    made = []
    for index in range(len(run.calibration)):
        at = run.calibration[index]
        bounds = {name: float(bound.at(index).value) for name, bound in run.bounds.items()}
        zipf = run.bounds["upper_zipf"].at(index).details
        made.append(
            {
                **shared,
                "eps": at.eps,
                "delta": at.delta,
                "sigma": at.sigma,
                "threshold": at.threshold,
                "spent_delta": float(at.spent_delta),
                **_seen(run, index),
                **bounds,
                "zipf_s": float(zipf["s"]),
                "zipf_log_constant": float(zipf["log_constant"]),
                "sampler": trials.sampler,
                "run_seconds": trials.run_seconds,
                "compile_seconds": trials.compile_seconds,
            }
        )
    return made


def exceedances(run: Run, betas: Sequence[float]) -> list[dict[str, Any]]:
    """How often each upper bound was exceeded, for every failure probability it may have.

    One row per bound, beta and eps: value, vacuous, fraction (of trials above), and its exact 95 %
    interval low..high.
    """
    made = []
    for beta in betas:
        for bound in (
            instance_bound(run.profile, run.calibration, beta, tau="u1_star"),
            instance_bound(run.profile, run.calibration, beta),
            zipf_bound(run.profile, run.calibration, beta),
        ):
            for index, cell in enumerate(run.cells):
                value = float(bound.at(index).value)
                mass = np.ascontiguousarray(run.trials.missing_mass[:, index])
                seen = QuantileEvidence(mass, value, beta)
                count, trials = seen.exceedances, seen.trials
                made.append(
                    {
                        **cell,
                        "bound": bound.tag,
                        "beta": beta,
                        "value": value,
                        "vacuous": seen.vacuous,
                        "fraction": count / trials,
                        "low": float(clopper_pearson_lower(count, trials, alpha=0.025)),
                        "high": float(clopper_pearson_upper(count, trials, alpha=0.025)),
                    }
                )
    return made


def _seen(run: Run, index: int) -> dict[str, Any]:
    mass, largest = run.trials.missing_mass[:, index], run.trials.max_missing_mass[:, index]
    interval = mean_interval(np.ascontiguousarray(mass), alpha=0.05)
    exact = run.exact_mean
    return {
        "mm_mean": float(mass.mean()),
        "mm_mean_low": float(interval[0]),
        "mm_mean_high": float(interval[1]),
        "mm_q05": empirical_quantile(mass, 0.05),
        "mm_q50": empirical_quantile(mass, 0.5),
        "mm_q95": empirical_quantile(mass, 0.95),
        "mm_quantile": empirical_quantile(mass, 1 - run.beta),
        "max_mm_q50": empirical_quantile(largest, 0.5),
        "max_mm_quantile": empirical_quantile(largest, 1 - run.beta),
        "released_mean": float(run.trials.num_released[:, index].mean()),
        "exact_mean": None if exact is None else float(exact[index]),
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
