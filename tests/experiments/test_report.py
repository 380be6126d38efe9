"""The report: what it says, that nothing in a folder can act on the page, and tables for papers."""

import ast
import base64
import hashlib
import html.parser
import importlib.util
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from markdown_it import MarkdownIt

from experiments.claims.registry import claims
from experiments.report import (
    Content,
    headline_of,
    latex,
    markdown,
    read_results,
    render,
)
from experiments.report.formulas import typeset
from experiments.report.glossary import GLOSSARY, SYMBOLS, WORDS, find
from experiments.report.junit import junit
from experiments.report.ladder import tightness
from experiments.report.svg import inline
from experiments.report.tables import Table
from experiments.report.verification import details, headline
from experiments.statistics.evidence import ExactEvidence, QuantileEvidence
from experiments.sweep.store import manifest, write_json
from experiments.verdict import claim_success, judge
from experiments.verify import Outcome, Verification
from theory import Bound, InvalidInput
from theory._notebook import notebook_table

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location(
    "report_folder", Path(__file__).with_name("report_folder.py")
)
assert _SPEC is not None and _SPEC.loader is not None
report_folder = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(report_folder)
DRAWING, HOSTILE = report_folder.DRAWING, report_folder.HOSTILE
# As the page shows it: what cannot be seen is spelt out.
SHOWN = HOSTILE.replace("\x07", r"\x07").replace("\u202e", r"\u202e")


class Document(html.parser.HTMLParser):
    """The elements of a page, with their attributes and all text inside."""

    VOID = {"meta", "link", "input", "br", "img", "hr"}

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str], list[str]]] = []
        self._open: list[tuple[str, dict[str, str], list[str]]] = []
        self.feed(text)
        self.close()
        assert not self._open, f"not closed: {[name for name, *_ in self._open]}"

    def handle_starttag(self, tag, attrs):
        element = (tag, {name: value or "" for name, value in attrs}, [])
        self.elements.append(element)
        if tag not in self.VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, {name: value or "" for name, value in attrs}, []))

    def handle_endtag(self, tag):
        assert self._open.pop()[0] == tag

    def handle_data(self, data):
        for _, _, texts in self._open:
            texts.append(data)

    def all(self, tag: str, **attributes: str) -> list[tuple[dict[str, str], str]]:
        return [
            (attrs, "".join(texts))
            for name, attrs, texts in self.elements
            if name == tag and attributes.items() <= attrs.items()
        ]


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Path:
    return report_folder.folder(tmp_path_factory.mktemp("report") / "results")


@pytest.fixture(scope="module")
def content(results) -> Content:
    return Content.of(read_results(results))


@pytest.fixture(scope="module")
def page(content) -> str:
    return render(content)


@pytest.fixture(scope="module")
def document(page) -> Document:
    return Document(page)


# ---- nothing in a folder acts


def test_the_page_loads_nothing_and_runs_only_its_own_script(page, document):
    names = Counter(name for name, *_ in document.elements)
    assert names["script"] == names["style"] == 1
    assert not names.keys() & {"img", "iframe", "object", "embed", "base", "foreignobject"}
    ((_, script),) = document.all("script")
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(attrs["content"] for attrs, _ in document.all("meta") if "http-equiv" in attrs)
    assert f"script-src 'sha256-{allowed}'" in policy and "default-src 'none'" in policy
    for name, attrs, _ in document.elements:
        assert not [key for key in attrs if key.startswith("on")], (name, attrs)
        for key in ("href", "src", "xlink:href", "action"):
            assert attrs.get(key, "#").startswith(("#", "data:,")), (name, attrs)
    assert "evil.example" not in page and "someone's name" not in page
    assert not re.search(r"@import|url\((?!#)", page)


def test_names_with_markup_are_text_wherever_they_stand(document):
    rows = [text for attrs, text in document.all("tr") if "data-c" in attrs]
    assert sum(SHOWN in text for text in rows) >= 6  # as data set, title and note
    assert any(SHOWN in text for _, text in document.all("option"))  # filter
    assert any(SHOWN in text for _, text in document.all("summary"))  # claim
    assert any(SHOWN in text for _, text in document.all("span", **{"class": "name"}))  # ladder
    (manifest_text,) = [text for _, text in document.all("pre")]
    assert "onerror" in manifest_text and "</script>" in manifest_text
    assert "49" not in "".join(rows)  # no template expression was evaluated
    # In an attribute too.
    assert any(attrs.get("title") == SHOWN for _, attrs, _ in document.elements)


