"""Lemma C.3: frequent items keep at least half of their expected copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from experiments.claims._claim import Cell, Claim
from experiments.verdict import QuantileEvidence
from theory import lemma_c3_frequency

if TYPE_CHECKING:
    from experiments.cells import Run


def _observe(run: Run) -> Iterator[Cell]:
    if not run.profile.clipped:
        return
    level = float(lemma_c3_frequency(run.profile, run.beta).value)
    # 1 where some item at or above the level kept too few copies, never more than 0 otherwise. With
    # no item that frequent the statement is empty, which a bound of 1 marks as vacuous.
    bound = 0.5 if run.profile.top_count >= level else 1.0
    samples = run.events.few_copies.astype("float64")
    yield (
        run.cell,
        QuantileEvidence(samples, bound, run.beta, tag="[C.3]", note=f"N(x) >= {level:.4g}"),
    )


CLAIMS = (
    Claim(
        name="lemma-c.3",
        title="Lemma C.3 frequent items stay frequent",
        kind="upper, quantile",
        statement="With probability 1 - beta, N(x) >= tau_2 implies p* N(x)/2 kept copies.",
        explicit="tau_2 = (8/p*) ln(M/beta); observed: 1 if some such item kept fewer.",
        observe=_observe,
    ),
)
