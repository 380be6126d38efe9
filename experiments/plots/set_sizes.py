"""How many items users hold, and what a contribution bound would keep of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
from jaxtyping import Int64
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.plots import style as look
from experiments.plots.labels import label_top
from experiments.plots.multiples import multiples, set_heading
from theory._check import Reals, check_count, invalid

_SIZE, _SHARE = "items per user $k$", "share"


@look.styled
def set_size_ecdf(
    set_sizes: Reals, marks: Sequence[int] = (), *, title: str | None = None
) -> tuple[Figure, pl.DataFrame]:
    """Share of users with at most k items, and share of pairs kept at Delta0 = k.

    Args:
        set_sizes: (num_users,) whole numbers of at least 1.
        marks: Contribution bounds Delta0 to mark.
        title: Name of the data, shown as it is.

    Returns:
        The figure, and size k, users (share with at most k items), pairs_kept
        (sum_i min(|W_i|, k) / N), one row per distinct size.

    Raises:
        InvalidInput: No sizes, or one that is not a whole number of at least 1.

    Example:
        >>> figure, plotted = set_size_ecdf([1, 1, 3])
        >>> [tuple(round(x, 3) for x in row) for row in plotted.rows()]
        [(1, 0.667, 0.6), (3, 1.0, 1.0)]
    """
    sizes = np.asarray(set_sizes)
    if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iu" or sizes.min() < 1:
        invalid("set_sizes", set_sizes, "must be a non-empty vector of whole numbers >= 1")
    bounds = [check_count("marks", mark) for mark in marks]
    data = size_table(sizes.astype(np.int64))
    figure, (axes,) = look.subplots(1, 1, height=2.4)
    last = max(float(data["size"][-1]), 2.0, *map(float, bounds))
    look.log_axis(axes, "x", 0.9, last * 1.1)
    axes.set_ylim(0, 1.02)
    handles = _draw(axes, data, bounds)
    axes.set_xlabel(_SIZE)
    axes.set_ylabel(_SHARE)
    look.key_above(figure, handles, 1, title)
    label_top(axes, [rf"$\Delta_0$={bound}" for bound in bounds], np.array(bounds, np.float64))
    return figure, data


@look.styled
def set_size_panels(
    frame: pl.DataFrame,
    marks: Sequence[int] = (),
    *,
    titles: Mapping[str, str] | None = None,
    title: str | None = None,
) -> tuple[Figure, pl.DataFrame]:
    """The same for several data sets on common axes; what each mark keeps is written.

    Args:
        frame: dataset, size, users, pairs_kept (`size_table`).
        marks: Contribution bounds Delta0 to mark, at most three.
        titles: Headings of data sets, if not their names; a second line is written smaller.
        title: Short text above the figure, shown as it is.

    Returns:
        The figure, and the rows as they are plotted.

    Raises:
        InvalidInput: No rows, more than three marks, or one that is not a whole number.

    Example:
        >>> rows = size_table(np.array([1, 1, 2, 6])).with_columns(dataset=pl.lit("mine"))
        >>> figure, plotted = set_size_panels(rows, [2])
        >>> plotted.select("size", "users", "pairs_kept").rows()
        [(1, 0.5, 0.4), (2, 0.75, 0.6), (6, 1.0, 1.0)]
    """
    bounds = [check_count("marks", mark) for mark in marks]
    if frame.is_empty() or len(bounds) > 3:
        invalid("marks", list(marks), "must be at most 3, for a table with rows")
    names = frame["dataset"].unique(maintain_order=True).to_list()
    figure, axes, _ = multiples(len(names), height=1.55)
    last = max(2.0, *map(float, bounds), *frame["size"].to_list())
    look.log_axis(axes[0], "x", 0.9, last * 1.1)
    axes[0].set_ylim(0, 1.02)
    handles: list[Line2D] = []
    for axis, name in zip(axes, names, strict=True):
        rows = frame.filter(pl.col("dataset") == name).sort("size")
        handles = _draw(axis, rows, bounds)
        set_heading(axis, name, titles or {})
        _write(axis, rows, bounds)
    figure.supxlabel(_SIZE, fontsize=7.5)
    figure.supylabel(_SHARE, fontsize=7.5)
    look.key_above(figure, handles, None, title)
    return figure, frame


def size_table(set_sizes: Int64[np.ndarray, " num_users"]) -> pl.DataFrame:
    """size, users (share with at most so many items), pairs_kept (share kept at Delta0 = size)."""
    size, count = np.unique(set_sizes, return_counts=True)
    users, held = np.cumsum(count), np.cumsum(count * size)
    kept = (held + (users[-1] - users) * size) / held[-1]
    return pl.DataFrame({"size": size, "users": users / users[-1], "pairs_kept": kept})


def share_kept(data: pl.DataFrame, bounds: Reals) -> np.ndarray:
    """Share of the pairs that contribution bounds keep: linear between the sizes that occur."""
    size, kept = data["size"].to_numpy(), data["pairs_kept"].to_numpy()
    # From 0 at k = 0.
    return np.interp(
        np.asarray(bounds, np.float64), np.concatenate(([0.0], size)), np.concatenate(([0.0], kept))
    )


def _write(axis: Axes, data: pl.DataFrame, bounds: Sequence[int]) -> None:
    """The largest set and what the marks keep, below the curves or, if they rise late, above."""
    middle = math.sqrt(math.prod(axis.get_xlim()))
    users = data.filter(pl.col("size") <= middle)["users"]
    least = min(users[-1] if users.len() else 0.0, float(share_kept(data, [middle])[0]))
    below = least > 0.16 + 0.12 * len(bounds)
    lines = [("largest: {:,}".format(data["size"].max()), look.BLACK)]
    lines += [(rf"$\Delta_0$={bound:,}: {_kept(data, bound)}", look.BLUE) for bound in bounds]
    for place, (text, color) in enumerate(reversed(lines) if below else lines):
        up = 2.5 + 8.5 * place
        axis.annotate(
            text, (1, 0) if below else (0, 1), (-2, up) if below else (4, -up),
            xycoords="axes fraction", textcoords="offset points", ha="right" if below else "left",
            va="bottom" if below else "top", fontsize=6.5, color=color, zorder=4,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.4},
        )  # fmt: skip


def _kept(data: pl.DataFrame, bound: int) -> str:
    if bound >= data["size"].max():  # type: ignore[operator]
        return "all"
    # Never 100 %: something is lost.
    return f"{math.floor(1000 * float(share_kept(data, [bound])[0])) / 10:g} %"


def _draw(axes: Axes, data: pl.DataFrame, bounds: Sequence[int]) -> list[Line2D]:
    """Both curves and the marks in a panel with its limits set; the curves."""
    size, (low, high) = data["size"].to_numpy(), axes.get_xlim()
    x = np.concatenate(([low], size, [high]))
    steps = np.concatenate(([0.0], data["users"], [1.0]))
    (first,) = axes.step(x, steps, where="post", color="k", label=r"users with at most $k$ items")
    # Below one item nothing is kept, so the curve starts at k = 1.
    at = np.unique(np.concatenate((np.geomspace(1, size[-1], 300), size, bounds, [high])))
    curve = share_kept(data, at)
    (second,) = axes.plot(
        at, curve, color=look.BLUE, linestyle=(0, (5, 1.5)), label=r"pairs kept at $\Delta_0 = k$"
    )
    for bound in bounds:
        axes.axvline(bound, color=look.GREY, linewidth=0.6, linestyle=":", zorder=1)
    return [first, second]
