"""`wgm audit`: does a mechanism keep its claimed privacy?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli._options import Method, OutFolder, OutputOptions, Seed, grouped
from experiments.cli._output import (
    hint,
    name_text,
    number,
    out,
    print_json,
    progress,
    say,
    table,
)

if TYPE_CHECKING:
    from experiments.audit import Audit

_ALL = "all"


@grouped
def audit(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A mechanism (see wgm mechanisms), or all.")
    ],
    *,
    eps: Annotated[float, typer.Option(metavar="E", help="Claimed ε, 0 to 1e5.")] = 1.0,
    delta: Annotated[float, typer.Option(metavar="D", help="Claimed δ in (0, 0.5].")] = 1e-5,
    max_items_per_user: Annotated[
        int, typer.Option(metavar="K", help="Contribution bound Δ0; small ones are enough.")
    ] = 6,
    method: Method = "split",
    k: Annotated[
        int,
        typer.Option("-k", "--k", metavar="K", help="Items to select, for top-k and hitting sets."),
    ] = 2,
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="B",
            help="Time for every mechanism; 30, or no limit with --evaluations.",
            show_default=False,
        ),
    ] = None,
    evaluations: Annotated[
        int | None,
        typer.Option(metavar="N", help="Pairs to evaluate for each: reproducible, unlike time."),
    ] = None,
    seed: Seed = 0,
    out_folder: OutFolder = None,
    output: OutputOptions,
) -> None:
    """Search for two data sets, one user apart, that a mechanism's output tells apart too well.

    Every pair is judged by the exact laws of the output, a released set or a sequence of selected
    items, computed from the mechanism's own weight or score step in float64. A mechanism is accused
    only with a proof: two data sets and a set of outputs. Not to be accused proves nothing.

    Exit status: 1 if a mechanism that claims to be private is accused, else 0. Mechanisms that
    claim no privacy are there to be accused.

    Example: wgm audit policy-gaussian-l1-published --seconds 20
    """
    from theory import calibrate
    from theory._check import check_count, check_positive, invalid
    from wgm_jax.registry import mechanisms

    known = [info.name for info in mechanisms()]
    if name != _ALL and name not in known:
        invalid("NAME", name, f"must be all, or one of {', '.join(known)}")
    calibrate(eps=eps, delta=delta, max_items_per_user=max_items_per_user, method=method)
    budget: dict[str, Any] = {"seconds": 30.0 if evaluations is None else None}
    if seconds is not None:
        budget["seconds"] = float(check_positive("seconds", seconds))
    if evaluations is not None:
        budget["max_evaluations"] = check_count("evaluations", evaluations)
    seed = check_count("seed", seed, minimum=0, maximum=2**63 - 1)
    if out_folder is not None:
        from experiments.sweep.store import writable_folder

        writable_folder(out_folder)

    from experiments.audit import audit as search
    from experiments.audit import subject

    claim = {
        "eps": eps, "delta": delta, "max_items_per_user": max_items_per_user, "method": method,
        "k": check_count("k", k),
    }  # fmt: skip
    results = []
    for each in known if name == _ALL else [name]:
        with progress(each, quiet=output.quiet) as update:
            results.append(search(subject(each, **claim), seed=seed, progress=update, **budget))
    files = [] if out_folder is None else _draw(out_folder, results, claim)
    _tell(results, name == _ALL, files, output)
    if not all(result.as_expected for result in results):
        raise typer.Exit(1)


def _tell(results: list[Audit], several: bool, files: list[str], output: OutputOptions) -> None:
    told = [result.entries() for result in results]
    more: dict[str, Any] = {"files": files} if files else {}
    if output.json:
        expected = all(result.as_expected for result in results)
        print_json({"audits": told, "as_expected": expected, **more} if several else told[0] | more)
        return
    _print_table(results)
    if not several:
        _print_finding(results[0])
    if files:
        say("Files: " + " ".join(files))
    tried = sum(result.evaluations for result in results)
    hint(
        f"{tried:,} pairs, seed {results[0].seed}. Not to be accused proves nothing; a longer "
        "search: --seconds",
        quiet=output.quiet,
    )


def _print_table(results: Sequence[Audit]) -> None:
    first = results[0]
    say(
        f"Privacy audit · ε = {first.eps:g} · claimed δ = {first.claimed_delta:g} · "
        f"Δ0 = {first.max_items_per_user:,}",
        style="bold",
    )
    made = table("mechanism", "verdict", "found δ", "÷ claim", "pairs", "at pair", left=2)
    for result in results:
        made.add_row(
            name_text(result.mechanism),
            _verdict(result),
            number(result.found_delta),
            number(result.found_delta / result.claimed_delta, 3),
            f"{result.evaluations:,}",
            "–" if result.accused_after is None else f"{result.accused_after:,}",
            style="bold" if result.accused else "",
        )
    out().print(made)
    if not all(result.private for result in results):
        say("* claims no privacy: a specimen, there to be accused.")


def _verdict(result: Audit) -> str:
    said = "ACCUSED" if result.accused and result.private else "accused"
    return (said if result.accused else "not accused") + ("" if result.private else " *")


def _print_finding(result: Audit) -> None:
    found = result.finding
    if found is None:
        say("No pair could be evaluated.")
        return
    event = found.event
    larger, smaller = ("with", "without") if found.direction == "add" else ("without", "with")
    say(f"Worst pair: {found.pair.describe()}.")
    say(
        f"A set of outputs has probability {number(event.first)} {larger} the extra user and "
        f"{number(event.second)} {smaller}: δ({result.eps:g}) ≥ {number(found.limits.low)}."
    )
    if isinstance(event.outcome, tuple):
        rounds = [each for each in event.outcome if isinstance(each, frozenset)]
        if rounds:
            parts = (" ".join(map(str, sorted(each))) or "none" for each in rounds)
            shown = f"released {', then '.join(parts)}"
        else:
            shown = f"items {' '.join(map(str, event.outcome)) or 'none'}, in this order"
        say(f"Its most telling output, {number(event.share, 3)} of δ: {shown}.")
    if isinstance(event.outcome, dict):
        came = event.outcome["released"]
        shown = " ".join(map(str, came[:8])) + (" ..." if len(came) > 8 else "")
        say(
            f"Its most telling output, {number(event.share, 3)} of δ: of {_items(event.outcome)} "
            f"items that tell the two apart, {f'released {shown}' if came else 'none'}."
        )


def _items(outcome: dict[str, list[Any]]) -> str:
    return f"{len(outcome['released']) + len(outcome['missed']):,}"


def _draw(folder: Path, results: Sequence[Audit], claim: dict[str, Any]) -> list[str]:
    import polars as pl

    from experiments.plain import plain
    from experiments.plots import privacy_profile, save
    from experiments.sweep.store import manifest, write_json

    rows = [
        {
            "mechanism": result.mechanism,
            "private": result.private,
            "eps": float(eps),
            "found": float(found),
            "claimed_eps": result.eps,
            "claimed_delta": result.claimed_delta,
            "accused": result.accused,
            "accountant": _accountant(result.mechanism, float(eps), claim),
        }
        for result in results
        for eps, found in zip(result.profile_eps, result.profile_delta, strict=True)
    ]
    frame = pl.DataFrame(rows, schema_overrides={"accountant": pl.Float64})
    figure, data = privacy_profile(frame)
    files = save(figure, folder / "privacy_profile", data)
    told = [result.entries() for result in results]
    write_json(
        folder / "manifest.json",
        manifest("audit", settings=claim, seeds=results[0].seed, results=plain(told)),
    )
    return [str(file) for file in (*files, folder / "manifest.json")]


def _accountant(name: str, eps: float, claim: dict[str, Any]) -> float | None:
    """Exact delta at eps, for the one mechanism that has an accountant."""
    from theory import calibrate, spent_delta

    if name != "wgm":
        return None
    noise = calibrate(**{name: value for name, value in claim.items() if name != "k"})
    return float(
        spent_delta(
            eps=eps,
            sigma=noise.sigma,
            threshold=noise.threshold,
            max_items_per_user=noise.max_items_per_user,
        )
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("audit")(audit)
