"""Lemma A.2: the largest of n Gumbel variables."""

from __future__ import annotations

import math
from collections.abc import Iterator

from experiments.claims._claim import Cell, Claim, Settings
from experiments.verdict import ExactEvidence
from theory import gumbel_maximum_bound


def _family(settings: Settings) -> Iterator[Cell]:
    for count in (1, 10, 10**3, 10**6, 10**12):
        for beta in sorted({1e-6, 0.01, 0.5, settings.beta}):
            bound = float(gumbel_maximum_bound(count, scale=1.0, beta=beta))
            # P(G > b) = 1 - exp(-e^-b) and P(G < -b) = exp(-e^b), without cancellation.
            outside = -math.expm1(-math.exp(-bound)) + math.exp(-math.exp(bound))
            exceed = -math.expm1(count * math.log1p(-outside))
            yield {"n": count, "beta": beta}, ExactEvidence(exceed, beta, "upper", error=1e-12)


CLAIMS = (
    Claim(
        name="lemma-a.2",
        title="Lemma A.2 largest of n Gumbels",
        kind="upper, exact",
        statement="With probability 1 - beta, max |G_i| <= lambda ln(2 n/beta), G_i ~ "
        "Gumbel(lambda).",
        explicit="1 - P(|G| <= b)^n <= beta for b = ln(2 n/beta), computed.",
        family=_family,
    ),
)
