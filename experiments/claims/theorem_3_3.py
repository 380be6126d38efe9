"""Theorem 3.3: missing mass on Zipfian data, from its frequency bound to the form printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from experiments.claims._claim import Cell, Claim, metric_below

if TYPE_CHECKING:
    from experiments.cells import Run

_STATEMENT = (
    "MM(W, S) = Õ(C^(1/s)/(s-1) (max|W_i| (T + sigma)/(N sqrt(q*)))^((s-1)/s)) with probability "
    "at least 1 - beta, for (C, s)-Zipfian W."
)


def mass_below(name: str) -> Callable[[Run], Iterator[Cell]]:
    """Cells "missing mass at most the bound of this name", one per eps."""
    return lambda run: metric_below(run, "missing_mass", run.bounds[name])


def _frequency_below(run: Run) -> Iterator[Cell]:
    # The most frequent missed item has mass MM_inf = N(x)/N.
    tau = run.bounds["tau_star"]
    share = replace(tau, value=np.asarray(tau.value) / run.profile.num_pairs)
    yield from metric_below(run, "max_missing_mass", share)


CLAIMS = (
    Claim(
        name="theorem-3.3-zipf",
        title="Theorem 3.3 [U3] Zipf bound",
        kind="upper, quantile",
        statement=_STATEMENT,
        explicit="MM <= s/(s-1) C^(1/s) (tau/N)^((s-1)/s), best certificate (C, s) of the data.",
        observe=mass_below("upper_zipf"),
    ),
    Claim(
        name="theorem-3.3-instance",
        title="Theorem 3.3 [U2] instance bound",
        kind="upper, quantile",
        statement=_STATEMENT,
        explicit="MM <= share of pairs whose item has N(x) <= tau, tau of [U1].",
        observe=mass_below("upper_instance"),
    ),
    Claim(
        name="theorem-3.3-instance-star",
        title="Theorem 3.3 [U2*] with tau of [U1*]",
        kind="upper, quantile",
        statement=_STATEMENT,
        explicit="MM <= share of pairs whose item has N(x) <= tau*, tau* of [U1*].",
        observe=mass_below("upper_instance_star"),
    ),
    Claim(
        name="theorem-3.3-frequency",
        title="Theorem 3.3 [U1*] missed frequency",
        kind="upper, quantile",
        statement="With probability at least 1 - beta every missed item is rare.",
        explicit="Every missed x has N(x) <= tau*, tau* of [U1*].",
        observe=_frequency_below,
    ),
    Claim(
        name="theorem-3.3-printed",
        title="Theorem 3.3 [U3p] as printed",
        kind="upper, quantile",
        statement=_STATEMENT,
        explicit="The constants of the paper's own proof, where they are valid (s not large).",
        observe=mass_below("upper_printed"),
    ),
)
