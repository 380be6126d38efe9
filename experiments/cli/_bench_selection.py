"""`wgm bench --suite selection`: seconds of selections beside plain NumPy and Python's sets."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.cli._options import OutputOptions
from experiments.cli._output import number, out, print_json, progress, say, table

if TYPE_CHECKING:
    from experiments.bench import SelectionFindings


def bench_selection(size: str, asked: dict[str, int], folder: Path, output: OutputOptions) -> int:
    """Run the suite; the exit status.

    Args:
        size: "quick", "large" or "" for the suite between them.
        asked: Settings of the user.
        folder: Where tables and the manifest go.
        output: How to print.
    """
    from experiments import bench

    known = {"quick": bench.SELECTION_QUICK, "large": bench.SELECTION_LARGE, "": bench.SELECTION}
    settings = dataclasses.replace(known[size], **asked)
    with progress("timing", quiet=output.quiet) as update:
        found = bench.run_selection_suite(settings, update)
    files = _write(folder, found)
    if output.json:
        rows = found.selections.to_dicts()
        print_json({**_entries(found), "selections": rows, "files": files})
    else:
        print_selections(found)
        say("", f"Results in {folder}: " + " ".join(Path(file).name for file in files))
    return 0 if found.agrees else 1


def _entries(found: SelectionFindings) -> dict[str, Any]:
    return {
        "suite": found.settings.name,
        "repeats": found.settings.repeats,
        "seed": found.settings.seed,
        "machine": found.machine,
        "agrees": found.agrees,
    }


def _write(folder: Path, found: SelectionFindings) -> list[str]:
    from experiments.sweep.store import manifest, write_atomic, write_json

    tables = [folder / "selections.parquet", folder / "selections.csv"]
    write_atomic(tables[0], found.selections.write_parquet)
    write_atomic(tables[1], found.selections.write_csv().encode())
    settings = dataclasses.asdict(found.settings)
    about = manifest("bench", settings=settings, seeds=found.settings.seed, results=_entries(found))
    write_json(folder / "manifest.json", about)
    return [str(path) for path in [*tables, folder / "manifest.json"]]


def print_selections(found: SelectionFindings) -> None:
    """The table and what it means."""
    machine = found.machine
    say(
        f"{found.settings.name} suite · {machine['cores']} cores, load "
        f"{machine['load_before']:.1f} before and {machine['load_after']:.1f} after · medians of "
        f"{found.settings.repeats} rounds",
        style="bold",
    )
    say("", f"Seconds of {found.settings.trials} trials, and how many times that others take")
    made = table("", "N", "k", "domain", "seconds", "NumPy", "sets")
    for _, group in found.selections.group_by(["num_pairs", "k", "task"], maintain_order=True):
        ways = {row["way"]: row for row in group.to_dicts()}
        ours = ways["wgm-jax"]
        made.add_row(
            ours["task"],
            number(ours["num_pairs"]),
            str(ours["k"]),
            number(round(ours["domain_size"])),
            number(ours["seconds"], 3),
            *(number(ways[w]["times_ours"], 3) if w in ways else "–" for w in ("numpy", "sets")),
        )
    out().print(made)
    say("domain: items, a mean over trials; NumPy and Python's sets: in one process")
    if found.agrees:
        say("", "Given the same noise, all ways choose the same items.")
    else:
        say("", "CHOICES DISAGREE: the times are not of the same selection.", style="bold")
