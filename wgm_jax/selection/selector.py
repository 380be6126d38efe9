"""What the engine asks of a selector, and what selectors share.

A selector is the known-domain half of a meta-algorithm: it is given a domain, the items that a
first mechanism released, and selects from it. Without one the domain is all items of the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int32, UInt32

from theory import UserItems
from theory._check import invalid

__all__ = [
    "OnFoundDomain",
    "Selector",
    "by_count",
    "check_few_sequences",
    "domain_items",
    "pad_columns",
]

# Output sequences that an exact law lists.
MOST_SEQUENCES = 10**5

Domain = tuple[int, ...] | None
Law = dict[tuple[int, ...], float]


@runtime_checkable
class Selector(Protocol):
    """Host functions. Implementations are frozen dataclasses.

    A state may have a property `family`: states of one family (equal values, other than None) agree
    in their choices, those for a smaller k come first. They are run once.

    Example:
        The mechanisms of `wgm_jax.selection` are selectors:

        >>> from wgm_jax.selection.top_k import Peeling
        >>> isinstance(Peeling(), Selector)
        True
        >>> data = UserItems.from_sets([("a", "b"), ("a",), ("a",)])
        >>> state = Peeling().prepare(data, eps=1.0, delta=1e-5, k=1, max_items_per_user=2)
        >>> {items: round(p, 3) for items, p in Peeling().law(state, None).items()}
        {(0,): 0.881, (1,): 0.119}
    """

    def prepare(
        self, data: UserItems, *, eps: Any, delta: Any, k: Any, max_items_per_user: Any
    ) -> Any:
        """State for a data set and one point; NumPy, once.

        Args:
            data: The data set.
            eps: Privacy parameter of the selection.
            delta: Likewise.
            k: Items to select, at least 1.
            max_items_per_user: Delta0 of the meta-algorithm, for selectors that clip users.
        """
        ...

    def select(
        self,
        state: Any,
        keys: UInt32[np.ndarray, "trials 2"],
        domain: Bool[np.ndarray, "trials items"] | None,
    ) -> Int32[np.ndarray, "trials k"]:
        """Items of every trial in the order of their release, -1 where there is none.

        Args:
            state: From `prepare`.
            keys: From `wgm_jax.selection.noise.trial_keys`; all randomness comes from them.
            domain: Domain of every trial; None is all items.
        """
        ...

    def law(self, state: Any, domain: Domain) -> Law:
        """Probability of every output sequence, exact to rounding, on tiny data.

        Args:
            state: From `prepare`.
            domain: Items of the domain; None is all.

        Raises:
            InvalidInput: There are too many sequences.
        """
        ...


@dataclass(frozen=True)
class OnFoundDomain:
    """Meta-algorithm: the WGM finds the domain with its part of the budget, then a selection.

    A selector that is run without this has all items as its domain, which must then be public, or
    finds its own; and the whole budget.

    Attributes:
        selector: The known-domain half.

    Source:
        Algorithms 2 and 4 of the paper.

    Example:
        >>> from wgm_jax.selection.top_k import Peeling
        >>> OnFoundDomain(Peeling()).selector
        Peeling(conversion='paper')
    """

    selector: Selector


def by_count(counts: np.ndarray) -> Int32[np.ndarray, " items"]:
    """Item indices by descending count; equal counts in the order of the items.

    Args:
        counts: (items,) counts.

    Returns:
        A permutation of the item indices.

    Example:
        >>> by_count(np.array([2, 5, 2])).tolist()
        [1, 0, 2]
    """
    return np.argsort(-counts, kind="stable").astype(np.int32)


def domain_items(domain: Domain, num_items: int) -> list[int]:
    """The items of a domain, ascending.

    Args:
        domain: Items of the domain; None is all.
        num_items: Number of items of the data.

    Returns:
        Item indices.

    Example:
        >>> domain_items((4, 1), 6), domain_items(None, 3)
        ([1, 4], [0, 1, 2])
    """
    return list(range(num_items)) if domain is None else sorted(domain)


def check_few_sequences(num_items: int, k: int) -> None:
    """Refuse an exact law whose sequences are too many to list.

    Args:
        num_items: Items of the domain.
        k: Items to select.

    Raises:
        InvalidInput: There are more than 100,000 sequences.

    Example:
        >>> check_few_sequences(10, 3)
        >>> check_few_sequences(100, 3)
        Traceback (most recent call last):
        theory._check.InvalidInput: domain = 100 items, k = 3, 970200 sequences: must have ...
    """
    sequences = math.perm(num_items, min(k, num_items))
    if sequences > MOST_SEQUENCES:
        accepted = f"must have at most {MOST_SEQUENCES} output sequences for an exact law"
        invalid("domain", f"{num_items} items, k = {k}, {sequences} sequences", accepted)


def pad_columns(chosen: np.ndarray, k: int) -> Int32[np.ndarray, "trials k"]:
    """At most k columns of items, filled up with -1.

    Args:
        chosen: (trials, at most k) items.
        k: Columns wanted.

    Returns:
        int32 items, -1 where there are none.

    Example:
        >>> pad_columns(np.array([[3, 1]]), 4).tolist()
        [[3, 1, -1, -1]]
    """
    room = ((0, 0), (0, k - chosen.shape[1]))
    return np.pad(chosen, room, constant_values=-1).astype(np.int32)
