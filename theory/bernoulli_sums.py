"""Weighted sums of independent Bernoulli variables: their law on a lattice, and Chernoff bounds.

X = sum over classes of w * Binomial(multiplicity, miss). A variable with miss > 1/2 is written as
1 - Bernoulli(hit): the constant is exact, and what is left is small where almost all is certain,
as it is for the missing mass of 1e12 pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64, Int64, Num
from scipy.fft import next_fast_len
from scipy.special import expit

from theory._check import check_beta, invalid

# Longest window of a law: 128 MB of probabilities.
MAX_WINDOW = 2**24
# ln of what a window may leave out on each side.
_OUTSIDE_LOG = -42.2
# Variables that leave their likelier value so rarely, all together, are taken as certain.
_CERTAIN = 1e-18
# Fourier coefficients below exp(-41) = 2^-59 are set to 0: together they move a cdf value by 4e-17.
_NEGLIGIBLE_LOG = -41.0
# The Fourier series of a class ends at terms below exp(-44); above this chance it is too long.
_TERM_LOG, _STEEP = -44.0, 0.47
# Frequencies x classes at once, so that temporaries stay in cache, and at most class by class.
_ENTRIES, _PRECISE_ENTRIES = 2**16, 2**22
_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class LatticeLaw:
    """Law of an integer variable X on a window of the integers.

    Attributes:
        first: Smallest value of the window.
        pmf: (window,) P(X = first + k).
        error: Bound on the error of `cdf` and `sf`, from the parts left out and a rounding
            analysis. Tails below it have no digits.
        beyond: Bound on E(X - last)_+ and E(first - X)_+, what lies outside the window.
    """

    first: int
    pmf: Float64[np.ndarray, " window"]
    error: float
    beyond: float = 0.0

    @property
    def last(self) -> int:
        """Largest value of the window."""
        return self.first + self.pmf.size - 1

    @cached_property
    def _below(self) -> np.ndarray:
        """P(X <= first + k)."""
        return np.minimum(_running_sums(self.pmf), 1.0)

    @cached_property
    def _above(self) -> np.ndarray:
        """P(X >= last - k)."""
        return np.minimum(_running_sums(self.pmf[::-1]), 1.0)

    def cdf(self, v: Any) -> Any:
        """P(X <= v) of whole numbers `v`, any shape: float or float64 array."""
        return self._look_up(self._below, _whole(v) - self.first)

    def sf(self, v: Any) -> Any:
        """P(X > v) of whole numbers `v`, any shape: float or float64 array."""
        return self._look_up(self._above, self.last - 1 - _whole(v))

    def _look_up(self, sums: np.ndarray, index: Any) -> Any:
        inside = np.clip(index, 0, sums.size - 1)
        value = np.where(index < 0, 0.0, np.where(index >= sums.size - 1, 1.0, sums[inside]))
        return value if value.ndim else float(value)

    def quantile(self, p: float) -> int:
        """Least v with P(X <= v) >= p."""
        return self.first + min(int(np.searchsorted(self._below, p)), self.pmf.size - 1)

    def upper_quantile(self, beta: float) -> int:
        """Least v with P(X > v) <= beta: the (1 - beta)-quantile, also where 1 - beta rounds."""
        exceeding = int(np.searchsorted(self._above, beta, side="right"))
        return self.last - min(exceeding, self.pmf.size - 1)

    @property
    def mean(self) -> float:
        """E[X]."""
        return self.first + float(np.arange(self.pmf.size) @ self.pmf)

    def excess(self, u: float | int) -> float:
        """E(X - u)_+ of a real number u."""
        start = max(0, int(np.floor(u)) - self.first)
        distance = np.arange(start, self.pmf.size) + (self.first - u)
        return float(np.maximum(distance, 0.0) @ self.pmf[start:])

    def shortfall(self, u: float | int) -> float:
        """E(u - X)_+ of a real number u."""
        stop = min(self.pmf.size, max(0, int(np.ceil(u)) - self.first))
        distance = (u - self.first) - np.arange(stop)
        return float(np.maximum(distance, 0.0) @ self.pmf[:stop])

    def upper_tail_mean(self, beta: float) -> float:
        """Mean of the largest share beta of X: inf over u of u + E(X - u)_+ / beta, rounded up.

        The error of the law is added, so that it is at least the true value.
        """
        u = self.upper_quantile(beta)
        slack = self.error * (self.last - u) + self.beyond
        return u + (self.excess(u) + slack) / beta

    def lower_tail_mean(self, beta: float) -> float:
        """Mean of the smallest share beta of X: sup over u of u - E(u - X)_+ / beta, rounded down.

        The error of the law is subtracted, so that it is at most the true value.
        """
        u = self.quantile(beta)
        slack = self.error * (u - self.first) + self.beyond
        return u - (self.shortfall(u) + slack) / beta


def bernoulli_sum_law(
    weights: Int64[np.ndarray, " classes"],
    miss: Float64[np.ndarray, " classes"],
    hit: Float64[np.ndarray, " classes"],
    multiplicity: Int64[np.ndarray, " classes"],
    *,
    max_window: int = MAX_WINDOW,
) -> LatticeLaw:
    """Law of X = sum of w * Binomial(multiplicity, miss), all independent.

    The characteristic function on the frequencies of a window outside of which at most 1e-18 lies,
    and a fast Fourier transform. Time is linear in the number of classes and in the window.

    Args:
        weights: Whole numbers w of at least 0.
        miss: Probabilities, in [0, 1].
        hit: 1 - miss, given apart so that both are accurate.
        multiplicity: Number of variables in each class, at least 1.
        max_window: Longest window to accept, in integers.

    Returns:
        The law on its window. `error` is typically 1e-14 to 1e-12.

    Raises:
        InvalidInput: An argument out of range, a sum of weights of 2^62 or more, or a window longer
            than `max_window`; a Chernoff bound then still works.

    Source:
        [E3].

    Example:
        >>> law = bernoulli_sum_law(
        ...     np.array([1, 2]), np.array([0.5, 0.25]), np.array([0.5, 0.75]), np.array([2, 1])
        ... )
        >>> law.first, law.pmf.round(4).tolist(), law.quantile(0.9)
        (0, [0.1875, 0.375, 0.25, 0.125, 0.0625], 3)
    """
    if np.asarray(weights).dtype.kind not in "iu":
        invalid("weights", weights, "must be whole numbers of at least 0")
    part = _centred(weights, miss, hit, multiplicity)
    expected = part.chance * part.times
    order = np.argsort(expected)
    sums = np.cumsum(expected[order])
    certain, uncertain = np.split(order, [int(np.searchsorted(sums, _CERTAIN, side="right"))])
    left_out = float(expected[certain].sum())
    beyond_left_out = float(np.abs(part.weights[certain]) @ expected[certain])
    part = part.of(uncertain)
    upper = _least_upper(part, -_OUTSIDE_LOG, steps=3)
    lower = _least_upper(part.negated(), -_OUTSIDE_LOG, steps=3)
    start, stop = -int(np.ceil(lower.value)), int(np.ceil(upper.value))
    needed = stop - start + 1
    if needed > max_window:
        invalid("window", needed, f"must be at most {max_window} values; use a Chernoff bound")
    length = _fast_length(needed)
    transform, log_errors = _characteristic_function(part, -start, length)
    pmf = np.maximum(np.fft.irfft(transform.conj(), length), 0.0) if length > 1 else np.ones(1)
    if length > needed:  # what the rounded length adds lies above `stop`, where almost nothing is
        pmf = pmf[:needed]
    spread = np.sqrt(length) * np.linalg.norm(pmf)
    rounding = log_errors + 2 * np.log2(2 * length) * spread + 2 * np.sqrt(length) + 1
    outside = 2 * np.exp(_OUTSIDE_LOG)
    error = left_out + 2 * outside + _EPS * float(rounding)
    beyond = beyond_left_out + max(upper.beyond, lower.beyond)
    return LatticeLaw(part.constant + start, pmf, float(error), float(beyond))


def chernoff_quantile(
    weights: Num[np.ndarray, " classes"],
    miss: Float64[np.ndarray, " classes"],
    hit: Float64[np.ndarray, " classes"],
    multiplicity: Int64[np.ndarray, " classes"],
    *,
    beta: float,
    side: Literal["upper", "lower"] = "upper",
) -> float:
    """Chernoff bound on X = sum of w * Binomial(multiplicity, miss).

        upper: inf over t > 0 of (ln E exp(t X) + ln(1/beta)) / t, at most the largest value of X;
        lower: sup over t > 0 of (-ln E exp(-t X) - ln(1/beta)) / t, at least the smallest value.

    Every t gives a bound, so it does not matter how well the best one is found. It also holds for
    negatively associated variables with these marginals.

    Args:
        weights: Real numbers w of at least 0.
        miss: Probabilities, in [0, 1].
        hit: 1 - miss, given apart so that both are accurate.
        multiplicity: Number of variables in each class, at least 1.
        beta: Failure probability in (0, 1).
        side: "upper" or "lower".

    Returns:
        v with P(X > v) <= beta (upper) or P(X < v) <= beta (lower), in units of the weights.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        [E5].

    Example:
        >>> one, half = np.array([1]), np.array([0.5])
        >>> round(chernoff_quantile(one, half, half, np.array([100]), beta=0.05), 2)
        62.18
    """
    cost = -np.log(float(check_beta(beta)))
    part = _centred(weights, miss, hit, multiplicity)
    if side not in ("upper", "lower"):
        invalid("side", side, "must be 'upper' or 'lower'")
    if side == "lower":
        return float(part.constant - _least_upper(part.negated(), cost).value)
    return float(part.constant + _least_upper(part, cost).value)


@dataclass(frozen=True)
class _Centred:
    """X = constant + sum of signed weights * Binomial(times, chance), 0 < chance <= 1/2."""

    constant: Any  # a Python int, exact, where the weights are whole numbers
    weights: np.ndarray
    chance: np.ndarray
    times: np.ndarray

    def of(self, chosen: Any) -> _Centred:
        """Only some of the classes."""
        parts = (self.weights[chosen], self.chance[chosen], self.times[chosen])
        return _Centred(self.constant, *parts)

    def negated(self) -> _Centred:
        """The law of -X."""
        return _Centred(-self.constant, -self.weights, self.chance, self.times)


def _centred(weights: Any, miss: Any, hit: Any, multiplicity: Any) -> _Centred:
    """Check the arguments and move the likelier value of every variable into the constant."""
    weights, times = np.asarray(weights), np.asarray(multiplicity)
    for name, share in (("miss", miss), ("hit", hit)):
        inside = (share >= 0) & (share <= 1)  # False for nan
        if not np.all(inside):
            invalid(name, share[~inside].flat[0], "must be in [0, 1]")
    off = np.abs(miss + hit - 1) > 1e-9
    if np.any(off):
        invalid("hit", hit[off].flat[0], "must be 1 - miss")
    good = (weights >= 0) & (weights < np.inf)
    if not np.all(good):
        invalid("weights", weights[~good].flat[0], "must be finite numbers of at least 0")
    if times.dtype.kind not in "iu" or np.any(times < 1):
        invalid("multiplicity", times, "must be whole numbers of at least 1")
    whole = weights.dtype.kind in "iu"
    total = float(weights.astype(np.float64) @ times)
    if whole and total >= 2.0**62:
        invalid("weights", total, "must sum to less than 2^62")
    flipped = miss > hit
    sure = np.sum(weights[flipped] * times[flipped])
    chance = np.minimum(miss, hit)
    signed = np.where(flipped, -weights, weights)
    part = _Centred(int(sure) if whole else float(sure), signed, chance, times)
    return part.of((chance > 0) & (weights > 0))


@dataclass(frozen=True)
class _Upper:
    """A bound on X - constant, and on what exceeds it: E(X - constant - value)_+ <= beyond."""

    value: float
    beyond: float


def _least_upper(part: _Centred, cost: float, *, steps: int = 200) -> _Upper:
    """Infimum over t > 0 of (K(t) + cost)/t, K(t) = ln E exp(t (X - constant)).

    The best t solves g(t) = t K'(t) - K(t) - cost = 0, g increasing, found by Newton steps with a
    bracket.
    """
    weights, times = part.weights.astype(np.float64), part.times.astype(np.float64)
    rising = weights > 0
    largest = float(weights[rising] @ times[rising])
    log_top = np.where(rising, np.log(part.chance), np.log1p(-part.chance))
    if -float(log_top @ times) <= cost:  # g never reaches 0: the infimum is at infinity
        return _Upper(largest, 0.0)
    best = _Upper(largest, 0.0)
    variance = float((weights * weights * part.chance * (1 - part.chance)) @ times)
    t, low, high, before = np.sqrt(2 * cost / variance), 0.0, np.inf, np.inf
    for _ in range(steps):
        k, slope, curvature = _cumulants(weights, part.chance, times, t)
        value = (k + cost) / t
        if value < best.value:
            best = _Upper(value, float(np.exp(-cost) / t))
        gap = t * slope - k - cost
        if abs(gap) <= 1e-8 * cost:  # the value is flat there: off by the square of this
            break
        low, high = (t, high) if gap < 0 else (low, t)
        newton = t - gap / (t * curvature) if curvature > 0 else np.nan
        if low < newton < high and abs(gap) < before / 2:
            t = newton
        elif high == np.inf:
            t = 4 * low
        else:
            t = high / 4 if low == 0 else np.sqrt(low * high)
        before = abs(gap)
    return best


def _cumulants(
    weights: np.ndarray, chance: np.ndarray, times: np.ndarray, t: float
) -> tuple[float, float, float]:
    """K(t), K'(t), K''(t): log1p and expm1 keep tiny chances, logs keep t w beyond exp's range."""
    y = t * weights
    far = y > 500.0
    grown = chance * np.expm1(np.where(far, 0.0, y))
    logs, tilted = np.log1p(grown), (grown + chance) / (1 + grown)
    if np.any(far):
        log_odds = np.log(chance[far]) + y[far]
        logs[far] = np.logaddexp(np.log1p(-chance[far]), log_odds)
        tilted[far] = expit(log_odds - np.log1p(-chance[far]))
    first = times * weights * tilted
    return float(times @ logs), float(first.sum()), float(first @ (weights * (1 - tilted)))


def _characteristic_function(part: _Centred, shift: int, length: int) -> tuple[np.ndarray, float]:
    """E exp(i theta (X - constant + shift)) at theta = 2 pi j/length, j = 0..length/2.

    One transform gives the logarithm at all frequencies. Where many items are uncertain it is
    negligible at all but a few, which are then summed class by class, to full precision.
    Second result: the sum over j >= 1 of coefficient times the error of its logarithm over j, in
    units of the machine epsilon; no cdf value is off by more than this.
    """
    steep = part.chance > _STEEP
    logs, size = _logs_by_transform(part.of(~steep), length)
    # The factors left out are at most 1.
    alive = np.flatnonzero(np.real(logs) > _NEGLIGIBLE_LOG)
    if alive.size * part.weights.size <= _PRECISE_ENTRIES:
        logs = _logs(part, alive, length)
        by_angle = float((part.times * part.chance) @ np.abs(part.weights.astype(np.float64)))
        by_count = np.pi * float(part.times @ part.chance)
        error = 4 * (
            1 - np.real(logs) + np.minimum(2 * np.pi / length * alive * by_angle, by_count)
        )
    else:
        logs = logs[alive] + _logs(part.of(steep), alive, length)
        error = 4 * (1 - np.real(logs) + np.log2(length) * size)
    angle = 2 * np.pi / length * (alive * (shift % length) % length)
    coefficients = np.zeros(length // 2 + 1, np.complex128)
    coefficients[alive] = np.exp(logs + 1j * angle)
    terms = np.exp(np.real(logs)) * error / np.maximum(alive, 1)
    return coefficients, float(terms[alive > 0].sum())


def _logs_by_transform(part: _Centred, length: int) -> tuple[np.ndarray, float]:
    """Sum of times * ln(1 - p + p e^(i x w)) at all frequencies, and the sum of its terms' sizes.

    ln(1 - p + p e^(ixw)) = ln(1 - p) - sum over k of (-r)^k/k e^(ikxw), r = p/(1 - p): a Fourier
    series with few terms, added over all classes into one array and transformed at once.
    """
    odds, times = part.chance / (1 - part.chance), part.times.astype(np.float64)
    log_odds = np.log(odds)
    terms = np.maximum(np.ceil((_TERM_LOG - np.log(times)) / log_odds), 1).astype(np.int64)
    row = np.repeat(np.arange(terms.size), terms)
    k = np.arange(row.size) - np.repeat(np.cumsum(terms) - terms, terms) + 1
    value = times[row] * np.exp(k * log_odds[row]) / k
    place = k * (part.weights[row] % length) % length
    series = np.bincount(place, np.where(k % 2, value, -value), minlength=length)
    constant = float(times @ np.log1p(odds))
    return np.conj(np.fft.rfft(series)) - constant, float(value.sum()) + constant


def _logs(part: _Centred, frequencies: np.ndarray, length: int) -> np.ndarray:
    """Sum of times * ln(1 + p z), z = e^(ixw) - 1, at some frequencies, class by class."""
    total = np.zeros(frequencies.size, np.complex128)
    for start in range(0, part.weights.size, step := max(1, _ENTRIES // max(frequencies.size, 1))):
        block = part.of(slice(start, start + step))
        p, times = block.chance, block.times.astype(np.float64)
        z = _steps(frequencies, block.weights, length)
        with np.errstate(divide="ignore"):  # p = 1/2, x = pi: the factor is 0
            # |1 + p z|^2 = 1 + 2 p (1 - p) Re z, as |z|^2 = -2 Re z.
            sizes = np.maximum(0.5 * np.log1p(2 * p * (1 - p) * np.real(z)), -1e3)
        total += sizes @ times + 1j * (np.arctan2(p * np.imag(z), 1 + p * np.real(z)) @ times)
    return total


def _steps(frequencies: np.ndarray, weights: np.ndarray, length: int) -> np.ndarray:
    """e^(i x) - 1 at x = 2 pi j w/length, [frequencies, weights]."""
    turns = frequencies[:, None] * (weights % length) % length
    turns -= length * (turns > length // 2)  # in (-length/2, length/2]: sines keep their digits
    half = np.pi / length * turns
    sine = np.sin(half)
    z = np.empty(half.shape, np.complex128)
    z.real, z.imag = -2 * sine * sine, 2 * sine * np.cos(half)
    return z


def _fast_length(needed: int) -> int:
    """Least length of at least `needed` with a fast real transform."""
    length: Any = next_fast_len
    return length(needed, real=True)


def _whole(v: Any) -> np.ndarray:
    array = np.asarray(v)
    if array.dtype.kind not in "iu":
        invalid("v", v, "must be whole numbers")
    return array


def _running_sums(values: np.ndarray) -> np.ndarray:
    """Cumulative sums in two levels: rounding grows with the root of the length."""
    width = isqrt(values.size - 1) + 1
    rows = np.zeros((-(-values.size // width), width))
    rows.ravel()[: values.size] = values
    inner = np.cumsum(rows, axis=1)
    inner[1:] += np.cumsum(inner[:-1, -1])[:, None]
    return inner.ravel()[: values.size]
