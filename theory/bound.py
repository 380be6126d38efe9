"""One record for everything that is proved: a number, and what it is a bound on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from theory._notebook import notebook_table

# The last two are counts: what a selection from a domain loses, and users hit.
Metric = Literal[
    "missing_mass", "max_missing_mass", "top_k_missing_mass", "frequency", "weight",
    "top_k_loss", "hits",
]  # fmt: skip
_SHARES = ("missing_mass", "max_missing_mass", "top_k_missing_mass")


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
        return np.greater_equal(self.value, 1) & (self.metric in _SHARES)

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

    def _repr_html_(self) -> str:
        values = np.atleast_1d(np.asarray(self.value)).ravel()
        vacuous = np.atleast_1d(np.asarray(self.vacuous)).ravel()
        beta = self.failure_probability
        holds = self.statistic if beta is None else f"{self.statistic}, β = {beta:g}"
        return notebook_table(
            f"{self.tag} {self.source}: {self.side} bound on {self.metric} ({holds})",
            ("value", "vacuous"),
            zip(values.tolist(), vacuous.tolist(), strict=True),
            "; ".join(self.conditions),
        )
