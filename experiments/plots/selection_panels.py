"""Selections on several data sets at one eps: what they miss, and who is ahead of whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from experiments.plots import style as look
from experiments.plots.selection import (
    MethodStyle,
    draw_panel,
    k_axis,
    key_handles,
    method_styles,
    panel_top,
)
from theory._check import invalid

# Most panels side by side, and inches of a row: featured data sets, their leads, the others.
_ACROSS = {"featured": 3, "other": 5}
_HEIGHTS = {"featured": 1.45, "lead": 0.85, "other": 1.05}
# As short as a panel is high; the rest is for the caption.
_LABELS = {
    "missing_mass": "missing mass, %",
    "l1_loss": r"$\ell_1$ loss / $N$, %",
    "missed_share": "users missed, %",
}
_LEAD = "lead, points"
# No axis ends below 1 %: what is near zero looks so.
_LEAST_TOP = 0.01
# Leads within a tenth of a point are drawn to scale, larger ones by their logarithm.
_LINEAR = 0.1
# Below this share of what there is to gain a panel says that nothing is gained.
_IDLE = 0.02


@look.styled
def selection_panels(
    frame: pl.DataFrame,
    leads: pl.DataFrame,
    *,
    featured: Sequence[str] = (),
    titles: Mapping[str, str] | None = None,
) -> tuple[Figure, pl.DataFrame]:
    """Mean losses against k with 95 % intervals: a panel per data set and metric, in per cent.

    Featured data sets come first and larger, each with its leads below: how many points a rival
    loses more; linear within 0.1 points, logarithmic beyond, shaded where the rival is ahead.
    Panels have scales of their own, which end at 1 % or above. Shaded and dotted as in
    `selection_curves`; a panel in which that is all there is to see says so.

    Args:
        frame: Rows as for `selection_curves`, of one eps.
        leads: dataset, metric, k, method (who is ahead), mean, low, high, as shares; low and high
            may be null.
        featured: Data sets that come first.
        titles: What stands above a data set's panels; default its name.

    Returns:
        The figure, and the plotted numbers in per cent: dataset, eps, metric, k, panel ("loss" or
        "lead"), role, method, mean, low, high.

    Raises:
        InvalidInput: No rows, more than one eps, or several rows at one point of a curve.

    Example:
        >>> rows = {"dataset": ["mine"] * 2, "eps": [1.0] * 2, "k": [5, 10], "role": ["method"] * 2}
        >>> rows |= {"method": ["peeling"] * 2, "metric": ["missing_mass"] * 2}
        >>> rows |= {"mean": [0.5, 0.4], "low": [0.4, 0.3], "high": [0.6, 0.5]}
        >>> leads = pl.DataFrame(rows).drop("eps", "role")
        >>> figure, plotted = selection_panels(pl.DataFrame(rows), leads)
        >>> plotted.select("panel", "k", "mean").rows()
        [('loss', 5, 50.0), ('loss', 10, 40.0)]
    """
    if frame["eps"].n_unique() != 1:
        invalid("eps", frame["eps"].unique().to_list(), "must be one value, and rows must be there")
    known = frame["dataset"].unique(maintain_order=True).to_list()
    first = [name for name in featured if name in known]
    data = _plotted(frame, leads.filter(pl.col("dataset").is_in(first)))
    metrics = frame["metric"].unique(maintain_order=True).to_list()
    losses = data.filter(pl.col("panel") == "loss")
    methods = losses.filter(pl.col("role") == "method")["method"].unique(maintain_order=True)
    styles = method_styles(methods)
    others = [name for name in known if name not in first]
    rows = _rows(metrics, first, others)
    heights = [sum(_HEIGHTS[kind] for kind in kinds) for _, kinds, _ in rows]
    figure = Figure(figsize=(look.PAGE, sum(heights) + 0.55), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.03, h_pad=0.03, wspace=0, hspace=0)  # type: ignore[union-attr]
    outer = figure.add_gridspec(len(rows), 1, height_ratios=heights)
    seen: set[str] = set()
    for line, (metric, kinds, names) in enumerate(rows):
        large = kinds[0] == "featured"
        across = min(_ACROSS[kinds[0]], len(first) if large else max(len(others), 3))
        ratios = [_HEIGHTS[kind] for kind in kinds]
        inner = outer[line].subgridspec(len(kinds), across, height_ratios=ratios)
        grid = inner.subplots(squeeze=False)
        own = data.filter(pl.col("metric") == metric)
        leads_of_row = own.filter(pl.col("panel") == "lead")
        for column, name in enumerate(names):
            part = own.filter((pl.col("dataset") == name) & (pl.col("panel") == "loss"))
            seen |= _draw_loss(grid[0, column], part, styles, large=large)
            _head(grid[0, column], (titles or {}).get(name, name) if large else name, large=large)
            if large:
                grid[0, column].tick_params(labelbottom=False)
                part = leads_of_row.filter(pl.col("dataset") == name)
                _draw_lead(grid[1, column], part, leads_of_row, styles)
        for axis in grid[:, len(names) :].flat:
            axis.set_axis_off()
        grid[0, 0].set_ylabel(_LABELS.get(metric, metric))
        if large:
            grid[1, 0].set_ylabel(_LEAD)
        if large or line == len(rows) - 1:
            grid[-1, (len(names) - 1) // 2].set_xlabel("selected items $k$")
    open_ = frame.filter(~pl.col("private"))["method"] if "private" in frame.columns else ()
    handles = key_handles(seen, styles, set(open_))
    look.key_above(figure, handles, min(len(handles), 4))
    return figure, data


def _plotted(frame: pl.DataFrame, leads: pl.DataFrame) -> pl.DataFrame:
    """Losses and leads in long rows, in per cent."""
    columns = ("dataset", "eps", "metric", "k", "panel", "role", "method", "mean", "low", "high")
    parts = [frame.with_columns(panel=pl.lit("loss")).select(columns)]
    if leads.height:
        eps = frame["eps"][0]
        told = leads.with_columns(panel=pl.lit("lead"), role=pl.lit("lead"), eps=pl.lit(eps))
        parts.append(told.select(columns))
    data = pl.concat(parts).with_columns(
        pl.col(name).cast(pl.Float64) * 100 for name in ("mean", "low", "high")
    )
    keys = [name for name in columns if name not in ("mean", "low", "high")]
    if data.select(keys).n_unique() < data.height:
        invalid("frame", f"{data.height} rows", "must differ in dataset, metric, role, method or k")
    return data


def _rows(
    metrics: Sequence[str], first: Sequence[str], others: Sequence[str]
) -> list[tuple[str, tuple[str, ...], list[str]]]:
    """Metric, kinds of panels above each other, and data sets of every row."""
    made = []
    for metric in metrics:
        for kinds, names in ((("featured", "lead"), first), (("other",), others)):
            across = _ACROSS[kinds[0]]
            for start in range(0, len(names), across):
                made.append((metric, kinds, list(names[start : start + across])))
    return made


def _draw_loss(
    axes: Axes, part: pl.DataFrame, styles: Mapping[str, MethodStyle], *, large: bool
) -> set[str]:
    """One panel of losses; the reference curves that can be seen in it."""
    top = max(panel_top(part), 100 * _LEAST_TOP)
    axes.set_ylim(0, top)
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    draw_panel(axes, part, styles, most_ticks=9 if large else 3)
    if _is_idle(part):
        axes.annotate(
            "next to nothing released" if large else "next to nothing\nreleased", (0, 1), (3, -3),
            xycoords="axes fraction", va="top", textcoords="offset points", fontsize=6,
            color=look.GREY,
        )  # fmt: skip
    return set(part.filter(pl.col("mean").is_between(0.03 * top, top))["role"])


def _head(axes: Axes, text: str, *, large: bool) -> None:
    lines = [look.literal(line) for line in text.splitlines()]
    axes.set_title("\n".join(lines), pad=3, fontsize=7.5 if large else 6.5)


def _is_idle(part: pl.DataFrame) -> bool:
    """Whether all methods lose what an empty selection loses, or nearly."""
    nothing = part.filter(pl.col("role") == "nothing").select("k", nothing="mean")
    seen = part.filter(pl.col("role") == "method").join(nothing, on="k")
    return seen.height > 0 and bool((seen["mean"] >= (1 - _IDLE) * seen["nothing"]).all())


def _draw_lead(
    axes: Axes, part: pl.DataFrame, row: pl.DataFrame, styles: Mapping[str, MethodStyle]
) -> None:
    """One panel of leads, on the scale of its row."""
    k_axis(axes, part["k"] if part.height else row["k"])
    values = row.select("mean", "low", "high").to_numpy()
    low, high = float(np.nanmin(values, initial=0.0)), float(np.nanmax(values, initial=0.0))
    axes.set_yscale("symlog", linthresh=_LINEAR, linscale=0.7)
    axes.set_ylim(min(2.5 * low, -_LINEAR), max(2.5 * high, _LINEAR))
    powers = [float(f"{sign}1e{power}") for sign in "-+" for power in range(-1, 3)]
    ticks = sorted([0.0, *(each for each in powers if 1.6 * low <= each <= 1.6 * high)])
    if len(ticks) > 5:  # too close to 0 for their labels
        ticks = [each for each in ticks if abs(each) != _LINEAR]
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value:+g}".replace("-", "−") if value else "0")
    )
    axes.axhspan(axes.get_ylim()[0], 0, color=look.FAINT, linewidth=0, zorder=0)
    axes.axhline(0, color=look.GREY, linewidth=0.7, zorder=1)
    for name, shown in styles.items():
        own = part.filter(pl.col("method") == name).sort("k")
        if own.is_empty():
            continue
        axes.plot(own["k"], own["mean"], label=name, linewidth=1.0, zorder=3, **shown.line)
        known = own.drop_nulls(["low", "high"])
        axes.vlines(
            known["k"], known["low"], known["high"], color=shown.color, linewidth=1.0, zorder=3
        )
