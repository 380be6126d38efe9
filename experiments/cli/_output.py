"""What a user sees: tables on stdout, progress and hints on stderr, JSON for scripts."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
from rich.console import Console
from rich.table import Table

err = Console(stderr=True, highlight=False)


def out() -> Console:
    """Console on stdout; made late so that tests and pipes see their own stream."""
    return Console(highlight=False)


class Progress(Protocol):
    """Says how far a command is."""

    def __call__(self, done: int, total: int, label: str = "", /) -> None: ...


@contextmanager
def progress(label: str, *, quiet: bool) -> Iterator[Progress]:
    """A bar on stderr, shown only on a terminal and without --quiet."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[what]}[/dim]", markup=True),
    )
    hidden = quiet or not err.is_terminal
    with Bar(*columns, console=err, disable=hidden, transient=False) as bar:
        task = bar.add_task(label, total=None, what="")

        def update(done: int, total: int, what: str = "", /) -> None:
            bar.update(task, completed=done, total=total, what=what.replace("[", r"\["))

        yield update


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on stdout; NaN and infinity become null."""
    sys.stdout.write(json.dumps(_plain(value), ensure_ascii=False, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def table(*headers: str, title: str | None = None, left: int = 1) -> Table:
    """A plain table: the first `left` columns flush left, numbers flush right."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for index, header in enumerate(headers):
        made.add_column(header, justify="left" if index < left else "right")
    return made


def number(value: float | int | None, digits: int = 4) -> str:
    """A number at reading precision; a dash for none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    return f"{value:.{digits}g}" if abs(value) < 1e6 else f"{value:.{digits - 1}e}"


def percent(value: float | None) -> str:
    """A share in per cent, three significant digits."""
    return "–" if value is None or math.isnan(value) else f"{100 * value:.3g} %"


def hint(text: str, *, quiet: bool) -> None:
    """A line of advice on stderr."""
    if not quiet:
        err.print(text, markup=False)
