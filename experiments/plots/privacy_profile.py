"""What an audit found, delta against eps, beside what the claim allows."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from experiments.plots import style as look
from theory._check import Reals, check_delta, check_eps, invalid

_COLUMNS = ("mechanism", "private", "eps", "found", "claimed_eps", "claimed_delta", "accused")


@look.styled
def privacy_profile(
    frame: pl.DataFrame, *, title: str | None = None
) -> tuple[Figure, pl.DataFrame]:
    """Largest delta(eps) found by an audit, one panel per mechanism, against its claim.

    A claim (eps, delta) allows every delta(eps') up to `claimed_profile`; a curve that enters the
    shaded region refutes it. A found delta of 0 has its own place at the foot of the axis.

    Args:
        frame: Rows with mechanism (name), private (whether it claims to keep the claim), eps,
            found (delta), claimed_eps, claimed_delta, accused; optional accountant, the exact
            delta(eps) where one is known, null elsewhere.
        title: Short text above the figure, shown as it is.

    Returns:
        The figure, and the rows as plotted with the column `allowed`, by mechanism and eps.

    Raises:
        InvalidInput: No rows, or a missing column.

    Example:
        >>> claim = {"claimed_eps": [1.0] * 2, "claimed_delta": [1e-5] * 2, "accused": [False] * 2}
        >>> found = {"mechanism": ["wgm"] * 2, "private": [True] * 2, "eps": [0.5, 1.0], **claim}
        >>> figure, plotted = privacy_profile(pl.DataFrame({**found, "found": [2e-4, 5e-6]}))
        >>> plotted.select("eps", "found").rows()
        [(0.5, 0.0002), (1.0, 5e-06)]
    """
    missing = [name for name in _COLUMNS if name not in frame.columns]
    if missing or frame.is_empty():
        invalid("frame", frame.columns, f"must hold rows with the columns {', '.join(_COLUMNS)}")
    if "accountant" not in frame.columns:
        frame = frame.with_columns(pl.lit(None, pl.Float64).alias("accountant"))
    names = frame["mechanism"].unique(maintain_order=True).to_list()
    data = pl.concat([frame.filter(pl.col("mechanism") == name).sort("eps") for name in names])
    allowed = [
        float(claimed_profile(row["eps"], eps=row["claimed_eps"], delta=row["claimed_delta"]))
        for row in data.iter_rows(named=True)
    ]
    data = data.with_columns(pl.Series("allowed", allowed, pl.Float64))
    columns = min(len(names), 4)
    rows = math.ceil(len(names) / columns)
    width = {1: look.COLUMN, 2: 4.8}.get(columns, look.PAGE)
    figure, axes = look.subplots(rows, columns, height=2.3 if rows == 1 else 1.6, width=width)
    shown = look.positive(data.select("found", "accountant", "claimed_delta").to_numpy())
    least = max(float(shown.min()), 1e-2 * float(data["claimed_delta"].to_numpy().min()))
    some_zero = bool((data["found"] <= 0).any())
    zero = least / 4
    axes[0].set_xlim(0, float(data["eps"].to_numpy().max()) or 1.0)
    look.log_axis(axes[0], "y", zero / 1.6, 1.0, zero if some_zero else None, most=5)
    for index, name in enumerate(names):
        _panel(axes[index], data.filter(pl.col("mechanism") == name), zero)
        axes[index].tick_params(labelbottom=index + columns >= len(names))
    for place in axes[len(names) :]:
        place.set_axis_off()
    figure.supxlabel(r"$\varepsilon$", fontsize=7.5)
    figure.supylabel(r"$\delta(\varepsilon)$ found", fontsize=7.5)
    look.key_above(figure, _key(data), None if columns > 1 else 2, title)
    return figure, data


def claimed_profile(at: Reals, *, eps: float, delta: float) -> np.ndarray:
    """Largest delta(eps') that (eps, delta)-DP allows, eps' any.

    delta from eps on, and below it delta + (1 - delta) (e^eps - e^eps') / (1 + e^eps): the curve of
    the mechanism that reveals everything with probability delta, else answers one bit truthfully
    with probability e^eps/(1 + e^eps).

    Args:
        at: eps', any shape.
        eps: Claimed eps.
        delta: Claimed delta.

    Returns:
        float64 of the shape of `at`.

    Source:
        Kairouz, Oh, Viswanath 2015, "The composition theorem for differential privacy".

    Example:
        >>> claimed_profile([0.0, 1.0, 2.0], eps=1.0, delta=0.01).round(4)
        array([0.4675, 0.01  , 0.01  ])
    """
    levels = check_eps(at)
    claim, share = float(check_eps(eps)), float(check_delta(delta))
    # Scaled by e^-eps, which no eps overflows.
    below = -np.expm1(np.minimum(levels - claim, 0.0)) / (1 + math.exp(-claim))
    return np.asarray(share + (1 - share) * below)


def _panel(axes: Axes, part: pl.DataFrame, zero: float) -> None:
    name, private, accused = (part[column][0] for column in ("mechanism", "private", "accused"))
    eps, delta = float(part["claimed_eps"][0]), float(part["claimed_delta"][0])
    grid = np.linspace(0, axes.get_xlim()[1], 200)
    limit = claimed_profile(grid, eps=eps, delta=delta)
    axes.fill_between(grid, limit, 1, color=look.FAINT, linewidth=0, zorder=0)
    axes.plot(grid, limit, color="k", linewidth=0.7, zorder=1)
    axes.plot(eps, delta, color="k", marker="o", markersize=3, clip_on=False, zorder=4)
    known = part.drop_nulls("accountant")
    if known.height:
        axes.plot(
            known["eps"], np.maximum(known["accountant"], zero), color=look.GREEN, linewidth=2.4,
            alpha=0.5, zorder=2,
        )  # fmt: skip
    color = look.VERMILLION if accused else look.BLUE
    found = np.maximum(part["found"].to_numpy(), zero)
    axes.plot(part["eps"], found, color=color, marker="s", markersize=2.6, label=name, zorder=3)
    axes.set_title(
        look.literal(name, width=30) + ("" if private else "\n(claims no privacy)"),
        color=color, fontsize=7,
    )  # fmt: skip


def _key(data: pl.DataFrame) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = []
    accused = set(data["accused"].to_list())
    for value, color, label in (
        (False, look.BLUE, "found"),
        (True, look.VERMILLION, "found, refutes the claim"),
    ):
        if value in accused:
            handles.append(Line2D([], [], color=color, marker="s", markersize=2.6, label=label))
    if data["accountant"].drop_nulls().len():
        exact = Line2D([], [], color=look.GREEN, linewidth=2.4, alpha=0.5, label="accountant")
        handles.append(exact)
    claim = r"claim ($\varepsilon$, $\delta$)"
    handles += [
        Line2D([], [], color="k", marker="o", markersize=3, linewidth=0.7, label=claim),
        Patch(color=look.FAINT, linewidth=0, label="not allowed by it"),
    ]
    return handles
