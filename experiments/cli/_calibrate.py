"""`wgm calibrate`: noise and threshold for given privacy parameters."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli._options import (
    Delta,
    Epsilons,
    Method,
    OutFolder,
    OutputOptions,
    contribution_bounds,
    grouped,
    numbers,
)
from experiments.cli._output import hint, number, out, print_json, progress, say, table

if TYPE_CHECKING:
    from theory import Calibration

Bounds = Annotated[
    list[str],
    typer.Option(
        "--max-items-per-user", metavar="K[,K...]", help="Contribution bound Δ0; one or several."
    ),
]
RegimeMap = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Also draw how σ and T change with ε and δ, at each Δ0, into DIR."
    ),
]


@grouped
def calibrate(
    *,
    eps: Epsilons,
    delta: Delta,
    max_items_per_user: Bounds,
    method: Method = "split",
    mechanism: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="wgm; or bernoulli-flow or bernoulli-flow-2 with its certificate.",
        ),
    ] = "wgm",
    regime_map: RegimeMap = None,
    out_folder: OutFolder = None,
    output: OutputOptions,
) -> None:
    """Smallest noise σ and threshold T of the weighted Gaussian mechanism, or a Bernoulli flow.

    Theorem 3.2 (split), or all of δ for both conditions (full). Several ε or Δ0 make a table.
    A Bernoulli flow, in one round or in two, is certified once, in up to minutes, and kept in the
    user's cache folder; with --out the certificate of one round, the table and a plot of holders,
    and a manifest are written.

    Example: wgm calibrate --eps 1 --delta 1e-5 --max-items-per-user 100
    """
    from experiments.cli._flow import check_mechanism
    from experiments.flow_store import NAME, TWO_ROUNDS
    from theory import calibrate
    from theory._check import invalid

    check_mechanism(mechanism, TWO_ROUNDS)

    bounds = contribution_bounds(max_items_per_user, [])
    if "max" in bounds:
        accepted = "must be a whole number from 1 to 1e9: without data there is no largest set"
        invalid("max_items_per_user", "max", accepted)
    if mechanism == TWO_ROUNDS and out_folder is not None:
        accepted = f"is for --mechanism {NAME}; of two rounds --json tells the certificate's file"
        invalid("out", str(out_folder), accepted)
    if mechanism in (NAME, TWO_ROUNDS):
        if regime_map is not None:
            invalid(
                "regime_map", str(regime_map), "draws σ and T: leave it out with this mechanism"
            )
        levels, counts = numbers("eps", eps, []), [int(k) for k in bounds]
        if mechanism == TWO_ROUNDS:
            _calibrate_two_rounds(levels, delta, counts, output)
        else:
            _calibrate_flows(levels, delta, counts, out_folder, output)
        return
    if out_folder is not None:
        invalid("out", str(out_folder), f"is for --mechanism {NAME}; σ and T: --regime-map DIR")
    records = [
        calibrate(eps=e, delta=delta, max_items_per_user=int(k), method=method)
        for k, e in product(bounds, numbers("eps", eps, []))
    ]
    told = [_entries(record) for record in records]
    plots = None if regime_map is None else _draw_regime_map(regime_map, records)

    if output.json:
        more: dict[str, Any] = {"grid": told} if len(told) > 1 else {}
        more |= {"plots": plots} if plots is not None else {}
        print_json({**told[0], **more})
        return
    _print_one(told[0]) if len(told) == 1 else _print_grid(told)
    _hint(delta, output)
    if plots:
        say("Plots: " + " ".join(plots))


def _calibrate_flows(
    levels: list[float],
    delta: float,
    bounds: list[int],
    out_folder: Path | None,
    output: OutputOptions,
) -> None:
    """Certified flows, from their files or made now."""
    from experiments.cli._flow import flow_entries, made_flows, print_flow, write_flows

    if out_folder is not None:
        from experiments.sweep.store import writable_folder

        writable_folder(out_folder)
    with progress("certifying", quiet=output.quiet) as update:
        flows = made_flows(levels, delta, bounds, update)
    told = [flow_entries(flow) for flow in flows]
    files = [] if out_folder is None else write_flows(out_folder, flows, told)
    _tell(told, print_flow, files, delta, output)


def _calibrate_two_rounds(
    levels: list[float], delta: float, bounds: list[int], output: OutputOptions
) -> None:
    """Certified flows in two rounds, from their files or made now."""
    from experiments.cli._two_rounds import made_two_rounds, print_two_rounds, two_round_entries

    with progress("certifying", quiet=output.quiet) as update:
        flows = made_two_rounds(levels, delta, bounds, update)
    _tell([two_round_entries(flow) for flow in flows], print_two_rounds, [], delta, output)


def _tell(
    told: list[dict[str, Any]],
    print_one: Callable[[dict[str, Any]], None],
    files: list[str],
    delta: float,
    output: OutputOptions,
) -> None:
    if output.json:
        more: dict[str, Any] = {"grid": told} if len(told) > 1 else {}
        print_json({**told[0], **more, **({"files": files} if files else {})})
        return
    for entry in told:
        print_one(entry)
    if files:
        say("Files: " + " ".join(files))
    _hint(delta, output)


def _hint(delta: float, output: OutputOptions) -> None:
    most = f"{1 / delta:,.0f}"
    hint(f"δ = {delta:g} is below 1/users for fewer than {most} users.", quiet=output.quiet)


def _entries(record: Calibration) -> dict[str, Any]:
    import math

    from theory import sandwich

    between = sandwich(record)
    return {
        "sigma": record.sigma,
        "threshold": record.threshold,
        "spent_delta": record.spent_delta,
        "eps": record.eps,
        "delta": record.delta,
        "max_items_per_user": record.max_items_per_user,
        "method": record.method,
        "users_with_full_sets": record.users_needed,
        "users_with_one_item": max(1, math.ceil(record.threshold)),
        "sigma_lower": between.sigma_lower,
        "sigma_upper": between.sigma_upper,
        "threshold_lower": between.threshold_lower,
        "threshold_upper": between.threshold_upper,
    }


def _print_one(told: dict[str, Any]) -> None:
    say(f"{_title(told)} · Δ0 = {told['max_items_per_user']:,} · ε = {told['eps']:g}", style="bold")
    made = table("", "", "", left=1)
    made.show_header = False
    made.columns[2].justify, made.columns[2].no_wrap = "left", False
    for name, symbol, what in (("sigma", "σ", "noise"), ("threshold", "T", "threshold")):
        low, high = number(told[f"{name}_lower"]), number(told[f"{name}_upper"])
        made.add_row(symbol, number(told[name], 7), f"{what}; closed forms: {low} to {high}")
    made.add_row("spent δ", number(told["spent_delta"]), "by the exact accountant [P2]")
    one = f"{told['users_with_one_item']:,} with one item"
    full = f"with full sets make a weight of T; {one}"
    made.add_row("users", number(told["users_with_full_sets"]), full)
    out().print(made)


def _print_grid(told: list[dict[str, Any]]) -> None:
    say(_title(told[0]), style="bold")
    made = table("Δ0", "ε", "σ", "T", "spent δ", "users full sets", "one item", left=0)
    for row in told:
        made.add_row(
            number(row["max_items_per_user"]),
            f"{row['eps']:g}",
            number(row["sigma"], 6),
            number(row["threshold"], 6),
            number(row["spent_delta"]),
            number(row["users_with_full_sets"]),
            number(row["users_with_one_item"]),
        )
    out().print(made)


def _title(told: dict[str, Any]) -> str:
    return f"WGM calibration · method {told['method']} · δ = {told['delta']:g}"


def _draw_regime_map(folder: Path, records: list[Calibration]) -> list[str]:
    import numpy as np

    from experiments.plots import regime_map, save
    from experiments.sweep.store import writable_folder
    from theory import calibrate
    from theory import regime_map as map_values

    writable_folder(folder, "regime_map")
    # From hardly private to far beyond any use.
    eps, delta = np.logspace(-4, 3, 71), np.logspace(-20, -2, 55)
    method = records[0].method
    values = map_values(eps=eps, delta=delta, method=method)
    files: list[Path] = []
    for count in sorted({record.max_items_per_user for record in records}):
        noise = calibrate(eps=eps[:, None], delta=delta, max_items_per_user=count, method=method)
        figure, data = regime_map(eps, delta, values, noise.threshold)
        files += save(figure, folder / f"regime_map_{count}", data)
    return [str(file) for file in files]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("calibrate")(calibrate)
