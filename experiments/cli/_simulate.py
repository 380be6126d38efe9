"""`wgm simulate`: trials of a mechanism on one data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli._options import (
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
    from theory import UserItems
    from wgm_jax import Trials

_METRICS = ("missing_mass", "max_missing_mass", "num_released")


@grouped
def simulate(
    data: DataOptions,
    *,
    eps: Epsilons,
    delta: Delta,
    max_items_per_user: MaxItems,
    mechanism: Annotated[str, typer.Option(metavar="NAME", help="See wgm mechanisms.")] = "wgm",
    method: Method = "split",
    trials: NumTrials = 1000,
    seed: Seed = 0,
    sampler: Annotated[
        str, typer.Option(metavar="NAME", help="auto, padded or lanes; see docs/simulation.md.")
    ] = "auto",
    device: Annotated[
        str | None, typer.Option(metavar="cpu|gpu", help="Where; default what JAX finds.")
    ] = None,
    out_folder: OutFolder = None,
    output: OutputOptions,
) -> None:
    """Missing mass over independent trials of a mechanism.

    Several ε are served by the same draws. With --out the numbers of every trial are written to
    trials.parquet, with a manifest. Floating-point noise and a reproducible generator: for
    simulation, never for a release.

    Example: wgm simulate ratings.csv --eps 1 --delta 1e-5 --max-items-per-user 100 --trials 2000
    """
    import numpy as np

    from theory import calibrate
    from theory._check import check_count, invalid

    levels, asked = numbers("eps", eps, []), contribution_bounds(max_items_per_user, [])
    if len(asked) != 1:
        invalid("max_items_per_user", ",".join(map(str, asked)), "must be one number, or max")
    settings = {"delta": delta, "method": method}
    # Everything that can be wrong without the data is said before they are read.
    calibrate(eps=np.array(levels), max_items_per_user=1, **settings)
    num_trials = check_count("num_trials", trials, maximum=10**9)
    seed = check_count("seed", seed, minimum=0, maximum=2**63 - 1)
    _check_mechanism(mechanism)

    found = data.load()
    count = found.max_set_size if asked[0] == "max" else int(asked[0])
    calibration = calibrate(eps=np.array(levels), max_items_per_user=count, **settings)
    if out_folder is not None:
        from experiments.sweep.store import writable_folder

        writable_folder(out_folder)
    warn_about_delta(delta, found.num_users)

    from wgm_jax import simulate

    if mechanism == "bernoulli-flow":
        from experiments.flow_store import ready_flows

        with progress("certifying", quiet=output.quiet) as update:
            ready_flows(calibration, lambda stage, share: update(int(100 * share), 100, stage))
    with progress("sampling", quiet=output.quiet) as update:
        result = simulate(
            found,
            calibration,
            mechanism,
            num_trials=num_trials,
            seed=seed,
            sampler=sampler,
            devices=_devices(device),
            progress=update,
        )
    told = [_entries(data.name, found, result, index) for index in range(len(levels))]
    files = [] if out_folder is None else _write(out_folder, data, asked[0], result, told)
    if output.json:
        more: dict[str, Any] = {"grid": told} if len(told) > 1 else {}
        more |= {"files": files} if files else {}
        print_json({**told[0], **more})
        return
    _print(told)
    if files:
        say("Files: " + " ".join(files))
    hint(
        f"Next: wgm bounds {data.shell} --eps {levels[0]:g} --delta {delta:g} "
        f"--max-items-per-user {asked[0]}",
        quiet=output.quiet,
    )


def _devices(kind: str | None) -> list[Any] | None:
    """All local devices of a kind; None for JAX's choice."""
    from theory._check import invalid

    if kind is None:
        return None
    if kind not in ("cpu", "gpu"):
        invalid("device", kind, "must be cpu or gpu")
    import jax

    try:
        return list(jax.local_devices(backend=kind))
    except RuntimeError:
        invalid("device", kind, "must be there; JAX finds none here")


def _check_mechanism(name: str) -> None:
    from theory._check import invalid
    from wgm_jax import mechanisms

    known = [info.name for info in mechanisms("set-union")]
    if name not in known:
        invalid("mechanism", name, f"must be one of {', '.join(known)}")


