"""Lemma 4.2: what peeling loses against the k most frequent items of its domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

import numpy as np

from experiments.claims._claim import Cell, Claim, Settings
from experiments.verdict import ExactEvidence
from theory import peeling_loss_bound
from theory.top_k_bounds import LossForm

_SHAPES = ((4, 1), (4, 2), (6, 3))  # items, k
# The k most frequent items lead by so many lambda: the more, the dearer and rarer is a mistake.
_LEADS = tuple(np.linspace(0.2, 8.0, 40).tolist())


@cache
def wrong_law(items: int, k: int, lead: float) -> np.ndarray:
    """Exact law of the released items that are not of the top k, which lead by `lead` lambda."""
    from wgm_jax.selection.one_shot import Ranking
    from wgm_jax.selection.top_k import Peeling, PeelingState

    counts = np.where(np.arange(items) < k, lead, 0.0)
    law = Peeling().law(PeelingState(Ranking.of(counts, 1.0), k), None)
    wrong = [sum(item >= k for item in sequence) for sequence in law]
    return np.bincount(wrong, weights=list(law.values()))


def loss_quantile(items: int, k: int, lead: float, beta: float) -> float:
    """Exact (1 - beta)-quantile of the loss at lambda = 1; the other items are tied."""
    least = np.flatnonzero(np.cumsum(wrong_law(items, k, lead)) >= 1 - beta)[0]
    return float(least * lead)


def _family(form: LossForm) -> Callable[[Settings], Iterable[Cell]]:
    def cells(settings: Settings) -> Iterator[Cell]:
        for items, k in _SHAPES:
            for beta in sorted({0.01, 0.2, 0.5, settings.beta}):
                made = peeling_loss_bound(items, k=k, scale=1.0, beta=beta, form=form)
                value, lead = max((loss_quantile(items, k, lead, beta), lead) for lead in _LEADS)
                cell = {"items": items, "k": k, "beta": beta}
                note = f"in lambda; worst where the top k lead by {lead:g}"
                yield (
                    cell,
                    ExactEvidence(
                        value, float(made.value), "upper", unit_range=False, tag="[K2]", note=note
                    ),
                )

    return cells


_STATEMENT = (
    "With probability 1 - beta, peeling on a domain D loses at most O(k lambda ln(|D|/beta)) of "
    "the counts of its k most frequent items."
)
CLAIMS = (
    Claim(
        name="lemma-4.2",
        title="Lemma 4.2 [K2] loss of peeling",
        kind="upper, quantile",
        statement=_STATEMENT,
        explicit="The exact quantile of the loss is at most k lambda ln(k |D|/beta), over a range "
        "of counts.",
        family=_family("explicit"),
    ),
    Claim(
        name="lemma-4.2-sharp",
        title="Lemma 4.2 [K2] sharper",
        kind="upper, quantile",
        statement=_STATEMENT,
        explicit="Loss <= lambda (ln(D!/(D-k)!) + Gamma(k, 1) quantile at 1 - beta); 0 for D <= k.",
        family=_family("sharp"),
    ),
    Claim(
        name="lemma-4.2-printed",
        title="Lemma 4.2 as its proof prints it",
        kind="upper, quantile",
        statement=_STATEMENT,
        explicit="Loss <= 2 k lambda ln(2 |D|/beta).",
        family=_family("printed"),
    ),
)
