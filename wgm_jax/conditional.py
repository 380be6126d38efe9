"""Rao-Blackwellised simulation: only the subsample is drawn, the noise is averaged exactly.

Given the weights H of one subsample, items are missed independently with probability
m(x | H) = Phi((T - H(x))/sigma), or 1 where H(x) = 0. So

    E[MM | H] = sum a(x) m(x | H),      Var[MM | H] = sum a(x)^2 m(x | H) (1 - m(x | H)),

the mean over trials of the first is an unbiased estimate of E[MM] with the variance of the
subsample only, and Var MM = E Var[MM | H] + Var E[MM | H].

Everything after the subsample is in float64: the number of kept copies, a whole number, is read
off the float32 weight, and the weight is put together again. Items without clipped holders weigh
the same in every trial; they are summed up once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64
from scipy.special import ndtr

from theory import UserItems
from theory._check import check_count, invalid
from theory.calibration import Calibration
from theory.zipf import plain
from wgm_jax.bits import seed_key
from wgm_jax.censored import contribution_bound
from wgm_jax.engine import check_inputs
from wgm_jax.mechanism import padded_length
from wgm_jax.wgm import WeightedGaussian, WgmState, base_histogram, draw

# Trials of one device call, a power of two; on the CPU a few, so that weights stay in the cache.
_CPU_BATCH, _GPU_BATCH = 8, 1024
_UNIT = 2.0**-23  # a float32 weight of 2^22 copies still tells how many they are


@dataclass(frozen=True, eq=False)
class ConditionalMoments:
    """Moments of the missing mass given the subsample, one per trial.

    Attributes:
        mean: E[MM | subsample]; relative error below 1e-12 where above 1e-100.
        variance: Var[MM | subsample], likewise.
        clipped: Whether some user holds more than Delta0 items. If not, the subsample is all data:
            `mean` is E[MM] in every trial, and its variance 0.
        seed: Seed of the run.
        first_trial: Index of the first trial.
        calibration: The calibration.
    """

    mean: Float64[np.ndarray, " num_trials *grid"]
    variance: Float64[np.ndarray, " num_trials *grid"]
    clipped: bool
    seed: int
    first_trial: int
    calibration: Calibration

    @property
    def num_trials(self) -> int:
        """Number of trials."""
        return self.mean.shape[0]

    @property
    def missing_mass(self) -> Any:
        """Estimate of E[MM], exact where nothing is clipped; a float or the grid's shape."""
        return plain(self.mean.mean(axis=0))

    @property
    def standard_error(self) -> Any:
        """Of `missing_mass`: 0 where nothing is clipped; NaN for one trial of clipped data."""
        return plain(np.sqrt(self._variance_of_mean / self.num_trials))

    @property
    def variance_of_missing_mass(self) -> Any:
        """Estimate of Var MM: mean of the variances and variance of the means."""
        return plain(self.variance.mean(axis=0) + self._variance_of_mean)

    @property
    def variance_reduction(self) -> Any:
        """Trials of plain simulation that one of these is worth: Var MM / Var E[MM | subsample].

        Infinite where nothing is clipped; NaN where the missing mass does not vary at all.
        """
        total, between = np.asarray(self.variance_of_missing_mass), self._variance_of_mean
        with np.errstate(divide="ignore", invalid="ignore"):
            return plain(total / between)

    @property
    def _variance_of_mean(self) -> np.ndarray:
        if not self.clipped:
            return np.zeros(self.mean.shape[1:])
        if self.num_trials == 1:
            return np.full(self.mean.shape[1:], np.nan)
        # Trials that agree have variance 0, not what rounding of their mean leaves.
        return np.asarray(np.var(self.mean - self.mean[0], axis=0, ddof=1))


