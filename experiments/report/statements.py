"""What the figures say of the paper: each statement, what became of it, and the deciding number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiments.report.results import Results
from experiments.report.tables import Table
from theory._check import invalid

if TYPE_CHECKING:
    import polars as pl

# Verdict of a statement: the mark it shares with verdicts on bounds.
MARKS = {"reproduced": "proved", "with reservation": "undecided", "not reproduced": "refuted"}
_COLUMNS = ("source", "says", "verdict", "number", "note")


@dataclass(frozen=True)
class StatementLine:
    """One statement of the paper.

    Attributes:
        source: Where the paper says it.
        says: What it says.
        verdict: "reproduced", "with reservation" or "not reproduced".
        number: The numbers that decide it.
        note: What else a reader should know.
        mark: Name of the verdict's mark on the page.
    """

    source: str
    says: str
    verdict: str
    number: str
    note: str
    mark: str


def statement_lines(results: Results) -> list[StatementLine]:
    """The statements of a folder of `wgm figure`; none in other folders.

    Raises:
        InvalidInput: The table of statements is not one.
    """
    frame = results.tables.get("statements")
    if results.command != "figure" or frame is None or not frame.width:
        return []
    return [_line(row) for row in _texts(frame)]


def errata_lines(results: Results) -> list[StatementLine]:
    """The errata of a folder of `wgm errata`, each as a statement; none in other folders."""
    entries = results.manifest.get("errata")
    if results.command != "errata" or not isinstance(entries, list):
        return []
    return [_erratum(entry) for entry in entries if isinstance(entry, dict)]


def _erratum(entry: Mapping[str, Any]) -> StatementLine:
    names = ("number", "where", "printed", "refuted_by", "cause", "corrected")
    texts = {name: str(entry.get(name) or "") for name in names}
    shown = entry.get("demonstrated") is True
    return StatementLine(
        source=f"{texts['number']}. {texts['where']}",
        says=texts["printed"],
        verdict="refuted" if shown else "not shown",
        number=f"Corrected: {texts['corrected']}",
        note=f"Counterexample: {texts['refuted_by']} Cause: {texts['cause']}",
        mark="refuted" if shown else "undecided",
    )


def _texts(frame: pl.DataFrame) -> list[dict[str, str]]:
    if missing := [name for name in _COLUMNS if name not in frame.columns]:
        invalid("RESULTS", "statements", f"must have the columns {', '.join(missing)}")
    return [
        {name: str(row[name] or "") for name in _COLUMNS} for row in frame.iter_rows(named=True)
    ]


def _line(row: dict[str, str]) -> StatementLine:
    if row["verdict"] not in MARKS:
        invalid("RESULTS", "statements", f"must hold verdicts {', '.join(MARKS)}")
    return StatementLine(**row, mark=MARKS[row["verdict"]])


def counts(lines: Sequence[StatementLine]) -> dict[str, int]:
    """Number of statements by verdict, without zeros."""
    found = {name: sum(line.verdict == name for line in lines) for name in MARKS}
    return {name: count for name, count in found.items() if count}


def statements_headline(lines: Sequence[StatementLine]) -> str:
    """How many statements are reproduced, in one sentence.

    Example:
        >>> line = StatementLine("Section 5", "WGM is best", "reproduced", "12 of 13", "", "proved")
        >>> statements_headline([line])
        'The one statement of the paper is reproduced'
    """
    if len(lines) == 1:
        return f"The one statement of the paper is {lines[0].verdict}"
    found = counts(lines)
    parts = [f"{found.get('reproduced', 0)} are reproduced"]
    parts += [f"{count} {name}" for name, count in found.items() if name != "reproduced"]
    return f"Of {len(lines)} statements of the paper {', '.join(parts)}"


def statements_table(lines: Sequence[StatementLine]) -> Table:
    """One row per statement, for a paper."""
    rows = [[line.source, line.says, line.verdict, line.number] for line in lines]
    return Table(
        "statements",
        "Statements of the paper, and what became of them",
        ["where", "statement", "verdict", "numbers"],
        rows,
        left=4,
    )
