"""Errata as words: the case of a row, a table for papers, and a page of documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.cli._output import number
from experiments.errata.findings import Finding, Row
from experiments.report.formulas import symbols
from experiments.report.labels import heading, shown
from experiments.report.tables import Table, markdown, markdown_text

if TYPE_CHECKING:
    import polars as pl

FORMS = ("as printed", "corrected")
_STANDARD = ("delta", "beta")  # of every cell, or said in the counterexample
_WORDS = ("dataset", "mechanism", "shape", "users")


def cases(rows: Sequence[Row]) -> list[str]:
    """What tells rows of one kind apart; of a single row all that it says but δ and β.

    Example:
        >>> rows = [Row("", {"k": k, "eps": 1.0}, "≤", 0.0, 0.0, "proved", "") for k in (1, 2)]
        >>> cases(rows), cases(rows[:1])
        (['k = 1', 'k = 2'], ['k = 1, ε = 1'])
    """
    made = []
    for row in rows:
        alike = [other.cell for other in rows if other.cell.keys() == row.cell.keys()]
        told = [
            _entry(name, value)
            for name, value in row.cell.items()
            if name not in _STANDARD
            and (len(alike) == 1 or any(cell[name] != value for cell in alike))
        ]
        made.append(", ".join(told) or "the same")
    return made


def _entry(name: str, value: Any) -> str:
    return symbols(value) if name in _WORDS else f"{heading(name)} = {shown(name, value)}"


def notes(rows: Sequence[Row]) -> list[str]:
    """What the numbers are, each note once; not the method of a certificate."""
    told = dict.fromkeys(row.note for row in rows if row.note and not row.note.startswith("["))
    return [symbols(note) for note in told]


def texts(finding: Finding) -> dict[str, str]:
    """The statements of an erratum, with symbols."""
    erratum = finding.erratum
    told = {
        "printed": erratum.claim.statement,
        "refuted by": erratum.claim.explicit,
        "cause": erratum.cause,
        "corrected": (erratum.same_instance or erratum.corrected).statement,
    }
    return {name: symbols(text) for name, text in told.items()}


def says(row: Row) -> str:
    """The number that a statement names, with its direction."""
    return f"{row.sign} {number(row.says)}"


def true_number(row: Row) -> str:
    """The number itself, which may be rounding noise of 0, or a delta far below the claimed one.

    Example:
        >>> true_number(Row("", {}, "≤", 1e-5, 3e-17, "proved", ""))
        '≈ 0'
    """
    return "≈ 0" if row.true and abs(row.true) < 1e-12 else number(row.true)


def errata_table(findings: Sequence[Finding]) -> Table:
    """One row per number, for a paper.

    Args:
        findings: From `examine_erratum`.

    Returns:
        A `Table` of texts.

    Example:
        >>> from experiments.errata import errata_table, examine_erratum, select_errata
        >>> findings = [examine_erratum(erratum) for erratum in select_errata(["1a"])]
        >>> errata_table(findings).rows[0][:2]
        ['1a', 'Lemma C.2']
    """
    rows = [
        [finding.erratum.number, finding.erratum.where, form, case, says(row), true_number(row),
         row.verdict]
        for finding in findings
        for form in FORMS
        for row, case in _with_cases(finding, form)
    ]  # fmt: skip
    return Table(
        name="errata",
        title="Errata: what is printed, what is true, and the corrected statement",
        columns=["", "where", "statement", "case", "says", "true", "verdict"],
        rows=rows,
        left=4,
        note="Exact numbers. Vacuous: the bound is 1 or more, true but empty there.",
    )


def findings_frame(findings: Sequence[Finding]) -> pl.DataFrame:
    """One row per number shown: number, where, form, case, sign, says, true, verdict, note.

    Args:
        findings: From `examine_erratum`.

    Returns:
        A table of numbers.

    Example:
        >>> from experiments.errata import findings_frame, examine_erratum, select_errata
        >>> findings = [examine_erratum(erratum) for erratum in select_errata(["1a"])]
        >>> findings_frame(findings).height == len(findings[0].rows)
        True
    """
    import polars as pl

    table = [
        {"number": finding.erratum.number, "where": finding.erratum.where, "form": form,
         "case": case, "sign": row.sign, "says": row.says, "true": row.true,
         "verdict": row.verdict, "note": symbols(row.note)}
        for finding in findings
        for form in FORMS
        for row, case in _with_cases(finding, form)
    ]  # fmt: skip
    return pl.DataFrame(table, infer_schema_length=None)


def _with_cases(finding: Finding, form: str) -> list[tuple[Row, str]]:
    rows = [row for row in finding.rows if row.form == form]
    return list(zip(rows, cases(rows), strict=True))


def markdown_page(findings: Sequence[Finding]) -> str:
    """The page `docs/errata.md`: each erratum with its statements and numbers.

    Args:
        findings: From `examine_erratum`.

    Returns:
        The page, in GitHub's Markdown.

    Example:
        >>> from experiments.errata import markdown_page, examine_erratum, select_errata
        >>> findings = [examine_erratum(erratum) for erratum in select_errata(["1a"])]
        >>> markdown_page(findings).startswith("#")
        True
    """
    lines = [
        "# Errata",
        "",
        "Statements of the paper, and of code published with this line of work, that are false as",
        "printed: each with its smallest counterexample, what went wrong, and a corrected",
        "statement that holds. δ = 1e-5 and β = 0.05 unless said. *True* is the exact number, of a",
        "statement about a quantile the quantile. *Vacuous*: a bound of 1 or more on a share is",
        "true and says nothing. None of the numbers is typed in: `wgm errata --out DIR` writes",
        "this page as `errata.md`, and a test compares the two.",
        "",
    ]
    for finding in findings:
        erratum = finding.erratum
        lines += [f"## {erratum.number}. {_plain(erratum.where)}", ""]
        names = {"printed": "Printed", "refuted by": "Counterexample", "cause": "Cause",
                 "corrected": "Corrected"}  # fmt: skip
        for name, text in texts(finding).items():
            lines += [f"- **{names[name]}.** {_plain(text)}"]
        lines += [""]
        table = Table(
            name=erratum.number, title="", columns=["", "case", "says", "true", "verdict"],
            rows=[
                [form, case, says(row), true_number(row), row.verdict]
                for form in FORMS
                for row, case in _with_cases(finding, form)
            ],
            left=2,
        )  # fmt: skip
        lines += markdown(table).splitlines()[2:]
        told = [f"{note}." for note in notes(finding.rows)]
        more = f" `{erratum.see}`" if erratum.see else ""
        lines += ["", f"{_plain(' '.join([*told, f'Cells {counted(finding)}.']))}{more}", ""]
    return "\n".join(lines)


def counted(finding: Finding) -> str:
    """How many cells were judged, also those that are not shown.

    Example:
        >>> from experiments.errata.entries import select_errata
        >>> from experiments.errata.findings import examine_erratum
        >>> counted(examine_erratum(select_errata(["1a"])[0]))
        'as printed: 2 refuted; corrected: 2 vacuous, 1 proved'
    """
    forms = zip(FORMS, (finding.printed, finding.corrected), strict=True)
    return "; ".join(
        f"{form}: {', '.join(f'{count} {verdict}' for verdict, count in counts.items())}"
        for form, counts in forms
    )


def _plain(text: str) -> str:
    return markdown_text(symbols(text))


def record(finding: Finding) -> Mapping[str, Any]:
    """One erratum for JSON and the manifest."""
    erratum = finding.erratum
    return {
        "number": erratum.number,
        "where": erratum.where,
        "claim": erratum.claim.name,
        "corrected_claim": erratum.corrected.name,
        **{name.replace(" ", "_"): text for name, text in texts(finding).items()},
        "cells": {"as_printed": dict(finding.printed), "corrected": dict(finding.corrected)},
        "demonstrated": finding.demonstrated,
        "rows": [
            {
                "form": row.form,
                "case": dict(row.cell),
                "sign": row.sign,
                "says": row.says,
                "true": row.true,
                "verdict": row.verdict,
                "note": row.note,
            }
            for row in finding.rows
        ],
    }
