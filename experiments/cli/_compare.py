"""`wgm compare`: all set-union mechanisms side by side on one data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli._options import (
    DataOptions,
    Delta,
    Epsilons,
    MaxItems,
    NumTrials,
    OutFolder,
    OutputOptions,
    Seed,
    contribution_bounds,
    grouped,
    numbers,
)
from experiments.cli._output import (
    hint,
    name_text,
    number,
    out,
    percent,
    print_json,
    progress,
    say,
    table,
    warn_about_delta,
)

if TYPE_CHECKING:
    from experiments.comparison import Comparison, Competitor, Distance, Entry
    from theory import UserItems

_COLUMNS = 6  # values of Delta0 that fit into 80 columns
_SPENDS = (
    "Choosing a mechanism or Δ0 by such a table on the private data themselves spends privacy "
    "beyond ε: choose on public or older data."
)


@grouped
def compare(
    data: DataOptions,
    *,
    eps: Epsilons,
    delta: Delta,
    max_items_per_user: MaxItems,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[,NAME...]",
            help="See wgm mechanisms; 'NAME (full)' spends all of δ twice, where that is proved. "
            "Default: all private ones.",
            show_default=False,
        ),
    ] = None,
    trials: NumTrials = 20,
    seed: Seed = 0,
    out_folder: OutFolder = None,
    output: OutputOptions,
) -> None:
    """Missing mass and released items of all mechanisms, at equal ε, δ and Δ0.

    The weighted Gaussian mechanism has its exact mean. In the others' trials the noise of the last
    round is integrated out, and where nothing else is random one trial is exact: 20 are plenty.
    With --out also two plots, the table (Parquet and CSV) and a manifest.

    Example: wgm compare ratings.csv --eps 1,0.1 --delta 1e-5 --max-items-per-user 1,50,100
    """
    from theory import calibrate
    from theory._check import check_count

    levels, asked = numbers("eps", eps, []), contribution_bounds(max_items_per_user, [])
    calibrate(eps=levels, delta=delta, max_items_per_user=1)
    num_trials = check_count("num_trials", trials, maximum=10**6)
    seed = check_count("seed", seed, minimum=0, maximum=2**63 - 1)
    chosen = None
    if mechanism is not None:
        chosen = [name.strip() for name in ",".join(mechanism).split(",") if name.strip()]

    from experiments.comparison import compare, competitors

    # Everything that can be wrong without the data is said before they are read.
    _check(competitors(chosen), levels, delta)
    if out_folder is not None:
        from experiments.sweep.store import writable_folder

        writable_folder(out_folder)
    found = data.load()
    warn_about_delta(delta, found.num_users)
    with progress("comparing", quiet=output.quiet) as update:
        result = compare(
            found,
            dataset=data.name,
            eps=levels,
            delta=delta,
            max_items_per_user=asked,
            mechanisms=chosen,
            num_trials=num_trials,
            seed=seed,
            progress=update,
        )
    told = _entries(found, result, levels, num_trials)
    if out_folder is not None:
        told["files"] = _write(out_folder, data, asked, result, told)
    if output.json:
        print_json(told)
        return
    _print(found, result, levels, num_trials)
    if "files" in told:
        say("", "Files: " + " ".join(told["files"]))
    least = min(result.entries, key=lambda entry: entry.missing_mass.mean)
    hint(
        f"Next: wgm plan {data.shell} --eps {least.eps:g} --delta {delta:g}",
        quiet=output.quiet,
    )


def _check(chosen: tuple[Competitor, ...], levels: list[float], delta: float) -> None:
    """Noise of every mechanism at the asked eps, which some mechanisms refuse."""
    import numpy as np

    from theory import calibrate
    from wgm_jax.set_union.frame import FramedMechanism

    for who in chosen:
        mechanism = who.mechanism
        if isinstance(mechanism, FramedMechanism):
            mechanism.parameters(calibrate(eps=np.array(levels), delta=delta, max_items_per_user=1))


def _entries(
    data: UserItems, result: Comparison, levels: list[float], num_trials: int
) -> dict[str, Any]:
    return {
        "dataset": result.dataset,
        "users": data.num_users,
        "items": data.num_items,
        "pairs": data.num_pairs,
        "max_set_size": data.max_set_size,
        "eps": levels,
        "delta": result.entries[0].delta,
        "max_items_per_user": list(dict.fromkeys(e.max_items_per_user for e in result.entries)),
        "trials": num_trials,
        "seed": result.seed,
        "entries": result.rows(),
        "standings": [_standing(result, eps) for eps in levels],
        "notes": [_SPENDS],
    }


def _standing(result: Comparison, eps: float) -> dict[str, Any]:
    """Who leaves least at one eps, and how far WGM is from the best."""
    from experiments.comparison import is_private, least

    best = least(result, eps, is_private)
    told: dict[str, Any] = {"eps": eps, "lower_bound": _floor(result, eps), "best": None}
    if best is not None:
        told["best"] = _place(best)
    told["wgm"] = [
        {"mechanism": label, **_distance(result, label, eps)}
        for label in ("wgm", "wgm (full)")
        if result.of(label, eps)
    ]
    return told


def _distance(result: Comparison, label: str, eps: float) -> dict[str, Any]:
    """Own best setting; largest distances to the best and to the policies at equal Delta0."""
    from experiments.comparison import is_private, is_private_policy, least

    own = least(result, eps, lambda who: who.label == label)
    told: dict[str, Any] = {"best": None if own is None else _place(own)}
    for name, among in (("above_best", is_private), ("above_policies", is_private_policy)):
        far = _furthest(result, label, eps, among)
        told[name] = None
        if far is not None:
            above = far.above
            told[name] = {"share": above.mean, "low": above.low, "high": above.high}
            told[name] |= {"than": _place(far.other)}
    return told


def _furthest(result: Comparison, label: str, eps: float, among: Any) -> Distance | None:
    from experiments.comparison import distances

    found = distances(result, label, eps, among)
    return max(found, key=lambda at: at.above.mean, default=None)


def _place(entry: Entry) -> dict[str, Any]:
    mass = entry.missing_mass
    return {
        "mechanism": entry.competitor.label,
        "max_items_per_user": entry.max_items_per_user,
        "missing_mass": mass.mean,
        "low": mass.low,
        "high": mass.high,
    }


def _floor(result: Comparison, eps: float) -> float:
    return next(entry.lower_bound for entry in result.entries if entry.eps == eps)


# ---- words


def _print(data: UserItems, result: Comparison, levels: list[float], num_trials: int) -> None:
    console = out()
    say(
        f"{name_text(result.dataset, 40)} · {data.num_users:,} users · {data.num_items:,} items · "
        f"{data.num_pairs:,} pairs · δ = {result.entries[0].delta:g}",
        style="bold",
    )
    for eps in levels:
        entries = [entry for entry in result.entries if entry.eps == eps]
        bounds = list(dict.fromkeys(entry.max_items_per_user for entry in entries))
        for first in range(0, len(bounds), _COLUMNS):
            say("", f"ε = {eps:g}: missing mass in %, and items released at the best Δ0")
            console.print(_table(entries, bounds[first : first + _COLUMNS], _floor(result, eps)))
        say(*_sentences(result, eps))
    if not all(entry.competitor.private for entry in result.entries):
        say("", "* claims no privacy: a specimen, not a baseline.")
    say("", _precision(result, num_trials), "", _SPENDS)


def _table(entries: list[Entry], bounds: list[int], floor: float) -> Any:
    by_label: dict[str, list[Entry]] = {}
    for entry in entries:
        by_label.setdefault(entry.competitor.label, []).append(entry)
    best = {label: min(own, key=lambda e: e.missing_mass.mean) for label, own in by_label.items()}
    made = table("mechanism", *(f"Δ0 = {bounds[0]:,}", *(f"{b:,}" for b in bounds[1:])), "items")
    for label in sorted(by_label, key=lambda name: best[name].missing_mass.mean):
        masses = {e.max_items_per_user: e.missing_mass.mean for e in by_label[label]}
        made.add_row(
            name_text(label + ("" if best[label].competitor.private else " *")),
            *(_points(masses[bound]) for bound in bounds),
            number(best[label].released.mean, 3),
        )
    made.add_row("[L2]", *([_points(floor)] * len(bounds)), "", style="dim")
    return made


def _points(share: float) -> str:
    """Per cent with two decimals; what is below 1 never reads as 100."""
    return f"{min(100 * share, 99.99 if share < 1 else 100.0):.2f}"


def _sentences(result: Comparison, eps: float) -> list[str]:
    """The standing in words."""
    standing = _standing(result, eps)
    best, floor = standing["best"], standing["lower_bound"]
    if best is None:
        return []
    times = f", {best['missing_mass'] / floor:.3g} times [L2]" if floor > 0 else ""
    said = [
        f"Least: {best['mechanism']} with Δ0 = {best['max_items_per_user']:,}, "
        f"{percent(best['missing_mass'])}{times}."
    ]
    for own in standing["wgm"]:
        parts = []
        for name, words in (("above_best", "the best"), ("above_policies", "the best policy")):
            far = own[name]
            if far is not None and far["than"]["mechanism"] != own["mechanism"]:
                parts.append(
                    f"{_signed(far['share'])} {words} ({far['than']['mechanism']}, "
                    f"Δ0 = {far['than']['max_items_per_user']:,})"
                )
        if parts:
            said.append(f"{own['mechanism']} at equal Δ0: at most {', '.join(parts)}.")
    return said


def _signed(share: float) -> str:
    return f"{abs(100 * share):.2g} % {'above' if share >= 0 else 'below'}"


def _precision(result: Comparison, num_trials: int) -> str:
    """How exact the numbers are."""
    import math

    rest = [entry.missing_mass for entry in result.entries if entry.kind != "exact"]
    if not rest:
        return "All numbers are exact means: no trial was needed."
    exact = len(result.entries) - len(rest)
    width = max((mass.high - mass.low) / 2 for mass in rest)
    known = f"at most ± {100 * width:.2g} points" if math.isfinite(width) else "unknown"
    return (
        f"{exact:,} of {len(result.entries):,} numbers are exact means, the others of "
        f"{num_trials:,} trials; their 95 % intervals are {known}."
    )


def _write(
    folder: Path,
    data: DataOptions,
    asked: list[int | str],
    result: Comparison,
    told: dict[str, Any],
) -> list[str]:
    """Two plots with their numbers, the table, and where it comes from."""
    from experiments.plots import save
    from experiments.plots.comparison import comparison_plot, released_plot
    from experiments.sweep.store import manifest, write_atomic, write_json

    frame = result.to_frame()
    title = f"{result.dataset}, δ = {told['delta']:g}"
    files: list[Path] = []
    for stem, draw in (("missing_mass", comparison_plot), ("released", released_plot)):
        figure, numbers = draw(frame, title=title)
        files += save(figure, folder / stem, numbers)
    write_atomic(folder / "compare.parquet", frame.write_parquet)
    write_atomic(folder / "compare.csv", frame.write_csv().encode())
    settings = {
        **data.settings,
        "eps": told["eps"],
        "delta": told["delta"],
        "max_items_per_user": asked,
        "mechanisms": list(dict.fromkeys(e.competitor.label for e in result.entries)),
        "trials": told["trials"],
    }
    write_json(
        folder / "manifest.json",
        manifest("compare", settings=settings, seeds=result.seed, standings=told["standings"]),
    )
    names = ("compare.parquet", "compare.csv", "manifest.json")
    return [str(file) for file in (*files, *(folder / name for name in names))]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)
