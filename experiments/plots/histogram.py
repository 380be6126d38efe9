"""Missing mass of the trials as a histogram, between what must be missed and what may be."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from experiments.plots import style as look
from theory._check import invalid

_COLUMNS = ("eps", "trial", "missing_mass")
# Name of a column of references: its tag, colour and line.
REFERENCES: dict[str, tuple[str, str, Any]] = {
    "lower_bound": ("least of all mechanisms [L2]", look.BLUE, (0, (1, 1.2))),
    "exact_mean": ("exact mean [E2]", look.BLACK, "-"),
    "certificate": ("certificate [E6]", look.GREEN, (0, (5, 1.5))),
    "upper_instance_star": ("instance bound [U2*]", look.VERMILLION, (0, (3, 1.2, 1, 1.2))),
}


@look.styled
def mass_histogram(
    trials: pl.DataFrame, references: pl.DataFrame, *, title: str | None = None
) -> tuple[Figure, pl.DataFrame]:
    """Share of trials by missing mass, one panel per eps, with exact mean and bounds.

    The axis spans the trials and what lies near them; what lies further away is named at the edge
    it lies beyond.

    Args:
        trials: eps, trial, missing_mass in [0, 1]: one row per trial.
        references: eps, and any of lower_bound, exact_mean, certificate and upper_instance_star;
            null where one is not known.
        title: Short text above the figure, shown as it is.

    Returns:
        The figure, and eps, from, to, trials (number in that bin), one row per bin.

    Raises:
        InvalidInput: No trials, or a missing column.

    Example:
        >>> rows = {"eps": [1.0] * 4, "trial": [0, 1, 2, 3], "missing_mass": [0.2, 0.2, 0.3, 0.4]}
        >>> known = pl.DataFrame({"eps": [1.0], "exact_mean": [0.27]})
        >>> figure, plotted = mass_histogram(pl.DataFrame(rows), known)
        >>> int(plotted["trials"].sum()), plotted["from"][0], plotted["to"][-1]
        (4, 0.2, 0.4)
    """
    missing = [name for name in _COLUMNS if name not in trials.columns]
    if missing or trials.is_empty():
        invalid("trials", trials.columns, f"must hold rows with the columns {', '.join(_COLUMNS)}")
    levels = trials["eps"].unique(maintain_order=True).to_list()
    columns = min(len(levels), 3)
    rows = -(-len(levels) // columns)
    width = {1: look.COLUMN, 2: 5.2}.get(columns, look.PAGE)
    figure, axes = look.subplots(rows, columns, height=1.9, width=width, share=False)
    parts = []
    for axis, eps in zip(axes, levels, strict=False):
        masses = trials.filter(pl.col("eps") == eps)["missing_mass"].to_numpy()
        found = references.filter(pl.col("eps") == eps)
        known = found.row(0, named=True) if found.height else {}
        counts, edges = np.histogram(masses, bins=_bins(masses))
        parts.append(pl.DataFrame({"from": edges[:-1], "to": edges[1:], "trials": counts})
                     .select(pl.lit(eps).alias("eps"), pl.all()))  # fmt: skip
        _draw(axis, counts / masses.size, edges, known)
        if len(levels) > 1:
            axis.set_title(rf"$\varepsilon$ = {look.number(eps)}")
    for axis in axes[len(levels) :]:
        axis.set_axis_off()
    figure.supxlabel("missing mass", fontsize=7.5)
    figure.supylabel("share of the trials", fontsize=7.5)
    shown = [
        Line2D([], [], color=color, linestyle=line, linewidth=1.1, label=label)
        for name, (label, color, line) in REFERENCES.items()
        if name in references.columns and references[name].drop_nulls().len()
    ]
    if shown:
        look.key_above(figure, shown, min(len(shown), 2 * columns), title)
    return figure, pl.concat(parts)


def _bins(masses: np.ndarray) -> np.ndarray:
    """Edges of at most 40 bins, fewer for few trials; one bin around a single value."""
    low, high = float(masses.min()), float(masses.max())
    if high - low <= 1e-12:
        return np.array([low - 1e-3, low + 1e-3])
    return np.linspace(low, high, 1 + int(np.clip(2 * masses.size ** (1 / 3), 2, 40)))


def _draw(axis: Axes, shares: np.ndarray, edges: np.ndarray, known: dict) -> None:
    axis.stairs(shares, edges, fill=True, color=look.BAND, zorder=1)
    axis.stairs(shares, edges, color=look.GREY, linewidth=0.7, zorder=2)
    values = {name: known[name] for name in REFERENCES if known.get(name) is not None}
    # What lies within one width of the histogram widens the axis; the rest is named at the edge.
    low, high = float(edges[0]), float(edges[-1])
    room = high - low
    near = [v for v in values.values() if low - room <= v <= high + room]
    left, right = min([low, *near]), max([high, *near])
    margin = 0.06 * (right - left)
    axis.set_xlim(left - margin, right + margin)
    # Room above the bars for what is written at the edges.
    axis.set_ylim(0, 1.25 * float(shares.max()))
    beyond = {"left": 0, "right": 0}
    for name, value in values.items():
        _, color, line = REFERENCES[name]
        if left <= value <= right:
            axis.axvline(value, color=color, linestyle=line, linewidth=1.1, zorder=3)
            continue
        side = "left" if value < left else "right"
        text = f"← {_percent(value)}" if side == "left" else f"{_percent(value)} →"
        axis.annotate(
            text, (0 if side == "left" else 1, 1), (2 if side == "left" else -2,
            -2 - 8 * beyond[side]), xycoords="axes fraction", textcoords="offset points",
            ha=side, va="top", fontsize=6.5, color=color, zorder=4,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.4},
        )  # fmt: skip
        beyond[side] += 1
    axis.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    axis.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.4g} %")
    axis.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
