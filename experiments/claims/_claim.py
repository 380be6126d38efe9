"""A claim: what the paper states, the explicit form, and how to look for evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from experiments.cells import Interval, Metric, NeedsTrials
from experiments.verdict import Evidence, ExactEvidence, Expected, QuantileEvidence
from theory import Bound

if TYPE_CHECKING:
    from experiments.cells import Run

Cell: TypeAlias = tuple[Mapping[str, Any], Evidence]
"""Settings of a cell by name, and what was observed there."""


@dataclass(frozen=True)
class Settings:
    """What a claim that makes its own data needs to know.

    Attributes:
        eps: Privacy parameters asked for.
        delta: Privacy parameter.
        beta: Failure probability of quantile bounds.
        num_trials: Trials per cell; 0: nothing is simulated.
        seed: Seed of all trials and synthetic data.

    Example:
        >>> from experiments.claims import Settings, select
        >>> (claim,) = select(["lemma-a.2"])
        >>> cell, evidence = next(iter(claim.family(Settings(num_trials=0))))
        >>> evidence.method
        'exact'
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
        observe: Cells seen on one run: a data set at one contribution bound and every eps of the
            grid. What it needs of `run.trials` is not there in a run without trials.
        family: Cells on data, or a family of parameters, of the claim's own.
        twin: For an erratum, the name of the claim that states the correction.

    Example:
        >>> from experiments.claims import Claim, Settings
        >>> from experiments.verdict import ExactEvidence, judge
        >>> def family(settings):
        ...     yield {"eps": 1.0}, ExactEvidence(0.2, bound=0.3, side="upper")
        >>> mine = Claim(
        ...     name="mine", title="Mine", kind="upper, mean", statement="MM is small",
        ...     explicit="E[MM] <= 0.3", family=family)
        >>> [v.verdict for v in judge(mine.name, list(mine.family(Settings())), level=0.01)]
        ['proved']
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


def exact_below(interval: Interval, value: float, *, tag: str) -> ExactEvidence:
    """What exact marginals say of "the metric is at most `value`, up to probability beta".

    The (1 - beta)-quantile lies in an interval, a point where the law itself is known: the claim is
    proved above it, refuted below it, and undecided inside.

    Args:
        interval: Lower and upper end, and where they come from (`theory.quantile_interval`).
        value: The bound.
        tag: Name of the bound.

    Returns:
        The evidence.

    Example:
        >>> exact_below((0.2, 0.3, "[E5]"), 0.35, tag="[U2]").decision
        'proved'
        >>> exact_below((0.2, 0.3, "[E5]"), 0.25, tag="[U2]").decision
        'undecided'
    """
    low, high, source = interval
    half = (high - low) / 2
    if half:  # the middle is rounded, the ends are what was proved
        half *= 1 + 1e-12
    return ExactEvidence((low + high) / 2, value, "upper", error=half, tag=tag, note=source)


def below(
    interval: Interval | None,
    value: float,
    beta: float,
    *,
    tag: str,
    trials: Callable[[], np.ndarray] | None,
) -> Evidence:
    """Evidence for "the metric is at most `value`, up to probability beta".

    Without trials where exact marginals decide it, otherwise from trials.

    Args:
        interval: Of `theory.quantile_interval`; None where nothing exact is known.
        value: The bound.
        beta: Failure probability.
        tag: Name of the bound.
        trials: Makes the (trials,) metric; None where nothing is simulated.

    Returns:
        The evidence, exact if that decides or nothing is simulated.

    Raises:
        NeedsTrials: Nothing is known, and nothing simulated.

    Example:
        >>> below((0.2, 0.3, "[E5]"), 0.35, 0.05, tag="[U2]", trials=None).method
        'exact'
        >>> below(None, 0.35, 0.05, tag="[U2]", trials=lambda: np.full(100, 0.2)).method
        'simulation'
    """
    exact = None if interval is None else exact_below(interval, value, tag=tag)
    if exact is not None and (exact.decision != "undecided" or trials is None):
        return exact
    if trials is None:
        raise NeedsTrials(tag)
    return QuantileEvidence(np.ascontiguousarray(trials()), value, beta, tag=tag)


def metric_below(run: Run, metric: Metric, bound: Bound) -> Iterator[Cell]:
    """Cells "the metric is at most the bound, up to probability beta", one per eps."""
    for index, (cell, interval) in enumerate(zip(run.cells, run.intervals[metric], strict=True)):
        trials = None
        if run.simulated is not None:
            trials = partial(_column, getattr(run.simulated, metric), index)
        value = float(bound.at(index).value)
        yield cell, below(interval, value, run.beta, tag=bound.tag, trials=trials)


def _column(values: np.ndarray, index: int) -> np.ndarray:
    return values[:, index]