def conditional_moments(
    data: UserItems,
    calibration: Calibration,
    *,
    num_trials: int | float | np.number,
    seed: int | float | np.number = 0,
    first_trial: int | float | np.number = 0,
    memory_budget: int | float | np.number = 2**30,
) -> ConditionalMoments:
    """Exact mean and variance of the missing mass given each of many subsamples.

    Trial i has the subsample of trial i of `simulate(..., sampler="padded")` at the same seed,
    whatever the number of trials. All points of a calibration grid share it.

    Args:
        data: The data set, below 2^31 pairs.
        calibration: From `theory.calibrate`; a grid of any shape at one Delta0.
        num_trials: Number of subsamples, at least 1.
        seed: Seed, 0 to 2^63 - 1.
        first_trial: Index of the first trial.
        memory_budget: Bytes that the trials in flight may take, beside the data themselves.

    Returns:
        A `ConditionalMoments` record.

    Raises:
        InvalidInput: An argument is out of range; the calibration does not keep its promise
            ([P2] re-derives delta), mixes several Delta0, or is not a `Calibration`; an item weighs
            so much that float32 does not tell its kept copies.

    Source:
        [E1] given the subsample; the law of total variance.

    Example:
        >>> from theory.calibration import calibrate
        >>> from wgm_jax import synthetic
        >>> data = synthetic.equal_frequencies(num_items=5, frequency=40)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> found = conditional_moments(data, noise, num_trials=10)
        >>> found.clipped, found.mean.shape, found.standard_error
        (False, (10,), 0.0)
    """
    num_trials = check_count("num_trials", num_trials)
    seed = check_count("seed", seed, minimum=0, maximum=2**63 - 1)
    # Trial indices are folded into the key as 32-bit words.
    last = 2**32 - 1 - num_trials - _GPU_BATCH
    first_trial = check_count("first_trial", first_trial, minimum=0, maximum=last)
    memory_budget = check_count("memory_budget", memory_budget)
    check_inputs(data, calibration)
    keep = contribution_bound(calibration)

    base = base_histogram(data, keep)  # `state.base` once more, in float64
    clipped = np.repeat(data.set_sizes > keep, data.set_sizes)
    holders = np.bincount(data.items[clipped], minlength=data.num_items)
    varies = np.flatnonzero(holders)
    mass = data.frequencies / data.num_pairs
    sigma, threshold = np.ravel(calibration.sigma), np.ravel(calibration.threshold)
    constant = np.setdiff1d(np.arange(data.num_items), varies, assume_unique=True)
    fixed = _fixed_moments(base[constant], mass[constant], sigma, threshold)

    moments = np.zeros((2, num_trials, sigma.size))
    if varies.size:
        _check_resolution(base[varies] + holders[varies] * keep**-0.5, keep)
        state = WeightedGaussian().prepare(data, calibration)
        padding = padded_length(varies.size) - varies.size
        items = np.pad(varies, (0, padding)).astype(np.int32)
        weights = np.pad(base[varies], (0, padding))
        masses = np.pad(mass[varies], (0, padding))  # padding has mass 0
        batch = _batch_size(state, items.size, memory_budget)
        key = seed_key(seed)
        # Float64 for these calls only; the caller's setting comes back, errors or not.
        with jax.enable_x64(True):
            held = jax.device_put((key, state, items, weights, masses, sigma, threshold))
            for start in range(0, num_trials, batch):
                found = _moments(batch, np.uint32(first_trial + start), *held)
                count = min(batch, num_trials - start)
                moments[:, start : start + count] = np.asarray(found)[:, :count]
    mean, variance = (moments + fixed[:, None]).reshape(2, num_trials, *calibration.shape)
    return ConditionalMoments(mean, variance, bool(varies.size), seed, first_trial, calibration)


def _fixed_moments(
    weights: np.ndarray, mass: np.ndarray, sigma: np.ndarray, threshold: np.ndarray
) -> np.ndarray:
    """Sums of a m and a^2 m (1 - m), (2, points), over items that weigh the same in all trials."""
    found = np.zeros((2, sigma.size))
    for point, (s, t) in enumerate(zip(sigma, threshold, strict=True)):
        z = (t - weights) / s
        miss = ndtr(z)
        found[:, point] = mass @ miss, mass**2 @ (miss * ndtr(-z))
    return found


def _check_resolution(largest: np.ndarray, keep: int) -> None:
    """Rounding a float32 weight to whole copies must have one answer, with a factor 4 to spare."""
    copies = float(largest.max() * keep**0.5)
    if copies * _UNIT > 0.125:
        accepted = "must be at most 2^20 for the heaviest item, so that float32 tells kept copies"
        invalid("weight * Delta0^(1/2)", copies, accepted)


def _batch_size(state: WgmState, num_items: int, memory_budget: int) -> int:
    """Trials of one call, a power of two: a trial takes about the state and 64 bytes an item."""
    per_trial = sum(leaf.nbytes for leaf in jax.tree.leaves(state)) + 64 * num_items
    most = _CPU_BATCH if jax.default_backend() == "cpu" else _GPU_BATCH
    return 1 << (min(most, max(1, memory_budget // per_trial)).bit_length() - 1)


@partial(jax.jit, static_argnums=0)
def _moments(
    batch: int,
    first: jax.Array,
    key: jax.Array,
    state: WgmState,
    items: jax.Array,
    base: jax.Array,
    mass: jax.Array,
    sigma: jax.Array,
    threshold: jax.Array,
) -> jax.Array:
    """Sums of a m and a^2 m (1 - m) over items that vary: (2, batch, points) float64."""

    def trial(number: jax.Array) -> jax.Array:
        weights, _ = draw(jax.random.fold_in(key, number), state)
        above = (weights - jnp.asarray(state.base))[items].astype(jnp.float64)
        kept = jnp.round(above / jnp.asarray(state.weight).astype(jnp.float64))
        exact = base + kept / jnp.sqrt(jnp.asarray(state.keep).astype(jnp.float64))

        def point(noise: tuple[jax.Array, jax.Array]) -> jax.Array:
            z = (noise[1] - exact) / noise[0]
            some = exact > 0
            miss = jnp.where(some, jax.scipy.special.ndtr(z), 1.0)
            hit = jnp.where(some, jax.scipy.special.ndtr(-z), 0.0)
            return jnp.stack([jnp.sum(mass * miss), jnp.sum(mass**2 * miss * hit)])

        return jax.lax.map(point, (sigma, threshold)).T

    numbers = first + jnp.arange(batch, dtype=jnp.uint32)
    return jnp.swapaxes(jax.vmap(trial)(numbers), 0, 1)
