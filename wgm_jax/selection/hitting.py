"""k-hitting set: items chosen one by one so that as many users as possible hold one of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Bool, Float, Int32, Int64, UInt32

from theory import UserItems
from theory._check import check_count, check_positive, invalid
from theory.hitting_game import hitting_game_scale
from theory.peeling import peeling_scale, user_peeling_scale
from theory.residual import Incidence, Residual
from wgm_jax.selection.hitting_lazy import choose_lazily
from wgm_jax.selection.hitting_traced import choose_traced
from wgm_jax.selection.selector import Domain, Law, check_few_sequences, domain_items
from wgm_jax.selection.shared_residuals import SharedResiduals

PATHS = ("auto", "lazy", "traced")
ACCOUNTANTS = ("closed", "exact", "paper")


@dataclass(frozen=True, eq=False)
class HittingState:
    """What a choice of a hitting set needs.

    Attributes:
        data: The data set.
        k: Items to be chosen.
        scale: Scale lambda of the Gumbel noise on counts, in users; 0 for none.
    """

    data: UserItems
    k: int
    scale: float

    @property
    def family(self) -> float:
        """States of one family make the same choices, as many as their k allows."""
        return self.scale


@dataclass(frozen=True, kw_only=True)
class GreedyChoice(ABC):
    """k rounds: choose the item of the largest noisy count, then remove the users who hold it.

    A round counts, for every item of the domain that is not chosen yet, the users not hit yet who
    hold it, and adds fresh Gumbel noise. Ties go to the smaller item index. Users may hold any
    number of items: each is hit once, so nothing is clipped.

    Attributes:
        path: How trials run: "lazy", the CPU's way, updates the counts of the users just hit;
            "traced" counts all pairs in every round, all trials side by side, on JAX's default
            device; "auto" chooses. Both use the same noise and make the same choices.

    Raises:
        InvalidInput: Unknown path.
    """

    stops_early: ClassVar[bool] = False
    path: str = "auto"

    def __post_init__(self) -> None:
        if self.path not in PATHS:
            invalid("path", self.path, f"must be one of {', '.join(PATHS)}")

    @abstractmethod
    def noise_scale(self, *, eps: Any, delta: Any, k: int) -> float:
        """Scale of the Gumbel noise for a budget, 0 for none."""

    def prepare(
        self, data: UserItems, *, eps: Any, delta: Any, k: Any, max_items_per_user: Any = None
    ) -> HittingState:
        """State for a data set and a budget.

        Args:
            data: The data set.
            eps: Privacy parameter of this stage.
            delta: Privacy parameter of this stage.
            k: Items to be chosen, at least 1; may exceed the number of items.
            max_items_per_user: Not used: sets are never clipped.

        Raises:
            InvalidInput: An argument is out of range.
        """
        k = check_count("k", k)
        return HittingState(data, k, self.noise_scale(eps=eps, delta=delta, k=k))

    def select(
        self,
        state: HittingState,
        keys: UInt32[np.ndarray, "trials 2"],
        domain: Bool[np.ndarray, "trials items"] | None = None,
    ) -> Int32[np.ndarray, "trials k"]:
        """Chosen items of many independent trials.

        Args:
            state: From `prepare`.
            keys: One key per trial, from `wgm_jax.selection.noise.trial_keys`.
            domain: Items that every trial may choose; None for all.

        Returns:
            Item indices in the order of choice, -1 where none is left (or, with an early stop,
            after it).

        Raises:
            InvalidInput: `domain` is not a mask of all items for every trial.
        """
        shape = len(keys), state.data.num_items
        if domain is not None and domain.shape != shape:
            invalid("domain", domain.shape, f"must have one row per trial of all items, {shape}")
        incidence = Incidence.of(state.data, None if domain is None else np.any(domain, axis=0))
        opened = None if domain is None else domain[:, incidence.items]
        choose = choose_lazily if _is_lazy(self.path) else choose_traced
        # Without noise and with one domain all trials are the same.
        same = state.scale == 0 and domain is None
        chosen = choose(
            incidence,
            keys[:1] if same else keys,
            opened,
            k=state.k,
            scale=state.scale,
            stops_early=self.stops_early,
        )
        return np.repeat(chosen, len(keys), axis=0) if same else chosen

    def law(self, state: HittingState, domain: Domain = None) -> Law:
        """Probability of every output sequence, exactly: a round is a softmax of count/lambda.

        Args:
            state: From `prepare`, of tiny data.
            domain: Items that may be chosen; None for all.

        Returns:
            Probabilities of sequences of item indices, of sum 1. A sequence is shorter than k where
            `select` would add -1.

        Raises:
            InvalidInput: There are too many sequences, or an item of `domain` does not exist.

        Example:
            >>> data = UserItems.from_sets([["a", "b"], ["a"]])
            >>> law = UserPeeling().law(HittingState(data, k=2, scale=1.0))
            >>> {items: round(probability, 4) for items, probability in law.items()}
            {(0, 1): 0.7311, (1, 0): 0.2689}
        """
        items = domain_items(domain, state.data.num_items)
        if not set(items) <= set(range(state.data.num_items)):
            invalid("domain", domain, f"must hold item indices below {state.data.num_items}")
        check_few_sequences(len(items), state.k)
        among = np.isin(np.arange(state.data.num_items), items)
        shared = SharedResiduals(Residual(Incidence.of(state.data, among)))
        law: Law = {}

        def extend(sequence: tuple[int, ...], probability: float, residual: Residual) -> None:
            left = [place for place in range(len(items)) if place not in sequence]
            out = len(sequence) == state.k or not left
            if out or (self.stops_early and residual.exhausted):
                law[tuple(items[place] for place in sequence)] = probability
                return
            chances = _law_of_argmax(residual.counts[left], state.scale)
            for place, chance in zip(left, chances.tolist(), strict=True):
                longer = (*sequence, place)
                after = shared.after(residual, frozenset(longer), place)
                extend(longer, probability * chance, after)

        extend((), 1.0, shared.start)
        return law


@dataclass(frozen=True, kw_only=True)
class UserPeeling(GreedyChoice):
    """Private greedy choice: stops only when k items are out or the domain is exhausted.

    Attributes:
        scale: Scale lambda of the noise in users; None for that of the accountant.
        accountant: "closed" for the smaller of [K1] and [K1h]; "exact" for the value of the game
            behind [K1h] at this k, less noise while delta is below e^-2; "paper" for [K1], which
            grows like the root of k.
        path: See `GreedyChoice`.

    Raises:
        InvalidInput: The scale is not above 0 or given with an accountant other than "closed", or
            the accountant or the path is unknown.

    Source:
        Algorithm 4; Mitrovic, Bun, Krause, Karbasi (ICML 2017); [K1h]; `theory.hitting_game`.

    Example:
        >>> from wgm_jax.selection.noise import trial_keys
        >>> data = UserItems.from_sets([["a", "b"]] * 90 + [["a"]] * 90 + [["c"]] * 90)
        >>> peeling = UserPeeling()
        >>> state = peeling.prepare(data, eps=1.0, delta=1e-5, k=2)
        >>> peeling.select(state, trial_keys(0, 0, 3)).tolist()
        [[0, 2], [0, 2], [0, 2]]
    """

    scale: float | int | None = None
    accountant: str = "closed"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.accountant not in ACCOUNTANTS:
            invalid("accountant", self.accountant, f"must be one of {', '.join(ACCOUNTANTS)}")
        if self.scale is not None:
            check_positive("scale", self.scale)
            if self.accountant != "closed":
                invalid("accountant", self.accountant, "must not be given together with a scale")

    def noise_scale(self, *, eps: Any, delta: Any, k: int) -> float:
        """The given scale, or that of the accountant."""
        if self.scale is not None:
            return float(self.scale)
        if self.accountant == "exact":
            return float(hitting_game_scale(eps=eps, delta=delta, k=k))
        if self.accountant == "paper":
            return float(peeling_scale(eps=eps, delta=delta, k=k))
        return float(user_peeling_scale(eps=eps, delta=delta, k=k))


@dataclass(frozen=True, kw_only=True)
class UserPeelingEarlyStop(UserPeeling):
    """User peeling that also stops when every user is hit: not private, a specimen for audits.

    That the output is short tells that nobody is left, whatever the scale of the noise.

    Source:
        Prose of Section 4.2 (erratum 6 of the theory note); Algorithm 4 itself does not stop.
    """

    stops_early: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class Greedy(GreedyChoice):
    """The same without noise: not private, the reference of what a private choice can hope for."""

    def noise_scale(self, *, eps: Any = None, delta: Any = None, k: int = 1) -> float:
        """None whatever the budget."""
        return 0.0


def _law_of_argmax(counts: np.ndarray, scale: float) -> Float[np.ndarray, " items"]:
    """Law of the argmax of counts + scale * Gumbel; without noise the first of the largest."""
    if scale == 0:
        return np.eye(counts.size)[np.argmax(counts)]
    odds = np.exp((counts - counts.max()) / scale)
    return odds / odds.sum()


def _is_lazy(path: str) -> bool:
    return path == "lazy" or (path == "auto" and jax.default_backend() == "cpu")


def hits_by_prefix(
    data: UserItems, chosen: Int32[np.ndarray, "trials k"]
) -> Int64[np.ndarray, "trials k"]:
    """Users who hold one of the first 1, ..., k chosen items.

    Args:
        data: The data set.
        chosen: Item indices, -1 for nothing.

    Example:
        >>> data = UserItems.from_sets([["a", "b"], ["a"], ["a", "c"], ["b", "c"], ["c"]])
        >>> hits_by_prefix(data, np.array([[0, 2], [1, -1]], np.int32)).tolist()
        [[3, 5], [2, 2]]
    """
    k = chosen.shape[1]
    # Trials often agree.
    distinct, back = np.unique(chosen, axis=0, return_inverse=True)
    found = np.empty(distinct.shape, np.int64)
    for row, items in enumerate(distinct):
        rank = np.full(data.num_items, k, np.int32)
        # Backwards: of an item chosen twice the first counts.
        places = np.flatnonzero(items >= 0)[::-1]
        rank[items[places]] = places
        first = np.minimum.reduceat(rank[data.items], data.offsets[:-1])
        found[row] = np.cumsum(np.bincount(first, minlength=k + 1)[:k])
    return found[back]


def users_hit(
    data: UserItems, chosen: Int32[np.ndarray, "trials k"]
) -> Int64[np.ndarray, " trials"]:
    """Users who hold one of the chosen items.

    Args:
        data: The data set.
        chosen: Item indices, -1 for nothing; at least one column.

    Example:
        >>> data = UserItems.from_sets([["a", "b"], ["a"], ["a", "c"], ["b", "c"], ["c"]])
        >>> users_hit(data, np.array([[0, 2], [1, -1]], np.int32)).tolist()
        [5, 2]
    """
    return hits_by_prefix(data, chosen)[:, -1]
