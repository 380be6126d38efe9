"""How help is set: plain text that wraps, whole sentences for commands, examples to copy."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# Commands by what one wants to know; one that is in no group comes last.
_GROUPS = {
    "The paper's claims": ("verify", "report", "claims", "errata", "figure"),
    "A data set": ("profile", "bounds", "plan", "compare", "simulate", "sweep"),
    "Selections": ("topk", "hitting-set"),
    "Mechanisms": ("mechanisms", "calibrate", "audit", "bench"),
}
_EXAMPLE = "Example:"


def first_paragraph(help_text: str | None) -> str:
    """The first paragraph as one line."""
    return " ".join((help_text or "").strip().split("\n\n")[0].split())


def example(command: str, width: int) -> str:
    r"""A command that fits the width, continued as a shell takes it.

    Example:
        >>> print(example("wgm bounds a.csv --eps 1 --delta 1e-5", 28))
        wgm bounds a.csv --eps 1 \
            --delta 1e-5
    """
    # An option and its value stay together: no line is broken at a no-break space.
    kept = re.sub(r"(?<= )(--?[\w-]+) (?!-)", "\\1\N{NO-BREAK SPACE}", " ".join(command.split()))
    lines = textwrap.wrap(
        kept, width - 2, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return " \\\n".join(lines).replace("\N{NO-BREAK SPACE}", " ")


class HelpCommand(TyperCommand):
    """A command whose help names values by what they are, and keeps its example in one piece."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Arguments as RESULTS and [DATA]..., whatever version of typer writes them."""
        return [_argument(piece) for piece in super().collect_usage_pieces(ctx)]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """The text without the example, which has a section of its own."""
        paragraphs = (self.help or "").strip().split("\n\n")
        whole, self.help = self.help, "\n\n".join(p for p in paragraphs if not _is_example(p))
        try:
            super().format_help_text(ctx, formatter)
        finally:
            self.help = whole
        for paragraph in filter(_is_example, paragraphs):
            with formatter.section(_EXAMPLE.rstrip(":")):
                shown = example(paragraph.strip().removeprefix(_EXAMPLE), formatter.width - 2)
                formatter.write(textwrap.indent(shown, "  ") + "\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments and options without the names of Python types."""
        write = formatter.write_dl

        def cleaned(rows: Sequence[tuple[str, str]], **spacing: Any) -> None:
            write([(_without_type(name), _default(text)) for name, text in rows], **spacing)

        formatter.write_dl = cleaned
        try:
            super().format_options(ctx, formatter)
        finally:
            formatter.write_dl = write


class HelpGroup(TyperGroup):
    """All commands by topic, each with its whole first sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One section per topic."""
        known = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        named = [name for names in _GROUPS.values() for name in names]
        others = tuple(name for name in known if name not in named)
        for title, names in {**_GROUPS, "More": others}.items():
            rows = [
                (name, first_paragraph(command.help))
                for name in names
                if (command := known.get(name)) is not None and not command.hidden
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Paragraphs of the epilog, each wrapped by itself."""
        for paragraph in (self.epilog or "").split("\n\n"):
            formatter.write_paragraph()
            formatter.write_text(" ".join(paragraph.split()))


class App(typer.Typer):
    """An application whose commands are `HelpCommand`s."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """As `typer.Typer.command`."""
        return super().command(name, **{"cls": HelpCommand, **settings})


def _is_example(paragraph: str) -> bool:
    return paragraph.strip().startswith(_EXAMPLE)


def _argument(piece: str) -> str:
    """`{RESULTS}` as `RESULTS`, `[[NAME]...]...` as `[NAME]...`."""
    return re.sub(r"^\[(\[.*\]\.\.\.)\]\.\.\.$", r"\1", re.sub(r"^\{(.*)\}$", r"\1", piece))


def _without_type(name: str) -> str:
    """`DATA <list[str]>` as `DATA`."""
    return re.sub(r" <[\w\[\], ]+>$", "", name)


def _default(text: str) -> str:
    """`[default: (0.1,1)]` as `[default: 0.1,1]`."""
    return re.sub(r"\[default: \(([^()]*)\)", r"[default: \1", text)
