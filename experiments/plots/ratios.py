"""How far the bounds are from the exact mean, over many decades of data."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from experiments.plots import style as look
from experiments.plots.labels import Label, label_right
from experiments.plots.missing_mass_panel import SERIES
from theory._check import invalid


@look.styled
def ratio_curves(frame: pl.DataFrame, *, title: str | None = None) -> tuple[Figure, pl.DataFrame]:
    """Every bound divided by the exact mean against N, one panel per s; vacuous bounds dotted.

    Args:
        frame: Ladder rows (`experiments.cells.rows`) with s, num_pairs, exact_mean and bounds.
        title: Short text above.

    Returns:
        The figure, and s, series, num_pairs, ratio, vacuous.

    Raises:
        InvalidInput: No rows with an exact mean.

    Example:
        >>> rows = {"s": [1.5, 1.5], "num_pairs": [1e4, 1e5], "exact_mean": [0.5, 0.2]}
        >>> figure, plotted = ratio_curves(pl.DataFrame({**rows, "upper_zipf": [1.5, 0.8]}))
        >>> plotted.select("series", "ratio", "vacuous").rows()
        [('[U3]', 3.0, True), ('[U3]', 4.0, False)]
    """
    known = frame.filter(pl.col("exact_mean") > 0)
    if known.is_empty():
        invalid("frame", f"{frame.height} rows", "must hold rows with an exact mean above 0")
    parts = [
        known.select(
            pl.col("s"),
            pl.lit(series.label).alias("series"),
            pl.col("num_pairs").cast(pl.Float64),
            (pl.col(series.column) / pl.col("exact_mean")).alias("ratio"),
            (pl.col(series.column) >= 1).alias("vacuous"),
        ).filter(pl.col("ratio") > 0)
        for series in SERIES
        if series.column in known.columns and series.column != "upper_printed"
    ]
    data = pl.concat(parts).sort("s", "series", "num_pairs")
    exponents = data["s"].unique().sort().to_list()
    columns = min(3, len(exponents))
    count = math.ceil(len(exponents) / columns)
    height = 2.3 if count == 1 else 1.9
    figure, axes = look.subplots(count, columns, height=height, width=look.PAGE)
    shown = look.positive(data["ratio"].to_numpy())
    low, high = float(shown.min()) / 1.5, float(shown.max()) * 1.5
    pairs = data["num_pairs"].to_numpy()
    for i, (panel, s) in enumerate(zip(axes, exponents, strict=False)):
        if i + columns >= len(exponents):
            panel.tick_params(labelbottom=True)
        panel.set_title(f"$s$ = {look.number(s)}")
        look.log_axis(panel, "x", pairs.min() / 2, pairs.max() * 2, most=4)
        look.log_axis(panel, "y", low, high)
        panel.axhline(1, color="k", linewidth=0.8, zorder=1)
        labels = [Label("mean", 1.0, look.BLACK)]
        for series in SERIES:
            rows = data.filter((pl.col("s") == s) & (pl.col("series") == series.label))
            if rows.is_empty():
                continue
            x, y = rows["num_pairs"].to_numpy(), rows["ratio"].to_numpy()
            vacuous = rows["vacuous"].to_numpy()
            panel.plot(x, y, color=series.color, linestyle=":", linewidth=series.width)
            solid = np.where(vacuous, np.nan, y)
            panel.plot(x, solid, color=series.color, linestyle=series.dashes, lw=series.width)
            labels.append(Label(series.label, float(y[-1]), series.color))
        figure.draw_without_rendering()
        label_right(panel, labels)
    for panel in axes[len(exponents) :]:
        panel.set_axis_off()
    figure.supxlabel("user-item pairs $N$", fontsize=7.5)
    figure.supylabel("bound ÷ exact mean", fontsize=7.5)
    if title:
        figure.suptitle(look.literal(title, width=60), fontsize=8)
    return figure, data
