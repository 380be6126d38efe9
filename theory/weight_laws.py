"""How likely a random weight plus Gaussian noise is to stay below the threshold, item by item.

The weight of an item is H = h0 + K/sqrt(Delta0): h0 from the users who keep all they hold, K the
number of the others who keep this item, a sum of independent Bernoulli(Delta0/|W_i|). Two methods,
both good to about 1e-11 relative in either tail, share the work:

* recursion: the law of K holder by holder, sums of positive numbers only;
* inversion: the Bromwich integral of the moment generating function of H + noise along a line
  through a tilt c, by the trapezoid rule, for items with many holders. The tilts are few and shared
  by many items, so each item costs one row of a sparse product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64
from scipy.sparse import csr_array
from scipy.special import ndtr

from theory.miss_bound import _binomial_window as binomial_window

# Probabilities below exp(-95) = 6e-42 are reported as 0: the promise is 1e-40 absolute there.
_NEVER = 95.0
# Beyond this many standard deviations the noise alone is that unlikely.
_NEVER_DEVIATIONS = 13.7
# Discretisation and truncation stay below exp(-29) = 3e-13 of the result.
_DIGITS = 29.0
# Up to this many holders the recursion is always used; beyond the second its rounding counts.
_FEW_HOLDERS, _MANY_HOLDERS = 64, 200_000
# Noise of less than this many steps of the weight shows the steps: no single tilt fits then.
_COARSE = 0.25
# Elements of a work array, 2 MB of float64.
_CHUNK = 2**18
# Spacing of the tilts, in standard deviations; a tilt that far off costs a factor e^(d^2/2) of
# rounding, and one closer to 0 than this would need a fine grid because of the pole there.
_TILT_STEP = 3.0
_ROUNDS = 12


@dataclass(frozen=True, eq=False)
class _Laws:
    """Laws of the weights of all classes at one Delta0, and the moments of K."""

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
    ) -> _Laws:
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


def noisy_tails(
    base: Float64[np.ndarray, " classes"],
    offsets: Int64[np.ndarray, " classes_and_one"],
    sizes: Int64[np.ndarray, " entries"],
    counts: Int64[np.ndarray, " entries"],
    *,
    max_items_per_user: int,
    sigma: Float64[np.ndarray, " points"],
    threshold: Float64[np.ndarray, " points"],
) -> tuple[Float64[np.ndarray, "points classes"], Float64[np.ndarray, "points classes"]]:
    """Probability that an item of each class is missed, and that it is released.

    Args:
        base: h0, weight from the holders who keep all they hold; 0 exactly where there are none.
        offsets: Class c has the entries offsets[c] to offsets[c + 1] of the next two.
        sizes: Set sizes above Delta0.
        counts: Holders of an item of the class whose set has this size, at least 1.
        max_items_per_user: Delta0.
        sigma: Noise standard deviations above 0, one for each point.
        threshold: Thresholds T, one for each point.

    Returns:
        (miss, hit), which add up to 1. Each is accurate to 1e-10 relative where it is above 1e-30,
        and to 1e-40 absolute below.

    Source:
        [E1].

    Example:
        Three items at Delta0 = 1: held by one user alone, by one of 100 items, and by both.

        >>> miss, hit = noisy_tails(
        ...     np.array([1.0, 0.0, 1.0]), np.array([0, 0, 1, 2]), np.array([100, 100]),
        ...     np.array([1, 1]), max_items_per_user=1, sigma=np.array([0.5]),
        ...     threshold=np.array([2.0]),
        ... )
        >>> hit.round(6)
        array([[0.02275 , 0.000228, 0.027523]])
    """
    laws = _Laws.of(base, offsets, sizes, counts, max_items_per_user)
    miss = np.empty((sigma.size, base.size))
    hit = np.empty_like(miss)
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        fixed = np.flatnonzero(laws.holders == 0)
        miss[:, fixed], hit[:, fixed] = _normal_tails(base[fixed], sigma, threshold)
        random = np.flatnonzero(laws.holders)
        never, always = _certain(laws, random, sigma[:, None], threshold[:, None])
        miss[:, random], hit[:, random] = never, always
        open_ = ~(never | always)
        width = _recursion_width(laws, random, sigma, threshold)
        direct = _recursion_pays(laws, random, width, sigma, open_.sum(axis=0))
        used = direct & np.any(open_, axis=0)
        _by_recursion(laws, random[used], width[used], sigma, threshold, miss, hit)
        for point in range(sigma.size):
            rows = random[~direct & open_[point]]
            at = slice(point, point + 1)
            left = _by_inversion(
                laws, rows, float(sigma[point]), float(threshold[point]), miss[point], hit[point]
            )
            if left.size:  # no tilt found: not seen so far, but the recursion needs none
                width_left = _recursion_width(laws, left, sigma[at], threshold[at])
                _by_recursion(laws, left, width_left, sigma[at], threshold[at], miss[at], hit[at])
    # Sums of positive terms may round to just above 1.
    return np.minimum(miss, 1.0, out=miss), np.minimum(hit, 1.0, out=hit)


def log_none_kept(
    base: Float64[np.ndarray, " classes"],
    offsets: Int64[np.ndarray, " classes_and_one"],
    sizes: Int64[np.ndarray, " entries"],
    counts: Int64[np.ndarray, " entries"],
    *,
    max_items_per_user: int,
) -> Float64[np.ndarray, " classes"]:
    """Log of P(K = 0): that all holders with more than Delta0 items drop this one.

    Args:
        base: As in `noisy_tails`, like the others; only its length matters.
        offsets: Class c has the entries offsets[c] to offsets[c + 1] of the next two.
        sizes: Set sizes above Delta0.
        counts: Holders of an item of the class whose set has this size, at least 1.
        max_items_per_user: Delta0.

    Returns:
        Natural logarithms, at most 0, each to about 1e-15 relative.

    Source:
        [E1].

    Example:
        >>> log_none_kept(
        ...     np.zeros(1), np.array([0, 1]), np.array([100]), np.array([200]),
        ...     max_items_per_user=1,
        ... ).round(4)
        array([-2.0101])
    """
    return _Laws.of(base, offsets, sizes, counts, max_items_per_user).log_none


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


def _normal_tails(
    weight: np.ndarray, sigma: np.ndarray, threshold: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Miss and hit where the weight is known: (points, *weight.shape)."""
    shape = (-1,) + (1,) * weight.ndim
    margin = (threshold.reshape(shape) - weight) / sigma.reshape(shape)
    small = ndtr(-np.abs(margin))
    large = 1 - small  # at least 1/2: accurate too
    above = margin > 0
    return np.where(above, large, small), np.where(above, small, large)


