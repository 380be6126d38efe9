"""The page: everything that `wgm report` knows about a folder, as one HTML text."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from experiments.report.captions import caption
from experiments.report.formulas import link, linked, marked, named, typeset
from experiments.report.generic import frame_table, record_tables
from experiments.report.glossary import GLOSSARY, SYMBOLS, WORDS, Entry
from experiments.report.labels import heading, shown, times
from experiments.report.ladder import (
    Tightness,
    has_ladder,
    ladder_picture,
    ladder_table,
    tightness,
    tightness_picture,
)
from experiments.report.results import Figure, Results
from experiments.report.rows import Row, claim_groups
from experiments.report.statements import (
    MARKS,
    counts,
    errata_lines,
    statement_lines,
    statements_table,
)
from experiments.report.summaries import summary
from experiments.report.svg import inline
from experiments.report.tables import Table
from experiments.report.verification import (
    ClaimReport,
    claim_reports,
    claims_table,
    details,
    headline,
    lines,
)

_HERE = Path(__file__).parent
# Control characters, and those that turn the direction of what follows, as what they are.
_UNSEEN = {
    code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    for code in (
        *(set(range(32)) - {9, 10, 13}), *range(0x7F, 0xA0), 0x200E, 0x200F,
        *range(0x202A, 0x202F), *range(0x2066, 0x206A),
    )
}  # fmt: skip
_MOST_LINES = 5000
_MOST_PLOTTED = 60
# They have parts of the page of their own.
_NOT_SHOWN = {"verify": {"verdicts", "cells", "exceedances"}, "figure": {"statements"}}


@dataclass(frozen=True)
class Tile:
    """A number on top, and what it is."""

    value: str
    label: str
    note: str = ""


@dataclass(frozen=True)
class Content:
    """A folder as a reader sees it, before it is set.

    Attributes:
        results: The folder.
        reports: What was found about every claim; empty but for `wgm verify`.
        ladder_rows: Rows that hold bounds beside the missing mass.
        tight: How far each bound is from what it bounds.

    Example:
        >>> import tempfile
        >>> from experiments.report import Content, read_results
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "manifest.json").write_text('{"command": "simulate"}')
        ...     content = Content.of(read_results(Path(folder)))
        >>> content.reports, content.tables()
        ([], [])
    """

    results: Results
    reports: Sequence[ClaimReport]
    ladder_rows: Sequence[Mapping[str, Any]]
    tight: Sequence[Tightness]

    @classmethod
    def of(cls, results: Results) -> Content:
        """Everything that is computed from the tables, once."""
        frames = (results.tables.get(name) for name in ("cells", "results"))
        frame = next((found for found in frames if found is not None and has_ladder(found)), None)
        rows = [] if frame is None else frame.to_dicts()
        return cls(results, claim_reports(results), rows, tightness(rows))

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the run."""
        found = self.results.manifest.get("settings")
        return found if isinstance(found, dict) else {}

    def tables(self) -> list[Table]:
        """The tables that a paper may want."""
        made = []
        if self.reports:
            made.append(claims_table(self.reports))
        if self.ladder_rows:
            made.append(ladder_table(self.ladder_rows))
        if statements := statement_lines(self.results):
            made.append(statements_table(statements))
        return made + self.other_tables()

    def other_tables(self) -> list[Table]:
        """What the command reports in words and numbers, and tables of no special kind."""
        results, made = self.results, []
        hidden = _NOT_SHOWN.get(results.command, set())
        if results.command == "figure":  # their tables hold what is plotted in them
            hidden = hidden | {figure.name for figure in results.figures}
        if "results" in results.manifest:
            made += record_tables("results", "Results", results.manifest["results"])
        for name, value in results.documents.items():
            made += record_tables(name, heading(name), value)
        for name, frame in results.tables.items():
            # One row per trial says nothing on a page.
            if name not in hidden and frame.width and "trial" not in frame.columns:
                made.append(frame_table(name, heading(name), frame))
        return made


