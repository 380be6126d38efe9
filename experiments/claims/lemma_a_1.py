"""Lemma A.1: the largest of n Gaussians."""

from __future__ import annotations

import math
from collections.abc import Iterator

from scipy.special import log_ndtr

from experiments.claims._claim import Cell, Claim, Settings
from experiments.verdict import ExactEvidence
from theory import gaussian_maximum_bound


def _family(settings: Settings) -> Iterator[Cell]:
    for count in (1, 10, 10**3, 10**6, 10**12):
        for beta in sorted({1e-6, 0.01, 0.5, settings.beta}):
            bound = float(gaussian_maximum_bound(count, sigma=1.0, beta=beta))
            # P(max |Z_i| > b) = 1 - (1 - 2 Phi(-b))^n, by the small tail.
            exceed = -math.expm1(count * math.log1p(-2 * math.exp(log_ndtr(-bound))))
            yield {"n": count, "beta": beta}, ExactEvidence(exceed, beta, "upper", error=1e-12)


CLAIMS = (
    Claim(
        name="lemma-a.1",
        title="Lemma A.1 largest of n Gaussians",
        kind="upper, exact",
        statement="With probability 1 - beta, max |Z_i| <= sigma sqrt(2 ln(2 n/beta)).",
        explicit="1 - (1 - 2 Phi(-b))^n <= beta for b = sqrt(2 ln(2 n/beta)), computed.",
        family=_family,
    ),
)
