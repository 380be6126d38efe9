"""A Markdown page as what can be run and compared: fenced blocks, commands, shown output.

Three kinds of fenced blocks mean something:

    ```console                lines `$ command` (continued by `> `), each followed by its output
    ```python                 a script; a ```text block right behind it shows its output
    ```python my_claim.py     (or toml, ini ...) the file of that name beside the page, in full
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial"

_FENCE = re.compile(r"^```(?P<info>[^`\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file that it shows, its text, and where the text is."""

    language: str
    file: str
    body: str
    start: int
    end: int


@dataclass(frozen=True)
class Command:
    """A command of a console block, as typed, and the output below it."""

    text: str
    output: str


def pages() -> list[Path]:
    """The pages of the tutorial that are run, in order."""
    return sorted(TUTORIAL.glob("[0-9]-*.md"))


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a page."""
    found = []
    for match in _FENCE.finditer(text):
        language, _, file = match["info"].strip().partition(" ")
        found.append(Block(language, file.strip(), match["body"], *match.span("body")))
    return found


def commands(body: str) -> list[Command]:
    """The commands of a console block; a line that belongs to none is an error."""
    found: list[tuple[list[str], list[str]]] = []
    for line in body.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0].append(line[2:])
        elif found:
            found[-1][1].append(line)
        else:
            raise ValueError(f"output without a command: {line}")
    return [Command("\n".join(typed), "\n".join(shown).strip("\n")) for typed, shown in found]


def console(ran: list[Command]) -> str:
    """The body of a console block."""
    lines = []
    for command in ran:
        lines.append("$ " + command.text.replace("\n", "\n> "))
        if command.output:
            lines += [command.output, ""]
    return "\n".join(lines).rstrip("\n") + "\n"
