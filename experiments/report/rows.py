"""Claims and verdicts as lines of the page: with links, in the groups a reader looks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from experiments.report.formulas import link, linked, named, typeset
from experiments.report.glossary import Entry, find
from experiments.report.verification import ClaimReport, Line


@dataclass(frozen=True)
class ClaimLine:
    """A claim with its links."""

    report: ClaimReport
    entries: Sequence[Entry]
    twin: tuple[int, str] | None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.report, name)


def claim_groups(reports: Sequence[ClaimReport]) -> list[tuple[str, list[tuple[int, ClaimLine]]]]:
    """Claims on the data at hand, claims with data of their own, errata with their corrections."""
    places = {report.name: place for place, report in enumerate(reports)}
    twins = {r.about["twin"] for r in reports if r.expected == "refuted"}
    groups: dict[str, list[tuple[int, ClaimLine]]] = {
        "On these data": [],
        "On data or parameters of their own": [],
        "Errata of the paper: refuted is what is expected, their corrections hold": [],
    }
    names = list(groups)
    for place, report in enumerate(reports):
        where = places.get(report.about["twin"])
        twin = None if where is None else (where, named(reports[where].about["title"]))
        own = bool(report.about["own_data"])
        erratum = report.expected == "refuted" or (own and report.name in twins)
        line = ClaimLine(report, _entries(report), twin)
        groups[names[2 if erratum else int(own)]].append((place, line))
    return [(name, members) for name, members in groups.items() if members]


def _entries(report: ClaimReport) -> list[Entry]:
    """The glossary's entries about a claim: those of its title, then those of its cells."""
    title = report.about["title"]
    tags = [part.split("]")[0] for part in title.split("[")[1:]]
    tags += [verdict.tag for verdict in report.verdicts]
    found = [entry for tag in dict.fromkeys(tags) if (entry := find(tag)) is not None]
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Row:
    """A line with what is put together for the page."""

    line: Line
    evidence: str
    tag: Markup
    remark: Markup

    @classmethod
    def of(cls, line: Line) -> Row:
        """The row of a line of the table."""
        verdict = line.verdict
        evidence = "exact"
        if verdict.method != "exact" and verdict.trials is not None:
            evidence = f"{verdict.trials:,} trials"
            if verdict.exceedances is not None:
                evidence += f", {verdict.exceedances:,} beyond"
        entry = find(verdict.tag)
        tag = linked(verdict.tag) if entry is None else link(entry)
        remark = Markup("; ").join(
            part for part in (typeset(line.setting), typeset(verdict.note or "")) if part
        )
        return cls(line, evidence, tag, remark)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.line, name)
