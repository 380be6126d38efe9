"""How much any better mechanism could still win on given data."""

from __future__ import annotations

from typing import Any

import numpy as np

from theory.calibration import Calibration
from theory.lower_bounds import instance_lower_bound
from theory.miss_probability import miss_probabilities
from theory.profile import Profile
from theory.zipf import plain


def oracle_gap(profile: Profile, calibration: Calibration) -> Any:
    """E[MM] of the WGM over the least that any sound private mechanism leaves on these data.

    The least is attained, by a mechanism that knows the data ([L2]); the ratio is the price of not
    knowing them, and an upper bound on what any better mechanism could win here.

    Args:
        profile: Data at one Delta0, set sizes of the items' holders known.
        calibration: Noise and threshold at the same Delta0, any shape.

    Returns:
        float or float64 array of the calibration's shape, at least 1; inf where the bound is 0.

    Raises:
        InvalidInput: The set sizes are not known, or the calibration is for another Delta0.

    Source:
        [E2] over [L2].

    Example:
        >>> from theory.calibration import calibrate
        >>> data = Profile.from_frequencies([30, 30, 9], max_set_size=1, max_items_per_user=1)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> round(oracle_gap(data, noise), 3)
        1.048
    """
    mean = np.asarray(miss_probabilities(profile, calibration).mean_missing_mass)
    least = np.asarray(
        instance_lower_bound(profile, eps=calibration.eps, delta=calibration.delta).value
    )
    gap = np.full(mean.shape, np.inf)
    np.divide(mean, least, out=gap, where=least > 0)
    return plain(gap)
