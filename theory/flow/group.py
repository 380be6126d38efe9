"""A group of classes of holders and the flow that turns its counts into a release probability."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int64

from theory._check import invalid
from theory.flow.fields import check_monotone_ratios
from theory.flow.grid import ProbabilityGrid
from theory.flow.pairs import UNIT, OneStepMap


@dataclass(frozen=True, eq=False)
class FlowGroup:
    """Classes `first_class` to the last, in blocks that share a clock up to a factor.

    A user who keeps t items is of class t. A holder of class t moves an item by the time
    `time_constants` of its class on the clock of its block. With the blocks in ascending order

        p(n) = max over blocks k with a holder of  F_k ( ... F_2 ( F_1 (start_k) ) ... ),

    F_j the move by all holders of block j; 0 without holders.

    Attributes:
        grid: Nodes that all clocks share.
        first_class: Smallest set size of the group.
        last_of_block: Largest set size of every block, ascending.
        durations: Time in every cell, one row per block; ratios are monotone from `first_cell` on.
        time_constants: Time of one holder, one per class.
        starts: Position on the grid from which block k starts, non-increasing in k.
        clocks: Time from probability 0 to every node, one row per block; follows from `durations`.

    Example:
        >>> from theory.flow import FlowGroup, calibrate_flow
        >>> (group,) = calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=1).groups
        >>> isinstance(group, FlowGroup), [round(p, 3) for p in group.pure(1, 11.0)]
        (True, [0.328, 0.672])
    """

    grid: ProbabilityGrid
    first_class: int
    last_of_block: Int64[np.ndarray, " blocks"]
    durations: Float64[np.ndarray, "blocks cells"]
    time_constants: Float64[np.ndarray, " classes"]
    starts: Float64[np.ndarray, " blocks"]
    clocks: Float64[np.ndarray, "blocks nodes"] = field(init=False)

    def __post_init__(self) -> None:
        clocks = np.stack([self.grid.clock(row) for row in self.durations])
        object.__setattr__(self, "clocks", clocks)
        check_monotone_ratios(self.durations, self.first_cell)
        if np.any(np.diff(self.starts) > 0) or self.starts[-1] < 1:
            invalid("starts", self.starts, "must not increase, nor lie below the first node")
        if not np.all((self.time_constants > 0) & np.isfinite(self.time_constants)):
            invalid("time_constants", self.time_constants.min(), "must be finite and above 0")

    @property
    def last_class(self) -> int:
        """Largest set size of the group."""
        return int(self.last_of_block[-1])

    @property
    def num_blocks(self) -> int:
        """Number of blocks."""
        return self.last_of_block.size

    @property
    def first_cell(self) -> int:
        """Lowest cell in which an item with holders can be."""
        return int(self.starts[-1])

    def block_of(self, of_class: int) -> int:
        """Block of a class."""
        return int(np.searchsorted(self.last_of_block, of_class))

    def time_constant(self, of_class: int) -> float:
        """Time of one holder of a class."""
        return float(self.time_constants[of_class - self.first_class])

    def first_jump(self, of_class: int) -> tuple[float, float]:
        """Release and miss probability of an item whose only holder is of this class."""
        return self.pure(of_class, 1.0)

    def pure(self, of_class: int, holders: float) -> tuple[float, float]:
        """Release and miss probability with holders of one class only; any real number of them."""
        block = self.block_of(of_class)
        clock = self.clocks[block]
        time = self.grid.time(clock, self.starts[block : block + 1])
        time = time + self.time_constant(of_class) * holders
        release, miss = self.grid.at(self.grid.place(clock, time))
        return float(release[0]), float(miss[0])

    def holders(self, of_class: int, release: float) -> float:
        """Holders of one class, not rounded, who bring an item to this release probability."""
        block = self.block_of(of_class)
        clock = self.clocks[block]
        aim = self.grid.position(np.array([release]), np.array([1 - release]))
        time = self.grid.time(clock, aim) - self.grid.time(clock, self.starts[block : block + 1])
        return float(time[0] / self.time_constant(of_class))

    def step_map(self, of_class: int) -> OneStepMap:
        """Everything that adding one user of this class may do to an item of the group.

        By Lemma A the pair (b, p(n + e_t)) lies below the move by one time constant; or nobody held
        the item before.
        """
        block = self.block_of(of_class)
        moved = self.grid.step_map(
            self.clocks[block], self.time_constant(of_class), self.first_cell
        )
        release, miss = self.first_jump(of_class)
        return moved.joined(
            OneStepMap(np.zeros(1), np.ones(1), np.array([release]), np.array([miss]))
        )

    @cached_property
    def rounding(self) -> float:
        """Bound on the relative error of p and 1 - p as evaluated in float64.

        One block's move is wrong by a few units of its largest time, and its position by a few
        units of the number of cells. Later moves stretch an error in log-odds by at most the
        ratio of the *first* block's speeds: by the monotone ratios no other block stretches more,
        and these factors telescope.
        """
        speeds = self.grid.cell_width / self.durations[:, self.first_cell :]
        first = speeds[0]
        sizes = np.diff(np.concatenate(([self.first_class - 1], self.last_of_block)))
        times = self.clocks[:, -1] * (16 + sizes) * UNIT
        relative = np.max(speeds / first, axis=1)
        by_time = float(np.sum(times * relative)) * first.max()
        by_place = 16 * UNIT * self.grid.num_cells * self.grid.cell_width * self.num_blocks
        return 2 * (by_time + by_place * float(first.max() / first.min())) + 64 * UNIT
