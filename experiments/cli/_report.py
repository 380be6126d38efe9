"""`wgm report`: a results folder as one HTML file, and its tables for papers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from experiments.cli._options import OutputOptions, check_output, grouped
from experiments.cli._output import hint, print_json, say

if TYPE_CHECKING:
    from experiments.report import Table

_File = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the tables there.")]


@grouped
def report(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="Folder that a command has written.")
    ],
    *,
    html: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.html",
            help="File to write.",
            show_default="report.html in RESULTS",
        ),
    ] = None,
    markdown: _File = None,
    latex: _File = None,
    tables: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Each table as Markdown and LaTeX in this folder."),
    ] = None,
    output: OutputOptions,
) -> None:
    """One HTML file from a results folder: verdicts, ladders, figures, settings, glossary.

    It holds all it shows and loads nothing, so it can be mailed, archived and printed.

    Example: wgm report results/verify-20260101-120000
    """
    from experiments.report import Content, headline_of, read_results, render
    from experiments.report.writing import PAGE
    from experiments.sweep.store import writable_folder, write_atomic

    folder = read_results(results)
    page = results / PAGE if html is None else html
    for name, file in (("output", page), ("markdown", markdown), ("latex", latex)):
        check_output(name, file)
    content = Content.of(folder)
    made = {page: render(content)}
    found = content.tables()
    for file, form in ((markdown, "md"), (latex, "tex")):
        if file is not None:
            made[file] = "\n".join(_written(table, form) for table in found)
    if tables is not None:
        writable_folder(tables, "tables")
        for table in found:
            for form in ("md", "tex"):
                made[tables / f"{table.slug}.{form}"] = _written(table, form)
    for file, text in made.items():
        write_atomic(file, text.encode("utf-8", "replace"))
    said, size = headline_of(content), page.stat().st_size
    if output.json:
        files = [str(file) for file in made]
        print_json({"report": str(page), "headline": said, "bytes": size, "files": files})
        return
    say(f"{said}.", f"Report: {page} ({size / 1e6:.1f} MB)")
    if len(made) > 1:
        say(f"Tables: {' '.join(str(file) for file in made if file != page)}")
    hint("It needs no network: open it in any browser.", quiet=output.quiet)


def _written(table: Table, form: str) -> str:
    from experiments.report import latex, markdown

    return markdown(table) if form == "md" else latex(table)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)
