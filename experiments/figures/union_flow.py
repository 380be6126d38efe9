"""The Bernoulli flow beside the WGM and the policies, each at its best Delta0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from experiments.figures.union_cells import FULL, POLICIES, WGM, Cell, best, cells
from experiments.flow_store import NAME as FLOW
from experiments.flow_store import TWO_ROUNDS

if TYPE_CHECKING:
    import polars as pl

# Cases that a sentence names one by one.
_MOST_NAMED = 6
_ALL = {WGM, FULL, FLOW, *POLICIES}


def flow_table(frame: pl.DataFrame) -> pl.DataFrame:
    """What each leaves, at its best Delta0: columns dataset, eps, series, y, at (that Delta0)."""
    import polars as pl

    found = cells(frame)
    two = _with_two_rounds(found)
    rows: list[dict[str, Any]] = []
    for dataset, eps in _complete(found):
        least = {
            name: best(found, dataset, eps, *those)
            for name, those in (
                (TWO_ROUNDS, (TWO_ROUNDS,)), (FLOW, (FLOW,)), ("best policy", tuple(POLICIES)),
                (FULL, (FULL,)), (WGM, (WGM,)),
            )
            if name != TWO_ROUNDS or (dataset, eps) in two
        }  # fmt: skip
        common = {"dataset": dataset, "eps": eps}
        rows.append({**common, "series": "[L2]", "y": least[FLOW].floor, "at": None})
        rows += [
            {**common, "series": name, "y": cell.mass, "at": cell.bound}
            for name, cell in least.items()
        ]
    schema = {"dataset": pl.String, "eps": pl.Float64, "series": pl.String, "y": pl.Float64,
              "at": pl.Int64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


def _complete(found: Sequence[Cell]) -> list[tuple[str, float]]:
    """Data sets and eps with numbers of all that are compared."""
    known: dict[tuple[str, float], set[str]] = {}
    for cell in found:
        known.setdefault((cell.dataset, cell.eps), set()).add(cell.mechanism)
    return [setting for setting, those in known.items() if those >= _ALL]


def _with_two_rounds(found: Sequence[Cell]) -> set[tuple[str, float]]:
    """Data sets and eps with numbers of the flow in two rounds."""
    return {(cell.dataset, cell.eps) for cell in found if cell.mechanism == TWO_ROUNDS}


def flow_sentences(frame: pl.DataFrame) -> list[str]:
    """Where the flow leaves less than the WGM and than the policies, each at its best Delta0.

    And where two rounds of it leave less than one, if there are numbers of both.
    """
    found = cells(frame)
    settings = _complete(found)
    if not settings:
        return []
    told = [
        "It leaves less than the WGM " + _beaten(found, settings, FLOW, (WGM, FULL)),
        "It leaves less than the policies " + _beaten(found, settings, FLOW, tuple(POLICIES)),
    ]
    two = _with_two_rounds(found)
    both = [setting for setting in settings if setting in two]
    if both:
        told.append("Two rounds leave less than one " + _beaten(found, both, TWO_ROUNDS, (FLOW,)))
    return told


def _beaten(
    found: Sequence[Cell], settings: Sequence[tuple[str, float]], name: str, others: Sequence[str]
) -> str:
    """In how many cases one is below the best of others, beyond the interval of these."""
    ratios: dict[float, list[float]] = {}
    against = []
    for dataset, eps in settings:
        own, rival = best(found, dataset, eps, name), best(found, dataset, eps, *others)
        ratio = own.mass / rival.mass if rival.mass > 0 else math.inf
        ratios.setdefault(eps, []).append(ratio)
        if not own.mass < rival.low:
            against.append(f"{dataset} ({ratio:.3f} at ε = {eps:g})")
    spans = [
        f"{min(those):.3f} to {max(those):.3f} of it at ε = {eps:g}"
        for eps, those in ratios.items()
    ]
    told = f"in {len(settings) - len(against)} of {len(settings)} cases, {', '.join(spans)}"
    if 0 < len(against) <= _MOST_NAMED:
        told += f"; not clearly less on {', '.join(against)}"
    return f"{told}."
