"""Mechanisms side by side against Delta0: missing mass, its distance to WGM's, released items."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from experiments.plots import style as look
from experiments.plots.labels import Label, label_right
from theory._check import invalid

_REFERENCE = "wgm"
_FLOOR = "[L2]"
# Distances to the reference in per cent: the most that is drawn, and what is shaded. Of missing
# mass, the paper's 5 %; of released items, a half to twice as many are drawn.
_MASS = (-10.5, 10.5, 5.0)
_COUNT = (-52.0, 104.0, 0.0)
# Whether a mechanism claims privacy.
Private: TypeAlias = dict[str, bool]
_NEEDED = (
    "mechanism", "private", "eps", "max_items_per_user", "missing_mass", "missing_mass_low",
    "missing_mass_high", "released", "released_low", "released_high", "lower_bound", "num_items",
)  # fmt: skip


@dataclass(frozen=True)
class Look:
    """How one mechanism is drawn; told apart by marker and dashes where colours are not."""

    color: str
    marker: str
    dashes: str | tuple = "-"
    hollow: bool = False
    width: float = 0.9


_DASHED, _DOTTED, _MIXED = (0, (4, 1.5)), (0, (1, 1.2)), (0, (5, 1, 1, 1))
_LOOKS = {
    "wgm": Look(look.BLACK, "o", width=1.5),
    "policy-gaussian": Look(look.VERMILLION, "s"),
    "policy-gaussian-l1": Look(look.ORANGE, "^"),
    "policy-laplace": Look(look.PURPLE, "D"),
    "policy-greedy": Look(look.PURPLE, "d", _MIXED),
    "weighted-laplace": Look(look.GREEN, ">"),
    "gaussian-count": Look(look.GREY, "X"),
    "laplace-count": Look(look.GREY, "P", _MIXED),
    "korolova": Look(look.GREY, "h", _DOTTED),
    "optimal-selection": Look(look.GREEN, "*", _MIXED),
    "dp-sips": Look(look.BLUE, "v"),
    "dp-sips-two-rounds": Look(look.BLUE, "p", _MIXED),
    "mad-safe": Look(look.SKY, "<"),
    "mad-safe-two-rounds": Look(look.SKY, "8", _MIXED),
    "bernoulli-flow": Look(look.BLUE, "*", "-"),
}
_FULL = " (full)"
_OTHERS = tuple(Look(look.GREY, marker, _DOTTED) for marker in "H4+x")


@look.styled
def comparison_plot(
    frame: pl.DataFrame, *, title: str | None = None
) -> tuple[Figure, pl.DataFrame]:
    """Missing mass against Delta0, one panel per eps, above what no private algorithm can beat.

    A second row of panels shows how far every mechanism is above or below the weighted Gaussian
    mechanism at the paper's calibration, the paper's 5 % shaded; what is further than it reaches
    is left out there. Values of Delta0 stand side by side, not to scale. Bars: 95 %.

    Args:
        frame: From `Comparison.to_frame`, one data set.
        title: Name of the data and setting, shown as it is.

    Returns:
        The figure, and the plotted numbers: panel ("missing mass", "distance"), eps, series
        (mechanism or "[L2]"), x, place, y, low, high; distances in per cent.

    Raises:
        InvalidInput: No rows, or a missing column.
    """
    data = mass_table(frame)
    return _figure(data, frame, mass_panel, "missing mass", _MASS, title), data


@look.styled
def released_plot(frame: pl.DataFrame, *, title: str | None = None) -> tuple[Figure, pl.DataFrame]:
    """Number of released items against Delta0, one panel per eps, on a logarithmic axis.

    A second row of panels shows the distance to the weighted Gaussian mechanism.

    Args:
        frame: From `Comparison.to_frame`, one data set.
        title: Name of the data and setting, shown as it is.

    Returns:
        The figure, and the plotted numbers: panel ("released", "distance"), eps, series, x, place,
        y, low, high; distances in per cent.

    Raises:
        InvalidInput: No rows, or a missing column.
    """
    _check(frame)
    count = series_table(frame, "released", "released")
    data = pl.concat([count, distance_table(count)])
    name = f"items released, of {look.number(frame['num_items'][0])}"
    return _figure(data, frame, _released, name, _COUNT, title), data


# ---- numbers


def mass_table(frame: pl.DataFrame) -> pl.DataFrame:
    """Missing masses, [L2] and distances to the reference in long rows, one data set.

    Args:
        frame: From `Comparison.to_frame`.

    Returns:
        panel ("missing mass", "distance"), eps, series, x, place, y, low, high.

    Raises:
        InvalidInput: No rows, or a missing column.
    """
    _check(frame)
    mass = series_table(frame, "missing_mass", "missing mass")
    floor = frame.unique(["eps", "max_items_per_user"], maintain_order=True).select(
        pl.lit("missing mass").alias("panel"),
        "eps",
        pl.lit(_FLOOR).alias("series"),
        pl.col("max_items_per_user").alias("x"),
        _place(frame),
        pl.col("lower_bound").alias("y"),
        pl.lit(None, pl.Float64).alias("low"),
        pl.lit(None, pl.Float64).alias("high"),
    )
    return pl.concat([mass, floor, distance_table(mass)])


def _check(frame: pl.DataFrame) -> None:
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing or frame.is_empty():
        invalid("frame", frame.columns, f"must have rows, and a column {[*missing, 'eps'][0]}")


def _place(frame: pl.DataFrame) -> pl.Expr:
    """Places of the values of Delta0, side by side."""
    values = frame["max_items_per_user"].unique().sort().to_list()
    places = list(map(float, range(len(values))))
    return pl.col("max_items_per_user").replace_strict(values, places).alias("place")


def series_table(frame: pl.DataFrame, column: str, panel: str) -> pl.DataFrame:
    """A quantity of every mechanism with its interval, one data set."""
    return frame.select(
        pl.lit(panel).alias("panel"),
        "eps",
        pl.col("mechanism").alias("series"),
        pl.col("max_items_per_user").alias("x"),
        _place(frame),
        pl.col(column).alias("y"),
        pl.col(f"{column}_low").alias("low"),
        pl.col(f"{column}_high").alias("high"),
    )


def distance_table(mass: pl.DataFrame) -> pl.DataFrame:
    """Distances to the reference in per cent; no rows without it, or without another mechanism."""
    own = mass.filter(pl.col("series") == _REFERENCE).select("eps", "x", pl.col("y").alias("of"))
    if mass["series"].n_unique() < 2:
        own = own.head(0)
    joined = mass.join(own, on=["eps", "x"], how="inner", maintain_order="left")
    shares = [
        (100 * (pl.col(name) / pl.col("of") - 1)).alias(name) for name in ("y", "low", "high")
    ]
    return joined.with_columns(pl.lit("distance").alias("panel"), *shares).drop("of")


# ---- drawing


def _figure(
    data: pl.DataFrame,
    frame: pl.DataFrame,
    draw: Callable[[Axes, pl.DataFrame, Private], list[Label]],
    name: str,
    window: tuple[float, float, float],
    title: str | None,
) -> Figure:
    """A row of panels for the quantity itself, and one for its distance to the reference."""
    private = dict(zip(frame["mechanism"], frame["private"], strict=True))
    levels = frame["eps"].unique().sort(descending=True).to_list()
    distance = data.filter(pl.col("panel") == "distance")
    figure, axes = _panels(frame, levels, [2.6, 2.2] if distance.height else [2.75])
    if title:
        figure.suptitle(look.literal(title, width=70), fontsize=8)
    upper, lower = axes[: len(levels)], axes[len(levels) :]
    labels: list[list[Label]] = []
    for axis, eps in zip(upper, levels, strict=True):
        rows = data.filter((pl.col("eps") == eps) & (pl.col("panel") != "distance"))
        axis.set_title(rf"$\varepsilon$ = {look.number(eps)}")
        labels.append(draw(axis, rows, private))
    upper[0].set_ylabel(name)
    for index, (axis, eps) in enumerate(zip(lower, levels, strict=False)):
        rows = distance.filter(pl.col("eps") == eps)
        labels.append(distance_panel(axis, rows, distance["y"].to_numpy(), window, private))
        # What is told apart below needs no name above, where it is one bundle.
        below = {label.text for label in labels[-1]} - {_REFERENCE}
        labels[index] = [label for label in labels[index] if label.text not in below]
    if lower:
        lower[0].set_ylabel(f"distance to {_REFERENCE}")
    figure.draw_without_rendering()
    for axis, found in zip(axes, labels, strict=True):
        label_right(axis, found, size=6.0)
    return figure


def _panels(
    frame: pl.DataFrame, levels: Sequence[float], heights: Sequence[float]
) -> tuple[Figure, list[Axes]]:
    width = 4.4 if len(levels) == 1 else look.PAGE
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.03, h_pad=0.03, wspace=0.02)  # type: ignore[union-attr]
    grid = figure.subplots(
        len(heights), len(levels), sharex=True, sharey="row", squeeze=False,
        gridspec_kw={"height_ratios": list(heights)},
    )  # fmt: skip
    unique = frame.unique("max_items_per_user").sort("max_items_per_user")
    bounds = unique["max_items_per_user"].to_list()
    names = [f"{bound:,}" for bound in bounds]
    if "max_items_is_max" in frame.columns:
        longest = set(frame.filter(pl.col("max_items_is_max"))["max_items_per_user"])
        names = ["max" if b in longest else n for b, n in zip(bounds, names, strict=True)]
    for axis in grid.flat:
        axis.set_xticks(range(len(bounds)), names)
        axis.set_xlim(-0.3, len(bounds) - 0.7)
    for axis in grid[-1]:
        axis.set_xlabel(r"contribution bound $\Delta_0$")
    return figure, list(grid.flat)


def mass_panel(
    axis: Axes, rows: pl.DataFrame, private: Private, *, remark: bool = True
) -> list[Label]:
    """Missing masses at one eps above [L2]; labels of the curves' ends.

    Args:
        axis: Panel.
        rows: From `mass_table`.
        private: Which mechanisms claim privacy.
        remark: Whether to write what the shade means.
    """
    axis.set_ylim(0, 1.02)
    axis.grid(axis="y", color=look.FAINT, linewidth=0.6)
    axis.set_axisbelow(True)
    level = float(rows.filter(pl.col("series") == _FLOOR)["y"][0])
    axis.axhspan(0, level, color=look.FAINT, linewidth=0, zorder=0)
    axis.axhline(level, color=look.BLACK, linewidth=0.8, zorder=1, label=_FLOOR)
    if remark and level > 0.09:
        axis.annotate(
            "out of reach of any private algorithm", (0, 0), (3, 3), xycoords="axes fraction",
            textcoords="offset points", fontsize=6, color=look.GREY,
        )  # fmt: skip
    labels = _curves(axis, rows.filter(pl.col("series") != _FLOOR), private)
    return [*labels, Label(_FLOOR, level, look.BLACK)]


def _released(axis: Axes, rows: pl.DataFrame, private: Private) -> list[Label]:
    # Fewer than one item on average is as good as none.
    values = np.maximum(look.positive(rows["y"]), 0.1)
    low, high = (float(values.min()), float(values.max())) if values.size else (0.1, 1.0)
    previous = axis.get_ylim() if axis.get_yscale() == "log" else (math.inf, 0.0)
    look.log_axis(axis, "y", min(low / 1.3, previous[0]), max(high * 1.3, previous[1]))
    axis.grid(axis="y", color=look.FAINT, linewidth=0.6)
    return _curves(axis, rows, private)


def distance_panel(
    axis: Axes,
    rows: pl.DataFrame,
    everywhere: np.ndarray,
    window: tuple[float, float, float],
    private: Private,
) -> list[Label]:
    """One panel of distances; the window shrinks to what there is in it everywhere."""
    least, most, shaded = window
    inside = everywhere[(everywhere >= least) & (everywhere <= most)]
    room = 0.05 * (most - least)
    low = max(least, min(float(inside.min(initial=0.0)), -shaded) - room)
    high = min(most, max(float(inside.max(initial=0.0)), shaded) + room)
    axis.set_ylim(low, high)
    axis.axhspan(-shaded, shaded, color=look.FAINT, linewidth=0, zorder=0)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    axis.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:+g} %".replace("-", "−") if value else "0")
    )
    return _curves(axis, rows, private)


def _curves(axis: Axes, rows: pl.DataFrame, private: Private) -> list[Label]:
    """All mechanisms in one panel; labels of those that end inside it."""
    labels = []
    others = iter(_OTHERS * len(private))
    # The reference last, on top.
    order = sorted(rows["series"].unique(maintain_order=True), key=lambda name: name == _REFERENCE)
    for name in order:
        part = rows.filter(pl.col("series") == name).sort("place")
        how = _LOOKS.get(name.removesuffix(_FULL)) or next(others)
        if name.endswith(_FULL):
            how = replace(how, dashes=_DASHED, hollow=True)
        y = part["y"].to_numpy()
        axis.plot(
            part["place"], y, color=how.color, linestyle=how.dashes, linewidth=how.width,
            marker=how.marker, markersize=3.2, markerfacecolor="w" if how.hollow else how.color,
            markeredgewidth=0.7, label=name, zorder=3,
        )  # fmt: skip
        bars = part.drop_nulls(["low", "high"])
        axis.vlines(
            bars["place"], bars["low"], bars["high"], color=how.color, linewidth=2, alpha=0.4,
            zorder=2,
        )  # fmt: skip
        low, high = axis.get_ylim()
        if low <= y[-1] <= high:
            text = look.literal(name) + ("" if private[name] else " (not private)")
            labels.append(Label(text, float(y[-1]), how.color))
    return labels
