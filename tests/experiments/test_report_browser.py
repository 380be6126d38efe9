"""The report in a headless Chromium: run with -m browser; skipped where there is none.

CHROMIUM names the program where it is not on the path.
"""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

PHONE, NARROW, DESK = 390, 320, 1280


def _load(name: str):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


chromium, report_folder = _load("chromium"), _load("report_folder")


@pytest.fixture(scope="module")
def page():
    executable = os.environ.get("CHROMIUM") or chromium.find()
    if executable is None:
        pytest.skip("no Chromium is installed")
    opened = chromium.Page(executable)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    from experiments.report import Content, read_results, render

    folder = report_folder.folder(tmp_path_factory.mktemp("browser") / "a folder's name #1")
    written = folder / "report.html"
    written.write_text(render(Content.of(read_results(folder))), encoding="utf-8")
    return written


SHOWN = (
    "[...document.querySelectorAll('#verdicts tbody tr')].filter((row) => row.checkVisibility())"
)
COUNT = "document.getElementById('count').textContent"


def choose(page, name: str, value: str) -> None:
    page.run(
        f"(() => {{ const e = document.getElementById('{name}'); e.value = {value!r};"
        "e.dispatchEvent(new Event(e.tagName === 'INPUT' ? 'input' : 'change', {bubbles: true}));"
        "return new Promise((done) => setTimeout(done, 200)); })()"
    )


@pytest.mark.parametrize("width", [NARROW, PHONE, DESK])
@pytest.mark.parametrize("dark", [False, True])
def test_it_opens_without_complaint_and_without_a_horizontal_scroll(page, file, width, dark):
    page.open(file, width=width, dark=dark)
    page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.complaints() == []
    assert page.requests() == [file.resolve().as_uri()]
    assert page.run("document.documentElement.scrollWidth") == width
    # Nothing sticks out except inside a container that scrolls by itself.
    outside = page.run(
        "[...document.querySelectorAll('body *')].filter((e) => !e.closest('.scroll, svg, pre') &&"
        f"e.checkVisibility() && e.getBoundingClientRect().right > {width} + 1)"
        ".map((e) => e.outerHTML.slice(0, 80))"
    )
    assert outside == []


def test_nothing_in_a_name_has_run(page, file):
    page.open(file, width=DESK)
    assert page.run("typeof hacked") == "undefined"
    assert page.run("document.querySelectorAll('img, #verdicts script').length") == 0
    page.run("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"hacked=1\">')")
    page.run("new Promise((done) => setTimeout(done, 200))")
    assert page.run("typeof hacked") == "undefined"  # and could not, had it become markup


def test_filters(page, file):
    page.open(file, width=PHONE)
    total = page.run(f"{SHOWN}.length")
    assert total == 10 and page.run(COUNT) == "10 cells"
    choose(page, "f-verdict", "proved")
    assert page.run(f"{SHOWN}.every((row) => row.textContent.includes('proved'))")
    assert page.run(COUNT) == "4 of 10 cells"
    choose(page, "f-data", "1")
    assert page.run(COUNT) == "2 of 10 cells"
    choose(page, "f-text", "theorem 3.6")
    assert page.run(COUNT) == "1 of 10 cells"
    choose(page, "f-text", "no such row")
    assert page.run(COUNT).startswith("None of 10 cells") and page.run(f"{SHOWN}.length") == 0
    page.run("document.querySelector('#filters button').click()")
    page.run("new Promise((done) => setTimeout(done, 100))")
    assert page.run(COUNT) == "10 cells" and page.run(f"{SHOWN}.length") == 10
    choose(page, "f-verdict", "against")
    assert page.run(COUNT) == "1 of 10 cells"
    assert page.run("document.getElementById('count').getAttribute('aria-live')") == "polite"
    # A claim's link sets the filter in place of what was set.
    page.run("document.querySelector('[data-show=\"1\"]').click()")
    assert page.run(COUNT) == "2 of 10 cells"
    assert page.run("document.getElementById('f-claim').selectedOptions[0].text") == (
        "Theorem 3.6 [U∞]"
    )


