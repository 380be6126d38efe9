"""Frequency against rank, under the Zipf certificates that envelop it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.plots import style as look
from experiments.plots.labels import Label, label_right
from theory import Profile
from theory._check import Reals, check_zipf_exponent, invalid
from theory.zipf import as_profile

_COLORS = (look.VERMILLION, look.BLUE, look.GREEN, look.PURPLE)
_DASHES = ("-", (0, (5, 2)), (0, (2, 1)), (0, (5, 1, 1, 1)))
_MOST_POINTS = 2000  # more cannot be told apart, and make files large


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
    """
    profile = as_profile(frequencies)
    if len(certificates) > len(_COLORS):
        invalid("certificates", len(certificates), "must be at most 4 pairs (s, ln C)")
    data = _table(profile, certificates, tau)
    rank, frequency = data["rank"].to_numpy(), data["frequency"].to_numpy()
    figure, (axes,) = look.subplots(1, 1, height=2.6)
    last = max(float(rank[-1]), 2.0)
    top = float(profile.num_pairs) if certificates else float(frequency[0])
    look.log_axis(axes, "x", 0.9, last * 1.15)
    look.log_axis(axes, "y", float(frequency[-1]) / 1.5, max(top, float(frequency[0])) * 1.5)
    x, y = np.concatenate(([0.9], rank)), np.concatenate((frequency[:1], frequency))
    if tau is not None:
        _shade_tail(axes, x, y, profile, tau)
    # A class holds its frequency up to its last rank.
    axes.step(x, y, where="pre", color="k", label="data", zorder=3)
    labels = []
    grid = np.geomspace(0.9, last * 1.15, 200)
    for i, (s, log_constant) in enumerate(certificates):
        log_line = log_constant + math.log(profile.num_pairs) - s * np.log(grid)
        line = np.exp(np.minimum(log_line, 700.0))
        axes.plot(
            grid, line, color=_COLORS[i], linestyle=_DASHES[i], linewidth=0.9, label=f"envelope {i}"
        )
        text = f"{_constant(log_constant)}\n$s$ = {s:.2f}"
        labels.append(Label(text, float(line[-1]), _COLORS[i]))
    axes.set_xlabel("rank $r$ of the item")
    axes.set_ylabel("frequency $N_{(r)}$ (users)")
    if title:
        axes.set_title(look.literal(title))
    figure.draw_without_rendering()
    label_right(axes, labels)
    return figure, data


def _table(
    profile: Profile,
    certificates: Sequence[tuple[float | int, float | int]],
    tau: float | int | None,
) -> pl.DataFrame:
    keep = np.arange(profile.ranks.size)
    if keep.size > _MOST_POINTS:
        bins = np.floor(np.log(profile.ranks) / np.log(profile.num_items) * _MOST_POINTS)
        # The last rank of a class is where an envelope touches.
        keep = np.flatnonzero(np.append(np.diff(bins) > 0, True))
    rank = profile.ranks[keep].astype(np.float64)
    columns = {"rank": profile.ranks[keep], "frequency": profile.frequencies[keep]}
    columns["in_tail"] = columns["frequency"] <= (-math.inf if tau is None else tau)
    for i, (s, log_constant) in enumerate(certificates):
        exponent = float(check_zipf_exponent(s, above=0.0))
        if not (math.isfinite(log_constant) and log_constant >= 0):
            invalid("log_constant", log_constant, "must be a finite number of at least 0")
        log_line = log_constant + math.log(profile.num_pairs) - exponent * np.log(rank)
        columns[f"envelope_{i}"] = np.exp(np.minimum(log_line, 700.0))
    return pl.DataFrame(columns)


def _shade_tail(
    axes: Axes, x: np.ndarray, y: np.ndarray, profile: Profile, tau: float | int
) -> None:
    low = axes.get_ylim()[0]
    share = float(profile.tail(tau))
    axes.axhline(tau, color=look.GREY, linewidth=0.6, linestyle=(0, (4, 2)), zorder=1)
    axes.fill_between(x, low, y, where=y <= tau, step="pre", color=look.BAND, linewidth=0, zorder=1)
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
