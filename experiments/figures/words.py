"""Names of data sets as headings and in captions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from experiments.figures.data import DATA_SETS

if TYPE_CHECKING:
    import polars as pl


def headings() -> dict[str, str]:
    r"""Two lines for a panel: the preset, and what it stands for in the paper.

    Example:
        >>> headings()["steam"]
        'steam\nSteam Games'
    """
    return {name: f"{name}\n{each.paper}" for name, each in DATA_SETS.items()}


def data_in(frame: pl.DataFrame) -> str:
    """The data sets of a table in words, in the order of its rows.

    Example:
        >>> import polars as pl
        >>> data_in(pl.DataFrame({"dataset": ["steam", "mine", "steam"]}))
        'steam (Steam Games), mine'
    """
    names = frame["dataset"].unique(maintain_order=True).to_list()
    return ", ".join(DATA_SETS[name].title if name in DATA_SETS else name for name in names)
