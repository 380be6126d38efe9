"""Synthetic data sets: Zipfian ones, the hard instance of the lower bound, and small examples.

NumPy only; every function is a pure function of its arguments, seed included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from jaxtyping import Int64

from theory import UserItems
from theory._check import (
    check_count,
    check_positive,
    check_zipf_constant,
    check_zipf_exponent,
    invalid,
)

__all__ = [
    "SetSizes",
    "equal_frequencies",
    "hard_zipf",
    "nested_pair",
    "one_user",
    "singletons",
    "zipf_draws",
    "zipf_profile",
]

# Which numbers are accepted is checked by value, so that the message can name the range.
Number: TypeAlias = int | float | np.number
_SEEDS = 2**63 - 1


@dataclass(frozen=True)
class SetSizes:
    """Law of the number of items per user.

    Attributes:
        law: "constant", "geometric" (on 1, 2, ...) or "lognormal" (rounded, at least 1).
        mean: Mean, before rounding and capping.
        spread: Standard deviation of ln(size); "lognormal" only.
        cap: Largest size; larger draws are set to it.

    Example:
        >>> SetSizes("lognormal", mean=8, cap=100).draw(np.random.default_rng(0), 5)
        array([6, 4, 9, 5, 3])
    """

    law: str = "constant"
    mean: Number = 1.0
    spread: Number = 1.0
    cap: Number = 10**6

    def __post_init__(self) -> None:
        if self.law not in ("constant", "geometric", "lognormal"):
            invalid("law", self.law, "must be one of constant, geometric, lognormal")
        if not float(check_positive("mean", self.mean)) >= 1:
            invalid("mean", self.mean, "must be at least 1: no user is empty")
        check_positive("spread", self.spread)
        if check_count("cap", self.cap) < self.mean:
            invalid("cap", self.cap, f"must be at least the mean, {self.mean}")
        if self.law == "constant":
            check_count("mean", self.mean)

    def draw(self, rng: np.random.Generator, num_users: int) -> Int64[np.ndarray, " num_users"]:
        """Independent sizes of `num_users` users."""
        if self.law == "constant":
            sizes = np.full(num_users, float(self.mean))
        elif self.law == "geometric":
            sizes = rng.geometric(1 / float(self.mean), num_users).astype(np.float64)
        else:
            spread = float(self.spread)
            location = np.log(self.mean) - spread**2 / 2
            sizes = np.rint(rng.lognormal(location, spread, num_users))
        return np.clip(sizes, 1, float(self.cap)).astype(np.int64)


def zipf_draws(
    *,
    s: Number,
    num_users: Number | None = None,
    num_pairs: Number | None = None,
    set_sizes: SetSizes | None = None,
    support: Number = 100_000,
    seed: Number = 0,
) -> UserItems:
    """Users who draw items independently from a Zipf law.

    A user of size k makes k draws from P(item r) proportional to r^(-s), r = 1..support, and holds
    the distinct items among them: for steep laws that is fewer than k. (Drawing on until k distinct
    items are found takes about k^s draws and makes the items of large sets less Zipfian.)

    Args:
        s: Exponent, above 0.
        num_users: Number of users n; give this or `num_pairs`.
        num_pairs: Number of pairs N after removing repetitions, reached exactly: users are added
            until there are enough, and the last one stops early.
        set_sizes: Law of the number of draws; default one each.
        support: Number of items that can be drawn.
        seed: Seed.

    Returns:
        The data set; `duplicates_removed` counts repeated draws.

    Raises:
        InvalidInput: An argument is out of range, or both or neither of n and N are given.

    Example:
        >>> zipf_draws(s=1.2, num_pairs=1000, set_sizes=SetSizes("geometric", mean=5)).num_pairs
        1000
    """
    s = float(check_zipf_exponent(s, above=0.0))
    support = check_count("support", support, maximum=10**8)
    rng = _generator(seed)
    sizes = set_sizes or SetSizes()
    if (num_users is None) == (num_pairs is None):
        invalid("num_users", num_users, "must be given, or num_pairs, but not both")
    law = np.cumsum(np.arange(1, support + 1, dtype=np.float64) ** -s)
    law /= law[-1]

    if num_users is not None:
        users, items = _draws(rng, law, sizes, check_count("num_users", num_users), 0)
        return UserItems.from_codes(users, items)
    wanted = check_count("num_pairs", num_pairs)
    # Batches of users of geometric growth until enough distinct pairs are there.
    batch = max(64, int(wanted / sizes.mean))
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    found, first_user = 0, 0
    while found < wanted:
        users, items = _draws(rng, law, sizes, batch, first_user)
        keys = users * np.int64(support) + items
        fresh = np.sort(np.unique(keys, return_index=True)[1])[: wanted - found]
        # Rows after the last wanted pair are not part of the data, repeated ones before are.
        end = int(fresh[-1]) + 1
        parts.append((users[:end], items[:end]))
        found, first_user = found + fresh.size, first_user + batch
    users, items = (np.concatenate(column) for column in zip(*parts, strict=True))
    return UserItems.from_codes(users, items)


def _draws(
    rng: np.random.Generator, law: np.ndarray, sizes: SetSizes, num_users: int, first_user: int
) -> tuple[np.ndarray, np.ndarray]:
    users = first_user + np.repeat(np.arange(num_users), sizes.draw(rng, num_users))
    # `law` ends at 1 and a draw is below 1, so the index is always inside.
    return users, np.searchsorted(law, rng.random(users.size), side="right")


def zipf_profile(
    *, C: Number, s: Number, num_pairs: Number, set_sizes: SetSizes | None = None, seed: Number = 0
) -> UserItems:
    """Data with an exact (C,s)-Zipfian frequency profile, dealt to users of chosen sizes.

    Frequencies are those of the hard instance [L3]: floor(C N / r^s) from the smallest rank on from
    which they sum to at most N, re-ranked from 1, the rest added to item 1. They are (C,s)-Zipfian
    with exactly N pairs; only how they are spread over users is a choice. Every item, most frequent
    first, is dealt to the users with the most room left: no user gets an item twice, and this
    order finds a way to deal whenever there is one (Gale and Ryser).

    Args:
        C: Zipf constant, at least 1.
        s: Zipf exponent, above 1.
        num_pairs: Number of pairs N.
        set_sizes: Law of set sizes; sizes are drawn until they sum to N, and the last is cut.
            Default one item per user.
        seed: Seed of the set sizes and of the order of users.

    Returns:
        The data set, with exactly N pairs.

    Raises:
        InvalidInput: The sizes cannot hold the frequencies, mostly because the top item has more
            copies than there are users: a smaller mean, a larger C or a smaller s helps.

    Source: section 2 of the theory note; Theorem 3.5's W* for the frequencies.

    Example:
        >>> data = zipf_profile(C=4.0, s=1.5, num_pairs=1000, set_sizes=SetSizes("constant", 5))
        >>> data.num_pairs, data.num_users, data.max_set_size
        (1000, 200, 5)
    """
    num_pairs = check_count("num_pairs", num_pairs)
    frequencies = _hard_frequencies(C, s, num_pairs)
    rng = _generator(seed)
    sizes = set_sizes or SetSizes()
    drawn = np.empty(0, np.int64)
    while drawn.sum() < num_pairs:
        more = sizes.draw(rng, max(64, int(num_pairs / sizes.mean)))
        drawn = np.concatenate([drawn, more])
    ends = np.minimum(np.cumsum(drawn), num_pairs)
    drawn = np.diff(ends, prepend=0)
    drawn = drawn[drawn > 0]
    users, items = _deal(frequencies, rng.permutation(drawn))
    return UserItems.from_codes(users, items)


def _deal(frequencies: np.ndarray, capacities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """User and item of every pair; `frequencies` descending, both with the same sum."""
    order = np.argsort(-capacities, kind="stable")
    # Negated room of the users in `order`, ascending throughout: searchsorted finds equal ones.
    debt = -capacities[order]
    several = int(np.searchsorted(-frequencies, -1))  # items with two copies or more
    holders: list[np.ndarray] = []
    for copies in frequencies[:several].tolist():
        if copies > debt.size or debt[copies - 1] == 0:
            accepted = (
                f"must leave at least {copies} users with room for an item of {copies} copies; "
                f"{capacities.size} users of mean size {capacities.mean():.3g} do not"
            )
            invalid("set_sizes", f"largest {capacities.max()}", accepted)
        # All users with more room than the last one chosen, and as many of its equals as needed:
        # those at the end of their run, so that the order stays sorted after they give one up.
        room = debt[copies - 1]
        start, end = (int(np.searchsorted(debt, room, side=side)) for side in ("left", "right"))
        chosen = np.concatenate([np.arange(start), np.arange(end - (copies - start), end)])
        debt[chosen] += 1
        holders.append(order[chosen])
    holders.append(np.repeat(order, -debt))  # items with one copy fill what is left
    items = np.repeat(np.arange(frequencies.size), frequencies)
    return np.concatenate(holders), items


def hard_zipf(*, C: Number, s: Number, num_pairs: Number) -> UserItems:
    """The hard instance W* of Theorem 3.5: a (C,s)-Zipfian profile, one item per user, n = N.

    Args:
        C: Zipf constant, at least 1.
        s: Zipf exponent, above 1.
        num_pairs: Number of pairs N.

    Returns:
        The data set.

    Raises:
        InvalidInput: An argument is out of range.

    Source: [L3]; `theory.hard_zipf.hard_zipf_frequencies`.

    Example:
        >>> hard_zipf(C=1.0, s=2.0, num_pairs=100).frequencies[:4]
        array([72, 11,  6,  4])
    """
    frequencies = _hard_frequencies(C, s, num_pairs)
    return _one_item_each(frequencies)


def singletons(num_users: Number) -> UserItems:
    """Every user holds one item that nobody else holds: MM >= 1 - delta for every sound mechanism.

    Args:
        num_users: Number of users, and of items.

    Returns:
        The data set.

    Raises:
        InvalidInput: num_users is no whole number of at least 1.

    Source: section 2.3 of the paper.

    Example:
        >>> singletons(3).frequencies.tolist()
        [1, 1, 1]
    """
    return _one_item_each(np.ones(check_count("num_users", num_users), np.int64))


def equal_frequencies(*, num_items: Number, frequency: Number, set_size: Number = 1) -> UserItems:
    """Items held by equally many users, all sets of equal size (theory section 9, erratum 3).

    Args:
        num_items: Number of items M.
        frequency: Users holding each item.
        set_size: Items per user; divides num_items * frequency, at most num_items.

    Returns:
        The data set.

    Raises:
        InvalidInput: An argument is out of range, or set_size does not divide the number of pairs.

    Example:
        >>> equal_frequencies(num_items=6, frequency=4, set_size=3).num_users
        8
    """
    num_items = check_count("num_items", num_items)
    frequency = check_count("frequency", frequency)
    set_size = check_count("set_size", set_size, maximum=num_items)
    pairs = num_items * frequency
    if pairs % set_size:
        invalid("set_size", set_size, f"must divide the number of pairs, {pairs}")
    slots = np.arange(pairs)
    # User u holds the set_size items from u * set_size on, around a circle of num_items.
    return UserItems.from_codes(slots // set_size, slots % num_items)


def one_user(num_items: Number) -> UserItems:
    """One user alone: with one item Theorem 3.3's printed form fails for large s, with two Lemma
    C.2 does (theory section 9, erratum 1).

    Args:
        num_items: Items of the user.

    Returns:
        The data set.

    Raises:
        InvalidInput: num_items is no whole number of at least 1.

    Example:
        >>> one_user(2).set_sizes.tolist()
        [2]
    """
    num_items = check_count("num_items", num_items)
    return UserItems.from_codes(np.zeros(num_items, np.int64), np.arange(num_items))


def nested_pair(*, num_both: Number, num_first: Number) -> UserItems:
    """`num_both` users {0, 1} and `num_first` users {0}: stopping early is not private here.

    Args:
        num_both: Users with both items.
        num_first: Further users with the first item only.

    Returns:
        The data set.

    Raises:
        InvalidInput: An argument is out of range.

    Source: theory sections 7 and 9, erratum 6.

    Example:
        >>> nested_pair(num_both=3, num_first=2).frequencies.tolist()
        [5, 3]
    """
    num_both = check_count("num_both", num_both)
    num_first = check_count("num_first", num_first, minimum=0)
    first = np.arange(num_both + num_first)
    users = np.concatenate([first, first[:num_both]])
    return UserItems.from_codes(users, np.repeat([0, 1], [first.size, num_both]))


def _one_item_each(frequencies: np.ndarray) -> UserItems:
    items = np.repeat(np.arange(frequencies.size), frequencies)
    return UserItems.from_codes(np.arange(items.size), items)


def _hard_frequencies(C: Number, s: Number, num_pairs: Number) -> np.ndarray:
    # Imported late: the Zipf modules pull in SciPy solvers that most callers do not need.
    from theory.hard_zipf import hard_zipf_frequencies

    C, s = float(check_zipf_constant(C)), float(check_zipf_exponent(s))
    return hard_zipf_frequencies(C, s, check_count("num_pairs", num_pairs))


def _generator(seed: Number) -> np.random.Generator:
    return np.random.default_rng(check_count("seed", seed, minimum=0, maximum=_SEEDS))
