"""`wgm topk`: private top-k selections compared on one data set."""

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
def topk(
    data: DataOptions,
    *,
    k: Sizes,
    eps: Epsilons,
    delta: Delta,
    max_items_per_user: MaxItems,
    mechanism: Mechanisms = None,
    k_bar: Annotated[
        list[str] | None,
        typer.Option(
            metavar="B[,B...]",
            help="Domain sizes of limited-domain top-k: 5k for five times k, inf, or a number.",
            show_default="k,5k,10k,inf",
        ),
    ] = None,
    conversion: Annotated[
        str, typer.Option(metavar="paper|tight", help="Noise of peeling: Lemma B.1, or less.")
    ] = "paper",
    domain_share: DomainShare = "0.5",
    beta: Beta = 0.05,
    method: Method = "split",
    trials: NumTrials = 100,
    seed: Seed = 0,
    out_folder: OutFolder = None,
    output: OutputOptions,
) -> None:
    """The k most frequent items, by every method: mass missed and ℓ1 loss, with error bars.

    WGM and peeling share the budget; limited-domain top-k finds its own domain, and cuts users to
    Δ0 items only where its size is inf; the -public methods take all items as public. With --out
    also the plot, the numbers of every trial and a manifest.

    Example: wgm topk ratings.csv -k 10,50,200 --eps 1 --delta 1e-6 --max-items-per-user 100
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
        "top-k",
        data,
        settings,
        mechanism=mechanism,
        delta=delta,
        beta=beta,
        method=method,
        out_folder=out_folder,
        output=output,
        k_bar=k_bar,
        conversion=conversion,
    )


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("topk")(topk)
