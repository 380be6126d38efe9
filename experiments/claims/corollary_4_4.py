"""Corollary 4.4: what no private top-k selection can avoid missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from experiments.claims._claim import Cell, Claim, Settings
from experiments.claims._hard_data import shares
from experiments.selection.grid import known_points
from experiments.verdict import ExactEvidence
from theory import top_k_lower_bound

if TYPE_CHECKING:
    from experiments.cells import Run

# Relative rounding of a float64 sum over items, generously.
_ROUNDING = 1e-11


def _hard(settings: Settings) -> Iterator[Cell]:
    for cell, _, missed in shares(settings):
        yield cell, ExactEvidence(missed, 0.5, "lower", error=_ROUNDING, tag="[L4]")


def _observe(run: Run) -> Iterator[Cell]:
    for selection, point in known_points(run, with_users=False):
        delta = selection.budgets[point.index].delta
        bound = top_k_lower_bound(selection.profile, k=point.k, eps=point.eps, delta=delta)
        whole = selection.top_pairs(point.k)
        # The best k items of the domain on average: what any selection from it loses at least.
        least = 1 - selection.released_at_most(point) / whole
        value = float(bound.value) * selection.profile.num_pairs / whole
        note = "mean that no selection from WGM's domain can be below, exact"
        yield (
            point.cell,
            ExactEvidence(least, value, "lower", error=_ROUNDING, tag=bound.tag, note=note),
        )


CLAIMS = (
    Claim(
        name="corollary-4.4-instance",
        title="Corollary 4.4 [L4] any data",
        kind="lower, mean",
        statement="Every sound private algorithm misses at least this much of the top k.",
        explicit="E[MM^k] >= (sum_{i<=k} N_(i) - max sum N_(i) y_i)/N over 0 <= y_i <= pi(N_(i)), "
        "sum y_i <= k, as a share of the mass of the k most frequent items.",
        observe=_observe,
    ),
    Claim(
        name="corollary-4.4",
        title="Corollary 4.4 [L4] hard data",
        kind="lower, mean",
        statement="On some data every sound private algorithm has E[MM^k] = Omega(k/(eps N)).",
        explicit="On k items of frequency floor(k*), one per user, E[MM^k] >= 1/2; exact for WGM "
        "with peeling and for the optimal mechanism, which no private one surpasses.",
        family=_hard,
    ),
)
