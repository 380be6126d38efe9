"""Theorem 3.6: the largest missed mass, for any data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from experiments.claims._claim import Cell, Claim, metric_below
from theory import Bound, theorem_36_printed

if TYPE_CHECKING:
    from experiments.cells import Run

_STATEMENT = "MM_inf(W, S) <= Õ(max|W_i|/(eps N sqrt(q*))) with probability 1 - beta, for any data."


def _cells(run: Run, bound: Bound) -> Iterator[Cell]:
    return metric_below(run, "max_missing_mass", bound)


CLAIMS = (
    Claim(
        name="theorem-3.6",
        title="Theorem 3.6 [U-inf]",
        kind="upper, quantile",
        statement=_STATEMENT,
        explicit="MM_inf <= tau/N, tau of [U1].",
        observe=lambda run: _cells(run, run.bounds["upper_max"]),
    ),
    Claim(
        name="theorem-3.6-printed",
        title="Theorem 3.6 [U-inf-p] as printed",
        kind="upper, quantile",
        statement=_STATEMENT,
        explicit="MM_inf <= 8/(p* N) max(ln(3N/beta), sqrt(q*) (T + sigma sqrt(2 ln(6N/beta)))).",
        observe=lambda run: _cells(run, theorem_36_printed(run.profile, run.calibration, run.beta)),
    ),
)
