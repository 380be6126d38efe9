"""The hard Zipfian data W* of Theorem 3.5, with every floor exact.

Frequencies floor(C N/r^s) from the first rank r1 from which they sum to at most N, re-ranked from
1; what is missing to N goes to the first item; one item per user.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from jaxtyping import Int64

from theory._check import check_count, check_zipf_constant, check_zipf_exponent
from theory.profile import Profile

_LARGEST_DENOMINATOR = 1000
_LARGEST_PAIRS = 10**15
_DIGITS = 60
_MOST_LOG_RANKS = 36


class _Power:
    """x = C N and s as exact numbers: floors of x/r^s and (x/j)^(1/s) that are never off by one.

    C and s are read as the decimals they print as (1.1 is 11/10). A candidate floor from floating
    point is kept unless it lies within the rounding error of an integer; then F <= x/r^s is decided
    as (F d)^den r^num <= n^den in integers, for x = n/d and s = num/den with a small den, and in
    60-digit decimals otherwise, where equality cannot occur.
    """

    def __init__(self, constant: float, s: float, num_pairs: int) -> None:
        self.x = Fraction(repr(constant)) * num_pairs
        ratio = Fraction(repr(s)).limit_denominator(_LARGEST_DENOMINATOR)
        self.ratio = ratio if float(ratio) == s else None
        self.s = s
        self.log_x = float(np.log(constant) + np.log(num_pairs))

    def values(self, ranks: np.ndarray) -> Int64[np.ndarray, " n"]:
        """floor(x/r^s) of each rank."""
        logs = self.log_x - self.s * np.log(ranks)
        return self._floors(logs, self.s * np.log(ranks), lambda i, v: (v, int(ranks[i])))

    def counts(self, values: np.ndarray) -> Int64[np.ndarray, " n"]:
        """floor((x/j)^(1/s)), the number of ranks whose value is at least j."""
        logs = (self.log_x - np.log(values)) / self.s
        return self._floors(logs, np.log(values) / self.s, lambda i, r: (int(values[i]), r))

    def _floors(
        self, logs: np.ndarray, scale: np.ndarray, pair: Callable[[int, int], tuple[int, int]]
    ) -> Int64[np.ndarray, " n"]:
        """floor(exp(logs)), `pair` giving (value, rank) of entry i at a candidate floor."""
        approx = np.exp(logs)
        floors = np.rint(approx).astype(np.int64)
        error = approx * 1e-15 * (8 + self.log_x + np.abs(scale))
        # Away from integers the float decides; near one, `floors` is that integer: is it reached?
        near = np.abs(approx - floors) <= error + 1e-300
        floors = np.where(near, floors, np.floor(approx).astype(np.int64))
        for i in np.flatnonzero(near).tolist():
            candidate = int(floors[i]) + int(np.ceil(error[i]))
            while candidate > 0 and not self._reaches(*pair(i, candidate)):
                candidate -= 1
            floors[i] = candidate
        return floors

    def _reaches(self, value: int, rank: int) -> bool:
        """Whether value <= x/rank^s, exactly."""
        if self.ratio is not None:
            num, den = self.ratio.numerator, self.ratio.denominator
            return (value * self.x.denominator) ** den * rank**num <= self.x.numerator**den
        with localcontext() as context:
            context.prec = _DIGITS
            power = (Decimal(self.s) * Decimal(rank).ln()).exp()
            return value * power * self.x.denominator <= self.x.numerator


def hard_zipf_profile(constant: float, s: float, num_pairs: int) -> Profile:
    """Profile of W*: L = Delta0 = 1, n = N. For N = 1e12 a few hundred thousand classes.

    Args:
        constant: C >= 1.
        s: Zipf exponent, above 1.
        num_pairs: N, from 1 to 1e15.

    Returns:
        Profile with exactly N pairs.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        [L3], the data of Theorem 3.5.

    Example:
        >>> data = hard_zipf_profile(1.0, 2.0, 10)
        >>> data.frequencies, data.multiplicity
        (array([9, 1]), array([1, 1]))
    """
    constant = float(check_zipf_constant(constant))
    s = float(check_zipf_exponent(s))
    pairs = check_count("num_pairs", num_pairs, maximum=_LARGEST_PAIRS)
    power = _Power(constant, s, pairs)
    values, times = _classes(power, pairs)
    # From the rarest upwards, as many as sum to at most N.
    sums = np.cumsum(values * times)
    whole = int(np.searchsorted(sums, pairs, side="right"))
    used = int(sums[whole - 1]) if whole else 0
    values, times = values[: whole + 1], times[: whole + 1].copy()
    if whole < sums.size:
        times[whole] = (pairs - used) // values[whole]
        used += int(times[whole] * values[whole])
    values, times = values[times > 0], times[times > 0]
    if values.size == 0:  # already one rank's value exceeds N: a single item, whose cap is C N
        values, times, used = np.array([pairs]), np.array([1]), pairs
    times[-1] -= 1
    top = values[-1] + pairs - used
    return Profile.from_frequencies(
        np.append(values[times > 0], top),
        multiplicity=np.append(times[times > 0], 1),
        max_set_size=1,
        max_items_per_user=1,
        num_users=pairs,
    )


def _classes(power: _Power, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Values floor(C N/r^s) >= 1, ascending, and how often each occurs, as far as N needs them."""
    if power.log_x / power.s > _MOST_LOG_RANKS:
        # More than 4e15 ranks, of which those of value 1 alone are more than N.
        return np.array([1], np.int64), np.array([pairs], np.int64)
    pivot = int(np.exp(power.log_x / (power.s + 1))) + 1
    counts = power.counts(np.arange(1, pivot + 2, dtype=np.float64))
    values, times = np.arange(1, pivot + 1), -np.diff(counts)
    # Occurrences beyond N/value are never used and their products would overflow.
    times = np.minimum(times, pairs // values + 1)
    # Ranks of a value above N are not part of W*.
    beyond = int(power.counts(np.array([pairs + 1.0]))[0])
    above = power.values(np.arange(int(counts[-1]), beyond, -1, dtype=np.float64))
    values = np.concatenate((values, above))
    times = np.concatenate((times, np.ones(above.size, np.int64)))
    # Once the sum exceeds N the rest is not needed; floats decide where to cut, generously.
    enough = int(np.searchsorted(np.cumsum(values.astype(np.float64) * times), 2.0 * pairs + 2)) + 1
    return values[:enough], times[:enough]


def hard_zipf_frequencies(constant: float, s: float, num_pairs: int) -> Int64[np.ndarray, " items"]:
    """Frequencies of W*, descending: at most C N/r^s at rank r, exactly N in all.

    Args:
        constant: C >= 1.
        s: Zipf exponent, above 1.
        num_pairs: N, from 1 to 1e15; the array has at most N entries.

    Returns:
        (num_items,) int64, descending.

    Raises:
        InvalidInput: An argument out of range.

    Source:
        [L3], the data of Theorem 3.5.

    Example:
        >>> hard_zipf_frequencies(1.0, 2.0, 100)
        array([72, 11,  6,  4,  2,  2,  1,  1,  1])
    """
    profile = hard_zipf_profile(constant, s, num_pairs)
    return np.repeat(profile.frequencies, profile.multiplicity)


def hard_zipf_tail_pairs(
    profile: Profile, constant: float, s: float, num_pairs: int, level: int
) -> int | None:
    """Pairs of W*'s items of frequency at most K = `level`, by integer roots alone.

    sum_{j<=K} floor((C N/j)^(1/s)) - K floor((C N/(K+1))^(1/s)). None where the first
    rank's value, before the remainder is added, does not exceed K: there the sum would also count
    ranks that W* does not have. None, too, for K > 1e6, where the sum is no shortcut.
    """
    power = _Power(constant, s, num_pairs)
    if power.log_x / s > _MOST_LOG_RANKS or level > 10**6:
        return None
    ranks_above = int(power.counts(np.array([level + 1.0]))[0])
    first_rank = int(power.counts(np.ones(1))[0]) - profile.num_items + 1
    if first_rank > ranks_above:
        return None
    counts = power.counts(np.arange(1, level + 1, dtype=np.float64))
    return int(counts.sum()) - level * ranks_above
