"""The fast sampler as a whole: what the host prepares, and what it adds to the kernel's numbers."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
from jaxtyping import Int64, UInt32

from theory import UserItems
from theory._check import invalid
from wgm_jax.bits import key_words, threefry
from wgm_jax.count_law import CountLaw, GaussianLaw
from wgm_jax.devices import Devices
from wgm_jax.fates import Fates, fates
from wgm_jax.lane_outcomes import GROUP, Outcomes, ReleaseRows, gaussian_threshold
from wgm_jax.lanes import STEP, LaneState, lane_metrics
from wgm_jax.rare import OpenSlots, RareItems
from wgm_jax.samplers import LARGEST_SET

# Measured on a CPU; more lanes pay even where the counts leave its cache, as rows get longer.
_MOST_LANES_CPU, _MOST_LANES_GPU, _FEWEST_LANES = 1024, 4096, 64
# Smaller data sets share one program.
_LEAST_SLOTS, _LEAST_ITEMS = 2**13, 2**9
# Keeps this sampler's keys apart from those of the padded one.
_TAG = 0x6C616E65


class LaneSampler:
    """Trials of a law by kept copies, by `wgm_jax.lanes` and `wgm_jax.rare`.

    Args:
        data: The data set.
        law: Release probabilities of its items, on a grid at one Delta0.
        seed: Seed.
        devices: Where the kernel runs.
        num_trials: Trials that will be asked for: a hint.
        callers: Threads that will call at the same time.
        memory_budget: Bytes that these calls may take together.

    Attributes:
        num_open_items: Items that the kernel looks at.
        num_open_slots: Their pairs with clipped users.
    """

    def __init__(
        self,
        data: UserItems,
        law: CountLaw,
        *,
        seed: int,
        devices: Devices,
        num_trials: int,
        callers: int,
        memory_budget: int,
    ) -> None:
        found = fates(data, law)
        opened = np.flatnonzero(found.open)
        opened = opened[np.argsort(-data.frequencies[opened], kind="stable")]
        slots = open_slots(data, opened, law.keep)
        state = lane_state(data, law, found, opened, slots, memory_budget)
        self.num_open_items, self.num_open_slots = opened.size, slots.items.size
        self._rare = RareItems.of(data, law, found, slots)
        self._keys = _keys(seed)
        self._mesh = devices.mesh
        self._lanes = _lanes(state, devices, num_trials, callers, memory_budget)
        self.trials_per_call = self.most_trials_per_call = self._lanes * devices.count

        # What the items outside the kernel add if nothing rare happens.
        missed = data.frequencies[found.missed & ~found.open]
        self._constants = {
            "missed_pairs": int(missed.sum()),
            "missed_squares": float(np.sum(missed.astype(float) ** 2)),
            "num_released": data.num_items - opened.size - missed.size,
        }
        values, self._multiplicity = np.unique(missed, return_counts=True)
        self._descending, self._multiplicity = values[::-1], self._multiplicity[::-1]

        self._state = devices.put(state)
        nothing = devices.put(np.int32(0))
        idle = dataclasses.replace(self._state, num_steps=nothing, num_groups=nothing)
        jax.block_until_ready(self._call(0, idle))  # compiles everything and runs nothing

    def __call__(self, first: int, count: int) -> dict[str, np.ndarray]:
        """Metrics of trials first, ..., first + count - 1, one array (count, points) each."""
        waiting = self._call(first, self._state)
        trial, item, happened = self._rare.unexpected(self._keys, first, count)
        found = {name: np.asarray(values)[:, :count].T for name, values in waiting.items()}
        missed = self._rare.missed[item]
        # Per item: released or missed, against expectation.
        change = np.where(missed[:, None], 1, -1) * happened
        frequencies = self._rare.frequencies[item][:, None]
        shape = found["missed_pairs"].shape

        def total(values: np.ndarray) -> np.ndarray:
            summed = np.zeros(shape, values.dtype)
            np.add.at(summed, trial, values)
            return summed

        constants = self._constants
        largest = self._largest_expected(trial[missed], item[missed], happened[missed], shape)
        np.maximum.at(largest, trial, np.where(change < 0, frequencies, 0))
        squares = found["missed_squares"].astype(float) + found["missed_squares_rest"]
        return {
            "missed_pairs": found["missed_pairs"]
            + (constants["missed_pairs"] - total(change * frequencies)),
            "missed_squares": squares
            + (constants["missed_squares"] - total(change * frequencies.astype(float) ** 2)),
            "largest_missed": np.maximum(found["largest_missed"], largest),
            "num_released": found["num_released"] + (constants["num_released"] + total(change)),
        }

    def _call(self, first: int, state: LaneState) -> dict[str, jax.Array]:
        return lane_metrics(
            self._keys[0], np.uint32(first), state, lanes=self._lanes, mesh=self._mesh
        )

    def _largest_expected(
        self, trial: np.ndarray, item: np.ndarray, released: np.ndarray, shape: tuple[int, int]
    ) -> Int64[np.ndarray, "count points"]:
        """Largest frequency among items that are missed as expected; 0 if there is none."""
        largest = np.zeros(shape, np.int64)
        above = np.ones(shape, bool)  # all items of larger frequency are released
        for value, multiplicity in zip(self._descending, self._multiplicity, strict=True):
            largest[above] = value
            same = self._rare.frequencies[item] == value
            count = np.zeros(shape, np.int64)
            np.add.at(count, trial[same], released[same])
            above &= count == multiplicity
            if not above.any():
                return largest
        largest[above] = 0
        return largest


def open_slots(data: UserItems, opened: np.ndarray, keep: int) -> OpenSlots:
    """Slots of open items of users with more than `keep` items.

    Args:
        data: The data set.
        opened: Indices of open items; a slot's item is its place in here.
        keep: Contribution bound Delta0.
    """
    place = np.full(data.num_items, -1, np.int64)
    place[opened] = np.arange(opened.size)
    clipped = data.set_sizes > keep
    sizes = data.set_sizes[clipped]
    places = place[data.items[np.repeat(clipped, data.set_sizes)]]
    at = np.flatnonzero(places >= 0)
    users = np.repeat(np.arange(sizes.size), sizes)[at]
    lengths = np.bincount(users, minlength=sizes.size)
    starts = np.concatenate(([0], np.cumsum(lengths)))
    within = np.arange(at.size) - starts[users]
    return OpenSlots(places[at], sizes[users] - within, starts, sizes, keep)


def lane_state(
    data: UserItems,
    law: CountLaw,
    found: Fates,
    opened: np.ndarray,
    slots: OpenSlots,
    memory_budget: int = 2**30,
) -> LaneState:
    """The kernel's view of the open items, padded to powers of two.

    Raises:
        InvalidInput: The law is tabulated, and the table does not fit into the budget.
    """
    num_slots, num_items = slots.items.size, opened.size
    room = _power_of_two(max(num_slots, _LEAST_SLOTS)) - num_slots
    # At least one row of padding, where slots of padding add to.
    rows = _power_of_two(max(num_items + 1, _LEAST_ITEMS)) - num_items
    most = int(np.bincount(slots.items).max(initial=0))
    first = np.zeros(num_slots, bool)
    first[slots.starts[:-1][np.diff(slots.starts) > 0]] = True
    return LaneState(
        items=_padded(slots.items, room, num_items).astype(np.int32),
        left=_padded(slots.left, room, 1).astype(np.uint32),
        first=_padded(first, room, False),
        num_steps=np.asarray(-(-num_slots // STEP), np.int32),
        keep=np.asarray(min(slots.keep, LARGEST_SET), np.uint32),
        frequencies=_padded(data.frequencies[opened], rows, 0).astype(np.int32),
        outcomes=_outcomes(data, law, found, opened, num_items + rows, memory_budget),
        num_groups=np.asarray(-(-num_items // GROUP), np.int32),
        dtype="int16" if most < 2**15 else "int32",
    )


def _outcomes(
    data: UserItems,
    law: CountLaw,
    found: Fates,
    opened: np.ndarray,
    padded: int,
    memory_budget: int,
) -> Outcomes:
    """How open items come out: the one place that knows of Gaussian noise."""
    if isinstance(law, GaussianLaw):
        return gaussian_threshold(
            law.base[opened], law.share, law.sigma, law.threshold, padded=padded
        )
    kinds = data.item_classes.class_of_item
    assert kinds is not None  # classes of users' data know their items
    copies = found.low[opened], found.high[opened]
    return ReleaseRows.of(
        law, opened, copies, kinds[opened], padded=padded, memory_budget=memory_budget
    )


def _padded(values: np.ndarray, room: int, value: Any) -> np.ndarray:
    return np.pad(values, (0, room), constant_values=value)


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def _keys(seed: int) -> UInt32[np.ndarray, "streams 2"]:
    """Keys of the kernel, and of events, noises and kept copies of rare items."""
    tags = np.full(4, _TAG, np.uint32), np.arange(4, dtype=np.uint32)
    return np.stack(threefry(key_words(seed), *tags), axis=1)


def _lanes(
    state: LaneState, devices: Devices, num_trials: int, callers: int, memory_budget: int
) -> int:
    """Trials of one call on one device, a power of two."""
    points = state.outcomes.num_points
    # Counts; five sums per point, twice, and results; the rows at work.
    per_lane = state.frequencies.size * np.dtype(state.dtype).itemsize + 48 * points + 512
    together = callers * devices.count
    if per_lane * together > memory_budget:
        accepted = f"must be at least {per_lane * together}: bytes of one trial at a time"
        invalid("memory_budget", memory_budget, accepted)
    most = _MOST_LANES_CPU if devices.platform == "cpu" else _MOST_LANES_GPU
    fitting = min(most, memory_budget // (per_lane * together))
    share = max(_FEWEST_LANES, -(-num_trials // together))
    return min(_power_of_two(share), 1 << (fitting.bit_length() - 1))
