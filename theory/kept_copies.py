"""How likely the bad events of Lemmas C.3 and C.4 are on given data, by union bounds.

The lemmas bound these events for all data at once; here each item pays what it really risks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, xlogy

from theory.calibration import Calibration
from theory.lemmas import noise_of
from theory.profile import Profile
from theory.zipf import plain


def few_copies_probability(profile: Profile, level: float | int) -> float:
    """At most how likely some frequent item keeps fewer than p* N(x)/2 copies.

    Of an item's N(x) copies those of users who keep all they hold are sure; of the others the
    number kept, K, is a sum of independent Bernoullis of mean mu, so for k < mu
    P(K <= k) <= exp(-(k ln(k/mu) - k + mu)).

    Args:
        profile: Data at one Delta0, set sizes of the items' holders known.
        level: Frequency from which an item counts as frequent.

    Returns:
        Sum over items with N(x) >= level, at most 1.

    Raises:
        InvalidInput: The set sizes are not known.

    Source:
        The event of Lemma C.3, its tail for Poisson binomials.

    Example:
        >>> from theory import UserItems
        >>> data = UserItems.from_sets([{0, user} for user in range(1, 400)])
        >>> few_copies_probability(Profile.from_user_items(data, max_items_per_user=1), 300) < 1e-10
        True
    """
    classes = profile.item_classes
    offsets, sizes, counts = classes.clipped(profile.max_items_per_user)
    entries = np.repeat(np.arange(classes.frequencies.size), np.diff(offsets))
    length = classes.frequencies.size
    mean = np.bincount(entries, counts * (profile.max_items_per_user / sizes), length)
    clipped = np.bincount(entries, counts, length)
    # Fewer than p* N/2 in all: at most this many of the clipped ones.
    most = np.ceil(profile.keep_probability * classes.frequencies / 2) - 1
    most = most - (classes.frequencies - clipped)
    heavy = (classes.frequencies >= level) & (most >= 0)
    k, mu = most[heavy], mean[heavy]
    exponent = np.where(k < mu, xlogy(k, k / np.maximum(mu, 1e-300)) - k + mu, 0.0)
    return min(1.0, float(classes.multiplicity[heavy] @ np.exp(-exponent)))


def heavy_miss_probability(profile: Profile, calibration: Calibration, level: Any) -> Any:
    """At most how likely some item of weight H(x) above a level is missed.

    Given H(x) > level, an item is missed with probability below Phi((T - level)/sigma), and only
    items whose largest possible weight exceeds the level count.

    Args:
        profile: Data at one Delta0, set sizes of the items' holders known.
        calibration: Noise and threshold at the same Delta0, any shape.
        level: Weight, of the calibration's shape.

    Returns:
        float or float64 array of the calibration's shape, at most 1.

    Raises:
        InvalidInput: The set sizes are not known, or the calibration is for another Delta0.

    Source:
        The event of Lemma C.4.

    Example:
        >>> from theory.calibration import calibrate
        >>> data = Profile.from_frequencies([99, 9], max_set_size=1, max_items_per_user=1)
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> round(heavy_miss_probability(data, noise, noise.threshold + 2 * noise.sigma), 4)
        0.0228
    """
    classes = profile.item_classes
    sigma, threshold = (np.asarray(part) for part in noise_of(profile, calibration))
    weights = classes.largest_weight(profile.max_items_per_user)
    above = np.asarray(level)[..., None] < weights
    count = above @ classes.multiplicity.astype(np.float64)
    return plain(np.minimum(1.0, count * ndtr((threshold - level) / sigma)))
