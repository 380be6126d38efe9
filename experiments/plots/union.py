"""Set union on several data sets: mechanisms against Delta0, and the flow beside them."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from experiments.plots import style as look
from experiments.plots.comparison import distance_panel, mass_panel, mass_table
from theory._check import invalid

# Most that is drawn of a distance, in per cent, and what is shaded: the paper's 5 %.
_WINDOW = (-45.0, 45.0, 5.0)
_MOST_COLUMNS = 3
_HEIGHTS = (1.45, 0.95)  # inches: missing mass, distance
FLOW_SERIES = (
    "[L2]", "bernoulli-flow-2", "bernoulli-flow", "best policy", "wgm (full)", "wgm",
)  # fmt: skip
_POINTS = {
    "[L2]": (look.BLACK, "|"),
    "bernoulli-flow-2": (look.GREEN, "D"),
    "bernoulli-flow": (look.BLUE, "*"),
    "best policy": (look.VERMILLION, "s"),
    "wgm (full)": (look.BLACK, "o"),
    "wgm": (look.BLACK, "o"),
}


@look.styled
def union_panels(
    frame: pl.DataFrame, *, eps: float, titles: Mapping[str, str]
) -> tuple[Figure, pl.DataFrame]:
    """Missing mass against Delta0 at one eps: two panels per data set.

    The upper panel shows the missing mass above [L2], the lower one how far every mechanism is
    above or below the weighted Gaussian mechanism, the paper's 5 % shaded; beyond 45 % it is left
    out. Values of Delta0 stand side by side, not to scale. Bars: 95 %.

    Args:
        frame: Rows of `Comparison.to_frame` of several data sets, possibly at more values of eps.
        eps: Privacy parameter.
        titles: What stands above a data set's panels; default its name.

    Returns:
        The figure, and the plotted numbers: dataset, panel ("missing mass", "distance"), eps,
        series (mechanism or "[L2]"), x, place, y, low, high; distances in per cent.

    Raises:
        InvalidInput: No rows at this eps.
    """
    rows = frame.filter(pl.col("eps") == eps)
    if rows.is_empty():
        invalid("eps", eps, "must be one of the frame's")
    names = rows["dataset"].unique(maintain_order=True).to_list()
    private = dict(zip(rows["mechanism"], rows["private"], strict=True))
    columns = min(len(names), _MOST_COLUMNS)
    lines = -(-len(names) // columns)
    figure = Figure(
        figsize=(look.COLUMN if columns == 1 else look.PAGE, lines * sum(_HEIGHTS) + 0.3),
        layout="constrained",
    )
    figure.get_layout_engine().set(w_pad=0.03, h_pad=0.03, wspace=0.03)  # type: ignore[union-attr]
    grid = figure.subplots(
        2 * lines, columns, squeeze=False, gridspec_kw={"height_ratios": list(_HEIGHTS) * lines}
    )
    parts, handles = [], {}
    for place, name in enumerate(names):
        own = rows.filter(pl.col("dataset") == name)
        data = mass_table(own)
        parts.append(data.select(pl.lit(name).alias("dataset"), pl.all()))
        line, column = divmod(place, columns)
        upper, lower = grid[2 * line, column], grid[2 * line + 1, column]
        mass = data.filter(pl.col("panel") == "missing mass")
        mass_panel(upper, mass, private, remark=False)
        upper.set_title(_lines(titles.get(name, name)))
        distance = data.filter(pl.col("panel") == "distance")
        distance_panel(lower, distance, distance["y"].to_numpy(), _WINDOW, private)
        lower.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        _contribution_ticks(upper, lower, own)
        for axis, text in ((upper, "missing mass"), (lower, "distance to wgm")):
            axis.set_ylabel(text if column == 0 else "")
        handles |= {each.get_label(): each for each in upper.get_lines()}
    for place in range(len(names), lines * columns):
        for axis in grid[2 * (lines - 1) : 2 * lines, place % columns]:
            axis.set_axis_off()
    figure.align_ylabels(grid[:, 0])
    # [L2] first, the reference next; the rest as they are drawn.
    order = sorted(handles, key=lambda label: ("[L2]", "wgm", label).index(label))
    look.key_above(figure, [handles[label] for label in order], columns=min(len(order), 6))
    return figure, pl.concat(parts)


def _lines(text: str) -> str:
    return "\n".join(look.literal(line) for line in text.splitlines())


def _contribution_ticks(upper: Axes, lower: Axes, own: pl.DataFrame) -> None:
    bounds = own["max_items_per_user"].unique().sort().to_list()
    for axis in (upper, lower):
        axis.set_xticks(range(len(bounds)), [f"{bound:,}" for bound in bounds])
        axis.set_xlim(-0.3, len(bounds) - 0.7)
    upper.tick_params(labelbottom=False)
    lower.set_xlabel(r"contribution bound $\Delta_0$")


@look.styled
def flow_dots(data: pl.DataFrame, *, titles: Mapping[str, str]) -> tuple[Figure, pl.DataFrame]:
    """What mechanisms leave at their best Delta0 and the flow at its own: one line per data set.

    Args:
        data: Columns dataset, eps, series (of `FLOW_SERIES`; "bernoulli-flow-2" may be absent), y
            (missing mass), at (the Delta0 of the point, null for [L2]).
        titles: What stands before a data set's line; default its name.

    Returns:
        The figure, and the plotted numbers: `data` with the column `place`, the line.

    Raises:
        InvalidInput: No rows.
    """
    if data.is_empty():
        invalid("data", "0 rows", "must hold at least one row to plot")
    levels = data["eps"].unique().sort(descending=True).to_list()
    known = set(data["series"])
    drawn = [series for series in FLOW_SERIES if series in known]
    # By what the reference leaves at the largest eps; the best data set on top.
    first = data.filter((pl.col("eps") == levels[0]) & (pl.col("series") == "wgm"))
    order = first.sort("y", descending=True)["dataset"].to_list()
    places = {name: float(place) for place, name in enumerate(order)}
    placed = data.with_columns(pl.col("dataset").replace_strict(places).alias("place"))
    figure = Figure(figsize=(look.PAGE, 0.24 * len(order) + 0.9), layout="constrained")
    axes = figure.subplots(1, len(levels), sharey=True, squeeze=False)[0]
    for axis, eps in zip(axes, levels, strict=True):
        rows = placed.filter(pl.col("eps") == eps)
        for name, place in places.items():
            masses = dict(rows.filter(pl.col("dataset") == name).select("series", "y").iter_rows())
            axis.plot(
                [masses["bernoulli-flow"], masses["wgm"]], [place, place],
                color=look.BAND, linewidth=2.5, zorder=1, solid_capstyle="butt",
            )  # fmt: skip
        for series in reversed(drawn):
            part = rows.filter(pl.col("series") == series)
            color, marker = _POINTS[series]
            axis.scatter(
                part["y"], part["place"], marker=marker, zorder=3, linewidths=0.8,
                s=42 if marker == "*" else 34 if marker == "|" else 15,
                facecolors="w" if series.endswith("(full)") else color,
                edgecolors=None if marker == "|" else color,
            )  # fmt: skip
        axis.set_xlim(0, 1.02)
        axis.grid(axis="x", color=look.FAINT, linewidth=0.6)
        axis.set_axisbelow(True)
        axis.set_title(rf"$\varepsilon$ = {look.number(eps)}")
        axis.set_xlabel("missing mass")
    axes[0].set_yticks(
        list(places.values()), [look.literal(titles.get(name, name)) for name in places]
    )
    look.key_above(figure, [_handle(series) for series in drawn], columns=len(drawn))
    return figure, placed


def _handle(series: str) -> Line2D:
    color, marker = _POINTS[series]
    return Line2D(
        [], [], linestyle="", color=color, marker=marker, label=series,
        markersize=7 if marker in "*|" else 4,
        markerfacecolor="w" if series.endswith("(full)") else color,
    )  # fmt: skip
