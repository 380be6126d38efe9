"""How many items users hold, and what a contribution bound would keep of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from experiments.plots import style as look
from experiments.plots.labels import label_top
from theory._check import Reals, check_count, invalid


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
    """
    sizes = np.asarray(set_sizes)
    if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iu" or sizes.min() < 1:
        invalid("set_sizes", set_sizes, "must be a non-empty vector of whole numbers >= 1")
    bounds = [check_count("marks", mark) for mark in marks]
    size, count = np.unique(sizes.astype(np.int64), return_counts=True)
    users, held = np.cumsum(count), np.cumsum(count * size)
    kept = (held + (users[-1] - users) * size) / held[-1]
    data = pl.DataFrame({"size": size, "users": users / users[-1], "pairs_kept": kept})

    figure, (axes,) = look.subplots(1, 1, height=2.4)
    last = max(float(size[-1]), 2.0, *map(float, bounds))
    look.log_axis(axes, "x", 0.9, last * 1.1)
    axes.set_ylim(0, 1.02)
    x = np.concatenate(([0.9], size, [last * 1.1]))
    steps = np.concatenate(([0.0], data["users"], [1.0]))
    (first,) = axes.step(x, steps, where="post", color="k", label=r"users with at most $k$ items")
    # From 0 at k = 0; below one item nothing is kept, so the curve starts at k = 1.
    at = np.unique(np.concatenate((np.geomspace(1, last, 300), size, bounds)))
    curve = np.interp(at, np.concatenate(([0.0], size)), np.concatenate(([0.0], kept)))
    (second,) = axes.plot(
        at, curve, color=look.BLUE, linestyle=(0, (5, 1.5)), label=r"pairs kept at $\Delta_0 = k$"
    )
    for bound in bounds:
        axes.axvline(bound, color=look.GREY, linewidth=0.6, linestyle=":", zorder=1)
    axes.set_xlabel("items per user $k$")
    axes.set_ylabel("share")
    look.key_above(figure, [first, second], 1, title)
    label_top(axes, [rf"$\Delta_0$={bound}" for bound in bounds], np.array(bounds, np.float64))
    return figure, data
