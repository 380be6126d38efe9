"""Seconds per 1,000 trials by every way, one setting varied at a time."""

from __future__ import annotations

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from experiments.plots import style as look
from experiments.plots.labels import Label, label_right
from experiments.statistics.slopes import log_log_slope
from theory._check import invalid

_AXES = {
    "num_pairs": "user-item pairs $N$",
    "max_items_per_user": r"contribution bound $\Delta_0$",
    "s": "Zipf exponent $s$",
    "points": r"points of an $\varepsilon$ grid",
}
# Slowest first, as the curves lie.
_WAYS = {
    "loop": ("Python loop over users", look.BLACK, "D"),
    "padded": ("padded, JAX", look.GREEN, "^"),
    "numpy": ("NumPy, a process per core", look.VERMILLION, "s"),
    "lanes": ("lanes, JAX", look.BLUE, "o"),
}
_NEEDED = ("way", "max_items_is_max", "seconds_per_1000", *_AXES)


@look.styled
def bench_plot(trials: pl.DataFrame) -> tuple[Figure, pl.DataFrame]:
    """Time against N, Delta0, s and number of eps points, around the main case.

    Args:
        trials: From `experiments.bench.run_suite`; its first row belongs to the main case.

    Returns:
        The figure, and the plotted numbers: axis, way, x, place, median, low, high (seconds per
        1,000 trials). N is drawn to scale; values of the others stand side by side, at `place`.
        Axes along which nothing was varied have no panel.

    Raises:
        InvalidInput: No rows, or a missing column.

    Example:
        >>> rows = {"num_pairs": [10**4, 10**5], "seconds_per_1000": [0.1, 1.0]}
        >>> rows |= {"way": ["lanes"] * 2, "s": [1.2] * 2, "points": [1] * 2}
        >>> rows |= {"max_items_per_user": [10] * 2, "max_items_is_max": [False] * 2}
        >>> figure, plotted = bench_plot(pl.DataFrame(rows))
        >>> plotted.select("axis", "x", "median").rows()
        [('num_pairs', 10000.0, 0.1), ('num_pairs', 100000.0, 1.0)]
    """
    missing = [name for name in _NEEDED if name not in trials.columns]
    if trials.is_empty() or missing:
        invalid("trials", trials.columns, f"must have rows, and a column {[*missing, 'way'][0]}")
    parts = [part for part in (_varied(trials, axis) for axis in _AXES) if not part.is_empty()]
    data = pl.concat(parts or [_points(trials.head(0), "num_pairs"), _main(trials)])
    axes_names = data["axis"].unique(maintain_order=True).to_list()
    width = look.COLUMN if len(axes_names) == 1 else look.PAGE
    figure = Figure(figsize=(width, 2.5), layout="constrained")
    widths = [1.5 if name == "num_pairs" else 1.0 for name in axes_names]
    grid = figure.subplots(
        1, len(axes_names), sharey=True, squeeze=False, gridspec_kw={"width_ratios": widths}
    )
    ends = data["low"].min(), data["high"].max()
    low, high = (float(end) for end in ends)  # pyright: ignore[reportArgumentType]
    for panel, name in zip(grid.flat, axes_names, strict=True):
        rows = data.filter(pl.col("axis") == name)
        look.log_axis(panel, "y", low / 2, high * 3)
        panel.grid(axis="y", color=look.FAINT, linewidth=0.6)
        panel.set_axisbelow(True)
        _horizontal(panel, rows, name, trials)
        _draw(panel, rows)
        panel.set_xlabel(_AXES[name])
    grid.flat[0].set_ylabel("seconds per 1,000 trials")
    present = data["way"].unique().to_list()
    handles = [
        Line2D([], [], color=color, marker=marker, label=label)
        for way, (label, color, marker) in _WAYS.items()
        if way in present
    ]
    look.key_above(figure, handles, len(handles) if len(axes_names) > 1 else 2)
    figure.draw_without_rendering()
    for panel, name in zip(grid.flat, axes_names, strict=True):
        if name == "num_pairs":
            label_right(panel, _exponents(data.filter(pl.col("axis") == name)))
    return figure, data


def _varied(trials: pl.DataFrame, axis: str) -> pl.DataFrame:
    """Rows that differ from the main case in this axis at most, where there are several."""
    first = trials.row(0, named=True)
    same = pl.lit(True)
    for name in _AXES:
        if name != axis:
            value = 1 if name == "points" else first[name]
            same = same & (pl.col(name) == value)
    rows = trials.filter(same)
    if rows[axis].n_unique() < 2:
        rows = rows.head(0)
    return _points(rows, axis)


def _main(trials: pl.DataFrame) -> pl.DataFrame:
    first = trials.row(0, named=True)
    same = [pl.col(name) == (1 if name == "points" else first[name]) for name in _AXES]
    return _points(trials.filter(*same), "num_pairs")


def _points(rows: pl.DataFrame, axis: str) -> pl.DataFrame:
    low, high = (
        pl.col(name if name in rows.columns else "seconds_per_1000")
        for name in ("seconds_per_1000_low", "seconds_per_1000_high")
    )
    place = pl.col(axis) if axis == "num_pairs" else pl.col(axis).rank("dense") - 1
    return rows.sort(axis).select(
        pl.lit(axis).alias("axis"),
        "way",
        pl.col(axis).cast(pl.Float64).alias("x"),
        place.cast(pl.Float64).alias("place"),
        pl.col("seconds_per_1000").alias("median"),
        low.alias("low"),
        high.alias("high"),
    )


def _horizontal(panel: Axes, rows: pl.DataFrame, axis: str, trials: pl.DataFrame) -> None:
    values = rows["x"].unique().sort().to_list()
    places = rows["place"].unique().sort().to_list()
    if axis == "num_pairs":
        margin = (values[-1] / values[0]) ** 0.12 if len(values) > 1 else 2.0
        panel.set_xscale("log")
        panel.set_xlim(values[0] / margin, values[-1] * margin)
        labels = [_power(value) for value in values]
    else:
        panel.set_xlim(-0.3, places[-1] + 0.3)
        labels = [look.number(value) for value in values]
    if axis == "max_items_per_user":
        unclipped = set(trials.filter(pl.col("max_items_is_max"))[axis].to_list())
        labels = ["max" if v in unclipped else text for v, text in zip(values, labels, strict=True)]
    panel.set_xticks(places, labels)
    panel.set_xticks([], minor=True)


def _power(value: float) -> str:
    mantissa, exponent = f"{value:.0e}".split("e")
    power = f"10^{{{int(exponent)}}}"
    return f"${power}$" if mantissa == "1" else rf"${mantissa}\times {power}$"


def _draw(panel: Axes, rows: pl.DataFrame) -> None:
    for way, (label, color, marker) in _WAYS.items():
        part = rows.filter(pl.col("way") == way)
        x = part["place"].to_numpy()
        panel.plot(x, part["median"], color=color, marker=marker, label=label, zorder=3)
        panel.vlines(x, part["low"], part["high"], color=color, linewidth=2.2, alpha=0.35, zorder=2)


def _exponents(rows: pl.DataFrame) -> list[Label]:
    """Growth in N, for the end of every curve."""
    labels = []
    for way, (_, color, _) in _WAYS.items():
        part = rows.filter(pl.col("way") == way)
        if part["x"].n_unique() > 1:
            x, y = part["x"].to_numpy(), part["median"].to_numpy()
            text = f"$N^{{{float(log_log_slope(x, y)):.2f}}}$"
            labels.append(Label(text, float(y[-1]), color))
    return labels
