"""The ladder of one data set: every bound on the missing mass, from below to above, per Delta0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.plots import style as look
from theory._check import invalid

# Rungs from the least to the largest: column, label.
RUNGS = (
    ("lower_bound", "[L2] any mechanism, mean"),
    ("exact_mean", "[E2] WGM, exact mean"),
    ("quantile", "WGM, quantile"),
    ("certificate_hinge", "[E6] hinge certificate"),
    ("certificate_chernoff", "[E5] Chernoff certificate"),
    ("upper_instance_star", "[U2*] instance bound"),
    ("upper_instance", "[U2] instance bound"),
    ("upper_zipf", "[U3] Theorem 3.3"),
)
_COLORS = (look.BLUE, look.VERMILLION, look.GREEN, look.PURPLE, look.BLACK, look.ORANGE, look.SKY)
_MARKERS = "osD^vP*"


@look.styled
def ladder_plot(
    blocks: Sequence[Mapping[str, Any]], *, title: str | None = None
) -> tuple[Figure, pl.DataFrame]:
    """Bounds, mean and quantile of the missing mass as rungs, a colour per Delta0, a panel per eps.

    Args:
        blocks: Entries of `wgm bounds --json`: eps, max_items_per_user, dataset and the rungs,
            null where not known. A quantile is full where exact, hollow where simulated; vacuous
            bounds are hollow, in a strip at the right.
        title: Short text above; default the name of the data set.

    Returns:
        The figure, and eps, max_items_per_user, rung, value (raw), vacuous, one row per marker.

    Raises:
        InvalidInput: No blocks.

    Example:
        >>> block = {"dataset": "mine", "eps": 1.0, "max_items_per_user": 10, "exact_mean": 0.2}
        >>> figure, plotted = ladder_plot([block | {"upper_instance": 0.5}])
        >>> plotted.select("rung", "value", "vacuous").rows()
        [('[E2] WGM, exact mean', 0.2, False), ('[U2] instance bound', 0.5, False)]
    """
    if not blocks:
        invalid("blocks", 0, "must be at least one")
    data = _table(blocks)
    levels = data["eps"].unique(maintain_order=True).to_list()
    bounds = data["max_items_per_user"].unique(maintain_order=True).to_list()
    rungs = [label for _, label in RUNGS if label in data["rung"]]
    place = {label: i for i, label in enumerate(rungs)}
    inside = look.positive(data.filter(~pl.col("vacuous"))["value"].to_numpy())
    low = min(float(inside.min()) / 1.3 if inside.size else 0.1, 0.5)
    strip = 10 ** (0.12 * max(-np.log10(low), 0.5))
    figure, axes = look.subplots(
        1, len(levels), height=0.9 + 0.22 * len(rungs), width=3.4 + 2.2 * (len(levels) - 1) + 0.8
    )
    for panel, eps in zip(axes, levels, strict=True):
        look.log_axis(panel, "x", low, strip, most=4)
        panel.set_ylim(-0.6, len(rungs) - 0.4)
        panel.set_yticks(range(len(rungs)), rungs)
        panel.tick_params(axis="y", length=0)
        panel.axvspan(1, strip, color=look.FAINT, linewidth=0, zorder=0)
        panel.axvline(1, color=look.GREY, linewidth=0.5, zorder=0.5)
        if bool(data["vacuous"].any()):
            panel.text(
                strip**0.5, 1.0, "vacuous", transform=panel.get_xaxis_transform(), ha="center",
                va="bottom", fontsize=6.5, color=look.GREY,
            )  # fmt: skip
        for y in range(len(rungs)):
            panel.axhline(y, color=look.BAND, linewidth=0.4, zorder=0.2)
        if len(levels) > 1:
            panel.set_title(rf"$\varepsilon$ = {look.number(eps)}")
        for j, bound in enumerate(bounds):
            rows = data.filter((pl.col("eps") == eps) & (pl.col("max_items_per_user") == bound))
            _draw(panel, rows, place, j, len(bounds), low, strip)
    figure.supxlabel("missing mass", fontsize=7.5)
    handles = [
        Line2D(
            [], [], linestyle="", marker=_MARKERS[j % len(_MARKERS)],
            color=_COLORS[j % len(_COLORS)], label=rf"$\Delta_0$ = {bound:,}",
        )
        for j, bound in enumerate(bounds)
    ]  # fmt: skip
    look.key_above(figure, handles, min(len(handles), 4), title or str(blocks[0]["dataset"]))
    return figure, data


def _table(blocks: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    rows = [
        {
            "eps": block["eps"],
            "max_items_per_user": block["max_items_per_user"],
            "rung": label,
            "value": float(block[column]),
            "vacuous": label.startswith("[U") and block[column] >= 1,
            "exact": column != "quantile" or block.get("quantile_method") == "exact",
        }
        for block in blocks
        for column, label in RUNGS
        if block.get(column) is not None
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _draw(
    axes: Any, rows: pl.DataFrame, place: dict[str, int], index: int, many: int, low: float,
    strip: float,
) -> None:  # fmt: skip
    color, marker = _COLORS[index % len(_COLORS)], _MARKERS[index % len(_MARKERS)]
    # Markers of several Delta0 share a rung; a small shift keeps them apart.
    shift = 0.0 if many == 1 else 0.5 * ((index + 0.5) / many - 0.5)
    vacuous = rows["vacuous"].to_numpy()
    x = np.where(vacuous, strip**0.5, np.maximum(rows["value"].to_numpy(), low * 1.05))
    y = np.array([place[label] for label in rows["rung"]]) + shift
    axes.plot(x, y, color=color, linewidth=0.5, alpha=0.6, zorder=1)
    for full in (True, False):
        chosen = (rows["exact"].to_numpy() & ~vacuous) == full
        face = color if full else "white"
        axes.plot(
            x[chosen], y[chosen], linestyle="", marker=marker, color=color, markerfacecolor=face,
            markeredgewidth=0.8, zorder=3,
        )  # fmt: skip
