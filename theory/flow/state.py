"""From who keeps each item to its release probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float64

from theory._check import Reals, invalid
from theory.flow.group import FlowGroup

if TYPE_CHECKING:
    from theory.flow.calibration import FlowCalibration

# Items at a time: a table of blocks times items stays in the cache.
_ITEMS = 16384


@dataclass(frozen=True, eq=False)
class FlowComponent:
    """One flow, waiting for the holders of the largest class.

    Attributes:
        clock: Time on the clock of the largest class, before its extra holders.
        empty: Nobody of the flow's group holds the item yet.
        other_release: Release probability by the other groups of the structure alone.
        other_miss: One minus that.
        step: Time of one extra holder.
        knots: Times at which the next two are given.
        knot_release: Release probability at the knots; linear between.
        knot_miss: One minus that, with its own relative precision.

    Example:
        >>> from theory.flow import FlowComponent, calibrate_flow
        >>> flow = calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> (component,) = flow.prepare(offsets=[0, 1], sizes=[1], counts=[0]).components
        >>> isinstance(component, FlowComponent), component.empty.tolist()
        (True, [True])
        >>> component.probabilities(np.array([11]))[0].round(3).tolist()
        [0.328]
    """

    clock: Float64[np.ndarray, " items"]
    empty: Bool[np.ndarray, " items"]
    other_release: Float64[np.ndarray, " items"]
    other_miss: Float64[np.ndarray, " items"]
    step: float
    knots: Float64[np.ndarray, " nodes"]
    knot_release: Float64[np.ndarray, " nodes"]
    knot_miss: Float64[np.ndarray, " nodes"]

    def probabilities(self, extra: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Release and miss probability of the structure, for extra holders (*trials, items)."""
        times = self.clock + self.step * extra
        absent = self.empty & (extra == 0)
        release = np.where(absent, 0.0, np.interp(times, self.knots, self.knot_release))
        miss = np.where(absent, 1.0, np.interp(times, self.knots, self.knot_miss))
        return release * self.other_miss + self.other_release, miss * self.other_miss


@dataclass(frozen=True, eq=False)
class FlowState:
    """Items between their fixed holders and the extra ones, who keep Delta0 items each.

    Attributes:
        fixed_release: Largest release probability over the flows that extra holders do not touch.
        fixed_miss: One minus that.
        components: The flows that they do touch.

    Example:
        Two items, held by 11 and by 12 users who hold nothing else:

        >>> from theory.flow import FlowState, calibrate_flow
        >>> flow = calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=1)
        >>> state = flow.prepare(offsets=[0, 1, 2], sizes=[1, 1], counts=[11, 12])
        >>> isinstance(state, FlowState), [p.round(3).tolist() for p in state.probabilities(0)]
        (True, [[0.328, 0.719], [0.672, 0.281]])
        >>> state.probabilities(1)[0].round(3).tolist()  # one more holder each
        [0.719, 0.897]
    """

    fixed_release: Float64[np.ndarray, " items"]
    fixed_miss: Float64[np.ndarray, " items"]
    components: tuple[FlowComponent, ...]

    def probabilities(self, extra: Reals) -> tuple[np.ndarray, np.ndarray]:
        """Release and miss probability, each with its own relative precision.

        Args:
            extra: Whole numbers of at least 0: further holders who keep Delta0 items, of shape ()
                or (*trials, items).

        Returns:
            Two float64 arrays (*trials, items), within [0, 1].
        """
        more = np.asarray(extra)
        if more.dtype.kind not in "iu" or np.any(more < 0):
            invalid("extra", extra, "must be whole numbers of at least 0")
        release, miss = self.fixed_release, self.fixed_miss
        for component in self.components:
            new_release, new_miss = component.probabilities(more)
            release, miss = np.maximum(release, new_release), np.minimum(miss, new_miss)
        # A union of groups may round to just above 1, interpolation to just below 0.
        return np.clip(release, 0.0, 1.0), np.clip(miss, 0.0, 1.0)


