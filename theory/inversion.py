"""Tails of weight plus noise by inverting the moment generating function, for many holders.

The Bromwich integral of H + noise along a line through a tilt c, where the integrand hardly
oscillates, by the trapezoid rule; its error is known by Poisson summation. The tilts are few and
shared by many items, so each item costs one row of a sparse product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from theory.holder_laws import CHUNK, NEVER, HolderLaws

# Discretisation and truncation stay below exp(-29) = 3e-13 of the result.
_DIGITS = 29.0
# Spacing of the tilts, in standard deviations; a tilt that far off costs a factor e^(d^2/2) of
# rounding, and one closer to 0 than this would need a fine grid because of the pole there.
_TILT_STEP = 3.0
_ROUNDS = 12


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


def by_inversion(
    laws: HolderLaws,
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
    atom = (laws.base[rows] == 0) & (laws.log_none[rows] > -NEVER - 5)
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
    laws: HolderLaws, rows: np.ndarray, atom: np.ndarray, excess: np.ndarray, sigma: float
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
    laws: HolderLaws,
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
    never = log_own < -NEVER
    nearest_to_pole = abs(c) * deviation <= 1.5 * _TILT_STEP
    found = never | (np.abs(away) <= np.where(nearest_to_pole, 4.5, _TILT_STEP) * deviation)
    tails = np.zeros(rows.size)
    near = np.flatnonzero(found & ~never)
    if near.size:
        guess = log_own - (away / deviation) ** 2 / 2 - np.log1p(2.51 * abs(c) * deviation)
        part = table if near.size == rows.size else table[near]
        tails[near] = _integral(
            laws, rows[near], part, _part(tilted, near), sigma, excess[near],
            np.maximum(guess[near], 2 - NEVER),
        )  # fmt: skip
    return np.maximum(tails, 0.0), found, better, deviation


def _part(tilted: _Tilted, at: np.ndarray) -> _Tilted:
    """Some of the classes of a group."""
    return _Tilted(
        tilted.c, tilted.log_mgf[at], tilted.mean[at], tilted.variance[at],
        tilted.count_variance[at], tilted.growth, tilted.atom[at],
    )  # fmt: skip


def _integral(
    laws: HolderLaws,
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
        size = max(1, CHUNK // max(rows.size, laws.keep.size))
        for begin in range(0, nodes.size, size):
            block = nodes[begin : begin + size]
            weights = np.where(block == 0, 0.5, 1.0)
            total += _integrand(laws, rows, table, tilted, sigma, excess, block) @ weights
    return np.sign(c) * total * step / np.pi


def _integrand(
    laws: HolderLaws,
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
    laws: HolderLaws, c: float, t: np.ndarray, over_none: Any
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
