"""Why nothing comes out: the largest possible weight against the threshold. No JAX."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from theory import Profile, UserItems
from theory._check import invalid
from theory.calibration import Calibration


@dataclass(frozen=True)
class Censoring:
    """What the threshold lets through on one data set, at the easiest point of a grid.

    An item whose weight equals the threshold is released with probability 1/2, so the threshold is
    the smallest weight that is released more often than not.

    Attributes:
        largest_weight: Largest weight that any item can have, over all subsamples.
        threshold: Smallest threshold of the grid.
        max_items_per_user: Contribution bound Delta0.
        share_possible: Share of items that can reach the threshold.
        users_with_full_sets: Users with Delta0 items or more that it takes to reach the threshold.
        users_with_one_item: Users with a single item that it takes.
    """

    largest_weight: float
    threshold: float
    max_items_per_user: int
    share_possible: float
    users_with_full_sets: int
    users_with_one_item: int

    @property
    def everything(self) -> bool:
        """True if no item can reach the threshold: only noise ever releases anything."""
        return self.largest_weight < self.threshold

    @property
    def message(self) -> str:
        """The arithmetic in one line."""
        reach = "nothing can be released but by chance" if self.everything else "some items pass"
        return (
            f"{reach}: the largest weight is {self.largest_weight:.1f}, the threshold "
            f"{self.threshold:.1f} (Δ0 = {self.max_items_per_user}); an item needs "
            f"{self.users_with_full_sets} users with full sets, {self.users_with_one_item} with "
            "one item"
        )


def censoring(data: UserItems | Profile, calibration: Calibration) -> Censoring:
    """Largest possible weights of a data set against the threshold of a calibration.

    Args:
        data: The data set, or a profile of it that knows the holders' set sizes.
        calibration: One calibration or a grid at a single Delta0; of a grid the smallest threshold
            counts.

    Returns:
        A `Censoring`.

    Raises:
        InvalidInput: The grid has several Delta0.

    Example:
        >>> from theory.calibration import calibrate
        >>> data = UserItems.from_sets([{item} for item in "aaab"])
        >>> found = censoring(data, calibrate(eps=1.0, delta=1e-6, max_items_per_user=10))
        >>> found.largest_weight, found.everything, found.users_with_full_sets
        (3.0, True, 75)
    """
    bound = contribution_bound(calibration)
    threshold = float(np.min(calibration.threshold))
    classes = data.item_classes
    largest = classes.largest_weight(bound)
    return Censoring(
        largest_weight=float(largest.max()),
        threshold=threshold,
        max_items_per_user=bound,
        share_possible=float(classes.multiplicity @ (largest >= threshold) / classes.num_items),
        users_with_full_sets=int(np.ceil(threshold * np.sqrt(bound))),
        users_with_one_item=int(np.ceil(threshold)),
    )


def contribution_bound(calibration: Calibration) -> int:
    """The one Delta0 of a calibration grid: draws are shared, so it must not vary.

    Raises:
        InvalidInput: The grid mixes several values.
    """
    values = np.unique(calibration.max_items_per_user)
    if values.size != 1:
        accepted = "must be one value per call: trials of a grid share their draws"
        invalid("max_items_per_user", values.tolist(), accepted)
    return int(values[0])
