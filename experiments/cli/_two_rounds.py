"""What `wgm calibrate` says about the Bernoulli flow in two rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from experiments.cli._flow import SIZES, made
from experiments.cli._output import number, out, say, table
from experiments.flow_store import TWO_ROUNDS

if TYPE_CHECKING:
    from theory.flow.two_rounds import TwoRoundFlow


def made_two_rounds(
    levels: list[float], delta: float, bounds: list[int], update: Callable[[int, int, str], Any]
) -> list[TwoRoundFlow]:
    """Calibrations for every bound and eps, from their files or made now."""
    from experiments.flow_store import stored_two_rounds
    from theory.flow.two_rounds_calibration import check_two_round_range

    return made(stored_two_rounds, check_two_round_range, levels, delta, bounds, update)


def two_round_entries(flow: TwoRoundFlow) -> dict[str, Any]:
    """One calibration for JSON."""
    from experiments.flow_store import two_rounds_file
    from theory import calibrate

    bound = flow.max_items_per_user
    noise = calibrate(eps=flow.eps, delta=flow.delta, max_items_per_user=bound)
    sizes = [t for t in dict.fromkeys((*SIZES, bound)) if t <= bound]
    return {
        "mechanism": TWO_ROUNDS,
        "eps": flow.eps,
        "delta": flow.delta,
        "max_items_per_user": bound,
        "certified_delta": flow.certified_delta,
        "slack": flow.delta - flow.certified_delta,
        "cut": flow.cut,
        # What the first round was proposed with; the certificate is of both rounds together.
        "first_share_of_squared_eps": (flow.first.eps / flow.eps) ** 2,
        "first_share_of_delta": flow.first.delta / flow.delta,
        "classes": [
            {
                "kept_items": t,
                "holders_for_half_first": flow.first.holders(t) if t > flow.cut else None,
                "holders_for_half_second": flow.second.holders(t),
                "holders_of_wgm": noise.threshold * t**0.5,
                "delta_adding": float(flow.adding[t - 1]),
                "delta_removing": float(flow.removing[t - 1]),
            }
            for t in sizes
        ],
        "file": two_rounds_file(flow.eps, flow.delta, bound).name,
    }


def print_two_rounds(told: dict[str, Any]) -> None:
    """One calibration as a table."""
    say(
        f"Bernoulli flow in two rounds · Δ0 = {told['max_items_per_user']:,} · "
        f"ε = {told['eps']:g} · δ = {told['delta']:g}",
        style="bold",
    )
    rows = table("t", "first", "second", "WGM", "δ adding", "δ removing", left=0)
    for row in told["classes"]:
        first = row["holders_for_half_first"]
        rows.add_row(
            number(row["kept_items"]),
            "–" if first is None else f"{first:.1f}",
            f"{row['holders_for_half_second']:.1f}",
            f"{row['holders_of_wgm']:.1f}",
            number(row["delta_adding"]),
            number(row["delta_removing"]),
        )
    out().print(rows)
    say(
        "t: items that a holder keeps; first, second: how many holders bring an item to "
        "probability ½ in either round, and with WGM's threshold; δ: of both rounds together."
    )
    say(
        f"Users with at most {told['cut']} items are not in the first round, and users of the "
        f"first round count as if {told['cut'] + 1} items or more were left."
    )
    say(
        f"First round: proposed with {number(100 * told['first_share_of_squared_eps'], 3)} % of "
        f"ε² and {number(100 * told['first_share_of_delta'], 3)} % of δ. Certified δ = "
        f"{number(told['certified_delta'], 8)} for both rounds, every rounding error included."
    )
