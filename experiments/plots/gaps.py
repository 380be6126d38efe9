"""How far mechanisms are from what no private algorithm can beat, one row per data set."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.plots import style as look
from theory._check import invalid

_NEEDED = ("dataset", "eps", "series", "missing_mass", "lower_bound")
# Colour, marker, hollow; what else there is gets the last.
_LOOKS = {
    "wgm": (look.BLACK, "o", False),
    "wgm (full)": (look.BLACK, "o", True),
    "bernoulli-flow": (look.BLUE, "D", False),
}
_OTHER = (look.VERMILLION, "s", False)


@look.styled
def gap_chart(frame: pl.DataFrame, *, title: str | None = None) -> tuple[Figure, pl.DataFrame]:
    """E[MM]/[L2] of every mechanism on a logarithmic axis, one panel per eps.

    Data sets by the first eps' gap of the first series, the largest on top; the least possible
    missing mass [L2] itself is written at the right.

    Args:
        frame: dataset, eps, series (mechanism), missing_mass (mean), lower_bound ([L2]); at most
            one row for each data set, eps and series.
        title: Short text above the figure, shown as it is.

    Returns:
        The figure, and the rows with `gap` (infinite where [L2] is 0; drawn at the right edge).

    Raises:
        InvalidInput: No rows, a missing column, or repeated rows.

    Example:
        >>> rows = {"dataset": ["mine", "yours"], "eps": 1.0, "series": "wgm"}
        >>> rows |= {"missing_mass": [0.5, 0.25], "lower_bound": [0.125, 0.125]}
        >>> figure, plotted = gap_chart(pl.DataFrame(rows))
        >>> plotted["gap"].to_list()
        [4.0, 2.0]
    """
    missing = [name for name in _NEEDED if name not in frame.columns]
    if frame.is_empty() or missing:
        invalid("frame", frame.columns, f"must have rows, and a column {[*missing, 'eps'][0]}")
    if frame.select("dataset", "eps", "series").n_unique() < frame.height:
        invalid("frame", f"{frame.height} rows", "must differ in dataset, eps or series")
    data = frame.with_columns((pl.col("missing_mass") / pl.col("lower_bound")).alias("gap"))
    levels = data["eps"].unique().sort(descending=True).to_list()
    series = data["series"].unique(maintain_order=True).to_list()
    first = data.filter((pl.col("eps") == levels[0]) & (pl.col("series") == series[0]))
    names = first.sort("gap", descending=True)["dataset"].to_list()
    names += [name for name in data["dataset"].unique(maintain_order=True) if name not in names]
    finite = look.positive(data["gap"])
    most = float(finite.max(initial=2.0)) * 2.4  # with room for its number
    height = 0.7 + 0.19 * len(names)
    width = look.PAGE if len(levels) > 1 else 4.4
    figure, axes = look.subplots(1, len(levels), height=height, width=width)
    handles: list = []
    for axis, eps in zip(axes, levels, strict=True):
        axis.set_title(rf"$\varepsilon$ = {look.number(eps)}")
        look.log_axis(axis, "x", 0.92, most)
        handles = _draw(axis, data.filter(pl.col("eps") == eps), names, series, most)
    axes[0].set_yticks(range(len(names)), [look.literal(name, width=30) for name in names])
    axes[0].set_ylim(len(names) - 0.4, -0.6)
    figure.supxlabel("expected missing mass ÷ least possible [L2]", fontsize=7.5)
    look.key_above(figure, handles, None, title)
    return figure, data


def _draw(axis: Axes, rows: pl.DataFrame, names: list[str], series: list[str], most: float) -> list:
    """One panel; the handles of its key."""
    axis.axvline(1, color=look.GREEN, linewidth=1.0, zorder=1)
    axis.grid(axis="x", color=look.FAINT, linewidth=0.6)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)
    axis.set_axisbelow(True)
    for place, name in enumerate(names):
        own = rows.filter(pl.col("dataset") == name)
        if own.is_empty():
            continue
        gaps = np.minimum(own["gap"].to_numpy(), most)
        axis.hlines(place, 1, gaps.max(), color=look.BAND, linewidth=1.6, zorder=1.5)
        axis.annotate(
            f"{own['lower_bound'][0]:#.2g}", (1, place),
            xycoords=("axes fraction", "data"), xytext=(3, 0), textcoords="offset points",
            va="center", fontsize=6.5, color=look.GREEN, annotation_clip=False,
        )  # fmt: skip
    axis.annotate(
        "[L2]", (1, 1), xycoords="axes fraction", xytext=(3, 2), textcoords="offset points",
        va="bottom", fontsize=6.5, color=look.GREEN, annotation_clip=False,
    )  # fmt: skip
    handles = []
    for name in series:
        color, marker, hollow = _LOOKS.get(name, _OTHER)
        own = rows.filter(pl.col("series") == name)
        y = [names.index(each) for each in own["dataset"]]
        x = np.minimum(own["gap"].to_numpy(), most)
        (handle,) = axis.plot(
            x, y, linestyle="", marker=marker, color=color, markersize=4.2,
            markerfacecolor="w" if hollow else color, markeredgewidth=0.8 if hollow else 0.4,
            markeredgecolor=color if hollow else "w",
            label=look.literal(name), zorder=4 if name == series[0] else 3,
        )  # fmt: skip
        handles.append(handle)
        if name == series[0]:
            for gap, place in zip(own["gap"], y, strict=True):
                axis.annotate(
                    _plain(gap), (min(gap, most), place), (5, 0),
                    textcoords="offset points", va="center", fontsize=6.5, color=color,
                )  # fmt: skip
    return handles


def _plain(gap: float) -> str:
    return "∞" if not np.isfinite(gap) else f"{gap:.1f}" if gap < 10 else f"{gap:.0f}"
