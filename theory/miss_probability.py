"""Exact miss probabilities of every item, and what follows from them by adding up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from theory.bernoulli_sums import LatticeLaw, bernoulli_sum_law
from theory.calibration import Calibration
from theory.item_classes import ItemClasses
from theory.lemmas import noise_of
from theory.profile import Profile
from theory.weight_laws import log_none_kept, noisy_tails
from theory.zipf import plain


@dataclass(frozen=True, eq=False)
class MissProbabilities:
    """Miss probability of the items of every class, at one Delta0 and a grid of calibrations.

    Attributes:
        miss: m(x), the probability that an item of the class is not released.
        hit: 1 - m(x), with its own relative precision.
        frequencies: Users holding an item of the class.
        multiplicity: Items in the class.
        num_pairs: User-item pairs N.
        independent: Items are missed independently, as they are where no user is clipped.

    Example:
        >>> misses = MissProbabilities(
        ...     miss=np.array([[0.0, 0.5], [0.5, 1.0]]), hit=np.array([[1.0, 0.5], [0.5, 0.0]]),
        ...     frequencies=np.array([2, 1]), multiplicity=np.array([1, 2]), num_pairs=4,
        ...     independent=False,
        ... )
        >>> misses.mean_missing_mass, misses.at(0).mean_missed, misses.at(1).mean_power(2.0)
        (array([0.25, 0.75]), 1.0, 0.25)
    """

    miss: Float64[np.ndarray, "*grid classes"]
    hit: Float64[np.ndarray, "*grid classes"]
    frequencies: Int64[np.ndarray, " classes"]
    multiplicity: Int64[np.ndarray, " classes"]
    num_pairs: int
    independent: bool

    @classmethod
    def of(cls, profile: Profile, miss: np.ndarray, hit: np.ndarray) -> MissProbabilities:
        """Probabilities of the classes of a profile, of shape (*grid, classes)."""
        classes = profile.item_classes
        return cls(
            miss,
            hit,
            classes.frequencies,
            classes.multiplicity,
            profile.num_pairs,
            not profile.clipped,
        )

    def at(self, index: Any) -> MissProbabilities:
        """One place of the grid, or a part of it."""
        return MissProbabilities(
            self.miss[index],
            self.hit[index],
            self.frequencies,
            self.multiplicity,
            self.num_pairs,
            self.independent,
        )

    def independent_law(self, index: tuple[int, ...] = ()) -> LatticeLaw:
        """Law of the missed pairs if items were missed independently, at one grid point.

        Made once: quantiles and certificates from both sides all look at it.

        Raises:
            InvalidInput: The window of the law is too long.
        """
        if index not in self._laws:
            self._laws[index] = bernoulli_sum_law(
                self.frequencies, self.miss[index], self.hit[index], self.multiplicity
            )
        return self._laws[index]

    @cached_property
    def _laws(self) -> dict[tuple[int, ...], LatticeLaw]:
        return {}

    @property
    def mean_missing_mass(self) -> Any:
        """E[MM] = sum a(x) m(x) ([E2]): float, or float64 of the grid's shape."""
        return self.mean_power(1.0)

    @property
    def mean_missed(self) -> Any:
        """Mean number of missed items: float, or float64 of the grid's shape."""
        return plain(self.miss @ self.multiplicity.astype(np.float64))

    def mean_power(self, p: float) -> Any:
        """E[MM_p^p] = sum a(x)^p m(x), p > 0: float, or float64 of the grid's shape."""
        return plain(self.miss @ ((self.frequencies / self.num_pairs) ** p * self.multiplicity))