def headline_of(content: Content) -> str:
    """What was found, in one sentence without its full stop.

    Args:
        content: Of a results folder.

    Returns:
        Plain text.

    Example:
        >>> import tempfile
        >>> from experiments.report import Content, headline_of, read_results
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "manifest.json").write_text('{"command": "simulate"}')
        ...     content = Content.of(read_results(Path(folder)))
        >>> headline_of(content)
        'Results of wgm simulate'
    """
    return headline(content.reports) if content.reports else summary(content.results)


def render(content: Content) -> str:
    """The page as HTML: styles, script and drawings inside, nothing from elsewhere.

    Args:
        content: Of a results folder. Names and texts in it are escaped wherever they are put.

    Returns:
        The text of an HTML file.

    Example:
        >>> import tempfile
        >>> from experiments.report import Content, read_results, render
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "manifest.json").write_text('{"command": "simulate"}')
        ...     page = render(Content.of(read_results(Path(folder))))
        >>> page.splitlines()[0], "http:" in page
        ('<!DOCTYPE html>', False)
    """
    results, reports = content.results, content.reports
    statements = statement_lines(results)
    found = lines(reports, content.settings)
    shown_lines = found[:_MOST_LINES]
    datasets = list(dict.fromkeys(line.dataset for line in found if line.dataset))
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    # At a glance first; the others in the order of the folder.
    drawn = sorted(results.figures, key=lambda figure: figure.name not in ("overview", "slack"))
    figures = [_figure(place, figure, results) for place, figure in enumerate(drawn)]
    tables = content.other_tables()
    context = {
        "command": results.command,
        "folder": results.folder.resolve().name,
        "origin": _origin(content),
        "headline": headline_of(content),
        "sentences": _sentences(content),
        "tally": counts(statements) if statements else _tally(reports),
        "marks": MARKS,
        "statements": statements or errata_lines(results),
        "tiles": _tiles(content),
        "groups": claim_groups(reports),
        "titles": [marked(report.about["title"]) for report in reports],
        "tight": tightness_picture(content.tight) if content.tight else None,
        "ladder": ladder_picture(content.ladder_rows) if content.ladder_rows else None,
        "lines": [Row.of(line) for line in shown_lines],
        "lines_left_out": len(found) - len(shown_lines),
        "any_against": any(line.against for line in found),
        "filter_claims": [
            (i, named(r.about["title"])) for i, r in enumerate(reports) if r.verdicts
        ],
        "filter_data": list(enumerate(datasets)),
        "data_places": {"": "", **{name: place for place, name in enumerate(datasets)}},
        "tables": tables,
        "figures": figures,
        "facts": _facts(content),
        "manifest": json.dumps(results.manifest, indent=1, ensure_ascii=False),
        "glossary": _glossary(),
        "symbols": SYMBOLS,
        "words": WORDS,
        "style": Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        "script": Markup(script),
        "script_hash": _digest(script),
    }
    context["sections"] = [
        (name, title)
        for name, title, there in (
            ("claims", "Claims", reports),
            ("tightness", "Tightness", content.tight),
            ("ladder", "Ladder", content.ladder_rows),
            ("cells", "Every verdict", found),
            ("statements", "Statements", context["statements"]),
            ("figures", "Figures", figures),
            ("tables", "Numbers", tables),
            ("settings", "Settings", True),
            ("glossary", "Glossary", True),
        )
        if there
    ]
    return _environment().get_template("page.html.j2").render(context).translate(_UNSEEN)


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals.update(linked=linked, marked=marked, typeset=typeset, link=link)
    return made


