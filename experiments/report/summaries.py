"""One sentence on what a folder says, for every command but `verify`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from experiments.cli._output import number, percent
from experiments.report.results import Results
from experiments.report.statements import statement_lines, statements_headline


def summary(results: Results) -> str:
    """What was found; where the folder says less than expected, only where it comes from."""
    say = _SENTENCES.get(results.command)
    try:
        return say(results) if say else f"Results of wgm {results.command}"
    except (KeyError, TypeError, IndexError, ValueError, AttributeError):
        return f"Results of wgm {results.command}"


def _records(results: Results) -> list[dict[str, Any]]:
    found = results.manifest["results"]
    return found if isinstance(found, list) else [found]


def _audit(results: Results) -> str:
    records = _records(results)
    accused = [record for record in records if record["accused"]]
    wrongly = [record for record in accused if record["private"]]
    if not accused:
        names = ", ".join(str(record["mechanism"]) for record in records)
        return f"Not accused: {names}. No pair of neighbours breaks the claimed privacy"
    worst = max(wrongly or accused, key=lambda record: record["found_delta"])
    claim = "claims" if worst["private"] else "does not claim"
    return (
        f"{worst['mechanism']} is not ({number(worst['eps'])}, {number(worst['claimed_delta'])})-"
        f"private, as it {claim} to be: δ({number(worst['eps'])}) ≥ {number(worst['found_delta'])}"
    )


def _bounds(results: Results) -> str:
    best = min(_records(results), key=lambda record: record["exact_mean"])
    return (
        f"With Δ0 = {number(best['max_items_per_user'])} and ε = {number(best['eps'])} the WGM "
        f"leaves {percent(best['exact_mean'])} of the mass of {best['dataset']} on average; no "
        f"private mechanism can leave less than {percent(best['lower_bound'])}"
    )


def _plan(results: Results) -> str:
    plan = results.documents["plan"]
    answers = {"max-items": "Δ0", "eps": "ε", "pairs": "N"}
    statistic = (
        "is left on average"
        if plan["statistic"] == "mean"
        else f"is exceeded with probability {number(plan['beta'])} at most"
    )
    return (
        f"{answers[plan['find']]} = {number(plan['answer'])}: {percent(plan['value'])} of the mass "
        f"of {plan['dataset']} {statistic}; no private algorithm can leave less than "
        f"{percent(plan['lower_bound'])}"
    )


def _simulate(results: Results) -> str:
    record = _records(results)[0]
    exact = record.get("exact_mean")
    return (
        f"{record['mechanism']} leaves {percent(record['missing_mass']['mean'])} of the mass of "
        f"{record['dataset']} on average over {record['trials']:,} trials at ε = "
        f"{number(record['eps'])}" + (f"; exactly, {percent(exact)}" if exact is not None else "")
    )


def _profile(results: Results) -> str:
    record = _records(results)[0]
    return (
        f"{record['dataset']}: {record['users']:,} users, {record['items']:,} items, "
        f"{record['pairs']:,} pairs, the largest set {record['max_set_size']:,}"
    )


def _sweep(results: Results) -> str:
    manifest = results.manifest
    done = results.tables["results"].height
    failed = len(manifest["failures"])
    told = f"{done:,} of {manifest['cells']:,} cells of the grid are computed"
    return f"{told}, {failed} failed" if failed else told


def _selection(results: Results) -> str:
    record = _records(results)[0]
    best = record["best"][-1]
    what = "users" if record["task"] == "hitting-set" else "pairs of the k largest items"
    told = (
        f"{best['method']} misses {percent(best['mean'])} of the {what} of {record['dataset']} at "
        f"k = {best['k']:,}, ε = {number(best['eps'])}"
    )
    if best["rival"] is not None:
        word = "least of all" if best["alone"] else f"tied with {best['rival']}"
        told += f", {word} without a public domain"
    return told


def _compare(results: Results) -> str:
    standing = results.manifest["standings"][0]
    best = standing["best"]
    told = (
        f"At ε = {number(standing['eps'])} {best['mechanism']} with Δ0 = "
        f"{number(best['max_items_per_user'])} leaves least, {percent(best['missing_mass'])} of "
        "the mass"
    )
    wgm = next((own["best"] for own in standing["wgm"] if own["mechanism"] == "wgm"), None)
    if wgm is not None and best["mechanism"] != "wgm":
        told += f"; wgm {percent(wgm['missing_mass'])} with Δ0 = "
        told += number(wgm["max_items_per_user"])
    floor = percent(standing["lower_bound"])
    return f"{told}; no private mechanism can leave less than {floor}"


def _errata(results: Results) -> str:
    found = results.manifest["errata"]
    shown = sum(entry["demonstrated"] for entry in found)
    which = f"All {shown}" if shown == len(found) else f"{shown} of {len(found)}"
    return f"{which} errata are shown by a counterexample, and what corrects them holds"


def _figure(results: Results) -> str:
    lines = statement_lines(results)
    if not lines:
        drawn = len(results.figures)
        return f"{drawn} figure{'s' * (drawn != 1)} of wgm figure"
    return statements_headline(lines)


_SENTENCES: dict[str, Callable[[Results], str]] = {
    "audit": _audit,
    "bounds": _bounds,
    "compare": _compare,
    "errata": _errata,
    "figure": _figure,
    "hitting-set": _selection,
    "plan": _plan,
    "profile": _profile,
    "simulate": _simulate,
    "sweep": _sweep,
    "topk": _selection,
}
