"""Selections as one would write them down: plain NumPy one trial at a time, and Python's sets.

Noise comes from a function of (round, items), so that a peer can be given the noise of the library
and must then choose the same items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Int64

from theory import UserItems

Noise = Callable[[int, np.ndarray], np.ndarray]


def fresh_gumbel(rng: np.random.Generator) -> Noise:
    """Standard Gumbel noise of NumPy's generator."""
    return lambda round, items: rng.gumbel(size=items.size)


def top_k(
    counts: Int64[np.ndarray, " all_items"], k: int, scale: float, domain: np.ndarray, noise: Noise
) -> list[int]:
    """Noise on all counts of a domain, sorted, the first k.

    Example:
        >>> top_k(np.array([1, 9, 5]), 2, 1.0, np.arange(3), lambda round, items: 0.0 * items)
        [1, 2]
    """
    noisy = counts[domain] + scale * noise(0, domain)
    return domain[np.argsort(-noisy)[:k]].tolist()


def limited_domain(
    counts: Int64[np.ndarray, " all_items"],
    ranked: np.ndarray,
    k: int,
    k_bar: int,
    scale: float,
    offset: float,
    domain: np.ndarray,
    noise: Noise,
) -> list[int]:
    """Limited-domain top-k of users who are not clipped.

    Args:
        counts: Users of every item, descending.
        ranked: The items in that order.
        k: Most items released.
        k_bar: Items that can be released.
        scale: Scale of the noise.
        offset: Threshold above the largest count outside.
        domain: Not used: the k_bar first items are.
        noise: The noise; that of item -1 is the threshold's.
    """
    outside = counts[k_bar] if k_bar < counts.size else 0
    stop = outside + offset + scale * noise(0, np.array([-1]))[0]
    noisy = counts[:k_bar] + scale * noise(0, ranked[:k_bar])
    best = np.argsort(-noisy)[:k]
    return ranked[best[noisy[best] > stop]].tolist()


def hitting_set_by_pairs(
    data: UserItems, k: int, scale: float, domain: np.ndarray, noise: Noise
) -> list[int]:
    """Whole-array NumPy: a round counts the pairs of the users who are left, then drops pairs.

    Args:
        data: The data set.
        k: Items to be chosen.
        scale: Scale of the noise.
        domain: Items that may be chosen, ascending.
        noise: The noise.

    Example:
        >>> data = UserItems.from_sets([["a", "b"], ["a"], ["a", "c"], ["b", "c"], ["c"]])
        >>> hitting_set_by_pairs(data, 2, 1.0, np.arange(3), lambda round, items: 0.0 * items)
        [0, 2]
    """
    position = np.full(data.num_items, -1)
    position[domain] = np.arange(domain.size)
    users, held = np.repeat(np.arange(data.num_users), data.set_sizes), position[data.items]
    users, held = users[held >= 0], held[held >= 0]
    opened, chosen = np.ones(domain.size, bool), []
    for round in range(min(k, domain.size)):
        noisy = np.bincount(held, minlength=domain.size) + scale * noise(round, domain)
        best = int(np.argmax(np.where(opened, noisy, -np.inf)))
        opened[best] = False
        chosen.append(int(domain[best]))
        hit = np.zeros(data.num_users, bool)
        hit[users[held == best]] = True
        left = ~hit[users]
        users, held = users[left], held[left]
    return chosen


def holders_of(data: UserItems, domain: np.ndarray) -> dict[int, set[int]]:
    """The users of every item of a domain, as Python's sets."""
    users = np.repeat(np.arange(data.num_users), data.set_sizes)
    order = np.argsort(data.items, kind="stable")
    parts = np.split(users[order], np.cumsum(data.frequencies)[:-1])
    return {item: set(parts[item].tolist()) for item in domain.tolist()}


def hitting_set_by_sets(
    holders: Mapping[int, set[int]], k: int, scale: float, domain: np.ndarray, noise: Noise
) -> list[int]:
    """Python's sets: every item's users less those of the item just chosen, in every round.

    Args:
        holders: Users of every item of the domain, from `holders_of`.
        k: Items to be chosen.
        scale: Scale of the noise.
        domain: Items that may be chosen.
        noise: The noise.

    Example:
        >>> holders = {0: {0, 1, 2}, 1: {0, 3}, 2: {2, 3, 4}}
        >>> hitting_set_by_sets(holders, 2, 1.0, np.arange(3), lambda round, items: 0.0 * items)
        [0, 2]
    """
    left, chosen = {item: holders[item] for item in domain.tolist()}, []
    for round in range(min(k, len(left))):
        items = np.array(list(left))
        noisy = np.array([len(users) for users in left.values()]) + scale * noise(round, items)
        best = int(items[np.argmax(noisy)])
        chosen.append(best)
        hit = left.pop(best)
        left = {item: users - hit for item, users in left.items()}
    return chosen
