"""`wgm topk`: private top-k selections compared on one data set."""

from __future__ import annotations

from typing import Annotated

import typer

from experiments.cli._options import DataOptions, OutputOptions, grouped
from experiments.cli._selection import SelectionOptions, run


@grouped
def topk(
    data: DataOptions,
    *,
    options: SelectionOptions,
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
    output: OutputOptions,
) -> None:
    """The k most frequent items, by every method: mass missed and ℓ1 loss, with error bars.

    WGM and peeling share the budget; limited-domain top-k finds its own domain, and cuts users to
    Δ0 items only where its size is inf; the -public methods take all items as public. With --out
    also the plot, the numbers of every trial and a manifest.

    Example: wgm topk ratings.csv -k 10,50,200 --eps 1 --delta 1e-6 --max-items-per-user 100
    """
    run("top-k", data, options, output, k_bar=k_bar, conversion=conversion)


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("topk")(topk)
