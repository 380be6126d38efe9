"""What was observed about one cell of a claim, in the four forms a claim can take.

Each form knows its bound, whether that bound says anything, and its p-values: `p_confirm` against
"the claim is false" and `p_refute` against "the claim is true". Deciding is left to
`experiments.verdict`, which sees all cells of the claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from jaxtyping import Float64

from experiments.statistics.binomial import as_p_value, log_p_confirm, log_p_refute
from experiments.statistics.means import check_unit_samples, log_e_above, log_e_below
from experiments.statistics.sequential import anytime_p_values
from experiments.statistics.slopes import SlopeFit, empirical_quantile
from theory._check import check_beta, invalid

Side = Literal["upper", "lower"]
Looks = Literal["one", "many"]

# Shares are integers over N rounded to float64, and a bound is itself a rounded number. A sample
# counts as beyond the bound only if it is so by more than this, relatively. The direction favours
# the claim: what is judged is the claim with its bound moved out by 1e-12, far less than the
# spacing 1/N of the shares, so that a share equal to the bound is never an exceedance.
RELATIVE_GUARD = 1e-12


def _says_nothing(bound: float, side: Side, unit_range: bool) -> bool:
    """A bound on a quantity in [0, 1] that every such quantity meets."""
    return unit_range and (bound >= 1.0 if side == "upper" else bound <= 0.0)


def _slack(bound: float, observed: float | None, side: Side) -> float | None:
    """Bound over observed from above, observed over bound from below; at least 1 if it holds."""
    if observed is None:
        return None
    numerator, denominator = (bound, observed) if side == "upper" else (observed, bound)
    if numerator < 0 or denominator <= 0:  # slopes and logarithms have no ratio
        return None
    ratio = numerator / denominator
    return ratio if math.isfinite(ratio) else None


def _check_bound(bound: float, side: Side) -> None:
    if math.isnan(bound):
        invalid("bound", bound, "must be a number")
    if side not in ("upper", "lower"):
        invalid("side", side, "must be upper or lower")


@dataclass(frozen=True, eq=False)
class QuantileEvidence:
    """Trials for the claim P(metric > bound) <= beta, or P(metric < bound) <= beta from below.

    Attributes:
        samples: (trials,) float64, the metric of each trial, in trial order.
        bound: Claimed bound.
        beta: Claimed failure probability, in (0, 1).
        side: "upper" or "lower".
        unit_range: The metric lies in [0, 1], so a bound outside is vacuous.
        tag: Name of the bound, such as "[U2]".
        note: Anything a reader of the verdict should know.

    Source: [V1], [V2].

    Example:
        >>> evidence = QuantileEvidence(np.array([0.1, 0.2, 0.3, 0.4]), bound=0.3, beta=0.05)
        >>> evidence.exceedances, evidence.observed
        (1, 0.4)
    """

    samples: Float64[np.ndarray, " trials"]
    bound: float
    beta: float
    side: Side = "upper"
    unit_range: bool = True
    tag: str = ""
    note: str = ""
    method: ClassVar[Literal["simulation", "exact"]] = "simulation"

    def __post_init__(self) -> None:
        """Refuses NaN, which no comparison would count, and a beta outside (0, 1)."""
        _check_bound(self.bound, self.side)
        check_beta(self.beta)
        if np.any(np.isnan(self.samples)):
            invalid("samples", "NaN", "must be numbers")

    @property
    def vacuous(self) -> bool:
        """The bound is met by every value in [0, 1]."""
        return _says_nothing(self.bound, self.side, self.unit_range)

    @property
    def exceeds(self) -> np.ndarray:
        """(trials,) bool: beyond the bound by more than `RELATIVE_GUARD`."""
        guard = RELATIVE_GUARD * abs(self.bound)
        if self.side == "upper":
            return self.samples > self.bound + guard
        return self.samples < self.bound - guard

    @property
    def trials(self) -> int:
        """Number of trials R."""
        return self.samples.size

    @property
    def exceedances(self) -> int:
        """Number of trials beyond the bound, K."""
        return int(np.count_nonzero(self.exceeds))

    @property
    def observed(self) -> float | None:
        """Empirical (1-beta)-quantile, or beta-quantile from below; None without trials."""
        quantile = 1.0 - self.beta if self.side == "upper" else self.beta
        return empirical_quantile(self.samples, quantile) if self.trials else None

    @property
    def slack(self) -> float | None:
        """Bound over observed quantile (upper), or the reverse (lower)."""
        return _slack(self.bound, self.observed, self.side)

    def p_values(self, looks: Looks) -> tuple[float, float]:
        """Exact binomial p-values [V1] for one look, anytime-valid ones [V2] for many."""
        if looks == "many":
            return anytime_p_values(self.exceeds, beta=self.beta)
        k, r = self.exceedances, self.trials
        return (
            float(as_p_value(log_p_confirm(k, r, beta=self.beta))),
            float(as_p_value(log_p_refute(k, r, beta=self.beta))),
        )


@dataclass(frozen=True, eq=False)
class MeanEvidence:
    """Trials for the claim E[metric] <= bound, or >= bound from below, of a metric in [0, 1].

    Attributes:
        samples: (trials,) float64 in [0, 1], in trial order.
        bound: Claimed bound on the mean.
        side: "upper" or "lower".
        tag: Name of the bound, such as "[L2]".
        note: Anything a reader of the verdict should know.

    Source: theory section 8; betting e-values of `experiments.statistics.means`.

    Example:
        >>> MeanEvidence(np.full(100, 0.5), bound=0.25, side="lower").slack
        2.0
    """

    samples: Float64[np.ndarray, " trials"]
    bound: float
    side: Side
    tag: str = ""
    note: str = ""
    method: ClassVar[Literal["simulation", "exact"]] = "simulation"
    exceedances: ClassVar[None] = None
    beta: ClassVar[None] = None

    def __post_init__(self) -> None:
        """Refuses samples outside [0, 1], for which no interval would be valid."""
        _check_bound(self.bound, self.side)
        check_unit_samples(self.samples)

    @property
    def vacuous(self) -> bool:
        """The bound is met by every mean in [0, 1]."""
        return _says_nothing(self.bound, self.side, True)

    @property
    def trials(self) -> int:
        """Number of trials."""
        return self.samples.size

    @property
    def observed(self) -> float | None:
        """Mean of the trials; None without trials."""
        return float(np.mean(self.samples)) if self.trials else None

    @property
    def slack(self) -> float | None:
        """Bound over observed mean (upper), or the reverse (lower)."""
        return _slack(self.bound, self.observed, self.side)

    def p_values(self, looks: Looks) -> tuple[float, float]:
        """1 over the betting e-values: of all trials for one look, the best prefix for many."""
        running = looks == "many"
        above = float(as_p_value(-log_e_above(self.samples, self.bound, running=running)))
        below = float(as_p_value(-log_e_below(self.samples, self.bound, running=running)))
        return (below, above) if self.side == "upper" else (above, below)


@dataclass(frozen=True)
class ExactEvidence:
    """A computed number for the claim value <= bound, or value >= bound: decided by arithmetic.

    Attributes:
        value: The number, such as an exact mean or an exact quantile.
        bound: Claimed bound.
        side: "upper" or "lower".
        error: Absolute error bound of value - bound, rounding included; within it the cell
            stays undecided. With 0, equality meets the bound.
        unit_range: The quantity lies in [0, 1], so a bound outside is vacuous.
        has_slack: The ratio of bound and value means something; of two distances it does not.
        tag: Name of the bound.
        note: Anything a reader of the verdict should know.

    Example:
        >>> ExactEvidence(0.5, bound=0.39945, side="upper").decision
        'refuted'
    """

    value: float
    bound: float
    side: Side
    error: float = 0.0
    unit_range: bool = True
    has_slack: bool = True
    tag: str = ""
    note: str = ""
    method: ClassVar[Literal["simulation", "exact"]] = "exact"
    trials: ClassVar[None] = None
    exceedances: ClassVar[None] = None
    beta: ClassVar[None] = None

    def __post_init__(self) -> None:
        """Refuses NaN and a negative error."""
        _check_bound(self.bound, self.side)
        if math.isnan(self.value):
            invalid("value", self.value, "must be a number")
        if not self.error >= 0:
            invalid("error", self.error, "must be at least 0")

    @property
    def vacuous(self) -> bool:
        """The bound is met by every value in [0, 1]."""
        return _says_nothing(self.bound, self.side, self.unit_range)

    @property
    def observed(self) -> float:
        """The computed number."""
        return self.value

    @property
    def slack(self) -> float | None:
        """Bound over value (upper), or the reverse (lower)."""
        return _slack(self.bound, self.value, self.side) if self.has_slack else None

    @property
    def decision(self) -> Literal["proved", "refuted", "undecided"]:
        """What the arithmetic says; the error always counts against deciding."""
        sign = 1.0 if self.side == "upper" else -1.0
        value, bound = sign * self.value, sign * self.bound
        if value + self.error <= bound:
            return "proved"
        return "refuted" if value - self.error > bound else "undecided"


@dataclass(frozen=True, eq=False)
class SlopeEvidence:
    """A bootstrapped log-log slope for the claim that it is near, at most or at least a target.

    Attributes:
        fit: Result of `bootstrap_slope`.
        target: Claimed slope, such as -(s-1)/s.
        tolerance: The claim is judged with the target moved out by this much.
        side: "both": within the tolerance; "upper": at most target + tolerance; "lower": at
            least target - tolerance.
        tag: Name of the bound whose shape it is.
        note: Anything a reader of the verdict should know.

    Source: theory section 8 (shapes). Approximate: its p-values are bootstrap shares, at least
    1/(replicates + 1), and for one look only.

    Example:
        >>> from experiments.statistics.slopes import bootstrap_slope
        >>> sizes = [1e3, 1e4, 1e5]
        >>> fit = bootstrap_slope(sizes, [np.full(9, n**-0.5) for n in sizes], replicates=100)
        >>> evidence = SlopeEvidence(fit, target=-0.5, tolerance=0.02)
        >>> round(evidence.observed, 6), evidence.trials
        (-0.5, 27)
    """

    fit: SlopeFit
    target: float
    tolerance: float
    side: Literal["both", "upper", "lower"] = "both"
    tag: str = ""
    note: str = ""
    method: ClassVar[Literal["simulation", "exact"]] = "simulation"
    vacuous: ClassVar[bool] = False
    exceedances: ClassVar[None] = None
    beta: ClassVar[None] = None
    slack: ClassVar[None] = None

    def __post_init__(self) -> None:
        """Refuses a NaN target and a negative tolerance."""
        if math.isnan(self.target):
            invalid("target", self.target, "must be a number")
        if not self.tolerance >= 0:
            invalid("tolerance", self.tolerance, "must be at least 0")

    @property
    def bound(self) -> float:
        """The target slope."""
        return self.target

    @property
    def trials(self) -> int:
        """Trials of all cells of the regression."""
        return self.fit.trials

    @property
    def observed(self) -> float:
        """The least-squares slope."""
        return self.fit.estimate

    def p_values(self, looks: Looks) -> tuple[float, float]:
        """Shares of bootstrap replicates on the other side, counting the estimate as one."""
        if looks == "many":
            invalid("looks", looks, "must be one: a bootstrap slope allows a single look")
        slopes = self.fit.replicates

        def share(hits: np.ndarray) -> float:
            return (1 + int(np.count_nonzero(hits))) / (slopes.size + 1)

        top, bottom = self.target + self.tolerance, self.target - self.tolerance
        confirm, refute = [], []
        if self.side != "lower":
            confirm.append(share(slopes > top))
            refute.append(share(slopes <= top))
        if self.side != "upper":
            confirm.append(share(slopes < bottom))
            refute.append(share(slopes >= bottom))
        # Both ends must be met to confirm; missing either refutes, so that one pays twice.
        return max(confirm), min(1.0, len(refute) * min(refute))


Evidence: TypeAlias = QuantileEvidence | MeanEvidence | ExactEvidence | SlopeEvidence
"""What was observed about one cell, in any of the four forms."""
