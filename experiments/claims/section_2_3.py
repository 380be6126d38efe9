"""Section 2.3: on singletons nothing can be released."""

from __future__ import annotations

from collections.abc import Iterator

from scipy.special import ndtr

from experiments.claims._claim import Cell, Claim, Settings
from experiments.verdict import ExactEvidence
from theory import calibrate


def _family(settings: Settings) -> Iterator[Cell]:
    for method in ("split", "full"):
        for eps in sorted({0.01, 0.1, 1.0, 10.0, 1e3, *settings.eps}):
            made = calibrate(eps=eps, delta=settings.delta, max_items_per_user=1, method=method)
            # 1 - E[MM], the release probability of one item of weight 1, by the small tail.
            released = float(ndtr((1 - made.threshold) / made.sigma))
            cell = {"eps": eps, "delta": settings.delta, "method": method}
            note = "1 - E[MM] against delta"
            yield cell, ExactEvidence(released, settings.delta, "upper", tag="[L2]", note=note)


CLAIMS = (
    Claim(
        name="section-2.3",
        title="Section 2.3 singletons",
        kind="lower, mean",
        statement="If every user has one unique item, E[MM] >= 1 - delta.",
        explicit="P(released) = Phi((1 - T)/sigma) <= delta, exact.",
        family=_family,
    ),
)
