"""What the drawings and captions of top-k and hitting sets have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from experiments.figures.selection_rows import FEATURED
from experiments.figures.words import data_in, headings

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


def draw_selections(
    frame: pl.DataFrame, *, eps: float, metrics: Sequence[str], rivals: Sequence[str]
) -> tuple[Figure, pl.DataFrame]:
    """Losses of all methods, and leads over the hardest of some rivals.

    Args:
        frame: From `selection_rows`.
        eps: Privacy parameter.
        metrics: Metrics, in order.
        rivals: Labels of the methods that leads are over.
    """
    import polars as pl

    from experiments.plots.selection_panels import selection_panels

    order = pl.Enum(list(metrics))
    rows = (
        frame.filter((pl.col("eps") == eps) & pl.col("metric").is_in(list(metrics)))
        .with_columns(pl.col("metric").cast(order).alias("_order"))
        .sort("_order", maintain_order=True)
        .drop("_order")
    )
    keys = ["dataset", "metric", "method", "k"]
    leads = (
        rows.filter((pl.col("role") == "ahead") & pl.col("rival").is_in(list(rivals)))
        .sort("mean", maintain_order=True)
        .unique(keys, keep="first", maintain_order=True)
    )
    return selection_panels(
        rows.filter(pl.col("role").is_in(["method", "least", "nothing"])),
        leads,
        featured=FEATURED,
        titles=headings(),
    )


def settings_in_words(frame: pl.DataFrame) -> str:
    """Data, delta, Delta0, trials and seed."""
    import polars as pl

    seen = frame.filter(pl.col("role") == "method")
    trials: dict[int, list[str]] = {}
    for name, count in seen.select("dataset", "trials").unique(maintain_order=True).iter_rows():
        trials.setdefault(count, []).append(name)
    common = max(trials, key=lambda count: len(trials[count]))
    rest = [
        f"{count:,} on {', '.join(names)}" for count, names in trials.items() if count != common
    ]
    seeds = ", ".join(map(str, seen["seed"].unique().sort()))
    return (
        f"Data: {data_in(seen)}. "
        f"δ = {seen['delta'][0]:g}, Δ0 = {seen['max_items_per_user'][0]}, half of ε and of δ for "
        f"the domain; {common:,} trials{''.join(f', {each}' for each in rest)}; seed {seeds}."
    )


READING = (
    "Bars: 95 % intervals of the mean. Large panels: the data sets of the paper's panels; below "
    "each the lead, the points that {rival} loses more, paired over trials (linear within 0.1, "
    "logarithmic beyond; shaded where negative). Further panels: the other data sets. Every panel "
    "has its own scale, which never ends below 1 %."
)
