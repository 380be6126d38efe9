"""What to choose: the best contribution bound, the least eps, or how much data a target needs.

Nothing is simulated: every candidate is judged by its exact E[MM] [E2], or by a certified quantile.
An eps, an N or a number of times as many users is found to five significant digits: the next
smaller such number was tried and misses the target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float64, Int64

from theory import (
    Calibration,
    InvalidInput,
    Profile,
    calibrate,
    hard_zipf_profile,
    instance_lower_bound,
)
from theory._check import (
    check_beta,
    check_count,
    check_delta,
    check_eps,
    check_max_items_per_user,
    invalid,
)
from theory.calibration import METHODS, check_method
from theory.certificates import certificate
from theory.item_classes import ItemClasses
from theory.miss_probability import MissProbabilities, miss_probabilities

if TYPE_CHECKING:
    import polars as pl

# What is asked for, and what a target is compared with.
Find = Literal["max-items", "eps", "pairs"]
STATISTICS = ("mean", "quantile")
# Says how far a search is: done, total (a guess while it is not known), what is tried.
Progress = Callable[[int, int, str], Any]

LEAST_EPS, LARGEST_EPS = 1e-4, 1e3
LARGEST_PAIRS = 10**15

# All Delta0 are tried where L times the classes' entries, or L for certificates, stay below these;
# that takes some seconds. Else so many in geometric steps, and a few at a time around the best.
_EVALUATE_ALL = {"mean": 10**8, "quantile": 40}
_COARSE = {"mean": 60, "quantile": 25}
_FINE = 8
# Points a decade of a curve over eps or N.
_EACH_DECADE = {"mean": 5, "quantile": 2}
_DIGITS = 5
_DECADE = 9 * 10 ** (_DIGITS - 1)  # numbers of five digits in a decade
_LARGEST_SET, _TRIAL_USERS = 10**6, 10**7  # of Zipfian data without users
_MOST_NUMBERS = 4_000_000  # miss probabilities held at once for a curve


class Unreachable(InvalidInput):
    """A target that this mechanism, or any, misses wherever it was looked for."""


# ---- records


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the weighted Gaussian mechanism leaves at one setting.

    Attributes:
        calibration: A single one.
        num_pairs: User-item pairs, N.
        mean: E[MM], exact [E2].
        certificate: With probability 1 - beta the missing mass is at most this.
        beta: Failure probability of the certificate.
        lower_bound: No sound private algorithm has a smaller E[MM] on these data [L2].
    """

    calibration: Calibration
    num_pairs: int
    mean: float
    certificate: float
    beta: float
    lower_bound: float

    @property
    def oracle_gap(self) -> float:
        """E[MM]/[L2], the price of not knowing the data; infinite where [L2] is 0."""
        return self.mean / self.lower_bound if self.lower_bound > 0 else float("inf")

    def value(self, statistic: str) -> float:
        """What a target is compared with."""
        return self.mean if statistic == "mean" else self.certificate


@dataclass(frozen=True, eq=False)
class Curve:
    """Missing mass along one axis, with both calibrations.

    Attributes:
        axis: "max_items_per_user", "eps", "num_pairs" or "scale".
        at: Values of the axis, ascending.
        split: E[MM] with the calibration [P1].
        full: E[MM] with the calibration [P3].
        certificate: Certified quantile with the calibration `method`; None unless asked for.
        lower_bound: [L2].
        method: "split" or "full".
        complete: Whether every possible value of the axis is there.
    """

    axis: str
    at: Float64[np.ndarray, " points"] | Int64[np.ndarray, " points"]
    split: Float64[np.ndarray, " points"]
    full: Float64[np.ndarray, " points"]
    certificate: Float64[np.ndarray, " points"] | None
    lower_bound: Float64[np.ndarray, " points"]
    method: str
    complete: bool

    @property
    def best(self) -> int:
        """Index of the least certified quantile, or else of the least E[MM] with `method`."""
        return int(
            np.argmin(getattr(self, self.method) if self.certificate is None else self.certificate)
        )

    def to_frame(self) -> pl.DataFrame:
        """One row per point; without a column `certificate` where none were computed."""
        import polars as pl

        names = (self.axis, "split", "full", "certificate", "lower_bound")
        arrays = (self.at if name == self.axis else getattr(self, name) for name in names)
        return pl.DataFrame(
            {n: values for n, values in zip(names, arrays, strict=True) if values is not None}
        )


