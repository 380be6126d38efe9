"""What a user sees: tables on stdout, progress and hints on stderr, JSON for scripts."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table
from rich.text import Text

from experiments.plain import plain


def _console(*, stderr: bool = False) -> Console:
    """A console that writes no escape code with NO_COLOR set, not even for bold."""
    plain_text = bool(os.environ.get("NO_COLOR"))
    return Console(stderr=stderr, highlight=False, color_system=None if plain_text else "auto")


err = _console(stderr=True)


def out() -> Console:
    """Console on stdout; made late so that tests and pipes see their own stream."""
    return _console()


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
    # Labels may hold anything, so plain ASCII: no terminal or pipe can fail on it.
    sys.stdout.write(json.dumps(plain(value), allow_nan=False) + "\n")


def table(*headers: str, title: str | None = None, left: int = 1) -> Table:
    """A plain table: the first `left` columns flush left, numbers flush right."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for index, header in enumerate(headers):
        text = index < left
        # Where the console is too narrow, words wrap and numbers do not.
        made.add_column(header, justify="left" if text else "right", no_wrap=not text)
    return made


def number(value: float | int | None, digits: int = 4) -> str:
    """A number at reading precision; a dash for none."""
    if value is None or math.isnan(value):
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) < 1e-12:  # rounding noise of an exact 0
        return "0"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.{digits}g}" if abs(value) < 1e6 else f"{value:.{digits - 1}e}"


def percent(value: float | None) -> str:
    """A share in per cent, three significant digits; what is below 1 never reads as 100 %."""
    if value is None or math.isnan(value):
        return "–"
    if 0.99 <= value < 1:
        return f"{math.floor(1e4 * value) / 100:.2f} %"
    return f"{100 * value:#.3g}".rstrip(".") + " %" if value else "0 %"


def say(*lines: str, style: str = "") -> None:
    """Results in words on stdout, wrapped at spaces; nothing in them is taken for markup."""
    console = out()
    for line in lines:
        console.print(Text(line, style=style), soft_wrap=not console.is_terminal)


def name_text(name: object, width: int = 30) -> Text:
    """A name from the data for a table: no markup, no control characters, not too long."""
    shown = str(name).encode("utf-8", "backslashreplace").decode()
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown)
    return Text(shown if len(shown) <= width else shown[: width - 1] + "…")


def warn(text: str) -> None:
    """A warning on stderr, also with --quiet."""
    sys.stderr.write(f"wgm: warning: {text}\n")


def hint(text: str, *, quiet: bool) -> None:
    """A line of advice on stderr."""
    if not quiet:
        err.print(text, markup=False, soft_wrap=not err.is_terminal)


def warn_about_delta(delta: float, num_users: int) -> None:
    """A delta of 1/users or more lets a mechanism publish somebody's whole set."""
    if delta * num_users >= 1:
        warn(
            f"δ × users = {delta * num_users:.3g} ≥ 1: so large a δ allows publishing a random "
            f"user's data; take δ well below {1 / num_users:.1g}"
        )