def test_every_link_leads_to_one_place_and_no_name_is_used_twice(document):
    ids = Counter(attrs["id"] for _, attrs, _ in document.elements if "id" in attrs)
    assert set(ids.values()) == {1}
    for name, attrs, _ in document.elements:
        for key in ("href", "aria-labelledby", "for", "clip-path"):
            target = re.search(r"#?([\w-]+)\)?$", attrs.get(key, "")) if key in attrs else None
            if target and attrs[key] != "data:,":
                assert target[1] in ids, (name, attrs)


# ---- drawings


def test_a_drawing_keeps_its_shapes_and_nothing_else():
    drawing = inline(DRAWING.encode(), prefix="p", label='a "b"')
    root = ElementTree.fromstring(drawing.markup)
    tags = Counter(element.tag for element in root.iter())
    assert tags == {"svg": 1, "defs": 1, "clipPath": 1, "path": 1, "rect": 2, "g": 1, "use": 2,
                    "image": 1, "text": 1}  # fmt: skip
    assert root.attrib == {"viewBox": "0 0 300 100", "role": "img", "aria-label": 'a "b"'}
    assert drawing.width == 300
    group = root.find("g")
    assert group is not None and "id" not in group.attrib
    assert group.attrib["clip-path"] == "url(#p-c)"
    assert group.attrib["style"] == "fill:url(#p-c);stroke:#0072b2;stroke-width:2"
    good, bad = root.findall(".//use")
    assert good.attrib["href"] == "#p-a" and "href" not in bad.attrib
    (path,) = root.findall(".//path")
    assert path.attrib == {"id": "p-a", "d": "M 0 0 L 10.12 5.5"}
    assert root.findtext(".//text") == "x < y"


@pytest.mark.parametrize(
    "source",
    [
        b"", b"<svg", b"<html xmlns='http://www.w3.org/1999/xhtml'/>",
        b'<!DOCTYPE svg [<!ENTITY a "aaaa">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>',
    ],
)  # fmt: skip
def test_what_is_no_plain_drawing_is_refused_in_one_line(source):
    with pytest.raises(InvalidInput, match="must be a plain SVG file"):
        inline(source, prefix="p", label="x", name="a.svg")


def test_a_figure_of_matplotlib_is_the_same_shapes_with_shorter_numbers():
    import io

    from matplotlib.figure import Figure

    figure = Figure(figsize=(2, 2))
    figure.subplots().plot(np.linspace(0, 1, 20), np.linspace(0, 1, 20) ** 2, label="$x^2$")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    before = ElementTree.fromstring(buffer.getvalue())
    drawing = inline(buffer.getvalue(), prefix="p", label="x")
    after = ElementTree.fromstring(drawing.markup)
    svg = "{http://www.w3.org/2000/svg}"
    for element in ("path", "use", "g", "clipPath"):
        old, new = [*before.iter(svg + element)], [*after.iter(element)]
        assert len(old) == len(new) > 0
        for one, other in zip(old, new, strict=True):
            numbers = [re.findall(r"-?[\d.]+", e.attrib.get("d", "")) for e in (one, other)]
            assert np.allclose(*(np.array(n, float) for n in numbers), rtol=0, atol=0.0051)
            assert one.attrib.get("transform") == other.attrib.get("transform")
    assert len(drawing.markup) < 0.9 * len(buffer.getvalue())


# ---- what it says


def test_the_rows_are_the_verdicts(results, document):
    frame = pl.read_parquet(results / "verdicts.parquet")
    rows = [attrs for attrs, _ in document.all("tr") if "data-c" in attrs]
    assert Counter(row["data-v"] for row in rows) == Counter(frame["verdict"].to_list())
    assert [row.get("class") for row in rows].index("against") == 0
    assert sum(row.get("class") == "against" for row in rows) == 1
    options = document.all("option")
    for text in ("proved", "confirmed", "refuted", "undecided", "vacuous", "not as expected"):
        assert any(told == text for _, told in options)


