"""The devices that share the trials of a call."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

AXIS = "trials"


@dataclass(frozen=True)
class Devices:
    """Local devices in a row; each runs its own trials and none talks to another.

    Attributes:
        mesh: Mesh with the single axis `AXIS`.
    """

    mesh: Mesh

    @classmethod
    def of(cls, devices: Sequence[Any] | None = None) -> Devices:
        """The given devices, or all of this process."""
        chosen = list(jax.local_devices() if devices is None else devices)
        return cls(Mesh(np.array(chosen), (AXIS,)))

    @property
    def count(self) -> int:
        """Number of devices."""
        return self.mesh.size

    @property
    def platform(self) -> str:
        """Platform, such as "cpu"."""
        return self.mesh.devices.flat[0].platform

    def put(self, tree: Any) -> Any:
        """The arrays of a pytree, a copy on every device."""
        return jax.device_put(tree, NamedSharding(self.mesh, PartitionSpec()))


def on_every_device(function: Callable[..., Any], mesh: Mesh, *, axis: int) -> Callable[..., Any]:
    """A traced function of (number of the device, *arguments), run on every device of a mesh.

    Args:
        function: Returns arrays whose `axis` is that of trials.
        mesh: From `Devices`.
        axis: Along it the results of all devices are joined.
    """

    def shard(*arguments: Any) -> Any:
        return function(jax.lax.axis_index(AXIS), *arguments)

    joined = PartitionSpec(*[None] * axis, AXIS)
    return jax.shard_map(
        shard, mesh=mesh, in_specs=PartitionSpec(), out_specs=joined, check_vma=False
    )


def num_cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
