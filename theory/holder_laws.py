"""Holders who are subsampled, per item: the law of K, how many of them keep it, by its moments.

The weight of an item is H = h0 + K/sqrt(Delta0): h0 from the users who keep all they hold, K the
number of the others who keep this item, a sum of independent Bernoulli(Delta0/|W_i|).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr

# Probabilities below exp(-95) = 6e-42 are reported as 0: the promise is 1e-40 absolute there.
NEVER = 95.0
# Elements of a work array: a few of them fit in the second-level cache.
CHUNK = 2**18


@dataclass(frozen=True, eq=False)
class HolderLaws:
    """Holders of all classes at one Delta0.

    Attributes:
        root: sqrt(Delta0).
        base: h0, weight from the holders who keep all they hold.
        table: Sparse counts, (classes, set sizes above Delta0).
        keep: Per set size the chance p of keeping the item.
        drop: 1 - p.
        holders: Per class the number of holders, sum of its row.
        mean: E[K].
        variance: Var[K].
        log_none: ln P(K = 0).
    """

    root: float
    base: np.ndarray
    table: Any
    keep: np.ndarray
    drop: np.ndarray
    holders: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    log_none: np.ndarray

    @classmethod
    def of(
        cls,
        base: np.ndarray,
        offsets: np.ndarray,
        sizes: np.ndarray,
        counts: np.ndarray,
        max_items_per_user: int,
    ) -> HolderLaws:
        """From the entries of the classes, see `theory.weight_laws.noisy_tails`."""
        values, column = _distinct(sizes)
        keep = max_items_per_user / values
        drop = (values - max_items_per_user) / values
        with np.errstate(divide="ignore"):
            log_drop = np.where(keep < 0.5, np.log1p(-keep), np.log(drop))
        shape = (base.size, max(1, values.size))
        table = csr_array((counts.astype(np.float64), column, offsets), shape=shape)
        if not values.size:
            keep, drop, log_drop = np.zeros(1), np.ones(1), np.zeros(1)
        columns = np.stack([np.ones_like(keep), keep, keep * drop, log_drop], axis=1)
        holders, mean, variance, log_none = np.ascontiguousarray((table @ columns).T)
        root = float(np.sqrt(max_items_per_user))
        return cls(root, base, table, keep, drop, holders, mean, variance, log_none)


def _distinct(sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct sizes as float64, ascending, and the place of every size among them."""
    if not sizes.size:
        return np.zeros(0), np.zeros(0, np.int64)
    largest = int(sizes.max())
    if largest > 4 * sizes.size + 10**6:
        values, column = np.unique(sizes, return_inverse=True)
        return values.astype(np.float64), column.astype(np.int64)
    # A table over all sizes spares sorting the entries.
    seen = np.zeros(largest + 1, bool)
    seen[sizes] = True
    values = np.flatnonzero(seen)
    place = np.zeros(largest + 1, np.int64)
    place[values] = np.arange(values.size)
    return values.astype(np.float64), place[sizes]


def normal_tails(
    weight: np.ndarray, sigma: np.ndarray, threshold: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Miss and hit where the weight is known: (points, *weight.shape)."""
    shape = (-1,) + (1,) * weight.ndim
    margin = (threshold.reshape(shape) - weight) / sigma.reshape(shape)
    small = ndtr(-np.abs(margin))
    large = 1 - small  # at least 1/2: accurate too
    above = margin > 0
    return np.where(above, large, small), np.where(above, small, large)
