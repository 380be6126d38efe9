"""One panel of missing mass against something: what is seen, between the bounds on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from jaxtyping import Float64
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon
from matplotlib.transforms import Transform

from experiments.plots import style as look
from experiments.plots.labels import Label
from experiments.plots.panels import Panel
from theory._check import invalid

Floats = Float64[np.ndarray, " points"]

X_LABELS = {
    "num_pairs": "user-item pairs $N$",
    "eps": r"privacy parameter $\varepsilon$",
    "s": "Zipf exponent $s$",
    "max_items_per_user": r"contribution bound $\Delta_0$ (items per user)",
}


@dataclass(frozen=True)
class Series:
    """How one bound is drawn."""

    column: str
    label: str
    color: str
    marker: str
    side: str = "upper"
    dashes: str | tuple[int, tuple[int, int]] = "-"
    width: float = 1.1


# From the loosest upper bound down to the lower bounds. Absent or empty columns are left out.
SERIES = (
    Series("upper_printed", "[U3p]", look.ORANGE, "x", dashes=(0, (4, 2)), width=0.7),
    Series("upper_zipf", "[U3]", look.VERMILLION, "^"),
    Series("upper_instance", "[U2]", look.BLUE, "s"),
    Series("upper_instance_star", "[U2*]", look.SKY, "D"),
    Series("certificate_hinge", "[E6]", look.GREY, "p", width=0.8),
    Series("lower_instance", "[L2]", look.GREEN, "v", side="lower"),
    Series("lower_theorem", "[L3]", look.PURPLE, "<", side="lower", dashes=(0, (4, 1)), width=0.8),
)


@dataclass(frozen=True)
class Scale:
    """Vertical axis: where zero and the vacuous bounds of each series are drawn."""

    low: float
    high: float
    zero: float | None
    clip: dict[str, float]


# ---- numbers


def table_of(panels: Sequence[Panel], xs: Sequence[str]) -> pl.DataFrame:
    """All that is plotted, one row per point; `xs` holds the column of each panel's x."""
    tables = [
        _panel_table(panel, i, x) for i, (panel, x) in enumerate(zip(panels, xs, strict=True))
    ]
    data = pl.concat(tables, how="diagonal")
    first = ["panel", "series"]
    return data.select(*first, pl.exclude(first))


def _panel_table(panel: Panel, index: int, x: str) -> pl.DataFrame:
    settings = {f"{name}": [value] * panel.rows.height for name, value in panel.settings.items()}
    common = pl.DataFrame({**settings, "x": panel.rows[x].cast(pl.Float64)})
    parts = []

    def add(series: str, column: str, side: str = "") -> None:
        if column not in panel.rows.columns:
            return
        y = panel.rows[column].cast(pl.Float64)
        vacuous = {"upper": y >= 1, "lower": y <= 0}.get(side, y < 0)
        band = {"low": None, "high": None}
        if series == "median":
            band = {"low": panel.rows["mm_q05"], "high": panel.rows["mm_q95"]}
        parts.append(
            common.with_columns(
                pl.lit(index).alias("panel"),
                pl.lit(series).alias("series"),
                y.alias("y"),
                *(_float(value).alias(name) for name, value in band.items()),
                vacuous.alias("vacuous"),
            ).filter(pl.col("y").is_not_null() & pl.col("y").is_not_nan())
        )

    for name in ("mm_q05", "mm_q50", "mm_q95"):
        if name not in panel.rows.columns:
            invalid("frame", panel.rows.columns, f"must have the column {name}")
    add("median", "mm_q50")
    add("mean", "exact_mean")
    for series in SERIES:
        add(series.label, series.column, series.side)
    return pl.concat(parts)


def _float(values: pl.Series | None) -> pl.Expr:
    return pl.lit(None, pl.Float64) if values is None else pl.lit(values.cast(pl.Float64))


def scale_of(data: pl.DataFrame) -> Scale:
    """Limits that hold all points, a strip for vacuous bounds above and a place for zero below."""
    shown = data.select(pl.concat_list("y", "low", "high").explode().drop_nulls()).to_series()
    inside = look.positive(shown)
    inside = inside[inside <= 1]
    least = float(inside.min()) if inside.size else 0.1
    low = min(least / 1.3, 0.5)
    vacuous = data.filter(pl.col("vacuous") & (pl.col("y") >= 1))["series"].unique().to_list()
    ordered = [s.label for s in reversed(SERIES) if s.label in vacuous]
    decades = -math.log10(low)
    strip = decades * (0.06 + 0.05 * len(ordered))
    high = 10**strip if ordered else 10 ** (0.04 * decades)
    steps = (np.arange(len(ordered)) + 1.0) / (len(ordered) + 0.7)
    clip = {name: 10 ** (strip * at) for name, at in zip(ordered, steps.tolist(), strict=True)}
    zero = None
    if bool((shown <= 0).any()):
        zero = low * 10 ** (-0.12 * decades)
        low = zero * 10 ** (-0.05 * decades)
    return Scale(low, high, zero, clip)


