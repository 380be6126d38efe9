"""The weighted Gaussian mechanism by whole-array NumPy on one core, as well as we know how.

What `simulate` is measured against; `experiments` and `theory` never use it for results. Per trial
it does only what changes from trial to trial:

- Users of at most Delta0 items keep everything. Their weights are added up once.
- Of every larger user a subset is drawn, for all users at once, in one of two ways; the faster one
  on the data at hand is found by trying. *Shuffle*: the first steps of Fisher and Yates' shuffle,
  each step for all users; a shuffle may start from any order, so the list is never put back.
  *Sort*: one sort of 64-bit keys (user, random bits, place), of which the first Delta0 of a user
  count. Where Delta0 is 1, one item is *picked*. All these items weigh the same, so counts are
  enough.
- Noise is drawn for items that can be heavy. Any other one is released only if its noise is among
  the largest of a thousand; the number of these is binomial, and only they are drawn.

No draw is approximated, up to ties of the random bits (below 2^-40 per pair of items) and float32.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from jaxtyping import Float64
from scipy import special

from theory import Calibration, UserItems

# Share of light items whose noise is looked at.
_LOUD = 1e-3
_TRIES = 5


class NumpyTrials:
    """Trials of the weighted Gaussian mechanism on one data set.

    Args:
        data: The data set.
        calibration: One point.
        seed: Seed of the generator.
        way: "shuffle" or "sort", or "pick" where Delta0 is 1; by default the fastest.

    Example:
        >>> data = UserItems.from_sets([{0, 1}, {0}] * 100)
        >>> from theory import calibrate
        >>> noise = calibrate(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> NumpyTrials(data, noise).missing_masses(3).shape
        (3,)
    """

    def __init__(
        self, data: UserItems, calibration: Calibration, *, seed: int = 0, way: str | None = None
    ) -> None:
        self._rng = np.random.Generator(np.random.SFC64(seed))
        self._keep = keep = int(calibration.max_items_per_user)
        self._sigma, self._threshold = float(calibration.sigma), float(calibration.threshold)
        self._num_pairs = data.num_pairs
        self._weight = np.float32(keep**-0.5)

        sizes = data.set_sizes
        pair_sizes = np.repeat(sizes, sizes)
        clipped = pair_sizes > keep
        base = np.bincount(
            data.items[~clipped], pair_sizes[~clipped] ** -0.5, minlength=data.num_items
        )
        copies = np.bincount(data.items[clipped], minlength=data.num_items)
        self._sort_items(data, base, copies)

        self._sizes = sizes[sizes > keep]
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._slots = self._place[data.items[clipped]]
        self._draw = self._choose(way)

    def missing_masses(self, count: int) -> Float64[np.ndarray, " count"]:
        """Missing masses of the next `count` trials."""
        return np.array([self.missing_mass() for _ in range(count)])

    def missing_mass(self) -> float:
        """Missing mass of the next trial."""
        if self._draw is not None:
            kept = np.bincount(self._draw(), minlength=self._num_drawn)
            np.multiply(kept, self._weight, out=self._weights[: kept.size], casting="unsafe")
            self._weights[: kept.size] += self._base[: kept.size]
        rng, weights, heavy = self._rng, self._weights, self._heavy
        noisy = rng.standard_normal(heavy.size, dtype=np.float32)
        noisy *= np.float32(self._sigma)
        noisy += weights[heavy]
        # Every heavy item without weight is missed whatever its noise.
        released = (noisy > self._threshold) & (weights[heavy] > 0)
        found = self._frequencies[heavy] @ released

        loud = rng.binomial(self._light.size, _LOUD) if self._light.size else 0
        if loud:
            chosen = self._light[rng.choice(self._light.size, loud, replace=False, shuffle=False)]
            noise = -self._sigma * special.ndtri(_LOUD * rng.random(loud))
            light = weights[chosen]
            found += self._frequencies[chosen] @ ((light + noise > self._threshold) & (light > 0))
        return 1.0 - float(found) / self._num_pairs

    def _sort_items(self, data: UserItems, base: np.ndarray, copies: np.ndarray) -> None:
        """Number the items anew, those with a clipped holder first; split heavy from light."""
        order = np.argsort(copies == 0, kind="stable")
        self._place = np.empty(data.num_items, np.intp)
        self._place[order] = np.arange(data.num_items)
        self._num_drawn = int(np.count_nonzero(copies))
        self._base = base[order].astype(np.float32)
        self._weights = self._base.copy()
        self._frequencies = data.frequencies[order].astype(np.float64)
        # At this weight an item needs noise of the loudest share to be released.
        cut = self._threshold + self._sigma * float(special.ndtri(_LOUD))
        heavy = (base + copies * float(self._weight))[order] > cut
        self._heavy, self._light = np.flatnonzero(heavy), np.flatnonzero(~heavy)

    def _choose(self, way: str | None) -> Callable[[], np.ndarray] | None:
        if self._sizes.size == 0:
            return None
        chosen = way or ("pick" if self._keep == 1 else None)
        names = [chosen] if chosen else ["shuffle", "sort"]
        prepared = [
            _WAYS[name](self._rng, self._slots, self._starts, self._sizes, self._keep)
            for name in names
        ]
        seconds = [min(_seconds(draw) for _ in range(_TRIES)) for draw in prepared]
        return prepared[int(np.argmin(seconds))]


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


class _Pick:
    """One item of every user."""

    def __init__(
        self,
        rng: np.random.Generator,
        slots: np.ndarray,
        starts: np.ndarray,
        sizes: np.ndarray,
        keep: int,
    ) -> None:
        self._rng, self._slots, self._starts = rng, slots, starts
        self._sizes, self._uniform = sizes.astype(float), np.empty(sizes.size)

    def __call__(self) -> np.ndarray:
        uniform = self._rng.random(out=self._uniform)
        uniform *= self._sizes
        chosen = uniform.astype(np.intp)
        chosen += self._starts
        return self._slots[chosen]


class _Shuffle:
    """Subsets by the first steps of a shuffle of every user's items, all users in one step."""

    def __init__(
        self,
        rng: np.random.Generator,
        slots: np.ndarray,
        starts: np.ndarray,
        sizes: np.ndarray,
        keep: int,
    ) -> None:
        self._rng, self._slots = rng, slots.copy()
        # Who keeps more than half shuffles those to lose to the front, and keeps the rest.
        steps = np.minimum(keep, sizes - keep)
        order = np.argsort(-steps, kind="stable")
        starts, sizes, steps = starts[order], sizes[order], steps[order]
        # Users still shuffling at step j, a prefix.
        busy = [int(np.searchsorted(-steps, -j)) for j in range(int(steps[0]))]
        ends = np.cumsum(busy)
        self._steps = [
            (end - users, end, starts[:users] + step)
            for step, (users, end) in enumerate(zip(busy, ends.tolist(), strict=True))
        ]
        self._room = np.concatenate([sizes[:n] - step for step, n in enumerate(busy)]).astype(float)
        self._uniform = np.empty(self._room.size)
        first = np.where(2 * keep <= sizes, starts, starts + sizes - keep)
        self._take = (first[:, None] + np.arange(keep)).ravel()

    def __call__(self) -> np.ndarray:
        slots = self._slots
        uniform = self._rng.random(out=self._uniform)
        uniform *= self._room
        others = uniform.astype(np.intp)
        for start, end, here in self._steps:
            other = others[start:end]
            other += here
            chosen = slots[other]
            slots[other] = slots[here]
            slots[here] = chosen
        return slots[self._take]


class _Sort:
    """Subsets by one sort of keys: user in the high bits, place in the low ones, random between."""

    def __init__(
        self,
        rng: np.random.Generator,
        slots: np.ndarray,
        starts: np.ndarray,
        sizes: np.ndarray,
        keep: int,
    ) -> None:
        self._rng, self._slots = rng, slots
        low = int(sizes.max() - 1).bit_length()
        high = max(1, int(sizes.size - 1).bit_length())
        users = np.repeat(np.arange(sizes.size, dtype=np.uint64), sizes)
        places = np.arange(slots.size) - np.repeat(starts, sizes)
        self._fixed = (users << np.uint64(64 - high)) | places.astype(np.uint64)
        self._places = np.uint64((1 << low) - 1)
        self._random = np.uint64((1 << (64 - high)) - (1 << low))
        self._take = (starts[:, None] + np.arange(keep)).ravel()
        self._starts = np.repeat(starts, keep)

    def __call__(self) -> np.ndarray:
        keys = self._rng.integers(0, 2**64, size=self._fixed.size, dtype=np.uint64)
        keys &= self._random
        keys |= self._fixed
        keys.sort()
        places = (keys[self._take] & self._places).view(np.int64)
        places += self._starts
        return self._slots[places]


_WAYS = {"pick": _Pick, "shuffle": _Shuffle, "sort": _Sort}
