"""One data set at one contribution bound: its exact numbers, its bounds, its trials, and their row.

Everything that compares theory with simulation (`wgm verify`, `wgm sweep`, `wgm bounds`, plots)
starts here, so that a bound is computed in one way only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from experiments import flow_store
from experiments.exact_misses import WGM, exact_misses
from experiments.statistics.binomial import clopper_pearson_lower, clopper_pearson_upper
from experiments.statistics.evidence import QuantileEvidence
from experiments.statistics.means import mean_interval
from experiments.statistics.slopes import empirical_quantile
from theory import (
    Bound,
    Calibration,
    ItemClasses,
    MissProbabilities,
    Profile,
    UserItems,
    calibrate,
    chernoff_bound,
    hinge_bound,
    instance_bound,
    instance_lower_bound,
    linf_bound,
    quantile_interval,
    tau_u1,
    tau_u1_star,
    theorem_33_printed,
    zipf_bound,
)
from theory._check import invalid

if TYPE_CHECKING:
    import polars as pl

    from experiments.selection.grid import SelectionRun
    from wgm_jax import Trials
    from wgm_jax.lemma_events import LemmaEvents

Interval: TypeAlias = tuple[float, float, str]
Metric: TypeAlias = Literal["missing_mass", "max_missing_mass"]


class NeedsTrials(Exception):
    """What was asked for can only be simulated, and the run has no trials."""


# Enough to confirm 5 % at a family-wise level of 1 % over dozens of cells.
_EVENT_TRIALS = 400


@dataclass(frozen=True, eq=False)
class Case:
    """A data set with a name for tables, and the settings it was made from.

    Attributes:
        name: Name for tables and plots.
        data: The users' items; or a profile, where only sizes are known or N is beyond any memory:
            then everything exact is there, and nothing can be simulated.
        settings: What the data set was made from.
    """

    name: str
    data: UserItems | Profile
    settings: Mapping[str, Any] = field(default_factory=dict)

    def contribution_bound(self, max_items_per_user: int | str) -> int:
        """Delta0 as a number: "max" is the largest set."""
        if max_items_per_user == "max":
            return self.data.max_set_size
        return int(max_items_per_user)

    @property
    def user_items(self) -> UserItems:
        """The users' items.

        Raises:
            InvalidInput: Only a profile is known.
        """
        if not isinstance(self.data, UserItems):
            invalid("data", self.name, "must be users' items, not sizes alone")
        return self.data

    @property
    def classes(self) -> ItemClasses:
        """Holders of the items by set size.

        Raises:
            InvalidInput: Only frequencies are known.
        """
        return self.data.item_classes

    def profile(self, max_items_per_user: int) -> Profile:
        """Sufficient statistics at one Delta0."""
        if isinstance(self.data, Profile):
            return replace(self.data, max_items_per_user=max_items_per_user)
        return Profile.from_user_items(self.data, max_items_per_user=max_items_per_user)


@dataclass(frozen=True, eq=False)
class Run:
    """A case at one Delta0 and every eps of a grid; if simulated, by the same draws.

    Attributes:
        case: The data set.
        is_max: Delta0 was asked for as "max".
        profile: Sufficient statistics at this Delta0.
        calibration: One entry per eps.
        beta: Failure probability of quantile bounds.
        mechanism: Mechanism.
        simulated: Per-trial metrics, (trials, eps); None in a run without trials.
    """

    case: Case
    is_max: bool
    profile: Profile
    calibration: Calibration
    beta: float
    mechanism: str
    simulated: Trials | None

    @property
    def trials(self) -> Trials:
        """Per-trial metrics, (trials, eps).

        Raises:
            NeedsTrials: The run has none.
        """
        if self.simulated is None:
            raise NeedsTrials("this run was not simulated")
        return self.simulated

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
        """The ladder of bounds of this mechanism, every value one entry per eps."""
        return ladder(self.profile, self.calibration, self.beta, self.miss, self.mechanism)

    @cached_property
    def miss(self) -> MissProbabilities | None:
        """Exact miss probabilities [E1]; None where they are not known."""
        return exact_misses(self.mechanism, self.profile, self.calibration)

    @cached_property
    def intervals(self) -> dict[str, list[Interval | None]]:
        """Where the (1 - beta)-quantiles of missing_mass and max_missing_mass lie, per eps.

        None where nothing exact is known of the mechanism.
        """
        metrics: tuple[Metric, ...] = ("missing_mass", "max_missing_mass")
        if self.miss is None:
            return {name: [None] * len(self.calibration) for name in metrics}
        found = {}
        for name in metrics:
            low, high, source = quantile_interval(self.miss, self.beta, metric=name)
            found[name] = [(a, b, source) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
        return found

    @property
    def exact_mean(self) -> np.ndarray | None:
        """Exact mean of the missing mass per eps [E2], where miss probabilities are known."""
        return None if self.miss is None else self.miss.mean_missing_mass

    @cached_property
    def events(self) -> LemmaEvents:
        """What happened inside the mechanism, for Lemmas C.2 to C.5; on fewer trials."""
        trials = self.trials
        from wgm_jax.lemma_events import lemma_events

        return lemma_events(
            self.case.user_items,
            self.calibration,
            beta=self.beta,
            num_trials=min(trials.num_trials, _EVENT_TRIALS),
            seed=trials.seed,
        )

    @cached_property
    def selection(self) -> SelectionRun:
        """The same data, Delta0 and grid for WGM followed by a selection; nothing is drawn yet."""
        from experiments.selection.grid import SelectionRun

        return SelectionRun(self)


# Bounds that are proved for the weighted Gaussian mechanism only.
WGM_BOUNDS = (
    "upper_instance_star", "upper_instance", "upper_zipf", "upper_printed", "upper_max", "tau",
    "tau_star",
)  # fmt: skip


def ladder(
    profile: Profile,
    calibration: Calibration,
    beta: float,
    miss: MissProbabilities | None = None,
    mechanism: str = WGM,
) -> dict[str, Bound]:
    """Every bound of the ladder, from the lower bound for all mechanisms to the Zipf bound.

    With exact miss probabilities also the certificates that they give. Of a mechanism other than
    the weighted Gaussian one, only the lower bound and these.
    """
    bounds = {
        "lower_instance": instance_lower_bound(
            profile, eps=calibration.eps, delta=calibration.delta
        )
    }
    if mechanism == WGM:
        bounds |= _wgm_bounds(profile, calibration, beta)
    if miss is not None:
        bounds["certificate_hinge"] = hinge_bound(miss, beta)
        bounds["certificate_chernoff"] = chernoff_bound(miss, beta)
    return bounds


def _wgm_bounds(profile: Profile, calibration: Calibration, beta: float) -> dict[str, Bound]:
    return {
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
    devices: Sequence[Any] | None = None,
    progress: Callable[[int, int], Any] | None = None,
) -> Run:
    """A case at one Delta0 over a grid of eps, simulated if trials are asked for.

    Args:
        case: The data set.
        max_items_per_user: Delta0, or "max" for the largest set.
        eps: Privacy parameters, served by the same draws.
        delta: Privacy parameter.
        beta: Failure probability of quantile bounds.
        method: Calibration method.
        mechanism: Mechanism name.
        num_trials: Number of trials; 0: none, and JAX is not needed.
        seed: Seed of the trials.
        devices: JAX devices that share the trials; default all.
        progress: Called as progress(done, total).

    Returns:
        A `Run`.

    Raises:
        InvalidInput: An argument is out of range, or trials of a data set without users.
    """
    bound = case.contribution_bound(max_items_per_user)
    calibration = calibrate(
        eps=np.asarray(eps, np.float64), delta=delta, max_items_per_user=bound, method=method
    )
    trials = None
    if num_trials:
        from wgm_jax import simulate

        if isinstance(case.data, Profile):
            invalid("num_trials", num_trials, f"must be 0: {case.name} has no users to simulate")
        flow_store.make_ready(mechanism, calibration)
        trials = simulate(
            case.data,
            calibration,
            mechanism,
            num_trials=num_trials,
            seed=seed,
            devices=devices,
            progress=progress,
        )
    return Run(
        case=case,
        is_max=max_items_per_user == "max",
        profile=case.profile(bound),
        calibration=calibration,
        beta=beta,
        mechanism=mechanism,
        simulated=trials,
    )


def rows(run: Run) -> list[dict[str, Any]]:
    """One flat row per eps: settings, sizes, what was seen, and the ladder (bounds not clipped).

    Bounds that hold for the weighted Gaussian mechanism only are None for others.
    """
    profile, trials, case = run.profile, run.simulated, run.case
    shared = {
        "dataset": case.name,
        "kind": str(case.settings.get("kind", "file")),
        "s": _number(case.settings.get("s")),
        "C": _number(case.settings.get("C")),
        "N_asked": _number(case.settings.get("N")),
        "num_users": profile.num_users,
        "num_items": profile.num_items,
        "num_pairs": profile.num_pairs,
        "max_set_size": profile.max_set_size,
        "beta": run.beta,
        "max_items_per_user": profile.max_items_per_user,
        "max_items_is_max": run.is_max,
        "method": run.calibration.method,
        "mechanism": run.mechanism,
        "trials": 0 if trials is None else trials.num_trials,
        "seed": None if trials is None else trials.seed,
    }
    # What the bound says of the data is so whatever the mechanism.
    zipf_bounds = run.bounds.get("upper_zipf") or zipf_bound(profile, run.calibration, run.beta)
    made = []
    for index in range(len(run.calibration)):
        at = run.calibration[index]
        bounds: dict[str, float | None] = dict.fromkeys(WGM_BOUNDS)
        bounds |= {name: float(bound.at(index).value) for name, bound in run.bounds.items()}
        zipf = zipf_bounds.at(index).details
        made.append(
            {
                **shared,
                "eps": at.eps,
                "delta": at.delta,
                "sigma": at.sigma,
                "threshold": at.threshold,
                "spent_delta": float(at.spent_delta),
                **_seen(run, index),
                **_exact(run, index),
                **bounds,
                "zipf_s": float(zipf["s"]),
                "zipf_log_constant": float(zipf["log_constant"]),
                "sampler": "exact" if trials is None else trials.sampler,
                "run_seconds": None if trials is None else trials.run_seconds,
                "compile_seconds": None if trials is None else trials.compile_seconds,
            }
        )
    return made


def as_table(made: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Rows as a table; columns without any number are columns of numbers all the same."""
    import polars as pl

    table = pl.DataFrame(made, infer_schema_length=None)
    return table.with_columns(pl.col(pl.Null).cast(pl.Float64))


