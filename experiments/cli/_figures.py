"""Plots of `wgm profile` and `wgm calibrate`, each with the numbers it shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from experiments.plots import style as look
from experiments.plots.labels import Label, label_right
from theory import Profile, UserItems, calibrate

# From hardly private to far beyond any use; 1e-20 shows that T grows like sqrt(log 1/delta).
_DELTAS = (1e-3, 1e-5, 1e-10, 1e-20)
_COLORS = (look.ORANGE, look.VERMILLION, look.BLUE, look.BLACK)
_EPS = np.logspace(-4, 3, 141)


@look.styled
def rank_frequency(
    profile: Profile, certificates: list[dict[str, Any]], name: str
) -> tuple[Figure, pl.DataFrame]:
    """Share of every item against its rank, below the Zipf certificates (C, s).

    Args:
        profile: The data, at any Delta0.
        certificates: Entries tau, s and log_constant each.
        name: Name of the data set.

    Returns:
        The figure, and rank, share and every certificate's value, one row per class of items.
    """
    ranks = profile.ranks.astype(np.float64)
    shares = profile.frequencies / profile.num_pairs
    # Items of one class share a level: drawn from its first to its last rank.
    firsts = ranks - profile.multiplicity + 1
    figure, (axes,) = look.subplots(1, 1, height=2.6)
    low = float(shares.min()) / 2
    look.log_axis(axes, "x", 0.9, max(float(ranks[-1]), 10.0) * 1.2)
    look.log_axis(axes, "y", low, 2.0)
    axes.hlines(shares, firsts, ranks, color=look.BLACK, linewidth=1.6)
    axes.plot(firsts, shares, ".", color=look.BLACK, markersize=2.5, markeredgewidth=0)
    table = {"first_rank": firsts, "last_rank": ranks, "share": shares}
    labels = []
    colors = (look.VERMILLION, look.BLUE, look.GREEN, look.PURPLE)
    for index, entry in enumerate(certificates):
        color = colors[index % len(colors)]
        log_values = entry["log_constant"] - entry["s"] * np.log(ranks)
        grid = np.geomspace(1, max(float(ranks[-1]), 2.0), 200)
        line = np.exp(np.minimum(entry["log_constant"] - entry["s"] * np.log(grid), 0.0))
        axes.plot(grid, line, color=color, linewidth=0.9)
        text = f"$\\tau={entry['tau']:g}$: $s={entry['s']:.2f}$"
        labels.append(Label(text, max(float(line[-1]), low), color))
        table[f"certificate_tau_{entry['tau']:g}"] = np.exp(np.minimum(log_values, 0.0))
    axes.set_xlabel("rank $r$")
    axes.set_ylabel("share of pairs $N_{(r)}/N$")
    axes.set_title(look.literal(name), loc="left")
    label_right(axes, labels)
    return figure, pl.DataFrame(table)


@look.styled
def set_sizes(data: UserItems, name: str) -> tuple[Figure, pl.DataFrame]:
    """Share of users with at most k items, and share of pairs they hold.

    Args:
        data: The data set.
        name: Its name.

    Returns:
        The figure, and size, share_of_users and share_of_pairs, one row per set size.
    """
    sizes, counts = np.unique(data.set_sizes, return_counts=True)
    users = np.cumsum(counts) / data.num_users
    pairs = np.cumsum(counts * sizes) / data.num_pairs
    figure, (axes,) = look.subplots(1, 1, height=2.4)
    look.log_axis(axes, "x", 0.9, max(float(sizes[-1]), 2.0) * 1.15)
    axes.set_ylim(0, 1.03)
    handles = []
    for text, values, color in (("users", users, look.BLACK), ("pairs", pairs, look.BLUE)):
        x, y = [0.9, *sizes], [0.0, *values]
        handles += axes.step(x, y, where="post", color=color, label=text)
    axes.set_xlabel("set size $k$")
    axes.set_ylabel("share with at most $k$ items")
    axes.set_title(look.literal(name), loc="left")
    look.key_above(figure, handles)
    return figure, pl.DataFrame({"size": sizes, "share_of_users": users, "share_of_pairs": pairs})


@look.styled
def regime_map(max_items_per_user: int, method: str) -> tuple[Figure, pl.DataFrame]:
    """Noise and threshold against eps for several delta, at one Delta0.

    The paper's Theta(sqrt(log 1/delta)/eps) is the straight middle part of sigma: for small eps it
    levels off at a limit that depends on delta, for large eps it approaches 1/sqrt(2 eps).

    Args:
        max_items_per_user: Contribution bound Delta0.
        method: Calibration method.

    Returns:
        The figure, and eps, delta, sigma and threshold, one row per point.
    """
    made = calibrate(
        eps=_EPS[None, :],
        delta=np.array(_DELTAS)[:, None],
        max_items_per_user=max_items_per_user,
        method=method,
    )
    figure, panels = look.subplots(1, 2, height=2.6, share=False)
    shown = (("sigma", r"noise $\sigma$"), ("threshold", "threshold $T$"))
    for axes, (name, text) in zip(panels, shown, strict=True):
        values = getattr(made, name)
        # The plateau of the smallest delta would take half of the panel.
        high = min(float(values.max()), 1e6)
        look.log_axis(axes, "x", _EPS[0], _EPS[-1], most=4)
        look.log_axis(axes, "y", float(values.min()) / 1.5, high * 1.5)
        for curve, color in zip(values, _COLORS, strict=True):
            axes.plot(_EPS, curve, color=color)
        if name == "sigma":
            limit = 1 / np.sqrt(2 * _EPS)
            axes.plot(_EPS, limit, color=look.GREY, linestyle=":", linewidth=0.8)
        axes.set_xlabel(r"privacy parameter $\varepsilon$")
        axes.set_title(text, loc="left")
    ends = [float(v) for v in made.threshold[:, -1]]
    words = [rf"$\delta=10^{{{round(np.log10(d))}}}$" for d in _DELTAS]
    label_right(panels[1], [Label(w, e, c) for w, e, c in zip(words, ends, _COLORS, strict=True)])
    panels[0].annotate(
        r"$1/\sqrt{2\varepsilon}$",
        (_EPS[20], 1 / np.sqrt(2 * _EPS[20])),
        xytext=(-4, -6),
        textcoords="offset points",
        ha="right",
        va="top",
        color=look.GREY,
    )
    columns = {
        "eps": np.ravel(made.eps),
        "delta": np.ravel(made.delta),
        "sigma": np.ravel(made.sigma),
        "threshold": np.ravel(made.threshold),
    }
    return figure, pl.DataFrame(columns)
