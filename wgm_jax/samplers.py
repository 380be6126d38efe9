"""Which implementation runs the trials: the one place that decides."""

from __future__ import annotations

from typing import Protocol, cast, runtime_checkable

import numpy as np

from theory import UserItems
from theory._check import invalid
from theory.calibration import Calibration
from wgm_jax.count_law import CountMechanism, has_count_law
from wgm_jax.devices import Devices, num_cores
from wgm_jax.mechanism import Mechanism

NAMES = ("auto", "padded", "lanes")
# The kernel's products of 16-bit draws and set sizes fit into 32 bits.
LARGEST_SET = 2**16 - 1


@runtime_checkable
class Sampler(Protocol):
    """Runs trials. Calls from several threads at once are allowed.

    Attributes:
        trials_per_call: Number that a call computes with nothing left idle.
        most_trials_per_call: Largest number.
    """

    trials_per_call: int
    most_trials_per_call: int

    def __call__(self, first: int, count: int) -> dict[str, np.ndarray]:
        """Metrics of trials first, ..., first + count - 1, one array (count, points) each."""
        ...


def choose(
    name: str, mechanism: Mechanism, data: UserItems, calibration: Calibration, devices: Devices
) -> str:
    """Name of the sampler for a call: "padded" or "lanes".

    Args:
        name: What the caller asks for; "auto" takes "lanes" on a CPU where it applies.
        mechanism: The mechanism; "lanes" is a second implementation of those whose own class
            says their law by kept copies (`wgm_jax.count_law`).
        data: The data set.
        calibration: Grid at one Delta0.
        devices: Where the trials run.

    Raises:
        InvalidInput: Unknown name, or "lanes" where it does not apply.
    """
    if name not in NAMES:
        invalid("sampler", name, f"must be one of {', '.join(NAMES)}")
    obstacle = None
    if not has_count_law(mechanism):
        obstacle = f"needs a law by numbers of kept copies, which {mechanism!r} does not define"
    elif int(np.max(calibration.max_items_per_user)) < data.max_set_size > LARGEST_SET:
        obstacle = f"clips users of at most {LARGEST_SET} items, not {data.max_set_size}"
    if name == "lanes" and obstacle is not None:
        invalid("sampler", name, f"must be padded here: lanes {obstacle}")
    if name != "auto":
        return name
    return "lanes" if obstacle is None and devices.platform == "cpu" else "padded"


def make(
    name: str,
    mechanism: Mechanism,
    data: UserItems,
    calibration: Calibration,
    *,
    seed: int,
    devices: Devices,
    num_trials: int,
    callers: int,
    memory_budget: int,
) -> Sampler:
    """The sampler of that name, compiled and ready to run.

    Args:
        name: "padded" or "lanes".
        mechanism: The mechanism.
        data: The data set.
        calibration: Grid of shape (points,) at one Delta0.
        seed: Seed.
        devices: Where the trials run.
        num_trials: Trials that will be asked for: a hint.
        callers: Threads that will call at the same time.
        memory_budget: Bytes that these calls may take together.
    """
    if name == "lanes":
        from wgm_jax.lane_sampler import LaneSampler

        return LaneSampler(
            data,
            cast(CountMechanism, mechanism).count_law(data, calibration),
            seed=seed,
            devices=devices,
            num_trials=num_trials,
            callers=callers,
            memory_budget=memory_budget,
        )
    from wgm_jax.padded import PaddedSampler

    return PaddedSampler(
        mechanism,
        data,
        calibration,
        seed=seed,
        devices=devices,
        callers=callers,
        memory_budget=memory_budget,
    )


def default_callers(devices: Devices) -> int:
    """Threads that call a sampler: all cores where they compute, one for a GPU."""
    return max(1, num_cores() // devices.count) if devices.platform == "cpu" else 1
