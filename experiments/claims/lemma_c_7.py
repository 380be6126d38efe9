"""Lemma C.7: users that user peeling hits from a given domain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Literal

import numpy as np

from experiments.claims._claim import Cell, Claim, Settings
from experiments.claims._neighbours import data_of
from experiments.verdict import ExactEvidence
from theory import UserItems, lemma_c7, optimal_hits

# Users of each kind, times a multiple; lambda is one user.
_KINDS = {
    "apart": (((0,), 3), ((1,), 3), ((2,), 1), ((3,), 1)),
    "chain": (((0, 1), 2), ((1, 2), 2), ((2, 3), 2)),
    "decoy": (((0, 1), 3), ((0, 2), 3), ((1,), 2), ((2,), 2), ((3,), 1)),
}
_MULTIPLES = (1, 2, 3, 4, 6, 8, 12)


@cache
def _data(kind: str, multiple: int) -> UserItems:
    return data_of([held for held, count in _KINDS[kind] for _ in range(multiple * count)])


@cache
def hits_law(kind: str, multiple: int, k: int) -> tuple[np.ndarray, int]:
    """Exact law of the users hit by user peeling at lambda = 1, 0 to all, and the optimum."""
    from wgm_jax.selection.hitting import HittingState, UserPeeling, users_hit

    data = _data(kind, multiple)
    law = UserPeeling().law(HittingState(data, k, 1.0))
    hits = users_hit(data, np.asarray(list(law), np.int32))
    return np.bincount(hits, weights=list(law.values())), optimal_hits(data, k).hits


def _family(form: Literal["explicit", "sharp", "printed"]) -> Callable[[Settings], Iterable[Cell]]:
    def cells(settings: Settings) -> Iterator[Cell]:
        for kind in _KINDS:
            for k in (2, 3):
                for beta in sorted({0.2, 0.5, settings.beta}):
                    found = []
                    for multiple in _MULTIPLES:
                        law, optimum = hits_law(kind, multiple, k)
                        bound = lemma_c7(optimum, 4, k=k, scale=1.0, beta=beta, form=form).value
                        # The most of which is sure: P(Hits < value) <= beta.
                        value = np.flatnonzero(np.cumsum(law) > beta)[0]
                        found.append((value / optimum, float(bound) / optimum, optimum))
                    value, bound, optimum = min(found, key=lambda pair: pair[0] - pair[1])
                    cell = {"users": kind, "k": k, "beta": beta}
                    note = f"in shares of Opt = {optimum}, lambda = 1; the closest of all sizes"
                    yield cell, ExactEvidence(float(value), bound, "lower", note=note)

    return cells


_STATEMENT = (
    "With probability 1 - beta user peeling on a domain D hits at least (1 - 1/e) Opt(W, D, k) - "
    "2 k lambda ln(2 |D| k/beta) users."
)
CLAIMS = (
    Claim(
        name="lemma-c.7",
        title="Lemma C.7 hits of user peeling",
        kind="lower, quantile",
        statement=_STATEMENT,
        explicit="Hits >= g (Opt_D - k lambda ln(k |D|/beta)), g = 1 - (1 - 1/k)^k: exact "
        "quantile of the hits, on small data sets.",
        family=_family("explicit"),
    ),
    Claim(
        name="lemma-c.7-sharp",
        title="Lemma C.7 sharper",
        kind="lower, quantile",
        statement=_STATEMENT,
        explicit="The losses of early rounds count less: exact quantile of the hits.",
        family=_family("sharp"),
    ),
    Claim(
        name="lemma-c.7-printed",
        title="Lemma C.7 as printed",
        kind="lower, quantile",
        statement=_STATEMENT,
        explicit="As printed: exact quantile of the hits.",
        family=_family("printed"),
    ),
)
