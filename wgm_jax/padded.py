"""The padded sampler: any mechanism, as its `prepare` and `run` define it, in batches of trials.

What is taken from every trial is an argument, a *measure*: the metrics, or the released items.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from theory import UserItems
from theory._check import invalid
from theory.calibration import Calibration
from wgm_jax import metrics
from wgm_jax.bits import seed_key
from wgm_jax.devices import Devices, on_every_device
from wgm_jax.mechanism import Mechanism, Release, grid_axes, padded_length

# From a release and the items' frequencies, numbers of fixed shape by name. Traced; hashable.
Measure: TypeAlias = Callable[[Release, Any], dict[str, jax.Array]]

# Trials of one device call: room in its result buffer, and bytes of it unless one batch is more.
_CAPACITY = 1024
_CAPACITY_BYTES = 2**26
# A batch's working set that stays in the CPU's cache (measured); a GPU wants more lanes.
_CPU_CACHE = 2**25
_CPU_BATCH, _GPU_BATCH = 8, 4096


class PaddedSampler:
    """Trials by `Mechanism.run`, one after the other within a batch, vmapped over the batch.

    Args:
        mechanism: The mechanism.
        data: The data set.
        calibration: Grid of shape (points,) at one Delta0.
        seed: Seed.
        devices: Where trials run.
        callers: Threads that will call at the same time.
        memory_budget: Bytes that these calls may take together.
        measure: What is taken from every trial.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        data: UserItems,
        calibration: Calibration,
        *,
        seed: int,
        devices: Devices,
        callers: int,
        memory_budget: int,
        measure: Measure = metrics.measure,
    ) -> None:
        state = mechanism.prepare(data, calibration)
        self._devices = devices
        self._batch = _batch_size(state, devices, memory_budget // (callers * devices.count))
        self.trials_per_call = self._batch * devices.count
        padding = padded_length(data.num_items) - data.num_items
        frequencies = np.pad(data.frequencies, (0, padding)).astype(np.int32)
        self._arguments = devices.put((seed_key(seed), state, frequencies))
        self._compiled = partial(
            _trials, mechanism, measure, tuple(grid_axes(state)), self._batch, devices.mesh
        )
        # No batch at all: compiles everything and runs nothing.
        empty = jax.block_until_ready(self._call(0, 0))
        self.most_trials_per_call = next(iter(empty.values())).shape[0]

    def __call__(self, first: int, count: int) -> dict[str, np.ndarray]:
        """Measures of trials first, ..., first + count - 1, arrays (count, points, ...)."""
        batches = -(-count // self.trials_per_call)
        used = batches * self._batch  # of every device's result
        found = {}
        for name, values in self._call(first, batches).items():
            array = np.asarray(values)
            by_device = array.reshape(self._devices.count, -1, *array.shape[1:])[:, :used]
            found[name] = by_device.reshape(-1, *array.shape[1:])[:count]
        return found

    def _call(self, first: int, batches: int) -> dict[str, jax.Array]:
        key, state, frequencies = self._arguments
        return self._compiled(key, np.uint32(first), np.int32(batches), state, frequencies)


@partial(jax.jit, static_argnums=(0, 1, 2, 3, 4))
def _trials(
    mechanism: Mechanism,
    measure: Measure,
    axes: tuple[int | None, ...],
    batch: int,
    mesh: jax.sharding.Mesh,
    key: jax.Array,
    first: jax.Array,
    num_batches: jax.Array,
    state: Any,
    frequencies: jax.Array,
) -> dict[str, jax.Array]:
    """Measures of trials first, first + 1, ...: each of shape (devices * capacity, points, ...).

    The number of batches per device is traced, so any number of trials runs the same program.
    """
    leaves, structure = jax.tree.flatten(state)

    def shard(device, key, first, num_batches, leaves, frequencies) -> dict[str, jax.Array]:
        start = first + (device * num_batches * batch).astype(jnp.uint32)

        def point(key: jax.Array, *leaves: jax.Array) -> dict[str, jax.Array]:
            release = mechanism.run(key, jax.tree.unflatten(structure, leaves))
            return measure(release, frequencies)

        # Only grid fields carry the points' axis, so what does not depend on them is done once.
        trial = jax.vmap(point, in_axes=(None, *axes))

        def body(index: jax.Array, buffers: dict[str, jax.Array]) -> dict[str, jax.Array]:
            offset = index.astype(jnp.uint32) * batch
            numbers = start + offset + jnp.arange(batch, dtype=jnp.uint32)
            keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, numbers)
            found = jax.vmap(lambda k: trial(k, *leaves))(keys)
            return {
                name: jax.lax.dynamic_update_slice_in_dim(
                    buffers[name], values, index * batch, axis=0
                )
                for name, values in found.items()
            }

        shapes = jax.eval_shape(trial, key, *leaves)
        rows = _capacity(batch, sum(s.size * s.dtype.itemsize for s in shapes.values()))
        buffers = {name: jnp.zeros((rows, *s.shape), s.dtype) for name, s in shapes.items()}
        return jax.lax.fori_loop(jnp.int32(0), num_batches, body, buffers)

    on_devices = on_every_device(shard, mesh, axis=0)
    return on_devices(key, first, num_batches, leaves, frequencies)


def _capacity(batch: int, bytes_per_trial: int) -> int:
    """Trials of one device call, a multiple of the batch."""
    fitting = min(_CAPACITY, _CAPACITY_BYTES // bytes_per_trial)
    return batch * max(1, fitting // batch)


def _batch_size(state: Any, devices: Devices, memory_budget: int) -> int:
    """Trials in flight, a power of two: within the byte budget, and on the CPU within its cache.

    A trial's random words, taken flags and weights take about as many bytes as the state, and every
    point of the grid about 16 bytes an item.
    """
    leaves, axes = jax.tree.leaves(state), grid_axes(state)
    on_grid = [leaf.shape[0] for leaf, axis in zip(leaves, axes, strict=True) if axis == 0]
    points = max(on_grid, default=1)
    # Of one point: a leaf on the grid has the points in its size already.
    longest = max(
        leaf.size // (leaf.shape[0] if axis == 0 else 1)
        for leaf, axis in zip(leaves, axes, strict=True)
    )
    per_trial = sum(leaf.nbytes for leaf in leaves) + 16 * points * longest
    cpu = devices.platform == "cpu"
    most = _CPU_BATCH if cpu else _GPU_BATCH
    if per_trial > memory_budget:
        accepted = f"per device and thread must be at least {per_trial}: bytes of one trial"
        invalid("memory_budget", memory_budget, accepted)
    room = min(memory_budget, _CPU_CACHE) if cpu else memory_budget
    fitting = min(most, max(1, room // per_trial))
    return 1 << (fitting.bit_length() - 1)
