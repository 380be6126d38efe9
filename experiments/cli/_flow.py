"""What the commands say about Bernoulli flow selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from experiments.cli._output import number, out, percent, say, table

if TYPE_CHECKING:
    from experiments.cells import Case
    from theory.flow import FlowCalibration

WithFlow: TypeAlias = Annotated[
    str,
    typer.Option(
        "--mechanism",
        metavar="NAME",
        help="wgm, or bernoulli-flow: what that would leave is told as well.",
    ),
]
MECHANISMS = ("wgm", "bernoulli-flow")
# Kept set sizes of the table of holders.
_SIZES = (1, 2, 3, 5, 10, 20, 50, 100, 300, 1000)


def check_mechanism(name: str) -> None:
    """Raise unless the mechanism has a calibration of its own."""
    from theory._check import invalid

    if name not in MECHANISMS:
        invalid("mechanism", name, f"must be one of {', '.join(MECHANISMS)}")


def made_flows(
    levels: list[float], delta: float, bounds: list[int], update: Callable[[int, int, str], Any]
) -> list[FlowCalibration]:
    """Calibrations for every bound and eps, from their files or made now."""
    from experiments.flow_store import stored_flow
    from theory.flow.calibration import check_flow_range

    points = [(eps, bound) for bound in bounds for eps in levels]
    for eps, bound in points:  # all that can be wrong is said before minutes of work
        check_flow_range(eps, delta, bound)
    found = []
    for place, (eps, bound) in enumerate(points):

        def tell(stage: str, share: float, place: int = place, eps: float = eps) -> None:
            update(int(100 * (place + share)), 100 * len(points), f"ε = {eps:g}: {stage}")

        found.append(stored_flow(eps=eps, delta=delta, max_items_per_user=bound, progress=tell))
        update(100 * (place + 1), 100 * len(points), "")
    return found


def flow_entries(flow: FlowCalibration) -> dict[str, Any]:
    """One calibration for JSON."""
    from experiments.flow_store import flow_file
    from theory import calibrate

    bound, certificate = flow.max_items_per_user, flow.certificate
    noise = calibrate(eps=flow.eps, delta=flow.delta, max_items_per_user=bound)
    sizes = [t for t in dict.fromkeys((*_SIZES, bound)) if t <= bound]
    return {
        "mechanism": "bernoulli-flow",
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


def flow_means(case: Case, flows: list[FlowCalibration], beta: float) -> list[dict[str, Any]]:
    """Exact mean, and what holds with probability 1 - beta, for every calibration."""
    from theory.certificates import certificate
    from theory.flow.exact import flow_miss_probabilities

    told = []
    for flow in flows:
        profile = case.profile(flow.max_items_per_user)
        misses = flow_miss_probabilities(profile, flow)
        told.append(
            {
                "exact_mean": float(misses.mean_missing_mass),
                "certificate": float(certificate(misses, beta).value),
                "certified_delta": flow.certificate.delta,
            }
        )
    return told


def flow_sentence(told: dict[str, Any], beta: float) -> str:
    """The same in words."""
    return (
        f"Bernoulli flow selection would leave {percent(told['exact_mean'])} on average and, with "
        f"{100 * (1 - beta):g} % probability, at most {percent(told['certificate'])}."
    )
