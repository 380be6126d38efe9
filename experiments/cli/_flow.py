"""What the commands say about Bernoulli flow selection."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from experiments.cli._output import number, out, percent, say, table
from experiments.flow_store import NAME

if TYPE_CHECKING:
    from experiments.cells import Case
    from theory import MissProbabilities
    from theory.flow import FlowCalibration

Made = TypeVar("Made")
WithFlow: TypeAlias = Annotated[
    str,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        help=f"wgm, or {NAME}: what that would leave is told as well.",
    ),
]
MECHANISMS = ("wgm", NAME)
# Kept set sizes of the table of holders.
SIZES = (1, 2, 3, 5, 10, 20, 50, 100, 300, 1000)


def check_mechanism(name: str, *others: str) -> None:
    """Raise unless the mechanism has exact means, or is one of the others."""
    from theory._check import invalid

    known = (*MECHANISMS, *others)
    if name not in known:
        invalid("mechanism", name, f"must be one of {', '.join(known)}")


def made_flows(
    levels: list[float], delta: float, bounds: list[int], update: Callable[[int, int, str], Any]
) -> list[FlowCalibration]:
    """Calibrations for every bound and eps, from their files or made now."""
    from experiments.flow_store import stored_flow
    from theory.flow.calibration import check_flow_range

    return made(stored_flow, check_flow_range, levels, delta, bounds, update)


def made(
    stored: Callable[..., Made],
    check_range: Callable[[float, float, int], None],
    levels: list[float],
    delta: float,
    bounds: list[int],
    update: Callable[[int, int, str], Any],
) -> list[Made]:
    """Calibrations for every bound and eps from a store such as `stored_flow`."""
    points = [(eps, bound) for bound in bounds for eps in levels]
    for eps, bound in points:  # all that can be wrong is said before minutes of work
        check_range(eps, delta, bound)
    found = []
    for place, (eps, bound) in enumerate(points):

        def tell(stage: str, share: float, place: int = place, eps: float = eps) -> None:
            update(int(100 * (place + share)), 100 * len(points), f"ε = {eps:g}: {stage}")

        found.append(stored(eps=eps, delta=delta, max_items_per_user=bound, progress=tell))
        update(100 * (place + 1), 100 * len(points), "")
    return found


def flow_entries(flow: FlowCalibration) -> dict[str, Any]:
    """One calibration for JSON."""
    from experiments.flow_store import flow_file
    from theory import calibrate

    bound, certificate = flow.max_items_per_user, flow.certificate
    noise = calibrate(eps=flow.eps, delta=flow.delta, max_items_per_user=bound)
    sizes = [t for t in dict.fromkeys((*SIZES, bound)) if t <= bound]
    return {
        "mechanism": NAME,
        "eps": flow.eps,
        "delta": flow.delta,
        "max_items_per_user": bound,
        "certified_delta": certificate.delta,
        "slack": flow.delta - certificate.delta,
        "rounding": certificate.rounding,
        "classes": [
            {
                "kept_items": t,
                "holders_for_half": flow.holders(t),
                "holders_of_wgm": noise.threshold * t**0.5,
                "time_constant": flow.groups_of(t)[0].time_constant(t),
                "first_release": max(group.first_jump(t)[0] for group in flow.groups_of(t)),
                "delta_adding": float(certificate.adding[t - 1]),
                "delta_removing": float(certificate.removing[t - 1]),
                "proof": _proof(flow, t),
            }
            for t in sizes
        ],
        "file": flow_file(flow.eps, flow.delta, bound).name,
    }


def _proof(flow: FlowCalibration, t: int) -> str:
    if t == 1:
        return "exact"
    return "recursion" if flow.certificate.spacings[t - 1] > 0 else "closed form"


def print_flow(told: dict[str, Any]) -> None:
    """One calibration as a table."""
    say(
        f"Bernoulli flow selection · Δ0 = {told['max_items_per_user']:,} · ε = {told['eps']:g} · "
        f"δ = {told['delta']:g}",
        style="bold",
    )
    heads = ("t", "holders", "WGM", "first", "c", "δ adding", "δ removing", "proof")
    made = table(*heads, left=0)
    for row in told["classes"]:
        made.add_row(
            number(row["kept_items"]),
            f"{row['holders_for_half']:.1f}",
            f"{row['holders_of_wgm']:.1f}",
            number(row["first_release"], 3),
            number(row["time_constant"]),
            number(row["delta_adding"]),
            number(row["delta_removing"]),
            row["proof"],
        )
    out().print(made)
    say(
        "t: items that a holder keeps; holders: how many bring an item to probability ½, and with "
        "WGM's threshold; first: probability with one holder; c: time of one holder."
    )
    say(
        f"Certified δ = {number(told['certified_delta'], 8)}, every rounding error included: "
        f"p and 1 - p may each be off by {number(told['rounding'], 2)} of themselves."
    )


def write_flows(
    folder: Path, flows: list[FlowCalibration], told: list[dict[str, Any]]
) -> list[str]:
    """For each calibration its certificate, table and plot of holders; and a manifest.

    A certificate is the whole calibration: `FlowCalibration.from_dict` proves it again.
    """
    import polars as pl

    from experiments.plots import holders_curve, save
    from experiments.sweep.store import manifest, write_atomic, write_json

    files: list[Path] = []
    results = []
    for flow, entry in zip(flows, told, strict=True):
        # Rows of several calibrations must be told apart.
        own = {name: entry[name] for name in ("eps", "max_items_per_user")}
        classes = [{**own, **row} for row in entry["classes"]]
        results.append({**entry, "classes": classes})
        end = f"eps-{flow.eps:g}-items-{flow.max_items_per_user}"
        files.append(folder / f"certificate-{end}.json")
        write_json(files[-1], flow.to_dict())
        files.append(folder / f"classes-{end}.csv")
        write_atomic(files[-1], pl.DataFrame(classes).write_csv().encode())
        figure, numbers = holders_curve(flow)
        files += save(figure, folder / f"holders-{end}", numbers)
    first = told[0]
    settings = {
        "mechanism": NAME,
        "eps": [flow.eps for flow in flows],
        "delta": first["delta"],
        "max_items_per_user": [flow.max_items_per_user for flow in flows],
    }
    files.append(folder / "manifest.json")
    write_json(files[-1], manifest("calibrate", settings=settings, results=results))
    return [str(file) for file in files]


def flow_means(case: Case, flows: list[FlowCalibration], beta: float) -> list[dict[str, Any]]:
    """Exact mean for every calibration, and what holds with probability 1 - beta."""
    return [_told(flow, _misses(case, flow), beta) for flow in flows]


def best_flow(
    case: Case, flows: list[FlowCalibration], beta: float, statistic: str
) -> dict[str, Any]:
    """The calibration that leaves least, as by `flow_means`, and all that were tried.

    Args:
        case: The data.
        flows: Calibrations at several Delta0.
        beta: Failure probability of certificates.
        statistic: "mean", or "quantile" to compare certificates.
    """
    misses = [_misses(case, flow) for flow in flows]
    asked = beta if statistic == "quantile" else None
    tried = [_told(*pair, asked) for pair in zip(flows, misses, strict=True)]
    name = "exact_mean" if statistic == "mean" else "certificate"
    best = min(range(len(tried)), key=lambda place: tried[place][name])
    return {**_told(flows[best], misses[best], beta), "tried": tried}


def _misses(case: Case, flow: FlowCalibration) -> MissProbabilities:
    from theory.flow.exact import flow_miss_probabilities

    return flow_miss_probabilities(case.profile(flow.max_items_per_user), flow)


def _told(flow: FlowCalibration, misses: MissProbabilities, beta: float | None) -> dict[str, Any]:
    """What is told of one calibration; without beta no certificate of the missing mass."""
    from theory.certificates import certificate

    entry: dict[str, Any] = {
        "max_items_per_user": flow.max_items_per_user,
        "exact_mean": float(misses.mean_missing_mass),
    }
    if beta is not None:
        entry["certificate"] = float(certificate(misses, beta).value)
    return {**entry, "certified_delta": flow.certificate.delta}


def flow_sentence(told: dict[str, Any], beta: float) -> str:
    """The same in words."""
    return (
        f"Bernoulli flow selection would leave {percent(told['exact_mean'])} on average and, with "
        f"{100 * (1 - beta):g} % probability, at most {percent(told['certificate'])}."
    )


def best_flow_sentence(told: dict[str, Any], beta: float) -> str:
    """The best calibration in words, and among which it was looked for."""
    tried = [entry["max_items_per_user"] for entry in told["tried"]]
    others = ", ".join(number(bound) for bound in tried)
    among = f", the best of {others}" if len(tried) > 1 else ""
    return (
        f"With the same ε and δ and Δ0 = {number(told['max_items_per_user'])}{among}: "
        + flow_sentence(told, beta)
        + " Calibrations at hand were tried, and what --flow-max-items K[,K...] asks for; a new "
        "one takes up to minutes."
    )
