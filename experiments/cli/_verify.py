"""`wgm verify`: the main job, from data or a default grid to verdicts and plots."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli._options import (
    EPS_HELP,
    MAX_ITEMS_HELP,
    Beta,
    DataOptions,
    Delta,
    Method,
    NumTrials,
    OutFolder,
    OutputOptions,
    Seed,
    check_output,
    contribution_bounds,
    grouped,
    numbers,
)
from experiments.cli._output import (
    hint,
    name_text,
    number,
    out,
    print_json,
    progress,
    say,
    table,
    warn,
    warn_about_delta,
)
from experiments.plain import plain

if TYPE_CHECKING:
    from rich.table import Table

    from experiments.verify import Outcome, Verification


@grouped
def verify(
    data: DataOptions,
    *,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|FILE",
            help="Claims to judge: a name, its beginning, or a Python file; repeatable. All.",
        ),
    ] = None,
    eps: Annotated[
        list[str] | None,
        typer.Option(metavar="E[,E...]", help=EPS_HELP, show_default="0.1,1"),
    ] = None,
    delta: Delta = 1e-5,
    beta: Beta = 0.05,
    max_items_per_user: Annotated[
        list[str] | None,
        typer.Option(metavar="K[,K...]", help=MAX_ITEMS_HELP, show_default="1,10,max"),
    ] = None,
    method: Method = "split",
    trials: NumTrials = 1000,
    max_trials: Annotated[
        float,
        typer.Option(
            metavar="R",
            help="Add trials to undecided claims, up to this many a cell.",
            show_default="no more",
        ),
    ] = 0,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Judge by exact means, laws and certificates; no trials."),
    ] = False,
    seed: Seed = 0,
    level: Annotated[
        float,
        typer.Option(metavar="A", help="Family-wise level of each kind of error, in (0, 0.5]."),
    ] = 0.01,
    out_folder: OutFolder = None,
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the verdicts as JUnit XML, for CI."),
    ] = None,
    output: OutputOptions,
) -> int:
    """Judge the paper's claims on a synthetic Zipfian grid, or on your data.

    Results (a report as one HTML file, verdicts and cells as Parquet and CSV, plots as SVG and PDF,
    a manifest) go to --out, by default a new folder under results/.

    Example: wgm verify ratings.csv --user-column user --item-column item
    """
    import numpy as np

    from experiments.claims import Settings, select
    from experiments.sweep.store import new_results_folder, writable_folder
    from experiments.verify import Case, beyond_memory, default_cases, verify_until_decided, write
    from theory import calibrate
    from theory._check import check_beta, check_count

    check_output("junit", junit)
    levels = numbers("eps", eps, [0.1, 1.0])
    asked = contribution_bounds(max_items_per_user, [1, 10, "max"])
    # Everything that can be wrong without the data is said before anything is read or written.
    calibrate(eps=np.array(levels), delta=delta, max_items_per_user=1, method=method)
    check_beta(beta)
    check_beta(level, "level")
    num_trials = 0 if exact else check_count("num_trials", trials, maximum=10**9)
    cap = check_count("max_trials", max_trials, minimum=0, maximum=0 if exact else 10**9)
    seed = check_count("seed", seed, minimum=0, maximum=2**63 - 1)
    chosen = select(claim or [])
    settings = Settings(tuple(levels), delta, beta, num_trials, seed)
    if data.given:
        cases = [Case(data.name, data.load(), {"kind": "file"})]
    else:
        cases = [*default_cases(seed), *(beyond_memory() if exact else [])]
    folder = (
        writable_folder(out_folder)
        if out_folder is not None
        else new_results_folder(Path("results"), "verify")
    )
    if data.given:  # synthetic users have nothing to lose
        warn_about_delta(delta, cases[0].data.num_users or 0)

    with progress("verifying", quiet=output.quiet) as update:
        result = verify_until_decided(
            cases,
            chosen,
            settings,
            max_trials=cap,
            max_items_per_user=asked,
            method=method,
            level=level,
            progress=update,
        )
    recorded = {
        "eps": levels,
        "delta": delta,
        "beta": beta,
        "max_items_per_user": asked,
        "method": method,
        "trials": num_trials,
        "max_trials": cap,
        "seed": seed,
        "level": level,
        "claims": [entry.name for entry in chosen],
        "data": data.settings if data.given else "default grid",
    }
    files = write(result, folder, settings=recorded)
    page = _write_page(folder)
    if page is not None:
        files.append(page.name)
    if junit is not None:
        _write_junit(junit, result, recorded)
    if output.json:
        print_json(_entries(result, folder, files))
        return result.status
    effort = "no trials: exact methods" if exact else f"{num_trials:,} trials a cell"
    say(
        f"WGM bound verification · {len(cases)} data set{'s' * (len(cases) > 1)} × "
        f"{len(asked)} Δ0 × {len(levels)} ε · {effort}",
        f"δ = {delta:g} · β = {beta:g} · level {100 * level:g} % (Holm) · {result.seconds:.0f} s",
        "",
    )
    _print(result)
    for note in _censored(result):
        warn(note)
    say(
        "",
        *_witnesses(result),
        _summary(result),
        f"Results: {folder}/ ({len(files)} files, see manifest.json)",
    )
    if page is not None:
        say(f"Report: {page} ({page.stat().st_size / 1e6:.1f} MB)")
    then = "" if data.given else " · wgm verify your.csv --user-column user --item-column item"
    hint(f"Next: open the report in a browser{then}", quiet=output.quiet)
    return result.status


def _write_page(folder: Path) -> Path | None:
    """The report; whatever goes wrong there, the results are written and the verdicts stand."""
    try:
        from experiments.report.writing import write_page

        return write_page(folder)
    except Exception as error:
        warn(f"no report: {type(error).__name__}: {error}; the results are complete without it")
        return None


def _write_junit(file: Path, result: Verification, settings: dict[str, Any]) -> None:
    from experiments.report.junit import junit
    from experiments.sweep.store import write_atomic

    told = {name: value for name, value in settings.items() if name != "claims"}
    write_atomic(file, junit(result.outcomes, seconds=result.seconds, settings=told))


def _print(result: Verification) -> None:
    some_open = any(outcome.count("undecided") for outcome in result.outcomes)
    headers = ["claim", "cells", "proved", "conf.", "refuted", *["open"] * some_open, "vac."]
    made = table(*headers, "slack")
    made.padding = (0, 1, 0, 0)
    made.columns[0].no_wrap, made.columns[0].overflow = True, "ellipsis"
    groups = {
        "on these data:": [o for o in result.outcomes if o.claim.observe is not None],
        "on data or parameters of their own:": [
            o for o in result.outcomes if o.claim.observe is None
        ],
    }
    for heading, outcomes in groups.items():
        if outcomes and all(groups.values()):
            made.add_row(heading, style="italic")
        for outcome in outcomes:
            _add_row(made, outcome, some_open)
    out().print(made)


def _add_row(made: Table, outcome: Outcome, some_open: bool) -> None:
    """A claim's verdicts by kind, and its slack."""
    counts = {name: outcome.count(name) or "–" for name in _KINDS}
    refuted = str(counts["refuted"])
    if outcome.claim.expected == "refuted" and refuted != "–":
        refuted += " ✓exp."
    row = [len(outcome.verdicts), counts["proved"], counts["confirmed"], refuted]
    row += [counts["undecided"]] * some_open + [counts["vacuous"], _range(outcome.slack)]
    style = {True: "", False: "bold red", None: "dim"}[outcome.success]
    made.add_row(name_text(outcome.claim.title, 35), *map(str, row), style=style)


