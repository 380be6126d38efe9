"""Labels beside the curves they name, moved apart where they would overlap."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.transforms import blended_transform_factory

from theory._check import Reals

_LINE = 1.18  # line height in font sizes


@dataclass(frozen=True)
class Label:
    """A label for a point of a panel's right edge.

    Attributes:
        text: What to write; names from the data must have passed `literal`.
        y: Height of the curve's end, in data units.
        color: Colour of the text.
    """

    text: str
    y: float
    color: str


def spread(wanted: Reals, gap: float, low: float, high: float) -> np.ndarray:
    """Positions at least `gap` apart within [low, high], nearest to the wanted ones.

    Least squares: with gaps taken off, an isotonic regression (pool adjacent violators). Where
    the room does not suffice, the gap shrinks.

    Args:
        wanted: (labels,) any order.
        gap: Least distance.
        low: Least position.
        high: Largest position.

    Returns:
        (labels,) float64 positions, in the order of `wanted`; ties keep their order.

    Example:
        >>> spread([0.5, 0.5, 0.9], 0.1, 0.0, 1.0)
        array([0.45, 0.55, 0.9 ])
    """
    values = np.asarray(wanted, np.float64)
    if values.size == 0:
        return values
    gap = min(gap, (high - low) / max(values.size - 1, 1))
    order = np.argsort(values, kind="stable")
    steps = gap * np.arange(values.size)
    blocks: list[list[float]] = []  # [mean, count] of each pool
    for target in values[order] - steps:
        mean, count = float(target), 1.0
        while blocks and blocks[-1][0] > mean:
            above = blocks.pop()
            mean = (mean * count + above[0] * above[1]) / (count + above[1])
            count += above[1]
        blocks.append([mean, count])
    pooled = np.concatenate([np.full(int(count), mean) for mean, count in blocks])
    placed = np.empty(values.size)
    placed[order] = np.clip(pooled, low, high - steps[-1]) + steps
    return placed


def label_right(axes: Axes, labels: Sequence[Label], size: float = 6.5) -> None:
    """Write labels right of a panel, level with their curves' ends, with a thin leader each.

    The panel must have its final limits, and its figure must have been laid out once
    (`draw_without_rendering`, slow, hence once per figure): only then is the height known. The
    next layout makes room for the labels.
    """
    if not labels:
        return
    figure = axes.figure.figure
    height = axes.get_window_extent().height * 72 / figure.dpi
    points = [(axes.get_xlim()[1], label.y) for label in labels]
    inverse = axes.transAxes.inverted()
    ends = inverse.transform(axes.transData.transform(points))[:, 1]
    lines = max(label.text.count("\n") + 1 for label in labels)
    gap = lines * size * _LINE / height
    # Text is placed from the panel's edge in points, so that it does not stretch with the panel.
    places = spread(np.clip(ends, 0, 1), gap, 0.0, 1.0)
    for label, end, place in zip(labels, np.clip(ends, 0, 1), places, strict=True):
        axes.annotate(
            label.text,
            xy=(1.0, float(end)),
            xycoords="axes fraction",
            xytext=(9, (float(place) - float(end)) * height),
            textcoords="offset points",
            color=label.color,
            fontsize=size,
            va="center_baseline" if lines == 1 else "center",
            ha="left",
            linespacing=1.0,
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": label.color,
                "linewidth": 0.5,
                "alpha": 0.7,
                "shrinkA": 0.5,
                "shrinkB": 1,
                "relpos": (0.0, 0.5),
            },
        )


def label_top(axes: Axes, texts: Sequence[str], xs: Reals, size: float = 6.5) -> None:
    """Write labels above a panel at the given x, moved apart sideways where they would overlap."""
    if not texts:
        return
    figure = axes.figure.figure
    figure.draw_without_rendering()
    width = axes.get_window_extent().width * 72 / figure.dpi
    points = [(x, axes.get_ylim()[1]) for x in np.asarray(xs, np.float64)]
    inverse = axes.transAxes.inverted()
    wanted = np.clip(inverse.transform(axes.transData.transform(points))[:, 0], 0, 1)
    # A mathtext command prints one character, its marks none; 0.62 em is the width of a digit.
    longest = max(len(re.sub(r"\\[A-Za-z]+", "x", re.sub(r"[$_^{}]", "", t))) for t in texts)
    places = spread(wanted, (0.62 * longest + 0.6) * size / width, 0.0, 1.0)
    transform = blended_transform_factory(axes.transAxes, axes.transAxes)
    for text, at, place in zip(texts, wanted, places, strict=True):
        axes.annotate(
            text,
            xy=(float(at), 1.0),
            xycoords=transform,
            xytext=((float(place) - float(at)) * width, 7),
            textcoords="offset points",
            fontsize=size,
            ha="center",
            va="bottom",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": "#777777",
                "linewidth": 0.5,
                "shrinkA": 0.5,
                "shrinkB": 0,
                "relpos": (0.5, 0.0),
            },
        )
