"""What `wgm plan` says: the answer as JSON, tables and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from experiments.cli._output import name_text, number, out, percent, say, table

if TYPE_CHECKING:
    from experiments.planning import Plan

_SPENDS = (
    "Choosing {what} by looking at the private data themselves spends privacy beyond the "
    "mechanism's ε. Choose on public or synthetic data (for instance "
    "`wgm plan --zipf-s 1.5 --pairs 1e6 ...`), or pay for the choice with a share of the budget."
)
_FREE = (
    "A formula is nobody's data: choosing {what} on it costs no privacy. Choosing by looking at "
    "the private data themselves would spend privacy beyond the mechanism's ε."
)
_WHAT = {"max-items": "Δ0", "eps": "ε", "pairs": "anything"}
_AXES = {
    "max_items_per_user": "Δ0",
    "eps": "ε",
    "num_pairs": "N",
    "scale": "times as many users",
}
_METHODS = {"split": "split [P1]", "full": "full [P3]"}


def entries(name: str, about: dict[str, Any], found: Plan, notes: list[str]) -> dict[str, Any]:
    """The answer for JSON."""
    there, other, curve = found.outcome, found.other, found.curve
    noise = there.calibration
    return {
        "dataset": name,
        **about,
        "find": found.find,
        "answer": found.answer,
        "eps": noise.eps,
        "delta": noise.delta,
        "max_items_per_user": noise.max_items_per_user,
        "sigma": noise.sigma,
        "threshold": noise.threshold,
        "method": noise.method,
        "statistic": found.statistic,
        "target": found.target,
        "value": found.value,
        "exact_mean": there.mean,
        "certificate": there.certificate,
        "beta": there.beta,
        "lower_bound": there.lower_bound,
        "oracle_gap": there.oracle_gap,
        "other_method": {
            "method": other.calibration.method,
            "sigma": other.calibration.sigma,
            "threshold": other.calibration.threshold,
            "exact_mean": other.mean,
            "certificate": other.certificate,
            "answer": found.other_answer,
        },
        "curve": curve.to_frame().to_dicts(),
        "complete": curve.complete,
        "notes": notes,
    }


def notes(found: Plan, *, public: bool) -> list[str]:
    """What goes with the answer: how it was looked for, and what looking costs."""
    spends = (_FREE if public else _SPENDS).format(what=_WHAT[found.find])
    said = [_tried(found), spends]
    if found.find == "max-items" and found.target is not None and found.value > found.target:
        eps = found.outcome.calibration.eps
        said.insert(0, f"No Δ0 tried reaches the target {found.target:g} at ε = {eps:g}.")
    return [note for note in said if note]


def _tried(found: Plan) -> str:
    """How the answer was looked for, and what it does not say."""
    curve = found.curve
    what = "E[MM]" if found.statistic == "mean" else "The certificate"
    if found.find == "max-items":
        last = int(curve.at[-1])
        if curve.complete:
            return "" if last == 1 else f"All Δ0 from 1 to {last:,} were tried."
        return (
            f"{len(curve.at):,} of the {last:,} Δ0 were tried, with all neighbours of the best. "
            f"{what} need not have one valley only: another Δ0 may be a little better "
            "(--all tries all)."
        )
    before = "to five significant digits; the number before misses the target"
    if found.find == "eps":
        return f"ε is the least {before}."
    if curve.axis == "num_pairs":
        return (
            f"N is the least {before}. Frequencies are whole numbers, so {what} falls in N only "
            "on the whole."
        )
    return "Every item is taken to have so many times as many holders, with sets as large as now."


def print_plan(name: str, about: dict[str, Any], found: Plan, told: list[str]) -> None:
    """The answer as tables and words, and the notes."""
    users, items = about["users"], about["items"]
    sizes = f"{count(users)} users · " + (f"{count(items)} items · " if items else "")
    say(
        f"{name_text(name, 40)} · {sizes}{count(about['pairs'])} pairs · "
        f"δ × users = {found.outcome.calibration.delta * users:.2g}",
        style="bold",
    )
    say("", f"{_question(found)} · {settings(found, ' · ')}", style="bold")
    _print_answer(found)
    if len(found.curve.at) > 1:
        say("")
        _print_curve(found)
    say("", _sentence(found))
    for note in told:
        say("", note)


def _question(found: Plan) -> str:
    question = {
        "max-items": "Which Δ0 leaves least?",
        "eps": f"Which ε leaves at most {percent(found.target)}?",
        "pairs": f"How much data leave at most {percent(found.target)}?",
    }[found.find]
    if found.statistic == "quantile":
        question = question[:-1] + f" with {100 * (1 - found.outcome.beta):g} % certainty?"
    return question


def settings(found: Plan, between: str) -> str:
    """What was given, without what was sought."""
    noise = found.outcome.calibration
    told = {
        "eps": f"ε = {noise.eps:g}",
        "delta": f"δ = {noise.delta:g}",
        "max-items": f"Δ0 = {noise.max_items_per_user:,}",
    }
    return between.join(text for name, text in told.items() if name != found.find)


def _print_answer(found: Plan) -> None:
    """What was found and what holds there, with both calibrations."""
    there, other = found.outcome, found.other
    made = table("", *(_METHODS[o.calibration.method] for o in (there, other)), left=1)
    axis = found.curve.axis
    name = {"max-items": "best Δ0", "eps": "least ε"}.get(
        found.find, "least N" if axis == "num_pairs" else "least number of times the users"
    )
    made.add_row(name, count(found.answer), count(found.other_answer), style="bold")
    at = "" if axis == "scale" else f" at {_AXES[axis]} = {count(found.answer)}"
    both = (there, other)
    made.add_row(f"E[MM]{at}, exact", *(percent(o.mean) for o in both))
    sure = f"{100 * (1 - there.beta):g} %"
    made.add_row(f"MM at most, with {sure} certainty", *(percent(o.certificate) for o in both))
    made.add_row("[L2] E[MM] of any private algorithm ≥", *(percent(o.lower_bound) for o in both))
    made.add_row("oracle gap E[MM]/[L2]", *(f"{number(o.oracle_gap, 3)}×" for o in both))
    made.add_row("noise σ", *(number(o.calibration.sigma) for o in both))
    made.add_row("threshold T", *(number(o.calibration.threshold) for o in both))
    out().print(made)


def _print_curve(found: Plan) -> None:
    """A few points of the curve, the answer among them."""
    curve, methods = found.curve, [o.calibration.method for o in (found.outcome, found.other)]
    rows = _shown(curve.at.tolist(), found.answer)
    certified = curve.certificate is not None
    names = [f"E[MM] {_METHODS[m]}" for m in methods]
    sure = [f"{100 * (1 - found.outcome.beta):g} % {methods[0]}"] if certified else []
    # At one eps and one N, [L2] is one number, told already.
    floors = curve.axis != "max_items_per_user"
    made = table(_AXES[curve.axis], *names, *sure, *(["[L2] ≥"] if floors else []), left=0)
    for i in rows:
        values = [getattr(curve, m)[i] for m in methods]
        values += [curve.certificate[i]] if curve.certificate is not None else []
        style = "bold" if curve.at[i] == found.answer else ""
        values += [curve.lower_bound[i]] if floors else []
        shown = (percent(float(value)) for value in values)
        made.add_row(count(curve.at[i].item()), *shown, style=style)
    out().print(made)


def _shown(at: list[Any], answer: Any, most: int = 7) -> list[int]:
    """Indices of the ends, the answer, and what lies evenly between in logarithms."""
    import numpy as np

    logs = np.log(np.asarray(at, np.float64))
    wanted = np.linspace(logs[0], logs[-1], most)
    # A neighbour of the answer in the list says nothing.
    clear = 0.4 * (logs[-1] - logs[0]) / most
    place = at.index(answer)
    near = {int(np.abs(logs - w).argmin()) for w in wanted}
    ends = {0, len(at) - 1}
    return sorted({i for i in near if abs(logs[i] - logs[place]) > clear} | ends | {place})


def _sentence(found: Plan) -> str:
    """The answer in words."""
    there, other = found.outcome, found.other
    sure = f"with {100 * (1 - there.beta):g} % probability"
    start = {
        "max_items_per_user": f"With Δ0 = {count(found.answer)}",
        "eps": f"With ε = {count(found.answer)}",
        "num_pairs": f"With N = {count(found.answer)} pairs",
        "scale": f"With {count(found.answer)} times as many users like these",
    }[found.curve.axis]
    if found.curve.axis == "scale" and found.answer == 1:
        start = "With the users there are"
    leaves = f"WGM leaves {percent(there.mean)} of the mass on average"
    most = f"{sure}, at most {percent(there.certificate)}"
    floor = f"no private algorithm can leave less than {percent(there.lower_bound)} on average"
    name = "Full-δ" if other.calibration.method == "full" else "The paper's split"
    on = "on average" if found.statistic == "mean" else sure
    end = f"{name} calibration would leave {percent(other.value(found.statistic))} {on} there"
    if found.other_answer not in (None, found.answer):
        best = {
            "max_items_per_user": "its best Δ0 is {}",
            "eps": "ε = {} would do for it",
            "num_pairs": "N = {} would do for it",
            "scale": "{} times the users would do for it",
        }[found.curve.axis]
        end += f"; {best.format(count(found.other_answer))}"
    return f"{start} {leaves} and, {most}; {floor}. {end}."


def count(value: float | int | None) -> str:
    """A number as it would be typed: no rounding of what has five digits."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}" if value < 10**9 else f"{value:.5g}"
    return f"{value:.6g}"
