"""Calibrations of the Bernoulli flow, kept for the life of the process."""

from __future__ import annotations

from typing import Any

from theory._check import invalid
from theory.flow import FlowCalibration, calibrate_flow
from theory.flow.calibration import Accountant
from theory.flow.two_rounds import TwoRoundFlow
from theory.flow.two_rounds_calibration import calibrate_two_rounds

_KNOWN: dict[tuple[float, float, int, str], FlowCalibration] = {}
_TWO_ROUNDS: dict[tuple[float, float, int], TwoRoundFlow] = {}


def known_flow(
    eps: float, delta: float, max_items_per_user: int, accountant: Accountant = "bellman"
) -> FlowCalibration:
    """The calibration for these parameters, made on first use (seconds to minutes).

    Args:
        eps: Privacy parameter in [0.01, 10].
        delta: Privacy parameter in [1e-12, 1e-2].
        max_items_per_user: Delta0, 1 to 1000.
        accountant: See `theory.flow.calibrate_flow`.

    Raises:
        InvalidInput: An argument is outside its range: there is no certificate, and no release.

    Example:
        >>> known_flow(1.0, 1e-5, 1) is known_flow(1.0, 1e-5, 1)
        True
    """
    key = (float(eps), float(delta), int(max_items_per_user), accountant)
    if key not in _KNOWN:
        _KNOWN[key] = calibrate_flow(
            eps=key[0], delta=key[1], max_items_per_user=key[2], accountant=accountant
        )
    return _KNOWN[key]


def recalled(
    eps: float, delta: float, max_items_per_user: int, accountant: Accountant = "bellman"
) -> FlowCalibration | None:
    """The calibration for these parameters if this process has it; arguments as `known_flow`."""
    return _KNOWN.get((float(eps), float(delta), int(max_items_per_user), accountant))


def known_bounds(eps: float, delta: float, accountant: Accountant = "bellman") -> tuple[int, ...]:
    """Delta0 of the calibrations that this process has, ascending; arguments as `known_flow`."""
    wanted = float(eps), float(delta), accountant
    return tuple(sorted(k[2] for k in _KNOWN if (k[0], k[1], k[3]) == wanted))


def remember(flow: FlowCalibration, accountant: Accountant = "bellman") -> None:
    """Let later calls of `known_flow` find a calibration that was read from a file.

    Args:
        flow: From `FlowCalibration.from_dict`, which proves its certificate again, or from
            `calibrate_flow`.
        accountant: What it was made with.

    Raises:
        InvalidInput: The certificate promises more delta than asked for.
    """
    if flow.certificate.delta > flow.delta:
        invalid("flow", flow.certificate.delta, f"must spend at most delta = {flow.delta}")
    _KNOWN[flow.eps, flow.delta, flow.max_items_per_user, accountant] = flow


def known_two_rounds(eps: float, delta: float, max_items_per_user: int) -> TwoRoundFlow:
    """The two-round flow for these parameters, made on first use (seconds to minutes).

    Args:
        eps: Privacy parameter, from 0.0378 to 10.
        delta: Privacy parameter in [1e-11, 1e-2].
        max_items_per_user: Delta0, 1 to 1000.

    Raises:
        InvalidInput: An argument is outside its range: there is no certificate, and no release.

    Example:
        >>> known_two_rounds(1.0, 1e-5, 1) is known_two_rounds(1.0, 1e-5, 1)
        True
    """
    key = (float(eps), float(delta), int(max_items_per_user))
    if key not in _TWO_ROUNDS:
        _TWO_ROUNDS[key] = calibrate_two_rounds(
            eps=key[0], delta=key[1], max_items_per_user=key[2], calibrate=_one_round
        )
    return _TWO_ROUNDS[key]


def recalled_two_rounds(eps: float, delta: float, max_items_per_user: int) -> TwoRoundFlow | None:
    """The two-round flow for these parameters if this process has it."""
    return _TWO_ROUNDS.get((float(eps), float(delta), int(max_items_per_user)))


def remember_two_rounds(flow: TwoRoundFlow) -> None:
    """Let later calls of `known_two_rounds` find a flow that was made or read elsewhere.

    Args:
        flow: From `calibrate_two_rounds`, with any cut and shares, or `TwoRoundFlow.from_dict`.

    Raises:
        InvalidInput: The certificate promises more delta than asked for.
    """
    if not flow.certified_delta <= flow.delta:
        invalid("flow", flow.certified_delta, f"must spend at most delta = {flow.delta}")
    _TWO_ROUNDS[flow.eps, flow.delta, flow.max_items_per_user] = flow


def _one_round(
    *, eps: float, delta: float, max_items_per_user: int, progress: Any
) -> FlowCalibration:
    """`known_flow` as `calibrate_two_rounds` asks for it."""
    del progress
    return known_flow(eps, delta, max_items_per_user)
