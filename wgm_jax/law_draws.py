"""Missing masses drawn from their exact law, where nobody is clipped and nothing else is asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from theory import Profile, UserItems, miss_probabilities, missing_mass_law
from theory._check import check_count, invalid
from theory.calibration import Calibration, verify_calibration
from wgm_jax.bits import key_words, threefry, uniform

# Keeps these draws apart from those of the samplers.
_TAG = np.uint32(0x6C617773)


@dataclass(frozen=True, eq=False)
class LawDraws:
    """Independent draws of the missing mass.

    Attributes:
        missing_mass: (trials, *grid) shares, whole numbers over N.
        seed: Seed; draw i depends on the seed and i only.
        first_trial: Index i of the first draw.
        sampler: How they were drawn.
        calibration: The calibration.
        error: Largest bound on the error of a law's cdf, in total variation per draw and point.
    """

    missing_mass: Float64[np.ndarray, " num_trials *grid"]
    seed: int
    first_trial: int
    sampler: str
    calibration: Calibration
    error: float


def missing_mass_draws(
    data: UserItems | Profile,
    calibration: Calibration,
    *,
    num_trials: int | float | np.number,
    seed: int | float | np.number = 0,
    first_trial: int | float | np.number = 0,
) -> LawDraws:
    """Missing masses of independent runs of the WGM, without running it: a table and a lookup.

    The exact law is made once per grid point; a draw is its quantile at a uniform number of 53
    bits, the same for all points of the grid. Where users are clipped the law is not known exactly:
    use `wgm_jax.simulate`.

    Args:
        data: The data set, or a profile that knows the holders' set sizes.
        calibration: From `theory.calibrate`, any grid at one Delta0 of at least the largest set.
        num_trials: Number of draws, at least 1.
        seed: Seed, 0 to 2^63 - 1.
        first_trial: Index of the first draw.

    Returns:
        `LawDraws`.

    Raises:
        InvalidInput: An argument is out of range, users are clipped, or a law's window is too long.

    Source:
        [E3].

    Example:
        >>> from theory.calibration import calibrate
        >>> from wgm_jax import synthetic
        >>> data = synthetic.equal_frequencies(num_items=5, frequency=18)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> draws = missing_mass_draws(data, noise, num_trials=10_000)
        >>> draws.missing_mass.shape, 0.45 < float(draws.missing_mass.mean()) < 0.6
        ((10000,), True)
    """
    count = check_count("num_trials", num_trials, maximum=10**9)
    seed = check_count("seed", seed, minimum=0, maximum=2**63 - 1)
    first = check_count("first_trial", first_trial, minimum=0, maximum=2**32 - 1 - count)
    verify_calibration(calibration)
    bounds = np.unique(calibration.max_items_per_user)
    if bounds.size != 1 or bounds[0] < data.max_set_size:
        accepted = f"must be one value of at least the largest set, {data.max_set_size}"
        invalid("max_items_per_user", bounds.tolist(), accepted)
    bound = int(bounds[0])
    profile = Profile.from_classes(data.item_classes, max_items_per_user=bound)
    miss = miss_probabilities(profile, calibration)
    levels = _uniforms(seed, first, count)
    mass = np.empty((count, *calibration.shape))
    error = 0.0
    for index in np.ndindex(*calibration.shape):
        law = missing_mass_law(miss.at(index))
        places = np.searchsorted(np.cumsum(law.pmf), levels)
        values = law.first + np.minimum(places, law.pmf.size - 1)
        mass[(slice(None), *index)] = values / profile.num_pairs
        error = max(error, law.error)
    return LawDraws(mass, seed, first, "exact law [E3], threefry2x32", calibration, error)


def _uniforms(seed: int, first: int, count: int) -> np.ndarray:
    """Uniform on (0, 1), 53 bits: a function of the seed and the index alone."""
    numbers = np.arange(first, first + count, dtype=np.uint32)
    return uniform(threefry(key_words(seed), numbers, np.full(count, _TAG))) + 2.0**-54
