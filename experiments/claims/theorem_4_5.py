"""Theorem 4.5: users hit by WGM followed by user peeling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from experiments.claims._claim import Cell, Claim
from experiments.selection.grid import known_points
from experiments.verdict import Evidence, ExactEvidence, QuantileEvidence
from theory import hits_bound

if TYPE_CHECKING:
    from experiments.cells import Run

# Where both forms of tau agree, so do proof and claim, up to rounding.
_ROUNDING = 1 + 1e-12
_PROOF = "exact marginals of WGM with Lemma C.7, at Opt = greedy; no trials"


def _observe(form: Literal["explicit", "sharp"]) -> Callable[[Run], Iterator[Cell]]:
    def cells(run: Run) -> Iterator[Cell]:
        for selection, point in known_points(run, with_users=True):
            low, high = (float(side[point.place]) for side in selection.optimum)
            # Trials: a larger Opt makes the claim stronger. A proof moves with Opt on both sides.
            bound = hits_bound(
                selection.profile,
                selection.calibration[point.index],
                optimum=high if selection.simulated else low,
                k=point.k,
                scale=selection.user_peeling_scale(point),
                beta=run.beta,
                form=form,
            )
            value = float(bound.value) / high
            evidence: Evidence
            if selection.simulated and value > 0:
                hits = selection.hits(point) / high
                evidence = QuantileEvidence(hits, value, run.beta, "lower", tag=bound.tag)
            else:
                proved = selection.certified_hits(point) / high
                evidence = ExactEvidence(
                    proved, value / _ROUNDING, "lower", tag=bound.tag, note=_PROOF
                )
            yield point.cell, evidence

    return cells


_STATEMENT = (
    "Hits(W, S) >= (1 - 1/e) Opt(W, k) - Õ(k max|W_i|/(eps sqrt(q*)) + k^(3/2) log(M k)/eps) with "
    "probability 1 - beta, half of the budget for WGM and half for user peeling."
)
_SHARE = "Both sides as shares of the best upper bound on Opt, which the trials are held against."
CLAIMS = (
    Claim(
        name="theorem-4.5",
        title="Theorem 4.5 [H1] users hit",
        kind="lower, quantile",
        statement=_STATEMENT,
        explicit="Hits >= g (Opt - k tau - k lambda ln(2 k M/beta)), g = 1 - (1 - 1/k)^k, lambda "
        f"of [K1h]: k in place of k^(3/2). {_SHARE}",
        observe=_observe("explicit"),
    ),
    Claim(
        name="theorem-4.5-sharp",
        title="Theorem 4.5 [H1] sharper",
        kind="lower, quantile",
        statement=_STATEMENT,
        explicit="The same with sum_{i <= k} min(N_(i), tau) for k tau and the sharper Lemma C.7. "
        + _SHARE,
        observe=_observe("sharp"),
    ),
)
