"""What a calibration starts from: largest steps of every block of classes, and their fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from theory.flow.fields import FlowFields, half_durations, symmetric_step
from theory.flow.grid import ProbabilityGrid
from theory.flow.group import FlowGroup
from theory.flow.renyi import RenyiRegion, fastest_region, largest_step

Progress = Callable[[str, float], None]
# A structure splits the classes after these set sizes and takes the union of the parts.
CUTS: tuple[tuple[int, ...], ...] = ((), (1,), (3,), (9,))
# Single classes up to here are blocks of their own; beyond, blocks grow geometrically.
_SINGLE_BLOCKS = 10
_BLOCK_GROWTH = 1.06
_CELL_WIDTH = 0.02
# Orders and jump shares are optimised at these set sizes and interpolated in ln t between.
_ORDER_ANCHORS = (2, 3, 4, 6, 10, 20, 50, 120, 300)
# The same for how far the closed form may overspend.
_BOOST_ANCHORS = (*range(2, 11), 13, 17, 22, 30, 40, 53, 70, 95, 130, 170, 230, 310, 420, 560, 750)
# The certificate moves a first jump up by the rounding of p, below 1e-7: it must stay allowed.
_JUMP_MARGIN = 1e-6


@dataclass(frozen=True, eq=False)
class FlowPlan:
    """Largest steps by the closed form, per block of classes.

    Attributes:
        eps: Privacy parameter.
        delta: Privacy parameter.
        fields: Blocks and their speeds.
        regions: Closed form of every block's largest class; None for t = 1, where the optimal
            selection [L0] is used. Their delta may exceed the plan's: see `make_plan`.
        after: Log-odds after the largest step from every inner node.
        jumps: Log-odds after the largest first jump.
    """

    eps: float
    delta: float
    fields: FlowFields
    regions: tuple[RenyiRegion | None, ...]
    after: Float64[np.ndarray, "blocks inner"]
    jumps: Float64[np.ndarray, " blocks"]


def block_ends(max_items_per_user: int) -> Int64[np.ndarray, " blocks"]:
    """Largest set size of every block: single classes first, then geometric, with the cuts."""
    bound = max_items_per_user
    ends = set(range(1, min(bound, _SINGLE_BLOCKS) + 1)) | {bound}
    ends |= {cut for cuts in CUTS for cut in cuts if cut < bound}
    size = float(_SINGLE_BLOCKS)
    while size * _BLOCK_GROWTH < bound:
        size *= _BLOCK_GROWTH
        ends.add(int(np.ceil(size)))
    return np.array(sorted(ends), np.int64)


def boost_anchors(max_items_per_user: int) -> list[int]:
    """Set sizes at which `boost` of `make_plan` is to be chosen, each the last of a block."""
    ends = block_ends(max_items_per_user)
    at = np.array(_anchors(_BOOST_ANCHORS, max_items_per_user), np.int64)
    return np.unique(ends[np.searchsorted(ends, at)]).tolist()


def _anchors(sizes: tuple[int, ...], bound: int) -> list[int]:
    return [t for t in sizes if t < bound] + ([bound] if bound > 1 else [])


def interpolated(
    at: list[int], values: list[float], blocks: Int64[np.ndarray, " blocks"]
) -> Float64[np.ndarray, " blocks"]:
    """Values given at some set sizes, between them linear in ln t."""
    return np.interp(np.log(blocks), np.log(at), values)


def fastest_regions(eps: float, delta: float, bound: int, tell: Progress) -> list[RenyiRegion]:
    """Orders and jump shares with which the fewest holders are needed, at the anchors."""
    regions: list[RenyiRegion] = []
    at = _anchors(_ORDER_ANCHORS, bound)
    for i, t in enumerate(at):
        start = (regions[-1].order, regions[-1].jump_share) if regions else None
        regions.append(fastest_region(eps=eps, delta=delta, items=t, start=start))
        tell("orders", (i + 1) / len(at))
    return regions


def make_plan(
    *,
    eps: float,
    delta: float,
    max_items_per_user: int,
    optimal: list[RenyiRegion],
    boost: Float64[np.ndarray, " blocks"],
) -> FlowPlan:
    """Largest steps and fields of every block.

    Args:
        eps: Privacy parameter.
        delta: Privacy parameter.
        max_items_per_user: Delta0.
        optimal: `fastest_regions`.
        boost: Factor by which the closed form may exceed delta, per block: 1 if it is to certify
            the result, more if a sharper accountant will.
    """
    last = block_ends(max_items_per_user)
    regions: list[RenyiRegion | None] = [None] * last.size
    if optimal:
        at = [region.items for region in optimal]
        odds = [np.log(region.jump_share) - np.log1p(-region.jump_share) for region in optimal]
        orders = np.exp(interpolated(at, [np.log(region.order) for region in optimal], last))
        shares = 1 / (1 + np.exp(-interpolated(at, odds, last)))
        for i in np.flatnonzero(last > 1).tolist():
            regions[i] = RenyiRegion(
                eps, delta * float(boost[i]), int(last[i]), float(orders[i]), float(shares[i])
            )
    jump = np.array([delta if region is None else region.jump for region in regions])
    jump = jump * (1 - _JUMP_MARGIN)
    jumps = np.log(jump) - np.log1p(-jump)

    def adding(row: int, logits: np.ndarray) -> np.ndarray:
        """Log-odds after the largest step for adding a user of a block's largest class."""
        region = regions[row]
        if region is not None:
            return largest_step(region, logits)
        release = np.exp(eps) / (1 + np.exp(-logits)) + delta
        with np.errstate(divide="ignore"):
            return np.log(release) - np.log(np.maximum(1 - release, 0.0))

    # A start lies about one step below a first jump; nodes reach well below the lowest start.
    second = [min(adding(row, jumps[row : row + 1])[0], -jumps[row]) for row in range(last.size)]
    lowest = np.min(2 * jumps - second) - 2.0
    width = _CELL_WIDTH if eps >= 0.1 else _CELL_WIDTH / 2  # steps are to span a cell
    grid = ProbabilityGrid(half_cells=int(np.ceil(-lowest / width)), cell_width=width)
    after = np.stack([symmetric_step(grid, adding(row, grid.logits)) for row in range(last.size)])
    halves = [half_durations(grid, *pair) for pair in zip(after, jumps.tolist(), strict=True)]
    cells = grid.position_of_logit(jumps).astype(np.int64)
    fields = FlowFields(grid, last, np.stack(halves), cells)
    return FlowPlan(eps, delta, fields, tuple(regions), after, jumps)


