"""Many independent trials of a mechanism: batches on the device, chunks from the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from theory import UserItems
from theory._check import check_count, invalid
from theory.calibration import Calibration, verify_calibration
from wgm_jax import metrics, registry
from wgm_jax.censored import censoring, contribution_bound
from wgm_jax.mechanism import Mechanism, grid_axes, padded_length
from wgm_jax.trials import Trials

# Trials of one device call: room in its result buffer.
_CAPACITY = 1024
# A batch's working set that stays in the CPU's cache (measured); a GPU wants more lanes.
_CPU_CACHE = 2**25
_CPU_BATCH, _GPU_BATCH = 8, 4096
# Chunks grow until a call takes this long, so that progress is seen and calls cost nothing.
_SECONDS_PER_CALL = 0.5


def simulate(
    data: UserItems,
    calibration: Calibration,
    mechanism: str | Mechanism = "wgm",
    *,
    num_trials: int | float | np.number,
    seed: int | float | np.number = 0,
    first_trial: int | float | np.number = 0,
    chunk_size: int | float | np.number | None = None,
    memory_budget: int | float | np.number = 2**30,
    progress: Callable[[int, int], Any] | None = None,
) -> Trials:
    """Independent trials of a mechanism on one data set.

    Trial i draws from fold_in(key of the seed, i): its numbers depend neither on the number of
    trials nor on chunk size or memory budget. Call again with `first_trial` to add trials.

    Args:
        data: The data set, below 2^31 pairs.
        calibration: From `theory.calibrate`; a grid of any shape at one Delta0 is served by the
            same draws (common random numbers) at little more than the price of one point.
        mechanism: Name from `wgm_jax.mechanisms`, or a mechanism.
        num_trials: Number of trials, at least 1.
        seed: Seed, 0 to 2^63 - 1.
        first_trial: Index of the first trial.
        chunk_size: Trials per device call, 1,024 at most; default adapts to about half a second.
        memory_budget: Bytes that the trials in flight may take, beside the data themselves.
        progress: Called as progress(done, total) after every device call.

    Returns:
        A `Trials` record.

    Raises:
        InvalidInput: An argument is out of range; the calibration does not keep its promise
            ([P2] re-derives delta), mixes several Delta0, or is not a `Calibration`.

    Example:
        >>> from theory.calibration import calibrate
        >>> from wgm_jax import synthetic
        >>> data = synthetic.equal_frequencies(num_items=5, frequency=40)
        >>> trials = simulate(data, calibrate(eps=1.0, delta=1e-5, max_items_per_user=1),
        ...                   num_trials=100)
        >>> trials.missing_mass.shape, float(trials.missing_mass.max())
        ((100,), 0.0)
    """
    num_trials = check_count("num_trials", num_trials)
    seed = check_count("seed", seed, minimum=0, maximum=2**63 - 1)
    # Trial indices are folded into the key as 32-bit words.
    first_trial = check_count(
        "first_trial", first_trial, minimum=0, maximum=2**32 - 1 - num_trials - _CAPACITY
    )
    memory_budget = check_count("memory_budget", memory_budget)
    if chunk_size is not None:
        chunk_size = check_count("chunk_size", chunk_size)
    _check_inputs(data, calibration)

    chosen = registry.get(mechanism) if isinstance(mechanism, str) else mechanism
    start = time.perf_counter()
    state = jax.device_put(chosen.prepare(data, _flat(calibration)))
    batch = _batch_size(state, memory_budget)
    call = partial(_trials, chosen, tuple(grid_axes(state)), batch)
    padding = padded_length(data.num_items) - data.num_items
    frequencies = jnp.asarray(np.pad(data.frequencies, (0, padding)).astype(np.int32))
    key = jax.random.wrap_key_data(
        jnp.asarray([seed >> 32, seed & 0xFFFFFFFF], jnp.uint32), impl="threefry2x32"
    )
    # No batch at all: compiles everything and runs nothing.
    jax.block_until_ready(call(key, np.uint32(0), np.int32(0), state, frequencies))
    compiled = time.perf_counter()

    capacity = _capacity(batch)
    size = min(chunk_size, capacity) if chunk_size else batch
    parts: list[dict[str, np.ndarray]] = []
    done = 0
    while done < num_trials:
        count = min(size, num_trials - done)
        called = time.perf_counter()
        batches = np.int32(-(-count // batch))
        found = call(key, np.uint32(first_trial + done), batches, state, frequencies)
        parts.append({name: np.asarray(values)[:count] for name, values in found.items()})
        done += count
        if progress is not None:
            progress(done, num_trials)
        if not chunk_size and time.perf_counter() - called < _SECONDS_PER_CALL / 2:
            size = min(2 * size, capacity)
    run_seconds = time.perf_counter() - compiled

    raw = {
        name: np.concatenate([part[name] for part in parts]).reshape(num_trials, *calibration.shape)
        for name in parts[0]
    }
    released = raw["num_released"].astype(np.int64)
    return Trials(
        missing_mass=raw["missed_pairs"] / np.float64(data.num_pairs),
        missing_mass_l2=np.sqrt(raw["missed_squares"].astype(np.float64)) / data.num_pairs,
        max_missing_mass=raw["largest_missed"] / np.float64(data.num_pairs),
        num_missed=data.num_items - released,
        num_released=released,
        seed=seed,
        first_trial=first_trial,
        mechanism=mechanism if isinstance(mechanism, str) else repr(mechanism),
        sampler=f"padded blocks, threefry2x32, {jax.default_backend()}",
        calibration=calibration,
        censoring=censoring(data, calibration),
        compile_seconds=compiled - start,
        run_seconds=run_seconds,
        versions={name: version(name) for name in ("jax", "jaxlib", "numpy")},
    )


def _check_inputs(data: UserItems, calibration: Calibration) -> None:
    if not isinstance(data, UserItems):
        invalid("data", type(data).__name__, "must be a theory.UserItems")
    if not isinstance(calibration, Calibration):
        accepted = "must be a theory.Calibration: sigma and threshold belong together"
        invalid("calibration", calibration, accepted)
    if data.num_pairs > metrics.MOST_PAIRS:
        invalid("num_pairs", data.num_pairs, "must be below 2^31: sums are exact in 32 bits")
    contribution_bound(calibration)
    verify_calibration(calibration)


def _flat(calibration: Calibration) -> Calibration:
    """The same calibration with one axis, of length 1 for a single point."""
    names = ("eps", "delta", "max_items_per_user", "sigma", "threshold")
    values = {name: np.ravel(getattr(calibration, name)) for name in names}
    return Calibration(method=calibration.method, **values)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _trials(
    mechanism: Mechanism,
    axes: tuple[int | None, ...],
    batch: int,
    key: jax.Array,
    first: jax.Array,
    num_batches: jax.Array,
    state: Any,
    frequencies: jax.Array,
) -> dict[str, jax.Array]:
    """Metrics of trials first, first + 1, ...: each of shape (capacity, points).

    The number of batches is traced, so any number of trials runs the same program.
    """
    leaves, structure = jax.tree.flatten(state)

    def point(key: jax.Array, *leaves: jax.Array) -> dict[str, jax.Array]:
        release = mechanism.run(key, jax.tree.unflatten(structure, leaves))
        return {metric.__name__: metric(release, frequencies) for metric in metrics.METRICS}

    # Only grid fields carry the points' axis, so what does not depend on them is done once.
    trial = jax.vmap(point, in_axes=(None, *axes))

    def body(index: jax.Array, buffers: dict[str, jax.Array]) -> dict[str, jax.Array]:
        offset = index.astype(jnp.uint32) * batch
        numbers = first + offset + jnp.arange(batch, dtype=jnp.uint32)
        keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, numbers)
        found = jax.vmap(lambda k: trial(k, *leaves))(keys)
        return {
            name: jax.lax.dynamic_update_slice_in_dim(buffers[name], values, index * batch, axis=0)
            for name, values in found.items()
        }

    shapes = jax.eval_shape(trial, key, *leaves)
    buffers = {n: jnp.zeros((_capacity(batch), *s.shape), s.dtype) for n, s in shapes.items()}
    return jax.lax.fori_loop(jnp.int32(0), num_batches, body, buffers)


def _capacity(batch: int) -> int:
    return max(_CAPACITY, batch)


def _batch_size(state: Any, memory_budget: int) -> int:
    """Trials in flight, a power of two: within the byte budget, and on the CPU within its cache.

    A trial's random words, taken flags and weights take about as many bytes as the state, and every
    point of the grid about 16 bytes an item.
    """
    leaves = jax.tree.leaves(state)
    points = max(
        [leaf.shape[0] for leaf, axis in zip(leaves, grid_axes(state), strict=True) if axis == 0],
        default=1,
    )
    longest = max(leaf.size for leaf in leaves)
    per_trial = sum(leaf.nbytes for leaf in leaves) + 16 * points * longest
    cpu = jax.default_backend() == "cpu"
    most = _CPU_BATCH if cpu else _GPU_BATCH
    room = min(memory_budget, _CPU_CACHE) if cpu else memory_budget
    fitting = min(most, max(1, room // per_trial))
    return 1 << (fitting.bit_length() - 1)
