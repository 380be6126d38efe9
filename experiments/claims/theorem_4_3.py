"""Theorem 4.3: top-k missing mass of WGM followed by peeling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

from experiments.claims._claim import Cell, Claim
from experiments.selection.grid import known_points
from experiments.verdict import Evidence, ExactEvidence, QuantileEvidence
from theory import top_k_bound

if TYPE_CHECKING:
    from experiments.cells import Run

# Where both forms of tau agree, so do proof and claim, up to rounding.
_ROUNDING = 1 + 1e-12
_PROOF = "exact marginals of WGM with Lemma 4.2; no trials"


def _observe(form: Literal["explicit", "sharp"]) -> Callable[[Run], Iterator[Cell]]:
    def cells(run: Run) -> Iterator[Cell]:
        for selection, point in known_points(run, with_users=False):
            bound = top_k_bound(
                selection.profile,
                selection.calibration[point.index],
                k=point.k,
                scale=selection.peeling_scale(point),
                beta=run.beta,
                form=form,
            )
            # In shares of what can be lost: where the bound is 1, it says nothing.
            whole = selection.top_pairs(point.k)
            value = float(bound.value) * selection.profile.num_pairs / whole
            evidence: Evidence
            if selection.simulated and value < 1:
                lost = selection.lost(point) / whole
                evidence = QuantileEvidence(lost, value, run.beta, tag=bound.tag)
            else:
                proved = selection.certified_loss(point) / whole
                evidence = ExactEvidence(
                    proved, value * _ROUNDING, "upper", tag=bound.tag, note=_PROOF
                )
            yield point.cell, evidence

    return cells


_STATEMENT = (
    "MM^k(W, S) <= Õ((k/N) (max|W_i|/(eps sqrt(q*)) + sqrt(k) log(M)/eps)) with probability "
    "1 - beta, half of the budget for WGM and half for peeling."
)
_SHARE = "Both sides as shares of the mass of the k most frequent items."
CLAIMS = (
    Claim(
        name="theorem-4.3",
        title="Theorem 4.3 [K3] top-k missing mass",
        kind="upper, quantile",
        statement=_STATEMENT,
        explicit=f"MM^k <= (k/N) (tau + lambda ln(2 k M/beta)), tau of [U1] at beta/2. {_SHARE}",
        observe=_observe("explicit"),
    ),
    Claim(
        name="theorem-4.3-sharp",
        title="Theorem 4.3 [K3] sharper",
        kind="upper, quantile",
        statement=_STATEMENT,
        explicit="The same with sum_{i <= k} min(N_(i), tau) for k tau and the sharper Lemma 4.2. "
        + _SHARE,
        observe=_observe("sharp"),
    ),
)
