"""What the machine can do at most: random bits, sums of rows, and memory traffic per second.

Each is a loop that does one thing only, on all cores, with rows as long as the fast sampler's. A
sampler that does several things in turn cannot reach any of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from theory import Calibration, UserItems

LIMITS = ("random_bits", "adds", "memory_bytes")
_LANES = 1024
_ROWS = 1024
# Together larger than the caches of most processors.
_MEMORY = 2**28
_STEPS = 2**13
_PASSES = 16


class Limits:
    """Loops that are timed like a way to run trials.

    Args:
        steps: Rows per call, a multiple of 8.
        memory: Bytes that the memory loop goes over, all cores together.
    """

    def __init__(self, *, steps: int = _STEPS, memory: int = _MEMORY) -> None:
        import jax
        import jax.numpy as jnp

        from wgm_jax.bits import threefry
        from wgm_jax.devices import Devices
        from wgm_jax.samplers import default_callers

        lanes = jnp.arange(_LANES, dtype=jnp.uint32)

        @jax.jit
        def random_bits(key: Any) -> Any:
            def step(index: Any, sums: Any) -> Any:
                for part in range(8):
                    counter = (8 * index + part).astype(jnp.uint32)
                    first, second = threefry(key, lanes, jnp.broadcast_to(counter, lanes.shape))
                    sums = sums ^ first ^ second
                return sums

            return jax.lax.fori_loop(0, steps // 8, step, jnp.zeros_like(lanes))

        @jax.jit
        def adds(places: Any) -> Any:
            ones = jnp.ones((1, _LANES), jnp.int16)

            def step(index: Any, counts: Any) -> Any:
                four = jax.lax.dynamic_slice_in_dim(places, 4 * index, 4)
                for part in range(4):
                    row = jax.lax.dynamic_slice_in_dim(counts, four[part], 1) + ones
                    counts = jax.lax.dynamic_update_slice_in_dim(counts, row, four[part], 0)
                return counts

            start = jnp.zeros((_ROWS, _LANES), jnp.int16)
            return jax.lax.fori_loop(0, steps // 4, step, start)

        @jax.jit
        def memory_bytes(numbers: Any) -> Any:
            # In place: a fresh array per pass would measure the operating system.
            return jax.lax.fori_loop(0, _PASSES, lambda _, found: found + 1, numbers)

        self._callers = default_callers(Devices.of())
        share = max(1, memory // self._callers // 4)
        places = np.random.default_rng(0).integers(0, _ROWS, steps).astype(np.int32)
        self._loops: dict[str, tuple[Callable[[Any], Any], Any, float]] = {
            "random_bits": (random_bits, jnp.zeros(2, jnp.uint32), 64.0 * steps * _LANES),
            "adds": (adds, jnp.asarray(places), 1.0 * steps * _LANES),
            # Four bytes read and four written.
            "memory_bytes": (memory_bytes, jnp.zeros(share, jnp.int32), 8.0 * share * _PASSES),
        }
        self._wait = jax.block_until_ready
        for loop, argument, _ in self._loops.values():
            self._wait(loop(argument))

    def measure(self, name: str, seconds: float) -> float:
        """Units per second, of loops on all cores for about `seconds`.

        Args:
            name: One of `LIMITS`.
            seconds: How long.
        """
        loop, argument, units = self._loops[name]
        start = time.perf_counter()

        def until(end: float) -> int:
            done = 0
            while time.perf_counter() < end or done == 0:
                self._wait(loop(argument))
                done += 1
            return done

        with ThreadPoolExecutor(self._callers) as pool:
            done = list(pool.map(until, [start + seconds] * self._callers))
        return units * sum(done) / (time.perf_counter() - start)


def lanes_work(data: UserItems, calibration: Calibration) -> dict[str, Any]:
    """What the fast sampler does in one trial, in the units of the limits.

    Args:
        data: The data set.
        calibration: Grid of shape (points,).

    Returns:
        open_items, open_slots; and per trial random_bits (16 a slot, 32 an item), adds (one a slot)
        and memory_bytes (a 16-bit count read and written per slot, if it were in no cache).
    """
    from wgm_jax.fates import fates
    from wgm_jax.wgm import WeightedGaussian

    opened = fates(data, WeightedGaussian().count_law(data, calibration)).open
    clipped = data.set_sizes > int(np.max(calibration.max_items_per_user))
    slots = int(np.count_nonzero(opened[data.items[np.repeat(clipped, data.set_sizes)]]))
    items = int(np.count_nonzero(opened))
    return {
        "open_items": items,
        "open_slots": slots,
        "random_bits": 16.0 * slots + 32.0 * items,
        "adds": 1.0 * slots,
        "memory_bytes": 4.0 * slots,
    }
