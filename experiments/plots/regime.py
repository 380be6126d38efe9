"""Where the paper's asymptotics of sigma hold, over eps and delta."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from experiments.plots import style as look
from theory._check import Reals, check_delta, check_positive, invalid

_MAP = "cividis"  # perceptually uniform, the same for colour-blind readers
_LEVELS = (1.0, 1.1, 1.2, 1.3, 1.5, 2.0, 3.0, 5.0)


@look.styled
def regime_map(
    eps: Reals, delta: Reals, values: Reals, threshold: Reals | None = None
) -> tuple[Figure, pl.DataFrame]:
    """Filled contours of sigma eps / sqrt(ln(1/delta)), and of T if given.

    The first is constant only where sigma = Theta(sqrt(ln(1/delta))/eps) holds.

    Args:
        eps: (num_eps,) ascending, above 0, at least two.
        delta: (num_delta,) ascending, in (0, 0.5], at least two.
        values: (num_eps, num_delta) from `theory.regime_map`, above 0.
        threshold: (num_eps, num_delta) thresholds T at one Delta0, above 0.

    Returns:
        The figure, and eps, delta, value and threshold (null if not given), one row per point.

    Raises:
        InvalidInput: Shapes disagree, a grid is not ascending, or a value is not above 0.

    Example:
        >>> from theory import regime_map as values
        >>> eps, delta = np.array([0.1, 1.0, 10.0]), np.array([1e-6, 1e-5])
        >>> figure, plotted = regime_map(eps, delta, values(eps=eps, delta=delta))
        >>> plotted.height
        6
    """
    x, y = check_positive("eps", eps), check_delta(delta)
    for name, grid in (("eps", x), ("delta", y)):
        if grid.ndim != 1 or grid.size < 2 or not np.all(np.diff(grid) > 0):
            invalid(name, grid, "must be ascending, at least two values")
    maps = [("values", check_positive("values", values))]
    if threshold is not None:
        maps.append(("threshold", check_positive("threshold", threshold)))
    for name, array in maps:
        if array.shape != (x.size, y.size):
            invalid(name, array.shape, f"must have shape {(x.size, y.size)}")
    figure, axes = look.subplots(1, len(maps), height=2.7)
    titles = {
        "values": r"$\sigma\,\varepsilon\,/\,\sqrt{\ln(1/\delta)}$",
        "threshold": "threshold $T$",
    }
    for place, (name, array) in zip(axes, maps, strict=True):
        look.log_axis(place, "x", float(x[0]), float(x[-1]))
        look.log_axis(place, "y", float(y[0]), float(y[-1]))
        _contours(place, x, y, array, _levels(array, fine=name == "values"))
        place.set_title(titles[name])
        place.set_xlabel(r"privacy parameter $\varepsilon$")
    axes[0].set_ylabel(r"privacy parameter $\delta$")
    data = {
        "eps": np.repeat(x, y.size),
        "delta": np.tile(y, x.size),
        "value": maps[0][1].ravel(),
        "threshold": maps[1][1].ravel() if threshold is not None else [None] * (x.size * y.size),
    }
    return figure, pl.DataFrame(data, schema_overrides={"threshold": pl.Float64})


def _levels(array: np.ndarray, *, fine: bool) -> list[float]:
    """Round levels over the range, at most a dozen; dense around 1 for the ratio."""
    low, high = float(array.min()), float(array.max())
    ticks = look.log_ticks(low, high, most=8) if high > low * 1.001 else [low]
    if fine:
        ticks = sorted({float(t) for t in (*ticks, *_LEVELS) if low < t < high})
        if high / low < 100:
            return ticks or [low]
        return [t for t in ticks if t >= 0.01 and t not in (1.1, 1.2, 1.3)] or ticks
    return ticks


def _contours(
    axes: Axes, x: np.ndarray, y: np.ndarray, array: np.ndarray, levels: list[float]
) -> None:
    low, high = float(array.min()), float(array.max())
    if not high > low * 1.001:
        axes.text(0.5, 0.5, f"constant: {low:.3g}", ha="center", transform=axes.transAxes)
        return
    norm = LogNorm(low, high)
    # Filled in many steps, so that the colour also tells what lies between the labelled lines.
    fill = np.geomspace(low, high, 33)
    fill[[0, -1]] = low * (1 - 1e-9), high * (1 + 1e-9)
    filled = axes.contourf(x, y, array.T, levels=fill, norm=norm, cmap=_MAP)
    filled.set_edgecolor("face")  # no hairlines between bands in viewers that smooth edges
    filled.set_linewidth(0.3)
    middle = np.sqrt(low * high)
    colors = ["white" if level < middle else "black" for level in levels]
    lines = axes.contour(x, y, array.T, levels=levels, colors=colors, linewidths=0.7)
    axes.clabel(lines, fmt={level: look.number(level) for level in levels}, fontsize=6.5)
