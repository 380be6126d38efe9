"""The questions: which Delta0, which eps, how much data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.planning.judge import Judge, other_method
from experiments.planning.records import Curve, Plan
from experiments.planning.search import (
    Progress,
    Search,
    around,
    around_best,
    geometric,
    index_of,
    number_of,
)
from experiments.planning.zipf import zipf_classes
from theory import InvalidInput
from theory._check import check_beta, check_count, check_eps, check_max_items_per_user
from theory.calibration import METHODS
from theory.item_classes import ItemClasses

LEAST_EPS, LARGEST_EPS = 1e-4, 1e3
LARGEST_PAIRS = 10**15

# All Delta0 are tried where L times the classes, for certificates L, is at most this: some seconds.
# Otherwise so many in geometric steps, and then a few at a time around the best.
_EVALUATE_ALL = {"mean": 5_000_000, "quantile": 40}
_COARSE = {"mean": 60, "quantile": 25}
# Points a decade of a curve over eps, where they cost little, and over N.
_EPS_POINTS = {"mean": 10, "quantile": 2}
_DATA_POINTS = {"mean": 5, "quantile": 2}
_LARGEST_SET, _TRIAL_USERS = 10**6, 10**7  # of Zipfian data without users
_MOST_NUMBERS = 4_000_000  # miss probabilities held at once for a curve


def contribution_curve(
    classes: ItemClasses,
    *,
    eps: Any,
    delta: Any,
    method: str = "split",
    statistic: str = "mean",
    beta: Any = 0.05,
    complete: bool | None = None,
    progress: Progress | None = None,
) -> Curve:
    """Missing mass against Delta0 from 1 to the largest set, L; beyond L it only grows.

    Where not all Delta0 are evaluated, geometric steps are refined around the least value until
    both neighbours of it are there. E[MM] need not be unimodal in Delta0: the least is exact
    among the evaluated Delta0, and a smaller one may hide between others.

    Args:
        classes: Items and set sizes, from `UserItems.item_classes` or `zipf_classes`.
        eps: Privacy parameter, above 0.
        delta: Privacy parameter in (0, 0.5].
        method: Calibration of the certificates, and the one whose least value is looked for.
        statistic: "mean", or "quantile" for certified quantiles as well.
        beta: Failure probability of the certificates, in (0, 1).
        complete: Whether to evaluate every Delta0; by default if that takes some seconds only.
        progress: Called as progress(done, total, label).

    Returns:
        A `Curve` over "max_items_per_user".

    Raises:
        InvalidInput: An argument out of range.

    Example:
        >>> curve = contribution_curve(zipf_classes(1.5, 8.0, 10**6, 20), eps=1.0, delta=1e-5)
        >>> int(curve.at[curve.best]), curve.complete
        (20, True)
    """
    judge = Judge(delta, method, statistic, beta)
    eps = float(check_eps(eps))
    largest = classes.max_set_size
    known: dict[int, np.ndarray] = {}

    def evaluate(wanted: np.ndarray) -> None:
        missing = [bound for bound in wanted.tolist() if bound not in known]
        total = len(known) + len(missing)
        for bound in missing:
            known[bound] = judge.row(classes, np.array([eps]), bound)
            if progress is not None:
                progress(len(known), total, f"Δ0 = {bound:,}")

    if complete is None:
        work = largest * (classes.frequencies.size if statistic == "mean" else 1)
        complete = work <= _EVALUATE_ALL[statistic]
    if complete:
        evaluate(np.arange(1, largest + 1))
    else:
        evaluate(geometric(1, largest, _COARSE[statistic]))
        rows = range(len(METHODS)) if statistic == "mean" else (-1,)
        for row in rows:
            while (wanted := around_best({k: float(v[row, 0]) for k, v in known.items()})).size:
                evaluate(wanted)
    at = np.array(sorted(known), np.int64)
    table = np.concatenate([known[bound] for bound in at.tolist()], axis=-1)
    lower = np.full(at.size, judge.lower_bound(classes, eps))
    return judge.curve("max_items_per_user", at, table, lower, complete=at.size == largest)


def best_contribution_bound(
    classes: ItemClasses,
    *,
    eps: Any,
    delta: Any,
    method: str = "split",
    statistic: str = "mean",
    beta: Any = 0.05,
    target: Any = None,
    complete: bool | None = None,
    progress: Progress | None = None,
) -> Plan:
    """The Delta0 that leaves the least missing mass.

    Args:
        classes: Items and set sizes, from `UserItems.item_classes` or `zipf_classes`.
        eps: Privacy parameter, above 0.
        delta: Privacy parameter in (0, 0.5].
        method: Calibration, "split" [P1] or "full" [P3].
        statistic: "mean" for E[MM], "quantile" for the certified quantile.
        beta: Failure probability of the certificates, in (0, 1).
        target: Missing mass in (0, 1) that is hoped for; only checked against [L2].
        complete: Whether to try every Delta0, see `contribution_curve`.
        progress: Called as progress(done, total, label).

    Returns:
        A `Plan`; the least of equally good Delta0.

    Raises:
        InvalidInput: An argument out of range.
        Unreachable: No private algorithm can reach the target.

    Example:
        >>> classes = zipf_classes(1.5, 8.0, 10**6, 20)
        >>> best_contribution_bound(classes, eps=0.1, delta=1e-5).answer
        20
    """
    judge = Judge(delta, method, statistic, beta)
    eps = float(check_eps(eps))
    if target is not None:
        target = float(check_beta(target, "target"))
        judge.check_reachable(target, classes, eps)
    curve = contribution_curve(
        classes, eps=eps, delta=delta, method=method, statistic=statistic, beta=beta,
        complete=complete, progress=progress,
    )  # fmt: skip
    answer = int(curve.at[curve.best])
    other = None
    if statistic == "mean":
        other = int(curve.at[np.argmin(getattr(curve, other_method(method)))])
    outcomes = judge.outcomes(classes, eps, answer)
    return Plan("max-items", answer, statistic, target, *outcomes, other, curve)


def least_eps(
    classes: ItemClasses,
    *,
    target: Any,
    delta: Any,
    max_items_per_user: Any,
    method: str = "split",
    statistic: str = "mean",
    beta: Any = 0.05,
    progress: Progress | None = None,
) -> Plan:
    """The least eps, of five significant digits, at which the missing mass is at most `target`.

    E[MM] falls in eps but for items that weigh less than 1, where it may rise by less than delta.
    So the answer reaches the target, and the next smaller number does not.

    Args:
        classes: Items and set sizes, from `UserItems.item_classes` or `zipf_classes`.
        target: Missing mass in (0, 1).
        delta: Privacy parameter in (0, 0.5].
        max_items_per_user: Contribution bound, Delta0.
        method: Calibration, "split" [P1] or "full" [P3].
        statistic: "mean" for E[MM], "quantile" for the certified quantile.
        beta: Failure probability of the certificates, in (0, 1).
        progress: Called as progress(done, total, label).

    Returns:
        A `Plan` with an eps from 1e-4 to 1e3.

    Raises:
        InvalidInput: An argument out of range.
        Unreachable: Even eps = 1e3 misses the target.

    Example:
        >>> least_eps(
        ...     zipf_classes(1.5, 1.0, 10**6), target=0.1, delta=1e-5, max_items_per_user=1
        ... ).answer
        0.0563
    """
    judge = Judge(delta, method, statistic, beta)
    target = float(check_beta(target, "target"))
    bound = int(check_max_items_per_user(max_items_per_user))
    judge.check_reachable(target, classes, LARGEST_EPS)

    def tried(number: int) -> float:
        return float(f"{number}e-8")

    low, high = round(LEAST_EPS * 1e8), round(LARGEST_EPS * 1e8)
    found: dict[str, int | None] = {}
    guess, factor = 10**8, 10.0
    for name in judge.searched:
        search = Search(
            lambda n, name=name: judge.value(classes, tried(n), bound, name),
            target, low, high, lambda n: f"ε = {tried(n):g}", progress,
        )  # fmt: skip
        found[name] = answer = search.least(guess, factor)
        if answer is None and name == method:
            last = judge.value(classes, LARGEST_EPS, bound, name)
            where = f"up to eps = {LARGEST_EPS:g} (max_items_per_user = {bound}, delta = {delta:g})"
            judge.refuse(target, f"is not reached {where}", last)
        guess, factor = answer or high, 1.05
    answer = found[method]
    assert answer is not None
    at = np.array(
        [tried(n) for n in around(answer, low, high, (1e-2, 1e2), _EPS_POINTS[statistic])]
    )
    block = max(1, _MOST_NUMBERS // classes.frequencies.size)
    parts = [judge.row(classes, at[i : i + block], bound) for i in range(0, at.size, block)]
    lower = np.array([judge.lower_bound(classes, eps) for eps in at.tolist()])
    curve = judge.curve("eps", at, np.concatenate(parts, axis=-1), lower)
    other = found.get(other_method(method))
    return Plan(
        "eps", tried(answer), statistic, target,
        *judge.outcomes(classes, tried(answer), bound),
        None if other is None else tried(other), curve,
    )  # fmt: skip


def least_pairs(
    *,
    s: Any,
    constant: Any = 1.0,
    set_size: Any = 1,
    target: Any,
    eps: Any,
    delta: Any,
    max_items_per_user: Any = None,
    method: str = "split",
    statistic: str = "mean",
    beta: Any = 0.05,
    progress: Progress | None = None,
) -> Plan:
    """The least N from which on Zipfian data the missing mass is at most `target`.

    The data are `zipf_classes`. Their frequencies are whole numbers, so E[MM] falls in N only on
    the whole: a smaller N further off may reach the target by chance. The number of users has at
    most five significant digits.

    Args:
        s: Zipf exponent, above 1.
        constant: C >= 1.
        set_size: Items per user, L.
        target: Missing mass in (0, 1).
        eps: Privacy parameter, above 0.
        delta: Privacy parameter in (0, 0.5].
        max_items_per_user: Contribution bound, Delta0; by default L.
        method: Calibration, "split" [P1] or "full" [P3].
        statistic: "mean" for E[MM], "quantile" for the certified quantile.
        beta: Failure probability of the certificates, in (0, 1).
        progress: Called as progress(done, total, label).

    Returns:
        A `Plan` whose answer is N, at most 1e15.

    Raises:
        InvalidInput: An argument out of range.
        Unreachable: Even N = 1e15 misses the target.

    Example:
        >>> least_pairs(s=1.5, target=0.01, eps=1.0, delta=1e-5).answer
        24448000
    """
    size = check_count("set_size", set_size, maximum=_LARGEST_SET)
    zipf_classes(s, constant, _TRIAL_USERS * size, size)  # refuses what is never possible

    def make(users: int) -> ItemClasses | None:
        try:
            return zipf_classes(s, constant, users * size, size)
        except InvalidInput as error:  # so few users cannot hold so large sets of such items
            if error.name != "set_size":
                raise
            return None

    return _least_data(
        make,
        "num_pairs", size, LARGEST_PAIRS // size, 10**6 // size or 1,
        target=target, eps=eps, delta=delta, method=method, statistic=statistic, beta=beta,
        max_items_per_user=size if max_items_per_user is None else max_items_per_user,
        progress=progress,
    )  # fmt: skip


def least_scale(
    classes: ItemClasses,
    *,
    target: Any,
    eps: Any,
    delta: Any,
    max_items_per_user: Any,
    method: str = "split",
    statistic: str = "mean",
    beta: Any = 0.05,
    progress: Progress | None = None,
) -> Plan:
    """How many times as many users like these bring the missing mass down to `target`.

    Every item then has so many times as many holders, with sets as large as before.

    Args:
        classes: Items and set sizes, from `UserItems.item_classes`.
        target: Missing mass in (0, 1).
        eps: Privacy parameter, above 0.
        delta: Privacy parameter in (0, 0.5].
        max_items_per_user: Contribution bound, Delta0.
        method: Calibration, "split" [P1] or "full" [P3].
        statistic: "mean" for E[MM], "quantile" for the certified quantile.
        beta: Failure probability of the certificates, in (0, 1).
        progress: Called as progress(done, total, label).

    Returns:
        A `Plan` whose answer is a whole number, 1 if the data suffice as they are.

    Raises:
        InvalidInput: An argument out of range.
        Unreachable: The target is missed with 1e15 pairs.

    Example:
        >>> classes = zipf_classes(1.5, 1.0, 1000)
        >>> least_scale(classes, target=0.01, eps=1.0, delta=1e-5, max_items_per_user=1).answer
        21
    """
    return _least_data(
        classes.scaled, "scale", 1, max(1, LARGEST_PAIRS // classes.num_pairs), 1,
        target=target, eps=eps, delta=delta, method=method, statistic=statistic, beta=beta,
        max_items_per_user=max_items_per_user, progress=progress,
    )  # fmt: skip


def _least_data(
    make: Callable[[int], ItemClasses | None],
    axis: str,
    unit: int,
    most: int,
    guess: int,
    *,
    target: Any,
    eps: Any,
    delta: Any,
    max_items_per_user: Any,
    method: str,
    statistic: str,
    beta: Any,
    progress: Progress | None,
) -> Plan:
    """The least n for which the data make(n) reach the target; n times `unit` is reported."""
    judge = Judge(delta, method, statistic, beta)
    target, eps = float(check_beta(target, "target")), float(check_eps(eps))
    bound = int(check_max_items_per_user(max_items_per_user))
    what = "N" if axis == "num_pairs" else "times as many users"
    found: dict[str, int | None] = {}
    factor = 10.0
    for name in judge.searched:

        def value(number: int, name: str = name) -> float:
            classes = make(number)
            return np.inf if classes is None else judge.value(classes, eps, bound, name)

        search = Search(
            value, target, 1, most, lambda n: f"{what} = {unit * n:,}", progress
        )  # fmt: skip
        found[name] = answer = search.least(guess, factor)
        if answer is None and name == method:
            largest = make(number_of(index_of(most)))
            assert largest is not None
            judge.check_reachable(target, largest, eps)
            where = f"up to N = {largest.num_pairs:.3g} (eps = {eps:g}, delta = {judge.delta:g})"
            judge.refuse(target, f"is not reached {where}", judge.value(largest, eps, bound, name))
        guess, factor = answer or most, 1.05
    answer = found[method]
    chosen = None if answer is None else make(answer)
    assert answer is not None and chosen is not None
    numbers, tables, lower = [], [], []
    for number in around(answer, 1, most, (1e-3, 10.0), _DATA_POINTS[statistic]):
        classes = make(number)
        if classes is None:
            continue
        numbers.append(number)
        tables.append(judge.row(classes, np.array([eps]), bound))
        lower.append(judge.lower_bound(classes, eps))
    at = np.array(numbers, np.int64) * unit
    curve = judge.curve(axis, at, np.concatenate(tables, axis=-1), np.array(lower))
    other = found.get(other_method(method))
    return Plan(
        "pairs", unit * answer, statistic, target,
        *judge.outcomes(chosen, eps, bound),
        None if other is None else unit * other, curve,
    )  # fmt: skip
