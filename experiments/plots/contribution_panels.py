"""Missing mass against Delta0 on several data sets, at several eps in one panel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.plots import style as look
from experiments.plots.contribution import AXES, draw_series
from experiments.plots.multiples import multiples, set_heading
from theory._check import invalid

_NEEDED = ("dataset", "eps", "max_items_per_user", "split", "full", "lower_bound")
_COLORS = (look.BLUE, look.VERMILLION, look.GREEN)
# Column, name, dashes and width of every curve.
_CURVES: tuple[tuple[str, str, Any, float], ...] = (
    ("split", "split [P1]", "-", 1.2),
    ("full", "full [P3]", (0, (4, 1.5)), 0.9),
    ("lower_bound", "[L2], any mechanism", (0, (1, 1.3)), 1.1),
)


@look.styled
def contribution_panels(
    frame: pl.DataFrame,
    *,
    titles: Mapping[str, str] | None = None,
    title: str | None = None,
) -> tuple[Figure, pl.DataFrame]:
    """E[MM] by both calibrations against Delta0, with what no algorithm can beat: a panel each.

    The best Delta0 of the split calibration is marked; curves end at the largest set.

    Args:
        frame: dataset, eps (at most three), max_items_per_user, split, full, lower_bound.
        titles: Headings of data sets, if not their names; a second line is written smaller.
        title: Short text above the figure, shown as it is.

    Returns:
        The figure, and the rows with `best` (whether it is the marked point).

    Raises:
        InvalidInput: No rows, a missing column, or more than three eps.

    Example:
        >>> rows = {"dataset": "mine", "eps": 1.0, "max_items_per_user": [1, 10, 100]}
        >>> rows |= {"split": [0.6, 0.4, 0.5], "full": [0.5, 0.3, 0.4], "lower_bound": 0.1}
        >>> figure, plotted = contribution_panels(pl.DataFrame(rows))
        >>> plotted.filter("best")["max_items_per_user"].to_list()
        [10]
    """
    missing = [name for name in _NEEDED if name not in frame.columns]
    if frame.is_empty() or missing:
        invalid("frame", frame.columns, f"must have rows, and a column {[*missing, 'eps'][0]}")
    levels = frame["eps"].unique().sort(descending=True).to_list()
    if len(levels) > len(_COLORS):
        invalid("eps", levels, f"must be at most {len(_COLORS)} values")
    keys = ["dataset", "eps"]
    data = frame.select(_NEEDED).with_columns(
        # The least of equally good ones.
        (pl.col("max_items_per_user") == best_bound().over(keys)).alias("best")
    )
    names = frame["dataset"].unique(maintain_order=True).to_list()
    figure, axes, empty = multiples(len(names), height=1.6, columns=4 if len(names) > 9 else None)
    largest = float(data["max_items_per_user"].max())  # type: ignore[arg-type]
    look.log_axis(axes[0], "x", 0.9, max(largest, 2.0) * 1.15, most=4)
    axes[0].set_ylim(0, 1.04)
    for axis, name in zip(axes, names, strict=True):
        set_heading(axis, name, titles or {})
        for eps, color in zip(levels, _COLORS, strict=False):
            rows = data.filter((pl.col("dataset") == name) & (pl.col("eps") == eps))
            if rows.height:
                _draw(axis, rows.sort("max_items_per_user"), eps, color)
    figure.supxlabel(AXES["max_items_per_user"], fontsize=7.5)
    figure.supylabel("expected missing mass", fontsize=7.5)
    handles = _key(levels)
    if title or not empty:
        look.key_above(figure, handles, None, title)
    else:
        empty[-1].legend(handles=handles, loc="center left", borderaxespad=0)
    return figure, data


def best_bound(column: str = "split") -> pl.Expr:
    """The Delta0 with the least of a column; the least of equally good ones."""
    at = pl.col("max_items_per_user")
    return at.filter(pl.col(column) == pl.col(column).min()).min()


def _draw(axes: Axes, rows: pl.DataFrame, eps: float, color: str) -> None:
    series = {f"{name}, {eps:g}": rows[column].to_numpy() for column, name, _, _ in _CURVES}
    looks = {f"{name}, {eps:g}": (color, dashes, width) for _, name, dashes, width in _CURVES}
    x = rows["max_items_per_user"].to_numpy().astype(np.float64)
    draw_series(axes, x, series, looks)
    best = rows.row(by_predicate=pl.col("best"), named=True)
    at, y = best["max_items_per_user"], best["split"]
    axes.plot([at], [y], "o", color=color, markersize=3.6, zorder=4, label=f"best, {eps:g}")
    above = y < 0.85
    # A label in the middle over the left edge would be cut by it.
    side, right = ("left", -1) if at <= 2 else ("center", 0)
    axes.annotate(
        f"{at:,}", (at, y), (right, 4 if above else -4), textcoords="offset points", ha=side,
        va="bottom" if above else "top", fontsize=6.5, color=color, zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.3},
    )  # fmt: skip


def _key(levels: list[float]) -> list[Line2D]:
    colors = [
        Line2D([], [], color=color, linewidth=2.5, label=rf"$\varepsilon$ = {look.number(eps)}")
        for eps, color in zip(levels, _COLORS, strict=False)
    ]
    curves = [
        Line2D([], [], color="k", linestyle=dashes, linewidth=width, label=name)
        for _, name, dashes, width in _CURVES
    ]
    best = Line2D([], [], color="k", marker="o", markersize=3.6, linestyle="", label="best, split")
    return [*colors, *curves, best]
