"""`wgm profile` and `wgm bounds`: what a data set looks like, and what can be proved on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli._cases import Scan, one_case
from experiments.cli._flow import WithFlow
from experiments.cli._ladder import Ladder, closing, print_ladder
from experiments.cli._options import (
    Beta,
    DataOptions,
    Delta,
    Epsilons,
    MaxItems,
    Method,
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
from experiments.cli._zipf import ZipfOptions
from experiments.flow_store import NAME

if TYPE_CHECKING:
    from theory import UserItems

_TOP_ITEMS = 5


@grouped
def profile(
    data: DataOptions,
    *,
    tau: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TAU[,TAU...]",
            help="Frequencies whose tail the Zipf certificates are best for; default 10,100,1000.",
        ),
    ] = None,
    out_folder: OutFolder = None,
    output: OutputOptions,
) -> None:
    """Sizes of a data set, its most frequent items and its Zipf certificates.

    With --out also plots: rank against frequency with its certificate, and the set sizes.

    Example: wgm profile purchases.csv --user-column customer --item-column sku --out profile/
    """
    levels = numbers("tau", tau, [10.0, 100.0, 1000.0])
    found = data.load()
    told = {"dataset": data.name, **_sizes(found), **_certificates(found, levels)}
    if out_folder is not None:
        told["files"] = _write_profile(out_folder, data, found, told)
    if output.json:
        print_json(told)
        return
    _print_profile(told)
    # A power of ten well below one over the number of users.
    delta = min(1e-5, 10.0 ** -(len(str(found.num_users)) + 1))
    hint(
        f"Next: wgm bounds {data.shell} --eps 1 --delta {delta:g} --max-items-per-user 10,100,max",
        quiet=output.quiet,
    )


def _sizes(data: UserItems) -> dict[str, Any]:
    import numpy as np

    # Ties in the order of the data: a stable sort of the negated counts.
    top = np.argsort(-data.frequencies, kind="stable")[:_TOP_ITEMS]
    labels = data.item_labels
    return {
        "users": data.num_users,
        "items": data.num_items,
        "pairs": data.num_pairs,
        "max_set_size": data.max_set_size,
        "median_set_size": data.median_set_size,
        "mean_set_size": data.num_pairs / data.num_users,
        "top_count": data.top_count,
        "items_held_once": int((data.frequencies == 1).sum()),
        "duplicates_removed": data.duplicates_removed,
        "empty_users_dropped": data.empty_users_dropped,
        "missing_dropped": data.missing_dropped,
        "top_items": [
            {
                "item": str(labels[int(i)] if labels is not None else int(i)),
                "users": int(data.frequencies[i]),
            }
            for i in top
        ],
    }


def _certificates(data: UserItems, levels: list[float]) -> dict[str, Any]:
    """The best certificate for the tail below each frequency; the middle one stands for all."""
    from theory import Profile, best_certificate, zipf_tail_bound

    sizes = Profile.from_user_items(data, max_items_per_user=data.max_set_size)
    made = []
    for level in levels:
        best = best_certificate(sizes, level)
        bound = zipf_tail_bound(level, best, num_pairs=sizes.num_pairs)
        made.append(
            {
                "tau": level,
                "s": best.s,
                "log_constant": best.log_constant,
                "constant": best.constant,
                "tail": float(sizes.tail(level)),
                "tail_bound": float(bound),
            }
        )
    return {"zipf": made[len(made) // 2], "zipf_certificates": made}


def _print_profile(told: dict[str, Any]) -> None:
    say(str(name_text(told["dataset"], 60)), style="bold")
    made = table("", "", "", left=1)
    made.show_header = False
    made.columns[2].justify, made.columns[2].no_wrap = "left", False
    once = f"{number(told['items_held_once'])} held by one user"
    made.add_row("users", number(told["users"]), "")
    made.add_row("items", number(told["items"]), once)
    made.add_row("pairs", number(told["pairs"]), "user-item pairs, N")
    sizes = f"median {told['median_set_size']:g}, mean {number(told['mean_set_size'])}"
    made.add_row("largest set", number(told["max_set_size"]), sizes)
    made.add_row("top item", number(told["top_count"]), "users")
    for name, what in (
        ("duplicates_removed", "duplicate pairs removed"),
        ("missing_dropped", "rows without user or item dropped"),
        ("empty_users_dropped", "users without items dropped"),
    ):
        if told[name]:
            made.add_row("", number(told[name]), what)
    out().print(made)

    say("", "Most frequent items", style="bold")
    made = table("item", "users", "share of pairs")
    for entry in told["top_items"]:
        share = percent(entry["users"] / told["pairs"])
        made.add_row(name_text(entry["item"], 40), number(entry["users"]), share)
    out().print(made)

    say("", "Zipf certificates (C, s): N_(r)/N ≤ C/r^s at every rank r", style="bold")
    made = table("best for τ", "s", "ln C", "pairs with N(x) ≤ τ", "bound on them", left=0)
    for row in told["zipf_certificates"]:
        bound = percent(row["tail_bound"]) if row["tail_bound"] < 1 else "vacuous"
        values = (number(row["s"]), number(row["log_constant"]), percent(row["tail"]), bound)
        made.add_row(f"{row['tau']:g}", *values)
    out().print(made)
    if told.get("files"):
        say("", "Files: " + " ".join(told["files"]))


def _write_profile(
    folder: Path, options: DataOptions, data: UserItems, told: dict[str, Any]
) -> list[str]:
    """Plots, their numbers, and what was printed."""
    from experiments.plots import rank_frequency, save, set_size_ecdf
    from experiments.sweep.store import manifest, writable_folder, write_json
    from theory import Profile

    writable_folder(folder)
    sizes = Profile.from_user_items(data, max_items_per_user=data.max_set_size)
    figures = {
        "rank_frequency": rank_frequency(
            sizes,
            [(entry["s"], entry["log_constant"]) for entry in told["zipf_certificates"]][:4],
            title=told["dataset"],
        ),
        "set_sizes": set_size_ecdf(data.set_sizes, title=told["dataset"]),
    }
    files = [
        file
        for stem, (figure, numbers) in figures.items()
        for file in save(figure, folder / stem, numbers)
    ]
    write_json(
        folder / "manifest.json", manifest("profile", settings=options.settings, results=told)
    )
    return [str(file) for file in (*files, folder / "manifest.json")]


# ---- bounds


@grouped
def bounds(
    data: DataOptions,
    *,
    zipf: ZipfOptions,
    eps: Epsilons,
    delta: Delta,
    max_items_per_user: MaxItems,
    beta: Beta = 0.05,
    method: Method = "split",
    mechanism: WithFlow = "wgm",
    trials: Annotated[
        float,
        typer.Option(metavar="R", help="Trials for the quantile where its exact law is not known."),
    ] = 0,
    seed: Seed = 0,
    scan: Scan = False,
    out_folder: OutFolder = None,
    output: OutputOptions,
) -> None:
    """The ladder: what no mechanism can beat, exact mean and quantile, certificates, bounds.

    One block per ε and Δ0. In JSON the bounds are raw: an upper bound of 1 or more is true and
    says nothing. With several ε or Δ0 the list is under "ladder", its first entry on top too.
    With --out also the plot, the numbers and a manifest.

    Example: wgm bounds ratings.csv --eps 1 --delta 1e-5 --max-items-per-user 10,100,max
    """
    import numpy as np

    from experiments.cells import run_case
    from experiments.cli._flow import check_mechanism, flow_means, flow_sentence, made_flows
    from theory import Profile, calibrate
    from theory._check import check_beta, check_count

    levels, asked = numbers("eps", eps, []), contribution_bounds(max_items_per_user, [])
    # Everything that can be wrong without the data is said before they are read.
    check_beta(beta)
    check_mechanism(mechanism)
    calibrate(eps=np.array(levels), delta=delta, max_items_per_user=1, method=method)
    num_trials = check_count("num_trials", trials, minimum=0, maximum=10**9)
    seed = check_count("seed", seed, minimum=0, maximum=2**63 - 1)

    case = one_case(data, zipf, scan=scan)
    if case.data.num_users is not None:
        warn_about_delta(delta, case.data.num_users)
    runs = []
    with progress("bounds", quiet=output.quiet) as update:
        for done, bound in enumerate(asked):
            update(done, len(asked), f"Δ0 = {bound}")
            clipped = case.contribution_bound(bound) < case.data.max_set_size
            simulated = num_trials if clipped and not isinstance(case.data, Profile) else 0
            runs.append(
                run_case(
                    case,
                    max_items_per_user=bound,
                    eps=levels,
                    delta=delta,
                    beta=beta,
                    method=method,
                    num_trials=simulated,
                    seed=seed,
                )
            )
        update(len(asked), len(asked), "")
    by_bound = [Ladder.blocks(run) for run in runs]
    blocks = [entry for at_eps in zip(*by_bound, strict=True) for entry in at_eps]
    told = [block.entries() for block in blocks]
    if mechanism == NAME:
        counts = [case.contribution_bound(bound) for bound in asked]
        with progress("certifying", quiet=output.quiet) as update:
            flows = made_flows(levels, delta, counts, update)
        means = flow_means(case, flows, beta)
        # Blocks have one Delta0 after the other within an eps, flows the other way round.
        for place, entry in enumerate(told):
            at_eps, at_bound = divmod(place, len(asked))
            entry["bernoulli_flow"] = means[at_bound * len(levels) + at_eps]
    files = [] if out_folder is None else _write_bounds(out_folder, data, told)
    if output.json:
        more = {"ladder": told} if len(told) > 1 else {}
        print_json({**told[0], **more, **({"files": files} if files else {})})
        return
    users = case.data.num_users
    counted = "" if users is None else f"{users:,} users · "
    spent = "" if users is None else f" · δ × users = {delta * users:.2g}"
    say(
        f"{name_text(case.name, 40)} · {counted}{case.data.num_items:,} items · "
        f"{case.data.num_pairs:,} pairs{spent}",
        style="bold",
    )
    for block, entry in zip(blocks, told, strict=True):
        print_ladder(block)
        if "bernoulli_flow" in entry:
            say(flow_sentence(entry["bernoulli_flow"], beta))
    best = closing(blocks)
    if best:
        say("", best)
    if files:
        say("", "Files: " + " ".join(files))
    source = zipf.shell if zipf.given else data.shell
    hint(f"Next: wgm plan {source} --eps {levels[0]:g} --delta {delta:g}", quiet=output.quiet)


def _write_bounds(folder: Path, options: DataOptions, told: list[dict[str, Any]]) -> list[str]:
    """Plot, numbers and manifest."""
    from experiments.plots import ladder_plot, save
    from experiments.sweep.store import manifest, writable_folder, write_json

    writable_folder(folder)
    figure, plotted = ladder_plot(told)
    files = [str(file) for file in save(figure, folder / "ladder", plotted)]
    write_json(
        folder / "manifest.json", manifest("bounds", settings=options.settings, results=told)
    )
    return [*files, str(folder / "manifest.json")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("profile")(profile)
    app.command("bounds")(bounds)