_KINDS = ("proved", "confirmed", "refuted", "undecided", "vacuous")


def _range(slack: tuple[float, float] | None) -> str:
    if slack is None:
        return "–"
    low, high = (f"{v:.2g}" if v < 100 else f"{v:.0f}" if v < 1e4 else ">9999" for v in slack)
    return f"{low}×" if low == high else f"{low}–{high}×"


def _witnesses(result: Verification) -> list[str]:
    """Of every claim that is refuted and should hold, the cell where it fails by most."""
    told = []
    for outcome in result.outcomes:
        wrong = [v for v in outcome.verdicts if v.verdict == "refuted" and v.success is False]
        if not wrong:
            continue
        worst = min(wrong, key=lambda v: 1.0 if v.slack is None else v.slack)
        where = ", ".join(f"{name} = {value}" for name, value in plain(worst.cell).items())
        line = f"{outcome.claim.name} fails most at {where}: it says {number(worst.bound)}"
        line += "" if worst.observed is None else f", {number(worst.observed)} is seen"
        if worst.exceedances is not None:
            line += f", beyond it in {worst.exceedances:,} of {worst.trials:,} trials"
        told.append(line + ".")
    return told


def _summary(result: Verification) -> str:
    total = len(result.outcomes)
    good = sum(outcome.success is True for outcome in result.outcomes)
    failed = [o.claim.name for o in result.outcomes if o.success is False]
    open_ = [o.claim.name for o in result.outcomes if o.count("undecided")]
    untried = [o.claim.name for o in result.outcomes if o.needs_trials]
    silent = [
        o
        for o in result.outcomes
        if o.success is None and not o.count("undecided") and not o.needs_trials
    ]
    telling = total - len(silent) - len(untried)
    share = f"All {telling}" if good == telling else f"{good} of {telling}"
    parts = [f"{share} claims{' that say something here' if silent else ''}: as expected."]
    if silent:
        parts.append(f"{len(silent)} more: nothing to say (every cell vacuous, or none).")
    if failed:
        parts.append(f"Not as expected: {', '.join(failed)}.")
    if untried:
        parts.append(f"Not judged without trials: {', '.join(untried)}.")
    if open_:
        parts.append(f"Undecided, raise --max-trials: {', '.join(open_)}.")
    return " ".join(parts)


def _censored(result: Verification) -> list[str]:
    least = result.cells["mm_q05"].fill_null(result.cells["exact_mean"] + 1e-9)
    lost = result.cells.filter(least >= 1.0)
    return [
        f"{row['dataset']}, Δ0 = {row['max_items_per_user']}, ε = {row['eps']:g}: nothing is "
        f"released; an item needs a weight of about T = {row['threshold']:.3g}"
        for row in lost.iter_rows(named=True)
    ]


def _entries(result: Verification, folder: Path, files: list[str]) -> dict[str, Any]:
    return {
        "claims": [_claim_entry(outcome) for outcome in result.outcomes],
        "verdicts": [v.to_dict() for outcome in result.outcomes for v in outcome.verdicts],
        "cells": result.cells.to_dicts(),
        "seconds": result.seconds,
        "sampler": result.sampler,
        "status": result.status,
        "out": str(folder),
        "files": files,
    }


def _claim_entry(outcome: Outcome) -> dict[str, Any]:
    return {
        "claim": outcome.claim.name,
        "title": outcome.claim.title,
        "kind": outcome.claim.kind,
        "expected": outcome.claim.expected,
        "success": outcome.success,
        "needs_trials": outcome.needs_trials,
        **{name: outcome.count(name) for name in _KINDS},
        "slack": outcome.slack,
    }


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("verify")(verify)
