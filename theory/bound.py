"""One record for everything that is proved: a number, and what it is a bound on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Metric = Literal["missing_mass", "max_missing_mass", "frequency", "weight"]


@dataclass(frozen=True)
class Bound:
    """A proved bound with its source.

    Attributes:
        value: float or float64 array (one entry per calibration of a grid). Not clipped: a
            missing-mass bound above 1 is true and says nothing, see `vacuous`.
        tag: Name of the statement, such as "[U2]".
        source: Where the paper states it, such as "Theorem 3.3".
        metric: What is bounded.
        side: "upper" or "lower".
        statistic: "quantile" (holds with probability 1 - failure_probability), "mean", or
            "sure" (holds always).
        failure_probability: Allowed failure probability of a quantile bound, else None.
        conditions: What was assumed and held, in words.
        details: Intermediate numbers (tau, s, log_constant, ...).
    """

    value: Any
    tag: str
    source: str
    metric: Metric
    side: Literal["upper", "lower"]
    statistic: Literal["quantile", "mean", "sure"]
    failure_probability: float | None = None
    conditions: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def vacuous(self) -> Any:
        """True where the bound says nothing about a share: upper >= 1, or lower <= 0."""
        if self.side == "lower":
            return np.less_equal(self.value, 0)
        share = self.metric in ("missing_mass", "max_missing_mass")
        return np.greater_equal(self.value, 1) & share

    def at(self, index: int) -> Bound:
        """The bound at one entry of a calibration grid, with scalar value and details."""

        def pick(value: Any) -> Any:
            array = np.asarray(value)
            return array[index].item() if array.ndim else value

        details = {name: pick(value) for name, value in self.details.items()}
        return Bound(
            pick(self.value), self.tag, self.source, self.metric, self.side, self.statistic,
            self.failure_probability, self.conditions, details,
        )  # fmt: skip
