"""`wgm claims` and `wgm mechanisms`: what there is to check, and what can be run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from experiments.cli._options import OutputOptions, grouped
from experiments.cli._output import hint, name_text, out, print_json, say, table

if TYPE_CHECKING:
    from experiments.claims import Claim

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME", help="Show these in full: a name, its beginning, or a Python file."
    ),
]


@grouped
def claims(names: Names = None, *, output: OutputOptions) -> None:
    """The paper's statements that can be checked, and those of installed packages.

    Example: wgm claims theorem-3.3
    """
    from experiments.claims import select

    chosen = select(names or [])
    if output.json:
        print_json({"claims": [_entries(claim) for claim in chosen]})
        return
    if names:
        for claim in chosen:
            _print_claim(claim)
        return
    made = table("claim", "statement", "kind", "expected", left=4)
    for claim in chosen:
        made.add_row(
            name_text(claim.name), name_text(claim.title, 80), name_text(claim.kind), claim.expected
        )
    out().print(made)
    hint("Next: wgm claims NAME for the statement · wgm verify --claim NAME", quiet=output.quiet)


def _entries(claim: Claim) -> dict[str, Any]:
    names = ("name", "title", "kind", "statement", "explicit", "expected", "twin")
    return {name: getattr(claim, name) for name in names}


def _print_claim(claim: Claim) -> None:
    say(f"{claim.title} ({claim.name})", style="bold")
    said = {
        "kind": claim.kind,
        "statement": claim.statement,
        "checked": claim.explicit,
        "expected": claim.expected,
    }
    if claim.twin is not None:
        said["corrected"] = claim.twin
    made = table("", "", left=2)
    made.show_header = False
    for name, text in said.items():
        made.add_row(name, name_text(text, 2000))
    out().print(made)
    out().print()


@grouped
def mechanisms(*, output: OutputOptions) -> None:
    """The mechanisms that can be simulated, built in and installed.

    Example: wgm mechanisms --json
    """
    from dataclasses import asdict

    from wgm_jax import mechanisms

    known = mechanisms()
    if output.json:
        told = [asdict(info) for info in known]
        print_json({"mechanisms": [{k: v for k, v in t.items() if k != "target"} for t in told]})
        return
    made = table("mechanism", "task", "private", "what it does", left=4)
    for info in known:
        private = "yes" if info.private else "no"
        what = name_text(f"{info.summary} {info.privacy}.", 400)
        made.add_row(name_text(info.name), info.task, private, what)
    out().print(made)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("claims")(claims)
    app.command("mechanisms")(mechanisms)
