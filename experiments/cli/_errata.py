"""`wgm errata`: what is printed and false, with counterexamples computed on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli._options import OutFolder, OutputOptions, grouped
from experiments.cli._output import hint, out, print_json, progress, say, table

if TYPE_CHECKING:
    from experiments.errata import Finding


@grouped
def errata(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Which errata: a number such as 1 or 5a, or a claim's name. All.",
            show_default=False,
        ),
    ] = None,
    *,
    out_folder: OutFolder = None,
    output: OutputOptions,
) -> int:
    """Errata of the paper and of published code: counterexample, printed and corrected numbers.

    Everything is computed on the spot, by exact arithmetic. With --out the list is also written
    as Markdown, LaTeX, Parquet and CSV, with a manifest. Exit status 1 if one of them fails.

    Example: wgm errata 1a 7
    """
    import time

    from experiments.errata import examine_erratum, select_errata
    from experiments.errata.document import record

    start = time.perf_counter()
    chosen = select_errata(names or [])
    if out_folder is not None:
        from experiments.sweep.store import writable_folder

        writable_folder(out_folder)
    found: list[Finding] = []
    with progress("computing", quiet=output.quiet) as update:
        for done, erratum in enumerate(chosen):
            update(done, len(chosen), erratum.where)
            found.append(examine_erratum(erratum))
        update(len(chosen), len(chosen))
    seconds = time.perf_counter() - start
    status = 0 if all(finding.demonstrated for finding in found) else 1
    told = {"errata": [record(finding) for finding in found], "seconds": seconds, "status": status}
    files = [] if out_folder is None else _write(out_folder, found, told)
    if output.json:
        print_json({**told, **({"files": files} if files else {})})
        return status
    for finding in found:
        _print(finding)
    say(f"{_closing(found)} {seconds:.1f} s.")
    if files:
        say("Files: " + " ".join(files))
    hint("Next: wgm errata --out DIR · wgm claims · wgm audit all", quiet=output.quiet)
    return status


def _print(finding: Finding) -> None:
    from rich.text import Text

    from experiments.errata.document import cases, counted, notes, says, texts, true_number
    from experiments.report.formulas import symbols

    erratum, console = finding.erratum, out()
    verdict = "refuted" if finding.demonstrated else "NOT SHOWN"
    say(f"{erratum.number} · {symbols(erratum.where)} · {verdict}", style="bold")
    words = table("", "", left=2)
    words.show_header = False
    for name, text in texts(finding).items():
        words.add_row(f"  {name}", Text(text))
    if erratum.see:
        words.add_row("  see", erratum.see)
    console.print(words)
    numbers = table("", "case", "says", "true", "verdict", left=2)
    for form in ("as printed", "corrected"):
        rows = [row for row in finding.rows if row.form == form]
        for place, (row, case) in enumerate(zip(rows, cases(rows), strict=True)):
            name = f"  {form}" if place == 0 else ""
            style = "" if row.verdict != "vacuous" else "dim"
            numbers.add_row(name, Text(case), says(row), true_number(row), row.verdict, style=style)
    console.print(numbers)
    for note in notes(finding.rows):
        say(f"  {note}")
    say(f"  {counted(finding)}", "")


def _closing(found: list[Finding]) -> str:
    good = sum(finding.demonstrated for finding in found)
    if good == len(found):
        which = "The erratum is" if good == 1 else f"All {good} errata are"
        return f"{which} shown by a counterexample, and what corrects {_them(good)} holds."
    failed = [finding.erratum.number for finding in found if not finding.demonstrated]
    return f"{good} of {len(found)} errata are shown; not: {', '.join(failed)}."


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def _write(folder: Path, found: list[Finding], told: dict[str, Any]) -> list[str]:
    from experiments.errata import errata_table, findings_frame, markdown_page
    from experiments.report import latex
    from experiments.sweep.store import manifest, write_atomic, write_json

    frame = findings_frame(found)
    write_atomic(folder / "errata.md", markdown_page(found).encode())
    write_atomic(folder / "errata.tex", latex(errata_table(found)).encode())
    write_atomic(folder / "errata.parquet", frame.write_parquet)
    write_atomic(folder / "errata.csv", frame.write_csv)
    names = [f"errata.{suffix}" for suffix in ("md", "tex", "parquet", "csv")]
    settings = {"errata": [finding.erratum.number for finding in found]}
    write_json(
        folder / "manifest.json",
        manifest("errata", settings=settings, seconds=round(told["seconds"], 1), files=names,
                 errata=told["errata"]),
    )  # fmt: skip
    return [str(folder / name) for name in [*names, "manifest.json"]]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("errata")(errata)
