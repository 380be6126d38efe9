"""Calibrations of the Bernoulli flow on disk: made once, in minutes, and read in a moment.

They depend on eps, delta and Delta0 only, never on data. A file is believed only if its digest and
its proof are right (`FlowCalibration.from_dict`); otherwise it is made again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from experiments.cache import cache_folder

if TYPE_CHECKING:
    from theory import Calibration
    from theory.flow import FlowCalibration
    from theory.flow.calibration import Accountant
    from theory.flow.two_rounds import TwoRoundFlow

NAME, TWO_ROUNDS = "bernoulli-flow", "bernoulli-flow-2"
_GIVEN = ("eps", "delta", "max_items_per_user")
# Called with what is being done and the share of it that is done.
Progress = Callable[[str, float], None]


@runtime_checkable
class Storable(Protocol):
    """A calibration that can be written."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a JSON file."""
        ...


Stored = TypeVar("Stored", bound=Storable)


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
    """The calibration: this process's, or from its file, or made and, where possible, written.

    The mechanism `bernoulli-flow` finds it from then on.

    Args:
        eps: Privacy parameter in [0.01, 10].
        delta: Privacy parameter in [1e-12, 1e-2].
        max_items_per_user: Delta0, whole number from 1 to 1000.
        accountant: See `theory.flow.calibrate_flow`.
        progress: Called as progress(stage, share) while it is made.

    Raises:
        InvalidInput: An argument is outside its range.
    """
    from theory.flow import FlowCalibration, calibrate_flow
    from theory.flow.calibration import check_flow_range
    from wgm_jax.set_union.flows import recalled, remember

    check_flow_range(eps, delta, max_items_per_user)
    given = float(eps), float(delta), int(max_items_per_user)
    return recalled(*given, accountant) or _from_file(
        flow_file(*given, accountant),
        given,
        read=FlowCalibration.from_dict,
        make=lambda **asked: calibrate_flow(**asked, accountant=accountant, progress=progress),
        remember=lambda flow: remember(flow, accountant),
    )


def two_rounds_file(eps: float, delta: float, max_items_per_user: int) -> Path:
    """File of one calibration of both rounds.

    Example:
        >>> two_rounds_file(1.0, 1e-5, 300).name
        'two-rounds-eps-1.0-delta-1e-05-items-300.json'
    """
    name = f"two-rounds-eps-{eps!r}-delta-{delta!r}-items-{max_items_per_user}.json"
    return cache_folder("flows") / name


def stored_two_rounds(
    *,
    eps: float,
    delta: float,
    max_items_per_user: int,
    progress: Progress | None = None,
) -> TwoRoundFlow:
    """`stored_flow` for two rounds; the mechanism `bernoulli-flow-2` finds it from then on.

    Args:
        eps: Privacy parameter, from 0.0378 to 10.
        delta: Privacy parameter in [1e-11, 1e-2].
        max_items_per_user: Delta0, whole number from 1 to 1000.
        progress: Called as progress(stage, share) while it is made.

    Raises:
        InvalidInput: An argument is outside its range.
    """
    from theory.flow.two_rounds import TwoRoundFlow
    from theory.flow.two_rounds_calibration import calibrate_two_rounds, check_two_round_range
    from wgm_jax.set_union.flows import recalled_two_rounds, remember_two_rounds

    check_two_round_range(eps, delta, max_items_per_user)
    given = float(eps), float(delta), int(max_items_per_user)
    return recalled_two_rounds(*given) or _from_file(
        two_rounds_file(*given),
        given,
        read=TwoRoundFlow.from_dict,
        make=lambda **asked: calibrate_two_rounds(
            **asked, calibrate=stored_flow, progress=progress
        ),
        remember=remember_two_rounds,
    )


def ready_flows(
    calibration: Calibration, progress: Progress | None = None
) -> list[FlowCalibration]:
    """One flow per point of a calibration; the mechanism `bernoulli-flow` finds them, too.

    Args:
        calibration: Any shape; eps, delta and Delta0 count.
        progress: Called as progress(stage, share) while one is made.
    """
    return [stored_flow(**point, progress=progress) for point in _points(calibration)]


def ready_two_rounds(
    calibration: Calibration, progress: Progress | None = None
) -> list[TwoRoundFlow]:
    """`ready_flows` for the mechanism `bernoulli-flow-2`."""
    return [stored_two_rounds(**point, progress=progress) for point in _points(calibration)]


def make_ready(mechanism: str, calibration: Calibration, progress: Progress | None = None) -> None:
    """Calibrations of a mechanism from their files, or made and written; of others there are none.

    Args:
        mechanism: Name of any mechanism.
        calibration: Any shape; eps, delta and Delta0 count.
        progress: Called as progress(stage, share) while one is made.
    """
    made = {NAME: ready_flows, TWO_ROUNDS: ready_two_rounds}.get(mechanism)
    if made is not None:
        made(calibration, progress)


def ready_bounds(eps: float, delta: float, accountant: Accountant = "bellman") -> tuple[int, ...]:
    """Delta0 for which a calibration is stored or known, ascending: nothing has to be made.

    A file that turns out to be damaged is made again when it is asked for.
    """
    from wgm_jax.set_union.flows import known_bounds

    start, end = f"eps-{float(eps)!r}-delta-{float(delta)!r}-items-", f"-{accountant}.json"
    found = set(known_bounds(eps, delta, accountant))
    for file in cache_folder("flows").glob(f"{start}*{end}"):
        number = file.name[len(start) : -len(end)]
        found |= {int(number)} if number.isdecimal() else set()
    return tuple(sorted(found))


def _points(calibration: Calibration) -> list[dict[str, Any]]:
    """Arguments of `stored_flow` for every point."""
    import numpy as np

    points = zip(*(np.ravel(getattr(calibration, name)).tolist() for name in _GIVEN), strict=True)
    return [dict(zip(_GIVEN, point, strict=True)) for point in points]


def _from_file(
    file: Path,
    given: tuple[float, float, int],
    *,
    read: Callable[[dict[str, Any]], Stored],
    make: Callable[..., Stored],
    remember: Callable[[Stored], None],
) -> Stored:
    """A calibration from its file, or made and written; the process knows it from then on."""
    asked: dict[str, Any] = dict(zip(_GIVEN, given, strict=True))
    flow = _read(file, asked, read)
    if flow is None:
        flow = make(**asked)
        _write(file, flow.to_dict())
    remember(flow)
    return flow


def _write(file: Path, content: dict[str, Any]) -> None:
    from experiments.sweep.store import write_atomic

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, json.dumps(content).encode())
    except OSError:  # a cache is a convenience
        pass


def _read(
    file: Path, given: dict[str, Any], from_dict: Callable[[dict[str, Any]], Stored]
) -> Stored | None:
    """The calibration in a file; None if there is none that is right and the one asked for."""
    from theory._check import InvalidInput

    try:
        flow = from_dict(json.loads(file.read_bytes()))
    except (OSError, ValueError, InvalidInput):
        return None
    same = all(getattr(flow, name) == value for name, value in given.items())
    return flow if same else None
