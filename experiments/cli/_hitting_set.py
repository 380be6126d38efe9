"""`wgm hitting-set`: private k-hitting sets compared on one data set."""

from __future__ import annotations

from typing import Annotated

import typer

from experiments.cli._options import DataOptions, OutputOptions, grouped
from experiments.cli._selection import SelectionOptions, run


@grouped
def hitting_set(
    data: DataOptions,
    *,
    options: SelectionOptions,
    accountant: Annotated[
        str,
        typer.Option(
            metavar="closed|exact|paper",
            help="Noise of user peeling: closed form, less by the exact game, or [K1].",
        ),
    ] = "closed",
    output: OutputOptions,
) -> None:
    """The k items of which as many users as possible hold one: users missed, with error bars.

    WGM and user peeling share the budget; user-peeling-public takes all items as public; greedy is
    not private. With --out also the plot, the numbers of every trial and a manifest.

    Example: wgm hitting-set ratings.csv -k 10,50 --eps 1 --delta 1e-6 --max-items-per-user 100
    """
    run("hitting-set", data, options, output, accountant=accountant)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("hitting-set")(hitting_set)
