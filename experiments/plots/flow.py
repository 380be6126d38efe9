"""Holders an item needs under the Bernoulli flow and under WGM, by how many items they keep."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.plots import style as look
from experiments.plots.labels import Label, label_right
from theory import calibrate, selection_threshold
from theory.flow import FlowCalibration

_FLOW, _BOUND = "flow", "[L1]"
# Told apart by dashes and width where colours are not.
_LOOKS = {
    "[P1]": (look.BLACK, "-", 1.2, "WGM [P1]"),
    "[P3]": (look.BLUE, (0, (4, 1.5)), 1.0, "WGM [P3]"),
    _FLOW: (look.VERMILLION, "-", 1.9, "Bernoulli\nflow"),
    _BOUND: (look.GREEN, "-", 0.9, "$k^*$ [L1]"),
}


@look.styled
def holders_curve(
    flow: FlowCalibration, *, axes: Axes | None = None
) -> tuple[Figure, pl.DataFrame]:
    """Holders who bring an item to probability 1/2, against the number of items they all keep.

    The flow against WGM at the same eps, delta and Delta0, whose holders of t items reach the
    threshold T with T sqrt(t) of them; and k* of [L1], with which no sound private algorithm
    releases an item more often than half of the time.

    Args:
        flow: A calibration.
        axes: Panel to draw into, of a figure of the caller's; default a figure of its own.

    Returns:
        The figure, and the plotted numbers: series ("flow", "[P1]", "[P3]", "[L1]"), x (items
        kept), y (holders, not rounded).

    Source:
        Bernoulli flow note; [P1], [P3], [L1].

    Example:
        >>> from theory.flow import calibrate_flow
        >>> flow = calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> figure, plotted = holders_curve(flow)
        >>> plotted.with_columns(y=plotted["y"].round(1)).select("series", "y").rows()
        [('flow', 11.4), ('[P1]', 18.2), ('[P3]', 16.9), ('[L1]', 11.4)]
    """
    bound = flow.max_items_per_user
    kept = np.unique(np.rint(np.geomspace(1, bound, 60)).astype(np.int64))
    given = {"eps": flow.eps, "delta": flow.delta}
    series = {_FLOW: np.array([flow.holders(t) for t in kept.tolist()])}
    for name, method in (("[P1]", "split"), ("[P3]", "full")):
        noise = calibrate(**given, max_items_per_user=bound, method=method)
        series[name] = float(noise.threshold) * np.sqrt(kept)
    series[_BOUND] = np.full(kept.size, float(selection_threshold(**given)))

    if axes is None:
        _, (axes,) = look.subplots(1, 1, height=2.4)
    high = max(float(values.max()) for values in series.values())
    low = float(series[_BOUND][0])
    look.log_axis(axes, "x", 1.0, float(max(bound, 2)), most=5)
    look.log_axis(axes, "y", low / 2, high * 1.25)
    axes.axhspan(low / 2, low, color=look.FAINT, linewidth=0, zorder=0)
    labels = []
    for name, (color, dashes, width, text) in _LOOKS.items():
        axes.plot(
            kept, series[name], color=color, linestyle=dashes, linewidth=width, label=name,
            marker="_" if bound == 1 else "", markersize=14, zorder=2.5,
        )  # fmt: skip
        labels.append(Label(text, float(series[name][-1]), color))
    axes.annotate(
        "out of reach of any private algorithm", (0, 0), (3, 3), xycoords="axes fraction",
        textcoords="offset points", fontsize=6, color=look.GREY,
    )  # fmt: skip
    axes.set_xlabel("items $t$ that every holder keeps")
    axes.set_ylabel("holders for probability ½")
    figure = axes.figure.figure
    figure.draw_without_rendering()
    label_right(axes, labels)
    kept_items = pl.Series("x", kept, pl.Int64)
    parts = [pl.DataFrame({"series": n, "x": kept_items, "y": y}) for n, y in series.items()]
    return figure, pl.concat(parts)
