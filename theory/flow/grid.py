"""The grid of release probabilities on which clocks are piecewise linear, and clocks.

A clock says how long a holder of some class takes to move an item from probability 0 to p. It is
piecewise linear *in p* between the nodes of one grid that all classes share. Then the move by a
fixed time is piecewise linear in p as well, with known vertices, so that what is certified is the
map itself and not an approximation; and the ratio of the speeds of two classes is constant in every
cell, so that it is monotone everywhere as soon as it is monotone from cell to cell.

Positions on the grid are numbers from 0 to `num_cells`: the cell, and the share of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from theory.flow.pairs import OneStepMap


@dataclass(frozen=True)
class ProbabilityGrid:
    """0, then evenly spaced log-odds from -half_width to half_width, then 1: symmetric in p, 1-p.

    Attributes:
        half_cells: Cells with log-odds between -half_width and 0.
        cell_width: Width of these cells in log-odds.

    Example:
        >>> grid = ProbabilityGrid(half_cells=2, cell_width=1.0)
        >>> grid.release.round(3).tolist()
        [0.0, 0.119, 0.269, 0.5, 0.731, 0.881, 1.0]
        >>> grid.position(np.array([0.25]), np.array([0.75])).round(3)
        array([1.874])
    """

    half_cells: int
    cell_width: float

    @property
    def num_cells(self) -> int:
        """Number of cells."""
        return 2 * self.half_cells + 2

    @property
    def middle(self) -> int:
        """Node at p = 1/2."""
        return self.half_cells + 1

    @cached_property
    def logits(self) -> Float64[np.ndarray, " inner"]:
        """Log-odds of the nodes other than 0 and 1."""
        return np.arange(-self.half_cells, self.half_cells + 1) * self.cell_width

    @cached_property
    def release(self) -> Float64[np.ndarray, " nodes"]:
        """Release probability at the nodes."""
        return np.concatenate(([0.0], 1 / (1 + np.exp(-self.logits)), [1.0]))

    @cached_property
    def miss(self) -> Float64[np.ndarray, " nodes"]:
        """One minus the release probability at the nodes, exactly the mirror image."""
        return self.release[::-1].copy()

    @cached_property
    def _nodes(self) -> Float64[np.ndarray, " nodes"]:
        return np.arange(self.num_cells + 1, dtype=np.float64)

    def position(self, release: np.ndarray, miss: np.ndarray) -> np.ndarray:
        """Position of probabilities, by whichever of p and 1 - p is smaller."""
        half = slice(0, self.middle + 1)
        low = np.interp(release, self.release[half], self._nodes[half])
        high = np.interp(miss, self.release[half], self._nodes[half])
        return np.where(release <= miss, low, self.num_cells - high)

    def position_of_logit(self, logit: np.ndarray) -> np.ndarray:
        """Position of log-odds; -inf and inf are 0 and 1."""
        with np.errstate(over="ignore"):
            return self.position(1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(logit)))

    def at(self, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Release and miss probability at positions, each with its own relative precision."""
        cell = np.minimum(position.astype(np.int64), self.num_cells - 1)
        share = position - cell
        release = self.release[cell] * (1 - share) + self.release[cell + 1] * share
        miss = self.miss[cell] * (1 - share) + self.miss[cell + 1] * share
        return release, miss

    def log_odds(self, position: float) -> float:
        """Log-odds at one position."""
        release, miss = self.at(np.array([position]))
        return float(np.log(release[0]) - np.log(miss[0]))

    def clock(self, durations: Float64[np.ndarray, " cells"]) -> Float64[np.ndarray, " nodes"]:
        """Time from 0 to every node."""
        return np.concatenate(([0.0], np.cumsum(durations)))

    def time(self, clock: np.ndarray, position: np.ndarray) -> np.ndarray:
        """Time from 0 to positions."""
        cell = np.minimum(position.astype(np.int64), self.num_cells - 1)
        return clock[cell] + (position - cell) * (clock[cell + 1] - clock[cell])

    def place(self, clock: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Position at times; 0 before the start, `num_cells` (p = 1) after the end."""
        return np.interp(time, clock, self._nodes)

    def step_map(self, clock: np.ndarray, time: float, first_node: int) -> OneStepMap:
        """The move by `time` as a piecewise linear function of p, from node `first_node` on.

        Its vertices are where p or the image of p is a node; 1/2 is a node.
        """
        nodes = self._nodes[first_node:]
        ahead = self.place(clock, clock[first_node:] + time)
        reached = self._nodes[(clock >= clock[first_node] + time)]
        behind = self.place(clock, clock[reached.astype(np.int64)] - time)
        before, before_miss = self.at(np.concatenate((nodes, behind)))
        after, after_miss = self.at(np.concatenate((ahead, reached)))
        # A move of less than one rounding error is none.
        return OneStepMap(
            before, before_miss, np.maximum(after, before), np.minimum(after_miss, before_miss)
        )
