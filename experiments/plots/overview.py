"""All verdicts at a glance: one bar of cells per claim."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from experiments.plots import style as look
from theory._check import invalid

# Colour, text colour and hatch; luminance falls from left to right, hatching marks "says nothing".
_LOOKS = {
    "proved": (look.BLUE, "white", ""),
    "confirmed": (look.SKY, "black", ""),
    "undecided": (look.YELLOW, "black", ""),
    "refuted": (look.VERMILLION, "white", ""),
    "vacuous": ("#FFFFFF", "black", "////"),
}


@look.styled
def verify_overview(frame: pl.DataFrame) -> tuple[Figure, pl.DataFrame]:
    """Share of each verdict among the cells of each claim; the numbers are counts of cells.

    Args:
        frame: Rows with claim and verdict, one per cell.

    Returns:
        The figure, and claim, verdict, cells and share, claims in the order given.

    Raises:
        InvalidInput: No rows, a missing column or an unknown verdict.

    Example:
        >>> rows = {"claim": ["theorem-3.3"] * 2, "verdict": ["proved", "confirmed"]}
        >>> figure, plotted = verify_overview(pl.DataFrame(rows))
        >>> plotted.filter(plotted["cells"] > 0).select("verdict", "cells", "share").rows()
        [('proved', 1, 0.5), ('confirmed', 1, 0.5)]
    """
    if frame.is_empty() or not {"claim", "verdict"} <= set(frame.columns):
        invalid("frame", frame.columns, "must hold rows with claim and verdict")
    unknown = set(frame["verdict"]) - _LOOKS.keys()
    if unknown:
        invalid("verdict", sorted(unknown)[0], f"must be one of {', '.join(_LOOKS)}")
    claims = frame["claim"].unique(maintain_order=True).to_list()
    rows = []
    for claim in claims:
        verdicts = frame.filter(pl.col("claim") == claim)["verdict"].to_list()
        rows += [
            {"claim": claim, "verdict": name, "cells": verdicts.count(name),
             "share": verdicts.count(name) / len(verdicts)}
            for name in _LOOKS
        ]  # fmt: skip
    data = pl.DataFrame(rows)
    figure, (axes,) = look.subplots(1, 1, height=0.8 + 0.19 * len(claims), width=4.8)
    for i, claim in enumerate(claims):
        left = 0.0
        for entry in data.filter(pl.col("claim") == claim).iter_rows(named=True):
            if not entry["cells"]:
                continue
            face, ink, hatch = _LOOKS[entry["verdict"]]
            axes.barh(
                i, entry["share"], left=left, height=0.72, color=face, hatch=hatch,
                edgecolor="#777777" if hatch else "white", linewidth=0.5, label=entry["verdict"],
            )  # fmt: skip
            if entry["share"] > 0.05:
                box = {"facecolor": face, "edgecolor": "none", "pad": 0.6} if hatch else None
                axes.text(
                    left + entry["share"] / 2, i, str(entry["cells"]), ha="center",
                    va="center_baseline", fontsize=6.5, color=ink, bbox=box,
                )  # fmt: skip
            left += entry["share"]
    axes.set_yticks(range(len(claims)), [look.literal(claim) for claim in claims])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(claims) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    axes.set_xlabel("share of cells (numbers: cells)")
    axes.spines["left"].set_visible(False)
    handles = [
        Patch(facecolor=face, hatch=hatch, edgecolor="#777777", linewidth=0.5, label=name)
        for name, (face, _, hatch) in _LOOKS.items()
        if name in set(frame["verdict"])
    ]
    look.key_above(figure, handles)
    return figure, data