def test_sorting_says_what_it_did(page, file):
    page.open(file, width=DESK)
    slack = "[...document.querySelectorAll('#verdicts thead th')][2]"
    values = f"{SHOWN}.map((row) => parseFloat(row.cells[2].textContent))"
    for expected, sign in (("ascending", 1), ("descending", -1)):
        page.run(f"{slack}.querySelector('button').click()")
        assert page.run(f"{slack}.getAttribute('aria-sort')") == expected
        found = [value for value in page.run(values) if value is not None]
        assert len(found) == 8 and found == sorted(found, key=lambda value: sign * value)
        assert page.run(values)[-2:] == [None, None]  # what has no number comes last
    page.run("document.querySelector('#verdicts thead th button').click()")
    assert page.run("document.querySelectorAll('[aria-sort]').length") == 1


def test_the_keyboard_reaches_everything(page, file):
    page.open(file, width=DESK)
    page.press("Tab")
    assert page.run("document.activeElement.className") == "skip"
    assert page.run("document.activeElement.getBoundingClientRect().top") >= 0
    page.press("Enter", text="\r")
    assert page.run("document.activeElement.id") == "main"
    page.press("Tab")
    assert page.run("document.activeElement.tagName") == "SUMMARY"
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.press("Enter", text="\r")
    assert page.run("document.activeElement.parentElement.open") is True
    # What scrolls can be focused, hence scrolled by keys; every control has a name.
    assert page.run("[...document.querySelectorAll('.scroll')].every((e) => e.tabIndex === 0)")
    unnamed = page.run(
        "[...document.querySelectorAll('a, button, select, input, .scroll, svg[role=img]')]"
        ".filter((e) => !(e.textContent.trim() || e.labels?.length || e.ariaLabel ||"
        "e.getAttribute('aria-labelledby'))).length"
    )
    assert unnamed == 0


def test_a_tag_leads_to_its_statement(page, file):
    page.open(file, width=PHONE)
    page.run("document.querySelector('#verdicts a.tag').click()")
    page.run("new Promise((done) => setTimeout(done, 300))")
    name = page.run("location.hash.slice(1)")
    assert name.startswith("tag-") and page.run("document.querySelector(':target').id") == name


CONTRAST = """
(() => {
  const light = (c) => c.map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const found = parse(getComputedStyle(e).backgroundColor);
      if (found.length === 3) return found;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const e of document.querySelectorAll("body *")) {
    if (e.closest("svg") || !e.checkVisibility()) continue;
    if (![...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    const [a, b] = [light(parse(getComputedStyle(e).color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push([e.outerHTML.slice(0, 60), ratio]);
  }
  return poor;
})()
"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_what_is_behind_it(page, file, dark):
    page.open(file, width=DESK, dark=dark)
    page.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    background = page.run("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 24, 27)" if dark else "rgb(251, 251, 249)")
    assert page.run(CONTRAST) == []


def test_without_scripts_every_row_is_there_and_no_dead_control(page, file):
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(file, width=DESK)
        assert page.run(f"{SHOWN}.length") == 10
        assert not page.run("document.getElementById('filters').checkVisibility()")
        assert page.run("document.querySelectorAll('th button').length") == 0
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)


def test_it_prints(page, file):
    page.open(file, width=DESK)
    page.call("Emulation.setEmulatedMedia", media="print")
    assert not page.run("document.querySelector('#verdicts').checkVisibility()")
    choose(page, "f-verdict", "proved")
    assert page.run(f"{SHOWN}.length") == 4
    made = page.call("Page.printToPDF", printBackground=False)["data"]
    assert made.startswith("JVBERi")  # %PDF
    assert not page.run("document.querySelector('details.claim').open")  # closed again
