"""Calibrations of the Bernoulli flow, kept for the life of the process."""

from __future__ import annotations

from theory._check import invalid
from theory.flow import FlowCalibration, calibrate_flow
from theory.flow.calibration import Accountant

_KNOWN: dict[tuple[float, float, int, str], FlowCalibration] = {}


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
