"""The page of a folder, written into it."""

from __future__ import annotations

from pathlib import Path

from experiments.report.page import Content, render
from experiments.report.results import read_results
from experiments.sweep.store import write_atomic

PAGE = "report.html"


def write_page(folder: Path) -> Path:
    """Write `report.html` into a results folder.

    Args:
        folder: With its manifest, complete.

    Returns:
        The file.

    Raises:
        InvalidInput: The folder is not complete, or a file in it cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     _ = Path(name, "manifest.json").write_text('{"command": "simulate"}')
        ...     write_page(Path(name)).name
        'report.html'
    """
    page = folder / PAGE
    text = render(Content.of(read_results(folder)))
    write_atomic(page, text.encode("utf-8", "replace"))
    return page
