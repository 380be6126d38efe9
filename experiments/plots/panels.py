"""Which rows of a result table share a panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from experiments.plots.style import literal, number
from theory._check import invalid

# What may tell two rows with the same x apart, the most telling first.
_SETTINGS = (
    "s", "N_asked", "dataset", "eps", "max_items_per_user", "C", "delta", "beta", "method",
    "mechanism",
)  # fmt: skip
_SYMBOLS = {
    "s": "$s$",
    "eps": r"$\varepsilon$",
    "delta": r"$\delta$",
    "beta": r"$\beta$",
    "C": "$C$",
    "N_asked": "$N$",
    "num_pairs": "$N$",
    "max_items_per_user": r"$\Delta_0$",
}
_NAMES_THEMSELVES = ("dataset", "mechanism", "method")


@dataclass(frozen=True)
class Panel:
    """Rows of one panel, ascending in x.

    Attributes:
        title: Its settings, as matplotlib text.
        settings: Column name to value, those that tell the panels apart.
        rows: The rows.
    """

    title: str
    settings: dict[str, Any]
    rows: pl.DataFrame


def split(frame: pl.DataFrame, x: str, by: Sequence[str] | None) -> tuple[list[Panel], int]:
    """Split rows into panels in which every x occurs once.

    Args:
        frame: Result rows.
        x: Column of the horizontal axis.
        by: Columns that tell the panels apart; by default s, then what else is needed.

    Returns:
        The panels and the number of columns to lay them out in.

    Raises:
        InvalidInput: No rows, a missing column, or `by` leaves several rows at one x of a panel.
    """
    if frame.is_empty():
        invalid("frame", "0 rows", "must hold at least one row to plot")
    missing = [name for name in (x, *(by or ())) if name not in frame.columns]
    if missing:
        invalid("frame", frame.columns, f"must have the column {missing[0]}")
    keyed = frame.with_columns(_contribution_key(frame))
    if by is None:
        chosen = _needed(keyed, x)
    else:
        chosen = ["_contribution" if name == "max_items_per_user" else name for name in by]
        if _groups(keyed, [x, *chosen]) < frame.height:
            invalid("by", list(by), f"must tell apart all rows with the same {x}")
    if not chosen:
        return [Panel("", {}, frame.sort(x))], 1
    keyed = keyed.sort([*chosen[1:], chosen[0], x], nulls_last=True)
    panels = []
    for _, rows in keyed.group_by(chosen, maintain_order=True):
        names = ["max_items_per_user" if name == "_contribution" else name for name in chosen]
        values = dict(zip(names, (rows[name][0] for name in chosen), strict=True))
        title = ", ".join(_describe(name, value) for name, value in values.items())
        panels.append(Panel(title, values, rows.drop("_contribution")))
    first = keyed[chosen[0]].n_unique()
    return panels, first if first <= 4 else min(len(panels), 4)


def _contribution_key(frame: pl.DataFrame) -> pl.Expr:
    """Delta0 as asked for: "max" is one setting, whatever number it came to in each data set."""
    if "max_items_per_user" not in frame.columns:
        return pl.lit(None, pl.String).alias("_contribution")
    text = pl.col("max_items_per_user").cast(pl.Int64).cast(pl.String).str.zfill(10)
    if "max_items_is_max" in frame.columns:
        text = pl.when(pl.col("max_items_is_max")).then(pl.lit("max")).otherwise(text)
    return text.alias("_contribution")


def _needed(keyed: pl.DataFrame, x: str) -> list[str]:
    """The fewest settings, taken in order, that leave one row at each x of a panel."""
    chosen = ["s"] if x != "s" and "s" in keyed.columns and keyed["s"].n_unique() > 1 else []
    for name in _SETTINGS:
        if _groups(keyed, [x, *chosen]) == keyed.height:
            break
        column = "_contribution" if name == "max_items_per_user" else name
        if column not in keyed.columns or name == x or column in chosen:
            continue
        if _groups(keyed, [x, *chosen, column]) > _groups(keyed, [x, *chosen]):
            chosen.append(column)
    if _groups(keyed, [x, *chosen]) < keyed.height:
        invalid("frame", f"{keyed.height} rows", f"must differ in {x} or a setting; drop repeats")
    return chosen


def _groups(frame: pl.DataFrame, columns: list[str]) -> int:
    return frame.select(columns).n_unique()


def _describe(name: str, value: Any) -> str:
    if name in _NAMES_THEMSELVES:
        return literal(value, width=26)
    if value is None:
        return f"{_SYMBOLS[name]} unknown"
    if name == "max_items_per_user":
        text = "max" if value == "max" else number(float(value))
    else:
        text = number(float(value))
    return f"{_SYMBOLS[name]} = {text}"
