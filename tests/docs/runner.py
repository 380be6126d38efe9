"""Run the pages of the tutorial and compare what comes out with what they show.

    python -m tests.docs.runner              compare all pages
    python -m tests.docs.runner --update     write what comes out into the pages
    python -m tests.docs.runner --update 2   only the pages whose name begins with 2

Every page runs from its first block to its last in a fresh folder, as a reader would run it. What a
page prints is compared character by character after `normalised`; nothing else is let through.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from tests.docs.pages import ROOT, TUTORIAL, Block, Command, blocks, commands, console, pages

_MARK = "-- end of command, status "
# What differs from run to run or from machine to machine, and is of no interest. The numbers that a
# page is about are compared as they stand.
_RULES = (
    (re.compile(r"· \d+ s$", re.MULTILINE), "· N s"),  # wall-clock time of wgm verify
    (re.compile(r"\(\d+\.\d MB\)"), "(N MB)"),  # size of a report, which holds versions and times
    (re.compile(r"^[\d.]+ s, and [\d.]+ s to", re.MULTILINE), "N s, and N s to"),  # of wgm simulate
    (re.compile(r"[ \t]+$", re.MULTILINE), ""),
)


def normalised(output: str) -> str:
    """Output without what differs from run to run."""
    for pattern, text in _RULES:
        output = pattern.sub(text, output)
    return output.strip("\n")


@dataclass(frozen=True)
class Shell:
    """A fresh folder with an environment of its own, in which a page is run."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of the caller's settings but where Python is, and what is slow to make again."""
        home = self.folder.parent / "home"
        kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TMPDIR") if name in os.environ}
        return kept | {
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "MPLCONFIGDIR": os.environ.get("MPLCONFIGDIR", _font_cache()),
            "MPLBACKEND": "agg",
            "JAX_PLATFORMS": "cpu",  # a GPU rounds otherwise
            # The tree of this file, then what a page has installed.
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(self.folder.parent / "installed"))),
            "PYTHONUNBUFFERED": "1",
            "PYTHONUTF8": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "LANG": "C.UTF-8",
            "COLUMNS": "80",
            "NO_COLOR": "1",
            "TERM": "dumb",
        }

    def run(self, typed: list[str]) -> list[str]:
        """Output of every command, all in one shell, standard error included.

        Raises:
            RuntimeError: A command failed, and the next one does not ask for its status.
        """
        lines = [f'pip() {{ "{sys.executable}" "{Path(__file__).with_name("install.py")}" "$@"; }}']
        for command in typed:
            lines += [command, f's=$?; printf "\\n%s%d\\n" "{_MARK}" $s; (exit $s)']
        done = subprocess.run(
            ["bash", "-c", "\n".join(lines)],
            stdin=subprocess.DEVNULL,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=600,
        )
        pieces = re.split(rf"\n{re.escape(_MARK)}(\d+)\n", done.stdout)
        outputs, statuses = pieces[:-1:2], [int(status) for status in pieces[1::2]]
        if len(outputs) != len(typed):
            raise RuntimeError(f"the shell ended early:\n{done.stdout}")
        for place, status in enumerate(statuses):
            asked = place + 1 < len(typed) and typed[place + 1] == "echo $?"
            if status and not asked:
                raise RuntimeError(f"status {status} of: {typed[place]}\n{outputs[place]}")
        return outputs

    def script(self, text: str) -> str:
        """Output of a Python script."""
        return self.run([f"python - <<'END'\n{text}END"])[0]


def _font_cache() -> str:
    import matplotlib

    return matplotlib.get_cachedir()


def rerun(page: Path) -> str:
    """The page as it should be: every output and every shown file made anew.

    Lines that agree up to what `normalised` removes stay as they are.

    Raises:
        RuntimeError: A command failed.
        ValueError: A block that is none of the known kinds.
    """
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as top:
        shell = Shell(Path(top, "work"))
        for name in ("work", "home", "installed"):
            Path(top, name).mkdir()
        made = list(_bodies(blocks(text), shell))
    for block, body in reversed(made):  # from the end, so that positions stay right
        text = text[: block.start] + body + text[block.end :]
    return text


def _bodies(found: list[Block], shell: Shell) -> Iterator[tuple[Block, str]]:
    """Every block with the body that it should have."""
    printed: str | None = None
    for block in found:
        if block.language == "text":
            if printed is None:
                raise ValueError(f"shows the output of nothing:\n{block.body}")
            yield block, _kept(block.body, printed) + "\n"
            printed = None
            continue
        if printed:
            raise ValueError(f"output of a script is not shown:\n{printed}")
        printed = None
        if block.file:
            body = (TUTORIAL / block.file).read_text(encoding="utf-8")
            target = shell.folder / block.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(body, encoding="utf-8")
            yield block, body
        elif block.language == "python":
            printed = normalised(shell.script(block.body))
            yield block, block.body
        elif block.language == "console":
            typed = commands(block.body)
            outputs = shell.run([command.text for command in typed])
            ran = [
                Command(command.text, _kept(command.output, output))
                for command, output in zip(typed, outputs, strict=True)
            ]
            yield block, console(ran)
        else:
            raise ValueError(f"unknown kind of block: {block.language!r}")
    if printed:
        raise ValueError(f"output of a script is not shown:\n{printed}")


def _kept(shown: str, printed: str) -> str:
    """What is shown where that is what was printed, otherwise what was printed."""
    if normalised(shown) == normalised(printed):
        return shown.strip("\n")
    return re.sub(r"[ \t]+$", "", printed, flags=re.MULTILINE).strip("\n")


def difference(page: Path) -> str:
    """What a page shows and what comes out, as a diff; empty if they agree."""
    shown, made = page.read_text(encoding="utf-8"), rerun(page)
    lines = unified_diff(shown.splitlines(), made.splitlines(), "shown", "made", lineterm="")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Compare or update; 1 if a page differs."""
    update = "--update" in arguments
    names = tuple(name for name in arguments if name != "--update") or ("",)
    differs = False
    for page in pages():
        if not page.name.startswith(names):
            continue
        start = time.perf_counter()
        if update:
            page.write_text(rerun(page), encoding="utf-8")
        elif found := difference(page):
            print(found)
            differs = True
        print(f"{page.name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    return int(differs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
