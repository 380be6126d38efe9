"""Limited-domain top-k: an unknown domain cut to the largest counts, with a threshold below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Int32, UInt32

from theory import UserItems
from theory._check import check_count, invalid
from theory.peeling import limited_domain_offset, local_eps
from wgm_jax.selection.laws import gumbel_order
from wgm_jax.selection.noise import GUMBEL, gumbel, uniform
from wgm_jax.selection.one_shot import Largest, Ranking, largest, one_shot
from wgm_jax.selection.selector import Domain, Law
from wgm_jax.selection.subsample import SubsampledCounts
from wgm_jax.selection.top_k import mixture

# Item whose noise the threshold gets.
_STOP = np.array([-1])
# Counts of one block of trials.
_BLOCK = 2**20


@dataclass(frozen=True)
class LimitedDomainState:
    """What a trial needs.

    Attributes:
        counts: Users of every item.
        eps_round: eps_loc, 1 over the scale of the noise.
        k: Most items released.
        k_bar: Items that can be released, those of the largest counts; infinite for all.
        offset: Threshold above the largest count outside.
        clipped: Draws counts of users cut to Delta0 items; None if all count in full.
    """

    counts: np.ndarray
    eps_round: float
    k: int
    k_bar: float | int
    offset: float
    clipped: SubsampledCounts | None

    def domain(self, counts: np.ndarray) -> tuple[Ranking, float]:
        """Items that these counts put into the domain, and the score of the threshold."""
        ranking = Ranking.of(counts, 1.0)
        size = int(min(self.k_bar, np.count_nonzero(counts)))
        outside = ranking.scores[size] if size < ranking.items.size else 0.0
        inside = Ranking(ranking.items[:size], ranking.scores[:size] * self.eps_round)
        return inside, float((outside + self.offset) * self.eps_round)


@dataclass(frozen=True)
class LimitedDomain:
    """Noisy counts in descending order, until the noisy threshold or k items.

    Gumbel noise of scale 1/eps_loc goes on the k_bar largest counts and on the threshold, the
    largest count outside plus an offset. It finds its domain itself and takes the whole budget.
    Equal counts are ordered by item.

    Attributes:
        multiple: k_bar as a multiple of k, at least 1; not used if `k_bar` is given.
        k_bar: Size of the domain, at least k; more than there are items and `numpy.inf` are fine.
        clip: Cut every user to Delta0 items first; by default only where k_bar is infinite, as in
            the paper. Without it Delta0 is infinite.

    Source:
        Durfee and Rogers (2019); parameters as in the paper's experiments.
    """

    multiple: float | int = 1
    k_bar: float | int | None = None
    clip: bool | None = None

    def __post_init__(self) -> None:
        if self.k_bar is not None and self.multiple != 1:
            invalid("multiple", self.multiple, "must not be given together with k_bar")
        if not self.multiple >= 1:
            invalid("multiple", self.multiple, "must be at least 1: k_bar >= k")
        if self._domain_size(1) == np.inf and self.clip is False:
            invalid("clip", self.clip, "must not be False where k_bar is infinite")

    def prepare(
        self, data: UserItems, *, eps: Any, delta: Any, k: Any, max_items_per_user: Any
    ) -> LimitedDomainState:
        """Noise and threshold; Delta0 matters only if users are clipped.

        Raises:
            InvalidInput: k_bar below k or not a whole number, or another argument out of range.
        """
        k = check_count("k", k)
        k_bar = self._domain_size(k)
        if not k_bar >= k:
            invalid("k_bar", k_bar, f"must be at least k = {k}")
        if k_bar != np.inf:
            check_count("k_bar", k_bar)
        clip = k_bar == np.inf if self.clip is None else self.clip
        bound = check_count("max_items_per_user", max_items_per_user)
        eps_round = local_eps(eps=eps, delta=delta, k=k)
        offset = limited_domain_offset(
            delta=delta,
            eps_round=eps_round,
            k_bar=k_bar,
            max_items_per_user=bound if clip else np.inf,
        )
        needed = clip and bound < data.max_set_size
        clipped = SubsampledCounts(data, bound) if needed else None
        return LimitedDomainState(data.frequencies, eps_round, k, k_bar, offset, clipped)

    def select(
        self,
        state: LimitedDomainState,
        keys: UInt32[np.ndarray, "trials 2"],
        domain: Bool[np.ndarray, "trials items"] | None,
    ) -> Int32[np.ndarray, "trials k"]:
        """Noise once, then the order down to the threshold."""
        _refuse(domain)
        if state.clipped is None:
            ranking, stop = state.domain(state.counts)
            return _above(one_shot(ranking, GUMBEL, state.k, keys, None), keys, np.float64(stop))
        rows = max(1, _BLOCK // state.counts.size)
        parts = [
            _clipped(state, state.clipped, keys[start : start + rows])
            for start in range(0, len(keys), rows)
        ]
        return np.concatenate(parts)

    def law(self, state: LimitedDomainState, domain: Domain) -> Law:
        """Probability of every sequence; with clipping over all combinations of subsets."""
        _refuse(domain)
        outcomes = [state.counts] if state.clipped is None else state.clipped.outcomes()
        return mixture([_law(state, counts) for counts in outcomes])

    def _domain_size(self, k: int) -> float | int:
        return self.multiple * k if self.k_bar is None else self.k_bar


def _law(state: LimitedDomainState, counts: np.ndarray) -> Law:
    ranking, stop = state.domain(counts)
    scores = dict(zip(ranking.items.tolist(), ranking.scores.tolist(), strict=True))
    return gumbel_order(scores, state.k, stop)


def _clipped(
    state: LimitedDomainState, clipped: SubsampledCounts, keys: np.ndarray
) -> Int32[np.ndarray, "trials k"]:
    """One block of trials, each with its own counts and its own domain."""
    counts = clipped(keys)
    items = np.arange(counts.shape[1], dtype=np.int32)
    noisy = counts * state.eps_round + GUMBEL.quantile(uniform(keys[:, None], 0, items))
    noisy[counts == 0] = -np.inf
    outside = np.zeros(len(keys))
    if state.k_bar < items.size:
        size = int(state.k_bar)
        order = np.argsort(-counts, axis=1, kind="stable")
        np.put_along_axis(noisy, order[:, size:], -np.inf, axis=1)
        outside = np.take_along_axis(counts, order[:, size, None], axis=1)[:, 0]
    stop = (outside + state.offset) * state.eps_round
    return _above(largest(noisy, items, state.k), keys, stop)


def _above(found: Largest, keys: np.ndarray, stop: np.ndarray | np.float64) -> np.ndarray:
    """What comes before the threshold."""
    noisy = stop + gumbel(keys, 0, _STOP)
    return np.where(found.scores > noisy[:, None], found.items, -1).astype(np.int32)


def _refuse(domain: object) -> None:
    if domain is not None:
        invalid("domain", "given", "must be None: limited-domain top-k finds its own")
