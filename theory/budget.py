"""One privacy budget split over the stages of a meta-algorithm: domain first, selection second."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from theory._check import check_count, check_delta, check_eps, invalid

_SHARE = "must hold one share above 0 per stage, as numbers or fractions"
# What shares given as floats may differ from one in total, such as 0.1 + 0.2 + 0.7.
_FLOAT_SLACK = 1e-12


@dataclass(frozen=True)
class Budget:
    """The (eps, delta) of a whole algorithm and the share of either that each stage gets.

    By basic composition the stages together are (eps, delta)-DP when every stage keeps to its
    part. Stage 0 finds the domain, stage 1 selects from it.

    Attributes:
        eps: Privacy parameter of the whole, in [0, 1e5].
        delta: Privacy parameter of the whole, in (0, 0.5].
        eps_shares: Share of eps for each stage, above 0; they add up to one, exactly where all
            are whole numbers or fractions, to 1e-12 where some are floats.
        delta_shares: Share of delta for each stage, likewise.

    Raises:
        InvalidInput: eps or delta out of range, a share not above 0, shares that do not add up to
            one, or not as many shares of delta as of eps.

    Example:
        >>> budget = Budget(1.0, 1e-5, eps_shares=(Fraction(1, 4), Fraction(3, 4)))
        >>> budget.part(0), budget.part(1)
        ((0.25, 5e-06), (0.75, 5e-06))
    """

    eps: float | int
    delta: float
    eps_shares: tuple[float | int | Fraction, ...] = (0.5, 0.5)
    delta_shares: tuple[float | int | Fraction, ...] = (0.5, 0.5)

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", float(check_eps(self.eps)))
        object.__setattr__(self, "delta", float(check_delta(self.delta)))
        _check_shares("eps_shares", self.eps_shares)
        _check_shares("delta_shares", self.delta_shares)
        if len(self.eps_shares) != len(self.delta_shares):
            accepted = f"must hold as many shares as eps_shares ({len(self.eps_shares)})"
            invalid("delta_shares", self.delta_shares, accepted)

    @property
    def num_parts(self) -> int:
        """Number of stages."""
        return len(self.eps_shares)

    def part(self, stage: int) -> tuple[float, float]:
        """The (eps, delta) of one stage, each rounded down to a float.

        Args:
            stage: Whole number from 0 to `num_parts` - 1.

        Returns:
            eps and delta that this stage may spend.

        Raises:
            InvalidInput: No such stage.
        """
        stage = check_count("stage", stage, minimum=0, maximum=self.num_parts - 1)
        return (
            _rounded_down(Fraction(self.eps) * Fraction(self.eps_shares[stage])),
            _rounded_down(Fraction(self.delta) * Fraction(self.delta_shares[stage])),
        )


def _check_shares(name: str, shares: tuple[Any, ...]) -> None:
    for share in shares:
        number = isinstance(share, (int, float, Fraction)) and not isinstance(share, bool)
        if not number or not 0 < share <= 1:
            invalid(name, shares, _SHARE)
    if any(isinstance(share, float) for share in shares):
        adds_up = abs(math.fsum(shares) - 1) <= _FLOAT_SLACK
    else:
        adds_up = sum(shares) == 1
    if not adds_up:
        invalid(name, shares, f"must add up to 1, not {float(sum(shares)):.15g}")


def _rounded_down(exact: Fraction) -> float:
    value = float(exact)
    return value if Fraction(value) <= exact else math.nextafter(value, 0.0)
