"""The weighted Gaussian mechanism as it is written down: a loop over users, a dict of weights.

One call of `choice` per user, as in the code that usually accompanies papers on the subject. It is
measured to show what writing it differently is worth, and is never used for results.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64

from theory import Calibration, UserItems


class UserLoopTrials:
    """Trials of the weighted Gaussian mechanism on one data set, user by user.

    Args:
        data: The data set.
        calibration: One point.
        seed: Seed of the generator.

    Example:
        >>> data = UserItems.from_sets([{0, 1}, {0}] * 100)
        >>> from theory import calibrate
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> UserLoopTrials(data, noise).missing_masses(3).shape
        (3,)
    """

    def __init__(self, data: UserItems, calibration: Calibration, *, seed: int = 0) -> None:
        self._rng = np.random.default_rng(seed)
        self._keep = int(calibration.max_items_per_user)
        self._sigma, self._threshold = float(calibration.sigma), float(calibration.threshold)
        self._sets = np.split(data.items, data.offsets[1:-1])
        self._frequencies, self._num_pairs = data.frequencies.tolist(), data.num_pairs

    def missing_masses(self, count: int) -> Float64[np.ndarray, " count"]:
        """Missing masses of the next `count` trials."""
        return np.array([self.missing_mass() for _ in range(count)])

    def missing_mass(self) -> float:
        """Missing mass of the next trial."""
        weights: dict[int, float] = {}
        for items in self._sets:
            kept = self._rng.choice(items, min(self._keep, items.size), replace=False)
            weight = 1 / math.sqrt(kept.size)
            for item in kept.tolist():
                weights[item] = weights.get(item, 0.0) + weight
        found = 0
        for item, weight in weights.items():
            if weight + self._rng.normal(0.0, self._sigma) > self._threshold:
                found += self._frequencies[item]
        return 1.0 - found / self._num_pairs