@dataclass(frozen=True, eq=False)
class Plan:
    """The answer to one question.

    Attributes:
        find: "max-items", "eps" or "pairs".
        answer: The best Delta0; the least eps; the least N; or, for data, the least number of
            times as many users.
        statistic: "mean" (E[MM]) or "quantile" (certified).
        target: What the statistic is to be at most; None if it was to be as small as possible.
        outcome: What the mechanism leaves at the answer.
        other: The same with the other calibration.
        other_answer: The answer for the other calibration; None if it has none, and for quantiles.
        curve: The missing mass around the answer.
    """

    find: Find
    answer: float | int
    statistic: str
    target: float | None
    outcome: Outcome
    other: Outcome
    other_answer: float | int | None
    curve: Curve

    @property
    def value(self) -> float:
        """The statistic at the answer."""
        return self.outcome.value(self.statistic)


# ---- data without users


def zipf_classes(s: Any, constant: Any, num_pairs: Any, set_size: Any = 1) -> ItemClasses:
    """Items of hard Zipfian data of N pairs in which every user holds `set_size` items.

    Args:
        s: Zipf exponent, above 1.
        constant: C >= 1.
        num_pairs: N, from 1 to 1e15, a multiple of the set size.
        set_size: Items per user.

    Returns:
        Classes; N = 1e12 are a few hundred thousand.

    Raises:
        InvalidInput: An argument out of range, or sets so large that the most frequent item would
            have more holders than there are users.

    Source:
        [L3], the data of Theorem 3.5; there the set size is 1.

    Example:
        >>> classes = zipf_classes(2.0, 4.0, 1000, 2)
        >>> classes.frequencies[:4], classes.num_items
        (array([380, 160, 111,  81]), 59)
    """
    profile = hard_zipf_profile(constant, s, num_pairs)
    size = check_count("set_size", set_size)
    most = profile.num_pairs // profile.top_count
    if size > most:
        accepted = (
            f"must be at most {most}: the most frequent item makes up "
            f"{profile.top_count / profile.num_pairs:.3g} of the pairs; a larger constant C "
            "makes it rarer"
        )
        invalid("set_size", set_size, accepted)
    if profile.num_pairs % size:
        invalid("num_pairs", num_pairs, f"must be a multiple of the set size, {size}")
    return ItemClasses.of_equal_sets(profile.frequencies, profile.multiplicity, size)


