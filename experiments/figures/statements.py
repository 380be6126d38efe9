"""The table of statements: what the paper says, what became of it, and the deciding number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.figures.record import VERDICTS, Statement

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("figure", "source", "says", "verdict", "number", "note")


def statement_rows(found: Mapping[str, Sequence[Statement]]) -> list[dict[str, Any]]:
    """One row per statement, with the name of its figure.

    Args:
        found: Name of a figure -> its statements.
    """
    return [{"figure": name, **each.to_dict()} for name, those in found.items() for each in those]


def statement_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """The rows as a table of texts; without any, an empty table with the same columns."""
    import polars as pl

    return pl.DataFrame(list(rows), schema=dict.fromkeys(COLUMNS, pl.String))


def statement_markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    r"""The rows as a Markdown table, and how many came out how.

    Example:
        >>> row = dict.fromkeys(COLUMNS, "a|b") | {"verdict": "reproduced"}
        >>> print(statement_markdown([row]).splitlines()[4])
        | a\|b | a\|b | **reproduced** | a\|b. a\|b |
    """
    counts = [(name, sum(row["verdict"] == name for row in rows)) for name in VERDICTS]
    lines = [
        ", ".join(f"{count} {name}" for name, count in counts) + ".",
        "",
        "| where | the paper says | verdict | numbers |",
        "|---|---|---|---|",
    ]
    for row in rows:
        cells = (
            row["source"],
            row["says"],
            f"**{row['verdict']}**",
            f"{row['number']}. {row['note']}",
        )
        lines.append("| " + " | ".join(_cell(cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
