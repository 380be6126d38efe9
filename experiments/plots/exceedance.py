"""How often the missing mass exceeds a bound, against how often it may."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from experiments.plots import style as look
from theory._check import invalid

_COLORS = (look.BLUE, look.VERMILLION, look.GREEN, look.PURPLE, look.ORANGE, look.SKY)
_MARKERS = "s^vDop"
_COLUMNS = ("bound", "beta", "fraction", "low", "high")


@look.styled
def exceedance(frame: pl.DataFrame, *, title: str | None = None) -> tuple[Figure, pl.DataFrame]:
    """P(MM > bound(beta)) against beta, one panel per bound, with its exact binomial interval.

    A bound is valid where the points lie below the diagonal. A fraction of 0 has its own place at
    the foot of the axis; its interval still reaches up to the exact upper limit.

    Args:
        frame: Rows with bound (name), beta in (0, 1), fraction of trials above bound(beta), and
            low and high, its Clopper-Pearson limits.
        title: Short text above the figure, shown as it is.

    Returns:
        The figure, and the rows as plotted, by bound (in the order given) and beta.

    Raises:
        InvalidInput: No rows, or a missing column.

    Example:
        >>> rows = {"bound": ["[U2]"] * 2, "beta": [0.05, 0.2], "fraction": [0.0, 0.01]}
        >>> rows |= {"low": [0.0, 0.0], "high": [0.01, 0.03]}
        >>> figure, plotted = exceedance(pl.DataFrame(rows))
        >>> plotted.select("beta", "fraction", "high").rows()
        [(0.05, 0.0, 0.01), (0.2, 0.01, 0.03)]
    """
    missing = [name for name in _COLUMNS if name not in frame.columns]
    if missing or frame.is_empty():
        invalid("frame", frame.columns, f"must hold rows with the columns {', '.join(_COLUMNS)}")
    names = frame["bound"].unique(maintain_order=True).to_list()
    data = pl.concat([frame.filter(pl.col("bound") == name).sort("beta") for name in names])
    columns = min(len(names), 4)
    rows = math.ceil(len(names) / columns)
    width = {1: look.COLUMN, 2: 4.8}.get(columns, look.PAGE)
    figure, axes = look.subplots(rows, columns, height=2.3, width=width)
    betas = data["beta"].to_numpy()
    least = float(betas.min())
    shown = look.positive(data.select("fraction", "high").to_numpy())
    low = min(least, float(shown.min()) if shown.size else least) / 1.4
    room = -0.08 * math.log(low)
    zero = low * math.exp(-room) if bool((data["low"] <= 0).any()) else None
    foot = low if zero is None else zero * math.exp(-0.5 * room)
    look.log_axis(axes[0], "x", least / 1.3, min(float(betas.max()) * 1.3, 1.0), most=4)
    look.log_axis(axes[0], "y", foot, 1.3, zero)
    diagonal = np.geomspace(*axes[0].get_xlim(), 50)
    for i, (place, name) in enumerate(zip(axes, names, strict=False)):
        part = data.filter(pl.col("bound") == name)
        beta, fraction, lower, upper = (
            np.maximum(part[column].to_numpy(), zero or foot)
            for column in ("beta", "fraction", "low", "high")
        )
        color = _COLORS[i % len(_COLORS)]
        place.fill_between(diagonal, diagonal, 1.3, color=look.FAINT, linewidth=0, zorder=0)
        place.plot(diagonal, diagonal, color="k", linewidth=0.7, zorder=1)
        place.vlines(beta, lower, upper, color=color, linewidth=2.6, alpha=0.35, zorder=2)
        place.plot(
            beta, fraction, color=color, marker=_MARKERS[i % len(_MARKERS)], linewidth=0.8,
            markersize=3.2, label=str(name), zorder=3,
        )  # fmt: skip
        place.set_title(look.literal(name, width=26), color=color)
    for place in axes[len(names) :]:
        place.set_axis_off()
    figure.supxlabel(r"allowed failure probability $\beta$", fontsize=7.5)
    figure.supylabel(r"fraction of trials above the bound", fontsize=7.5)
    handles = [
        Line2D(
            [], [], color=look.GREY, marker="o", linewidth=0.8, markersize=3.2, label="observed"
        ),
        Patch(color="#C8C8C8", linewidth=0, label="exact interval"),
        Line2D([], [], color="k", linewidth=0.7, label=r"$\beta$ itself; above: bound broken"),
    ]
    look.key_above(figure, handles, None if columns > 1 else 2, title)
    return figure, data
