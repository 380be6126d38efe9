"""What selections miss against k: every method with its error bars, between the bounds."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from experiments.plots import style as look
from theory._check import invalid

METRICS = {
    "missing_mass": "top-$k$ missing mass",
    "l1_loss": r"$\ell_1$ loss / $N$",
    "missed_share": "share of users missed",
    "num_released": "items released",
}
_NEEDED = ("dataset", "eps", "k", "metric", "role", "method", "mean", "low", "high")

# Colour, marker, dashes of a method by its name or else its first word, in the order of the key.
_FAMILIES = {
    "peeling": (look.BLUE, "o", "-"),
    "user-peeling": (look.BLUE, "o", "-"),
    "limited-domain": (look.VERMILLION, "s", "-"),
    "peeling-public": (look.GREEN, "^", (0, (4, 1.5))),
    "user-peeling-public": (look.GREEN, "^", (0, (4, 1.5))),
    "joint-public": (look.PURPLE, "v", (0, (4, 1.5))),
    "permute-and-flip-public": (look.SKY, "<", (0, (4, 1.5))),
    "laplace-public": (look.ORANGE, ">", (0, (4, 1.5))),
    "greedy": (look.BLACK, "x", (0, (1, 1))),
    # Two noises side by side.
    "user-peeling [K1h]": (look.SKY, "D", "-"),
    "user-peeling-public [K1h]": (look.ORANGE, "v", (0, (4, 1.5))),
}
# Methods of one family differ by marker and by a tint, which survives greyscale.
_RELATIVES = (("s", 0.0), ("D", 0.25), ("P", 0.45), ("X", 0.6))
_SPARE = ((look.GREY, "*"), (look.GREY, "h"), (look.GREY, "d"), (look.GREY, "p"))
_CEILING = (look.GREY, (0, (1, 2)))
_UPPER = (look.BLACK, (0, (3, 1, 1, 1)))


@dataclass(frozen=True)
class MethodStyle:
    """How one method is drawn.

    Attributes:
        color: Of line and marker.
        marker: At every k.
        dashes: Of the line.
    """

    color: str
    marker: str
    dashes: Any

    @property
    def line(self) -> dict[str, Any]:
        """Arguments of matplotlib's `plot`."""
        return {
            "color": self.color,
            "marker": self.marker,
            "linestyle": self.dashes,
            "markersize": 3.2,
        }


