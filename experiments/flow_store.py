"""Calibrations of the Bernoulli flow on disk: made once, in minutes, and read in a moment.

They depend on eps, delta and Delta0 only, never on data. A file is believed only if its digest and
its proof are right (`FlowCalibration.from_dict`); otherwise it is made again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.cache import cache_folder
from experiments.sweep.store import write_atomic

if TYPE_CHECKING:
    from theory import Calibration
    from theory.flow import FlowCalibration
    from theory.flow.calibration import Accountant

NAME = "bernoulli-flow"
# Called with what is being done and the share of it that is done.
Progress = Callable[[str, float], None]


def flow_file(
    eps: float, delta: float, max_items_per_user: int, accountant: Accountant = "bellman"
) -> Path:
    """File of one calibration.

    Example:
        >>> flow_file(1.0, 1e-5, 300).name
        'eps-1.0-delta-1e-05-items-300-bellman.json'
    """
    name = f"eps-{eps!r}-delta-{delta!r}-items-{max_items_per_user}-{accountant}.json"
    return cache_folder("flows") / name


def stored_flow(
    *,
    eps: float,
    delta: float,
    max_items_per_user: int,
    accountant: Accountant = "bellman",
    progress: Progress | None = None,
) -> FlowCalibration:
    """The calibration, from its file or else made and, where possible, written there.

    Args:
        eps: Privacy parameter in [0.01, 10].
        delta: Privacy parameter in [1e-12, 1e-2].
        max_items_per_user: Delta0, whole number from 1 to 1000.
        accountant: See `theory.flow.calibrate_flow`.
        progress: Called as progress(stage, share) while it is made.

    Raises:
        InvalidInput: An argument is outside its range.
    """
    from theory.flow import calibrate_flow
    from theory.flow.calibration import check_flow_range

    check_flow_range(eps, delta, max_items_per_user)
    given: dict[str, Any] = {
        "eps": float(eps), "delta": float(delta), "max_items_per_user": int(max_items_per_user),
    }  # fmt: skip
    file = flow_file(given["eps"], given["delta"], given["max_items_per_user"], accountant)
    known = _read(file, given)
    if known is not None:
        return known
    flow = calibrate_flow(**given, accountant=accountant, progress=progress)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, json.dumps(flow.to_dict()).encode())
    except OSError:  # a cache is a convenience
        pass
    return flow


def ready_flows(
    calibration: Calibration, progress: Progress | None = None
) -> list[FlowCalibration]:
    """One flow per point of a calibration; the mechanism `bernoulli-flow` finds them, too.

    Args:
        calibration: Any shape; eps, delta and Delta0 count.
        progress: Called as progress(stage, share) while one is made.
    """
    from wgm_jax.set_union.flows import remember

    names = ("eps", "delta", "max_items_per_user")
    points = zip(*(np.ravel(getattr(calibration, name)).tolist() for name in names), strict=True)
    flows = []
    for point in points:
        flow = stored_flow(**dict(zip(names, point, strict=True)), progress=progress)
        remember(flow)
        flows.append(flow)
    return flows


def _read(file: Path, given: dict[str, Any]) -> FlowCalibration | None:
    """The calibration in a file; None if there is none that is right and the one asked for."""
    from theory._check import InvalidInput
    from theory.flow import FlowCalibration

    try:
        flow = FlowCalibration.from_dict(json.loads(file.read_bytes()))
    except (OSError, ValueError, InvalidInput):
        return None
    same = all(getattr(flow, name) == value for name, value in given.items())
    return flow if same else None
