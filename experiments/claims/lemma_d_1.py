"""Lemma D.1: rare items are more likely missed than not, whatever the mechanism."""

from __future__ import annotations

import math
from collections.abc import Iterator

from experiments.claims._claim import Cell, Claim, Settings
from experiments.verdict import ExactEvidence
from theory import optimal_selection_probability, selection_threshold


def _family(settings: Settings) -> Iterator[Cell]:
    for eps in sorted({0.0, 0.01, 0.1, 1.0, 10.0, *settings.eps}):
        for delta in sorted({1e-2, 1e-5, 1e-10, settings.delta}):
            most = float(selection_threshold(eps=eps, delta=delta))
            count = math.floor(most)
            if count < 1:
                continue
            chance = float(optimal_selection_probability([count], eps=eps, delta=delta)[0])
            cell = {"eps": eps, "delta": delta, "num_holders": count}
            # k* solves pi(k*) = 1/2 on the first branch: equality up to rounding is expected.
            yield cell, ExactEvidence(chance - 1e-12, 0.5, "upper", tag="[L1]")


CLAIMS = (
    Claim(
        name="lemma-d.1",
        title="Lemma D.1 [L1] rare items are missed",
        kind="upper, exact",
        statement="N(x) <= (1/eps) ln(1 + (e^eps - 1)/(2 delta)) implies P(x in S) <= 1/2.",
        explicit="pi(floor(k*)) <= 1/2, pi the largest probability any mechanism can have [L0].",
        family=_family,
    ),
)