@look.styled
def selection_curves(
    frame: pl.DataFrame, *, title: str | None = None
) -> tuple[Figure, pl.DataFrame]:
    """Mean of every metric against k with 95 % intervals, a column per data set and eps.

    Shaded: means that no algorithm that is private on an unknown domain can reach. Dotted: what is
    missed when nothing is released. Dash-dotted: the guarantee of the first method.

    Args:
        frame: Long rows (`experiments.selection.Comparison.table`) with dataset, eps, k, metric,
            role ("method", "least", "guarantee", "nothing"), method, mean, low, high; optional
            private (false: marked in the key). Rows of the last three roles are bounds on the
            metric: low and high are null.
        title: Short text above the figure, shown as it is.

    Returns:
        The figure, and the rows as plotted with `panel` and `row`.

    Raises:
        InvalidInput: No rows, a missing column, an unknown metric, or several rows at one point.

    Example:
        >>> rows = {"dataset": ["mine"] * 2, "eps": [1.0] * 2, "k": [5, 10], "role": ["method"] * 2}
        >>> rows |= {"method": ["peeling"] * 2, "metric": ["missing_mass"] * 2}
        >>> rows |= {"mean": [0.5, 0.4], "low": [0.4, 0.3], "high": [0.6, 0.5]}
        >>> figure, plotted = selection_curves(pl.DataFrame(rows))
        >>> plotted.select("k", "mean").rows()
        [(5, 0.5), (10, 0.4)]
    """
    missing = [name for name in _NEEDED if name not in frame.columns]
    if frame.is_empty() or missing:
        invalid("frame", frame.columns, f"must have rows, and a column {[*missing, 'k'][0]}")
    metrics = frame["metric"].unique(maintain_order=True).to_list()
    for name in metrics:
        if name not in METRICS:
            invalid("metric", name, f"must be one of {', '.join(METRICS)}")
    keys = ["dataset", "eps", "metric", "role", "method", "k"]
    if frame.select(keys).n_unique() < frame.height:
        invalid("frame", f"{frame.height} rows", "must differ in dataset, eps, metric, method or k")
    panels = frame.select("dataset", "eps").unique(maintain_order=True).rows()
    place = {panel: i for i, panel in enumerate(panels)}
    data = frame.select(_NEEDED).with_columns(
        pl.Series("panel", [place[row] for row in frame.select("dataset", "eps").iter_rows()]),
        pl.Series("row", [metrics.index(name) for name in frame["metric"]]),
    )
    # One data set and eps: the metrics side by side. One metric: its panels wrap. Else a grid.
    places = [(panel, row) for row in range(len(metrics)) for panel in range(len(panels))]
    columns = min(len(places), 3) if 1 in (len(panels), len(metrics)) else len(panels)
    rows = -(-len(places) // columns)
    tops = [panel_top(data.filter(pl.col("row") == row)) for row in range(len(metrics))]
    styles = method_styles(
        data.filter(pl.col("role") == "method")["method"].unique(maintain_order=True)
    )
    share = pl.col("mean") / pl.col("row").replace_strict(dict(enumerate(tops)))
    # What lies outside of the panels, or on their axis, needs no key.
    open_ = frame.filter(~pl.col("private"))["method"] if "private" in frame.columns else ()
    handles = key_handles(set(data.filter(share.is_between(0.01, 1))["role"]), styles, set(open_))
    across = min(len(handles), {1: 1, 2: 3}.get(columns, 4))
    room = 0.15 * max(0, -(-len(handles) // across) - 2) / rows
    width = {1: look.COLUMN, 2: 5.2}.get(columns, look.PAGE)
    height = room + (1.75 if rows > 1 else 2.3)
    figure, axes = look.subplots(rows, columns, height=height, width=width, share=False)
    for axis in axes[len(places) :]:
        axis.set_axis_off()
    for i, (axis, (panel, row)) in enumerate(zip(axes, places, strict=False)):
        if row == 0 or len(panels) == 1:
            axis.set_title(_heading(panels, panel))
        axis.set_ylim(0, tops[row])
        draw_panel(axis, data.filter((pl.col("panel") == panel) & (pl.col("row") == row)), styles)
        if i + columns >= len(places):
            axis.set_xlabel("selected items $k$")
        if i % columns == 0 or len(panels) == 1:
            axis.set_ylabel(METRICS[metrics[row]])
        else:
            axis.tick_params(labelleft=False)
    look.key_above(figure, handles, across, title)
    return figure, data


def _heading(panels: list[tuple[str, float]], panel: int) -> str:
    """What tells this panel from the others."""
    name, eps = panels[panel]
    parts = []
    if len({other for other, _ in panels}) > 1:
        parts.append(look.literal(name, width=30))
    if len({other for _, other in panels}) > 1 or not parts:
        parts.append(rf"$\varepsilon$ = {look.number(eps)}")
    return ", ".join(parts)


def method_styles(methods: pl.Series) -> dict[str, MethodStyle]:
    """Looks of every method, the same in all panels.

    Args:
        methods: Their names, in the order of the key.
    """
    made: dict[str, MethodStyle] = {}
    used: dict[str, int] = {}
    spare = iter(_SPARE * max(1, methods.len()))
    for name in methods:
        family = name if name in _FAMILIES else str(name).split(" ", 1)[0]
        if family not in _FAMILIES:
            color, marker = next(spare)
            made[name] = MethodStyle(color, marker, "-")
            continue
        color, marker, dashes = _FAMILIES[family]
        count = used[family] = used.get(family, -1) + 1
        relative, white = _RELATIVES[count % len(_RELATIVES)]
        made[name] = MethodStyle(_tint(color, white), relative if count else marker, dashes)
    return made


def _tint(color: str, white: float) -> str:
    red, green, blue = (part * (1 - white) + white for part in to_rgb(color))
    return to_hex((red, green, blue))


def draw_panel(
    axes: Axes, part: pl.DataFrame, styles: Mapping[str, MethodStyle], *, most_ticks: int = 9
) -> None:
    """Every method of one data set, eps and metric, and the reference curves.

    Args:
        axes: Where; its vertical limits are the caller's.
        part: The rows.
        styles: Of the methods, the first of which is drawn thicker.
        most_ticks: Most numbers under the panel: of more values of k every other one has its own.
    """
    k_axis(axes, part["k"], most_ticks)
    _curves(axes, part, styles)


def k_axis(axes: Axes, values: pl.Series, most_ticks: int = 9) -> None:
    """Logarithmic axis with a tick at every k.

    Args:
        axes: Where.
        values: All k, repeated or not.
        most_ticks: Most of them that get a number.
    """
    points = values.unique().sort().to_numpy().astype(np.float64)
    margin = (points[-1] / points[0]) ** 0.06 if points.size > 1 else 1.5
    axes.set_xscale("log")
    axes.set_xlim(points[0] / margin, points[-1] * margin)
    step = -(-points.size // most_ticks)
    labels = ["" if i % step else look.number(float(k), 4) for i, k in enumerate(points)]
    axes.set_xticks(points, labels)
    axes.set_xticks([], minor=True)


def _curves(axes: Axes, part: pl.DataFrame, styles: Mapping[str, MethodStyle]) -> None:
    seen = part.filter(pl.col("role") == "method")
    for name, shown in styles.items():
        rows = seen.filter(pl.col("method") == name).sort("k")
        if rows.is_empty():
            continue
        x, mean = rows["k"].to_numpy(), rows["mean"].to_numpy()
        first = name == next(iter(styles))
        axes.plot(
            x, mean, label=name, linewidth=1.5 if first else 1.0, zorder=4 if first else 3,
            **shown.line,
        )  # fmt: skip
        low, high = rows["low"].to_numpy(), rows["high"].to_numpy()
        axes.vlines(x, low, high, color=shown.color, linewidth=1.0, zorder=3)
    _bounds(axes, part)


def panel_top(part: pl.DataFrame) -> float:
    """Height of panels: what was seen, and what an empty selection loses if near.

    Args:
        part: The rows of all panels of this height.
    """

    def highest(role: str, column: str) -> float:
        values = part.filter(pl.col("role") == role)[column].drop_nulls().to_numpy()
        return float(values.max(initial=0.0))

    seen = max(highest("method", "high"), highest("method", "mean"))
    nothing = highest("nothing", "mean")
    return 1.08 * (max(seen, nothing) if nothing <= 1.6 * seen else seen) or 1.0


def _bounds(axes: Axes, part: pl.DataFrame) -> None:
    """The three reference curves."""
    ceiling = part.filter(pl.col("role") == "nothing").sort("k")
    axes.plot(
        ceiling["k"], ceiling["mean"], color=_CEILING[0], linestyle=_CEILING[1], linewidth=0.9,
        label="nothing", zorder=1,
    )  # fmt: skip
    least = part.filter(pl.col("role") == "least").sort("k")
    if least.height:
        axes.fill_between(
            least["k"].to_numpy(), least["mean"].to_numpy(), color=look.BAND, linewidth=0,
            zorder=0, label="least",
        )  # fmt: skip
    sure = part.filter(pl.col("role") == "guarantee").sort("k")
    axes.plot(
        sure["k"], sure["mean"], color=_UPPER[0], linestyle=_UPPER[1], linewidth=0.9,
        label="guarantee", zorder=2,
    )  # fmt: skip


def key_handles(
    roles: Set[str], styles: Mapping[str, MethodStyle], not_private: Set[str]
) -> list[Line2D | Patch]:
    """Entries of the key.

    Args:
        roles: Reference curves that can be seen.
        styles: Of the methods.
        not_private: Methods to be marked so.
    """
    notes = {name: " (not private)" if name in not_private else "" for name in styles}
    handles: list[Line2D | Patch] = [
        Line2D([], [], label=look.literal(name) + notes[name], **shown.line)
        for name, shown in styles.items()
    ]
    if "nothing" in roles:
        handles.append(
            Line2D([], [], color=_CEILING[0], linestyle=_CEILING[1], label="nothing released")
        )
    if "guarantee" in roles:
        handles.append(
            Line2D([], [], color=_UPPER[0], linestyle=_UPPER[1], label="guarantee, 95 %")
        )
    if "least" in roles:
        handles.append(
            Patch(color=look.BAND, linewidth=0, label="out of reach (private, unknown domain)")
        )
    return handles
