"""What the fast sampler asks of a mechanism: release probabilities by numbers of kept copies.

Many mechanisms differ in one thing only. Users with more than Delta0 items keep a uniform subset
of Delta0, the others keep all; then items come out independently, item x with a probability p_x(K)
where K users of the first kind keep it. Such a mechanism says p, and no more; how subsets are
drawn, which items need not be looked at, and what is counted is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64, Int64
from scipy.special import ndtr

from theory import UserItems
from theory.calibration import Calibration
from wgm_jax.mechanism import Mechanism


@runtime_checkable
class CountLaw(Protocol):
    """Release probabilities of all items on a grid of points, at one Delta0.

    They do not fall when one more user keeps the item.
    """

    @property
    def keep(self) -> int:
        """Contribution bound Delta0."""
        ...

    @property
    def num_points(self) -> int:
        """Points of the grid."""
        ...

    def chances(
        self, items: Int64[np.ndarray, " rows"], copies: Int64[np.ndarray, " rows"]
    ) -> tuple[Float64[np.ndarray, "rows points"], Float64[np.ndarray, "rows points"]]:
        """Release and miss probability, each with its own relative precision.

        Args:
            items: Indices of items.
            copies: How many users with more than Delta0 items keep them.
        """
        ...


@runtime_checkable
class CountMechanism(Protocol):
    """A mechanism that knows its law by numbers of kept copies."""

    def count_law(self, data: UserItems, calibration: Calibration) -> CountLaw:
        """The law on a data set, for a calibration of shape (num_points,)."""
        ...


def has_count_law(mechanism: Mechanism) -> bool:
    """Whether the mechanism's own class defines `count_law`.

    A subclass may have changed what it inherits, so it is run as it defines itself.
    """
    return "count_law" in vars(type(mechanism))


@dataclass(frozen=True, eq=False)
class WeightLaw:
    """Items whose release depends on a weight, to which every holder adds its share.

    Attributes:
        keep: Contribution bound Delta0.
        num_points: Points of the grid.
        base: Weight of every item from users with at most Delta0 items.
        share: What a user adds who keeps Delta0 items.
        tails: Release and miss probability of weights (rows, 1), each (rows, points).
    """

    keep: int
    num_points: int
    base: Float64[np.ndarray, " items"]
    share: float
    tails: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

    def chances(
        self, items: Int64[np.ndarray, " rows"], copies: Int64[np.ndarray, " rows"]
    ) -> tuple[Float64[np.ndarray, "rows points"], Float64[np.ndarray, "rows points"]]:
        """See `CountLaw`; what nobody keeps is never released."""
        weights = (self.base[items] + copies * self.share)[:, None]
        release, miss = self.tails(weights)
        return np.where(weights > 0, release, 0.0), np.where(weights > 0, miss, 1.0)


@dataclass(frozen=True, eq=False)
class GaussianLaw:
    """Weights with Gaussian noise: the law of `WeightLaw`, with noise that a sampler may draw.

    Attributes:
        keep: Contribution bound Delta0.
        base: Weight of every item from users with at most Delta0 items.
        share: What a user adds who keeps Delta0 items.
        sigma: Standard deviation of the noise.
        threshold: Threshold.
    """

    keep: int
    base: Float64[np.ndarray, " items"]
    share: float
    sigma: Float64[np.ndarray, " points"]
    threshold: Float64[np.ndarray, " points"]

    @property
    def num_points(self) -> int:
        """Points of the grid."""
        return self.sigma.size

    def chances(
        self, items: Int64[np.ndarray, " rows"], copies: Int64[np.ndarray, " rows"]
    ) -> tuple[Float64[np.ndarray, "rows points"], Float64[np.ndarray, "rows points"]]:
        """See `CountLaw`."""

        def tails(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            distance = (weights - self.threshold) / self.sigma
            return ndtr(distance), ndtr(-distance)

        law = WeightLaw(self.keep, self.num_points, self.base, self.share, tails)
        return law.chances(items, copies)


def base_weights(
    data: UserItems, max_items_per_user: int, share: Callable[[np.ndarray], np.ndarray]
) -> Float64[np.ndarray, " items"]:
    """Summed weight of every item from users with at most Delta0 items.

    Args:
        data: The data set.
        max_items_per_user: Delta0.
        share: What a user of so many items adds to each of them.
    """
    sizes = np.repeat(data.set_sizes, data.set_sizes)
    whole = sizes <= max_items_per_user
    # Summed in float64: a popular item adds up a million weights, float32 would lose per cents.
    shares = np.asarray(share(sizes[whole].astype(np.float64)))
    # Without any pair bincount returns integers.
    return np.bincount(data.items[whole], shares, minlength=data.num_items).astype(np.float64)
