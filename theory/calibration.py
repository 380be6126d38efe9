"""From (eps, delta, Delta0) to the weighted Gaussian mechanism's noise and threshold, and back.

Two methods, one accountant. `split` is the paper's calibration (Theorem 3.2, from Gopi et al.
2020): delta/2 for each of the two conditions. `full` lets each condition use all of delta ([P3]):
by the accountant [P2] the conditions do not add up, so `split` spends exactly delta/2.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import ndtr, ndtri

from theory._check import (
    Reals,
    check_delta,
    check_eps,
    check_max_items_per_user,
    check_positive,
    invalid,
)
from theory.gaussian import (
    PRIVATE_MARGIN,
    Floats,
    float_or_array,
    raw_gaussian_delta,
    raw_gaussian_sigma,
)

Method = Literal["split", "full"]
METHODS: tuple[str, ...] = get_args(Method)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Noise and threshold of the weighted Gaussian mechanism, with the guarantee they serve.

    Made by `calibrate`. Scalars are Python numbers; a grid holds read-only arrays of one shape.
    A record can be built by hand, so whoever relies on its guarantee calls `verify_calibration`.

    Attributes:
        eps: Privacy parameter, float or float64 array.
        delta: Privacy parameter, float or float64 array.
        max_items_per_user: Contribution bound Delta0, int or int64 array.
        method: "split" ([P1], the paper's) or "full" ([P3]).
        sigma: Noise standard deviation, in units of user weight (each user's vector has L2 norm
            at most 1), float or float64 array.
        threshold: T, in the same units, float or float64 array.
    """

    eps: Any
    delta: Any
    max_items_per_user: Any
    method: str
    sigma: Any
    threshold: Any

    def __post_init__(self) -> None:
        check_method(self.method)
        checked = {
            "eps": check_eps(self.eps),
            "delta": check_delta(self.delta),
            "max_items_per_user": check_max_items_per_user(self.max_items_per_user),
            "sigma": check_positive("sigma", self.sigma),
            "threshold": _check_threshold(self.threshold),
        }
        for name, values in zip(checked, np.broadcast_arrays(*checked.values()), strict=True):
            values = values.copy()
            values.flags.writeable = False
            object.__setattr__(self, name, values if values.ndim else values.item())

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the grid, () for a single calibration."""
        return np.shape(self.sigma)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a single calibration has no length")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Calibration:
        """The calibration at one place of the grid, or a part of the grid."""
        if not self.shape:
            raise IndexError("a single calibration cannot be indexed")
        return Calibration(
            self.eps[index],
            self.delta[index],
            self.max_items_per_user[index],
            self.method,
            self.sigma[index],
            self.threshold[index],
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Calibration):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)
        )

    def __hash__(self) -> int:
        return hash((self.method, np.asarray(self.sigma).tobytes(), np.shape(self.sigma)))

    @property
    def spent_delta(self) -> float | np.ndarray:
        """Exact delta at this eps by [P2]: delta for `full`, delta/2 for `split`."""
        return spent_delta(
            eps=self.eps,
            sigma=self.sigma,
            threshold=self.threshold,
            max_items_per_user=self.max_items_per_user,
        )

    @property
    def users_needed(self) -> int | np.ndarray:
        """Holders an item needs to weigh T when every holder keeps Delta0 items: T sqrt(Delta0).

        The smallest weight that is released with probability at least 1/2 is T itself.
        """
        needed = np.ceil(self.threshold * np.sqrt(self.max_items_per_user))
        # A threshold below 0 is legal by hand; an item without holders is never released.
        needed = np.maximum(needed, 1).astype(np.int64)
        return needed if needed.ndim else int(needed)


def calibrate(
    *,
    eps: Reals,
    delta: Reals,
    max_items_per_user: Reals,
    method: str = "split",
) -> Calibration:
    """Smallest noise and threshold that make the weighted Gaussian mechanism (eps, delta)-DP.

    Neighbouring data differ by one user. With delta' = delta/2 (`split`, [P1]) or delta
    (`full`, [P3]), sigma is the smallest with delta_G(eps; sigma) <= delta', and

        T = max over t = 1..Delta0 of  t^(-1/2) + sigma Phi^-1((1 - delta')^(1/t)).

    The maximand falls and then rises in t, so only t = 1 and t = Delta0 are looked at.

    Args:
        eps: Privacy parameter in [0, 1e5], any shape.
        delta: Privacy parameter in [1e-300, 0.5], any shape.
        max_items_per_user: Delta0, whole numbers from 1 to 1e9, any shape; the three are
            broadcast against each other.
        method: "split", the paper's calibration, or "full", which spends all of delta.

    Returns:
        A `Calibration` of the broadcast shape. sigma and T are rounded up: both conditions hold
        as evaluated, and fail at sigma (1 - 1e-9) and T (1 - 1e-9).

    Raises:
        InvalidInput: An argument is outside its range, or the method is unknown.

    Source:
        Theorem 3.2 [P1]; [P2], [P3] of the theory note.

    Example:
        >>> paper = calibrate(eps=1.0, delta=1e-5, max_items_per_user=100)
        >>> full = calibrate(eps=1.0, delta=1e-5, max_items_per_user=100, method="full")
        >>> round(paper.threshold, 2), round(full.threshold, 2)
        (20.79, 19.5)
    """
    check_method(method)
    eps, delta, count = np.broadcast_arrays(
        check_eps(eps), check_delta(delta), check_max_items_per_user(max_items_per_user)
    )
    share = delta_share(delta, method)
    sigma = raw_gaussian_sigma(eps, share)
    threshold = raw_threshold(sigma, share, count)
    return Calibration(eps, delta, count, method, sigma, threshold)


def spent_delta(
    *,
    eps: Reals,
    sigma: Reals,
    threshold: Reals,
    max_items_per_user: Reals,
) -> float | np.ndarray:
    """The exact delta of the weighted Gaussian mechanism at eps, whatever sigma and T are.

        delta = max( delta_G(eps; 1),  1 - Phi((T - 1)/sigma),
                     1 - Phi((T - Delta0^(-1/2))/sigma)^Delta0 ).

    The mechanism is (eps, delta)-DP with this delta and, as a supremum over real weights, with no
    smaller one.

    Args:
        eps: Privacy parameter in [0, 1e5], any shape.
        sigma: Noise standard deviation, above 0, any shape.
        threshold: T, finite, any shape.
        max_items_per_user: Delta0, whole numbers from 1 to 1e9, any shape; the four are
            broadcast against each other.

    Returns:
        delta in [0, 1], a Python float for scalars, else float64 of the broadcast shape.

    Raises:
        InvalidInput: An argument is outside its range.

    Source:
        [P2] of the theory note, the closed form of a maximum over what a new user may add.

    Example:
        A threshold that is too low for its noise is the only thing that costs here:

        >>> round(spent_delta(eps=1.0, sigma=10.0, threshold=30.0, max_items_per_user=10), 5)
        0.01487
    """
    eps, sigma = check_eps(eps), check_positive("sigma", sigma)
    threshold, count = _check_threshold(threshold), check_max_items_per_user(max_items_per_user)
    eps, sigma, threshold, count = np.broadcast_arrays(eps, sigma, threshold, count)
    with np.errstate(over="ignore"):  # a denormal sigma is no noise: h infinite, delta 1
        h = 1 / sigma
    gaussian = raw_gaussian_delta(eps, h)
    return float_or_array(np.maximum(gaussian, _release_delta(sigma, threshold, count)))


def verify_calibration(calibration: Calibration) -> None:
    """Raise unless sigma and threshold really give the (eps, delta) that the record claims.

    Args:
        calibration: From `calibrate`, or built by hand.

    Raises:
        InvalidInput: Somewhere on the grid [P2] gives more than the claimed delta; the message
            names sigma, threshold, Delta0 and the delta they spend.

    Source:
        [P2] of the theory note.

    Example:
        >>> verify_calibration(calibrate(eps=1.0, delta=1e-5, max_items_per_user=10))
        >>> verify_calibration(Calibration(1.0, 1e-5, 10, "split", 4.0, 15.0))
        Traceback (most recent call last):
        theory._check.InvalidInput: delta = 1e-05: must be at least 0.00120..., which is what
        sigma = 4.0, threshold = 15.0, max_items_per_user = 10 spend at eps = 1.0
    """
    spent = np.asarray(calibration.spent_delta)
    over = np.ravel(spent > calibration.delta)
    if not np.any(over):
        return
    first = int(np.argmax(over))
    names = ("sigma", "threshold", "max_items_per_user", "eps")
    sigma, threshold, count, eps = (np.ravel(getattr(calibration, n))[first] for n in names)
    invalid(
        "delta",
        np.ravel(calibration.delta)[first],
        f"must be at least {np.ravel(spent)[first]}, which is what sigma = {sigma}, "
        f"threshold = {threshold}, max_items_per_user = {count} spend at eps = {eps}",
    )


def delta_share(delta: Floats, method: str) -> Floats:
    """delta', what each of the two conditions may use: delta/2 for [P1], delta for [P3]."""
    return delta / 2 if method == "split" else delta


def check_method(method: Any) -> None:
    """Raise unless `method` is one of `METHODS`."""
    if method not in METHODS:
        invalid("method", method, f"must be one of {', '.join(METHODS)}")


def _check_threshold(threshold: Reals) -> np.ndarray:
    """A finite threshold, any shape; below 0 is legal and costs delta."""
    array = np.asarray(threshold)
    if array.dtype.kind not in "iuf" or not np.all(np.isfinite(array)):
        invalid("threshold", threshold, "must be a finite number")
    return array.astype(np.float64)


def _release_delta(sigma: Floats, threshold: Floats, count: Floats) -> Floats:
    """Probability that a new user with t new items releases one, the larger of t = 1, Delta0."""
    # Far thresholds over small noise: the ratio overflows to a probability of 0 or 1, as it should.
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        one = ndtr((1 - threshold) / sigma)
        each = ndtr((count**-0.5 - threshold) / sigma)
        # 1 - (1 - each)^Delta0 by the small tail; each = 1 gives log 0 = -inf and delta 1.
        some = -np.expm1(count * np.log1p(-each))
    return np.maximum(one, some)


def raw_threshold(sigma: Floats, share: Floats, count: Floats) -> Floats:
    """Smallest T with `_release_delta` <= share, rounded up; arrays of one shape."""
    # Phi^-1((1 - share)^(1/t)) through the small tail: 1 - share is 1.0 at share <= 1e-17.
    with np.errstate(under="ignore"):  # 5e-301/1e9 is denormal, but still good to 14 digits
        each = -np.expm1(np.log1p(-share) / count)
    threshold = np.maximum(1 - sigma * ndtri(share), count**-0.5 - sigma * ndtri(each))
    # Rounding up: first past the evaluation error, then until the condition holds as evaluated.
    threshold = threshold * (1 + PRIVATE_MARGIN)
    while np.any(short := _release_delta(sigma, threshold, count) > share):
        threshold = np.where(short, threshold * (1 + PRIVATE_MARGIN), threshold)
    return threshold
