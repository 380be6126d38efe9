"""The rungs of the ladder over all cells: how tight each bound is, and every cell at a glance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from experiments.report.formulas import link, linked
from experiments.report.glossary import find
from experiments.report.labels import shown, times
from experiments.report.strips import Axis, Mark, key
from experiments.report.tables import Table

if TYPE_CHECKING:
    import polars as pl

Row = Mapping[str, Any]
_MOST_ROWS = 200
_LONGEST_AXIS = 1e4


@dataclass(frozen=True)
class Rung:
    """A bound of the ladder: its column, what it is compared with, and its mark on a strip.

    The numbers seen are taken from the first of the columns that is not empty.
    """

    column: str
    tag: str
    seen: tuple[str, ...]
    shape: str
    kind: str
    lower: bool = False

    def slack(self, row: Row) -> float | None:
        """Bound over what is seen, or the inverse from below; None if vacuous or unknown."""
        bound = row.get(self.column)
        seen = next((row[name] for name in self.seen if row.get(name) is not None), None)
        if bound is None or not seen or self.vacuous(row):
            return None
        return seen / bound if self.lower else bound / seen

    def vacuous(self, row: Row) -> bool:
        """Whether the bound is there and says nothing."""
        bound = row.get(self.column)
        return bound is not None and (bound <= 0 if self.lower else bound >= 1)


_QUANTILE = ("exact_quantile", "mm_quantile")
RUNGS = (
    Rung("lower_instance", "L2", ("exact_mean", "mm_mean"), "down", "lower", lower=True),
    Rung("certificate_hinge", "E6", _QUANTILE, "tick", "certificate"),
    Rung("certificate_chernoff", "E5", _QUANTILE, "tick", "certificate"),
    Rung("upper_instance_star", "U2*", _QUANTILE, "diamond", "sharper"),
    Rung("upper_instance", "U2", _QUANTILE, "square", "instance"),
    Rung("upper_zipf", "U3", _QUANTILE, "up", "zipf"),
    Rung("upper_printed", "U3p", _QUANTILE, "ring", "printed"),
    Rung("upper_max", "U∞", ("max_mm_quantile",), "ring", "printed"),
)
_DRAWN = ("L2", "E6", "U2*", "U2", "U3")
_COLUMNS = {
    "lower_instance": "[L2]",
    "mean": "mean",
    "quantile": "quantile",
    **{rung.column: f"[{rung.tag}]" for rung in RUNGS if rung.tag in ("E6", "U2*", "U2", "U3")},
}


def has_ladder(frame: pl.DataFrame | None) -> bool:
    """Whether a table holds ladder rows."""
    return frame is not None and {"dataset", "eps", "lower_instance", "upper_zipf"} <= set(
        frame.columns
    )


@dataclass(frozen=True)
class Tightness:
    """How tight one bound is over all cells."""

    rung: Rung
    vacuous: int
    slacks: Sequence[float]

    @property
    def middle(self) -> float | None:
        """Median slack over the cells in which the bound says something."""
        return statistics.median(self.slacks) if self.slacks else None

    @property
    def name(self) -> str:
        """What the glossary calls it."""
        entry = find(self.rung.tag)
        return "" if entry is None else entry.name


def tightness(rows: Sequence[Row]) -> list[Tightness]:
    """One entry per bound of which any row knows the slack, lower bounds first."""
    found = []
    for rung in RUNGS:
        slacks = [slack for row in rows if (slack := rung.slack(row)) is not None]
        vacuous = sum(rung.vacuous(row) for row in rows)
        if slacks or vacuous:
            found.append(Tightness(rung, vacuous, slacks))
    return found


@dataclass(frozen=True)
class Picture:
    """A table with a strip in every row: heads, the axis, and texts with a strip each."""

    columns: Sequence[Markup]
    axis: Markup
    rows: Sequence[tuple[Sequence[str | Markup], Markup]]
    left: int
    key: Sequence[tuple[Markup, Markup]]
    note: str = ""


def tightness_picture(found: Sequence[Tightness]) -> Picture:
    """Least, median and largest slack of every bound, on one axis."""
    largest = max((max(entry.slacks) for entry in found if entry.slacks), default=10.0)
    axis = Axis(1.0, min(max(10.0 ** math.ceil(math.log10(largest)), 10.0), _LONGEST_AXIS))
    rows = []
    for entry in found:
        slacks = entry.slacks
        texts: list[str | Markup] = [
            linked(f"[{entry.rung.tag}] {entry.name}"),
            f"{len(slacks):,}",
            f"{entry.vacuous:,}" if entry.vacuous else "–",
            *(times(value) for value in _three(slacks)),
        ]
        band = (min(slacks), max(slacks)) if slacks else None
        marks = [Mark(entry.middle, "dot", "middle")]
        rows.append((texts, axis.strip(marks, band=band)))
    names = ("bound", "cells", "vacuous", "least", "median", "largest")
    return Picture(tuple(map(Markup, names)), axis.head("×"), rows, left=1, key=())


def _three(slacks: Sequence[float]) -> tuple[float | None, ...]:
    if not slacks:
        return (None, None, None)
    return (min(slacks), statistics.median(slacks), max(slacks))


def ladder_picture(rows: Sequence[Row]) -> Picture:
    """Every cell on one axis of missing mass, from the lower bound to the Zipf bound."""
    drawn = [rung for rung in RUNGS if rung.tag in _DRAWN]
    values = (
        value
        for row in rows
        for value in (*(row.get(rung.column) for rung in drawn), _mean(row), row.get("mm_q05"))
        if value
    )
    least = min(map(float, values), default=0.1)
    axis = Axis(10.0 ** max(math.floor(math.log10(min(least, 0.5))), -6), 1.0)
    columns = _columns(rows)
    made = []
    for row in rows[:_MOST_ROWS]:
        name = Markup('<span class="name" title="{0}">{0}</span><small>{1}</small>').format(
            row["dataset"], _setting(row)
        )
        marks = [Mark(_drawable(row, rung), rung.shape, rung.kind) for rung in drawn]
        marks.append(Mark(_mean(row), "dot", "middle"))
        low, high = row.get("mm_q05"), row.get("mm_q95")
        band = None if low is None or high is None else (float(low), float(high))
        texts = [name, *(_text(row, column) for column in columns)]
        made.append((texts, axis.strip(marks, band=band, bar=True)))
    left_out = len(rows) - len(made)
    entries = [(key(rung.shape, rung.kind), rung.tag) for rung in drawn]
    return Picture(
        columns=[Markup("data set"), *(linked(_COLUMNS[name]) for name in columns)],
        axis=axis.head(" %", scale=100.0),
        rows=made,
        left=1,
        key=[
            (key("square", "band"), Markup("5–95 % of the trials")),
            (key("dot", "middle"), linked("mean, exact where known [E2]")),
            *((drawing, link(entry)) for drawing, tag in entries if (entry := find(tag))),
        ],
        note=f"{left_out:,} more rows are in the tables of the folder." if left_out else "",
    )


def ladder_table(rows: Sequence[Row]) -> Table:
    """The same numbers for a paper."""
    columns = _columns(rows)
    return Table(
        name="ladder",
        title="Missing mass: lower bound, what was seen or is known, and the upper bounds",
        columns=["data set", "Δ0", "ε", *(_COLUMNS[name] for name in columns)],
        rows=[
            [
                shown("dataset", row["dataset"]),
                _contribution(row),
                shown("eps", row["eps"]),
                *(_text(row, name) for name in columns),
            ]
            for row in rows
        ],
        note="Mean and quantile (at 1 − β) are exact where they are known, else of the trials.",
    )


def _mean(row: Row) -> float | None:
    return next((row[n] for n in ("exact_mean", "mm_mean") if row.get(n) is not None), None)


def _quantile(row: Row) -> float | None:
    return next((row[n] for n in _QUANTILE if row.get(n) is not None), None)


def _columns(rows: Sequence[Row]) -> list[str]:
    return [name for name in _COLUMNS if any(_text(row, name) != "–" for row in rows)]


def _setting(row: Row) -> str:
    return f"Δ0 = {_contribution(row)}, ε = {shown('eps', row['eps'])}"


def _contribution(row: Row) -> str:
    bound = shown("max_items_per_user", row.get("max_items_per_user"))
    return f"{bound} (max)" if row.get("max_items_is_max") else bound


def _text(row: Row, name: str) -> str:
    found = {"mean": _mean, "quantile": _quantile}.get(name)
    if found is not None:
        return shown("exact_mean", found(row))
    rung = next(rung for rung in RUNGS if rung.column == name)
    return "vacuous" if rung.vacuous(row) else shown(name, row.get(name))


def _drawable(row: Row, rung: Rung) -> float | None:
    """A bound that says something; vacuous ones would crowd at the end of the axis."""
    value = row.get(rung.column)
    return None if value is None or rung.vacuous(row) else float(value)
