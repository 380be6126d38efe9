"""What results look like in a notebook: one small table, everything in it escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

_MOST_ROWS = 20


def notebook_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], note: str = ""
) -> str:
    """HTML for a `_repr_html_`; of long tables the first 20 rows.

    Args:
        title: Line above the table.
        columns: Heads.
        rows: Values; numbers are shown with four digits.
        note: Line below the table.

    Example:
        >>> print(notebook_table("<T>", ("name", "value"), [("a", 0.123456)]))
        <table><caption>&lt;T&gt;</caption><thead><tr><th>name</th><th>value</th></tr></thead>
        <tbody><tr><td>a</td><td>0.1235</td></tr></tbody></table>
    """
    every = list(rows)
    shown = every[:_MOST_ROWS]
    if len(every) > len(shown):
        note = f"{len(every) - len(shown):,} more rows. {note}".strip()
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(_text(value))}</td>' for value in row)}</tr>"
        for row in shown
    )
    below = f"<p>{html.escape(note)}</p>" if note else ""
    return (
        f"<table><caption>{html.escape(title)}</caption><thead><tr>{head}</tr></thead>\n"
        f"<tbody>{body}</tbody></table>{below}"
    )


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    return str(value)
