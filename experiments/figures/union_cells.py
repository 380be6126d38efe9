"""Numbers of the set-union comparison, and how far the WGM is from a policy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import polars as pl

WGM, FULL, GREEDY = "wgm", "wgm (full)", "policy-greedy"
POLICIES = {"policy-gaussian": "Policy Gaussian", GREEDY: "Policy Greedy"}
# The paper's 5 %.
WITHIN = 0.05

Standing = Literal["holds", "fails", "open"]


@dataclass(frozen=True)
class Cell:
    """One mechanism on one data set at one eps and Delta0; limits are infinite where unknown."""

    dataset: str
    eps: float
    bound: int
    mechanism: str
    mass: float
    low: float
    high: float
    released: float
    floor: float


@dataclass(frozen=True)
class Distance:
    """By which share WGM's missing mass is above another's, at one Delta0; negative if below."""

    bound: int
    mean: float
    low: float
    high: float

    @property
    def standing(self) -> Standing:
        """Whether it is within the paper's 5 %; open where the interval holds both."""
        if self.high <= WITHIN:
            return "holds"
        return "fails" if self.low > WITHIN else "open"

    def __str__(self) -> str:
        known = math.isfinite(self.low) and math.isfinite(self.high)
        limits = [f"{100 * limit:.1f}" for limit in (self.low, self.high)] if known else []
        width = f" [{', '.join(limits)}]" if len(set(limits)) == 2 else ""
        return f"{percent(self.mean)}{width} at Δ0 = {self.bound}"


def cells(frame: pl.DataFrame) -> list[Cell]:
    """Rows of `Comparison.to_frame` as cells."""
    names = {
        "dataset": "dataset", "eps": "eps", "bound": "max_items_per_user",
        "mechanism": "mechanism", "mass": "missing_mass", "low": "missing_mass_low",
        "high": "missing_mass_high", "released": "released", "floor": "lower_bound",
    }  # fmt: skip
    made = []
    for row in frame.select(**{new: old for new, old in names.items()}).iter_rows(named=True):
        low = -math.inf if row["low"] is None else max(row["low"], 0.0)
        high = math.inf if row["high"] is None else row["high"]
        made.append(Cell(**{**row, "low": low, "high": high}))
    return made


def distances(found: Sequence[Cell], eps: float, policy: str) -> dict[str, list[Distance]]:
    """Distances of the WGM to a policy by data set, over Delta0."""
    own = {(c.dataset, c.bound): c for c in found if c.eps == eps and c.mechanism == WGM}
    made: dict[str, list[Distance]] = {}
    for other in found:
        key = (other.dataset, other.bound)
        if other.eps == eps and other.mechanism == policy and key in own:
            shares = (above(own[key].mass, each) for each in (other.mass, other.high, other.low))
            made.setdefault(other.dataset, []).append(Distance(other.bound, *shares))
    return made


def above(mass: float, other: float) -> float:
    """Share by which a mass is above another, to 1e-15: exact means differ in the last digit."""
    if other > 0:
        return round(mass / other - 1, 15)
    return math.inf if mass > 0 or other < 0 else 0.0


def standing(those: Iterable[Distance]) -> Standing:
    """One data set: fails if anywhere it fails, holds if everywhere it holds."""
    found = {each.standing for each in those}
    return "fails" if "fails" in found else "open" if "open" in found else "holds"


def best(found: Sequence[Cell], dataset: str, eps: float, *mechanisms: str) -> Cell:
    """The cell that leaves least, over Delta0."""
    own = (c for c in found if (c.dataset, c.eps) == (dataset, eps) and c.mechanism in mechanisms)
    return min(own, key=lambda cell: cell.mass)


def percent(share: float) -> str:
    """A signed share in per cent with one decimal.

    Example:
        >>> percent(0.374), percent(-0.0201), percent(-1e-5)
        ('+37.4 %', '−2.0 %', '0.0 %')
    """
    value = round(100 * share, 1)
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return f"{sign}{abs(value):.1f} %"
