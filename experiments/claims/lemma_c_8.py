"""Lemma C.8: what a domain of all frequent items can still hit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from experiments.claims._claim import Cell, Claim, Settings
from experiments.verdict import ExactEvidence
from theory import UserItems, lemma_c8, optimal_hits

_POINTS = ((5, (5.0, 10.0)), (20, (2.0, 5.0)))  # k, tau


def within(data: UserItems, tau: float) -> UserItems:
    """The data with the items of N(x) > tau only; users left without any are dropped."""
    kept = data.frequencies[data.items] > tau
    users = np.repeat(np.arange(data.num_users), data.set_sizes)
    return UserItems.from_codes(users[kept], data.items[kept])


def _family(settings: Settings) -> Iterator[Cell]:
    from wgm_jax.synthetic import SetSizes, zipf_draws

    sizes = SetSizes("geometric", mean=2.0, cap=10)
    for s in (1.2, 2.0):
        data = zipf_draws(s=s, num_pairs=1000, set_sizes=sizes, seed=settings.seed)
        for k, levels in _POINTS:
            optimum = optimal_hits(data, k)
            for tau in levels:
                # The worst domain that the lemma allows; Opt from below, the claim from above.
                found = optimal_hits(within(data, tau), k)
                bound = float(lemma_c8(optimum.upper, k=k, tau=tau).value)
                cell = {"s": s, "num_pairs": data.num_pairs, "k": k, "tau": tau}
                note = f"Opt {optimum.hits} users of {data.num_users}, Opt in the domain"
                if not (optimum.exact and found.exact):
                    note += " (not solved to the end)"
                yield (
                    cell,
                    ExactEvidence(
                        found.hits / data.num_users, bound / data.num_users, "lower",
                        tag="[C.8]", note=note,
                    ),
                )  # fmt: skip


CLAIMS = (
    Claim(
        name="lemma-c.8",
        title="Lemma C.8 optimum in the domain",
        kind="lower, sure",
        statement="If D holds all items with N(x) >= tau, Opt(W, D, k) >= Opt(W, k) - k tau.",
        explicit="Both optima by integer programming, D the items with N(x) > tau: the worst case.",
        family=_family,
    ),
)