def test_the_sentences_on_top(content):
    reports = content.reports
    assert headline(reports) == "1 of 5 claims does not come out as expected"
    assert details(reports)[0] == (
        "10 cells: 4 proved by exact arithmetic, 1 confirmed by trials, 1 refuted, as expected of "
        "errata, 1 refuted against what was expected, 1 undecided, 2 vacuous."
    )
    good = [report for report in reports if report.success]
    assert headline(good) == "All 3 claims came out as expected"
    assert headline(good[:1]) == "The claim came out as expected"
    undecided = [report for report in reports if report.outcome == "undecided"]
    assert headline([*good, *undecided]) == (
        "3 of 4 claims came out as expected, the others are undecided"
    )
    silent = [report for report in reports if report.outcome in ("nothing to say", "not judged")]
    assert headline(silent) == "No claim says anything on these data"
    assert details(silent)[1:] == [
        "Without any cell: Corollary 3.4 slope in N.",
        "Nothing to say, every cell vacuous: Theorem 3.3 [U3] Zipf bound.",
    ]


def test_claims_from_outside_are_described_by_the_folder(content, results, tmp_path):
    outside = next(report for report in content.reports if report.name == "outside")
    assert outside.about["title"] == f"Outside {HOSTILE}" and outside.about["own_data"]
    # A folder without descriptions: what is known here, else the name.
    for file in results.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    entries = json.loads((tmp_path / "manifest.json").read_text())
    del entries["claims"]
    write_json(tmp_path / "manifest.json", entries)
    (tmp_path / "verdicts.parquet").unlink()  # the CSV says the same
    again = Content.of(read_results(tmp_path))
    titles = {report.name: report.about["title"] for report in again.reports}
    assert details(again.reports)[0] == details(content.reports)[0]
    assert Document(render(again)).all("h1") == Document(render(content)).all("h1")
    assert titles["theorem-3.6"] == "Theorem 3.6 [U-inf]" and titles["outside"] == "outside"


def test_tightness_is_the_median_over_cells_that_say_something(content):
    found = {entry.rung.tag: entry for entry in tightness(content.ladder_rows)}
    assert found["L2"].slacks == pytest.approx([0.3 / 0.2, 0.25 / 0.1])  # the oracle gap
    assert found["U2"].slacks == pytest.approx([0.64 / 0.32, 0.9 / 0.30])  # exact where known
    assert found["U2"].middle == pytest.approx(2.5) and found["U2"].vacuous == 0
    assert found["U3"].slacks == pytest.approx([0.96 / 0.30]) and found["U3"].vacuous == 1
    assert found.keys() == {"L2", "U2", "U3"}


def test_plotted_numbers_and_captions(document):
    captions = [text for _, text in document.all("figcaption")]
    assert captions[0].startswith("How loose each bound is.")
    assert captions[1].startswith("Own drawing.") and SHOWN in captions[1]