def miss_probabilities(profile: Profile, calibration: Calibration) -> MissProbabilities:
    """Exact miss probabilities of the WGM for any Delta0 and a whole grid of calibrations.

    Args:
        profile: Data at one Delta0, with the set sizes of the items' holders known.
        calibration: Noise and threshold at the same Delta0, any shape.

    Returns:
        `MissProbabilities` on the grid of the calibration; each probability to 1e-10 relative where
        it is above 1e-30, and to 1e-40 absolute below.

    Raises:
        InvalidInput: The set sizes are not known, or a calibration for another Delta0.

    Source:
        [E1], [E2].

    Example:
        >>> from theory.calibration import calibrate
        >>> from theory.user_items import UserItems
        >>> data = UserItems.from_sets([{0, i} for i in range(1, 41)])
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> misses = miss_probabilities(Profile.from_user_items(data, max_items_per_user=1), noise)
        >>> misses.frequencies, misses.miss.round(6)
        (array([40,  1]), array([0.356576, 0.999998]))
        >>> round(misses.mean_missing_mass, 6)
        0.678287
    """
    classes = profile.item_classes
    sigma, threshold = noise_of(profile, calibration)
    miss, hit = noisy_tails(
        classes.base_weight(profile.max_items_per_user),
        *classes.clipped(profile.max_items_per_user),
        max_items_per_user=profile.max_items_per_user,
        sigma=np.ravel(np.asarray(sigma, np.float64)),
        threshold=np.ravel(np.asarray(threshold, np.float64)),
    )
    shape = (*calibration.shape, classes.frequencies.size)
    return MissProbabilities.of(profile, miss.reshape(shape), hit.reshape(shape))


def exact_mean(profile: Profile, calibration: Calibration) -> Any:
    """Exact mean of the missing mass, E[MM] = sum a(x) m(x), for any Delta0.

    Args:
        profile: Data at one Delta0, with the set sizes of the items' holders known.
        calibration: Noise and threshold at the same Delta0, any shape.

    Returns:
        Float, or float64 of the calibration's shape; to 1e-10 relative where above 1e-30.

    Raises:
        InvalidInput: The set sizes are not known, or a calibration for another Delta0.

    Source:
        [E2].

    Example:
        >>> from theory.calibration import calibrate
        >>> from theory.user_items import UserItems
        >>> data = UserItems.from_sets([{0, i} for i in range(1, 41)])
        >>> noise = calibrate(eps=[1.0, 10.0], delta=1e-5, max_items_per_user=1)
        >>> exact_mean(Profile.from_user_items(data, max_items_per_user=1), noise).round(6)
        array([0.678287, 0.499999])
    """
    return miss_probabilities(profile, calibration).mean_missing_mass


def exact_means(classes: ItemClasses, calibration: Calibration) -> Any:
    """Exact mean of the missing mass on a grid that may mix contribution bounds.

    Args:
        classes: Holders of the items by set size.
        calibration: Any shape; each entry with a Delta0 of its own.

    Returns:
        Float, or float64 of the calibration's shape.

    Source:
        [E2].

    Example:
        >>> from theory.calibration import calibrate
        >>> from theory.user_items import UserItems
        >>> data = UserItems.from_sets([{0, i} for i in range(1, 41)])
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=[1, 2])
        >>> exact_means(data.item_classes, noise).round(4)
        array([0.6783, 0.5028])
    """
    bounds = np.asarray(calibration.max_items_per_user)
    means = np.empty(bounds.shape)
    for bound in np.unique(bounds).tolist():
        profile = Profile.from_classes(classes, max_items_per_user=bound)
        at = bounds == bound
        means[at] = exact_mean(profile, calibration[at] if calibration.shape else calibration)
    return plain(means)


def loss_probabilities(profile: Profile) -> MissProbabilities:
    """Probability that subsampling alone loses an item: no holder keeps it.

    Losses of different items are negatively associated, so all certificates apply to them.

    Args:
        profile: Data at one Delta0, with the set sizes of the items' holders known.

    Returns:
        `MissProbabilities` of one point: `miss` is P(K = 0) where every holder has more than Delta0
        items, and 0 elsewhere.

    Raises:
        InvalidInput: The set sizes are not known.

    Source:
        [E1] without noise and threshold.

    Example:
        >>> from theory.user_items import UserItems
        >>> data = UserItems.from_sets([{0, 1}, {0, 2}])
        >>> loss_probabilities(Profile.from_user_items(data, max_items_per_user=1)).miss
        array([0.25, 0.5 ])
    """
    classes = profile.item_classes
    base = classes.base_weight(profile.max_items_per_user)
    logs = log_none_kept(
        base,
        *classes.clipped(profile.max_items_per_user),
        max_items_per_user=profile.max_items_per_user,
    )
    lost = base == 0
    with np.errstate(under="ignore"):
        miss, hit = np.where(lost, np.exp(logs), 0.0), np.where(lost, -np.expm1(logs), 1.0)
    return MissProbabilities.of(profile, miss, hit)
