"""`wgm sweep`: a grid of cells, resumable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli._options import OutputOptions, grouped
from experiments.cli._output import (
    err,
    hint,
    name_text,
    number,
    out,
    percent,
    print_json,
    progress,
    say,
    table,
    warn,
)

if TYPE_CHECKING:
    from experiments.sweep import Grid, SweepResult

_ROWS_SHOWN = 40
# Shown where they differ between rows.
_SETTINGS = ("kind", "mechanism", "method", "delta", "seed")


@grouped
def sweep(
    grid: Annotated[
        Path, typer.Argument(metavar="GRID.toml", help="The grid; docs/sweeps.md lists its keys.")
    ],
    *,
    out_folder: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Results folder; default results/sweep-GRID."
        ),
    ] = None,
    keep_trials: Annotated[
        bool, typer.Option("--keep-trials", help="Also store the numbers of every trial.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Go on in a folder of another grid or another version."),
    ] = False,
    processes: Annotated[
        int, typer.Option(metavar="P", help="Worker processes to start on this host.")
    ] = 1,
    worker: Annotated[
        str | None,
        typer.Option(
            metavar="I/P",
            help="This is command I (from 0) of P that share DIR: where in the grid to begin.",
        ),
    ] = None,
    devices: Annotated[
        str,
        typer.Option(metavar="all|N", help="JAX devices of each process that share the trials."),
    ] = "all",
    output: OutputOptions,
) -> None:
    """Simulate every cell of a grid; run it again to go on where it stopped.

    A cell that fails is recorded and the others go on; then the exit status is 1. The merged table
    is written as results.parquet and results.csv. The same command may run several times at once,
    also on several hosts that share DIR: they divide the cells.

    Example: wgm sweep grid.toml --out results/grid
    """
    from experiments.loading.errors import DataError
    from experiments.sweep import load_grid, sweep
    from experiments.sweep.simulation import Simulation
    from theory import InvalidInput

    try:
        cells = load_grid(grid)
    except InvalidInput as error:
        what = error.accepted if error.name == "grid" else str(error)
        raise DataError(str(grid), what) from None
    folder = out_folder if out_folder is not None else Path("results") / f"sweep-{grid.stem}"
    with progress("sweeping", quiet=output.quiet) as update:
        try:
            result = sweep(
                cells,
                folder,
                measure=Simulation(keep_trials=keep_trials, devices=_devices(devices)),
                keep_trials=keep_trials,
                accept_other_version=force,
                processes=processes,
                worker=_worker(worker),
                progress=update,
            )
        except InvalidInput as error:
            accepted = error.accepted.replace("accept it (accept_other_version)", "use --force")
            raise InvalidInput(error.name, error.value, accepted) from None
    for note in result.notes:
        warn(note)
    if output.json:
        print_json(_entries(cells, result))
    else:
        _print(result, quiet=output.quiet)
    if not result.ok:
        raise typer.Exit(1)


def _worker(text: str | None) -> tuple[int, int]:
    from theory._check import invalid

    index, slash, count = (text or "0/1").partition("/")
    if not (slash and index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        invalid("worker", text, "must be I/P, with I from 0 to P - 1")
    return int(index), int(count)


def _devices(text: str) -> int | None:
    from theory._check import invalid

    if text == "all":
        return None
    if not text.isdecimal() or not int(text):
        invalid("devices", text, "must be all, or a whole number of at least 1")
    return int(text)


def _entries(grid: Grid, result: SweepResult) -> dict[str, Any]:
    return {
        "folder": str(result.folder),
        "table": str(result.table) if result.table is not None else None,
        "grid": grid.name,
        "cells": result.total,
        "computed": result.computed,
        "skipped": result.skipped,
        "failed": len(result.failures),
        "failures": [{"cell": f.cell, "label": f.label, "error": f.error} for f in result.failures],
        "samplers": list(result.samplers),
        "notes": list(result.notes),
        "ok": result.ok,
    }


def _print(result: SweepResult, *, quiet: bool) -> None:
    if result.table is not None:
        _print_table(result.table)
    failed = len(result.failures)
    say(
        f"{result.total} cells: {result.computed} computed, {result.skipped} found complete, "
        f"{failed} failed. Results: {result.folder}",
        style="bold",
    )
    for failure in result.failures:
        err.print(f"failed: {failure.label}: {failure.error}", markup=False, soft_wrap=True)
    if failed:
        hint("Next: the same command computes the failed cells again", quiet=quiet)


def _print_table(path: Path) -> None:
    import polars as pl

    frame = pl.read_parquet(path)
    told = [name for name in _SETTINGS if name in frame.columns and frame[name].n_unique() > 1]
    numbers = ("Δ0", "ε", "mean", "95 %", "[L2] ≥", "[U2*] ≤", "[U3] ≤")
    made = table("data set", *told, *numbers, left=1 + len(told))
    made.columns[0].no_wrap = True
    names = _short_names(frame["dataset"].to_list()) if "dataset" in frame.columns else {}
    for row in frame.head(_ROWS_SHOWN).iter_rows(named=True):
        count = row.get("max_items_per_user")
        uppers = (row.get("upper_instance_star"), row.get("upper_zipf"))
        made.add_row(
            name_text(names.get(str(row.get("dataset")), ""), 26),
            *(name_text(row[name], 20) for name in told),
            f"max {count}" if row.get("max_items_is_max") else number(count),
            f"{row['eps']:g}",
            percent(row.get("mm_mean")),
            percent(row.get("mm_q95")),
            percent(row.get("lower_instance")),
            *("vacuous" if u is not None and u >= 1 else percent(u) for u in uppers),
        )
    out().print(made)
    if frame.height > _ROWS_SHOWN:
        say(f"… and {frame.height - _ROWS_SHOWN:,} more rows in {path}")


def _short_names(names: list[str]) -> dict[str, str]:
    """`kind(a=1, b=2)` without the settings that all of a kind share."""
    parts = {name: re.fullmatch(r"(\w+)\((.*)\)", name) for name in names}
    shared: dict[str, set[str]] = {}
    for match in parts.values():
        if match is not None:
            settings = set(match[2].split(", "))
            shared[match[1]] = shared.get(match[1], settings) & settings
    short = {}
    for name, match in parts.items():
        own = (
            [] if match is None else [p for p in match[2].split(", ") if p not in shared[match[1]]]
        )
        values = " ".join(part.removeprefix("set_sizes=") for part in own)
        short[name] = values or (name if match is None else match[1])
    return short


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sweep")(sweep)
