"""What a user of the terminal meets in every command: help, width, colours, quiet, errors."""

import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest
import typer.main

from experiments.cli.app import app, describe
from experiments.cli.app import main as run_main
from theory import InvalidInput

COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
PRIVACY = ("--eps", "1", "--delta", "1e-5", "--max-items-per-user", "2")
LIGHT = ("claims", "mechanisms", "calibrate", "profile", "bounds", "plan", "errata", "figure",
         "simulate", "verify", "report", "audit")  # fmt: skip
ESCAPE = "\x1b"


@pytest.fixture(scope="module")
def csv(tmp_path_factory):
    """Sixty users of three items each, the first ones common."""
    rng = np.random.default_rng(0)
    lines = ["user,item"]
    for user in range(60):
        for item in rng.choice(20, 3, replace=False, p=np.arange(20, 0, -1) / 210):
            lines.append(f"u{user},i{item}")
    file = tmp_path_factory.mktemp("data") / "pairs.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def results(tmp_path):
    (tmp_path / "manifest.json").write_text('{"command": "simulate"}', encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_and_has_an_example(wgm, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = wgm(command, "--help")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80, [line for line in lines if len(line) > 80]
    assert ESCAPE not in out
    place = lines.index("Example:")
    example = " ".join(part.strip().removesuffix("\\") for part in lines[place + 1 : place + 3])
    assert example.startswith(f"wgm {command}")
    assert lines[0].startswith(f"Usage: wgm {command} [OPTIONS]")
    assert not re.search(r"\[\[|\{|<\w", lines[0])  # as people write it
    assert not re.search(r"<(str|path|int|float|bool|list)", out)  # names of Python types
    assert "--json" in out and "-q, --quiet" in out
    # Every option says what it is.
    options = [line for line in lines[lines.index("Options:") + 1 :] if line.startswith("  -")]
    assert len(options) >= 3


def test_every_option_of_an_example_exists():
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        example = command.help.partition("Example:")[2]
        known = {text for option in command.params for text in option.opts}
        assert example and set(re.findall(r"(?<=\s)--?[a-z][\w-]*", example)) <= known, name


def test_shared_options_read_the_same_everywhere():
    shared = ("--seed", "--json", "--quiet", "--out", "--beta", "--method", "--preset", "--format",
              "--user-column", "--item-column", "--separator")  # fmt: skip
    seen: dict[str, set[tuple[str | None, str]]] = {name: set() for name in shared}
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for command in commands.values():
        for option in command.params:
            if option.opts[0] in shared:
                seen[option.opts[0]].add((option.metavar, option.help))
    # The folder of a sweep has a default of its own; of figures several presets may be asked for.
    several = {"--out": 2, "--preset": 2}
    for name, texts in seen.items():
        assert 1 <= len(texts) <= several.get(name, 1), (name, texts)


def test_root_help_lists_every_command_and_the_exit_status(wgm, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = wgm("--help")
    assert (status, err) == (0, "") and ESCAPE not in out
    assert max(map(len, out.splitlines())) <= 80
    listed = re.findall(r"^  ([a-z][a-z-]+)  ", out, re.M)
    assert sorted(listed) == COMMANDS
    words = " ".join(out.split())
    assert "…" not in out and "..." not in out.replace("[ARGS]...", "")  # no sentence is cut
    for part in ("Exit status: 0", "1 a claim", "2 bad input", "3 undecided", "130 interrupted"):
        assert part in words
    # Without a command the same, as an error.
    status, nothing, help_text = wgm()
    assert (status, nothing) == (2, "") and help_text.strip() == out.strip()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_bad_option_is_one_line_and_status_2(wgm, command):
    status, out, err = wgm(command, "--no-such-option", "1")
    assert (status, out) == (2, "")
    assert re.fullmatch(r"wgm: No such option: --no-such-option.*\n", err)


def arguments(command, csv, results):
    """A short call of a command."""
    pair = (csv, *PRIVACY)
    return {
        "calibrate": PRIVACY,
        "profile": (csv,),
        "bounds": pair,
        "plan": (csv, "--eps", "1", "--delta", "1e-5"),
        "simulate": (*pair, "--trials", "20"),
        "errata": ("5b",),
        "verify": (csv, "--exact", "--claim", "lemma-3.1", "--out", results),
        "report": (results,),
        "audit": ("optimal-selection", "--evaluations", "2"),
    }.get(command, ())


@pytest.mark.parametrize("command", LIGHT)
def test_quiet_says_nothing_on_stderr_and_pipes_are_plain(wgm, csv, results, command, monkeypatch):
    monkeypatch.setattr("experiments.verify._plots", lambda *_: [])  # they take seconds
    given = arguments(command, csv, results)
    status, out, err = wgm(command, *given, "--quiet")
    assert status == 0 and out and err == ""
    assert ESCAPE not in out and "\r" not in out
    if command != "simulate":  # once: programs are compiled
        status, loud, hints = wgm(command, *given)
        assert status == 0 and ESCAPE not in loud + hints


def test_a_terminal_gets_styles_unless_no_color_is_set():
    """Under a pseudo-terminal: bold heads by default, no escape code at all with NO_COLOR."""
    program = "from experiments.cli import main; main()"
    for extra, styled in (({}, True), ({"NO_COLOR": "1"}, False)):
        kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "CI")}
        inside, outside = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-c", program, "claims", "lemma-3.1"],
            stdout=outside, stderr=outside, env={**kept, "TERM": "xterm-256color", **extra},
        ) as process:  # fmt: skip
            os.close(outside)
            seen = b""
            while True:
                try:
                    part = os.read(inside, 4096)
                except OSError:  # the other end is closed
                    break
                if not part:
                    break
                seen += part
        os.close(inside)
        assert process.returncode == 0 and b"Lemma 3.1" in seen
        assert (b"\x1b[1m" in seen) == styled and (ESCAPE.encode() in seen) == styled


def test_completion_of_bash(monkeypatch, capsys):
    monkeypatch.setenv("_WGM_COMPLETE", "complete_bash")
    for words, place, expected in (("wgm si", "1", "simulate"), ("wgm errata --ou", "2", "--out")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", place)
        with pytest.raises(SystemExit) as stopped:
            run_main([])
        assert stopped.value.code == 0
        assert capsys.readouterr().out.split() == [expected]


def test_a_long_list_of_names_is_shortened():
    names = [f"claim-{i}" for i in range(60)]
    said = describe(InvalidInput("claim", "claim-599", f"must be one of {', '.join(names)}"))
    first = "claim-0, claim-1, claim-2, claim-3"
    assert said == (
        f"--claim claim-599: claim must be one of {first}, ... (60 in all); did you mean claim-59?"
    )
    few = describe(InvalidInput("claim", "x", "must be one of a, b"))
    assert few == "--claim x: claim must be one of a, b"


def test_an_interrupt_is_one_line(monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("theory.calibrate", interrupted)
    with pytest.raises(SystemExit) as end:
        run_main(["calibrate", "--eps", "1", "--delta", "1e-5", "--max-items-per-user", "3"])
    assert end.value.code == 130
    assert capsys.readouterr().err.strip() == "wgm: interrupted"