@pytest.mark.parametrize(
    ("command", "more", "files", "expected"),
    [
        ("profile", {"results": {"dataset": HOSTILE, "users": 3, "items": 2, "pairs": 4,
                                 "max_set_size": 2, "top_items": [{"item": HOSTILE, "users": 3}]}},
         {}, "3 users, 2 items"),
        ("plan", {}, {"plan": {"find": "max-items", "answer": 5, "statistic": "mean",
                               "value": 0.0821, "lower_bound": 0.0433, "dataset": "buy",
                               "curve": [{"split": 0.1}], "notes": [HOSTILE]}},
         "Δ0 = 5: 8.21 % of the mass of buy is left on average"),
        ("audit", {"results": [{"mechanism": "x", "private": True, "accused": True, "eps": 1.0,
                                "claimed_delta": 1e-5, "found_delta": 0.0067}]}, {},
         "x is not (1, 1e-05)-private, as it claims to be: δ(1) ≥ 0.0067"),
        ("bounds", {"results": []}, {}, "Results of wgm bounds"),
        ("compare", {"standings": [{"eps": 1.0, "lower_bound": 0.0918, "best": {
            "mechanism": "dp-sips", "max_items_per_user": 100, "missing_mass": 0.508}, "wgm": [
            {"mechanism": "wgm", "best": {"max_items_per_user": 50, "missing_mass": 0.521}}]}]}, {},
         "At ε = 1 dp-sips with Δ0 = 100 leaves least, 50.8 % of the mass; wgm 52.1 % with Δ0 = 50;"
         " no private mechanism can leave less than 9.18 %"),
        ("errata", {"errata": [{"number": "1a", "where": HOSTILE, "printed": "MM <= 1", "cause": "",
                                "refuted_by": HOSTILE, "corrected": "[U2]", "demonstrated": True}]},
         {}, "All 1 errata are shown"),
        (HOSTILE, {"results": "text"}, {}, "Results of wgm"),
    ],
)  # fmt: skip
def test_other_commands(tmp_path, command, more, files, expected):
    write_json(tmp_path / "manifest.json", manifest(command, settings={"eps": 1}, **more))
    for name, value in files.items():
        write_json(tmp_path / f"{name}.json", value)
    document = Document(render(Content.of(read_results(tmp_path))))
    assert expected in document.all("h1")[0][1].replace("\xa0", " ")
    assert Counter(name for name, *_ in document.elements)["script"] == 1
    if HOSTILE in json.dumps([more, files], ensure_ascii=False).replace("\\", ""):
        assert any(SHOWN in text for _, text in document.all("td") + document.all("p"))


def test_figures_of_the_paper_are_judged_on_top(tmp_path):
    write_json(tmp_path / "manifest.json", manifest("figure", settings={}, captions={
        "figure-01": {"title": "Losses", "caption": "Three data sets."}}))  # fmt: skip
    verdicts = ["reproduced", "not reproduced", "with reservation", "reproduced"]
    rows = {name: [f"{name} {i}" for i in range(4)] for name in ("source", "number", "note")}
    frame = pl.DataFrame({**rows, "says": [HOSTILE] * 4, "verdict": verdicts})
    frame.write_parquet(tmp_path / "statements.parquet")
    (tmp_path / "figure-01.svg").write_text(DRAWING)
    frame.write_parquet(tmp_path / "figure-01.parquet")  # its numbers, no table of their own
    content = Content.of(read_results(tmp_path))
    document = Document(render(content))
    said = "Of 4 statements of the paper 2 are reproduced, 1 with reservation, 1 not reproduced"
    assert headline_of(content) == said
    sections = [attrs["id"] for attrs, _ in document.all("section")]
    assert sections[:2] == ["statements", "figures"] and "tables" not in sections
    shown = [text for attrs, text in document.all("tr") if "number" in text][1:]
    assert len(shown) == 4 and all(SHOWN in text for text in shown)
    for text, verdict, place in zip(shown, verdicts, range(4), strict=True):
        assert verdict in text and f"source {place}" in text and f"note {place}" in text
    assert [(t.name, len(t.rows)) for t in content.tables()] == [("statements", 4)]
    captions = [text for _, text in document.all("figcaption")]
    assert captions[0].startswith("Losses. Three data sets.")
    frame.with_columns(verdict=pl.lit("proved")).write_parquet(tmp_path / "statements.parquet")
    with pytest.raises(InvalidInput, match="must hold verdicts reproduced"):
        render(Content.of(read_results(tmp_path)))


def test_a_table_of_results_lists_what_is_the_same_in_every_row_once(tmp_path):
    write_json(tmp_path / "manifest.json", manifest("bench", settings={}))
    frame = pl.DataFrame({"delta": [1e-5] * 700, "value": range(700), "name": ["<b>"] * 700})
    frame.write_parquet(tmp_path / "trials.parquet")
    (table,) = Content.of(read_results(tmp_path)).tables()
    assert table.columns == ["value"] and len(table.rows) == 500
    assert table.note == "In every row: δ = 1e-05; name = <b>. The first 500 of 700 rows."


