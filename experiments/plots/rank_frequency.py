"""Frequency against rank, under the Zipf certificates that envelop it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.plots import style as look
from experiments.plots.labels import Label, label_right
from experiments.plots.multiples import multiples, set_heading
from theory import Profile
from theory._check import Reals, check_zipf_exponent, invalid
from theory.zipf import as_profile

_COLORS = (look.VERMILLION, look.BLUE, look.GREEN, look.PURPLE)
_DASHES = ("-", (0, (5, 2)), (0, (2, 1)), (0, (5, 1, 1, 1)))
_RANK, _FREQUENCY = "rank $r$ of the item", "frequency $N_{(r)}$ (users)"
_MOST_POINTS = 2000  # more cannot be told apart, and make files large


@dataclass(frozen=True, eq=False)
class _Panel:
    """What one panel shows: the data, their certificates, and the tail below a frequency."""

    rank: np.ndarray
    frequency: np.ndarray
    num_pairs: int
    certificates: Sequence[tuple[float, float]]
    tau: float | None = None


@look.styled
def rank_frequency(
    frequencies: Profile | Reals,
    certificates: Sequence[tuple[float | int, float | int]] = (),
    *,
    tau: float | int | None = None,
    title: str | None = None,
) -> tuple[Figure, pl.DataFrame]:
    """Rank-frequency plot with its certificates, which touch the data from above.

    Args:
        frequencies: Profile, or (num_items,) whole numbers of at least 1.
        certificates: Pairs (s, ln C), at most four.
        tau: Frequency; the ranks with N(x) <= tau are shaded and their share of pairs is written.
        title: Name of the data, shown as it is.

    Returns:
        The figure, and rank (the last of each class), frequency, in_tail and one column
        envelope_0, envelope_1, ... per certificate (C N / r^s, users).

    Raises:
        InvalidInput: More than four certificates, s not above 0, ln C negative or not finite.

    Example:
        >>> figure, plotted = rank_frequency([8, 2, 1, 1], [(2.0, 0.0)], tau=1)
        >>> plotted.select("rank", "frequency", "in_tail").rows()
        [(1, 8, False), (2, 2, False), (4, 1, True)]
    """
    profile = as_profile(frequencies)
    if len(certificates) > len(_COLORS):
        invalid("certificates", len(certificates), "must be at most 4 pairs (s, ln C)")
    data = _table(profile, certificates, tau)
    panel = _Panel(
        data["rank"].to_numpy(),
        data["frequency"].to_numpy(),
        profile.num_pairs,
        [(float(s), float(log_constant)) for s, log_constant in certificates],
        None if tau is None else float(tau),
    )
    figure, (axes,) = look.subplots(1, 1, height=2.6)
    last, first = max(float(panel.rank[-1]), 2.0), float(panel.frequency[0])
    top = max(float(profile.num_pairs), first) if certificates else first
    look.log_axis(axes, "x", 0.9, last * 1.15)
    look.log_axis(axes, "y", float(panel.frequency[-1]) / 1.5, top * 1.5)
    labels = _draw(axes, panel)
    if panel.tau is not None:
        _tail_text(axes, panel.tau, float(profile.tail(panel.tau)))
    axes.set_xlabel(_RANK)
    axes.set_ylabel(_FREQUENCY)
    if title:
        axes.set_title(look.literal(title))
    figure.draw_without_rendering()
    label_right(axes, labels)
    return figure, data


@look.styled
def rank_frequency_panels(
    points: pl.DataFrame,
    certificates: pl.DataFrame,
    *,
    titles: Mapping[str, str] | None = None,
    title: str | None = None,
) -> tuple[Figure, pl.DataFrame]:
    """Rank-frequency plots of several data sets on common axes, each under one certificate.

    Shaded: the ranks with N(x) <= tau, whose share of pairs is the instance bound [U2].

    Args:
        points: dataset, rank (last of each class), frequency (`rank_points` makes them).
        certificates: One row per data set: dataset, num_pairs, zipf_s, zipf_log_constant, tau,
            upper_instance, upper_zipf (the bounds that tau and the certificate give).
        titles: Headings of data sets, if not their names; a second line is written smaller.
        title: Short text above the figure, shown as it is.

    Returns:
        The figure, and the points with envelope (C N / r^s, users) and in_tail.

    Raises:
        InvalidInput: No rows, or a data set without exactly one certificate.

    Example:
        >>> points = pl.DataFrame({"dataset": "mine", "rank": [1, 3], "frequency": [40, 10]})
        >>> row = {"dataset": "mine", "num_pairs": 60, "zipf_s": 1.0, "zipf_log_constant": 0.0}
        >>> row |= {"tau": 12.0, "upper_instance": 0.34, "upper_zipf": 0.8}
        >>> figure, plotted = rank_frequency_panels(points, pl.DataFrame([row]))
        >>> [(rank, round(line, 6)) for rank, line in plotted.select("rank", "envelope").rows()]
        [(1, 60.0), (3, 20.0)]
    """
    if points.is_empty():
        invalid("points", "0 rows", "must hold at least one row to plot")
    names = points["dataset"].unique(maintain_order=True).to_list()
    if sorted(certificates["dataset"].to_list()) != sorted(names):
        invalid("certificates", certificates["dataset"].to_list(), "must be one for each data set")
    figure, axes, _ = multiples(len(names), height=1.8)
    last, first = points["rank"].max(), points["frequency"].max()
    look.log_axis(axes[0], "x", 0.8, 1.3 * float(last), most=4)  # type: ignore[arg-type]
    look.log_axis(axes[0], "y", 0.6, 200 * float(first))  # type: ignore[arg-type]
    parts = []
    for axis, name in zip(axes, names, strict=True):
        rows = points.filter(pl.col("dataset") == name).sort("rank")
        row = certificates.row(by_predicate=pl.col("dataset") == name, named=True)
        s, log_constant = float(row["zipf_s"]), float(row["zipf_log_constant"])
        rank, frequency = rows["rank"].to_numpy(), rows["frequency"].to_numpy()
        panel = _Panel(rank, frequency, row["num_pairs"], [(s, log_constant)], float(row["tau"]))
        (label,) = _draw(axis, panel)
        told = [
            (f"{label.text.replace(chr(10), ', ')}\n[U3] {_bound(row['upper_zipf'])}", label.color),
            (f"shaded: [U2] {_bound(row['upper_instance'])}", look.BLACK),
        ]
        for (text, color), down in zip(told, (1, 20), strict=True):
            axis.annotate(
                text, (1, 1), (-2, -down), xycoords="axes fraction", textcoords="offset points",
                ha="right", va="top", fontsize=6.5, color=color, linespacing=1.25,
            )  # fmt: skip
        set_heading(axis, name, titles or {})
        envelope = _envelope(rank, s, log_constant, panel.num_pairs)
        parts.append(
            rows.with_columns(pl.Series("envelope", envelope)).with_columns(
                (pl.col("frequency") <= row["tau"]).alias("in_tail")
            )
        )
    figure.supxlabel(_RANK, fontsize=7.5)
    figure.supylabel(_FREQUENCY, fontsize=7.5)
    if title:
        figure.suptitle(look.literal(title, width=70), fontsize=8)
    return figure, pl.concat(parts)


def rank_points(profile: Profile) -> pl.DataFrame:
    """Last rank and frequency of each class of equally frequent items, thinned to what shows."""
    keep = np.arange(profile.ranks.size)
    if keep.size > _MOST_POINTS:
        bins = np.floor(np.log(profile.ranks) / np.log(profile.num_items) * _MOST_POINTS)
        # The last rank of a class is where an envelope touches.
        keep = np.flatnonzero(np.append(np.diff(bins) > 0, True))
    return pl.DataFrame({"rank": profile.ranks[keep], "frequency": profile.frequencies[keep]})


def _bound(value: float) -> str:
    # Rounded up, so that no bound below 1 is written as one.
    shown = f"{math.ceil(value * 100) / 100:.2f}"
    return f"{shown}, vacuous" if value >= 1 else shown


def _envelope(rank: np.ndarray, s: float, log_constant: float, num_pairs: int) -> np.ndarray:
    """C N / r^s, where it does not overflow."""
    log_line = log_constant + math.log(num_pairs) - s * np.log(rank.astype(np.float64))
    return np.exp(np.minimum(log_line, 700.0))


def _draw(axes: Axes, panel: _Panel) -> list[Label]:
    """The data, envelopes and tail in a panel with its limits set; labels of the envelopes."""
    x = np.concatenate(([0.9], panel.rank))
    y = np.concatenate((panel.frequency[:1], panel.frequency))
    if panel.tau is not None:
        _shade_tail(axes, x, y, panel.tau)
    # A class holds its frequency up to its last rank.
    axes.step(x, y, where="pre", color="k", label="data", zorder=3)
    labels = []
    grid = np.geomspace(*axes.get_xlim(), 200)
    for i, (s, log_constant) in enumerate(panel.certificates):
        line = _envelope(grid, s, log_constant, panel.num_pairs)
        axes.plot(
            grid, line, color=_COLORS[i], linestyle=_DASHES[i], linewidth=0.9, label=f"envelope {i}"
        )
        text = f"{_constant(log_constant)}\n$s$ = {s:.2f}"
        labels.append(Label(text, float(line[-1]), _COLORS[i]))
    return labels


def _table(
    profile: Profile,
    certificates: Sequence[tuple[float | int, float | int]],
    tau: float | int | None,
) -> pl.DataFrame:
    columns = dict(rank_points(profile).to_dict(as_series=True))
    columns["in_tail"] = columns["frequency"] <= (-math.inf if tau is None else tau)
    for i, (s, log_constant) in enumerate(certificates):
        exponent = float(check_zipf_exponent(s, above=0.0))
        if not (math.isfinite(log_constant) and log_constant >= 0):
            invalid("log_constant", log_constant, "must be a finite number of at least 0")
        columns[f"envelope_{i}"] = pl.Series(
            _envelope(columns["rank"].to_numpy(), exponent, log_constant, profile.num_pairs)
        )
    return pl.DataFrame(columns)


def _shade_tail(axes: Axes, x: np.ndarray, y: np.ndarray, tau: float) -> None:
    low = axes.get_ylim()[0]
    axes.axhline(tau, color=look.GREY, linewidth=0.6, linestyle=(0, (4, 2)), zorder=1)
    axes.fill_between(x, low, y, where=y <= tau, step="pre", color=look.BAND, linewidth=0, zorder=1)


def _tail_text(axes: Axes, tau: float, share: float) -> None:
    """The share of pairs in the tail, at its upper edge."""
    low = axes.get_ylim()[0]
    above = math.log(tau / low) < 0.2 * math.log(axes.get_ylim()[1] / low) if tau > low else True
    axes.annotate(
        rf"$\tau$ = {look.number(tau)}: tail {100 * share:.3g} %",
        xy=(0.03, max(tau, low)),
        xycoords=("axes fraction", "data"),
        xytext=(0, 2 if above else -2),
        textcoords="offset points",
        va="bottom" if above else "top",
        fontsize=6.5,
        zorder=4,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8},
    )


def _constant(log_constant: float | int) -> str:
    if log_constant < 300:
        return f"$C$ = {look.number(math.exp(log_constant), 2 if log_constant < 4.6 else 3)}"
    return rf"$\ln C$ = {log_constant:.0f}"