# ---- questions


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
    judge = _Judge(delta, method, statistic, beta)
    eps = _check_eps(eps)
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
        work = largest * (classes.sizes.size if statistic == "mean" else 1)
        complete = work <= _EVALUATE_ALL[statistic]
    if complete:
        evaluate(np.arange(1, largest + 1))
    else:
        evaluate(_geometric(1, largest, _COARSE[statistic]))
        values = METHODS.index(method) if statistic == "mean" else -1
        while (wanted := _around_best({k: float(v[values, 0]) for k, v in known.items()})).size:
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
    judge = _Judge(delta, method, statistic, beta)
    eps = _check_eps(eps)
    if target is not None:
        target = _check_target(target)
        judge.check_reachable(target, classes, eps)
    curve = contribution_curve(
        classes, eps=eps, delta=delta, method=method, statistic=statistic, beta=beta,
        complete=complete, progress=progress,
    )  # fmt: skip
    answer = int(curve.at[curve.best])
    other = None
    if curve.complete and statistic == "mean":
        other = int(curve.at[np.argmin(getattr(curve, _other(method)))])
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
        0.44044
    """
    judge = _Judge(delta, method, statistic, beta)
    target = _check_target(target)
    bound = int(check_max_items_per_user(max_items_per_user))
    judge.check_reachable(target, classes, LARGEST_EPS)

    def tried(number: int) -> float:
        return float(f"{number}e-8")

    low, high = round(LEAST_EPS * 1e8), round(LARGEST_EPS * 1e8)
    found: dict[str, int | None] = {}
    guess, factor = 10**8, 10.0
    for name in judge.searched:
        search = _Search(
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
    at = np.array([tried(n) for n in _around(answer, low, high, (1e-2, 1e2), statistic)])
    block = max(1, _MOST_NUMBERS // classes.frequencies.size)
    parts = [judge.row(classes, at[i : i + block], bound) for i in range(0, at.size, block)]
    lower = np.array([judge.lower_bound(classes, eps) for eps in at.tolist()])
    curve = judge.curve("eps", at, np.concatenate(parts, axis=-1), lower)
    other = found.get(_other(method))
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
        279220000
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
    judge = _Judge(delta, method, statistic, beta)
    target, eps = _check_target(target), _check_eps(eps)
    bound = int(check_max_items_per_user(max_items_per_user))
    what = "N" if axis == "num_pairs" else "times as many users"
    found: dict[str, int | None] = {}
    factor = 10.0
    for name in judge.searched:

        def value(number: int, name: str = name) -> float:
            classes = make(number)
            return np.inf if classes is None else judge.value(classes, eps, bound, name)

        search = _Search(
            value, target, 1, most, lambda n: f"{what} = {unit * n:,}", progress
        )  # fmt: skip
        found[name] = answer = search.least(guess, factor)
        if answer is None and name == method:
            largest = make(_number(_index(most)))
            assert largest is not None
            judge.check_reachable(target, largest, eps)
            where = f"up to N = {largest.num_pairs:.3g} (eps = {eps:g}, delta = {judge.delta:g})"
            judge.refuse(target, f"is not reached {where}", judge.value(largest, eps, bound, name))
        guess, factor = answer or most, 1.05
    answer = found[method]
    chosen = None if answer is None else make(answer)
    assert answer is not None and chosen is not None
    numbers, tables, lower = [], [], []
    for number in _around(answer, 1, most, (1e-3, 10.0), statistic):
        classes = make(number)
        if classes is None:
            continue
        numbers.append(number)
        tables.append(judge.row(classes, np.array([eps]), bound))
        lower.append(judge.lower_bound(classes, eps))
    at = np.array(numbers, np.int64) * unit
    curve = judge.curve(axis, at, np.concatenate(tables, axis=-1), np.array(lower))
    other = found.get(_other(method))
    return Plan(
        "pairs", unit * answer, statistic, target,
        *judge.outcomes(chosen, eps, bound),
        None if other is None else unit * other, curve,
    )  # fmt: skip


# ---- evaluation


@dataclass(frozen=True, eq=False)
class _Judge:
    """Evaluates settings at one delta, for one calibration method, by one statistic."""

    delta: float
    method: str
    statistic: str
    beta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", float(check_delta(self.delta)))
        object.__setattr__(self, "beta", float(check_beta(self.beta)))
        check_method(self.method)
        if self.statistic not in STATISTICS:
            invalid("statistic", self.statistic, f"must be one of {', '.join(STATISTICS)}")

    @property
    def searched(self) -> tuple[str, ...]:
        """Methods for which an answer is looked for; certificates take long, so one is enough."""
        both = (self.method, _other(self.method))
        return both if self.statistic == "mean" else both[:1]

    def _misses(
        self, classes: ItemClasses, eps: float, bound: int, method: str
    ) -> tuple[Calibration, MissProbabilities]:
        noise = calibrate(eps=eps, delta=self.delta, max_items_per_user=bound, method=method)
        profile = Profile.from_classes(classes, max_items_per_user=bound)
        return noise, miss_probabilities(profile, noise)

    def value(self, classes: ItemClasses, eps: float, bound: int, method: str) -> float:
        """The statistic at one setting."""
        miss = self._misses(classes, eps, bound, method)[1]
        if self.statistic == "mean":
            return float(miss.mean_missing_mass)
        return float(certificate(miss, self.beta).value)

    def row(
        self, classes: ItemClasses, eps: Float64[np.ndarray, " points"], bound: int
    ) -> Float64[np.ndarray, "values points"]:
        """E[MM] by each method, from one law of the weights, and the certificate if asked for."""
        made = [
            calibrate(eps=eps, delta=self.delta, max_items_per_user=bound, method=method)
            for method in METHODS
        ]
        sigma, threshold = (
            np.stack([getattr(record, name) for record in made]) for name in ("sigma", "threshold")
        )
        # Only sigma and T matter from here on, so one grid may hold both methods.
        grid = Calibration(eps, self.delta, bound, "full", sigma, threshold)
        miss = miss_probabilities(Profile.from_classes(classes, max_items_per_user=bound), grid)
        means = np.asarray(miss.mean_missing_mass)
        if self.statistic == "mean":
            return means
        sure = certificate(miss.at(METHODS.index(self.method)), self.beta).value
        return np.concatenate((means, np.asarray(sure)[None]))

    def curve(
        self, axis: str, at: np.ndarray, table: np.ndarray, lower: np.ndarray, *,
        complete: bool = False,
    ) -> Curve:  # fmt: skip
        """A `Curve` from rows."""
        split, full, *rest = table
        sure = rest[0] if rest else None
        return Curve(axis, at, split, full, sure, lower, self.method, complete)

    def outcomes(self, classes: ItemClasses, eps: float, bound: int) -> tuple[Outcome, Outcome]:
        """What is left with the chosen calibration, and with the other one."""
        floor, made = self.lower_bound(classes, eps), []
        for name in (self.method, _other(self.method)):
            noise, miss = self._misses(classes, eps, bound, name)
            mean, sure = float(miss.mean_missing_mass), float(certificate(miss, self.beta).value)
            made.append(Outcome(noise, classes.num_pairs, mean, sure, self.beta, floor))
        return made[0], made[1]

    def lower_bound(self, classes: ItemClasses, eps: float) -> float:
        """[L2]."""
        profile = Profile.from_classes(classes, max_items_per_user=1)
        return float(instance_lower_bound(profile, eps=eps, delta=self.delta).value)

    def check_reachable(self, target: float, classes: ItemClasses, eps: float) -> None:
        """Refuse a target that [L2] rules out for every sound private algorithm."""
        least = self.lower_bound(classes, eps)
        sure = ""
        if self.statistic == "quantile":
            # MM <= q with probability 1 - beta, and MM <= 1 always: E[MM] <= q (1 - beta) + beta.
            least = (least - self.beta) / (1 - self.beta)
            sure = f" with probability {1 - self.beta:g}"
        if target < least:
            accepted = (
                f"no private algorithm can reach this{sure}: the least possible is {least:.3g} "
                f"(at eps = {eps:g}, delta = {self.delta:g}, N = {_short(classes.num_pairs)})"
            )
            raise Unreachable("target", target, accepted)

    def refuse(self, target: float, problem: str, last: float) -> None:
        """Say how far from the target the last value is."""
        name = "E[MM]" if self.statistic == "mean" else f"the {1 - self.beta:g} certificate"
        raise Unreachable("target", target, f"{problem}: {name} there is {last:.3g}")


# ---- searches


@dataclass(frozen=True, eq=False)
class _Search:
    """Looks among whole numbers of five significant digits for the least that reaches a target."""

    value: Callable[[int], float]
    target: float
    low: int
    high: int
    label: Callable[[int], str]
    progress: Progress | None

    def least(self, guess: int, factor: float) -> int | None:
        """The least n from `low` to `high` with value(n) <= target, None if `high` misses it.

        Exact for a falling value. Otherwise n reaches the target and the number before misses it.
        """
        known: dict[int, float] = {}

        def excess(index: int) -> float:
            if index not in known:
                number = _number(index)
                if self.progress is not None:
                    self.progress(len(known), max(12, len(known) + 1), self.label(number))
                # In logarithms the curve is nearly straight.
                known[index] = float(np.log(max(self.value(number), 1e-300) / self.target))
            return known[index]

        low, high = self._bracket(excess, min(max(guess, self.low), self.high), factor)
        if high is None:
            return None
        above, below = excess(low), excess(high)
        width, slow, side = high - low, 0, 0
        while high - low > 1:
            # False position (Illinois); bisection where that has hardly narrowed the bracket.
            middle = (low + high) // 2
            if slow < 2 and np.isfinite(above):
                ends = np.log(_number(low)), np.log(_number(high))
                log_number = ends[0] + (ends[1] - ends[0]) * above / (above - below)
                middle = min(max(_index(round(np.exp(log_number))), low + 1), high - 1)
            at = excess(middle)
            if at <= 0:
                high, below, above = middle, at, above / 2 if side < 0 else above
            else:
                low, above, below = middle, at, below / 2 if side > 0 else below
            side = -1 if at <= 0 else 1
            slow = slow + 1 if high - low > width / 2 else 0
            width = high - low
        return _number(high)

    def _bracket(
        self, excess: Callable[[int], float], start: int, factor: float
    ) -> tuple[int, int | None]:
        """Indices of a number that misses and a larger one that reaches the target.

        Equal ones where `low` reaches it, None for the second where `high` does not.
        """
        first, last = _index(self.low), _index(self.high)
        at = _index(start)
        reached = excess(at) <= 0
        while at != (first if reached else last):
            number = _number(at) / factor if reached else _number(at) * factor
            after = min(max(_index(int(number)), first), last)
            # With few digits a small factor may lead nowhere.
            after = after if after != at else at + (-1 if reached else 1)
            if (excess(after) <= 0) != reached:
                return (after, at) if reached else (at, after)
            at, factor = after, min(factor**2, 10.0)
        return (first, first) if reached else (last, None)


def _number(index: int) -> int:
    """The index-th whole number of at most five significant digits.

    Example:
        >>> [_number(i) for i in (1, 99_999, 100_000, 100_001, 189_999, 190_000)]
        [1, 99999, 100000, 100010, 999990, 1000000]
    """
    first = 10 ** (_DIGITS - 1)
    if index < first:
        return index
    power, mantissa = divmod(index - first, _DECADE)
    return (first + mantissa) * 10**power


def _index(number: int) -> int:
    """Index of the largest number of at most five significant digits that is at most `number`."""
    power = max(len(str(number)) - _DIGITS, 0)
    return number // 10**power + power * _DECADE


def _geometric(low: int, high: int, points: int) -> np.ndarray:
    """Distinct whole numbers in about geometric steps, the ends included."""
    return np.unique(np.rint(np.geomspace(low, high, points)).astype(np.int64))


def _around_best(known: dict[int, float]) -> Int64[np.ndarray, " missing"]:
    """Between the least value and its neighbours, to be evaluated next; none if adjacent."""
    at = sorted(known)
    best = int(np.argmin([known[bound] for bound in at]))
    ends = at[max(best - 1, 0)], at[min(best + 1, len(at) - 1)]
    wanted = [_geometric(min(end, at[best]), max(end, at[best]), _FINE) for end in ends]
    found = np.unique(np.concatenate(wanted))
    return found[~np.isin(found, at)]


def _around(
    number: int, low: int, high: int, reach: tuple[float, float], statistic: str
) -> list[int]:
    """Numbers of five digits in geometric steps around one of them, itself included."""
    each_decade = _EACH_DECADE[statistic]
    least, most = (round(each_decade * np.log10(factor)) for factor in reach)
    near = (round(number * 10 ** (k / each_decade)) for k in range(least, most + 1))
    return sorted({_number(_index(min(max(n, low), high))) for n in near})


def _short(number: int) -> str:
    return f"{number:,}" if number < 10**7 else f"{number:.4g}"


# ---- checks


def _other(method: str) -> str:
    return next(name for name in METHODS if name != method)


def _check_eps(eps: Any) -> float:
    """0 is legal for a mechanism, but then nothing is worth planning: delta is all there is."""
    return float(check_eps(eps))


def _check_target(target: Any) -> float:
    return float(check_beta(target, "target"))
