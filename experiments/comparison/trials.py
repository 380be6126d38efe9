"""Trials of a set-union mechanism with the noise of its last round integrated out.

For given kept sets every item is released independently, with a probability that the mechanism
itself tells in float64 (the contract of `wgm_jax.set_union.frame`). So a trial draws subsets, and
in mechanisms of several rounds the releases of the earlier ones, and gives the conditional mean of
the missing mass instead of one more random number: far less spread, and the same mean. Where no
user is clipped and there is one round, nothing is random and one trial is exact.

Trial i is a function of the seed and i. Subsets are the same for all mechanisms, eps and
calibrations; noise of earlier rounds is the same for all eps.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Bool, Float64, Int32

from experiments.comparison.subsets import Subsets
from theory import UserItems
from theory.calibration import Calibration
from wgm_jax.set_union.frame import FramedMechanism
from wgm_jax.set_union.kept_sets import KeptSets

# Slots of all trials that are held at once, and what a weight step may take beside them.
_MOST_SLOTS = 2**27
_MEMORY = 2**29
_SUBSETS, _NOISE = range(2)


@dataclass(frozen=True, eq=False)
class ConditionalMeans:
    """One number per trial and eps; their means are those of the mechanism.

    Attributes:
        missing_mass: Conditional mean of the missing mass.
        num_released: Conditional mean of the number of released items.
    """

    missing_mass: Float64[np.ndarray, "trials points"]
    num_released: Float64[np.ndarray, "trials points"]


def is_integrable(mechanism: Any) -> bool:
    """Whether the trials of this module know how to run a mechanism."""
    return isinstance(mechanism, FramedMechanism) and getattr(mechanism, "order", None) in (
        None,
        "stored",
    )


def is_deterministic(mechanism: FramedMechanism, data: UserItems, bound: int) -> bool:
    """Whether all trials are the same number: the exact mean."""
    whole = not mechanism.clips or data.max_set_size <= bound
    return whole and mechanism.num_rounds == 1


class SubsetBatches:
    """Kept sets of all trials at one Delta0, in batches that fit into memory; drawn once for all.

    Args:
        data: The data set.
        max_items_per_user: Delta0; the largest set if users are not to be clipped.
        num_trials: Number of trials; one, if no user is clipped.
        seed: Seed.
    """

    def __init__(
        self, data: UserItems, max_items_per_user: int, *, num_trials: int, seed: int
    ) -> None:
        self.data = data
        self.seed = seed
        self.subsets = Subsets(data, max_items_per_user)
        self.num_trials = num_trials
        self._size = max(1, min(num_trials, _MOST_SLOTS // self.subsets.num_slots))

    def __iter__(self) -> Iterator[tuple[range, Int32[np.ndarray, "batch slots"]]]:
        """Trials and their kept sets; a single row where all trials keep everything."""
        if self._size >= self.num_trials or self.subsets.fixed:
            yield range(self.num_trials), self._all
            return
        for first in range(0, self.num_trials, self._size):
            trials = range(first, min(first + self._size, self.num_trials))
            yield trials, self._rows(trials)

    @functools.cached_property
    def _all(self) -> Int32[np.ndarray, "batch slots"]:
        """Kept for the next mechanism, where all fit into memory."""
        return self._rows(range(1 if self.subsets.fixed else self.num_trials))

    def _rows(self, trials: range) -> Int32[np.ndarray, "batch slots"]:
        draw = self.subsets.draw
        return np.stack([draw(_generator(self.seed, i, _SUBSETS, 0)) for i in trials])


def conditional_means(
    mechanism: FramedMechanism,
    calibration: Calibration,
    batches: SubsetBatches,
    trials: range,
    rows: Int32[np.ndarray, "batch slots"],
) -> ConditionalMeans:
    """Conditional means of some trials, given their kept sets.

    Args:
        mechanism: A mechanism of the frame with users in stored order.
        calibration: Grid of shape (points,).
        batches: Where the kept sets come from.
        trials: Numbers of the trials.
        rows: Their kept sets; a single row for all where nothing is clipped.

    Returns:
        `ConditionalMeans` of these trials; of one trial where all are equal.
    """
    parameters = mechanism.parameters(calibration)
    single = mechanism.num_rounds == 1
    if single and rows.shape[0] == 1:
        trials = trials[:1]
    parts = []
    step = _batch(mechanism, batches.subsets, len(calibration))
    for first in range(0, len(trials), step):
        some = trials[first : first + step]
        own = rows[first : first + step] if rows.shape[0] > 1 else rows
        run = _one_round if single else _all_rounds
        parts.append(run(mechanism, parameters, batches, some, own))
    mass, count = (np.concatenate(found) for found in zip(*parts, strict=True))
    return ConditionalMeans(mass, count)


def _one_round(
    mechanism: FramedMechanism,
    parameters: Any,
    batches: SubsetBatches,
    trials: range,
    rows: Int32[np.ndarray, "batch slots"],
) -> tuple[np.ndarray, np.ndarray]:
    hit, miss = _fates(mechanism, parameters.round(0), batches, rows, shared=True)
    return miss @ batches.data.frequencies / batches.data.num_pairs, hit.sum(axis=-1)


def _all_rounds(
    mechanism: FramedMechanism,
    parameters: Any,
    batches: SubsetBatches,
    trials: range,
    rows: Int32[np.ndarray, "batch slots"],
) -> tuple[np.ndarray, np.ndarray]:
    """Several rounds: all but the last are drawn."""
    data, subsets, seed = batches.data, batches.subsets, batches.seed
    rows = np.broadcast_to(rows, (len(trials), rows.shape[1]))
    hit, miss = _fates(mechanism, parameters.round(0), batches, rows, shared=True)
    released = np.zeros(hit.shape, bool)
    for index in range(1, mechanism.num_rounds):
        noise = [_generator(seed, i, _NOISE, index).random(data.num_items) for i in trials]
        released |= np.stack(noise)[:, None] < hit
        fresh = np.stack(
            [
                [
                    subsets.draw(_generator(seed, i, _SUBSETS, index), ~gone[data.items])
                    for gone in per_trial
                ]
                for i, per_trial in zip(trials, released, strict=True)
            ]
        )
        hit, miss = _fates(mechanism, parameters.round(index), batches, fresh, shared=False)
    # What was released is no longer in any set: hit is 0 there, miss 1.
    mass = np.where(released, 0.0, miss) @ data.frequencies / data.num_pairs
    return mass, (released + hit).sum(axis=-1)


def _fates(
    mechanism: FramedMechanism, now: Any, batches: SubsetBatches, rows: np.ndarray, *, shared: bool
) -> tuple[Float64[np.ndarray, "batch points items"], Float64[np.ndarray, "batch points items"]]:
    """Probability of release and of a miss of every item, in one round."""
    template = batches.subsets.template
    with jax.enable_x64(True):
        weights, support = _weigher(mechanism, shared)(template, rows, now)
        weights, support = np.asarray(weights), np.asarray(support)
    number = batches.data.num_items
    over_items = jax.tree.map(lambda leaf: np.asarray(leaf)[..., None], now)
    hit, miss = mechanism.probabilities(weights[..., :number], over_items)
    present: Bool[np.ndarray, ...] = support[..., :number]
    return np.where(present, hit, 0.0), np.where(present, miss, 1.0)


@functools.cache
def _weigher(mechanism: FramedMechanism, shared: bool) -> Callable[..., Any]:
    """Weight step over trials and points; `shared` if a trial has one kept set for all points."""

    def weigh(template: KeptSets, items: Any, now: Any) -> tuple[Any, Any]:
        sets = dataclasses.replace(template, items=items, kept=items < template.num_items)
        found = mechanism.weigh(sets, now)
        return found.weights, found.support

    over_points = jax.vmap(weigh, in_axes=(None, None if shared else 0, 0))
    return jax.jit(jax.vmap(over_points, in_axes=(None, 0, None)))


def _batch(mechanism: FramedMechanism, subsets: Subsets, points: int) -> int:
    """Trials that are weighed at once."""
    # A policy walks along the slots; the others hold some numbers for every slot and point.
    per_slot = 8 if mechanism.sequential else 32 * points
    per_item = 48 * points
    if mechanism.num_rounds > 1:
        per_slot += 8 * points
    one = per_slot * subsets.num_slots + per_item * subsets.template.num_items
    return max(1, _MEMORY // one)


def _generator(seed: int, trial: int, what: int, round_index: int) -> np.random.Generator:
    return np.random.default_rng([seed, trial, what, round_index])
