"""What a plan says: the answer, what holds there, and the curve around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float64, Int64

from theory import Calibration, InvalidInput
from theory._notebook import notebook_table

if TYPE_CHECKING:
    import polars as pl

# What is asked for, and what a target is compared with.
Find = Literal["max-items", "eps", "pairs"]
STATISTICS = ("mean", "quantile")


class Unreachable(InvalidInput):
    """A target that this mechanism, or any, misses wherever it was looked for.

    Example:
        >>> from experiments.planning import Unreachable, least_eps, zipf_classes
        >>> classes = zipf_classes(1.5, 1.0, 1000)
        >>> try:
        ...     least_eps(classes, target=1e-9, delta=1e-5, max_items_per_user=1)
        ... except Unreachable as error:
        ...     print(error.name)
        target
    """


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the weighted Gaussian mechanism leaves at one setting.

    Attributes:
        calibration: A single one.
        num_pairs: User-item pairs, N.
        mean: E[MM], exact [E2].
        certificate: With probability 1 - beta the missing mass is at most this.
        beta: Failure probability of the certificate.
        lower_bound: No sound private algorithm has a smaller E[MM] on these data [L2].

    Example:
        >>> from experiments.planning import Outcome, best_contribution_bound, zipf_classes
        >>> classes = zipf_classes(1.5, 8.0, 10**4, 2)
        >>> outcome = best_contribution_bound(classes, eps=1.0, delta=1e-5).outcome
        >>> isinstance(outcome, Outcome), outcome.lower_bound < outcome.mean < outcome.certificate
        (True, True)
    """

    calibration: Calibration
    num_pairs: int
    mean: float
    certificate: float
    beta: float
    lower_bound: float

    @property
    def oracle_gap(self) -> float:
        """E[MM]/[L2], the price of not knowing the data; infinite where [L2] is 0."""
        return self.mean / self.lower_bound if self.lower_bound > 0 else float("inf")

    def value(self, statistic: str) -> float:
        """What a target is compared with."""
        return self.mean if statistic == "mean" else self.certificate


@dataclass(frozen=True, eq=False)
class Curve:
    """Missing mass along one axis, with both calibrations.

    Attributes:
        axis: "max_items_per_user", "eps", "num_pairs" or "scale".
        at: Values of the axis, ascending.
        split: E[MM] with the calibration [P1].
        full: E[MM] with the calibration [P3].
        certificate: Certified quantile with the calibration `method`; None unless asked for.
        lower_bound: [L2].
        method: "split" or "full".
        complete: Whether every possible value of the axis is there.
    """

    axis: str
    at: Float64[np.ndarray, " points"] | Int64[np.ndarray, " points"]
    split: Float64[np.ndarray, " points"]
    full: Float64[np.ndarray, " points"]
    certificate: Float64[np.ndarray, " points"] | None
    lower_bound: Float64[np.ndarray, " points"]
    method: str
    complete: bool

    @property
    def best(self) -> int:
        """Index of the least certified quantile, or else of the least E[MM] with `method`."""
        return int(
            np.argmin(getattr(self, self.method) if self.certificate is None else self.certificate)
        )

    def to_frame(self) -> pl.DataFrame:
        """One row per point; without a column `certificate` where none were computed."""
        import polars as pl

        names = (self.axis, "split", "full", "certificate", "lower_bound")
        arrays = (self.at if name == self.axis else getattr(self, name) for name in names)
        return pl.DataFrame(
            {n: values for n, values in zip(names, arrays, strict=True) if values is not None}
        )


@dataclass(frozen=True, eq=False)
class Plan:
    """The answer to one question.

    Attributes:
        find: "max-items", "eps" or "pairs".
        answer: The best Delta0; the least eps; the least N; or, for data, the least number of
            times as many users.
        statistic: "mean" (E[MM]) or "quantile" (certified).
        target: What the statistic is to be at most; None if it was to be as small as possible.
        outcome: What the mechanism leaves at the answer.
        other: The same with the other calibration.
        other_answer: The answer for the other calibration; None if it has none, and for quantiles.
        curve: The missing mass around the answer.
    """

    find: Find
    answer: float | int
    statistic: str
    target: float | None
    outcome: Outcome
    other: Outcome
    other_answer: float | int | None
    curve: Curve

    @property
    def value(self) -> float:
        """The statistic at the answer."""
        return self.outcome.value(self.statistic)

    def _repr_html_(self) -> str:
        there, other = self.outcome, self.other
        rows = [
            (each.calibration.method, each.mean, each.certificate, each.lower_bound)
            for each in (there, other)
        ]
        return notebook_table(
            f"{self.find}: {self.answer:,} at ε = {there.calibration.eps:g}",
            ("calibration", "E[MM]", "certificate", "least of any"),
            rows,
        )
