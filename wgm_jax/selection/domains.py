"""Domains found by the weighted Gaussian mechanism, trial by trial, for what selects from them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool

from theory import UserItems
from theory._check import invalid
from theory.calibration import Calibration
from wgm_jax import metrics, samplers
from wgm_jax.devices import Devices
from wgm_jax.engine import check_inputs, in_calls
from wgm_jax.padded import PaddedSampler
from wgm_jax.wgm import WeightedGaussian

# Calls per thread, unless memory asks for more: threads end together, and progress is seen.
_CALLS = 4


def released_sets(
    data: UserItems,
    calibration: Calibration,
    *,
    num_trials: int,
    seed: int = 0,
    first_trial: int = 0,
    memory_budget: int = 2**30,
) -> Iterator[Bool[np.ndarray, "trials points items"]]:
    """Items that the weighted Gaussian mechanism releases, in chunks of consecutive trials.

    They are those of `wgm_jax.simulate(..., sampler="padded")`: same draws, common to all points.

    Args:
        data: The data set.
        calibration: Grid of shape (points,) at one Delta0.
        num_trials: Number of trials.
        seed: Seed.
        first_trial: Index of the first trial.
        memory_budget: Bytes that the trials in flight may take; a quarter of it goes to a mask.

    Yields:
        Masks; their first axes add up to `num_trials`.

    Raises:
        InvalidInput: As `wgm_jax.simulate`.

    Example:
        >>> from theory.calibration import calibrate
        >>> from wgm_jax import synthetic
        >>> data = synthetic.equal_frequencies(num_items=3, frequency=40)
        >>> found = calibrate(eps=[1.0, 1e-3], delta=1e-5, max_items_per_user=1)
        >>> masks = next(released_sets(data, found, num_trials=2))
        >>> masks[0].tolist()
        [[True, True, True], [False, False, False]]
    """
    check_inputs(data, calibration)
    if len(calibration.shape) != 1:
        invalid("calibration", calibration.shape, "must have one axis, over points")
    where = Devices.of()
    callers = samplers.default_callers(where)
    sampler = PaddedSampler(
        WeightedGaussian(),
        data,
        calibration,
        seed=seed,
        devices=where,
        callers=callers,
        memory_budget=memory_budget,
        measure=metrics.released_words,
    )
    fitting = max(1, memory_budget // 4 // (calibration.shape[0] * data.num_items))
    share = max(sampler.trials_per_call, -(-num_trials // (_CALLS * callers)))
    for part in in_calls(sampler, first_trial, num_trials, min(fitting, share), callers):
        yield metrics.unpack_words(part["released"], data.num_items)