def exceedances(run: Run, betas: Sequence[float]) -> list[dict[str, Any]]:
    """How often each upper bound was exceeded, for every failure probability it may have.

    One row per bound, beta and eps: value, vacuous, fraction (of trials above), and its exact 95 %
    interval low..high. None of these bounds is proved for another mechanism than the WGM.
    """
    made: list[dict[str, Any]] = []
    if run.simulated is None or run.mechanism != WGM:
        return made
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


_SEEN = (
    "mm_mean", "mm_mean_low", "mm_mean_high", "mm_q05", "mm_q50", "mm_q95", "mm_quantile",
    "max_mm_q50", "max_mm_quantile", "released_mean",
)  # fmt: skip


def _seen(run: Run, index: int) -> dict[str, float | None]:
    """What the trials show."""
    if run.simulated is None:
        return dict.fromkeys(_SEEN)
    mass, largest = run.trials.missing_mass[:, index], run.trials.max_missing_mass[:, index]
    interval = mean_interval(np.ascontiguousarray(mass), alpha=0.05)
    values = (
        float(mass.mean()),
        float(interval[0]),
        float(interval[1]),
        empirical_quantile(mass, 0.05),
        empirical_quantile(mass, 0.5),
        empirical_quantile(mass, 0.95),
        empirical_quantile(mass, 1 - run.beta),
        empirical_quantile(largest, 0.5),
        empirical_quantile(largest, 1 - run.beta),
        float(run.trials.num_released[:, index].mean()),
    )
    return dict(zip(_SEEN, values, strict=True))


def _exact(run: Run, index: int) -> dict[str, float | None]:
    """What is known without trials: the mean, the price of privacy here, and a quantile."""
    names = ("exact_mean", "oracle_gap", "exact_quantile")
    if run.miss is None or run.exact_mean is None:
        return dict.fromkeys(names)
    mean = float(run.exact_mean[index])
    least = float(run.bounds["lower_instance"].at(index).value)
    interval = run.intervals["missing_mass"][index]
    quantile = interval[0] if interval is not None and run.miss.independent else None
    return dict(zip(names, (mean, mean / least if least > 0 else None, quantile), strict=True))


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
