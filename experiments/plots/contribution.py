"""Missing mass along what one may choose: Delta0, eps, or how much data; the answer is marked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.plots import style as look
from experiments.plots.labels import Label, label_right
from theory._check import check_beta, invalid

AXES = {
    "max_items_per_user": r"contribution bound $\Delta_0$ (items per user)",
    "eps": r"privacy parameter $\varepsilon$",
    "num_pairs": "user-item pairs $N$",
    "scale": "times as many users",
}
_ANSWERS = {
    "max_items_per_user": r"$\Delta_0$ = {}",
    "eps": r"$\varepsilon$ = {}",
    "num_pairs": "$N$ = {}",
    "scale": "{} times",
}
_METHODS = {"split": "[P1]", "full": "[P3]"}
_LOOKS = {
    "[P1]": (look.BLACK, "-", 1.2),
    "[P3]": (look.BLUE, (0, (4, 1.5)), 1.0),
    "certificate": (look.PURPLE, (0, (1, 1)), 1.1),
    "[L2]": (look.GREEN, "-", 1.0),
}
_ONE_ORDER = 12  # curves that span more are drawn on a logarithmic axis
_FOLLOWED = 30  # and how many times below the lowest curve that may reach


@look.styled
def plan_curve(
    frame: pl.DataFrame,
    *,
    answer: float | int,
    method: str = "split",
    target: float | None = None,
    beta: float = 0.05,
    title: str | None = None,
) -> tuple[Figure, pl.DataFrame]:
    """E[MM] by both calibrations against Delta0, eps or N, above what no algorithm can beat.

    Args:
        frame: From `Curve.to_frame`: the axis, split, full, lower_bound, and if it was asked for
            certificate.
        answer: Value of the axis that is marked, on the curve that it was read off.
        method: Calibration of the answer and of the certificate, "split" or "full".
        target: Missing mass that was to be reached, a dotted line.
        beta: Failure probability of the certificate.
        title: Name of the data, shown as it is.

    Returns:
        The figure, and the plotted numbers: series ("[P1]", "[P3]", "certificate", "[L2]"), x, y,
        answer (whether it is the marked point).

    Raises:
        InvalidInput: No axis, no rows, a missing column, or an answer that is not in the frame.

    Example:
        >>> rows = {"max_items_per_user": [1, 2], "lower_bound": [0.1, 0.1]}
        >>> rows |= {"split": [0.5, 0.4], "full": [0.4, 0.35]}
        >>> figure, plotted = plan_curve(pl.DataFrame(rows), answer=2)
        >>> plotted.filter(plotted["answer"]).select("series", "x", "y").rows()
        [('[P1]', 2.0, 0.4)]
    """
    axis = frame.columns[0] if frame.width else ""
    if axis not in AXES:
        invalid("frame", frame.columns, f"must start with one of {', '.join(AXES)}")
    missing = [n for n in ("split", "full", "lower_bound") if n not in frame.columns]
    if missing or frame.is_empty():
        invalid("frame", frame.columns, f"must have rows, and a column {[*missing, 'split'][0]}")
    if method not in _METHODS:
        invalid("method", method, f"must be one of {', '.join(_METHODS)}")
    frame = frame.sort(axis)
    x = frame[axis].to_numpy().astype(np.float64)
    place = int(np.argmin(np.abs(x - answer)))
    if x[place] != answer:
        invalid("answer", answer, f"must be one of the values of {axis}")
    certified = "certificate" in frame.columns
    sure = f"{100 * (1 - float(check_beta(beta))):g} %"
    series = {name: frame[column].to_numpy() for column, name in _METHODS.items()}
    if certified:
        series["certificate"] = frame["certificate"].to_numpy()
    series["[L2]"] = frame["lower_bound"].to_numpy()
    marked = "certificate" if certified else _METHODS[method]

    figure, (axes,) = look.subplots(1, 1, height=2.4)
    _horizontal(axes, x)
    curves = [values for name, values in series.items() if name != "[L2]"]
    curves += [] if target is None else [np.array([target])]
    _vertical(axes, curves, series["[L2]"])
    names = {"[P1]": "split [P1]", "[P3]": "full [P3]", "certificate": f"{sure} {method}"}
    labels = _draw(axes, x, series, names)
    if target is not None:
        axes.axhline(target, color=look.GREY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        labels.append(Label("target", target, look.GREY))
    axes.set_xlabel(AXES[axis])
    axes.set_ylabel("missing mass" if certified else "expected missing mass")
    if title:
        axes.set_title(look.literal(title, width=60))
    _mark(axes, axis, answer, float(series[marked][place]))
    figure.draw_without_rendering()
    label_right(axes, labels)
    parts = [
        pl.DataFrame({"series": name, "x": frame[axis].cast(pl.Float64), "y": values}).with_columns(
            (pl.col("x") == float(answer)).alias("answer") & pl.lit(name == marked)
        )
        for name, values in series.items()
    ]
    return figure, pl.concat(parts)


def _horizontal(axes: Axes, x: np.ndarray) -> None:
    low, high = float(x[0]), float(x[-1])
    look.log_axis(axes, "x", *((low, high) if high > low else (low / 1.5, high * 1.5)), most=5)


def _vertical(axes: Axes, curves: list[np.ndarray], lower: np.ndarray) -> None:
    """From 0 where the curves are of one order, else logarithmic."""
    shown = look.positive(np.concatenate(curves))
    low, high = (float(shown.min()), float(shown.max())) if shown.size else (1.0, 1.0)
    if high / low <= _ONE_ORDER:
        axes.set_ylim(0, high * 1.1)
        return
    # The lower bound may fall to 0; it need not be followed all the way.
    low = max(low / _FOLLOWED, float(look.positive(lower).min(initial=low)))
    room = (high / low) ** 0.15
    look.log_axis(axes, "y", low / np.sqrt(room), min(high * room, max(high, 1.0) * 1.3))


def draw_series(
    axes: Axes,
    x: np.ndarray,
    series: Mapping[str, np.ndarray],
    looks: Mapping[str, tuple[str, Any, float]],
) -> None:
    """Curves in a panel with its limits set, each with its colour, dashes and width."""
    floor = axes.get_ylim()[0]
    for name, values in series.items():
        color, dashes, width = looks[name]
        marker = "_" if x.size == 1 else ""
        # A zero of a logarithmic axis lies far below it.
        axes.plot(
            x, np.maximum(values, 1e-3 * floor), color=color, linestyle=dashes, linewidth=width,
            label=name, zorder=2.5, marker=marker, markersize=14,
        )  # fmt: skip


def _draw(
    axes: Axes, x: np.ndarray, series: dict[str, np.ndarray], names: dict[str, str]
) -> list[Label]:
    """The curves; returns their labels."""
    draw_series(axes, x, series, _LOOKS)
    labels = []
    floor = axes.get_ylim()[0]
    for name, values in series.items():
        below = " ↓" if values[-1] < floor else ""
        text = names.get(name, name) + below
        labels.append(Label(text, max(float(values[-1]), floor), _LOOKS[name][0]))
    lower = np.maximum(series["[L2]"], 1e-3 * floor)
    axes.fill_between(x, 1e-3 * floor, lower, color=look.FAINT, linewidth=0, zorder=0)
    to_axes = (axes.transData + axes.transAxes.inverted()).transform
    heights = to_axes(np.stack([x, lower], axis=1))
    if heights[heights[:, 0] <= 0.75, 1].min() > 0.09:
        axes.annotate(
            "out of reach of any private algorithm", (0, 0), (3, 3), xycoords="axes fraction",
            textcoords="offset points", fontsize=6, color=look.GREY,
        )  # fmt: skip
    return labels


def _mark(axes: Axes, axis: str, answer: float | int, y: float) -> None:
    text = _ANSWERS[axis].format(look.number(float(answer), 3 if answer >= 1e5 else 5))
    axes.plot(
        [answer], [y], "o", color=look.VERMILLION, markersize=4.5, zorder=4, label="answer",
        clip_on=False,
    )  # fmt: skip
    to_axes = (axes.transData + axes.transAxes.inverted()).transform
    across = float(to_axes((answer, y))[0])
    # Over a valley there is room above; a falling curve leaves it on the right.
    valley = axis == "max_items_per_user"
    side = "right" if across > (0.8 if valley else 0.95) else "center" if valley else "left"
    side = "left" if across < 0.2 else side
    axes.annotate(
        f"{text}\n{y:.3g}",
        xy=(answer, y),
        xytext=({"left": 5, "center": 0, "right": -1}[side], 6),
        textcoords="offset points",
        ha=side,
        va="bottom",
        fontsize=6.5,
        color=look.VERMILLION,
        zorder=5,
    )
