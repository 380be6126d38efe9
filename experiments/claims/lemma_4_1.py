"""Lemma 4.1: peeling is private, by exact laws of all its outputs on neighbours."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from experiments.claims._claim import Cell, Claim, Settings
from experiments.claims._neighbours import delta_between, subsets
from experiments.verdict import ExactEvidence
from theory import peeling_scale

# (eps, delta): where delta is large, a few rounds already use more than pure composition.
_LEVELS = ((0.1, 0.2), (0.5, 0.1), (1.0, 0.05))
_SHAPES = ((4, 2), (5, 3))  # items, k
# Counts in units of lambda: ties, a staircase, one item on top, one at the bottom.
_PATTERNS = ((0, 0, 0, 0, 0), (4, 3, 2, 1, 0), (4, 0, 0, 0, 0), (4, 4, 4, 4, 0))


def _family(settings: Settings) -> Iterator[Cell]:
    from wgm_jax.selection.one_shot import Ranking
    from wgm_jax.selection.top_k import Peeling, PeelingState

    for eps, delta in _LEVELS:
        for items, k in _SHAPES:
            scale = float(peeling_scale(eps=eps, delta=delta, k=k))

            def law(counts: np.ndarray, scale: float = scale, k: int = k) -> dict:
                return Peeling().law(PeelingState(Ranking.of(counts, scale), k), None)

            worst = 0.0
            for pattern in _PATTERNS:
                counts = np.rint(scale * np.asarray(pattern[:items])).astype(np.int64) + 1
                base = law(counts)
                # By symmetry only the number of tied items that the user holds matters.
                seen = set()
                for more in subsets(items):
                    key = tuple(sorted(counts[list(more)].tolist()))
                    if key in seen:
                        continue
                    seen.add(key)
                    added = counts + np.isin(np.arange(items), more)
                    worst = max(worst, delta_between(base, law(added), eps)[1])
            cell = {"items": items, "k": k, "eps": eps, "delta": delta}
            note = f"lambda {scale:.4g}; {len(_PATTERNS)} vectors of counts and any user more"
            yield cell, ExactEvidence(worst, delta, "upper", tag="[K1]", note=note)


CLAIMS = (
    Claim(
        name="lemma-4.1",
        title="Lemma 4.1 [K1] peeling is private",
        kind="upper, exact",
        statement="If lambda = Õ(sqrt(k)/eps), Algorithm 3 is (eps, delta)-DP.",
        explicit="With lambda of Lemma B.1: exact delta(eps) of all output sequences, small data "
        "sets against themselves with any one user more.",
        family=_family,
    ),
)
