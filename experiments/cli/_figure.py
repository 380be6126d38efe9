"""`wgm figure`: the paper's figures and more, from data sets that are present."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli._options import OutputOptions, Seed, grouped
from experiments.cli._output import hint, out, print_json, progress, say, table, warn

if TYPE_CHECKING:
    from experiments.figures.making import Made
    from experiments.figures.record import FigureSpec

_MOST_PROCESSES = 256


@grouped
def figure(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Numbers of the paper's figures, other names, or all. Without: the list of names.",
            show_default=False,
        ),
    ] = None,
    *,
    data_folder: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Folder with one folder per data set, named as its preset.",
            show_default="WGM_DATA",
        ),
    ] = None,
    preset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="P[,P...]",
            help="Only these data sets. Default: all that are present.",
            show_default=False,
        ),
    ] = None,
    trials: Annotated[
        float | None,
        typer.Option(
            metavar="R", help="Number of trials.", show_default="each figure's own, 20 or more"
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", metavar="J", help="Worker processes.", show_default="1")
    ] = 1,
    out_folder: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder to write results to.")
    ] = Path("results/figures"),
    output: OutputOptions,
) -> None:
    """Figures of the paper, reproduced and judged, and more: SVG, PDF, numbers, captions.

    Numbers are kept in the folder: called again, also after a kill, it computes only what is
    missing. Every sentence of the paper that a figure can judge goes to statements.md.

    Example: wgm figure all --data ~/data --jobs 2 --out results/figures
    """
    from experiments.figures.registry import chosen, figures
    from theory._check import check_count

    if not names:
        _print_names(figures(), json=output.json)
        return
    specs = chosen(names)
    num_trials = None if trials is None else check_count("num_trials", trials, maximum=10**6)
    seed = check_count("seed", seed, minimum=0, maximum=2**63 - 1)
    jobs = check_count("jobs", jobs, maximum=_MOST_PROCESSES)
    asked = [name.strip() for name in ",".join(preset or []).split(",") if name.strip()]

    from experiments.figures.data import absent, sources
    from experiments.figures.making import make_figures
    from experiments.sweep.store import writable_folder
    from theory._check import invalid

    found = sources(data_folder, asked or None)
    if not found and not any(spec.tasks([], num_trials or spec.trials, seed) for spec in specs):
        where = "WGM_DATA, or --data DIR," if data_folder is None else str(data_folder)
        invalid("NAME", " ".join(names), f"needs data sets: {where} must hold one folder for each")
    writable_folder(out_folder)
    with progress("figures", quiet=output.quiet) as update:
        made = make_figures(
            specs,
            out_folder,
            sources=found,
            missing=absent(data_folder),
            trials=num_trials,
            seed=seed,
            jobs=jobs,
            progress=update,
        )
    for error in dict.fromkeys(made.failed.values()):
        warn(error)
    if made.older:
        warn(
            f"{made.older:,} files in {out_folder / 'numbers'} are by another state of the code; "
            "to make them anew, delete them"
        )
    if output.json:
        print_json(_entries(made, out_folder))
    else:
        _print(made, out_folder)
        hint(f"Next: wgm report {out_folder}", quiet=output.quiet)
    if made.failed:
        raise typer.Exit(1)


def _entries(made: Made, folder: Path) -> dict[str, Any]:
    return {
        "out": str(folder),
        "figures": [each.to_dict() for each in made.drawn],
        "statements": made.statements,
        "left_out": made.left_out,
        "missing": made.missing,
        "failed": made.failed,
        "tasks_run": made.ran,
        "files": [str(file) for file in made.files],
    }


# ---- words


def _print_names(specs: tuple[FigureSpec, ...], *, json: bool) -> None:
    """What there is to ask for."""
    if json:
        told = [{"name": s.name, "stem": s.stem, "title": s.title, "paper": s.paper} for s in specs]
        print_json({"figures": told})
        return
    made = table("name", "figure", left=2)
    for spec in specs:
        made.add_row(spec.name, spec.title)
    made.add_row("all", "every one of them")
    out().print(made)


def _print(made: Made, folder: Path) -> None:
    rows = made.statements
    if rows:
        from rich.text import Text

        console = out()
        told = table("verdict", "statement and numbers", left=2)
        for row in rows:
            words = Text(f"{row['source']}: {row['says']}\n")
            told.add_row(Text(row["verdict"]), words + Text(row["number"], style="dim"))
        console.print(told)
        say("")
    reasons: dict[str, list[str]] = {}
    for name, reason in made.left_out.items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        say(f"Left out, {reason}: {', '.join(names)}.")
    if made.missing:
        say(f"Data sets not present: {', '.join(made.missing)}.")
    stems = ", ".join(each.spec.stem for each in made.drawn)
    say(f"Files in {folder}:")
    if stems:
        say(f"  {stems} (.svg .pdf .csv .parquet)")
    say("  statements (.md .csv .parquet), manifest.json, numbers/")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("figure")(figure)
