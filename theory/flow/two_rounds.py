"""Two rounds of Bernoulli flow selection, with one certificate for both.

A first round with little budget, for users with more than `cut` items, releases the heaviest
items. They are public now and deleted from every set, and a second round starts again: users with
fewer items left are of a class with larger steps.

    round 1:  a user with w > cut items keeps a uniform subset of t = min(w, Delta0), of class t;
    round 2:  of the r items that are left, a fresh uniform subset of min(r, Delta0) is kept, of
              class max(min(r, Delta0), cut + 1) if w > cut, and of class r otherwise.

So classes up to `cut` are for users who were not in the first round, and are accounted for as in
one round. All others have taken t first steps, and what follows is of a class from cut + 1 to t,
whichever the first release makes it. With V_c the recursion's function after c second steps,

    U_t(y) = max over c in cut + 1, ..., t of V_c(y),

is convex, non-increasing and 1 at 0; t first steps on top of U_t bound delta. The proof is in
docs/bernoulli-flow-2.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float64, Int64

from theory._check import check_count, invalid
from theory.flow.calibration import FlowCalibration, class_bounds, recursion_map
from theory.flow.store import read_stored, with_digest
from theory.flow.value_bound import ValueBound, steps_before, steps_from_the_end

FORMAT = "bernoulli-flow-2 1"
# The first round has little to spend, so that its grid in ln y may be coarse.
_COARSER = 1.7
# Functions that may follow a first round, for adding and for removing.
Later: TypeAlias = tuple[list[ValueBound], list[ValueBound]]


@dataclass(frozen=True, eq=False, repr=False)
class TwoRoundFlow:
    """Two rounds of Bernoulli flow selection at one (eps, delta, Delta0), with a certificate.

    Made by `theory.flow.two_rounds_calibration`. Nothing in it depends on data.

    Attributes:
        eps: Privacy parameter of both rounds together.
        delta: Privacy parameter of both rounds together.
        max_items_per_user: Contribution bound Delta0 of either round.
        cut: Users with at most so many items are not in the first round.
        first: Flow of the first round. Its own eps and delta count for nothing.
        second: Flow of the second round, for classes as `second_classes` gives them.
        adding: Bound on delta at eps for adding a user who keeps t items in the first round, or
            has t <= cut items.
        removing: The same for removing the user.
    """

    eps: float
    delta: float
    max_items_per_user: int
    cut: int
    first: FlowCalibration
    second: FlowCalibration
    adding: Float64[np.ndarray, " classes"]
    removing: Float64[np.ndarray, " classes"]

    def __post_init__(self) -> None:
        check_count("cut", self.cut, minimum=0, maximum=self.max_items_per_user - 1)
        for flow in (self.first, self.second):
            if flow.max_items_per_user != self.max_items_per_user:
                accepted = f"must be {self.max_items_per_user} in both rounds"
                invalid("max_items_per_user", flow.max_items_per_user, accepted)

    def __repr__(self) -> str:
        at = f"eps={self.eps!r}, delta={self.delta!r}, max_items_per_user={self.max_items_per_user}"
        return f"TwoRoundFlow({at}, cut={self.cut})"

    @property
    def certified_delta(self) -> float:
        """Largest bound over classes and directions."""
        return float(max(self.adding.max(), self.removing.max()))

    def first_classes(self, set_sizes: Int64[np.ndarray, " users"]) -> Int64[np.ndarray, " users"]:
        """Items that users keep in the first round: their class there; 0 if they are not in it."""
        return np.where(set_sizes > self.cut, np.minimum(set_sizes, self.max_items_per_user), 0)

    def second_classes(
        self, set_sizes: Int64[np.ndarray, " users"], left: Int64[np.ndarray, " users"]
    ) -> Int64[np.ndarray, " users"]:
        """Classes of users in the second round.

        Args:
            set_sizes: Items they hold.
            left: Items they still hold after the first release.
        """
        kept = np.minimum(left, self.max_items_per_user)
        return np.where(set_sizes > self.cut, np.maximum(kept, self.cut + 1), kept)

    def verify(self) -> None:
        """Prove the certificate again from the flows themselves; seconds to minutes.

        Raises:
            InvalidInput: Some class spends more than delta, or more than its certificate says.
        """
        self.second.verify(recursion=False)
        self.first.verify(recursion=False)
        for first, last, adding, removing in _bounds(self):
            spent = max(adding, removing)
            if spent > self.delta:
                invalid("delta", self.delta, f"must be at least {spent}, spent with {last} items")
            block = slice(first - 1, last)
            claimed = float(max(self.adding[block].max(), self.removing[block].max()))
            if spent > claimed * (1 + 1e-12):
                invalid("certificate", claimed, f"must be at least {spent} with {last} items")

    def to_dict(self) -> dict[str, Any]:
        """Everything, for a JSON file; with a digest."""
        content = {
            "format": FORMAT,
            "eps": self.eps,
            "delta": self.delta,
            "max_items_per_user": self.max_items_per_user,
            "cut": self.cut,
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "adding": self.adding.tolist(),
            "removing": self.removing.tolist(),
        }
        return with_digest(content)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> TwoRoundFlow:
        """What `to_dict` wrote, bit by bit. The digest is checked; `verify` repeats the proof.

        Raises:
            InvalidInput: Not what `to_dict` of this version wrote.
        """
        found = read_stored(stored, FORMAT, cls._of, "two-round flow")
        if found.certified_delta > found.delta:
            invalid("delta", found.delta, f"must be at least {found.certified_delta}")
        return found

    @classmethod
    def _of(cls, content: Mapping[str, Any]) -> TwoRoundFlow:
        return cls(
            float(content["eps"]),
            float(content["delta"]),
            int(content["max_items_per_user"]),
            int(content["cut"]),
            FlowCalibration.from_dict(content["first"]),
            FlowCalibration.from_dict(content["second"]),
            np.array(content["adding"], np.float64),
            np.array(content["removing"], np.float64),
        )


def _bounds(flow: TwoRoundFlow) -> Iterator[tuple[int, int, float, float]]:
    """First and last class of every block, and what adding and removing such a user may spend."""
    later: Later = ([], [])
    for first, last in blocks(flow):
        if last <= flow.cut:
            yield first, last, *class_bounds(flow.second, last)
        else:
            later = with_one_more(later, second_steps(flow, last))
            yield first, last, *both_rounds(flow, last, later)


def blocks(flow: TwoRoundFlow) -> list[tuple[int, int]]:
    """First and last class of blocks in which all classes move alike, in either round.

    A smaller class of a block has the same steps and fewer of them, so it spends less.
    """
    out: list[tuple[int, int]] = []
    first = 1
    for t in range(1, flow.max_items_per_user + 1):
        last = t in (flow.cut, flow.max_items_per_user)
        if last or any(r.moves(t) != r.moves(t + 1) for r in (flow.first, flow.second)):
            out.append((first, t))
            first = t + 1
    return out


def second_steps(flow: TwoRoundFlow, t: int, factor: float = 1.0) -> tuple[ValueBound, ValueBound]:
    """V_t of the second round, or of a proposal with time constants multiplied by a factor."""
    second = flow.second
    if factor != 1:
        second = own_copy(second)
        lower(second, t, t, factor)
    step, spacing = recursion_map(second, t)
    return steps_from_the_end(step, eps=flow.eps, items=t, spacing=spacing)


def both_rounds(flow: TwoRoundFlow, t: int, later: Later) -> tuple[float, float]:
    """What t first steps and whatever is the worst of `later` spend: adding and removing."""
    step, spacing = recursion_map(flow.first, t)
    spacing *= _COARSER
    adding, removing = steps_before(later, step, eps=flow.eps, items=t, spacing=spacing)
    return adding.at_one, removing.at_one


def with_one_more(later: Later, own: tuple[ValueBound, ValueBound]) -> Later:
    """What may follow, and one class more."""
    return [*later[0], own[0]], [*later[1], own[1]]


def own_copy(flow: FlowCalibration) -> FlowCalibration:
    """The same with time constants of its own, which may be lowered: its proofs remain true."""
    groups = tuple(
        replace(group, time_constants=group.time_constants.copy()) for group in flow.groups
    )
    return replace(flow, groups=groups)


def lower(flow: FlowCalibration, first: int, last: int, factor: float) -> None:
    """Multiply the time constants of the classes first..last of one block; in place."""
    for group in flow.groups_of(last):
        group.time_constants[first - group.first_class : last - group.first_class + 1] *= factor