# ---- drawing


def set_horizontal(axes: Axes, x: Floats, logarithmic: bool) -> None:
    """Limits and ticks that hold all x with some room."""
    low, high = float(x.min()), float(x.max())
    if logarithmic:
        room = max((high / low) ** 0.05, 1.05) if high > low else 1.5
        look.log_axis(axes, "x", low / room, high * room, most=4)
        if high == low:
            axes.set_xticks([low])
            axes.set_xticks([], minor=True)
        return
    room = 0.05 * (high - low) or 0.1
    axes.set_xlim(low - room, high + room)
    ticks = np.unique(x)
    # Where labels would run into each other, matplotlib's own ticks.
    if ticks.size <= 7 and np.diff(ticks).min(initial=np.inf) > 0.1 * (high - low):
        axes.set_xticks(ticks)


def draw_panel(axes: Axes, data: pl.DataFrame, scale: Scale) -> list[Label]:
    """Draw one panel; returns the labels of its curves."""
    if scale.clip:
        axes.axhspan(1, scale.high, color=look.FAINT, linewidth=0, zorder=0)
    axes.axhline(1, color=look.GREY, linewidth=0.5, zorder=0.5)
    labels = []
    for series in SERIES:
        rows = data.filter(pl.col("series") == series.label)
        if rows.height:
            labels.append(_draw_bound(axes, series, rows, scale))
    rows = data.filter(pl.col("series") == "median")
    x, y, low, high = (rows[name].to_numpy() for name in ("x", "y", "low", "high"))
    floor = scale.zero if scale.zero is not None else scale.low
    mean = data.filter(pl.col("series") == "mean")
    if mean.height:
        values = np.maximum(mean["y"].to_numpy(), floor)
        marker = "_" if mean.height == 1 else ""
        axes.plot(mean["x"], values, color="k", marker=marker, ms=7, label="mean", zorder=3)
    if rows.is_empty():
        if mean.height:
            labels.append(Label("WGM", float(mean["y"][-1]), look.BLACK))
        return labels
    y, low, high = (np.maximum(values, floor) for values in (y, low, high))
    if len(x) == 1:
        axes.vlines(x, low, high, color=look.BAND, linewidth=5, zorder=1)
    else:
        axes.fill_between(x, low, high, color=look.BAND, linewidth=0, zorder=1)
    between = "" if mean.height else "-"
    axes.plot(
        x, y, linestyle=between, linewidth=0.7, color="k", marker="o", markerfacecolor="w",
        markersize=3.4, markeredgewidth=0.8, label="median", zorder=4,
    )  # fmt: skip
    labels.append(Label("WGM", float(y[-1]), look.BLACK))
    return labels


def _draw_bound(axes: Axes, series: Series, rows: pl.DataFrame, scale: Scale) -> Label:
    x, y = rows["x"].to_numpy(), rows["y"].to_numpy()
    vacuous = rows["vacuous"].to_numpy()
    level = scale.clip.get(series.label, scale.high) if series.side == "upper" else scale.zero
    shown = np.where(vacuous, level if level is not None else scale.low, y)
    common = {"color": series.color, "linewidth": series.width, "zorder": 2.5}
    # The curve crosses 1 between two points; there solid turns into dotted.
    cut_x, cut_y, cut_vacuous = _cut(x, y, shown, vacuous, log_x=axes.get_xscale() == "log")
    solid, dotted = _runs(cut_vacuous)
    for name, style, runs in (("", series.dashes, solid), (" vacuous", ":", dotted)):
        for run in runs:
            axes.plot(cut_x[run], cut_y[run], linestyle=style, label=series.label + name, **common)
    for mask, face in ((~vacuous, series.color), (vacuous, "white")):
        if mask.any():
            axes.plot(
                x[mask], shown[mask], linestyle="", marker=series.marker, color=series.color,
                markerfacecolor=face, markeredgewidth=0.8, zorder=2.6,
                label=f"{series.label} points" + (" vacuous" if face == "white" else ""),
            )  # fmt: skip
    return Label(series.label, float(shown[-1]), series.color)


