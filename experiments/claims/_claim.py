"""A claim: what the paper states, the explicit form, and how to look for evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from experiments.verdict import Evidence, Expected, QuantileEvidence
from theory import Bound

if TYPE_CHECKING:
    from experiments.cells import Run

Cell: TypeAlias = tuple[Mapping[str, Any], Evidence]


@dataclass(frozen=True)
class Settings:
    """What a claim that makes its own data needs to know.

    Attributes:
        eps: Privacy parameters asked for.
        delta: Privacy parameter.
        beta: Failure probability of quantile bounds.
        num_trials: Trials per cell.
        seed: Seed of all trials and synthetic data.
    """

    eps: tuple[float, ...] = (0.1, 1.0)
    delta: float = 1e-5
    beta: float = 0.05
    num_trials: int = 1000
    seed: int = 0


@dataclass(frozen=True)
class Claim:
    """One statement, with everything needed to confirm or refute it.

    Exactly one of `observe` and `family` is given. A claim from outside the package is a Python
    file that assigns one `Claim` to the name `CLAIM`, or a list of them to `CLAIMS`.

    Attributes:
        name: Name for the command line, such as "theorem-3.3-zipf".
        title: Short title for tables, such as "Theorem 3.3 [U3] Zipf bound".
        kind: What is bounded, from where, in which sense: "upper, 95 %", "lower, mean", "slope".
        statement: The statement as the paper has it.
        explicit: The form that is checked, with constants.
        expected: "holds", or "refuted" for an erratum.
        observe: Cells seen on one run: a data set at one contribution bound, simulated at every
            eps of the grid.
        family: Cells on data, or a family of parameters, of the claim's own.
        twin: For an erratum, the name of the claim that states the correction.
    """

    name: str
    title: str
    kind: str
    statement: str
    explicit: str
    observe: Callable[[Run], Iterable[Cell]] | None = None
    family: Callable[[Settings], Iterable[Cell]] | None = None
    expected: Expected = "holds"
    twin: str | None = None

    def __post_init__(self) -> None:
        """Refuses a claim with no way, or two ways, to find evidence."""
        if (self.observe is None) == (self.family is None):
            raise ValueError(f"claim {self.name}: give exactly one of observe and family")


def cells_below(
    run: Run, samples: np.ndarray, bound: Bound, *, unit: float = 1.0, unit_range: bool = True
) -> Iterator[Cell]:
    """Cells "the metric is at most the bound, up to probability beta", one per eps.

    Args:
        run: The run observed.
        samples: (trials, eps) float64, the metric.
        bound: Bound with one entry per eps.
        unit: What one unit of the bound is in the metric's.
        unit_range: The metric lies in [0, 1], so a bound outside is vacuous.
    """
    for index, cell in enumerate(run.cells):
        column = np.ascontiguousarray(samples[:, index])
        value = float(bound.at(index).value) * unit
        yield cell, QuantileEvidence(column, value, run.beta, unit_range=unit_range, tag=bound.tag)