def _entries(name: str, data: UserItems, trials: Trials, index: int) -> dict[str, Any]:
    noise = trials.calibration[index]
    return {
        "dataset": name,
        "mechanism": trials.mechanism,
        "eps": noise.eps,
        "delta": noise.delta,
        "max_items_per_user": noise.max_items_per_user,
        "method": noise.method,
        "sigma": noise.sigma,
        "threshold": noise.threshold,
        "delta_times_users": noise.delta * data.num_users,
        "trials": trials.num_trials,
        "seed": trials.seed,
        **{metric: _summary(trials, metric, index) for metric in _METRICS},
        **_references(data, trials, index),
        "items": data.num_items,
        "seconds": trials.run_seconds + trials.compile_seconds,
        "run_seconds": trials.run_seconds,
        "compile_seconds": trials.compile_seconds,
        "sampler": trials.sampler,
        "versions": dict(trials.versions),
        "notes": list(trials.notes),
    }


def _summary(trials: Trials, metric: str, index: int) -> dict[str, float]:
    """Mean with its 95 % confidence interval, and observed quantiles."""
    import numpy as np

    from experiments.statistics.means import mean_interval
    from experiments.statistics.slopes import empirical_quantile

    values = np.ascontiguousarray(getattr(trials, metric)[:, index], dtype=np.float64)
    told = {"mean": float(values.mean())}
    if metric == "missing_mass":
        low, high = mean_interval(values, alpha=0.05)[:2]
        told |= {"mean_low": float(low), "mean_high": float(high)}
    levels = {"q05": 0.05, "q50": 0.5, "q95": 0.95}
    return told | {name: empirical_quantile(values, q) for name, q in levels.items()}


def _references(data: UserItems, trials: Trials, index: int) -> dict[str, Any]:
    """What theory says of the mean: the least of all mechanisms, and its own where known."""
    from theory import Profile, instance_lower_bound, miss_probabilities
    from theory.flow.exact import flow_miss_probabilities
    from wgm_jax.set_union.flows import known_flow

    noise = trials.calibration[index]
    profile = Profile.from_user_items(data, max_items_per_user=noise.max_items_per_user)
    misses = None
    if trials.mechanism == "wgm":
        misses = miss_probabilities(profile, noise)
    elif trials.mechanism == "bernoulli-flow":
        flow = known_flow(noise.eps, noise.delta, noise.max_items_per_user)
        misses = flow_miss_probabilities(profile, flow)
    return {
        "lower_bound": float(instance_lower_bound(profile, eps=noise.eps, delta=noise.delta).value),
        "exact_mean": None if misses is None else misses.mean_missing_mass,
    }


def _print(told: list[dict[str, Any]]) -> None:
    first = told[0]
    say(
        f"{name_text(first['dataset'], 40)} · {first['mechanism']} · Δ0 = "
        f"{first['max_items_per_user']:,} · δ = {first['delta']:g} ({first['method']}) · "
        f"{first['trials']:,} trials · seed {first['seed']}",
        style="bold",
    )
    made = table("ε", "", "mean", "5 %", "50 %", "95 %", "least", "exact", left=2)
    for row in told:
        mass, largest, released = (row[metric] for metric in _METRICS)
        levels = ("mean", "q05", "q50", "q95")
        theory = percent(row["lower_bound"]), percent(row["exact_mean"])
        made.add_row(
            f"{row['eps']:g}", "missing mass", *(percent(mass[k]) for k in levels), *theory
        )
        made.add_row("", "largest item", *(percent(largest[k]) for k in levels))
        made.add_row("", "released", *(number(released[k], 5) for k in levels))
    out().print(made)
    say("least: mean that no private mechanism can be below [L2]; exact: mean [E2], where known")
    for note in first["notes"]:
        say(note[:1].upper() + note[1:] + ".")
    seconds = f"{first['run_seconds']:.2f} s, and {first['compile_seconds']:.2f} s to compile"
    say(f"{seconds}; {first['sampler']}")


def _write(
    folder: Path, data: DataOptions, asked: int | str, trials: Trials, told: list[dict[str, Any]]
) -> list[str]:
    from experiments.sweep.store import manifest, write_atomic, write_json

    noise = trials.calibration
    settings = {
        **data.settings,
        "eps": noise.eps.tolist(),
        "delta": told[0]["delta"],
        "max_items_per_user": asked,
        "method": noise.method,
        "mechanism": trials.mechanism,
        "trials": trials.num_trials,
    }
    write_atomic(folder / "trials.parquet", trials.to_frame().write_parquet)
    write_json(
        folder / "manifest.json",
        manifest(
            "simulate", settings=settings, seeds=trials.seed, sampler=trials.sampler, results=told
        ),
    )
    return [str(folder / name) for name in ("trials.parquet", "manifest.json")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate")(simulate)