def make_groups(plan: FlowPlan) -> tuple[list[FlowGroup], tuple[tuple[int, ...], ...]]:
    """The groups of every structure that fits below Delta0, and the structures by index."""
    bound = int(plan.fields.last_of_block[-1])
    groups: list[FlowGroup] = []
    structures = []
    for cuts in CUTS:
        if any(cut >= bound for cut in cuts):
            continue
        ends = [0, *cuts, bound]
        structures.append(tuple(range(len(groups), len(groups) + len(cuts) + 1)))
        for low, high in zip(ends[:-1], ends[1:], strict=True):
            groups.append(_group(plan, low + 1, high))
    return groups, tuple(structures)


def _group(plan: FlowPlan, first: int, last: int) -> FlowGroup:
    """The group of classes first..last: monotone fields, and the largest time constants."""
    grid, rows = plan.fields.grid, plan.fields.blocks(first, last)
    durations = plan.fields.monotone(first, last)
    jumps = grid.position_of_logit(plan.jumps[rows])
    constants, starts = np.empty(rows.size), np.empty(rows.size)
    for block, row in enumerate(rows):
        clock = grid.clock(durations[block])
        jump_time = float(grid.time(clock, jumps[block : block + 1])[0])
        constants[block] = _time_constant(
            grid, clock, plan.after[row], float(plan.jumps[row]), jump_time
        )
        starts[block] = grid.place(clock, np.array([jump_time - constants[block]]))[0]
    ends = plan.fields.last_of_block[rows]
    per_class = np.repeat(constants, np.diff(np.concatenate(([first - 1], ends))))
    return FlowGroup(grid, first, ends, durations, per_class, np.minimum.accumulate(starts))


def _time_constant(
    grid: ProbabilityGrid, clock: np.ndarray, after: np.ndarray, jump: float, jump_time: float
) -> float:
    """Largest time whose move stays below the largest step: the least over the move's vertices."""
    ahead = grid.time(clock, grid.position_of_logit(after))
    steps = np.where(np.isinf(after), np.inf, ahead - clock[1:-1])
    # By the mirror image the largest step starts from -after(-u) to end at u.
    behind = grid.time(clock, grid.position_of_logit(-after[::-1]))
    backs = np.where(grid.logits <= jump, np.inf, clock[1:-1] - behind)
    # The start, one step before the first jump, is not to lie below the first node.
    from_first_node = (jump_time - clock[1]) * (1 - 1e-9)
    return float(min(steps.min(), backs.min(), from_first_node)) * (1 - 1e-9)
