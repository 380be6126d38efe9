"""From (eps, delta, Delta0) to a certified Bernoulli flow selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64

from theory._check import Reals, check_beta, check_count, invalid
from theory.flow.accountant import adaptive_delta, majorant, step_deviation
from theory.flow.certificate import FlowCertificate
from theory.flow.fields import FlowFields, check_monotone_ratios
from theory.flow.grid import ProbabilityGrid
from theory.flow.group import FlowGroup
from theory.flow.pairs import OneStepMap, one_item_delta
from theory.flow.plan import (
    Progress,
    block_ends,
    boost_anchors,
    fastest_regions,
    interpolated,
    make_groups,
    make_plan,
)
from theory.flow.renyi import RenyiRegion
from theory.flow.state import FlowState, flow_state
from theory.flow.store import flow_arguments, flow_to_dict

Accountant = Literal["closed-form", "bellman"]
EPS_RANGE = (0.01, 10.0)
DELTA_RANGE = (1e-12, 1e-2)
LARGEST_MAX_ITEMS = 1000
# Spacing of the recursion's grid in standard deviations of one item's log ratio, and distance of
# its vertices in log-odds: finer up to so many items, where it costs little.
_FEW_ITEMS = 16
_SPACING, _SPACING_FEW = 0.3, 0.1
_KNOTS, _KNOTS_FEW = 0.3, 0.1
# The recursion aims a little below delta, for what interpolation between anchors misses.
_AIM = 0.99


@dataclass(frozen=True, eq=False, repr=False)
class FlowCalibration:
    """Bernoulli flow selection at one (eps, delta, Delta0), with its certificate.

    Made by `calibrate_flow`. Nothing in it depends on data.

    Attributes:
        eps: Privacy parameter.
        delta: Privacy parameter.
        max_items_per_user: Contribution bound Delta0; users with more keep a uniform subset.
        fields: Speeds of all blocks of classes, which the groups' flows are made from.
        groups: Flows of groups of classes.
        structures: Each a partition of the classes into groups, by index; an item is released
            with the largest probability over structures of the union of their groups.
        certificate: Bounds on delta for every class and direction.
    """

    eps: float
    delta: float
    max_items_per_user: int
    fields: FlowFields
    groups: tuple[FlowGroup, ...]
    structures: tuple[tuple[int, ...], ...]
    certificate: FlowCertificate

    def __post_init__(self) -> None:
        for parts in self.structures:
            ends = [(self.groups[g].first_class, self.groups[g].last_class) for g in parts]
            firsts = [1] + [last + 1 for _, last in ends[:-1]]
            if [first for first, _ in ends] != firsts or ends[-1][1] != self.max_items_per_user:
                invalid("structures", parts, "must each partition the classes 1 to Delta0")

    def __repr__(self) -> str:
        # What identifies it; thousands of speeds help nobody in a terminal.
        at = f"eps={self.eps!r}, delta={self.delta!r}"
        return f"FlowCalibration({at}, max_items_per_user={self.max_items_per_user})"

    def groups_of(self, of_class: int) -> list[FlowGroup]:
        """Groups that a class belongs to, over all structures."""
        return [g for g in self.groups if g.first_class <= of_class <= g.last_class]

    def holders(self, t: int, release: float = 0.5) -> float:
        """Holders, not rounded, all keeping t items, who bring an item to a release probability.

        Args:
            t: Kept set size, 1 to Delta0.
            release: Probability in (0, 1).
        """
        t = check_count("t", t, maximum=self.max_items_per_user)
        p = float(check_beta(release, "release"))
        return min(group.holders(t, p) for group in self.groups_of(t))

    def prepare(self, offsets: Reals, sizes: Reals, counts: Reals) -> FlowState:
        """Everything about items that does not depend on who of the largest class keeps them.

        Args:
            offsets: (items + 1,) rows of the next two that belong to each item.
            sizes: (entries,) kept set sizes, 1 to Delta0.
            counts: (entries,) holders of this size who keep the item, at least 0.

        Raises:
            InvalidInput: Sizes above Delta0, or numbers that are not whole or out of range.
        """
        return flow_state(self, np.asarray(offsets), np.asarray(sizes), np.asarray(counts))

    def probabilities(
        self, offsets: Reals, sizes: Reals, counts: Reals
    ) -> tuple[Float64[np.ndarray, " items"], Float64[np.ndarray, " items"]]:
        """Release and miss probability of items, given who keeps them.

        Args:
            offsets: (items + 1,) rows of the next two that belong to each item.
            sizes: (entries,) kept set sizes, 1 to Delta0.
            counts: (entries,) holders of this size who keep the item, at least 0.

        Raises:
            InvalidInput: Sizes above Delta0, or numbers that are not whole or out of range.
        """
        return self.prepare(offsets, sizes, counts).probabilities(0)

    def to_dict(self) -> dict[str, Any]:
        """Everything, for a JSON file; with a digest."""
        return flow_to_dict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> FlowCalibration:
        """What `to_dict` wrote, bit by bit.

        The digest, the ratios of speeds, the rounding and every class whose proof is the closed
        form are checked again; `verify` repeats the recursion as well.

        Raises:
            InvalidInput: Not what `to_dict` of this version wrote, or a proof that fails.
        """
        flow = cls(**flow_arguments(stored))
        flow.verify(recursion=False)
        return flow

    def step_map(self, of_class: int) -> OneStepMap:
        """Everything that adding a user of this class may do to an item, in any group."""
        maps = [group.step_map(of_class) for group in self.groups_of(of_class)]
        out = maps[0]
        for other in maps[1:]:
            out = out.joined(other)
        return out

    @cached_property
    def rounding(self) -> float:
        """Bound on the relative error of evaluated p and 1 - p: see `FlowGroup.rounding`."""
        return _rounding(self.groups, self.structures)

    def verify(self, *, recursion: bool = True) -> None:
        """Prove the certificate again from the flows themselves.

        Args:
            recursion: Repeat the Bellman recursion too, which may take a minute.

        Raises:
            InvalidInput: A flow's ratios are not monotone, or some class spends more than delta.
        """
        for group in self.groups:
            check_monotone_ratios(group.durations, group.first_cell)
        known = self.certificate
        if known.rounding < self.rounding or known.floor < _floor(self.fields.grid):
            invalid("rounding", known.rounding, f"must be at least {self.rounding}")
        done: tuple[Any, ...] = ()
        for t in range(self.max_items_per_user, 0, -1):
            # A smaller class with the same moves spends less.
            moves = self.moves(t)
            if known.spacings[t - 1] > 0 and (moves == done or not recursion):
                continue
            done = moves
            spent = max(class_bounds(self, t))
            if spent > self.delta:
                invalid("delta", self.delta, f"must be at least {spent}, spent with {t} items")
        if known.delta > self.delta:
            invalid("delta", self.delta, f"must be at least {known.delta}, as certified")

    def moves(self, of_class: int) -> tuple[Any, ...]:
        """What tells the moves of two classes apart."""
        return tuple(
            (g.first_class, g.block_of(of_class), g.time_constant(of_class))
            for g in self.groups_of(of_class)
        )


def check_flow_range(eps: float, delta: float, max_items_per_user: int) -> None:
    """Raise unless (eps, delta, Delta0) is in the range that can be calibrated."""
    for name, value, (low, high) in (("eps", eps, EPS_RANGE), ("delta", delta, DELTA_RANGE)):
        accepted = f"must be a number in [{low:g}, {high:g}] for the Bernoulli flow"
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            invalid(name, value, accepted)
        if not low <= value <= high:
            invalid(name, value, accepted)
    check_count("max_items_per_user", max_items_per_user, maximum=LARGEST_MAX_ITEMS)


def calibrate_flow(
    *,
    eps: float,
    delta: float,
    max_items_per_user: int,
    accountant: Accountant = "bellman",
    progress: Progress | None = None,
) -> FlowCalibration:
    """Bernoulli flow selection that is (eps, delta)-DP, certified class by class.

    Args:
        eps: Privacy parameter in [0.01, 10].
        delta: Privacy parameter in [1e-12, 1e-2].
        max_items_per_user: Delta0, whole number from 1 to 1000.
        accountant: "bellman", the sharper and slower one, or "closed-form". Both are proofs.
        progress: Called with a stage and the share of it that is done.

    Returns:
        A `FlowCalibration` whose certificate is at most delta for every class and direction.

    Raises:
        InvalidInput: An argument is outside its range.

    Source:
        Bernoulli flow note: accountant, Lemmas A and B.

    Example:
        >>> flow = calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=2)
        >>> flow.certificate.delta <= 1e-5, round(flow.holders(1), 1)
        (True, 11.4)
    """
    check_flow_range(eps, delta, max_items_per_user)
    if accountant not in ("closed-form", "bellman"):
        invalid("accountant", accountant, "must be closed-form or bellman")
    eps, delta, bound = float(eps), float(delta), int(max_items_per_user)
    tell = progress or (lambda stage, share: None)
    optimal = fastest_regions(eps, delta, bound, tell)
    blocks = block_ends(bound)
    boost = np.ones(blocks.size)
    at = boost_anchors(bound)
    if accountant == "bellman" and at:
        # How far the closed form may overspend by its own account: delta depends smoothly on it.
        logs = np.zeros(len(at))
        for attempt in range(3):
            boost = np.exp(interpolated(at, logs.tolist(), blocks))
            flow = _flow(eps, delta, bound, optimal, boost)
            for i, t in enumerate(at):
                spent = max(_bellman(flow, t)[:2])
                logs[i] = max(logs[i] + np.log(_AIM * delta / spent), 0.0)
                tell(f"boost {attempt + 1} of 3", (i + 1) / len(at))
        boost = np.exp(interpolated(at, logs.tolist(), blocks))
    flow = _flow(eps, delta, bound, optimal, boost)
    _certify(flow, accountant, tell)
    return flow


def _flow(
    eps: float, delta: float, bound: int, optimal: list[RenyiRegion], boost: np.ndarray
) -> FlowCalibration:
    """Flows whose certificate is still to be filled in."""
    plan = make_plan(eps=eps, delta=delta, max_items_per_user=bound, optimal=optimal, boost=boost)
    groups, structures = make_groups(plan)
    sizes = np.diff(np.concatenate(([0], plan.fields.last_of_block)))
    orders = [0.0 if region is None else region.order for region in plan.regions]
    shares = [0.0 if region is None else region.jump_share for region in plan.regions]
    certificate = FlowCertificate(
        np.full(bound, np.inf),
        np.full(bound, np.inf),
        np.repeat(orders, sizes),
        np.repeat(shares, sizes),
        np.zeros(bound),
        _rounding(tuple(groups), structures),
        _floor(plan.fields.grid),
    )
    return FlowCalibration(eps, delta, bound, plan.fields, tuple(groups), structures, certificate)


def _certify(flow: FlowCalibration, accountant: Accountant, tell: Progress) -> None:
    """Fill in the certificate block by block; lower time constants until every class passes."""
    known = flow.certificate
    ends = block_ends(flow.max_items_per_user)
    for i, end in enumerate(ends.tolist()):
        first = int(ends[i - 1]) + 1 if i else 1
        block = slice(first - 1, end)
        for attempt in range(40):
            known.spacings[block] = 0.0
            adding, removing = class_bounds(flow, end)
            # delta falls about 12 times as fast as the time constants, or faster.
            smaller = _reduction(adding, removing, flow.delta, 1e-7 * 2.0**attempt)
            if max(adding, removing) > flow.delta and end > 1 and accountant == "bellman":
                adding, removing, known.spacings[block] = _bellman(flow, end)
                by_recursion = _reduction(adding, removing, flow.delta, 3e-4 * 1.2**attempt)
                smaller = min(smaller, by_recursion)
            if max(adding, removing) <= flow.delta:
                break
            for group in flow.groups_of(end):
                group.time_constants[first - group.first_class : end - group.first_class + 1] *= (
                    1 - smaller
                )
        else:
            raise RuntimeError(f"no time constant of class {end} passes the certificate")
        known.adding[block], known.removing[block] = adding, removing
        if known.spacings[end - 1] > 0:
            known.orders[block] = known.jump_shares[block] = 0.0
        tell("certificate", (i + 1) / ends.size)


def _reduction(adding: float, removing: float, delta: float, least: float) -> float:
    """By how much time constants are to be lowered next."""
    excess = np.log(max(adding, removing) / delta)
    return float(np.clip(excess / 12, least, 0.5))


def _rounding(groups: tuple[FlowGroup, ...], structures: tuple[tuple[int, ...], ...]) -> float:
    """Errors of the groups of a structure add up."""
    return float(max(sum(groups[g].rounding for g in parts) for parts in structures)) + 1e-15


def _floor(grid: ProbabilityGrid) -> float:
    """Absolute part of the rounding error, felt in the cells next to 0 and 1 only."""
    return float(grid.release[1] / grid.cell_width)


def class_bounds(flow: FlowCalibration, t: int) -> tuple[float, float]:
    """Bounds on delta for adding and removing a user of class t, as the certificate proves it."""
    known = flow.certificate
    if known.spacings[t - 1] > 0:
        return _bellman(flow, t, known.spacings[t - 1])[:2]
    step = flow.step_map(t).widened(known.rounding, known.floor)
    if t == 1:
        return one_item_delta(step, eps=flow.eps)
    order, share = float(known.orders[t - 1]), float(known.jump_shares[t - 1])
    return RenyiRegion(flow.eps, flow.delta, t, order, share).delta_bounds(step)


def _bellman(
    flow: FlowCalibration, t: int, spacing: float | None = None
) -> tuple[float, float, float]:
    """Bounds by the recursion, and the spacing of its grid."""
    step, proposed = recursion_map(flow, t)
    spacing = proposed if spacing is None else spacing
    return *adaptive_delta(step, eps=flow.eps, items=t, spacing=spacing), spacing


def recursion_map(flow: FlowCalibration, t: int) -> tuple[OneStepMap, float]:
    """What the recursion allows a user of class t to do to an item, and a spacing for its grid.

    A majorant of the graphs of all groups, and their jumps, with the rounding allowed for.
    """
    known, groups = flow.certificate, flow.groups_of(t)
    grid = groups[0].grid
    graphs, jumps = [], []
    for group in groups:
        step = group.step_map(t).widened(known.rounding, known.floor)
        graphs.append(step.part(slice(None, -1)))
        jumps.append(step.part(slice(-1, None)))
    first = min(group.first_cell for group in groups)
    few = t <= _FEW_ITEMS
    every = max(1, round((_KNOTS_FEW if few else _KNOTS) / grid.cell_width))
    nodes = np.unique(np.append(np.arange(first - 2, grid.logits.size - 1, every),
                                (grid.middle - 1, grid.logits.size - 1)))  # fmt: skip
    step = majorant(graphs, np.concatenate((grid.logits[np.maximum(nodes, 0)], [np.inf])))
    share = _SPACING_FEW if few else _SPACING
    spacing = min(share * step_deviation(step), 0.05)
    for jump in jumps:
        step = step.joined(jump)
    return step, spacing
