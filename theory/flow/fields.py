"""Speeds of the classes: from largest steps to durations, and monotone ratios between classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int64

from theory._check import invalid
from theory.flow.grid import ProbabilityGrid
from theory.flow.renyi import LARGEST_LOGIT

# Ratios fall by this share from cell to cell where they would be constant, so that they are
# strictly monotone whatever the rounding of a product of two floats.
_TILT = 1e-13
_STRICT = 1 - 1e-15

# Log-odds at which no class is slowed down for another's sake.
_PIVOT = 1.0


@dataclass(frozen=True, eq=False)
class FlowFields:
    """Time that every block of classes spends in every cell, before ratios are made monotone.

    Attributes:
        grid: Nodes that all clocks share.
        last_of_block: Largest set size of every block.
        half_durations: Time in every cell below p = 1/2; the upper half is the mirror image.
        jump_cells: Cell of each block's largest first jump.

    Example:
        >>> from theory.flow import FlowFields, calibrate_flow
        >>> fields = calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=1).fields
        >>> isinstance(fields, FlowFields), fields.blocks(1, 1).tolist()
        (True, [0])
        >>> fields.durations.shape == (1, fields.grid.num_cells)
        True
    """

    grid: ProbabilityGrid
    last_of_block: Int64[np.ndarray, " blocks"]
    half_durations: Float64[np.ndarray, "blocks half_cells"]
    jump_cells: Int64[np.ndarray, " blocks"]

    @cached_property
    def durations(self) -> Float64[np.ndarray, "blocks cells"]:
        """Time in every cell."""
        return np.concatenate((self.half_durations, self.half_durations[:, ::-1]), axis=1)

    def blocks(self, first: int, last: int) -> Int64[np.ndarray, " some"]:
        """Blocks of the classes first..last, which begin and end with a block."""
        return np.flatnonzero((self.last_of_block >= first) & (self.last_of_block <= last))

    def monotone(self, first: int, last: int) -> Float64[np.ndarray, "some cells"]:
        """Durations of the blocks of classes first..last, with monotone ratios."""
        grid, rows = self.grid, self.blocks(first, last)
        pivot = min(grid.middle + round(_PIVOT / grid.cell_width), grid.num_cells - 1)
        return monotone_durations(self.durations[rows], pivot, self.jump_cells[rows].tolist())


def symmetric_step(
    grid: ProbabilityGrid, adding: Float64[np.ndarray, " inner"]
) -> Float64[np.ndarray, " inner"]:
    """Log-odds after the largest step allowed in both directions, from that for adding alone.

    Removing a user is adding one with release and miss exchanged: the graph of its largest step is
    the mirror image, (b, a) to (1 - a, 1 - b). The two graphs meet on the axis of the mirror.

    Args:
        grid: Nodes.
        adding: Log-odds after the largest step for adding, increasing, at the inner nodes.
    """
    logits = grid.logits
    mirrored = np.interp(logits, -adding[::-1], -logits[::-1], right=np.inf)
    # Left of the mirror image's first point removing allows more than the last node.
    mirrored = np.where(logits < -adding[-1], np.inf, mirrored)
    # Past the mirror image of the jump from 0 everything may be released.
    return np.minimum(np.where(adding >= LARGEST_LOGIT, np.inf, adding), mirrored)


def half_durations(
    grid: ProbabilityGrid, after: Float64[np.ndarray, " inner"], jump: float
) -> Float64[np.ndarray, " half_cells"]:
    """Time spent in every cell below 1/2 so that the move by time 1 is about the step `after`.

    The speed in log-odds at the middle of a step is the step's length: the midpoint rule, exact to
    second order and as smooth as the step. Below the first jump the speed is that at the jump.

    Args:
        grid: Nodes.
        after: Log-odds after the largest step, at the inner nodes.
        jump: Log-odds after the largest step from 0.
    """
    logits = grid.logits
    low = logits <= 0
    step = np.minimum(after, -grid.logits[0])[low] - logits[low]
    step = np.maximum(step, 1e-300)
    middles = (logits[:-1] + logits[1:]) / 2
    middles = middles[: grid.half_cells]
    slowness = np.interp(middles, logits[low] + step / 2, 1 / step)
    first = int(np.searchsorted(middles, min(jump, middles[-1])))
    slowness[:first] = slowness[first]
    lower = slowness * grid.cell_width
    # The first cell, from 0 to the first node, is never entered: no item starts that low.
    return np.concatenate((lower[:1], lower))


def monotone_durations(
    durations: Float64[np.ndarray, "blocks cells"], pivot: int, jump_cells: list[int]
) -> Float64[np.ndarray, "blocks cells"]:
    """Slow classes down so that no class gains on a class of smaller sets as p grows.

    With speeds v, the ratio v_s / v_t must be non-increasing in p for s > t. Below the pivot cell
    the class of smaller sets gives way, from the largest class down; above, the larger one, from
    the smallest class up. At the pivot nothing changes. Below its first jump a class is never seen,
    and just follows.

    Args:
        durations: Time in every cell, one row per block of classes, ascending set sizes.
        pivot: Cell where ratios are kept.
        jump_cells: Cell of each block's first jump.
    """
    out = durations.copy()
    cells = np.arange(durations.shape[1])
    for row in range(len(out) - 2, -1, -1):
        first = min(jump_cells[row], pivot)
        ratio = out[row, : pivot + 1] / out[row + 1, : pivot + 1]
        ratio[first:] = np.maximum.accumulate(ratio[first:][::-1])[::-1]
        ratio[:first] = ratio[first]
        out[row, : pivot + 1] = (
            ratio * (1 + _TILT * (pivot - cells[: pivot + 1])) * (out[row + 1, : pivot + 1])
        )
    for row in range(1, len(out)):
        ratio = np.minimum.accumulate(out[row - 1, pivot:] / out[row, pivot:])
        tilt = 1 - _TILT * (cells[pivot:] - pivot)
        out[row, pivot:] = out[row - 1, pivot:] / (ratio * tilt)
    return out


def check_monotone_ratios(durations: Float64[np.ndarray, "blocks cells"], first_cell: int) -> None:
    """Raise unless v_s / v_t is non-increasing in p for all s > t, from `first_cell` on.

    Neighbouring rows are enough: ratios of more distant classes are products of theirs. Speeds are
    constant in every cell, so cells are enough too.

    Raises:
        InvalidInput: A duration that is not a finite number above 0, or a ratio that increases.

    Source:
        Bernoulli flow note, Lemma A.
    """
    used = durations[:, first_cell:]
    if not np.all(np.isfinite(used) & (used > 0)):
        invalid("durations", "a cell", "must be finite numbers above 0")
    ratio = used[:-1] / used[1:]
    rises = ratio[:, 1:] > ratio[:, :-1] * _STRICT
    if np.any(rises):
        row, cell = np.argwhere(rises)[0]
        invalid(
            "durations",
            f"block {row + 1} against {row}",
            f"must have a falling ratio of speeds, but it rises at cell {cell + first_cell + 1}",
        )
