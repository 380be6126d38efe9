"""Writing a figure: vector files, and the plotted numbers beside them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from matplotlib.figure import Figure

from experiments.plots.style import styled
from experiments.sweep.store import write_atomic
from theory._check import invalid

# Nothing of the moment or the machine: equal plots are equal files.
_METADATA = {
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
    "png": {},
}


@styled
def save(
    figure: Figure,
    path_stem: Path | str,
    data: pl.DataFrame,
    formats: Sequence[str] = ("svg", "pdf"),
) -> list[Path]:
    """Write a figure and its plotted numbers, each file complete or not at all.

    Args:
        figure: From one of the plot functions.
        path_stem: Path without suffix; "mm_s1.5" gives "mm_s1.5.svg". The folder must exist.
        data: The plotted numbers, written as CSV.
        formats: Any of "svg", "pdf", "png" (300 dpi).

    Returns:
        The written paths, the CSV last.

    Raises:
        InvalidInput: Another format.

    Example:
        >>> import tempfile
        >>> from experiments.plots import set_size_ecdf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     figure, plotted = set_size_ecdf([1, 1, 3])
        ...     written = save(figure, Path(folder, "sizes"), plotted, formats=["svg"])
        >>> [path.name for path in written]
        ['sizes.svg', 'sizes.csv']
    """
    for name in formats:
        if name not in _METADATA:
            invalid("format", name, "must be svg, pdf or png")
    stem = Path(path_stem)
    written = []
    for name in formats:
        buffer = io.BytesIO()
        figure.savefig(buffer, format=name, metadata=_METADATA[name])
        written.append(_write(stem, name, buffer.getvalue()))
    written.append(_write(stem, "csv", data.write_csv().encode()))
    return written


def _write(stem: Path, suffix: str, content: bytes) -> Path:
    path = stem.with_name(f"{stem.name}.{suffix}")
    write_atomic(path, content)
    return path
