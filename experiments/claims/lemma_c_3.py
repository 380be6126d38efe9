"""Lemma C.3: frequent items keep at least half of their expected copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from experiments.claims._claim import Cell, Claim
from experiments.verdict import ExactEvidence, QuantileEvidence
from theory import few_copies_probability, lemma_c3_frequency

if TYPE_CHECKING:
    from experiments.cells import Run


def _observe(run: Run) -> Iterator[Cell]:
    if not run.profile.clipped:
        return
    level = float(lemma_c3_frequency(run.profile, run.beta).value)
    note = f"N(x) >= {level:.4g}"
    # With no item that frequent the statement is empty, which a bound of 1 marks as vacuous.
    empty = run.profile.top_count < level
    if run.profile.classes is not None:
        chance = few_copies_probability(run.profile, level)
        exact = ExactEvidence(
            chance, 1.0 if empty else run.beta, "upper", has_slack=False, tag="[C.3]",
            note=f"probability that one keeps fewer, union over items; {note}",
        )  # fmt: skip
        if exact.vacuous or exact.decision == "proved":
            yield run.cell, exact
            return
    # 1 where some item at or above the level kept too few copies, never more than 0 otherwise.
    samples = run.events.few_copies.astype("float64")
    bound = 1.0 if empty else 0.5
    yield run.cell, QuantileEvidence(samples, bound, run.beta, tag="[C.3]", note=note)


CLAIMS = (
    Claim(
        name="lemma-c.3",
        title="Lemma C.3 frequent items stay frequent",
        kind="upper, quantile",
        statement="With probability 1 - beta, N(x) >= tau_2 implies p* N(x)/2 kept copies.",
        explicit="tau_2 = (8/p*) ln(M/beta): P(some such item keeps fewer) <= beta, from "
        "Chernoff bounds of the items, or by trials.",
        observe=_observe,
    ),
)