def _cut(
    x: Floats, y: Floats, shown: Floats, vacuous: np.ndarray, *, log_x: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The curve with its crossings of 1 added (log-log interpolation of the raw bound)."""
    points = [(x[0], shown[0], bool(vacuous[0]))]
    for i in range(1, len(x)):
        if vacuous[i] != vacuous[i - 1] and min(y[i], y[i - 1]) > 0 and max(y[i], y[i - 1]) >= 1:
            part = math.log(y[i - 1]) / (math.log(y[i - 1]) - math.log(y[i]))
            if math.isfinite(part):
                across = (x[i - 1], x[i])
                at = (
                    math.exp(np.interp(part, [0, 1], np.log(across)))
                    if log_x
                    else float(np.interp(part, [0, 1], across))
                )
                points.append((at, 1.0, False))
        points.append((x[i], shown[i], bool(vacuous[i])))
    a, b, c = zip(*points, strict=True)
    return np.array(a, np.float64), np.array(b, np.float64), np.array(c, bool)


def _runs(vacuous: np.ndarray) -> tuple[list[slice], list[slice]]:
    """Maximal runs of solid and of dotted segments; a segment with a vacuous end is dotted."""
    found: tuple[list[slice], list[slice]] = ([], [])
    dotted = vacuous[1:] | vacuous[:-1]
    start = 0
    for i in range(1, dotted.size + 1):
        if i == dotted.size or dotted[i] != dotted[start]:
            found[int(dotted[start])].append(slice(start, i + 1))
            start = i
    return found


def key_of(data: pl.DataFrame) -> list[Line2D | Patch]:
    """What is not labelled at its curve."""
    ring = {"marker": "o", "markerfacecolor": "w", "markersize": 3.4, "markeredgewidth": 0.8}
    known = "mean" in data["series"]
    handles: list[Line2D | Patch] = []
    if "median" in data["series"]:
        between = "" if known else "-"
        handles += [
            Line2D([], [], color="k", linestyle=between, label="simulated median", **ring),
            Patch(color=look.BAND, linewidth=0, label="5–95 %"),
        ]
    if known:
        handles.append(Line2D([], [], color="k", label="exact mean"))
    if bool(data["vacuous"].any()):
        hollow = {"marker": "s", "markerfacecolor": "w", "markersize": 3.4, "markeredgewidth": 0.8}
        handles.append(Line2D([], [], color=look.GREY, linestyle=":", label="vacuous", **hollow))
    return handles


def draw_slope(
    axes: Sequence[Axes], panels: Sequence[Panel], data: pl.DataFrame, scale: Scale
) -> None:
    """Draw the exponent -(s-1)/s of Corollary 3.4 once, in the emptiest corner."""
    best = None
    for i, panel in enumerate(panels):
        s = panel.rows["s"][0] if "s" in panel.rows.columns else None
        sizes = panel.rows.get_column("num_pairs", default=None)
        if s is None or s <= 1 or sizes is None or sizes.n_unique() < 2:
            continue
        to_axes = axes[i].transAxes.inverted()
        points = data.filter((pl.col("panel") == i) & (pl.col("y") < 1) & (pl.col("y") > 0))
        seen = [points.filter(pl.col("series") == name) for name in points["series"].unique()]
        curves = [_dense(axes[i], rows["x"], rows["y"], to_axes) for rows in seen]
        band = data.filter((pl.col("panel") == i) & (pl.col("series") == "median"))
        floor = scale.zero or scale.low
        low, high = (np.log(np.maximum(band[name].to_numpy(), floor)) for name in ("low", "high"))
        for part in np.linspace(0, 1, 6) if band.height else ():
            level = pl.Series(np.exp(low + part * (high - low)))
            curves.append(_dense(axes[i], band["x"], level, to_axes))
        curves = np.concatenate(curves)
        slope = -(s - 1) / s * _aspect(axes[i])
        run = 0.26
        rise = max(slope * run, -0.4)
        run = rise / slope
        for left, bottom in ((0.05, 0.05), (0.62, 0.8 + rise), (0.05, 0.3), (0.4, 0.05)):
            box = (curves[:, 0] > left - 0.04) & (curves[:, 0] < left + run + 0.1)
            box &= (curves[:, 1] > bottom - 0.04) & (curves[:, 1] < bottom - rise + 0.12)
            if best is None or box.sum() < best[0]:
                best = (int(box.sum()), i, s, left, bottom, run, rise)
    if best is None:
        return
    _, i, s, left, bottom, run, rise = best
    place = axes[i]
    corners = [(left, bottom - rise), (left + run, bottom), (left, bottom)]
    place.add_patch(
        Polygon(corners, transform=place.transAxes, facecolor="none", edgecolor="k", linewidth=0.6)
    )
    place.text(
        left + run / 2 + 0.02, bottom - rise / 2 + 0.015, f"$-(s-1)/s = {-(s - 1) / s:.2f}$",
        transform=place.transAxes, fontsize=6, ha="left", va="bottom",
    )  # fmt: skip


def _aspect(axes: Axes) -> float:
    """What one unit of slope in log-log coordinates is in axes fractions."""
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    return math.log(x1 / x0) / math.log(y1 / y0)


def _dense(axes: Axes, x: pl.Series, y: pl.Series, to_axes: Transform) -> np.ndarray:
    """Points along one curve, in axes fractions."""
    log_x, log_y = np.log(x.to_numpy()), np.log(y.to_numpy())
    grid = np.linspace(log_x[0], log_x[-1], 60)
    points = np.column_stack([np.exp(grid), np.exp(np.interp(grid, log_x, log_y))])
    return to_axes.transform(axes.transData.transform(points))
