"""Missing mass against N, eps, s or Delta0: what is seen, between the bounds on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from experiments.plots import style as look
from experiments.plots.labels import label_right
from experiments.plots.missing_mass_panel import (
    X_LABELS,
    draw_panel,
    draw_slope,
    key_of,
    scale_of,
    set_horizontal,
    table_of,
)
from experiments.plots.panels import Panel, split
from theory._check import invalid


@look.styled
def missing_mass_curves(
    frame: pl.DataFrame,
    x: str = "num_pairs",
    *,
    by: Sequence[str] | None = None,
    title: str | None = None,
) -> tuple[Figure, pl.DataFrame]:
    """Missing mass against x, one panel per setting, with every bound of the ladder.

    Grey band: simulated 5-95 %; circles: simulated median; black line: exact mean where known.
    Bounds >= 1 are dotted, hollow, and drawn in a strip above 1; zeros in a place below the axis.

    Args:
        frame: Ladder rows (`experiments.cells.rows`) with x, mm_q05, mm_q50, mm_q95 and any of
            exact_mean, upper_zipf, upper_instance, upper_instance_star, upper_printed,
            certificate_hinge, certificate_chernoff, lower_instance, lower_theorem.
        x: "num_pairs", "eps", "s" or "max_items_per_user".
        by: Columns that tell the panels apart; by default s, then what else is needed for one row
            at each x.
        title: Short text above the figure, shown as it is.

    Returns:
        The figure, and the plotted numbers: panel, series, the setting columns, x, y (raw, not
        clipped), low and high (of the band), vacuous.

    Raises:
        InvalidInput: Another x, no rows, a missing column, or several rows at one x of a panel.

    Example:
        >>> band = {"mm_q05": [0.4, 0.2], "mm_q50": [0.5, 0.3], "mm_q95": [0.6, 0.4]}
        >>> rows = {"s": [1.5, 1.5], "num_pairs": [1e4, 1e5], **band, "upper_zipf": [1.2, 0.8]}
        >>> figure, plotted = missing_mass_curves(pl.DataFrame(rows))
        >>> plotted.filter(plotted["vacuous"]).select("series", "x", "y").rows()
        [('[U3]', 10000.0, 1.2)]
    """
    if x not in X_LABELS:
        invalid("x", x, f"must be one of {', '.join(X_LABELS)}")
    panels, columns = split(frame, x, by)
    data = table_of(panels, [x] * len(panels))
    scale = scale_of(data)
    rows = math.ceil(len(panels) / columns)
    height = 2.5 if rows == 1 else 1.9
    width = look.PAGE if columns > 2 else (5.2 if columns == 2 else None)
    figure, axes = look.subplots(rows, columns, height=height, width=width)
    logarithmic = x != "s" and bool((frame[x] > 0).all())
    for panel, place in zip(panels, axes, strict=False):
        place.set_title(panel.title)
        set_horizontal(place, frame[x].to_numpy().astype(np.float64), logarithmic)
    look.log_axis(axes[0], "y", scale.low, scale.high, scale.zero)
    labels = [
        draw_panel(place, data.filter(pl.col("panel") == i), scale)
        for i, place in enumerate(axes[: len(panels)])
    ]
    for place in axes[len(panels) :]:
        place.set_axis_off()
    for i, place in enumerate(axes[: len(panels)]):
        if i + columns >= len(panels):
            place.tick_params(labelbottom=True)
    figure.supxlabel(X_LABELS[x], fontsize=7.5)
    figure.supylabel("missing mass", fontsize=7.5)
    look.key_above(figure, key_of(data), 2 if columns == 1 else None, title)
    figure.draw_without_rendering()
    for place, found in zip(axes, labels, strict=False):
        label_right(place, found)
    if x == "num_pairs":
        draw_slope(axes, panels, data, scale)
    return figure, data


@dataclass(frozen=True, eq=False)
class Sweep:
    """One panel of a figure in which panels have different axes.

    Attributes:
        rows: Ladder rows (`experiments.cells.rows`), one for each x.
        x: Its column: "num_pairs", "eps", "s" or "max_items_per_user".
        title: What stays the same, as matplotlib text.
    """

    rows: pl.DataFrame
    x: str
    title: str


@look.styled
def missing_mass_sweeps(
    sweeps: Sequence[Sweep], *, columns: int = 3, title: str | None = None
) -> tuple[Figure, pl.DataFrame]:
    """Missing mass against different things, one panel each, on one vertical axis.

    Looks are those of `missing_mass_curves`.

    Args:
        sweeps: The panels.
        columns: Columns of panels.
        title: Short text above the figure, shown as it is.

    Returns:
        The figure, and the plotted numbers: panel, series, axis, x, y (raw, not clipped), low and
        high (of the band), vacuous.

    Raises:
        InvalidInput: No panels or rows, another x, or several rows at one x of a panel.

    Example:
        >>> rows = pl.DataFrame({"eps": [0.1, 1.0], "s": 2.0, "exact_mean": [0.5, 0.2]})
        >>> seen = {name: pl.lit(None, pl.Float64) for name in ("mm_q05", "mm_q50", "mm_q95")}
        >>> figure, plotted = missing_mass_sweeps([Sweep(rows.with_columns(**seen), "eps", "mine")])
        >>> plotted.select("series", "axis", "x", "y").rows()
        [('mean', 'eps', 0.1, 0.5), ('mean', 'eps', 1.0, 0.2)]
    """
    if not sweeps:
        invalid("sweeps", "0 panels", "must hold at least one panel")
    for sweep in sweeps:
        if sweep.x not in X_LABELS:
            invalid("x", sweep.x, f"must be one of {', '.join(X_LABELS)}")
        if sweep.rows.is_empty() or sweep.rows[sweep.x].n_unique() < sweep.rows.height:
            invalid("rows", f"{sweep.rows.height} rows", f"must be one for each {sweep.x}")
    panels = [Panel(each.title, {"axis": each.x}, each.rows.sort(each.x)) for each in sweeps]
    data = table_of(panels, [sweep.x for sweep in sweeps])
    scale = scale_of(data)
    rows = -(-len(panels) // columns)
    figure, axes = look.subplots(rows, columns, height=2.15, width=look.PAGE, share=False)
    labels = []
    for i, (place, panel, sweep) in enumerate(zip(axes, panels, sweeps, strict=False)):
        place.set_title(panel.title)
        x = panel.rows[sweep.x].to_numpy().astype(np.float64)
        set_horizontal(place, x, sweep.x != "s" and bool((x > 0).all()))
        look.log_axis(place, "y", scale.low, scale.high, scale.zero)
        place.set_xlabel(X_LABELS[sweep.x])
        if i % columns:
            place.tick_params(labelleft=False)
        labels.append(draw_panel(place, data.filter(pl.col("panel") == i), scale))
    for place in axes[len(panels) :]:
        place.set_axis_off()
    figure.supylabel("missing mass", fontsize=7.5)
    look.key_above(figure, key_of(data), None, title)
    figure.draw_without_rendering()
    for place, found in zip(axes, labels, strict=False):
        label_right(place, found)
    draw_slope(axes, panels, data, scale)
    return figure, data
