"""Statistical audits, for laws too large to enumerate: by samples of outputs, and by [L2].

Both prove a violation up to a stated error probability; neither proves privacy.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float64

from experiments.audit.pairs import Pair, Run
from experiments.statistics.binomial import clopper_pearson_lower, clopper_pearson_upper
from experiments.statistics.means import mean_upper
from theory import Profile, UserItems, instance_lower_bound
from theory._check import check_beta, check_count, check_positive, invalid
from theory.calibration import Calibration
from wgm_jax.mechanism import Mechanism, grid_axes

_TRIALS_PER_CALL = 4096


@dataclass(frozen=True)
class SampledDelta:
    """Lower confidence limit of delta(eps) between two laws, from samples of their outputs.

    Attributes:
        low: delta(eps) is at least this, with probability at least 1 - alpha.
        direction: "first" if the event is more likely under the first law, else "second".
        hits: Trials inside the event under the likelier and the other law, of the tested half.
        trials: Trials of each law in the tested half.
        alpha: Error probability.
    """

    low: float
    direction: str
    hits: tuple[int, int]
    trials: tuple[int, int]
    alpha: float


def sampled_delta(
    first: Bool[np.ndarray, "trials items"],
    second: Bool[np.ndarray, "more_trials items"],
    *,
    eps: float,
    alpha: float,
) -> SampledDelta:
    """Lower confidence limit of delta(eps), in the direction that looks worse.

    On the first half of the trials the items are scored by the log-ratio of their release rates
    (naive Bayes), and direction and cut of the total score are chosen. On the other half the event
    is fixed, its two probabilities get exact binomial limits at alpha/2 each, and

        delta(eps) >= P(E) - e^eps Q(E) >= lower limit - e^eps * upper limit.

    Args:
        first: Released items of independent trials on one data set.
        second: The same on its neighbour.
        eps: Where.
        alpha: Error probability, in (0, 1).

    Returns:
        A `SampledDelta`; low is 0 where nothing was shown.

    Raises:
        InvalidInput: Fewer than four trials, or alpha outside (0, 1).

    Example:
        >>> certain, never = np.ones((400, 1), bool), np.zeros((400, 1), bool)
        >>> round(sampled_delta(certain, never, eps=1.0, alpha=1e-3).low, 3)
        0.861
    """
    check_beta(alpha, "alpha")
    if min(len(first), len(second)) < 4:
        invalid("trials", min(len(first), len(second)), "must be at least 4")
    halves = [(rows[: len(rows) // 2], rows[len(rows) // 2 :]) for rows in (first, second)]
    learned = [half[0] for half in halves]
    hit, missed = _log_ratios(*learned)
    scores = [np.where(rows, hit, missed).sum(axis=1) for rows in learned]
    chosen = max(
        (_best_cut(scores[i] * sign, scores[1 - i] * sign, eps) + (i, sign))
        for i, sign in ((0, 1.0), (1, -1.0))
    )
    _, cut, side, sign = chosen
    inside = [
        int(np.sum(np.where(half[1], hit, missed).sum(axis=1) * sign >= cut)) for half in halves
    ]
    sizes = [len(half[1]) for half in halves]
    likely = clopper_pearson_lower(inside[side], sizes[side], alpha=alpha / 2)
    rare = clopper_pearson_upper(inside[1 - side], sizes[1 - side], alpha=alpha / 2)
    return SampledDelta(
        low=max(0.0, float(likely - math.exp(eps) * rare)),
        direction=("first", "second")[side],
        hits=(inside[side], inside[1 - side]),
        trials=(sizes[side], sizes[1 - side]),
        alpha=alpha,
    )


def _log_ratios(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log-ratio of the rates of release, and of those of a miss, by item; half a count added."""
    rates = [(rows.sum(axis=0) + 0.5) / (len(rows) + 1) for rows in (first, second)]
    return np.log(rates[0] / rates[1]), np.log((1 - rates[0]) / (1 - rates[1]))


def _best_cut(likely: np.ndarray, other: np.ndarray, eps: float) -> tuple[float, float]:
    """The largest P(score >= cut) - e^eps Q(score >= cut) on the learning half, and its cut.

    One trial is added to Q, so that an event nobody saw is not thought to be impossible.
    """
    cuts = np.unique(likely)
    p = 1 - np.searchsorted(np.sort(likely), cuts) / likely.size
    q = 1 - np.searchsorted(np.sort(other), cuts) / other.size
    gains = p - math.exp(eps) * (q + 1 / other.size)
    best = int(np.argmax(gains))
    return float(gains[best]), float(cuts[best])


def sample_releases(
    mechanism: Mechanism,
    data: tuple[Run, ...],
    calibration: Calibration,
    *,
    num_items: int,
    num_trials: int,
    seed: int,
) -> Bool[np.ndarray, "trials items"]:
    """Released items of independent trials of a mechanism's own `run`, in float32.

    Args:
        mechanism: Any mechanism of `wgm_jax`.
        data: Users as runs; items are whole numbers below `num_items`.
        calibration: A single calibration.
        num_items: Columns of the result.
        num_trials: Number of trials.
        seed: Seed; neighbours need different ones.

    Example:
        >>> from theory import calibrate
        >>> from wgm_jax.wgm import WeightedGaussian
        >>> sample_releases(WeightedGaussian(), (Run((0,), 60), Run((2,))),
        ...     calibrate(eps=1.0, delta=1e-5, max_items_per_user=1),
        ...     num_items=3, num_trials=2, seed=0)
        array([[ True, False, False],
               [ True, False, False]])
    """
    num_trials = check_count("num_trials", num_trials)
    grid = calibration if calibration.shape else _as_grid(calibration)
    state = mechanism.prepare(user_items(data), grid)
    leaves, structure = jax.tree.flatten(state)
    leaves = [
        leaf[0] if axis == 0 else leaf for leaf, axis in zip(leaves, grid_axes(state), strict=True)
    ]
    run = jax.jit(functools.partial(_releases, mechanism, structure))
    root, parts = jax.random.key(seed, impl="threefry2x32"), []
    for start in range(0, num_trials, _TRIALS_PER_CALL):
        numbers = np.arange(start, start + _TRIALS_PER_CALL, dtype=np.uint32)
        parts.append(np.asarray(run(root, numbers, leaves)))
    found = np.concatenate(parts)[:num_trials]
    width = min(num_items, found.shape[1])
    released = np.zeros((num_trials, num_items), bool)
    released[:, :width] = found[:, :width]
    return released


