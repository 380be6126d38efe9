"""`wgm hitting-set`: private k-hitting sets compared on one data set."""

from __future__ import annotations

from typing import Annotated

import typer

from experiments.cli._options import (
    Beta,
    DataOptions,
    Delta,
    Epsilons,
    MaxItems,
    Method,
    NumTrials,
    OutFolder,
    OutputOptions,
    Seed,
    grouped,
)
from experiments.cli._selection import DomainShare, Mechanisms, Sizes, asked, run


@grouped
def hitting_set(
    data: DataOptions,
    *,
    k: Sizes,
    eps: Epsilons,
    delta: Delta,
    max_items_per_user: MaxItems,
    mechanism: Mechanisms = None,
    accountant: Annotated[
        str,
        typer.Option(
            metavar="closed|exact",
            help="Noise of user peeling: closed form, or less by the exact game at each k.",
        ),
    ] = "closed",
    domain_share: DomainShare = "0.5",
    beta: Beta = 0.05,
    method: Method = "split",
    trials: NumTrials = 100,
    seed: Seed = 0,
    out_folder: OutFolder = None,
    output: OutputOptions,
) -> None:
    """The k items of which as many users as possible hold one: users missed, with error bars.

    WGM and user peeling share the budget; user-peeling-public takes all items as public; greedy is
    not private. With --out also the plot, the numbers of every trial and a manifest.

    Example: wgm hitting-set ratings.csv -k 10,50 --eps 1 --delta 1e-6 --max-items-per-user 100
    """
    settings = asked(
        k=k,
        eps=eps,
        delta=delta,
        max_items_per_user=max_items_per_user,
        beta=beta,
        domain_share=domain_share,
        method=method,
        trials=trials,
        seed=seed,
    )
    run(
        "hitting-set",
        data,
        settings,
        mechanism=mechanism,
        delta=delta,
        beta=beta,
        method=method,
        out_folder=out_folder,
        output=output,
        accountant=accountant,
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("hitting-set")(hitting_set)