def flow_state(
    flow: FlowCalibration, offsets: np.ndarray, sizes: np.ndarray, counts: np.ndarray
) -> FlowState:
    """`FlowCalibration.prepare`."""
    _check_table(flow.max_items_per_user, offsets, sizes, counts)
    num_items = offsets.size - 1
    fixed_release, fixed_miss = np.zeros(num_items), np.ones(num_items)
    shapes = (len(flow.structures), num_items)
    clocks, empties = np.empty(shapes), np.empty(shapes, bool)
    other_releases, other_misses = np.zeros(shapes), np.ones(shapes)
    for low in range(0, num_items, _ITEMS):
        chunk = slice(low, min(low + _ITEMS, num_items))
        rows = slice(offsets[low], offsets[chunk.stop])
        item = np.repeat(np.arange(chunk.stop - low), np.diff(offsets[low : chunk.stop + 1]))
        for i, parts in enumerate(flow.structures):
            other_release, other_miss = other_releases[i, chunk], other_misses[i, chunk]
            for index in parts[:-1]:
                group = flow.groups[index]
                fixed, position, empty = _run(group, item, sizes[rows], counts[rows], chunk)
                furthest = np.where(empty, fixed, np.maximum(fixed, position))
                release, miss = _at(group, furthest)
                other_release += other_miss * release
                other_miss *= miss
            group = flow.groups[parts[-1]]
            fixed, position, empty = _run(group, item, sizes[rows], counts[rows], chunk)
            release, miss = _at(group, fixed)
            fixed_release[chunk] = np.maximum(
                fixed_release[chunk], release * other_miss + other_release
            )
            fixed_miss[chunk] = np.minimum(fixed_miss[chunk], miss * other_miss)
            clocks[i, chunk] = group.grid.time(group.clocks[-1], position)
            empties[i, chunk] = empty
    last = [flow.groups[parts[-1]] for parts in flow.structures]
    components = [
        FlowComponent(
            clocks[i], empties[i], other_releases[i], other_misses[i],
            group.time_constant(group.last_class), group.clocks[-1], group.grid.release,
            group.grid.miss,
        )
        for i, group in enumerate(last)
    ]  # fmt: skip
    return FlowState(fixed_release, fixed_miss, tuple(components))


def _check_table(bound: int, offsets: np.ndarray, sizes: np.ndarray, counts: np.ndarray) -> None:
    if offsets.ndim != 1 or offsets.size == 0 or offsets.dtype.kind not in "iu":
        invalid("offsets", offsets, "must be whole numbers, one more than items")
    if sizes.shape != counts.shape or sizes.ndim != 1:
        invalid("counts", counts.shape, f"must have the shape of sizes, {sizes.shape}")
    if offsets[0] != 0 or offsets[-1] != sizes.size or np.any(np.diff(offsets) < 0):
        invalid("offsets", offsets, f"must rise from 0 to the number of entries, {sizes.size}")
    for name, values, low in (("sizes", sizes, 1), ("counts", counts, 0)):
        if values.size and (values.dtype.kind not in "iu" or values.min() < low):
            invalid(name, values.min(), f"must be whole numbers of at least {low}")
    if sizes.size and sizes.max() > bound:
        invalid("sizes", sizes.max(), f"must be kept set sizes of at most Delta0 = {bound}")


def _at(group: FlowGroup, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities at positions; negative ones mean that nobody holds the item."""
    release, miss = group.grid.at(np.maximum(position, 0.0))
    return np.where(position < 0, 0.0, release), np.where(position < 0, 1.0, miss)


def _times(
    group: FlowGroup, num_items: int, item: np.ndarray, sizes: np.ndarray, counts: np.ndarray
) -> Float64[np.ndarray, "blocks items"]:
    """Time of all holders of every block, for every item."""
    inside = (sizes >= group.first_class) & (sizes <= group.last_class)
    item, sizes, counts = item[inside], sizes[inside], counts[inside]
    block = np.searchsorted(group.last_of_block, np.arange(group.last_class + 1))
    flat = block[sizes] * num_items + item
    times = counts * group.time_constants[sizes - group.first_class]
    table = np.bincount(flat, times, minlength=group.num_blocks * num_items)
    return table.astype(np.float64).reshape(group.num_blocks, num_items)  # int if empty


def _run(
    group: FlowGroup, item: np.ndarray, sizes: np.ndarray, counts: np.ndarray, chunk: slice
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Furthest position over all starts but the last (-1 for none); position from the last start;
    whether nobody of the group holds the item.
    """
    num_items = chunk.stop - chunk.start
    times = _times(group, num_items, item, sizes, counts)
    fixed, position = np.full(num_items, -1.0), np.full(num_items, float(group.starts[-1]))
    present = times > 0
    used = np.flatnonzero(present.any(axis=1))
    for start in used:
        if start == group.num_blocks - 1:
            continue
        items = np.flatnonzero(present[start])
        reached = np.full(items.size, group.starts[start])
        _move(group, times, present, used[used <= start], items, reached)
        fixed[items] = np.maximum(fixed[items], reached)
    _move(group, times, present, used, np.arange(num_items), position)
    return fixed, position, np.logical_not(np.any(present, axis=0))


def _move(
    group: FlowGroup,
    times: np.ndarray,
    present: np.ndarray,
    blocks: np.ndarray,
    items: np.ndarray,
    position: np.ndarray,
) -> None:
    """Move items by all their holders of some blocks, in ascending order; in place."""
    for block in blocks:
        who = np.flatnonzero(present[block, items])
        if who.size:
            time = group.grid.time(group.clocks[block], position[who])
            time += times[block, items[who]]
            position[who] = group.grid.place(group.clocks[block], time)
