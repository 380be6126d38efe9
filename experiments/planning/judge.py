"""Evaluates one setting, or one row of settings: exact means, certificates, lower bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from experiments.planning.records import STATISTICS, Curve, Outcome, Unreachable
from theory import Calibration, Profile, calibrate, instance_lower_bound
from theory._check import check_beta, check_delta, invalid
from theory.calibration import METHODS, check_method
from theory.certificates import certificate
from theory.item_classes import ItemClasses
from theory.miss_probability import MissProbabilities, miss_probabilities


@dataclass(frozen=True, eq=False)
class Judge:
    """Evaluates settings at one delta, for one calibration method, by one statistic."""

    delta: float
    method: str
    statistic: str
    beta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", float(check_delta(self.delta)))
        object.__setattr__(self, "beta", float(check_beta(self.beta)))
        check_method(self.method)
        if self.statistic not in STATISTICS:
            invalid("statistic", self.statistic, f"must be one of {', '.join(STATISTICS)}")

    @property
    def searched(self) -> tuple[str, ...]:
        """Methods for which an answer is looked for; certificates take long, so one is enough."""
        both = (self.method, other_method(self.method))
        return both if self.statistic == "mean" else both[:1]

    def _misses(
        self, classes: ItemClasses, eps: float, bound: int, method: str
    ) -> tuple[Calibration, MissProbabilities]:
        noise = calibrate(eps=eps, delta=self.delta, max_items_per_user=bound, method=method)
        profile = Profile.from_classes(classes, max_items_per_user=bound)
        return noise, miss_probabilities(profile, noise)

    def value(self, classes: ItemClasses, eps: float, bound: int, method: str) -> float:
        """The statistic at one setting."""
        miss = self._misses(classes, eps, bound, method)[1]
        if self.statistic == "mean":
            return float(miss.mean_missing_mass)
        return float(certificate(miss, self.beta).value)

    def row(
        self, classes: ItemClasses, eps: Float64[np.ndarray, " points"], bound: int
    ) -> Float64[np.ndarray, "values points"]:
        """E[MM] by each method, from one law of the weights, and the certificate if asked for."""
        made = [
            calibrate(eps=eps, delta=self.delta, max_items_per_user=bound, method=method)
            for method in METHODS
        ]
        sigma, threshold = (
            np.stack([getattr(record, name) for record in made]) for name in ("sigma", "threshold")
        )
        # Only sigma and T matter from here on, so one grid may hold both methods.
        grid = Calibration(eps, self.delta, bound, "full", sigma, threshold)
        miss = miss_probabilities(Profile.from_classes(classes, max_items_per_user=bound), grid)
        means = np.asarray(miss.mean_missing_mass)
        if self.statistic == "mean":
            return means
        sure = certificate(miss.at(METHODS.index(self.method)), self.beta).value
        return np.concatenate((means, np.asarray(sure)[None]))

    def curve(
        self, axis: str, at: np.ndarray, table: np.ndarray, lower: np.ndarray, *,
        complete: bool = False,
    ) -> Curve:  # fmt: skip
        """A `Curve` from rows."""
        split, full, *rest = table
        sure = rest[0] if rest else None
        return Curve(axis, at, split, full, sure, lower, self.method, complete)

    def outcomes(self, classes: ItemClasses, eps: float, bound: int) -> tuple[Outcome, Outcome]:
        """What is left with the chosen calibration, and with the other one."""
        floor, made = self.lower_bound(classes, eps), []
        for name in (self.method, other_method(self.method)):
            noise, miss = self._misses(classes, eps, bound, name)
            mean, sure = float(miss.mean_missing_mass), float(certificate(miss, self.beta).value)
            made.append(Outcome(noise, classes.num_pairs, mean, sure, self.beta, floor))
        return made[0], made[1]

    def lower_bound(self, classes: ItemClasses, eps: float) -> float:
        """[L2]."""
        profile = Profile.from_classes(classes, max_items_per_user=1)
        return float(instance_lower_bound(profile, eps=eps, delta=self.delta).value)

    def check_reachable(self, target: float, classes: ItemClasses, eps: float) -> None:
        """Refuse a target that [L2] rules out for every sound private algorithm."""
        least = self.lower_bound(classes, eps)
        sure = ""
        if self.statistic == "quantile":
            # MM <= q with probability 1 - beta, and MM <= 1 always: E[MM] <= q (1 - beta) + beta.
            least = (least - self.beta) / (1 - self.beta)
            sure = f" with probability {1 - self.beta:g}"
        if target < least:
            accepted = (
                f"no private algorithm can reach this{sure}: the least possible is {_down(least)} "
                f"(at eps = {eps:g}, delta = {self.delta:g}, N = {_short(classes.num_pairs)})"
            )
            raise Unreachable("target", target, accepted)

    def refuse(self, target: float, problem: str, last: float) -> None:
        """Say how far from the target the last value is."""
        name = "E[MM]" if self.statistic == "mean" else f"the {1 - self.beta:g} certificate"
        raise Unreachable("target", target, f"{problem}: {name} there is {last:.3g}")


def other_method(method: str) -> str:
    """The calibration method that `method` is not."""
    return next(name for name in METHODS if name != method)


def _down(value: float) -> str:
    """Three digits, rounded down: what is said about all algorithms must stay true."""
    unit = 10.0 ** (np.floor(np.log10(value)) - 2)
    return f"{np.floor(value / unit) * unit:.3g}"


def _short(number: int) -> str:
    return f"{number:,}" if number < 10**7 else f"{number:.4g}"