def test_a_table_and_a_drawing_of_one_name_are_both_shown(tmp_path):
    write_json(tmp_path / "manifest.json", manifest("topk", settings={}))
    pl.DataFrame({"k": [5], "mean": [0.5]}).write_parquet(tmp_path / "comparison.parquet")
    pl.DataFrame({"trial": [0], "value": [0.5]}).write_parquet(tmp_path / "trials.parquet")
    (tmp_path / "comparison.svg").write_text(DRAWING)
    pl.DataFrame({"x": [1.5]}).write_csv(tmp_path / "comparison.csv")
    results = read_results(tmp_path)
    assert results.figures[0].numbers.rows() == [(1.5,)]
    (table,) = Content.of(results).tables()  # not the trials one by one
    assert (table.columns, table.rows) == (["k", "mean"], [["5", "0.5"]])


# ---- glossary


def _tags_in_the_code() -> set[str]:
    """Texts in the three packages that are nothing but a tag: what bounds and verdicts carry."""
    found = set()
    for package in ("theory", "wgm_jax", "experiments"):
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found |= set(re.findall(r"^\[[A-Z][\w.∞*-]*\]$", node.value))
                if isinstance(node, ast.keyword) and node.arg == "tag":
                    value = getattr(node.value, "value", None)
                    found |= {value} if isinstance(value, str) and value else set()
                # The tag is the second field of a Bound.
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Bound":
                    tags = [getattr(argument, "value", None) for argument in node.args[1:2]]
                    found |= {tag for tag in tags if isinstance(tag, str)}
    return found


def test_every_tag_in_claims_and_bounds_has_an_entry():
    tags = _tags_in_the_code()
    assert {"[U2]", "[E6]", "[L2]", "[U-inf-p]", "Lemma C.5"} <= tags
    for claim in claims():
        text = " ".join((claim.title, claim.statement, claim.explicit))
        tags |= set(re.findall(r"(?<!E)\[[A-Z][\w.∞*-]*\]", text))
    # Some name two statements at once: [E5, E6].
    single = {part.strip("[]") for tag in tags for part in tag.split(", ")}
    assert sorted(tag for tag in single if find(tag) is None) == []


def test_the_glossary_is_complete_in_itself():
    for names in ([e.tag for e in GLOSSARY], [e.anchor for e in GLOSSARY]):
        assert len(set(names)) == len(names)
    spellings = [name for entry in GLOSSARY for name in (entry.tag, *entry.aliases)]
    assert len(set(spellings)) == len(spellings)
    for entry in GLOSSARY:
        assert re.fullmatch(r"tag-[A-Za-z0-9-]+", entry.anchor)
        text = " ".join((entry.statement, entry.formula, entry.source))
        referred = set(re.findall(r"\[[A-Z][\w∞*]*\]", text)) - {"[MM]", "[Hits]", "[K]"}
        assert all(find(tag) for tag in referred), entry
        assert entry.name and entry.statement and entry.source
        for part in (entry.formula, entry.statement):
            assert part.count("(") == part.count(")"), entry
            assert "^" not in typeset(part), entry
    assert all(symbol and meaning for symbol, meaning in (*SYMBOLS, *WORDS))


def test_mathematics_is_set_and_nested_brackets_end_where_they_should():
    assert typeset("a^((s-1)/s)b_((i))^2") == "a<sup>(s−1)/s</sup>b<sub>(i)</sub><sup>2</sup>"
    assert typeset("e^(theta a") == "e<sup>(</sup>theta a"  # never closed
    assert typeset("^" * 800 + "a_b_c") and typeset("x^(" * 800)  # no recursion without end
    assert typeset("[U2] <x>_1") == '<a class="tag" href="#tag-U2">[U2]</a> &lt;x&gt;_1'


# ---- tables for papers

SPECIAL = [
    HOSTILE,
    r"a|b\|c",
    "*a* _b_ `c` ~d~ #e",
    r"\input{x} $x^2$ 50% & ~^{}",
    "[U2] <b>",
    "Δ0 ≤ ε",
]


