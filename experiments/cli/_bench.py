"""`wgm bench`: seconds of trials and exact methods, beside NumPy and the machine's limits."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli._options import OutFolder, OutputOptions, Seed, grouped
from experiments.cli._output import number, out, percent, print_json, progress, say, table

if TYPE_CHECKING:
    import polars as pl

    from experiments.bench import Findings

_LIMITS = {
    "random_bits": "random bits",
    "adds": "additions to rows",
    "memory_bytes": "bytes from and to memory",
}


@grouped
def bench(
    *,
    suite: Annotated[
        str,
        typer.Option(
            metavar="trials|selection",
            help="The WGM and exact numbers, or top-k and hitting sets.",
        ),
    ] = "trials",
    quick: Annotated[bool, typer.Option("--quick", help="Small data, short rounds.")] = False,
    large: Annotated[bool, typer.Option("--large", help="Also 10 million pairs.")] = False,
    repeats: Annotated[int, typer.Option(metavar="K", help="Rounds, at least 5 to publish.")] = 5,
    seed: Seed = 0,
    out_folder: OutFolder = None,
    output: OutputOptions,
) -> int:
    """Time trials and exact methods, or selections, beside NumPy and a plain Python loop.

    Takes some minutes on an otherwise idle machine. Tables (Parquet and CSV), a plot of trials and
    a manifest go to --out, by default a new folder under results/. Exit status 1: means, or choices
    of the same noise, disagree.

    Example: wgm bench --quick
    """
    from theory._check import check_count, invalid

    if suite not in ("trials", "selection"):
        invalid("suite", suite, "must be trials or selection")
    if quick and large:
        invalid("large", "", "must not be given with --quick")
    repeats = check_count("repeats", repeats, maximum=1000)
    seed = check_count("seed", seed, minimum=0, maximum=2**63 - 1)

    from experiments.sweep.store import new_results_folder, writable_folder

    folder = (
        writable_folder(out_folder)
        if out_folder is not None
        else new_results_folder(Path("results"), "bench")
    )
    asked = {"repeats": repeats, "seed": seed}
    if suite == "selection":
        from experiments.cli._bench_selection import bench_selection

        return bench_selection(
            "quick" if quick else "large" if large else "", asked, folder, output
        )
    from experiments.bench import DEFAULT, LARGE, QUICK, run_suite

    chosen = QUICK if quick else LARGE if large else DEFAULT
    settings = dataclasses.replace(chosen, **asked)
    with progress("timing", quiet=output.quiet) as update:
        found = run_suite(settings, update)
    files = _write(folder, found)
    if output.json:
        print_json({**_entries(found), "files": files})
    else:
        _print(found)
        say("", f"Results in {folder}: " + " ".join(Path(file).name for file in files))
    return 0 if found.agrees else 1


def _entries(found: Findings) -> dict[str, Any]:
    frames = {name: getattr(found, name).to_dicts() for name in ("trials", "exact", "growth")}
    return {
        "suite": found.settings.name,
        "repeats": found.settings.repeats,
        "seed": found.settings.seed,
        "machine": found.machine,
        "agrees": found.agrees,
        "notes": list(found.notes),
        **frames,
    }


def _write(folder: Path, found: Findings) -> list[str]:
    from experiments.plots import bench_plot, save
    from experiments.sweep.store import manifest, write_atomic, write_json

    written = []
    for name in ("trials", "exact"):
        frame: pl.DataFrame = getattr(found, name)
        write_atomic(folder / f"{name}.parquet", frame.write_parquet)
        write_atomic(folder / f"{name}.csv", frame.write_csv().encode())
        written += [folder / f"{name}.parquet", folder / f"{name}.csv"]
    written += save(*_stem(bench_plot(found.trials), folder / "seconds"))
    about = {k: v for k, v in _entries(found).items() if k not in ("trials", "exact", "seed")}
    settings = dataclasses.asdict(found.settings)
    write_json(
        folder / "manifest.json",
        manifest("bench", settings=settings, seeds=found.settings.seed, results=about),
    )
    return [str(path) for path in [*written, folder / "manifest.json"]]


def _stem(plot: tuple[Any, pl.DataFrame], stem: Path) -> tuple[Any, Path, pl.DataFrame]:
    figure, data = plot
    return figure, stem, data


# ---- words


def _print(found: Findings) -> None:
    cores, platform = found.machine["cores"], found.machine["platform"]
    say(
        f"{found.settings.name} suite · {cores} cores · trials on {platform} · medians of "
        f"{found.settings.repeats} rounds",
        style="bold",
    )
    _print_trials(found.trials)
    _print_exact(found.exact)
    _print_limits(found)
    _print_growth(found.growth)
    if not found.agrees:
        say("", "MEANS DISAGREE: the times are not of the same computation.", style="bold")
    else:
        say("", "All means agree with the exact mean (intervals of error 1e-9).")
    for note in found.notes:
        say(note)


def _print_trials(trials: pl.DataFrame) -> None:
    say("", "Trials: how many times the time of lanes, and lanes in seconds per 1,000 trials")
    made = table("N", "Δ0", "s", "ε", "NumPy", "padded", "loop", "lanes", "× 1 ε", "start", left=0)
    for rows in _cases(trials, ["num_pairs", "max_items_per_user", "s", "points"]):
        ways = {row["way"]: row for row in rows}
        lanes = ways["lanes"]
        ratios = (
            ways[w]["times_lanes"] if w in ways else None for w in ("numpy", "padded", "loop")
        )
        made.add_row(
            number(lanes["num_pairs"]),
            _bound(lanes),
            f"{lanes['s']:g}",
            str(lanes["points"]),
            *(_times(ratio) for ratio in ratios),
            number(lanes["seconds_per_1000"], 3),
            number(lanes["times_one_point"], 3),
            number(lanes["first_start_seconds"], 2),
        )
    out().print(made)
    say("ε: points of a grid, from the same draws; × 1 ε: against one point;")
    say("NumPy: a process per core; start: seconds to the first trial, with compilation")


def _print_exact(exact: pl.DataFrame) -> None:
    say("", "Exact: how many times the time of 200 NumPy trials on one core")
    headers = ("N", "Δ0", "classes", "mean", "16 ε", "× 1 ε", "certificate", "law", "mean, s")
    made = table(*headers, left=0)
    for rows in _cases(exact, ["num_pairs", "max_items_per_user"]):
        ways = {row["what"]: row for row in rows}
        names = ("certificate", "law")
        made.add_row(
            number(rows[0]["num_pairs"]),
            _bound(rows[0]),
            number(rows[0]["classes"]),
            number(ways["mean"]["times_numpy"], 3),
            number(ways["mean, 16 points"]["times_numpy"], 3),
            number(ways["mean, 16 points"]["times_mean"], 3),
            *(number(ways[n]["times_numpy"], 3) if n in ways else "–" for n in names),
            number(ways["mean"]["seconds"], 3),
        )
    out().print(made)


def _print_limits(found: Findings) -> None:
    say("", "Limits: what the machine does at most per second, and the share that lanes reach")
    lanes = [row for row in found.trials.to_dicts() if row["way"] == "lanes"]
    made = table("", "per second", "main case", "least", "most")
    for name, title in _LIMITS.items():
        shares = [row[f"{name}_share"] for row in lanes]
        made.add_row(
            title,
            f"{found.machine[f'{name}_per_second']:.3g}",
            *(percent(share) for share in (shares[0], min(shares), max(shares))),
        )
    out().print(made)


def _print_growth(growth: pl.DataFrame) -> None:
    if growth.is_empty():
        return
    say("", "Growth: exponent of the time in N")
    made = table("", "Δ0", "exponent", "seconds (trials: per 1,000) at N")
    for row in growth.to_dicts():
        pairs = zip(row["num_pairs"], row["seconds"], strict=True)
        points = ", ".join(
            f"{_short(seconds)} at {n:.0e}".replace("e+0", "e") for n, seconds in pairs
        )
        made.add_row(row["what"], row["max_items_per_user"], f"{row['exponent']:.2f}", points)
    out().print(made)


def _cases(frame: pl.DataFrame, names: list[str]) -> list[list[dict[str, Any]]]:
    """Rows that share the given columns, in the order of the frame."""
    return [group.to_dicts() for _, group in frame.group_by(names, maintain_order=True)]


def _bound(row: dict[str, Any]) -> str:
    return "max" if row["max_items_is_max"] else number(row["max_items_per_user"])


def _times(ratio: float | None) -> str:
    if ratio is None:
        return "–"
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def _short(seconds: float) -> str:
    return f"{seconds:,.0f}" if seconds >= 100 else f"{seconds:.2g}"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("bench")(bench)
