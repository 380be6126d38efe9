"""Corollary 4.6 for any data: no private algorithm hits more users on average."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from experiments.claims._claim import Cell, Claim
from experiments.selection.grid import known_points
from experiments.verdict import Evidence, ExactEvidence, MeanEvidence

if TYPE_CHECKING:
    from experiments.cells import Run

_ROUNDING = 1e-11


def _observe(run: Run) -> Iterator[Cell]:
    for selection, point in known_points(run, with_users=True):
        bound = selection.most_hits(point)
        # Nobody hits more than Opt: as a share of it, a bound of 1 says nothing.
        whole = float(bound.details["optimum"])
        value = float(bound.value) / whole
        most = selection.hits_at_most(point) / whole
        note = "users with an item in WGM's domain, exact; no selection from it hits more"
        evidence: Evidence = ExactEvidence(
            most, value, "upper", error=_ROUNDING * most, tag=bound.tag, note=note
        )
        if evidence.decision != "proved" and not evidence.vacuous:
            if not selection.simulated:
                continue  # more than the domain's marginals would have to be known
            evidence = MeanEvidence(selection.hits(point) / whole, value, "upper", tag=bound.tag)
        yield point.cell, evidence


CLAIMS = (
    Claim(
        name="corollary-4.6-instance",
        title="Corollary 4.6 [L5] any data",
        kind="upper, mean",
        statement="Every sound private algorithm hits at most this many users on average.",
        explicit="E[Hits] <= min(sum_i min(1, pi(deg_i), sum_{x in W_i} pi(N(x))), max sum N(x) y "
        "of [L4], Opt), as a share of the best upper bound on Opt.",
        observe=_observe,
    ),
)
