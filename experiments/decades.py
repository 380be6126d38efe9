"""Bounds and exact means on hard Zipfian data over nine decades of N: no trials, no users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.cells import Case, as_table, rows, run_case
from theory import hard_zipf_profile

if TYPE_CHECKING:
    import polars as pl

EXPONENTS = (1.25, 1.5, 2.0, 3.0, 5.0)
PAIRS = tuple(10**power for power in range(3, 13))


def decades(
    *,
    exponents: Sequence[float] = EXPONENTS,
    pairs: Sequence[int] = PAIRS,
    eps: float = 1.0,
    delta: float = 1e-5,
    beta: float = 0.05,
    method: str = "split",
) -> pl.DataFrame:
    """Ladder rows of the hard Zipfian data of Theorem 3.5 at C = 1, L = Delta0 = 1.

    Args:
        exponents: Zipf exponents s, above 1.
        pairs: Numbers of pairs N, up to 1e15.
        eps: Privacy parameter.
        delta: Privacy parameter.
        beta: Failure probability of the upper bounds.
        method: Calibration method.

    Returns:
        Rows of `experiments.cells.rows`, one per s and N.
    """
    made = []
    for s in exponents:
        for count in pairs:
            settings = {"kind": "hard_zipf", "s": s, "C": 1.0, "N": count}
            case = Case(f"hard zipf s={s:g}", hard_zipf_profile(1.0, s, count), settings)
            run = run_case(
                case,
                max_items_per_user=1,
                eps=[eps],
                delta=delta,
                beta=beta,
                method=method,
                num_trials=0,
            )
            made += rows(run)
    return as_table(made)
