"""How loose every bound is on every data set."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.plots import style as look
from experiments.plots.missing_mass_panel import SERIES
from theory._check import invalid

_STYLES = {series.label: (series.color, series.marker) for series in SERIES}
_SPARE = ((look.PURPLE, "*"), (look.BLACK, "o"), (look.ORANGE, "h"), (look.SKY, "d"))
# Column of the bound, what is seen, and from which side it bounds.
_PAIRS = {
    "[U3p]": ("upper_printed", "mm_quantile", "upper"),
    "[U3]": ("upper_zipf", "mm_quantile", "upper"),
    "[U2]": ("upper_instance", "mm_quantile", "upper"),
    "[U2*]": ("upper_instance_star", "mm_quantile", "upper"),
    "[U-inf]": ("upper_max", "max_mm_quantile", "upper"),
    "[L2]": ("lower_instance", "mm_mean", "lower"),
}


def slack_table(ladder: pl.DataFrame) -> pl.DataFrame:
    """Slack of each bound of the ladder rows, ready for `slack`.

    Args:
        ladder: Rows of `experiments.cells.rows`.

    Returns:
        dataset, bound, value, observed, slack (bound/observed from above, observed/bound from
        below; null where vacuous or nothing was missed) and state: "value", "vacuous", "no miss".

    Raises:
        InvalidInput: No rows, or a missing column.

    Example:
        >>> rows = {"dataset": ["a"], "mm_quantile": [0.1], "upper_zipf": [0.4]}
        >>> slack_table(pl.DataFrame(rows)).select("bound", "slack", "state").rows()
        [('[U3]', 4.0, 'value')]
    """
    parts = []
    for name, (column, seen, side) in _PAIRS.items():
        if column not in ladder.columns or seen not in ladder.columns:
            continue
        value, observed = pl.col(column).cast(pl.Float64), pl.col(seen).cast(pl.Float64)
        vacuous = value >= 1 if side == "upper" else value <= 0
        ratio = value / observed if side == "upper" else observed / value
        state = (
            pl.when(vacuous).then(pl.lit("vacuous"))
            .when(observed <= 0).then(pl.lit("no miss"))
            .otherwise(pl.lit("value"))
        )  # fmt: skip
        part = ladder.filter(pl.col(column).is_not_null()).select(
            "dataset",
            pl.lit(name).alias("bound"),
            value.alias("value"),
            observed.alias("observed"),
            ratio.alias("slack"),
            state.alias("state"),
        )
        parts.append(part)
    if not parts:
        invalid("ladder", ladder.columns, "must have a bound and what was observed")
    table = pl.concat(parts)
    return table.with_columns(
        pl.when(pl.col("state") == "value").then(pl.col("slack")).alias("slack")
    )


@look.styled
def slack(frame: pl.DataFrame, *, title: str | None = None) -> tuple[Figure, pl.DataFrame]:
    """Bound over observed quantile, a row per data set, a marker per bound, on a log axis.

    Args:
        frame: Ladder rows, or a table with dataset, bound, slack and optionally state (see
            `slack_table`); without state, a null slack counts as vacuous.
        title: Short text above the figure, shown as it is.

    Returns:
        The figure, and dataset, bound, slack, state, and row (0 at the top) as plotted.

    Raises:
        InvalidInput: No rows, or a missing column.

    Example:
        >>> rows = {"dataset": ["mine"] * 2, "bound": ["[U2]", "[U3]"], "slack": [1.5, 4.0]}
        >>> figure, plotted = slack(pl.DataFrame(rows))
        >>> plotted.select("bound", "slack", "state").rows()
        [('[U2]', 1.5, 'value'), ('[U3]', 4.0, 'value')]
    """
    table = frame if "slack" in frame.columns else slack_table(frame)
    if table.is_empty() or not {"dataset", "bound"} <= set(table.columns):
        invalid("frame", table.columns, "must hold rows with dataset, bound and slack")
    if "state" not in table.columns:
        unknown = pl.col("slack").is_null() | pl.col("slack").is_nan()
        table = table.with_columns(
            pl.when(unknown).then(pl.lit("vacuous")).otherwise(pl.lit("value")).alias("state")
        )
    names = table["dataset"].unique(maintain_order=True).to_list()
    bounds = table["bound"].unique(maintain_order=True).to_list()
    row = {name: i for i, name in enumerate(names)}
    data = table.with_columns(
        pl.col("dataset").replace_strict(row, return_dtype=pl.Int64).alias("row"),
        pl.col("slack").cast(pl.Float64),
    )
    height = 1.0 + 0.2 * len(names)
    longest = max(len(str(name)) for name in names)
    figure, (axes,) = look.subplots(1, 1, height=height, width=4.2 if longest > 14 else look.COLUMN)
    strips = _axes(axes, data)
    styles = _styles(bounds)
    for j, name in enumerate(bounds):
        part = data.filter(pl.col("bound") == name)
        color, marker = styles[name]
        # Bounds share a row; a small shift keeps their markers apart.
        shift = 0.5 * ((j + 0.5) / len(bounds) - 0.5)
        common = {"linestyle": "", "marker": marker, "color": color, "markeredgewidth": 0.8}
        for state in ("value", "vacuous", "no miss"):
            rows = part.filter(pl.col("state") == state)
            if rows.is_empty():
                continue
            x = rows["slack"] if state == "value" else np.full(rows.height, strips[state])
            face = color if state == "value" else "white"
            label = name if state == "value" else f"{name} {state}"
            y = rows["row"].to_numpy() + shift
            axes.plot(x, y, label=label, markerfacecolor=face, zorder=3, **common)
    axes.set_yticks(range(len(names)), [look.literal(name, width=28) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    for i in range(1, len(names)):
        axes.axhline(i - 0.5, color=look.BAND, linewidth=0.4, zorder=0)
    axes.set_xlabel("slack: bound ÷ observed, 1 is tight")
    handles = [
        Line2D([], [], linestyle="", marker=styles[name][1], color=styles[name][0],
               label=look.literal(name, width=24))
        for name in bounds
    ]  # fmt: skip
    look.key_above(figure, handles, min(len(handles), 4 if longest <= 14 else 6), title)
    return figure, data


def _axes(axes: Axes, data: pl.DataFrame) -> dict[str, float]:
    """Log axis over all slacks, the line at 1, and a named strip right of it for each state."""
    values = look.positive(data.filter(pl.col("state") == "value")["slack"].to_numpy())
    high = max(float(values.max()) if values.size else 1.0, 2.0)
    low = min(float(values.min()) if values.size else 1.0, 1.0)
    low = low / 1.15 if low == 1.0 else low / 1.5
    present = [s for s in ("no miss", "vacuous") if s in data["state"]]
    step = (high * 1.2 / low) ** 0.28
    end = high * 1.2
    look.log_axis(axes, "x", low, end * step ** len(present))
    ticks = look.log_ticks(low, end, most=5)
    axes.set_xticks(ticks)
    axes.set_xticks([t for t in axes.get_xticks(minor=True) if t <= end], minor=True)
    strips = {}
    for i, state in enumerate(present):
        strips[state] = end * step ** (i + 0.5)
        axes.text(
            strips[state], 1.01, state, transform=axes.get_xaxis_transform(), ha="center",
            va="bottom", fontsize=6.5, color=look.GREY,
        )  # fmt: skip
    if present:
        axes.axvspan(end, axes.get_xlim()[1], color=look.FAINT, linewidth=0, zorder=0)
    if low < 1 / 1.2:
        axes.axvspan(low, 1, color="#FBE3D6", linewidth=0, zorder=0)
        axes.text(
            np.sqrt(low), 1.01, "broken", transform=axes.get_xaxis_transform(), ha="center",
            va="bottom", fontsize=6.5, color=look.VERMILLION,
        )  # fmt: skip
    axes.axvline(1, color="k", linewidth=0.8, zorder=1)
    return strips


def _styles(bounds: list[str]) -> dict[str, tuple[str, str]]:
    spare = iter(_SPARE * len(bounds))
    return {name: _STYLES[name] if name in _STYLES else next(spare) for name in bounds}
