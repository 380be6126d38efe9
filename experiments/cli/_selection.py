"""What `wgm topk` and `wgm hitting-set` share: options, tables, files, the closing sentence."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli._options import (
    Beta,
    DataOptions,
    Delta,
    Epsilons,
    MaxItems,
    Method,
    NumTrials,
    OutFolder,
    OutputOptions,
    Seed,
    contribution_bounds,
    numbers,
)
from experiments.cli._output import (
    hint,
    name_text,
    out,
    percent,
    print_json,
    progress,
    say,
    table,
    warn_about_delta,
)

if TYPE_CHECKING:
    from experiments.selection.compare import Comparison
    from experiments.selection.methods import Task


@dataclasses.dataclass(frozen=True)
class SelectionOptions:
    """Options of both selections."""

    k: Annotated[
        list[str],
        typer.Option("--k", "-k", metavar="K[,K...]", help="Items to select; one or several."),
    ]
    eps: Epsilons
    delta: Delta
    max_items_per_user: MaxItems
    mechanism: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Compare these only; repeatable. All."),
    ] = None
    domain_share: Annotated[
        str,
        typer.Option(
            metavar="A[,B]",
            help="Share of ε and δ for the domain, and if given for the selection.",
        ),
    ] = "0.5"
    beta: Beta = 0.05
    method: Method = "split"
    trials: NumTrials = 100
    seed: Seed = 0
    out_folder: OutFolder = None


# Metric, heading and unit of each table.
_TABLES = {
    "top-k": (
        ("missing_mass", "top-k missing mass", "% of the pairs"),
        ("l1_loss", "ℓ1 loss", "% of the pairs"),
    ),
    "hitting-set": (("missed_share", "users missed", "% of the users"),),
}
# Columns of an 80-character table that have room for an interval.
_MOST_SIZES = 6
_LEGENDS = {
    "top-k": "± 95 % interval of the mean. [L4]: mean that no private method can be below on an "
    "unknown domain. [K3]: what peeling exceeds with probability β at most.",
    "hitting-set": "± 95 % interval of the mean. [L5]: mean that no private method can be below on "
    "an unknown domain. [H1]: what user-peeling exceeds with probability β at most.",
}
_OF = {"top-k": "of the pairs", "hitting-set": "of the users"}


@dataclasses.dataclass(frozen=True)
class Asked:
    """Checked settings of a comparison.

    Attributes:
        eps: Privacy parameters.
        k: Numbers of items, ascending.
        max_items_per_user: Delta0, a number or "max".
        shares: Shares of the budget, domain first.
        num_trials: Trials.
        seed: Seed.
    """

    eps: list[float]
    k: list[int]
    max_items_per_user: int | str
    shares: tuple[float, float]
    num_trials: int
    seed: int


def _asked(options: SelectionOptions) -> Asked:
    """Everything that can be wrong without the data, said before they are read."""
    import numpy as np

    from theory import Budget, calibrate
    from theory._check import check_beta, check_count, invalid

    sizes = sorted({check_count("k", size) for size in numbers("k", options.k, [])})
    levels = numbers("eps", options.eps, [])
    bounds = contribution_bounds(options.max_items_per_user, [])
    if len(bounds) != 1:
        invalid("max_items_per_user", ",".join(map(str, bounds)), "must be one number, or max")
    shares = numbers("domain_share", [options.domain_share], [])
    pair = (shares[0], shares[1] if len(shares) == 2 else 1 - shares[0])
    if len(shares) > 2 or not 0 < pair[0] < 1 or abs(sum(pair) - 1) > 1e-12:
        invalid(
            "domain_share", options.domain_share,
            "must be one share in (0, 1), or two that add up to 1",
        )  # fmt: skip
    for level in levels:
        if level == 0:
            invalid("eps", level, "must be a number in (0, 1e5]")
        Budget(level, options.delta, pair, pair)
    calibrate(
        eps=np.array(levels), delta=options.delta, max_items_per_user=1, method=options.method
    )
    check_beta(options.beta)
    return Asked(
        eps=levels,
        k=sizes,
        max_items_per_user=bounds[0],
        shares=pair,
        num_trials=check_count("num_trials", options.trials, maximum=10**6),
        seed=check_count("seed", options.seed, minimum=0, maximum=2**63 - 1),
    )


def run(
    task: Task,
    data: DataOptions,
    options: SelectionOptions,
    output: OutputOptions,
    *,
    k_bar: list[str] | None = None,
    conversion: str = "paper",
    accountant: str = "closed",
) -> None:
    """Compare, print and write."""
    settings = _asked(options)
    from experiments.selection import compare, methods

    sizes = {} if k_bar is None else {"k_bar": ",".join(k_bar).split(",")}
    chosen = methods(
        task, options.mechanism or (), conversion=conversion, accountant=accountant, **sizes
    )
    if options.out_folder is not None:
        from experiments.sweep.store import writable_folder

        writable_folder(options.out_folder)
    found = data.load()
    bound = settings.max_items_per_user
    count = found.max_set_size if bound == "max" else int(bound)
    warn_about_delta(options.delta, found.num_users)
    with progress("sampling", quiet=output.quiet) as update:
        result = compare(
            found,
            task,
            chosen,
            eps=settings.eps,
            delta=options.delta,
            k=settings.k,
            max_items_per_user=count,
            num_trials=settings.num_trials,
            seed=settings.seed,
            beta=options.beta,
            domain_share=settings.shares[0],
            method=options.method,
            conversion=conversion,
            accountant=accountant,
            dataset=data.name,
            progress=update,
        )
    recorded = {
        **data.settings,
        **dataclasses.asdict(settings),
        "delta": options.delta,
        "beta": options.beta,
        "method": options.method,
        "conversion": conversion,
        "accountant": accountant,
        "methods": [each.label for each in chosen],
    }
    files = [] if options.out_folder is None else _write(options.out_folder, result, recorded)
    if output.json:
        print_json({**_entries(result), **({"files": files} if files else {})})
        return
    _print(result)
    if files:
        say("Files: " + " ".join(files))
    other = "hitting-set" if task == "top-k" else "topk"
    hint(
        f"Next: wgm {other} {data.shell} -k {','.join(map(str, settings.k))} --eps "
        f"{settings.eps[0]:g} --delta {options.delta:g} --max-items-per-user {bound}",
        quiet=output.quiet,
    )


def _entries(result: Comparison) -> dict[str, Any]:
    first = result.trials[0]
    return {
        "dataset": result.dataset,
        "task": result.task,
        "users": result.data.num_users,
        "items": result.data.num_items,
        "pairs": result.data.num_pairs,
        "delta": first.delta,
        "max_items_per_user": first.max_items_per_user,
        "trials": first.num_trials,
        "seed": first.seed,
        "results": result.rows(),
        "best": [
            {
                **entry._asdict(),
                "ahead": None if entry.ahead is None else entry.ahead._asdict(),
                "alone": entry.alone,
            }
            for entry in result.best()
        ],
        "seconds": {
            "domains": first.domain_seconds,
            **{m.label: t.seconds for m, t in zip(result.methods, result.trials, strict=True)},
        },
        "versions": dict(first.versions),
        "notes": _notes(result),
    }


def _notes(result: Comparison) -> list[str]:
    notes = []
    for e, eps in enumerate(result.trials[0].eps):
        sizes = [t.domain_sizes[:, e] for t in result.trials if t.domain_sizes is not None]
        if sizes and sizes[0].mean() < result.trials[0].k[-1]:
            notes.append(
                f"at ε = {eps:g} the domain has {sizes[0].mean():.3g} items on average, and more "
                "than it has cannot be selected from it"
            )
        if sizes and not sizes[0].any():
            notes.append(f"at ε = {eps:g} every domain was empty: nothing is released from it")
    return notes


# ---- text


def _print(result: Comparison) -> None:
    first = result.trials[0]
    say(
        f"{name_text(result.dataset, 40)} · {result.task} · Δ0 = {first.max_items_per_user:,} · "
        f"δ = {first.delta:g} · {first.num_trials:,} trials · seed {first.seed}",
        style="bold",
    )
    rows = result.rows()
    for eps in first.eps:
        for metric, heading, unit in _TABLES[result.task]:
            part = [r for r in rows if r["eps"] == eps and r["metric"] == metric]
            _print_table(result, part, f"ε = {eps:g} · {heading}, {unit}")
    noise = {
        "top-k": f" Noise of peeling: conversion {result.conversion}.",
        "hitting-set": f" Noise of user peeling: accountant {result.accountant}.",
    }
    legend = _LEGENDS[result.task] + noise[result.task]
    if any(m.public_domain for m in result.methods):
        legend += " *: takes the union of all sets as public."
    if not all(m.private for m in result.methods):
        legend += " †: not private."
    say("", legend)
    for note in _notes(result):
        say(note[:1].upper() + note[1:] + ".")
    for line in closing(result):
        say(line)


def _print_table(result: Comparison, part: list[dict[str, Any]], heading: str) -> None:
    say("", heading, style="bold")
    sizes = result.trials[0].k
    marks = {
        m.label: "†" if not m.private else "*" if m.public_domain else "" for m in result.methods
    }
    labels = dict.fromkeys(r["method"] for r in part if r["role"] != "nothing" or r["mean"] < 1)
    lines = {
        label + marks.get(label, ""): [
            _cell(row, len(sizes) <= _MOST_SIZES) for row in part if row["method"] == label
        ]
        for label in labels
    }
    heads = [f"{k:,}" for k in sizes]
    numbers = zip(heads, *lines.values(), strict=True)
    # Names give way to numbers.
    room = out().width - sum(1 + max(map(len, column)) for column in numbers)
    made = table("k =", *heads)
    made.padding = (0, 1, 0, 0)
    for label, cells in lines.items():
        made.add_row(name_text(label, min(30, max(room + label.count("k̄"), 8))), *cells)
    out().print(made)


def _cell(row: dict[str, Any], wide: bool) -> str:
    """A mean with what is known of it at the precision shown."""
    mean = 100 * row["mean"]
    if row["role"] == "guarantee" and row["mean"] >= 1:
        return "vacuous" if wide else "–"
    text = _digits(mean)
    half = 0.0 if row["low"] is None else 100 * (row["high"] - row["low"]) / 2
    places = 2 if mean < 9.995 else 1
    return f"{text}±{half:.{places}f}" if wide and half >= 0.5 * 10.0**-places else text


def _digits(value: float) -> str:
    """Three digits, fewer where the value is small."""
    if value < 5e-5:
        return "0"
    if value < 0.0995:
        return f"{value:.1g}"
    places = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{places}f}"


def closing(result: Comparison) -> list[str]:
    """One sentence per eps: which method is best, by how much, and how far from what is possible.

    Only methods that are private on an unknown domain compete.
    """
    lines = []
    for index, eps in enumerate(result.trials[0].eps):
        found = [entry for entry in result.best() if entry.eps == eps]
        if not found:
            return ["No method here is private on an unknown domain."]
        last = found[-1]
        told = f"{last.method} misses {percent(last.mean)} {_OF[result.task]}"
        if last.rival is None:
            start = f"at k = {last.k:,} {told}"
            for number, other in enumerate(result.methods):
                if other.label != last.method:
                    mean = float(result.samples(number, result.metrics[0])[:, index, -1].mean())
                    start += f", {other.label} {percent(mean)}"
        else:
            leaders: dict[str, list[str]] = {}
            for entry in found:
                name = entry.method if entry.alone else f"{entry.method} (tied: {entry.rival})"
                leaders.setdefault(name, []).append(f"{entry.k:,}")
            led = "; ".join(f"{name} at k = {', '.join(ks)}" for name, ks in leaders.items())
            assert last.ahead is not None
            start = (
                f"without a public domain, least is missed by {led}. At k = {last.k:,} {told}, "
                f"{100 * last.ahead.mean:.3g} points less than {last.rival}"
            )
        end = "theory excludes no smaller loss"
        if last.least > 0:
            end = f"no private method can be below {percent(last.least)} on average"
        lines.append(f"ε = {eps:g}: {start}; {end}.")
    return lines


# ---- files


def _write(folder: Path, result: Comparison, settings: dict[str, Any]) -> list[str]:
    from experiments.plots import save, selection_curves
    from experiments.sweep.store import manifest, write_atomic, write_json

    frame = result.table()
    write_atomic(folder / "comparison.parquet", frame.write_parquet)
    write_atomic(folder / "trials.parquet", result.to_frame().write_parquet)
    shown = [metric for metric, _, _ in _TABLES[result.task]]
    drawn = frame.filter(frame["metric"].is_in(shown))
    figure, plotted = selection_curves(drawn, title=result.dataset)
    files = [folder / "comparison.parquet", folder / "trials.parquet"]
    files += save(figure, folder / "comparison", plotted)
    command = {"top-k": "topk", "hitting-set": "hitting-set"}[result.task]
    write_json(
        folder / "manifest.json",
        manifest(
            command,
            settings=settings,
            seeds=result.trials[0].seed,
            files=[file.name for file in files],
            results=_entries(result),
        ),
    )
    return [str(file) for file in (*files, folder / "manifest.json")]