def test_markdown_shows_every_text_as_it_is():
    rows = [[text, "1"] for text in SPECIAL]
    made = markdown(Table("a", SPECIAL[1], ("name", "n"), rows, note=SPECIAL[2]))
    parsed = Document(MarkdownIt("commonmark").enable("table").render(made))
    names = [text for _, text in parsed.all("td")][::2]
    assert names == [" ".join(text.split()) for text in SPECIAL]
    assert Counter(name for name, *_ in parsed.elements).keys() <= {
        "p", "strong", "table", "thead", "tbody", "tr", "th", "td"
    }  # fmt: skip
    assert [text for _, text in parsed.all("p")] == [SPECIAL[1], SPECIAL[2]]


def _as_printed(source: str) -> str:
    """What LaTeX prints for the commands that are used; a bare special character is an error."""
    printed = {r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^",
               r"\textless{}": "<", r"\textgreater{}": ">", r"\textbar{}": "|",
               r"\textquotedbl{}": '"', "{[}": "[", "{]}": "]", r"\{": "{", r"\}": "}",
               r"\$": "$", r"\&": "&", r"\#": "#", r"\_": "_", r"\%": "%",
               r"$\Delta$": "Δ", r"$\varepsilon$": "ε", r"$\le$": "≤"}  # fmt: skip
    pattern = re.compile("|".join(map(re.escape, sorted(printed, key=len, reverse=True))))
    assert not re.search(r"[\\{}$&#_%~^]", pattern.sub("", source)), source
    return pattern.sub(lambda found: printed[found[0]], source)


@pytest.mark.parametrize("repeat", [1, 10])
def test_latex_prints_every_text_as_it_is(repeat):
    rows = [[text, "1"] for text in SPECIAL * repeat]
    made = latex(Table("a/../b", "t", ("name", "n"), rows))
    assert r"\label{tab:a-b}" in made
    assert ("longtable" in made) == (repeat > 1)
    body = [line for line in made.splitlines() if line.endswith(r" & 1 \\")]
    wanted = [re.sub("[\x07\u202e]", "?", " ".join(text.split())) for text in SPECIAL * repeat]
    assert [_as_printed(line.removesuffix(r" & 1 \\")) for line in body] == wanted
    for environment in re.findall(r"\\begin\{(\w+)\}", made):
        assert made.count(rf"\end{{{environment}}}") == 1


# ---- command line


def test_the_command_writes_a_page_and_tables(wgm, results, tmp_path):
    names = ("--markdown", tmp_path / "a.md", "--latex", tmp_path / "a.tex", "--tables",
             tmp_path / "tables")  # fmt: skip
    status, out, err = wgm("report", results, "-o", tmp_path / "a.html", *names)
    assert status == 0 and out.startswith("1 of 5 claims does not come out as expected.\n")
    assert Document((tmp_path / "a.html").read_text(encoding="utf-8")).all("h1")
    written = sorted(path.name for path in (tmp_path / "tables").iterdir())
    assert written == ["claims.md", "claims.tex", "ladder.md", "ladder.tex"]
    both = (tmp_path / "tables" / "claims.tex").read_text() + "\n"
    assert (tmp_path / "a.tex").read_text().startswith(both)
    assert "| Theorem 3.6 \\[U∞\\] |" in (tmp_path / "a.md").read_text(encoding="utf-8")


def test_bad_input_is_one_line(wgm, results, tmp_path):
    write_json(tmp_path / "manifest.json", manifest("verify", settings={}))
    (tmp_path / "verdicts.csv").write_text("claim,verdict\na,proved\n")
    for arguments, message in (
        ((tmp_path / "none",), f"RESULTS {tmp_path / 'none'}: is not a folder"),
        ((results.parent,), "holds no manifest.json: no results, or not complete yet"),
        ((tmp_path,), "RESULTS verdicts: must have the columns"),
        ((results, "-o", tmp_path), "must be a file in a folder that exists"),
        ((results, "-o", tmp_path / "x" / "y.html"), "must be a file in a folder that exists"),
    ):
        status, out, err = wgm("report", *arguments)
        assert (status, out) == (2, "") and err.count("\n") == 1
        assert message in err
    (tmp_path / "manifest.json").write_text("[]")
    assert wgm("report", tmp_path)[0] == 2
    (tmp_path / "manifest.json").write_text("{")
    assert "is not JSON" in wgm("report", tmp_path)[2]


