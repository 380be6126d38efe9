"""All mechanisms on one data set: missing mass and number of released items, eps by Delta0."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from experiments import flow_store
from experiments.comparison.competitors import Competitor, competitors
from experiments.comparison.medians import median_interval
from experiments.comparison.names import by_name
from experiments.comparison.trials import (
    SubsetBatches,
    conditional_means,
    is_deterministic,
    is_integrable,
)
from experiments.exact_misses import EXACT, exact_misses
from theory import Profile, UserItems, calibrate, instance_lower_bound
from theory._check import check_count, check_delta, check_max_items_per_user, invalid
from theory.calibration import Calibration

if TYPE_CHECKING:
    import polars as pl

ALPHA = 0.05


@dataclass(frozen=True)
class Estimate:
    """A mean and an interval.

    Attributes:
        mean: Exact, or the mean over trials.
        low: Lower limit, with 95 % certainty; -inf if there are too few trials.
        high: Upper limit.
    """

    mean: float
    low: float
    high: float

    @staticmethod
    def of(samples: Float64[np.ndarray, " trials"], *, exact: bool) -> Estimate:
        """From trials, or from one exact number."""
        mean = float(samples.mean())
        if exact:
            return Estimate(mean, mean, mean)
        low, high = median_interval(samples, alpha=ALPHA)
        return Estimate(mean, min(low, mean), max(high, mean))


@dataclass(frozen=True)
class Entry:
    """One mechanism at one eps and one Delta0.

    Attributes:
        competitor: The mechanism and its calibration.
        eps: Privacy parameter.
        delta: Privacy parameter.
        max_items_per_user: Delta0.
        is_max: Delta0 was asked for as "max".
        kind: "exact"; "integrated", noise of the last round integrated out in every trial; or
            "simulated".
        trials: Number of trials; 0 if exact.
        missing_mass: Missing mass.
        released: Number of released items.
        lower_bound: Least mean missing mass of any private mechanism, [L2].
        seconds: Time for all eps together, compilation included.
    """

    competitor: Competitor
    eps: float
    delta: float
    max_items_per_user: int
    is_max: bool
    kind: str
    trials: int
    missing_mass: Estimate
    released: Estimate
    lower_bound: float
    seconds: float

    @property
    def setting(self) -> tuple[float, int]:
        """Where it can be compared with others: eps, Delta0."""
        return self.eps, self.max_items_per_user


@dataclass(frozen=True, eq=False)
class Comparison:
    """Mechanisms on one data set.

    Attributes:
        dataset: Name of the data.
        num_users: Users.
        num_items: Items.
        num_pairs: Pairs, N.
        entries: By Delta0, then mechanism, then eps, as asked for.
        seed: Seed.
    """

    dataset: str
    num_users: int
    num_items: int
    num_pairs: int
    entries: tuple[Entry, ...]
    seed: int

    def of(self, label: str, eps: float) -> list[Entry]:
        """One mechanism at one eps, over Delta0."""
        return [e for e in self.entries if e.competitor.label == label and e.eps == eps]

    def rows(self) -> list[dict[str, Any]]:
        """One flat row per entry, with its distance to the best of its setting and to [L2]."""
        best: dict[tuple[float, int], Estimate] = {}
        for entry in self.entries:
            known = best.get(entry.setting)
            if entry.competitor.private and (known is None or entry.missing_mass.mean < known.mean):
                best[entry.setting] = entry.missing_mass
        return [self._row(entry, best.get(entry.setting)) for entry in self.entries]

    def _row(self, entry: Entry, best: Estimate | None) -> dict[str, Any]:
        mass, count, who = entry.missing_mass, entry.released, entry.competitor
        above = Estimate(*3 * [np.nan]) if best is None else above_by(mass, best)
        floor = entry.lower_bound
        return {
            "dataset": self.dataset,
            "num_users": self.num_users,
            "num_items": self.num_items,
            "num_pairs": self.num_pairs,
            "eps": entry.eps,
            "delta": entry.delta,
            "max_items_per_user": entry.max_items_per_user,
            "max_items_is_max": entry.is_max,
            "mechanism": who.label,
            "method": who.method,
            "private": who.private,
            "kind": entry.kind,
            "trials": entry.trials,
            "missing_mass": mass.mean,
            "missing_mass_low": mass.low,
            "missing_mass_high": mass.high,
            "released": count.mean,
            "released_low": count.low,
            "released_high": count.high,
            "above_best": above.mean,
            "above_best_low": above.low,
            "above_best_high": above.high,
            "lower_bound": floor,
            "times_lower_bound": mass.mean / floor if floor > 0 else np.nan,
            "seconds": entry.seconds,
        }

    def to_frame(self) -> pl.DataFrame:
        """`rows` as a polars table; what is not known is null."""
        import polars as pl

        frame = pl.DataFrame(self.rows(), infer_schema_length=None)
        floats = pl.col(pl.Float64)
        return frame.with_columns(pl.when(floats.is_finite()).then(floats))


def above_by(mass: Estimate, other: Estimate) -> Estimate:
    """By which share one missing mass is above another; limits hold if both intervals do.

    Args:
        mass: A missing mass.
        other: What it is compared with, above 0.

    Returns:
        The share, negative where it is below; its interval is the widest that the two allow.

    Example:
        >>> above_by(Estimate(0.55, 0.55, 0.55), Estimate(0.5, 0.44, 0.55)).high
        0.25
    """

    def share(a: float, b: float) -> float:
        return round(a / b - 1, 15) if b > 0 else np.nan

    if mass is other:
        return Estimate(0.0, 0.0, 0.0)
    return Estimate(
        share(mass.mean, other.mean),
        share(max(mass.low, 0.0), other.high),
        share(mass.high, other.low),
    )


def compare(
    data: UserItems,
    *,
    dataset: str = "data",
    eps: Sequence[float],
    delta: float,
    max_items_per_user: Sequence[int | str],
    mechanisms: Sequence[str] | None = None,
    num_trials: int = 20,
    seed: int = 0,
    progress: Callable[[int, int, str], Any] = lambda done, total, label: None,
) -> Comparison:
    """Compare set-union mechanisms at equal (eps, delta) and Delta0.

    The weighted Gaussian mechanism and the Bernoulli flow by their exact means; mechanisms of the
    common frame, and the Bernoulli flow in two rounds, by trials with the noise of the last round
    integrated out, a single one where nothing else is random; others by `wgm_jax.simulate`. Users
    come in stored order, items of a user in the order of their names: neither depends on other
    users.

    Args:
        data: The data set.
        dataset: Its name, for tables.
        eps: Privacy parameters, at least one.
        delta: Privacy parameter.
        max_items_per_user: Values of Delta0, at least one; "max" is the largest set.
        mechanisms: Labels as in `competitors`; default all private ones.
        num_trials: Trials of every mechanism whose mean is not known exactly.
        seed: Seed; trial i is a function of the seed and i.
        progress: Called as progress(done, total, label).

    Returns:
        A `Comparison`.

    Raises:
        InvalidInput: An argument is out of range, or a mechanism cannot be run at it.

    Example:
        >>> data = UserItems.from_sets([{0}] * 40 + [{1}] * 5)
        >>> found = compare(data, eps=[1.0], delta=1e-5, max_items_per_user=[1],
        ...                 mechanisms=["wgm", "policy-gaussian"])
        >>> [round(row["missing_mass"], 4) for row in found.rows()]
        [0.1111, 0.1123]
    """
    asked = competitors(mechanisms)
    num_trials = check_count("num_trials", num_trials, maximum=10**6)
    seed = check_count("seed", seed, minimum=0, maximum=2**63 - 1)
    check_delta(delta)
    if not len(eps):
        invalid("eps", "", "must hold at least one number")
    levels = np.array(list(dict.fromkeys(eps)), np.float64)
    data = by_name(data)
    bounds = _bounds(data, max_items_per_user)
    grids = {
        (bound, method): calibrate(eps=levels, delta=delta, max_items_per_user=bound, method=method)
        for bound in bounds
        for method in ("split", "full")
    }
    profile = Profile.from_user_items(data, max_items_per_user=1)
    floor = np.atleast_1d(instance_lower_bound(profile, eps=levels, delta=delta).value)

    entries: list[Entry] = []
    once: dict[str, list[Entry]] = {}
    total = len(bounds) * len(asked)
    for bound, is_max in bounds.items():
        field = _Field(data, bound, num_trials, seed)
        for who in asked:
            progress(len(entries) // len(levels), total, f"Δ0 = {bound:,}, {who.label}")
            made = once.get(who.label)
            if made is None:
                made = field.entries(who, grids[bound, who.method], floor, is_max)
                if not getattr(who.mechanism, "clips", True):
                    once[who.label] = made  # Delta0 means nothing to it
            at = {"max_items_per_user": bound, "is_max": is_max}
            entries += [replace(entry, **at) for entry in made]
    progress(total, total, "")
    return Comparison(dataset, data.num_users, data.num_items, data.num_pairs, (*entries,), seed)


def _bounds(data: UserItems, asked: Sequence[int | str]) -> dict[int, bool]:
    """Values of Delta0, ascending, and whether each was asked for as "max"."""
    if not len(asked):
        invalid("max_items_per_user", "", "must hold at least one number")
    found: dict[int, bool] = {}
    for bound in asked:
        number = data.max_set_size if bound == "max" else int(check_max_items_per_user(bound))
        found[number] = found.get(number, False) or bound == "max"
    return dict(sorted(found.items()))


class _Field:
    """One data set at one Delta0; kept sets are shared by all mechanisms."""

    def __init__(self, data: UserItems, bound: int, num_trials: int, seed: int) -> None:
        self._data, self._bound = data, bound
        self._trials, self._seed = num_trials, seed
        self._batches: dict[int, SubsetBatches] = {}

    def entries(
        self, who: Competitor, calibration: Calibration, floor: np.ndarray, is_max: bool
    ) -> list[Entry]:
        """One entry per eps."""
        start = time.perf_counter()
        kind, mass, released = self._measure(who, calibration)
        seconds = time.perf_counter() - start
        exact = kind == "exact"
        return [
            Entry(
                competitor=who,
                eps=float(calibration.eps[index]),
                delta=float(calibration.delta[index]),
                max_items_per_user=self._bound,
                is_max=is_max,
                kind=kind,
                trials=0 if exact else self._trials,
                missing_mass=Estimate.of(np.ascontiguousarray(mass[:, index]), exact=exact),
                released=Estimate.of(np.ascontiguousarray(released[:, index]), exact=exact),
                lower_bound=float(floor[index]),
                seconds=seconds,
            )
            for index in range(len(calibration))
        ]

    def _measure(
        self, who: Competitor, calibration: Calibration
    ) -> tuple[str, np.ndarray, np.ndarray]:
        """Kind, missing masses and numbers of released items, (trials, points)."""
        data, mechanism = self._data, who.mechanism
        if who.name in EXACT:
            profile = Profile.from_user_items(data, max_items_per_user=self._bound)
            miss = exact_misses(who.name, profile, calibration)
            assert miss is not None  # of users, items are known
            released = data.num_items - np.asarray(miss.mean_missed)
            return "exact", np.asarray(miss.mean_missing_mass)[None], released[None]
        if who.name == flow_store.TWO_ROUNDS:
            from wgm_jax.set_union.two_round_trials import TwoRoundTrials

            runs = [
                TwoRoundTrials(data, flow, self._seed)
                for flow in flow_store.ready_two_rounds(calibration)
            ]
            found = [
                [run.conditional_means(trial) for run in runs] for trial in range(self._trials)
            ]
            return "integrated", *np.moveaxis(np.array(found), 2, 0)
        if not is_integrable(mechanism):
            from wgm_jax import simulate

            found = simulate(data, calibration, who.name, num_trials=self._trials, seed=self._seed)
            return "simulated", found.missing_mass, found.num_released.astype(np.float64)
        exact = is_deterministic(mechanism, data, self._bound)
        keep = self._bound if mechanism.clips else data.max_set_size
        batches = self._batches_at(min(keep, data.max_set_size))
        parts = [
            conditional_means(mechanism, calibration, batches, trials, rows)
            for trials, rows in batches
        ]
        masses = np.concatenate([part.missing_mass for part in parts])
        released = np.concatenate([part.num_released for part in parts])
        return "exact" if exact else "integrated", masses, released

    def _batches_at(self, keep: int) -> SubsetBatches:
        if keep not in self._batches:
            self._batches[keep] = SubsetBatches(
                self._data, keep, num_trials=self._trials, seed=self._seed
            )
        return self._batches[keep]
