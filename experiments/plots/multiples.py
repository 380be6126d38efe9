"""Small multiples: one panel for each of several data sets."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.plots import style as look


def multiples(
    count: int, *, height: float, columns: int | None = None, share: bool = True
) -> tuple[Figure, list[Axes], list[Axes]]:
    """Panels for `count` things over the width of a page.

    Args:
        count: Number of panels.
        height: Height of one row, inches.
        columns: Columns; by default three or four, whichever leaves fewer places over.
        share: Whether all panels share both axes.

    Returns:
        The figure; the panels row by row, the lowest of each column with tick labels; and the
        places left over, which show nothing.

    Example:
        >>> figure, panels, empty = multiples(5, height=1.5)
        >>> len(panels), len(empty), figure.get_size_inches()
        (5, 1, array([6.8, 3. ]))
    """
    wide = columns or (min(count, 4) if count <= 4 or -count % 4 <= -count % 3 else 3)
    rows = -(-count // wide)
    width = {1: look.COLUMN, 2: 5.2}.get(wide, look.PAGE)
    figure, axes = look.subplots(rows, wide, height=height, width=width, share=share)
    for axis in axes[count:]:
        axis.set_axis_off()
    for axis in axes[max(count - wide, 0) : count]:
        axis.tick_params(labelbottom=True)
    return figure, axes[:count], axes[count:]


def set_heading(axis: Axes, name: str, titles: Mapping[str, str]) -> None:
    """Name of the panel's data, or what `titles` calls them; the further lines of that smaller."""
    first, *more = titles.get(name, name).split("\n")
    if not more:
        axis.set_title(look.literal(first))
        return
    axis.set_title(look.literal(first), pad=14)
    axis.annotate(
        "\n".join(look.literal(line) for line in more), (0.5, 1), (0, 4.5),
        xycoords="axes fraction", textcoords="offset points", ha="center", va="bottom",
        fontsize=6.5, color=look.GREY, annotation_clip=False,
    )  # fmt: skip
