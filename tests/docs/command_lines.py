"""The `wgm` command lines that a Markdown page shows, in code blocks and in running text."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

_FENCE = re.compile(r"^ *```")
_CODE = re.compile(r"^(?: {4}|\t)")
_INLINE = re.compile(r"`(wgm [^`]+)`")
_COMMAND = re.compile(r"(?:^|[\s'\"/])wgm(?= )(.*)")
# One of several choices in a synopsis: split|full. A pipe has spaces around it.
_CHOICE = re.compile(r"(?<=\S)\|\S+")
# What follows `wgm` in a command line; others talk of the mechanism: `wgm (full)`.
_NAME = re.compile(r"^[a-z]+(-[a-z]+)*$")
_OPERATOR = re.compile(r"^[|&;<>]+$")


@dataclass(frozen=True)
class Line:
    """A command line: its number in the page, its words, and whether it may be a fragment."""

    number: int
    words: tuple[str, ...]
    fragment: bool

    def __str__(self) -> str:
        return f"line {self.number}: wgm {shlex.join(self.words)}"


def command_lines(text: str) -> list[Line]:
    """All of them, in order; continued lines joined, comments and what is piped left out."""
    found = []
    for number, line, code in _logical_lines(text):
        if code:
            match = _COMMAND.search(line)
            texts = [match[1]] if match and not line.lstrip().startswith(("#", "wgm:")) else []
        else:
            texts = [span.removeprefix("wgm ") for span in _INLINE.findall(line)]
        for typed in texts:
            found.append(_line(number, typed, fragment=not code))
    return [line for line in found if line.words and _NAME.match(line.words[0])]


def _logical_lines(text: str) -> list[tuple[int, str, bool]]:
    """Lines with their number and whether they are code; paragraphs' spans may cross lines."""
    found: list[tuple[int, str, bool]] = []
    fenced = console = False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            fenced, console = not fenced, "console" in line
            found.append((number, "", False))
            continue
        code = fenced or bool(_CODE.match(line))
        if found and found[-1][1].endswith("\\"):
            start, before, _ = found.pop()
            found.append((start, before[:-1] + line.removeprefix("> "), True))
        elif console and fenced and not line.startswith("$ "):
            continue  # output
        elif not code and line.strip() and found and found[-1][1] and not found[-1][2]:
            start, before, _ = found.pop()
            found.append((start, f"{before} {line}", False))
        else:
            found.append((number, line.removeprefix("$ ") if console else line, code))
    return found


def _line(number: int, typed: str, *, fragment: bool) -> Line:
    typed = _CHOICE.sub("", typed).replace("[", " ").replace("]", " ").split("'")[0]
    lexer = shlex.shlex(typed, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if _OPERATOR.match(word):
            break
        words.append(word)
    left_out = "..." in words
    return Line(number, tuple(w for w in words if w != "..."), fragment or left_out)