def _releases(
    mechanism: Mechanism, structure: Any, root: jax.Array, numbers: jax.Array, leaves: list[Any]
) -> jax.Array:
    state = jax.tree.unflatten(structure, leaves)

    def one(number: jax.Array) -> jax.Array:
        return jnp.asarray(mechanism.run(jax.random.fold_in(root, number), state).released)

    return jax.lax.map(one, numbers, batch_size=64)


def _as_grid(calibration: Calibration) -> Calibration:
    names = ("eps", "delta", "max_items_per_user", "sigma", "threshold")
    values = {name: np.ravel(getattr(calibration, name)) for name in names}
    return Calibration(method=calibration.method, **values)


def user_items(data: tuple[Run, ...]) -> UserItems:
    """Runs of users as a data set whose items keep their numbers, so that neighbours agree.

    Example:
        >>> user_items((Run((0,), 2), Run((0, 2)))).frequencies
        array([3, 0, 1])
    """
    users = [run.items for run in data for _ in range(run.repeat)]
    flat = np.asarray([x for items in users for x in items], np.int32)
    offsets = np.cumsum([0, *(len(items) for items in users)], dtype=np.int64)
    return UserItems(items=flat, offsets=offsets)


def audit_by_samples(
    mechanism: Mechanism,
    pair: Pair,
    calibration: Calibration,
    *,
    num_trials: int,
    alpha: float = 1e-6,
    seed: int = 0,
) -> SampledDelta:
    """Lower confidence limit of delta at the claimed eps for one pair of neighbours.

    Resolves deltas of about 10/num_trials and more: gross errors, not shares of 1e-5.

    Args:
        mechanism: Any mechanism of `wgm_jax`.
        pair: The neighbours.
        calibration: A single calibration, the claim.
        num_trials: Trials on each of the two data sets.
        alpha: Error probability.
        seed: Seed.

    Returns:
        A `SampledDelta`.

    Raises:
        InvalidInput: Fewer than four trials, or an argument is out of range.

    Example:
        A mechanism that publishes everything shows the extra user's item:

        >>> from theory import calibrate
        >>> from wgm_jax.mechanism import Release
        >>> class Everything:
        ...     def prepare(self, data, calibration):
        ...         return Release(data.frequencies > 0)
        ...     def run(self, key, state):
        ...         return state
        >>> claim = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> pair = Pair(before=(Run((0,), 60),), extra=(1,))
        >>> round(audit_by_samples(Everything(), pair, claim, num_trials=400).low, 2)
        0.74
    """
    num_items = 1 + max(x for run in pair.data[0] for x in run.items)
    rows = [
        sample_releases(
            mechanism, data, calibration, num_items=num_items, num_trials=num_trials, seed=own
        )
        for data, own in zip(pair.data, (2 * seed, 2 * seed + 1), strict=True)
    ]
    return sampled_delta(rows[0], rows[1], eps=float(calibration.eps), alpha=alpha)


@dataclass(frozen=True)
class LowerBoundTest:
    """Whether a mechanism leaves less missing mass than any private one could.

    Attributes:
        lower_bound: [L2], least mean missing mass of any sound (eps, delta)-DP mechanism.
        mean: Mean of the trials.
        upper_limit: Upper confidence limit of the mean, at level 1 - alpha.
        alpha: Error probability.
    """

    lower_bound: float
    mean: float
    upper_limit: float
    alpha: float

    @property
    def violated(self) -> bool:
        """Whether the mechanism is not (eps, delta)-DP, or releases items that nobody holds."""
        return self.upper_limit < self.lower_bound


def compare_with_lower_bound(
    missing_mass: Float64[np.ndarray, " trials"],
    data: UserItems,
    *,
    eps: float,
    delta: float,
    alpha: float = 1e-6,
) -> LowerBoundTest:
    """Compare the missing mass of independent trials with [L2].

    Args:
        missing_mass: Of independent trials of the mechanism, as `wgm_jax.simulate` returns it.
        data: The data set.
        eps: Claimed eps.
        delta: Claimed delta.
        alpha: Error probability.

    Returns:
        A `LowerBoundTest`.

    Raises:
        InvalidInput: A missing mass is outside [0, 1], or an argument is out of range.

    Source: [L2]; Waudby-Smith and Ramdas (2024) for the limit of the mean.

    Example:
        >>> data = UserItems.from_sets([{0}] * 5)
        >>> compare_with_lower_bound(np.zeros(50), data, eps=1.0, delta=1e-5).violated
        True
    """
    profile = Profile.from_user_items(data, max_items_per_user=max(1, data.max_set_size))
    return LowerBoundTest(
        lower_bound=float(instance_lower_bound(profile, eps=eps, delta=delta).value),
        mean=float(np.mean(missing_mass)),
        upper_limit=float(mean_upper(np.asarray(missing_mass, np.float64), alpha=alpha)),
        alpha=float(check_positive("alpha", alpha)),
    )
