"""Compare selections on one data set: means with intervals, beside what theory says of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from experiments.selection.methods import TOP_K, Method, Task, methods
from theory import (
    Bound,
    Budget,
    Calibration,
    Profile,
    UserItems,
    calibrate,
    hits_bound,
    hits_upper_bound,
    opt_upper_bound,
    peeling_scale,
    top_k_bound,
    top_k_lower_bound,
)
from theory.peeling import Conversion
from theory.top_k_bounds import top_sum

if TYPE_CHECKING:
    import polars as pl

    from wgm_jax.selection.record import SelectionTrials

# Metrics of each task; the first is the one that methods are ranked by. All are losses but the
# number of items.
METRICS: dict[str, tuple[str, ...]] = {
    "top-k": ("missing_mass", "l1_loss", "num_released"),
    "hitting-set": ("missed_share", "num_released"),
}
_FINDS_DOMAIN = ("peeling", "user-peeling")


class Mean(NamedTuple):
    """A mean over trials and its 95 % interval."""

    mean: float
    low: float
    high: float


class Best(NamedTuple):
    """Which private method that needs no public domain loses least at one eps and k.

    Attributes:
        eps: Privacy parameter.
        k: Items selected.
        method: Its label.
        mean: Its mean loss.
        rival: The next one; None where there is no other.
        ahead: By how much the rival loses more, paired trial by trial.
        least: Mean loss that no private method can be below on an unknown domain.
    """

    eps: float
    k: int
    method: str
    mean: float
    rival: str | None
    ahead: Mean | None
    least: float

    @property
    def alone(self) -> bool:
        """Whether the lead is more than chance, at 95 %."""
        return self.ahead is None or self.ahead.low > 0


def mean_of(samples: Float[np.ndarray, " trials"], *, level: float = 0.95) -> Mean:
    """Mean with Student's interval: fit for error bars, not for verdicts.

    Args:
        samples: One number per trial.
        level: Confidence level.

    Example:
        >>> [round(float(x), 3) for x in mean_of(np.array([1.0, 2.0, 3.0]))]
        [2.0, -0.484, 4.484]
    """
    size = samples.size
    mean = float(np.mean(samples))
    if size < 2:
        return Mean(mean, mean, mean)
    quantile = float(stdtrit(size - 1, (1 + level) / 2))
    half = quantile * float(np.std(samples, ddof=1)) / math.sqrt(size)
    return Mean(mean, mean - half, mean + half)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Trials of several methods on one data set, over eps and k.

    Attributes:
        task: "top-k" or "hitting-set".
        dataset: Name of the data.
        methods: The methods, in the order of tables and plots.
        trials: One record per method; trial i of all shares its random numbers.
        beta: Failure probability of guarantees.
        method: Calibration of the WGM.
        budgets: Budget at every eps.
        conversion: Of [K1], for the guarantee of peeling.
        accountant: Of the noise of user peeling, for its guarantee.
    """

    task: Task
    dataset: str
    methods: tuple[Method, ...]
    trials: tuple[SelectionTrials, ...]
    beta: float
    method: str
    budgets: tuple[Budget, ...]
    conversion: Conversion
    accountant: str

    @property
    def data(self) -> UserItems:
        """The data set."""
        return self.trials[0].data

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics."""
        return METRICS[self.task]

    def samples(self, number: int, metric: str) -> np.ndarray:
        """A metric of one method, (trials, eps, k), as float64.

        missing_mass: MM^k. l1_loss: l1 loss over N. missed_share: users missed over users.
        """
        record = self.trials[number]
        if metric == "missing_mass":
            return record.top_k_missing_mass
        if metric == "l1_loss":
            return record.l1_loss / np.float64(self.data.num_pairs)
        if metric == "missed_share":
            return record.users_missed / np.float64(self.data.num_users)
        return record.num_released.astype(np.float64)

    def rows(self) -> list[dict[str, Any]]:
        """Long rows: one per eps, k, metric and method or bound.

        role is "method"; "guarantee" (what WGM with peeling or user peeling loses at most, with
        probability 1 - beta); "least" (mean that no private method can be below on an unknown
        domain); or "nothing" (loss of an empty selection). low and high are the 95 % interval of a
        method's mean.
        """
        first = self.trials[0]
        made = []
        for e, eps in enumerate(first.eps):
            for j, k in enumerate(first.k):
                bounds = self.bounds[e, j]
                for metric in self.metrics:
                    common = {
                        "dataset": self.dataset,
                        "task": self.task,
                        "eps": eps,
                        "delta": first.delta,
                        "max_items_per_user": first.max_items_per_user,
                        "k": k,
                        "metric": metric,
                    }
                    for number, method in enumerate(self.methods):
                        found = mean_of(self.samples(number, metric)[:, e, j])
                        made.append(
                            {
                                **common,
                                "role": "method",
                                "method": method.label,
                                "private": method.private,
                                "public_domain": method.public_domain,
                                **found._asdict(),
                                "trials": first.num_trials,
                            }
                        )
                    if metric == "num_released":
                        continue
                    for role, (label, value) in bounds.items():
                        if role == "guarantee" and metric == "l1_loss":
                            continue  # [K3] says nothing of the order
                        made.append(
                            {
                                **common, "role": role, "method": label, "private": None,
                                "public_domain": None, "mean": value, "low": None, "high": None,
                                "trials": None,
                            }
                        )  # fmt: skip
        return made

    def table(self) -> pl.DataFrame:
        """`rows` as a table."""
        import polars as pl

        return pl.DataFrame(self.rows(), infer_schema_length=None)

    def to_frame(self) -> pl.DataFrame:
        """One row per method, trial, eps and k."""
        import polars as pl

        frames = [
            record.to_frame(users=self.task != TOP_K).with_columns(mechanism=pl.lit(method.label))
            for method, record in zip(self.methods, self.trials, strict=True)
        ]
        return pl.concat(frames, how="diagonal")

    def best(self) -> list[Best]:
        """At every eps and k, the private method without a public domain that loses least."""
        first = self.trials[0]
        metric = self.metrics[0]
        open_ = [i for i, m in enumerate(self.methods) if m.private and not m.public_domain]
        made = []
        for e, eps in enumerate(first.eps):
            for j, k in enumerate(first.k):
                if not open_:
                    continue
                losses = {i: self.samples(i, metric)[:, e, j] for i in open_}
                order = sorted(open_, key=lambda i: float(np.mean(losses[i])))
                rival = order[1] if len(order) > 1 else None
                ahead = None if rival is None else mean_of(losses[rival] - losses[order[0]])
                made.append(
                    Best(
                        eps=eps,
                        k=k,
                        method=self.methods[order[0]].label,
                        mean=float(np.mean(losses[order[0]])),
                        rival=None if rival is None else self.methods[rival].label,
                        ahead=ahead,
                        least=self.bounds[e, j]["least"][1],
                    )
                )
        return made

    @cached_property
    def bounds(self) -> dict[tuple[int, int], dict[str, tuple[str, float]]]:
        """Tag and value of every bound, by role, for every index of eps and of k."""
        find = self._top_k_bounds if self.task == TOP_K else self._hitting_bounds
        first = self.trials[0]
        return {(e, j): find(e, k) for e in range(len(first.eps)) for j, k in enumerate(first.k)}

    def _top_k_bounds(self, index: int, k: int) -> dict[str, tuple[str, float]]:
        profile, budget = self._profile, self.budgets[index]
        least = top_k_lower_bound(profile, k=k, eps=budget.eps, delta=budget.delta)
        found = {
            "nothing": ("nothing released", float(top_sum(profile, k)) / profile.num_pairs),
            "least": _named(least, float(least.value)),
        }
        if "peeling" in {method.name for method in self.methods}:
            eps, delta = budget.part(1)
            sure = top_k_bound(
                profile,
                self._calibration(index),
                k=k,
                scale=float(peeling_scale(eps=eps, delta=delta, k=k, conversion=self.conversion)),
                beta=self.beta,
                form="sharp",
                tau="u1_star",
            )
            found["guarantee"] = _named(sure, float(sure.value))
        return found

    def _hitting_bounds(self, index: int, k: int) -> dict[str, tuple[str, float]]:
        data, budget = self.data, self.budgets[index]
        most = hits_upper_bound(data, k=k, eps=budget.eps, delta=budget.delta)
        optimum = opt_upper_bound(data, k)

        def missed(hits: Any) -> float:
            return 1 - float(hits) / data.num_users

        found = {
            "nothing": ("nothing released", 1.0),
            "least": _named(most, missed(most.value)),
        }
        if "user-peeling" in {method.name for method in self.methods}:
            from wgm_jax.selection.hitting import UserPeeling

            eps, delta = budget.part(1)
            sure = hits_bound(
                self._profile,
                self._calibration(index),
                optimum=optimum.details["greedy_hits"],
                k=k,
                scale=UserPeeling(accountant=self.accountant).noise_scale(
                    eps=eps, delta=delta, k=k
                ),
                beta=self.beta,
                form="sharp",
                tau="u1_star",
            )
            found["guarantee"] = _named(sure, missed(sure.value))
        return found

    @cached_property
    def _profile(self) -> Profile:
        return Profile.from_user_items(
            self.data, max_items_per_user=self.trials[0].max_items_per_user
        )

    def _calibration(self, index: int) -> Calibration:
        eps, delta = self.budgets[index].part(0)
        bound = self.trials[0].max_items_per_user
        return calibrate(eps=eps, delta=delta, max_items_per_user=bound, method=self.method)


def _named(bound: Bound, value: float) -> tuple[str, float]:
    return bound.tag, value


def compare(
    data: UserItems,
    task: Task,
    chosen: Sequence[Method] = (),
    *,
    eps: Sequence[float],
    delta: float,
    k: Sequence[int],
    max_items_per_user: int,
    num_trials: int = 100,
    seed: int = 0,
    beta: float = 0.05,
    domain_share: float | Fraction = 0.5,
    method: str = "split",
    conversion: str = "paper",
    accountant: str = "closed",
    dataset: str = "data",
    progress: Callable[[int, int], Any] | None = None,
) -> Comparison:
    """Trials of several methods for one task on one data set.

    Args:
        data: The data set.
        task: "top-k" or "hitting-set".
        chosen: From `methods`; default all.
        eps: Privacy parameters of the whole algorithm.
        delta: Privacy parameter of the whole algorithm.
        k: Numbers of items to select, ascending.
        max_items_per_user: Delta0 of the WGM.
        num_trials: Trials.
        seed: Seed.
        beta: Failure probability of guarantees.
        domain_share: Share of eps and of delta that finds the domain; the selection gets the rest.
        method: Calibration of the WGM.
        conversion: Conversion of [K1], as given to `methods`.
        accountant: Accountant of user peeling, as given to `methods`.
        dataset: Name of the data.
        progress: Called as progress(done, total).

    Returns:
        A `Comparison`.

    Raises:
        InvalidInput: An argument is out of range.

    Example:
        >>> from wgm_jax.synthetic import equal_frequencies
        >>> data = equal_frequencies(num_items=3, frequency=200)
        >>> found = compare(data, "hitting-set", methods("hitting-set", ["user-peeling"]),
        ...                 eps=[1.0], delta=1e-5, k=[2], max_items_per_user=1, num_trials=5)
        >>> found.samples(0, "missed_share").mean()
        np.float64(0.3333333333333333)
    """
    from wgm_jax.selection.trials import run_selections

    used = tuple(chosen) or methods(task, conversion=conversion, accountant=accountant)
    shares = (domain_share, 1 - domain_share)
    budgets = tuple(Budget(float(e), delta, shares, shares) for e in eps)
    trials = run_selections(
        data,
        [each.make() for each in used],
        eps=list(eps),
        delta=delta,
        k=list(k),
        max_items_per_user=max_items_per_user,
        num_trials=num_trials,
        seed=seed,
        eps_shares=shares,
        delta_shares=shares,
        method=method,
        progress=progress,
    )
    return Comparison(
        task,
        dataset,
        used,
        trials,
        beta,
        method,
        budgets,
        cast(Conversion, conversion),
        accountant,
    )