def _certain(
    laws: _Laws, rows: np.ndarray, sigma: np.ndarray, threshold: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where being released, and being missed, is less likely than exp(-95): (points, rows).

    Sums of independent Bernoullis have Gaussian lower tails of variance at most their mean, and
    Bernstein's upper tails.
    """
    base, mean, root = laws.base[rows], laws.mean[rows], laws.root
    gap = base + mean / root - threshold
    below = gap**2 > 2 * _NEVER * (sigma**2 + mean / root**2)
    spread = sigma**2 + laws.variance[rows] / root**2 + np.abs(gap) / (3 * root)
    above = gap**2 > 2 * _NEVER * spread
    always = (gap > 0) & below & ((base > 0) | (laws.log_none[rows] < -_NEVER))
    return (gap < 0) & above, always


# ---- recursion


def _recursion_width(
    laws: _Laws, rows: np.ndarray, sigma: np.ndarray, threshold: np.ndarray
) -> np.ndarray:
    """States of K to tell apart: 0, 1, ... and a last one for all beyond.

    Beyond, either the item is surely released or K is surely not.
    """
    surely_released = laws.root * (np.max(threshold + _NEVER_DEVIATIONS * sigma) - laws.base[rows])
    last = np.minimum(np.maximum(np.ceil(surely_released), 0) + 1, _states(laws.mean[rows]))
    return (np.minimum(last, laws.holders[rows]) + 1).astype(np.int64)


def _states(mean: np.ndarray) -> np.ndarray:
    """Number k with P(K >= k) < exp(-97) for every sum K of Bernoullis of this mean."""
    # P(K >= k) <= exp(-(k ln(k/mean) - k + mean)): Newton from the right, on a convex function.
    exponent = _NEVER + 2
    k = mean + exponent / 3 + np.sqrt(exponent**2 / 9 + 2 * mean * exponent)
    for _ in range(4):
        log_ratio = np.log(k / mean)
        k = k - (k * log_ratio - k + mean - exponent) / log_ratio
    return np.ceil(k)


def _recursion_pays(
    laws: _Laws, rows: np.ndarray, width: np.ndarray, sigma: np.ndarray, points: np.ndarray
) -> np.ndarray:
    """Whether the recursion is the better method for a class; times in nanoseconds."""
    entries = np.diff(laws.table.indptr)[rows]
    # About twenty nodes cover one peak of the characteristic function; small noise shows more.
    noise = np.min(sigma, initial=np.inf) * laws.root
    nodes = 20 + 30 / noise
    recursion = np.minimum(3 * laws.holders[rows] * width, _size_by_size_time(laws, rows))
    inversion = points * (2000 + nodes * (100 + 2 * entries))
    recursion = recursion + 60 * width * points
    pays = (recursion < inversion) | (laws.holders[rows] <= _FEW_HOLDERS) | (noise < _COARSE)
    # The groups of tilts have a price of their own, too high for a few classes.
    saved = np.sum(recursion[~pays] - inversion[~pays])
    return pays | (saved < 5e5 * sigma.size)


def _size_by_size_time(laws: _Laws, rows: np.ndarray) -> np.ndarray:
    """Nanoseconds of `_law_size_by_size`."""
    return np.diff(laws.table.indptr)[rows] * (1e5 + _states(laws.mean[rows]) ** 2.0)


def _by_recursion(
    laws: _Laws,
    rows: np.ndarray,
    width: np.ndarray,
    sigma: np.ndarray,
    threshold: np.ndarray,
    miss: np.ndarray,
    hit: np.ndarray,
) -> None:
    """Fill in the columns `rows` of miss and hit, alike classes together."""
    holders = laws.holders[rows]
    alike = (3 * holders * width < _size_by_size_time(laws, rows)) & (holders <= _MANY_HOLDERS)
    groups = [(rows[~alike][[i]], 0) for i in range(int(np.sum(~alike)))]
    groups += [(rows[alike][part], most) for part, most in _alike(holders[alike], width[alike])]
    for chosen, states in groups:
        if states:
            law = _count_laws(_keep_chances(laws, chosen), states)
        else:
            law = _law_size_by_size(laws, int(chosen[0]))
        weight = laws.base[chosen] + np.arange(law.shape[0])[:, None] / laws.root
        nothing = weight[0] == 0  # an item that nobody kept is never released
        size = max(1, _CHUNK // law.size)
        for first in range(0, sigma.size, size):
            at = slice(first, first + size)
            below, above = _normal_tails(weight, sigma[at], threshold[at])
            below[:, 0, nothing], above[:, 0, nothing] = 1.0, 0.0
            miss[at, chosen] = np.sum(law * below, axis=1)
            hit[at, chosen] = np.sum(law * above, axis=1)


def _alike(holders: np.ndarray, width: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Groups of classes with about equally many holders and states, and their most states."""
    if not holders.size:
        return
    key = np.ceil(_steps(holders)) * 1e4 + np.ceil(_steps(width))
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1.0))
    for group in np.split(order, starts[1:]):
        most = int(width[group].max())
        size = max(1, _CHUNK // max(most, int(holders[group].max())))
        for first in range(0, group.size, size):
            yield group[first : first + size], most


def _steps(count: np.ndarray) -> np.ndarray:
    """A scale on which counts of equal ceiling are within a third or so of each other."""
    return np.where(count <= 4, count, 4 + 2.5 * np.log2(np.maximum(count, 4) / 4))


def _keep_chances(laws: _Laws, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Chances of keeping and of dropping, (holders, classes), filled up with certain drops."""
    part = laws.table[rows]
    times = part.data.astype(np.int64)
    holders = laws.holders[rows].astype(np.int64)
    column = np.repeat(part.indices, times)
    owner = np.repeat(np.arange(rows.size), holders)
    place = np.arange(column.size) - np.repeat(np.cumsum(holders) - holders, holders)
    keep = np.zeros((int(holders.max()), rows.size))
    drop = np.ones_like(keep)
    keep[place, owner], drop[place, owner] = laws.keep[column], laws.drop[column]
    return keep, drop


def _count_laws(chances: tuple[np.ndarray, np.ndarray], states: int) -> np.ndarray:
    """P(K = k), (states, classes); the last state takes all that is beyond."""
    law = np.zeros((states, chances[0].shape[1]))
    law[0] = 1.0
    moved = np.empty_like(law)
    for holder, (keep, drop) in enumerate(zip(*chances, strict=True)):
        top = min(holder + 1, states - 1)
        np.multiply(law[:top], keep, out=moved[:top])
        law[:top] *= drop
        law[1 : top + 1] += moved[:top]
    return law


def _law_size_by_size(laws: _Laws, row: int) -> np.ndarray:
    """P(K = k), (states, 1), for a class with many holders of each set size: binomials convolved.

    Left out are states of less than exp(-97) in all.
    """
    entries = slice(*laws.table.indptr[row : row + 2])
    states = int(_states(laws.mean[row : row + 1])[0])
    law = np.ones(1)
    for column, count in zip(laws.table.indices[entries], laws.table.data[entries], strict=True):
        kept, chance, _ = binomial_window(int(count), float(laws.keep[column]))
        binomial = np.zeros(int(kept[-1]) + 1)
        binomial[kept.astype(np.int64)] = chance
        law = np.convolve(law, binomial[:states])[:states]
    return law[:, None]


# ---- inversion


@dataclass(frozen=True, eq=False)
class _Tilted:
    """Classes tilted by exp(c (X - T)), X = H + noise: what a group of classes shares and needs.

    Attributes:
        c: The tilt.
        log_mgf: ln E exp(c (X - T)), K = 0 included.
        mean: Mean of the tilted X - T, likewise.
        variance: Variance of the tilted X, likewise.
        count_variance: Variance of the tilted K.
        growth: Whether these are classes that nobody is sure to keep an item of.
        atom: Whether K = 0 is to be left out and not negligible.
    """

    c: float
    log_mgf: np.ndarray
    mean: np.ndarray
    variance: np.ndarray
    count_variance: np.ndarray
    growth: bool
    atom: np.ndarray


def _by_inversion(
    laws: _Laws,
    rows: np.ndarray,
    sigma: float,
    threshold: float,
    miss: np.ndarray,
    hit: np.ndarray,
) -> np.ndarray:
    """Fill in the entries `rows` of miss and hit at one point; returns the rows without success.

    Where nobody is sure to keep the item, K = 0 means missed whatever the noise. Then the integral
    runs over the measure K >= 1 alone, so that neither side needs a subtraction.
    """
    if not rows.size:
        return rows
    atom = (laws.base[rows] == 0) & (laws.log_none[rows] > -_NEVER - 5)
    none = np.where(atom, np.exp(laws.log_none[rows]), 0.0)
    total = np.where(atom, -np.expm1(laws.log_none[rows]), 1.0)
    excess = threshold - laws.base[rows]
    side = np.where(laws.mean[rows] / total / laws.root < excess, 1.0, -1.0)
    tilt, deviation = _likely_tilt(laws, rows, atom, excess, sigma)
    flipped = np.zeros(rows.size, bool)
    pending = np.arange(rows.size)
    for attempt in range(_ROUNDS):
        # Where K jumps between two values within one step, ever finer steps are tried.
        finer = 2.0 ** max(0, attempt - 3)
        scale = np.floor(2 * np.log2(deviation[pending]))
        steps = np.rint(side[pending] * tilt[pending] * 2 ** (scale / 2) / _TILT_STEP * finer)
        key = np.stack([scale, np.maximum(steps, finer) * side[pending], atom[pending]])
        keys, group_of = np.unique(key, axis=1, return_inverse=True)
        group_of = group_of.reshape(-1)
        again = []
        for group, (half_octave, step, _) in enumerate(keys.T):
            members = pending[group_of == group]
            c = float(step / finer * _TILT_STEP / 2 ** (half_octave / 2))
            chosen = rows[members]
            tails, found, tilt[members], deviation[members] = _tails_at(
                laws, chosen, c, sigma, excess[members], atom[members]
            )
            # The side that is computed should be the small one; the other is what it leaves.
            wrong = found & (tails > 0.75 * total[members]) & ~flipped[members]
            side[members[wrong]] *= -1
            flipped[members] |= wrong
            again.append(members[~found | wrong])
            done = found & ~wrong
            members, chosen, tails = members[done], chosen[done], tails[done]
            rest = total[members] - tails
            below, above = (rest, tails) if c > 0 else (tails, rest)
            miss[chosen], hit[chosen] = none[members] + below, above
        pending = np.concatenate(again)
        if not pending.size:
            break
    return rows[pending]


def _likely_tilt(
    laws: _Laws, rows: np.ndarray, atom: np.ndarray, excess: np.ndarray, sigma: float
) -> tuple[np.ndarray, np.ndarray]:
    """About the tilt at which the mean is T, from a binomial with the mean and variance of K.

    Only a first guess: `_tails_at` looks at the real law.
    """
    root, mean, variance = laws.root, laws.mean[rows], laws.variance[rows]
    drop = variance / mean
    keep = np.maximum(1 - drop, 1e-12)
    unit = np.clip((excess - mean / root) / (sigma**2 + variance / root**2) / root, -3.0, 3.0)
    slope = np.ones_like(unit)
    for _ in range(30):
        lifted = keep * np.exp(unit)
        share = lifted / (drop + lifted)
        first, second = mean / keep * share, mean / keep * share * (1 - share)
        growth = mean / keep * np.log1p(lifted / drop)
        whole = np.where(atom, -np.expm1(-growth), 1.0)
        second = second / whole - first**2 * (1 - whole) / whole**2
        slope = np.maximum(second / root**2, 0.0) + sigma**2
        move = (excess - first / whole / root - sigma**2 * unit * root) / (slope * root)
        move = np.clip(move, -1.0, 1.0)
        unit = np.clip(unit + move, -300.0, 300.0)
        if np.all(np.abs(move) * root * np.sqrt(slope) < 0.3):
            break
    return unit * root, np.sqrt(slope)


def _tails_at(
    laws: _Laws,
    rows: np.ndarray,
    c: float,
    sigma: float,
    excess: np.ndarray,
    atom: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Tails by one tilt: (tails, whether the tilt was near enough, better tilt, deviation)."""
    table = laws.table[rows]
    lifted = laws.keep * np.exp(c / laws.root)
    share = lifted / (laws.drop + lifted)
    log_factor = _log_factors(laws, c, np.zeros(1), atom[0])[0][:, 0]
    spread = lifted * laws.drop / (laws.drop + lifted) ** 2
    logs, mean, count_variance = (table @ np.stack([log_factor, share, spread], axis=1)).T
    log_count = logs + np.where(atom, laws.log_none[rows], 0.0)
    mean, variance = mean / laws.root, count_variance / laws.root**2
    log_mgf = log_count + c * (sigma**2 * c / 2 - excess)
    # The measure without K = 0, where its share under this tilt is not negligible.
    left_out = atom & (logs < 40)
    whole = np.where(left_out, -np.expm1(-logs), 1.0)
    own_mean = mean / whole
    own_variance = np.maximum(variance / whole - mean**2 * (1 - whole) / whole**2, 0.0) + sigma**2
    deviation = np.sqrt(own_variance)
    away = excess - own_mean - sigma**2 * c
    limit = 2 * laws.root
    better = c + np.clip(away / own_variance, -limit, limit)
    tilted = _Tilted(
        c,
        log_mgf,
        mean + sigma**2 * c - excess,
        variance + sigma**2,
        count_variance,
        bool(atom[0]),
        left_out,
    )
    log_own = log_mgf + np.log(whole)
    never = log_own < -_NEVER
    nearest_to_pole = abs(c) * deviation <= 1.5 * _TILT_STEP
    found = never | (np.abs(away) <= np.where(nearest_to_pole, 4.5, _TILT_STEP) * deviation)
    tails = np.zeros(rows.size)
    near = np.flatnonzero(found & ~never)
    if near.size:
        guess = log_own - (away / deviation) ** 2 / 2 - np.log1p(2.51 * abs(c) * deviation)
        part = table if near.size == rows.size else table[near]
        tails[near] = _integral(
            laws, rows[near], part, _part(tilted, near), sigma, excess[near],
            np.maximum(guess[near], 2 - _NEVER),
        )  # fmt: skip
    return np.maximum(tails, 0.0), found, better, deviation


def _part(tilted: _Tilted, at: np.ndarray) -> _Tilted:
    """Some of the classes of a group."""
    return _Tilted(
        tilted.c, tilted.log_mgf[at], tilted.mean[at], tilted.variance[at],
        tilted.count_variance[at], tilted.growth, tilted.atom[at],
    )  # fmt: skip


def _integral(
    laws: _Laws,
    rows: np.ndarray,
    table: Any,
    tilted: _Tilted,
    sigma: float,
    excess: np.ndarray,
    log_tail: np.ndarray,
) -> np.ndarray:
    """P(X > T), or P(X <= T) if c < 0: (1/pi) int_0^inf Re[E exp(s (X - T)) / s] dt, s = c + it.

    By Poisson summation the trapezoid sum of step 2 pi/A is the sum over j of exp(c j A) P(X > T +
    j A). The terms j < 0 are below exp(c j A); those with j > 0 below the tilted probability of
    that tail times E exp(c (X - T)), by Bernstein. A makes both exp(-29) of the tail, about
    exp(log_tail). Nodes at which the integrand is that small are left out.
    """
    c = tilted.c
    need = tilted.log_mgf - log_tail + _DIGITS
    bernstein = need / (3 * laws.root)
    reach = bernstein + np.sqrt(bernstein**2 + 2 * need * tilted.variance)
    period = max(
        float(np.max((_DIGITS - log_tail) / abs(c))),
        float(np.max(reach + np.sign(c) * tilted.mean)),
    )
    step = 2 * np.pi / period
    most = float(np.max(need)) + 3
    # |E exp(it X)| <= exp(-Var(K) (1 - cos(t/root)) - sigma^2 t^2/2) for the tilted laws.
    least = 0.0 if np.any(tilted.atom) else float(np.min(tilted.count_variance))
    end = int(np.sqrt(2 * most) / sigma / step) + 2
    total = np.zeros(rows.size)
    for first in range(0, end, 2**16):
        t = step * np.arange(first, min(end, first + 2**16))
        decay = least * (1 - np.cos(t / laws.root)) + (sigma * t) ** 2 / 2
        nodes = t[decay <= most]
        size = max(1, _CHUNK // max(rows.size, laws.keep.size))
        for begin in range(0, nodes.size, size):
            block = nodes[begin : begin + size]
            weights = np.where(block == 0, 0.5, 1.0)
            total += _integrand(laws, rows, table, tilted, sigma, excess, block) @ weights
    return np.sign(c) * total * step / np.pi


def _integrand(
    laws: _Laws,
    rows: np.ndarray,
    table: Any,
    tilted: _Tilted,
    sigma: float,
    excess: np.ndarray,
    t: np.ndarray,
) -> np.ndarray:
    """Re[E exp(s (X - T)) / s], (classes, nodes), without K = 0 for the classes with an atom."""
    c = tilted.c
    real, imaginary = _log_factors(laws, c, t, tilted.growth)
    both = table @ np.concatenate([real, imaginary], axis=1)
    log_size, angle = both[:, : t.size], both[:, t.size :]
    none = laws.log_none[rows][:, None] if tilted.growth else np.zeros((rows.size, 1))
    noise = sigma**2 * (c - t) * (c + t) / 2 - c * excess[:, None]
    turn = t * (sigma**2 * c - excess[:, None])
    value = np.empty_like(log_size)
    atom = tilted.atom
    if not np.all(atom):
        plain = ~atom if np.any(atom) else slice(None)
        size = np.exp(log_size[plain] + none[plain] + noise[plain])
        value[plain] = size * _over_s(angle[plain] + turn[plain], c, t)
    if np.any(atom):
        # exp(g) - 1 for g = ln(E exp(sK) / P(K = 0)), part by part so that small g keep digits.
        growth, phase = log_size[atom], angle[atom]
        real = np.expm1(growth) * np.cos(phase) - 2 * np.sin(phase / 2) ** 2
        imaginary = np.exp(growth) * np.sin(phase)
        size = np.exp(none[atom] + noise[atom])
        cosine, sine = _over_s(turn[atom], c, t), _over_s(turn[atom] + np.pi / 2, c, t)
        value[atom] = size * (real * cosine + imaginary * sine)
    return value


def _over_s(angle: np.ndarray, c: float, t: np.ndarray) -> np.ndarray:
    """Re[exp(i angle) / (c + it)]."""
    return (c * np.cos(angle) + t * np.sin(angle)) / (c**2 + t**2)


def _log_factors(
    laws: _Laws, c: float, t: np.ndarray, over_none: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Real and imaginary part of ln(1 - p + p exp(s/root)), s = c + it: (sizes, nodes) each.

    With `over_none` of that over 1 - p, in full precision where it is next to 0.
    """
    grow, turn = c / laws.root, t / laws.root
    keep, drop = laws.keep[:, None], laws.drop[:, None]
    cosine = keep * (np.exp(grow) * np.cos(turn))
    sine = keep * (np.exp(grow) * np.sin(turn))
    if over_none:
        cosine, sine, drop = cosine / drop, sine / drop, np.ones_like(drop)
        change = cosine
    else:
        change = keep * (np.expm1(grow) * np.cos(turn) - 2 * np.sin(turn / 2) ** 2)
    # |z|^2 - 1 where z is near 1 (rare keepers, of whom there may be 1e9), |z|^2 elsewhere.
    beyond = change * (2 + change) + sine**2
    near = np.abs(beyond) < 0.5
    square = np.maximum((drop + cosine) ** 2 + sine**2, 1e-300)
    real = np.where(near, np.log1p(np.where(near, beyond, 0.0)), np.log(square)) / 2
    return real, np.arctan2(sine, drop + cosine)