def test_the_command_needs_neither_jax_nor_matplotlib(results):
    code = (
        "import sys; from pathlib import Path; from experiments.report import *;"
        f"render(Content.of(read_results(Path({str(results)!r}))));"
        "print(*(name for name in ('jax', 'matplotlib') if name in sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == ""


# ---- JUnit


def test_junit_counts_failures_and_what_was_not_decided():
    known = {claim.name: claim for claim in claims()}
    seen = QuantileEvidence(np.full(1000, 0.2), bound=0.3, beta=0.05)
    evidence = {
        "theorem-3.6": [seen, ExactEvidence(0.5, 0.4, "upper"), ExactEvidence(0.2, 1.5, "upper")],
        "erratum-1-lemma-c.2": [ExactEvidence(0.5, 0.4, "upper")] * 2,
        "lemma-c.5": [],
    }
    outcomes = []
    for name, found in evidence.items():
        verdicts = judge(
            name, [({"dataset": HOSTILE}, one) for one in found], level=0.01,
            expected=known[name].expected,
        )  # fmt: skip
        success = claim_success(verdicts, known[name].expected)
        outcomes.append(Outcome(known[name], verdicts, success, needs_trials=name == "lemma-c.5"))
    root = ElementTree.fromstring(junit(outcomes, seconds=1.5, settings={"eps": [0.1, 1.0]}))
    totals = {name: root.get(name) for name in ("tests", "failures", "skipped", "errors")}
    assert totals == {"tests": "6", "failures": "1", "skipped": "2", "errors": "0"}
    suites = root.findall("testsuite")
    assert [suite.get("name") for suite in suites] == list(evidence)
    cases = suites[0].findall("testcase")
    name = "dataset = " + HOSTILE.replace("\x07", "\ufffd")
    assert [case.get("name") for case in cases] == [name, f"{name} #2", f"{name} #3"]
    assert [len(case) for case in cases] == [0, 1, 1]
    failure = cases[1].find("failure")
    assert failure is not None and "refuted, expected to hold" in failure.get("message", "")
    assert cases[2][0].get("message", "").startswith("vacuous")
    assert not suites[1].findall("testcase/*")  # an erratum that is refuted passes
    assert suites[2].find("testcase/skipped").get("message") == "needs trials"
    assert suites[0].find("properties/property[@name='eps']").get("value") == "0.1, 1"


def test_verify_writes_junit(wgm, tmp_path, monkeypatch):
    monkeypatch.setattr(report_folder.module, "_plots", lambda *_: [])
    file = tmp_path / "verdicts.xml"
    asked = ("verify", "--claim", "lemma-a.1", "--claim", "erratum-1-theorem", "--exact")
    data = tmp_path / "a.csv"
    data.write_text("user,item\n1,2\n1,3\n2,2\n")
    status, _, err = wgm(*asked, data, "--out", tmp_path / "out", "--junit", file)
    assert status == 0, err
    root = ElementTree.fromstring(file.read_bytes())
    assert root.get("failures") == "0" and int(root.get("tests", 0)) == 21
    status, _, err = wgm(*asked, data, "--out", tmp_path / "b", "--junit", tmp_path / "x" / "y.xml")
    assert status == 2 and "--junit" in err and not (tmp_path / "b").exists()
    content = Content.of(read_results(tmp_path / "out"))
    assert headline(content.reports) == "All 2 claims came out as expected"


def test_verify_writes_the_page_itself_and_survives_without(wgm, tmp_path, monkeypatch):
    monkeypatch.setattr(report_folder.module, "_plots", lambda *_: [])
    asked = ("verify", "--claim", "erratum-1-theorem", "--exact", "--max-items-per-user", "1")
    data = tmp_path / "a.csv"
    data.write_text("user,item\n1,2\n1,3\n2,2\n")
    status, out, err = wgm(*asked, data, "--out", tmp_path / "good", "--quiet")
    assert (status, err) == (0, "") and f"Report: {tmp_path / 'good' / 'report.html'}" in out
    page = (tmp_path / "good" / "report.html").read_text(encoding="utf-8")
    assert page == render(Content.of(read_results(tmp_path / "good")))

    def fail(*_):
        raise ZeroDivisionError("no page today")

    monkeypatch.setattr("experiments.report.writing.render", fail)
    status, out, err = wgm(*asked, data, "--out", tmp_path / "bad", "--quiet")
    assert status == 0 and "Report:" not in out and "All 1 claims: as expected." in out
    assert err.startswith("wgm: warning: no report: ZeroDivisionError: no page today")
    files = {path.name for path in (tmp_path / "good").iterdir()} - {"report.html"}
    assert {path.name for path in (tmp_path / "bad").iterdir()} == files


# ---- notebooks


def test_notebook_tables_are_escaped_and_short():
    parsed = Document(notebook_table(HOSTILE, (HOSTILE,), [(HOSTILE,)] * 30, HOSTILE))
    assert {name for name, *_ in parsed.elements} == {
        "table", "caption", "thead", "tbody", "tr", "th", "td", "p"
    }  # fmt: skip
    assert [text for _, text in parsed.all("td")] == [HOSTILE] * 20
    assert parsed.all("p")[0][1] == f"10 more rows. {HOSTILE}"


def test_trials_audits_and_plans_show_themselves():
    from experiments.audit.search import Audit
    from experiments.planning.records import Curve, Outcome, Plan
    from theory import calibrate
    from wgm_jax.trials import Trials

    grid = calibrate(eps=np.array([0.1, 1.0]), delta=1e-5, max_items_per_user=10)
    mass, count = np.array([[0.5, 0.25], [0.5, 0.75]]), np.array([[3, 4], [3, 8]])
    trials = Trials(
        mass, mass, mass, count, count, 7, 0, HOSTILE, "lanes", grid, None, 0.0, 0.0, {}
    )
    shown = Document(trials._repr_html_())
    assert [text for _, text in shown.all("td")] == [
        *("0.1", "1e-05", "10", "0.5", "0.5", "0.5", "0.5", "3"),
        *("1", "1e-05", "10", "0.5", "0.25", "0.25", "0.75", "6"),
    ]
    assert HOSTILE in shown.all("caption")[0][1]
    levels = np.array([0.0, 1.0])
    audit = Audit("wgm", True, 1.0, 1e-5, 6, None, 12, 0, None, None, 0.5, 3, levels, levels)
    assert [text for _, text in Document(audit._repr_html_()).all("td")] == [
        "1e-05", "0", "12", "3", "0.5"
    ]  # fmt: skip
    assert audit.to_frame().rows() == [("wgm", 0.0, 0.0), ("wgm", 1.0, 1.0)]
    one, curve = Outcome(grid[1], 100, 0.5, 0.75, 0.05, 0.25), np.array([0.5])
    plan = Plan("max-items", 10, "mean", None, one, one, 10, Curve(
        "max_items_per_user", np.array([10]), curve, curve, None, curve, "split", True
    ))  # fmt: skip
    cells = [text for _, text in Document(plan._repr_html_()).all("td")]
    assert cells == ["split", "0.5", "0.75", "0.25"] * 2


def test_results_show_themselves(results, tmp_path):
    bound = Bound(
        np.array([0.25, 1.5]), "[U2]", "Theorem 3.3", "missing_mass", "upper", "quantile", 0.05
    )
    cells = [text for _, text in Document(bound._repr_html_()).all("td")]
    assert cells == ["0.25", "no", "1.5", "yes"]
    known = {claim.name: claim for claim in claims()}
    found = judge("theorem-3.6", [({}, ExactEvidence(0.2, 0.4, "upper"))], level=0.01)
    result = Verification(
        [Outcome(known["theorem-3.6"], found, True)], pl.DataFrame(), pl.DataFrame(), 1.0, HOSTILE
    )
    cells = [text for _, text in Document(result._repr_html_()).all("td")]
    assert cells == ["Theorem 3.6 [U-inf]", "as expected", "1", "0", "0", "0", "0", "2", "2"]
    assert result.to_frame()["verdict"].to_list() == ["proved"]
    report_folder.write(tmp_path / "x", list(result.outcomes), pl.DataFrame({"mm_q05": [0.1]}))
    assert headline(Content.of(read_results(tmp_path / "x")).reports)
