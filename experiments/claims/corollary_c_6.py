"""Corollary C.6: loss of peeling with the noise that its privacy needs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from experiments.claims._claim import Cell, Claim, Settings
from experiments.claims.lemma_4_2 import loss_quantile
from experiments.verdict import ExactEvidence, QuantileEvidence
from theory import peeling_loss_bound, peeling_scale

_TRIALS = 400
_SIZES = (10, 100)
_LEADS = (1.0, 2.0, 4.0, 8.0)


def _small(settings: Settings) -> Iterator[Cell]:
    """Six items, k = 3: the exact law."""
    for eps in sorted({0.1, 1.0, *settings.eps} - {0.0}):
        scale = float(peeling_scale(eps=eps, delta=settings.delta, k=3))
        bound = peeling_loss_bound(6, k=3, scale=scale, beta=settings.beta)
        value = scale * max(loss_quantile(6, 3, lead, settings.beta) for lead in _LEADS)
        cell = {"items": 6, "k": 3, "eps": eps, "delta": settings.delta}
        note = f"users, lambda {scale:.4g}; exact quantile of the loss"
        yield (
            cell,
            ExactEvidence(
                value, float(bound.value), "upper", unit_range=False, tag="[K2]", note=note
            ),
        )


def _zipf(settings: Settings) -> Iterator[Cell]:
    from wgm_jax.selection.top_k import Peeling
    from wgm_jax.selection.trials import run_selection
    from wgm_jax.synthetic import SetSizes, zipf_draws

    sizes = SetSizes("geometric", mean=3.0, cap=30)
    for s in (1.2, 1.5, 2.0):
        data = zipf_draws(s=s, num_pairs=100_000, set_sizes=sizes, seed=settings.seed)
        levels = sorted({0.1, 1.0, *settings.eps} - {0.0})
        trials = run_selection(
            data,
            Peeling(),
            eps=levels,
            delta=settings.delta,
            k=_SIZES,
            max_items_per_user=1,
            num_trials=min(settings.num_trials, _TRIALS),
            seed=settings.seed,
        )
        for place, k in enumerate(_SIZES):
            whole = int(np.sort(data.frequencies)[::-1][:k].sum())
            for index, eps in enumerate(levels):
                scale = float(peeling_scale(eps=eps, delta=settings.delta, k=k))
                made = peeling_loss_bound(data.num_items, k=k, scale=scale, beta=settings.beta)
                lost = trials.top_k_missing_mass[:, index, place] * data.num_pairs / whole
                cell = {"s": s, "num_pairs": data.num_pairs, "k": k, "eps": eps}
                yield (
                    {**cell, "delta": settings.delta},
                    QuantileEvidence(
                        lost, float(made.value) / whole, settings.beta, tag="[K2]",
                        note="as shares of the mass of the k most frequent items",
                    ),
                )  # fmt: skip


def _family(settings: Settings) -> Iterator[Cell]:
    yield from _small(settings)
    if settings.num_trials:
        yield from _zipf(settings)


CLAIMS = (
    Claim(
        name="corollary-c.6",
        title="Corollary C.6 [K2] at private noise",
        kind="upper, quantile",
        statement="With lambda of Lemma B.1, peeling loses at most O(k lambda ln(|D|/beta)).",
        explicit="Loss <= k lambda ln(k |D|/beta) with lambda of [K1]: the exact law on six items, "
        "trials on Zipfian data with all items public.",
        family=_family,
    ),
)
