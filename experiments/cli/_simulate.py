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
    import polars as pl

    from theory import Calibration, MissProbabilities, Profile, UserItems
    from wgm_jax import Trials

_BETA = 0.05  # of the bounds that the histogram marks
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
    trials.parquet, with a histogram (exact mean and bounds marked) and a manifest. Floating-point
    noise and a reproducible generator: for simulation, never for a release.

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

    from experiments.exact_misses import exact_misses
    from experiments.flow_store import make_ready
    from theory import Profile
    from wgm_jax import simulate

    with progress("certifying", quiet=output.quiet) as update:
        make_ready(
            mechanism,
            calibration,
            lambda stage, share: update(int(100 * share), 100, stage),
        )
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
    profile = Profile.from_user_items(found, max_items_per_user=count)
    misses = exact_misses(mechanism, profile, calibration)
    told = [
        {**_entries(data.name, found, result, index), **reference}
        for index, reference in enumerate(_references(profile, calibration, misses))
    ]
    files = []
    if out_folder is not None:
        marks = _marks(profile, misses, result, told)
        files = _write(out_folder, data, asked[0], result, told, marks)
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


def _references(
    profile: Profile, noise: Calibration, misses: MissProbabilities | None
) -> list[dict[str, Any]]:
    """What theory says of the mean at every eps: the least of all, and its own where known."""
    from theory import instance_lower_bound

    least = instance_lower_bound(profile, eps=noise.eps, delta=noise.delta).value
    own = [None] * len(noise) if misses is None else misses.mean_missing_mass.tolist()
    return [
        {"lower_bound": bound, "exact_mean": mean}
        for bound, mean in zip(least.tolist(), own, strict=True)
    ]


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
    folder: Path,
    data: DataOptions,
    asked: int | str,
    trials: Trials,
    told: list[dict[str, Any]],
    marks: pl.DataFrame,
) -> list[str]:
    """Numbers of every trial, their histogram, and where they come from."""
    from experiments.plots import save
    from experiments.plots.histogram import mass_histogram
    from experiments.sweep.store import manifest, write_atomic, write_json

    noise, frame = trials.calibration, trials.to_frame()
    settings = {
        **data.settings,
        "eps": noise.eps.tolist(),
        "delta": told[0]["delta"],
        "max_items_per_user": asked,
        "method": noise.method,
        "mechanism": trials.mechanism,
        "trials": trials.num_trials,
    }
    write_atomic(folder / "trials.parquet", frame.write_parquet)
    title = f"{data.name}, {trials.mechanism}, Δ0 = {told[0]['max_items_per_user']:,}"
    figure, plotted = mass_histogram(frame, marks, title=title)
    drawn = save(figure, folder / "histogram", plotted)
    write_json(
        folder / "manifest.json",
        manifest(
            "simulate", settings=settings, seeds=trials.seed, sampler=trials.sampler, results=told
        ),
    )
    names = ["trials.parquet", *(path.name for path in drawn), "manifest.json"]
    return [str(folder / name) for name in names]


def _marks(
    profile: Profile,
    misses: MissProbabilities | None,
    trials: Trials,
    told: list[dict[str, Any]],
) -> pl.DataFrame:
    """What the histogram marks at every eps; bounds are at beta = 0.05, and [U2*] is of wgm."""
    import polars as pl

    from experiments.exact_misses import WGM
    from theory import hinge_bound, instance_bound

    frame = pl.DataFrame(
        [{name: row[name] for name in ("eps", "lower_bound", "exact_mean")} for row in told],
        schema_overrides={"exact_mean": pl.Float64},
    )
    if misses is not None:
        frame = frame.with_columns(certificate=hinge_bound(misses, _BETA).value)
    if trials.mechanism == WGM:
        instance = instance_bound(profile, trials.calibration, _BETA, tau="u1_star")
        frame = frame.with_columns(upper_instance_star=instance.value)
    return frame


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate")(simulate)
