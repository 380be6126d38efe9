"""The tutorial shows what comes out, and the files that it shows are the files beside it."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import pages as pages_module
from tests.docs import runner
from tests.docs.pages import TUTORIAL, Command, blocks, commands, console, pages

PAGES = pages()
page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)


@pytest.mark.slow
@page
def test_a_page_shows_what_comes_out(path):
    difference = runner.difference(path)
    assert not difference, f"{difference}\npython -m tests.docs.runner --update"


@page
def test_scripts_parse_and_shown_files_are_the_real_ones(path):
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.file:
            assert (TUTORIAL / block.file).read_text(encoding="utf-8") == block.body
        if block.language == "python":
            ast.parse(block.body)
        if block.language == "console":
            assert console(commands(block.body)) == block.body


def test_every_file_of_the_tutorial_is_shown_and_listed():
    shown = {block.file for path in PAGES for block in blocks(path.read_text(encoding="utf-8"))}
    there = {
        str(file.relative_to(TUTORIAL)).replace(os.sep, "/")
        for file in TUTORIAL.rglob("*")
        if file.is_file() and file.suffix in (".py", ".toml")
    }
    assert shown - {""} == there
    index = (TUTORIAL / "README.md").read_text(encoding="utf-8")
    assert all(path.name in index for path in PAGES)


def test_own_claims_and_mechanisms_stay_short():
    for name in ("my_claim.py", "my_mechanism/my_mechanism.py"):
        assert len((TUTORIAL / name).read_text(encoding="utf-8").splitlines()) <= 40


# ---- the runner itself

PAGE = """
```console
$ printf 'one\\ntwo\\n'
wrong
$ false
$ echo $?
1
```

```python
print("hello")
```

```text
old
```

```python say.py
```

```console
$ python say.py
```
"""


@pytest.fixture
def tutorial(tmp_path, monkeypatch):
    folder = tmp_path / "tutorial"
    folder.mkdir()
    (folder / "say.py").write_text("print('said · 12 s')\n", encoding="utf-8")
    monkeypatch.setattr(runner, "TUTORIAL", folder)
    return folder


def write(tutorial: Path, text: str) -> Path:
    path = tutorial / "1-page.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_outputs_and_files_are_made_anew(tutorial):
    path = write(tutorial, PAGE)
    made = runner.rerun(path)
    assert "one\ntwo\n\n$ false\n$ echo $?\n1\n" in made
    assert "```text\nhello\n```" in made
    assert "```python say.py\nprint('said · 12 s')\n```" in made
    path.write_text(made, encoding="utf-8")
    assert runner.difference(path) == ""
    path.write_text(made.replace("\ntwo\n", "\ntoo\n"), encoding="utf-8")
    assert "-too" in runner.difference(path)


def test_only_what_varies_is_let_through(tutorial):
    path = write(tutorial, runner.rerun(write(tutorial, PAGE)).replace("said · 12 s", "said · 9 s"))
    (tutorial / "say.py").write_text("print('said · 9 s')\n", encoding="utf-8")
    text = path.read_text(encoding="utf-8").replace("\nsaid · 9 s\n", "\nsaid · 77 s\n")
    path.write_text(text, encoding="utf-8")
    assert runner.difference(path) == ""
    path.write_text(text.replace("\nsaid · 77 s\n", "\nsays · 77 s\n"), encoding="utf-8")
    assert runner.difference(path) != ""


@pytest.mark.parametrize(
    "text, error, said",
    [
        ("```console\n$ false\n$ true\n```\n", RuntimeError, "status 1 of: false"),
        ("```text\nnothing\n```\n", ValueError, "output of nothing"),
        ("```python\nprint(1)\n```\n", ValueError, "not shown"),
        ("```rust\n```\n", ValueError, "unknown kind"),
        ("```console\nnothing\n```\n", ValueError, "without a command"),
    ],
    ids=["failure", "text", "silent", "kind", "output"],
)
def test_pages_that_cannot_be_right_are_refused(tutorial, text, error, said):
    with pytest.raises(error, match=said):
        runner.rerun(write(tutorial, text))


def test_commands_keep_their_continuations():
    body = "$ wgm a \\\n>   b\nout\n\nmore\n\n$ c\n"
    assert commands(body) == [Command("wgm a \\\n  b", "out\n\nmore"), Command("c", "")]
    assert console(commands(body)) == body


def test_a_page_sees_nothing_of_the_callers_settings(tutorial, monkeypatch):
    monkeypatch.setenv("WGM_DATA", "somewhere")
    path = write(tutorial, "```console\n$ echo ${WGM_DATA:-none} $COLUMNS\nnone 80\n```\n")
    assert runner.difference(path) == ""


def test_an_installed_project_has_its_entry_points(tmp_path):
    script = Path(pages_module.__file__).with_name("install.py")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    subprocess.run(
        [sys.executable, script, "--quiet", TUTORIAL / "my_mechanism"], env=environment, check=True
    )
    asked = (
        "from importlib.metadata import entry_points, version\n"
        "points = entry_points(group='wgm_jax.mechanisms')\n"
        "print(version('my-mechanism'), *sorted(point.name for point in points))"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1.0", "root-laplace", "root-laplace-scaled"]
