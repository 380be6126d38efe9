"""How many users k items can hit at most: greedy choice, exact optimum, upper bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int32, Int64
from scipy.optimize import Bounds, milp
from scipy.sparse import csr_array, eye_array, hstack, vstack

from theory._check import Reals, check_count, check_positive
from theory.bound import Bound
from theory.peeling import check_rounds
from theory.residual import Incidence, Residual
from theory.user_items import UserItems
from theory.zipf import plain

# Choices after which the bound by residual counts is evaluated.
_MOST_PREFIXES = 40


@dataclass(frozen=True, eq=False)
class HittingOptimum:
    """The best k items found, and a proof of how good they are.

    Attributes:
        hits: Users that `items` hit.
        items: (min(k, M),) int32 item indices, ascending.
        upper: No k items hit more.
    """

    hits: int
    items: Int32[np.ndarray, " chosen"]
    upper: int

    @property
    def exact(self) -> bool:
        """Whether `hits` is the optimum."""
        return self.hits == self.upper


def greedy_hitting_set(
    data: UserItems, k: int
) -> tuple[Int32[np.ndarray, " k"], Int64[np.ndarray, " k"]]:
    """The non-private greedy choice: k times the item that hits most users not hit yet.

    Of equal items the one of the smallest index comes first. Without a trace of privacy.

    Args:
        data: User-item sets.
        k: Items to choose, at least 1.

    Returns:
        Chosen item indices in order, -1 once all are chosen, and the users hit by the first 1..k.
        At least 1 - (1-1/k)^k of what any k items hit.

    Raises:
        InvalidInput: k below 1 or not whole.

    Source: Nemhauser, Wolsey, Fisher (1978).

    Example:
        >>> data = UserItems.from_sets([["a", "b"], ["a"], ["a", "c"], ["b", "c"], ["c"]])
        >>> items, hits = greedy_hitting_set(data, 4)
        >>> items.tolist(), hits.tolist()
        ([0, 2, 1, -1], [3, 5, 5, 5])
    """
    k = check_count("k", k)
    items = np.full(k, -1, np.int32)
    hits = np.zeros(k, np.int64)
    rounds = 0
    for item, total, _ in _greedy(data, k):
        items[rounds], hits[rounds] = item, total
        rounds += 1
    hits[rounds:] = data.num_users
    if rounds < min(k, data.num_items):  # everybody is hit: the others in order
        unused = np.ones(data.num_items, bool)
        unused[items[:rounds]] = False
        others = np.flatnonzero(unused)[: k - rounds]
        items[rounds : rounds + others.size] = others
    return items, hits


def optimal_hits(data: UserItems, k: int, *, time_limit: float | int = 60.0) -> HittingOptimum:
    """The most users that k items can hit, by integer programming (HiGHS).

    Args:
        data: User-item sets; a few thousand items are usually solved in seconds.
        k: Items to choose, at least 1.
        time_limit: Seconds after which the best items and the best bound so far are returned.

    Returns:
        Best items, their hits, and the proved upper bound; `exact` where both agree.

    Raises:
        InvalidInput: k below 1 or not whole, or a time limit not above 0.

    Source:
        Opt(W, k) of Section 4.2.

    Example:
        >>> data = UserItems.from_sets(
        ...     [["a", "b"], ["a", "b"], ["a", "c"], ["a", "c"], ["b"], ["c"]])
        >>> best = optimal_hits(data, 2)
        >>> best.hits, best.exact, greedy_hitting_set(data, 2)[1].tolist()
        (6, True, [4, 5])
    """
    k = min(check_count("k", k), data.num_items)
    seconds = float(check_positive("time_limit", time_limit))
    # Users with equal sets are one row with a weight.
    rows = np.split(data.items, data.offsets[1:-1])
    groups: dict[bytes, int] = {}
    for row in rows:
        key = row.tobytes()
        groups[key] = groups.get(key, 0) + 1
    sets = [np.frombuffer(key, data.items.dtype) for key in groups]
    weights = np.array(list(groups.values()), np.float64)
    starts = np.concatenate(([0], np.cumsum([row.size for row in sets])))
    shape = (len(sets), data.num_items)
    held = csr_array((np.ones(starts[-1]), np.concatenate(sets), starts), shape)
    # Chosen items y and users hit z: z_i <= sum of y over the set of i, sum y <= k. Whole y make
    # z whole.
    ones = csr_array(np.concatenate((np.ones(shape[1]), np.zeros(shape[0])))[None])
    matrix = vstack([hstack([-held, eye_array(shape[0])]), ones])
    result = milp(
        np.concatenate((np.zeros(shape[1]), -weights)),
        integrality=np.concatenate((np.ones(shape[1]), np.zeros(shape[0]))),
        bounds=Bounds(0, 1),
        constraints=(matrix, -np.inf, np.concatenate((np.zeros(shape[0]), [k]))),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    greedy, greedy_hits = greedy_hitting_set(data, k)
    items, hits = np.sort(greedy), int(greedy_hits[-1])
    if result.x is not None:
        chosen = np.sort(np.argsort(-result.x[: shape[1]], kind="stable")[:k]).astype(np.int32)
        found = _hits(data, chosen)
        if found > hits:
            items, hits = chosen, found
    upper = int(opt_upper_bound(data, k).value)
    dual = getattr(result, "mip_dual_bound", None)
    if dual is not None and np.isfinite(dual):
        # Hits are whole; the solver's own tolerance is 1e-6 relative.
        upper = min(upper, int(np.floor(-dual + 1e-6 * data.num_users + 1e-6)))
    return HittingOptimum(hits, items, max(upper, hits))


def opt_upper_bound(data: UserItems, k: Reals) -> Bound:
    """Upper bound on the users that any k items hit, fast on large data.

    The least of: the users; the k largest frequencies; greedy/g, g = 1 - (1-1/k)^k; and, for the
    first j greedy choices, their hits plus the k largest numbers of users not hit by them that
    hold an item (other items can add no more than that to the j).

    Args:
        data: User-item sets.
        k: Items to choose, whole numbers of at least 1, any shape.

    Returns:
        Bound on Opt(W, k), whole numbers of the shape of `k`. details: the four forms, `users`,
        `frequencies`, `greedy`, `residual`, and `greedy_hits`, a lower bound.

    Raises:
        InvalidInput: k below 1 or not whole.

    Source:
        [H1]; the last form is the online bound of submodular maximisation.

    Example:
        >>> data = UserItems.from_sets([["a", "b"], ["a"], ["a", "c"], ["b", "c"], ["c"]])
        >>> opt_upper_bound(data, 1).value
        3.0
    """
    rounds = np.minimum(check_rounds(k), data.num_items).astype(np.int64)
    most = int(rounds.max())
    prefixes = set(np.unique(np.geomspace(1, most, _MOST_PREFIXES).round().astype(int)).tolist())
    residual = np.cumsum(_largest(data.frequencies, most))
    frequencies = residual.copy()
    hits = np.full(most, data.num_users, np.int64)
    number = 0
    for _, total, gains in _greedy(data, most):
        hits[number] = total
        number += 1
        if number in prefixes:
            residual = np.minimum(residual, total + np.cumsum(_largest(gains, most)))
    if number < most:  # all users are hit: no choice adds any
        residual = np.minimum(residual, data.num_users)
    place = rounds - 1
    share = greedy_share(rounds)
    forms = {
        "users": np.full(rounds.shape, float(data.num_users)),
        "frequencies": frequencies[place].astype(np.float64),
        "greedy": np.floor(hits[place] / share * (1 + 1e-12)),
        "residual": residual[place].astype(np.float64),
    }
    details = {name: plain(value) for name, value in forms.items()}
    details["greedy_hits"] = plain(hits[place])
    return Bound(
        plain(np.minimum.reduce(list(forms.values()))), "[H1]", "Opt(W, k), Section 4.2", "hits",
        "upper", "sure", None, (), details,
    )  # fmt: skip


def greedy_share(k: Any) -> Any:
    """G = 1 - (1-1/k)^k, the share of the optimum that k greedy choices reach: 1 at k = 1."""
    k = np.asarray(k, np.float64)
    with np.errstate(divide="ignore"):
        return -np.expm1(k * np.log1p(-1 / k))


def _greedy(data: UserItems, k: int) -> Iterator[tuple[int, int, np.ndarray]]:
    """Up to k greedy rounds that hit someone: item, users hit so far, what every item would add."""
    residual = Residual(Incidence.of(data))
    for _ in range(min(k, data.num_items)):
        item = int(np.argmax(residual.counts))
        if not residual.choose(item):
            return
        yield item, data.num_users - residual.users_left, residual.counts


def _largest(values: np.ndarray, k: int) -> np.ndarray:
    """The k largest values, descending."""
    if k < values.size:
        values = np.partition(values, values.size - k)[values.size - k :]
    return np.sort(values)[::-1]


def _hits(data: UserItems, items: np.ndarray) -> int:
    """Users who hold one of the items."""
    chosen = np.zeros(data.num_items, bool)
    chosen[items] = True
    return int(np.logical_or.reduceat(chosen[data.items], data.offsets[:-1]).sum())
