"""Top-k with one noise per item: peeling by Gumbel noise, and its Laplace counterparts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Int32, UInt32

from theory import UserItems
from theory._check import check_count, check_delta, check_eps, invalid
from theory.peeling import Conversion, peeling_scale
from wgm_jax.selection.laws import gumbel_order, laplace_order
from wgm_jax.selection.noise import GUMBEL, LAPLACE, uniform
from wgm_jax.selection.one_shot import Ranking, largest, one_shot
from wgm_jax.selection.selector import Domain, Law, domain_items
from wgm_jax.selection.subsample import SubsampledCounts


@dataclass(frozen=True)
class PeelingState:
    """What a trial of peeling needs.

    Attributes:
        ranking: Counts in units of the noise's scale.
        k: Items released.
    """

    ranking: Ranking
    k: int

    def scores(self, domain: Domain) -> dict[int, float]:
        """Score of every item of a domain."""
        wanted = set(domain_items(domain, self.ranking.items.size))
        pairs = zip(self.ranking.items.tolist(), self.ranking.scores.tolist(), strict=True)
        return {item: score for item, score in pairs if item in wanted}


@dataclass(frozen=True)
class Peeling:
    """The k largest counts plus Gumbel(lambda), in order: k rounds of the exponential mechanism.

    A domain of fewer than k items is released whole, in noisy order; an empty one releases nothing.

    Attributes:
        conversion: How [K1] turns zCDP into (eps, delta): "paper", or "tight" for less noise.

    Source:
        Algorithm 3 of the paper with lambda of [K1].
    """

    conversion: Conversion = "paper"

    def prepare(
        self, data: UserItems, *, eps: Any, delta: Any, k: Any, max_items_per_user: Any
    ) -> PeelingState:
        """Counts over lambda; Delta0 does not matter."""
        k = check_count("k", k)
        scale = peeling_scale(eps=eps, delta=delta, k=k, conversion=self.conversion)
        return PeelingState(Ranking.of(data.frequencies, scale), k)

    def select(
        self,
        state: PeelingState,
        keys: UInt32[np.ndarray, "trials 2"],
        domain: Bool[np.ndarray, "trials items"] | None,
    ) -> Int32[np.ndarray, "trials k"]:
        """Noise once, then the k largest."""
        return one_shot(state.ranking, GUMBEL, state.k, keys, domain).items

    def law(self, state: PeelingState, domain: Domain) -> Law:
        """Probability of every sequence."""
        return gumbel_order(state.scores(domain), state.k)


@dataclass(frozen=True)
class LaplaceState:
    """What a trial of one-shot Laplace needs.

    Attributes:
        counts: Users of every item.
        scale: Scale of the noise; None if it depends on the size of the domain.
        k: Items released.
        eps: Privacy parameter.
        delta: Likewise.
        clipped: Draws counts of users cut to Delta0 items; None if all count in full.
    """

    counts: np.ndarray
    scale: float | None
    k: int
    eps: float
    delta: float
    clipped: SubsampledCounts | None


@dataclass(frozen=True)
class OneshotLaplace:
    """The k largest counts plus Laplace(lambda).

    Attributes:
        rule: "pure": lambda = k/eps, and then (eps, 0)-DP (counts move one way by at most one, so
            no factor 2), with the order of the k items. "approximate": lambda =
            8 (k ln(m/delta))^(1/2)/eps for m items, proved for eps <= 0.2, delta <= 0.05,
            m >= 2 and the set of items only, which come in the order of their indices.
        clip: Cut every user to Delta0 items first, so that Delta0/eps suffices where it is below
            k/eps ("pure" only).

    Source:
        Qiao, Su, Zhang (2021) for "approximate"; min(k, Delta0)/eps from the code of Gillenwater,
        Joseph, Munoz Medina, Ribero (2022).
    """

    rule: Literal["pure", "approximate"] = "pure"
    clip: bool = False

    def __post_init__(self) -> None:
        if self.rule not in ("pure", "approximate"):
            invalid("rule", self.rule, "must be 'pure' or 'approximate'")
        if self.clip and self.rule != "pure":
            invalid("clip", self.clip, "must be False with rule 'approximate'")

    def prepare(
        self, data: UserItems, *, eps: Any, delta: Any, k: Any, max_items_per_user: Any
    ) -> LaplaceState:
        """Counts and lambda."""
        k = check_count("k", k)
        eps, delta = float(check_eps(eps)), float(check_delta(delta))
        if eps == 0:
            invalid("eps", eps, "must be a number in (0, 1e5]")
        if self.rule == "approximate" and (eps > 0.2 or delta > 0.05):
            name, value, most = ("eps", eps, 0.2) if eps > 0.2 else ("delta", delta, 0.05)
            invalid(name, value, f"must be at most {most}: the scale of Qiao et al. has no proof")
        bound = check_count("max_items_per_user", max_items_per_user)
        needed = self.clip and bound < data.max_set_size
        return LaplaceState(
            counts=data.frequencies,
            scale=(min(k, bound) if self.clip else k) / eps if self.rule == "pure" else None,
            k=k,
            eps=eps,
            delta=delta,
            clipped=SubsampledCounts(data, bound) if needed else None,
        )

    def select(
        self,
        state: LaplaceState,
        keys: UInt32[np.ndarray, "trials 2"],
        domain: Bool[np.ndarray, "trials items"] | None,
    ) -> Int32[np.ndarray, "trials k"]:
        """Noise once, then the k largest."""
        if state.clipped is not None:
            return self._clipped(state, state.clipped, keys, domain)
        if state.scale is not None:
            ranking = Ranking.of(state.counts, state.scale)
            return one_shot(ranking, LAPLACE, state.k, keys, domain).items
        chosen = np.full((len(keys), state.k), -1, np.int32)
        sizes = np.full(len(keys), state.counts.size) if domain is None else domain.sum(axis=1)
        for size in np.unique(sizes[sizes > 0]):
            same = np.flatnonzero(sizes == size)
            ranking = Ranking.of(state.counts, approximate_scale(state, int(size)))
            mask = None if domain is None else domain[same]
            chosen[same] = one_shot(ranking, LAPLACE, state.k, keys[same], mask).items
        return _in_index_order(chosen)

    def law(self, state: LaplaceState, domain: Domain) -> Law:
        """Probability of every sequence; of every set, as an ascending sequence, if approximate."""
        items = domain_items(domain, state.counts.size)
        if state.scale is not None:
            if state.clipped is None:
                return _laplace_law(state.counts, state.scale, items, state.k)
            return mixture(
                [
                    _laplace_law(counts, state.scale, items, state.k)
                    for counts in state.clipped.outcomes()
                ]
            )
        scale = approximate_scale(state, len(items))
        law: Law = {}
        for sequence, probability in _laplace_law(state.counts, scale, items, state.k).items():
            together = tuple(sorted(sequence))
            law[together] = law.get(together, 0.0) + probability
        return law

    def _clipped(
        self,
        state: LaplaceState,
        clipped: SubsampledCounts,
        keys: np.ndarray,
        domain: np.ndarray | None,
    ) -> np.ndarray:
        items = np.arange(state.counts.size, dtype=np.int32)
        scores = clipped(keys) / np.float64(state.scale)
        noisy = scores + LAPLACE.quantile(uniform(keys[:, None], 0, items))
        if domain is not None:
            noisy[~domain] = -np.inf
        return largest(noisy, items, state.k).items


def approximate_scale(state: LaplaceState, num_items: int) -> float:
    """Lambda of Qiao et al. for a domain of this size; one item is released whatever the noise."""
    return float(8 * np.sqrt(state.k * np.log(max(num_items, 2) / state.delta)) / state.eps)


def mixture(laws: list[Law]) -> Law:
    """The law that is each of these with the same probability."""
    mixed: Law = {}
    for law in laws:
        for sequence, probability in law.items():
            mixed[sequence] = mixed.get(sequence, 0.0) + probability / len(laws)
    return mixed


def _laplace_law(counts: np.ndarray, scale: float, items: list[int], k: int) -> Law:
    return laplace_order({item: float(counts[item] / scale) for item in items}, k)


def _in_index_order(chosen: np.ndarray) -> np.ndarray:
    last = np.iinfo(np.int32).max
    ordered = np.sort(np.where(chosen < 0, last, chosen), axis=1)
    return np.where(ordered == last, -1, ordered).astype(np.int32)