def _digest(script: str) -> str:
    """Name under which the page allows this script, and no other."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


# ---- top


def _origin(content: Content) -> list[str]:
    """Where the results come from, in a few words."""
    manifest, settings = content.results.manifest, content.settings
    parts = [_moment(manifest)]
    data = settings.get("data", settings)
    if isinstance(data, str):
        parts.append(data)
    elif isinstance(data, dict):
        named = data.get("preset") or data.get("paths")
        parts.append(shown("paths", named) if named else "")
    version = (manifest.get("versions") or {}).get("wgm-jax")
    parts.append(f"wgm-jax {version}" if version else "")
    return [part for part in parts if part]


def _moment(manifest: Mapping[str, Any]) -> str:
    """When the results were made, to the minute."""
    created = str(manifest.get("created") or "")[:16].replace("T", " ")
    return f"{created} UTC" if created else ""


def _sentences(content: Content) -> list[str]:
    if not content.reports:
        return []
    said = details(content.reports)
    middles = {entry.rung.tag: entry for entry in content.tight if entry.middle is not None}
    gap, instance, zipf = (middles.get(tag) for tag in ("L2", "U2", "U3"))
    if gap and instance and zipf:
        said.append(
            f"In the median cell the instance bound [U2] is {times(instance.middle)} and the Zipf "
            f"bound [U3] {times(zipf.middle)} what it bounds; [U3] says nothing in {zipf.vacuous} "
            f"of {zipf.vacuous + len(zipf.slacks)} cells. The mechanism misses "
            f"{times(gap.middle)} what every private one must miss [L2]."
        )
    return said


def _tally(reports: Sequence[ClaimReport]) -> dict[str, int]:
    total: dict[str, int] = {}
    for kind in ("proved", "confirmed", "undecided", "refuted", "vacuous"):
        count = sum(report.count(kind) for report in reports)
        if count:
            total[kind] = count
    return total


def _tiles(content: Content) -> list[Tile]:
    """The numbers a reader would ask for first."""
    reports = content.reports
    made = []
    if reports:
        good = sum(report.success is True for report in reports)
        made.append(Tile(f"{good} / {len(reports)}", "claims as expected"))
    labels = {
        "L2": "oracle gap, median: E[MM] ÷ [L2]",
        "E6": "hinge certificate [E6] ÷ quantile",
        "U2*": "instance bound [U2*] ÷ quantile",
        "U2": "instance bound [U2] ÷ quantile",
        "U3": "Zipf bound [U3] ÷ quantile",
    }
    for entry in content.tight:
        if entry.rung.tag in labels and entry.middle is not None:
            made.append(Tile(times(entry.middle), labels[entry.rung.tag]))
    return made


# ---- figures, settings, glossary


@dataclass(frozen=True)
class _Figure:
    name: str
    title: str
    caption: str
    svg: Markup
    width: float
    rows: int
    numbers: Table | None


def _figure(place: int, figure: Figure, results: Results) -> _Figure:
    given = results.manifest.get("captions")
    title, text = caption(figure.name, given if isinstance(given, dict) else None)
    drawing = inline(figure.svg, prefix=f"g{place + 1}", label=title, name=f"{figure.name}.svg")
    rows = 0 if figure.numbers is None else figure.numbers.height
    numbers = None
    if figure.numbers is not None and 0 < rows <= _MOST_PLOTTED:
        numbers = frame_table(figure.name, f"{figure.name}.csv", figure.numbers)
    return _Figure(figure.name, title, text, drawing.markup, drawing.width, rows, numbers)


def _facts(content: Content) -> list[tuple[str, list[tuple[str, str]]]]:
    manifest = content.results.manifest
    settings = [(heading(key), shown(key, value)) for key, value in content.settings.items()]
    run = {
        "created": _moment(manifest) or None,
        "seconds": manifest.get("seconds"),
        "seeds": manifest.get("seeds"),
        "sampler": manifest.get("sampler"),
    }
    made = [
        ("Settings", [(key, value) for key, value in settings if value and key != "claims"]),
        ("Run", [(heading(k), shown(k, v)) for k, v in run.items() if v not in (None, [])]),
        ("Versions", [(str(k), str(v)) for k, v in (manifest.get("versions") or {}).items()]),
        ("Data", _datasets(content.ladder_rows)),
    ]
    return [(name, entries) for name, entries in made if entries]


def _datasets(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    sizes = {
        str(row["dataset"]): ", ".join(
            f"{row[column]:,.0f} {word}"
            for column, word in (("num_users", "users"), ("num_items", "items"),
                                 ("num_pairs", "pairs"), ("max_set_size", "in the largest set"))
            if isinstance(row.get(column), (int, float))
        )
        for row in rows
    }  # fmt: skip
    return list(sizes.items())


def _glossary() -> list[tuple[str, list[Entry]]]:
    groups: dict[str, list[Entry]] = {}
    for entry in GLOSSARY:
        groups.setdefault(entry.group, []).append(entry)
    return list(groups.items())
