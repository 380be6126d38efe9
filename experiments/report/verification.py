"""What a folder of `wgm verify` says: each claim with its verdicts, and the sentences on top."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from experiments.report.formulas import named
from experiments.report.labels import heading, shown, span, times
from experiments.report.results import Results
from experiments.report.tables import Table
from experiments.verdict import Decision, Verdict, claim_success
from theory._check import invalid

KINDS: tuple[str, ...] = get_args(Decision)
_PLACES = ("dataset", "eps", "max_items_per_user")


@dataclass(frozen=True)
class ClaimReport:
    """One claim and what was found about it.

    Attributes:
        about: name, title, kind, statement, explicit, expected, twin, own_data; what is not known
            of a claim is empty.
        verdicts: One per cell.
        success: True, False, or None where nothing was decided.
    """

    about: Mapping[str, Any]
    verdicts: Sequence[Verdict]
    success: bool | None

    @property
    def name(self) -> str:
        """Name on the command line."""
        return self.about["name"]

    @property
    def expected(self) -> str:
        """What is expected of its cells: "holds" or "refuted"."""
        return self.about["expected"]

    def count(self, verdict: str) -> int:
        """Number of cells with this verdict."""
        return sum(v.verdict == verdict for v in self.verdicts)

    @property
    def counts(self) -> dict[str, int]:
        """Number of cells by verdict, without zeros."""
        return {kind: n for kind in KINDS if (n := self.count(kind))}

    @property
    def slacks(self) -> list[float]:
        """Slack of every cell that says something."""
        return [v.slack for v in self.verdicts if v.slack is not None and v.verdict != "vacuous"]

    @property
    def slack_text(self) -> str:
        """Range of the slack."""
        found = self.slacks
        return span(min(found), max(found)) if found else "–"

    @property
    def outcome(self) -> str:
        """In a few words."""
        if self.success is True:
            return "as expected"
        if self.success is False:
            return "not as expected"
        if not self.verdicts:
            return "not judged"
        return "undecided" if self.count("undecided") else "nothing to say"


def claim_reports(results: Results) -> list[ClaimReport]:
    """The claims of a folder of `wgm verify`, in its order.

    Raises:
        InvalidInput: The table of verdicts is not one.
    """
    frame = results.tables.get("verdicts")
    if frame is None:
        return []
    by_claim: dict[str, list[Verdict]] = {name: [] for name in _asked(results)}
    for row in frame.iter_rows(named=True):
        found = _verdict(row)
        by_claim.setdefault(found.claim, []).append(found)
    about = _about(results, by_claim)
    return [
        ClaimReport(about[name], found, claim_success(found, about[name]["expected"]))
        for name, found in by_claim.items()
    ]


def _asked(results: Results) -> list[str]:
    """Names of the claims that were asked for: some may have no cell."""
    settings = results.manifest.get("settings")
    asked = settings.get("claims") if isinstance(settings, dict) else None
    return [str(name) for name in asked or []]


def _verdict(row: Mapping[str, Any]) -> Verdict:
    wanted = {field.name for field in dataclasses.fields(Verdict)}
    if missing := sorted(wanted - row.keys()):
        invalid("RESULTS", "verdicts", f"must have the columns {', '.join(missing)}")
    if row["verdict"] not in KINDS:
        invalid("RESULTS", "verdicts", f"must hold verdicts {', '.join(KINDS)}")
    try:
        cell = json.loads(row["cell"])
    except ValueError:
        cell = {"cell": row["cell"]}
    # An empty text comes back from CSV as nothing.
    entries = {name: row[name] for name in wanted}
    entries |= {name: str(row[name] or "") for name in ("claim", "tag", "note")}
    return Verdict(**{**entries, "cell": cell if isinstance(cell, dict) else {"cell": cell}})


_TEXTS = ("title", "kind", "statement", "explicit", "twin")


def _about(results: Results, by_claim: Mapping[str, Sequence[Verdict]]) -> dict[str, Any]:
    """What the manifest says about each claim; older ones do not, then what is known here."""
    from experiments.claims.registry import claims

    stated = results.manifest.get("claims")
    entries = stated if isinstance(stated, list) else []
    told = {str(e["name"]): e for e in entries if isinstance(e, dict) and "name" in e}
    for claim in claims():
        told.setdefault(claim.name, {**dataclasses.asdict(claim), "own_data": not claim.observe})
    made = {}
    for name, found in by_claim.items():
        known = told.get(name, {})
        texts = {key: str(known.get(key) or "") for key in _TEXTS}
        expected = found[0].expected if found else known.get("expected", "holds")
        made[name] = {**texts, "name": name, "expected": expected}
        made[name]["title"] = texts["title"] or name
        made[name]["own_data"] = bool(known.get("own_data", False))
    return made


# ---- sentences


def headline(reports: Sequence[ClaimReport]) -> str:
    """Whether the claims came out as expected, in one sentence."""
    failed = [report for report in reports if report.success is False]
    good = sum(report.success is True for report in reports)
    telling = good + len(failed) + sum(report.outcome == "undecided" for report in reports)
    if not telling:
        return "No claim says anything on these data"
    claims = "claim" if telling == 1 else "claims"
    if good == telling:
        which = "The claim" if telling == 1 else f"All {telling} {claims}"
        return f"{which} came out as expected"
    if failed:
        verb = "does" if len(failed) == 1 else "do"
        return f"{len(failed)} of {telling} {claims} {verb} not come out as expected"
    return f"{good} of {telling} {claims} came out as expected, the others are undecided"


def details(reports: Sequence[ClaimReport]) -> list[str]:
    """Sentences under the headline: cells by verdict, and claims that need a word."""
    counts = {kind: sum(report.count(kind) for report in reports) for kind in KINDS}
    expected = sum(r.count("refuted") for r in reports if r.expected == "refuted")
    bad = counts["refuted"] - expected
    parts = [
        f"{counts['proved']:,} proved by exact arithmetic",
        f"{counts['confirmed']:,} confirmed by trials" if counts["confirmed"] else "",
        f"{expected:,} refuted, as expected of errata" if expected else "",
        f"{bad:,} refuted against what was expected" if bad else "",
        f"{counts['undecided']:,} undecided" if counts["undecided"] else "",
        f"{counts['vacuous']:,} vacuous" if counts["vacuous"] else "",
    ]
    total = sum(counts.values())
    said = [f"{total:,} cell{'s' * (total != 1)}: {', '.join(filter(None, parts))}."]
    for outcome, words in (
        ("not as expected", "Not as expected"),
        ("undecided", "Undecided, more trials (--max-trials) may decide"),
        ("not judged", "Without any cell"),
        ("nothing to say", "Nothing to say, every cell vacuous"),
    ):
        names = [named(r.about["title"]) for r in reports if r.outcome == outcome]
        if names:
            said.append(f"{words}: {'; '.join(names)}.")
    return said


# ---- tables


@dataclass(frozen=True)
class Line:
    """One row of the table of verdicts."""

    claim: int
    dataset: str
    eps: str
    bound_on_items: str
    setting: str
    verdict: Verdict
    bound: str
    observed: str
    slack: str
    against: bool


def lines(reports: Sequence[ClaimReport], settings: Mapping[str, Any]) -> list[Line]:
    """Every verdict as a row: what is not as expected first, then claims on the data at hand."""
    made = []
    for place, report in enumerate(reports):
        for verdict in report.verdicts:
            cell = dict(verdict.cell)
            dataset, eps, bound = (cell.pop(name, None) for name in _PLACES)
            rest = {name: value for name, value in cell.items() if value != settings.get(name)}
            made.append(
                Line(
                    claim=place,
                    dataset="" if dataset is None else str(dataset),
                    eps=shown("eps", eps),
                    bound_on_items=shown("max_items_per_user", bound),
                    setting=", ".join(f"{heading(k)} = {shown(k, v)}" for k, v in rest.items()),
                    verdict=verdict,
                    bound=shown("", verdict.bound),
                    observed=shown("", verdict.observed),
                    slack=times(verdict.slack) if verdict.verdict != "vacuous" else "–",
                    against=verdict.success is False,
                )
            )
    own = [bool(report.about["own_data"]) for report in reports]
    return sorted(made, key=lambda line: (not line.against, own[line.claim]))


def claims_table(reports: Sequence[ClaimReport]) -> Table:
    """One row per claim, for a paper."""
    return Table(
        name="claims",
        title="Claims, and the verdicts on their cells",
        columns=["claim", "kind", "outcome", "cells", *KINDS, "slack", "median slack"],
        rows=[
            [
                named(report.about["title"]),
                report.about["kind"],
                report.outcome,
                f"{len(report.verdicts):,}",
                *(f"{report.count(kind):,}" if report.count(kind) else "–" for kind in KINDS),
                report.slack_text,
                times(statistics.median(report.slacks)) if report.slacks else "–",
            ]
            for report in reports
        ],
        left=3,
        note="Slack: bound over what was observed, or its inverse for a lower bound.",
    )
