"""Every `wgm` line that the documentation shows is one that the command takes."""

import re

import pytest
import typer

from experiments.claims import select
from experiments.cli.app import app
from tests.docs.command_lines import command_lines
from tests.docs.pages import ROOT
from theory import InvalidInput
from wgm_jax.registry import mechanisms

DOCUMENTS = [
    ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", ".ci/README.md")
] + sorted((ROOT / "docs").rglob("*.md"))
DOCUMENTS = [path for path in DOCUMENTS if path.is_file()]
ROOT_COMMAND = typer.main.get_command(app)
# Names that stand for something, or that a page makes up.
STANDS_FOR = {"NAME", "all", "root-laplace", "root-laplace-scaled"}
LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")


def parse(words, *, fragment):
    """Options and arguments of a line, not run.

    An option, or its value, may be missing in a fragment; then nothing is known of the values.
    """
    name, *arguments = words
    root = ROOT_COMMAND.make_context("wgm", [name, *arguments], resilient_parsing=True)
    command = ROOT_COMMAND.get_command(root, name)
    assert command is not None, f"no command {name}"
    if {"--help", "-h"} & set(arguments):
        return {}
    try:
        return command.make_context(name, list(arguments), parent=root).params
    except Exception as error:
        said = error.format_message() if hasattr(error, "format_message") else str(error)
        if fragment and ("Missing" in said or said.endswith("requires an argument.")):
            return {}
        raise AssertionError(said) from error


def check_names(name, params):
    """Claims and mechanisms that a line names exist."""
    for claim in params.get("claim") or []:
        if claim not in STANDS_FOR and not claim.endswith(".py"):
            assert select([claim])
    asked = params.get("mechanism") or []
    asked = ",".join([asked] if isinstance(asked, str) else asked).split(",")
    if name == "audit":
        asked = [params["name"]]
    known = {info.name for info in mechanisms()} | STANDS_FOR | {""}
    unknown = {mechanism.removesuffix(" (full)") for mechanism in asked} - known
    assert not unknown, f"no mechanism {unknown}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_command_lines_parse(path):
    wrong = []
    for line in command_lines(path.read_text(encoding="utf-8")):
        try:
            params = parse(line.words, fragment=line.fragment)
            if params:
                check_names(line.words[0], params)
        except Exception as error:
            wrong.append(f"{line}: {error}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    links = LINK.findall(path.read_text(encoding="utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


TEXT = """
Say `wgm plan`, or `wgm bounds --zipf-s 1.5
--pairs 10`.

    .venv/bin/wgm verify x.csv --eps 1 \\
        --delta 1e-5 | tail -n 1      # all of it
    wgm audit NAME|all [--eps 1] [--method split|full]
    srun sh -c 'wgm sweep GRID.toml --worker $I/8'

```console
$ wgm topk a.csv ... \\
>   -k 1 > out
output of wgm topk -z
$ wgm report results && wgm no
```
"""


def test_lines_are_found_in_text_and_code():
    found = [(" ".join(line.words), line.fragment) for line in command_lines(TEXT)]
    assert found == [
        ("plan", True),
        ("bounds --zipf-s 1.5 --pairs 10", True),
        ("verify x.csv --eps 1 --delta 1e-5", False),
        ("audit NAME --eps 1 --method split", False),
        ("sweep GRID.toml --worker $I/8", False),
        ("topk a.csv -k 1", True),
        ("report results", False),
    ]


@pytest.mark.parametrize(
    "line, said",
    [
        ("boundaries x.csv", "boundaries"),
        ("profile x.csv --colour blue", "colour"),
        ("bounds x.csv --delta 1e-5 --max-items-per-user 1", "eps"),
        ("report one two", "two"),
    ],
)
def test_stale_lines_are_refused(line, said):
    with pytest.raises(AssertionError, match=said):
        parse(line.split(), fragment=False)


def test_stale_names_are_refused():
    with pytest.raises(AssertionError, match="wgm-2"):
        check_names("audit", {"name": "wgm-2"})
    with pytest.raises(AssertionError, match="nobody"):
        check_names("simulate", {"mechanism": "wgm,nobody"})
    with pytest.raises(InvalidInput, match="theorem-9"):
        check_names("verify", {"claim": ["theorem-9"]})
