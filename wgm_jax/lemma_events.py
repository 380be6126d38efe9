"""What happens inside a WGM trial: lost items, kept copies, weights of what is missed.

`simulate` reports what a user of the mechanism sees. The lemmas behind Theorem 3.3 speak of the
steps before: this is a trial of the padded sampler (same keys, same draws), observed there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float64

from theory import Calibration, Profile, UserItems, lemma_c3_frequency
from wgm_jax.bits import seed_key
from wgm_jax.mechanism import padded_length
from wgm_jax.release import release
from wgm_jax.sampling import subset_counts
from wgm_jax.wgm import WeightedGaussian, WgmState, draw

_BATCH = 8


@dataclass(frozen=True, eq=False)
class LemmaEvents:
    """Per-trial observations of the steps of the WGM.

    Attributes:
        lost_mass: Share of pairs whose item no user kept (Lemma C.2).
        max_lost_mass: Mass of the most frequent item that no user kept (Lemma C.5).
        few_copies: Some item with N(x) >= (8/p*) ln(M/beta) kept less than p* N(x)/2 copies
            (Lemma C.3).
        heaviest_missed: Largest weight H(x) of an item that was kept by someone and missed, per
            eps; 0 if none (Lemma C.4). In units of user weight.
    """

    lost_mass: Float64[np.ndarray, " num_trials"]
    max_lost_mass: Float64[np.ndarray, " num_trials"]
    few_copies: Bool[np.ndarray, " num_trials"]
    heaviest_missed: Float64[np.ndarray, "num_trials num_points"]


def lemma_events(
    data: UserItems, calibration: Calibration, *, beta: float, num_trials: int, seed: int = 0
) -> LemmaEvents:
    """Observe trials 0, 1, ... of `simulate(..., sampler="padded")` with this seed from inside.

    Args:
        data: The data set.
        calibration: Grid of shape (num_points,) at one Delta0.
        beta: Failure probability of Lemma C.3.
        num_trials: Number of trials.
        seed: Seed, as in `simulate`.

    Returns:
        A `LemmaEvents` record.
    """
    keep = int(np.max(calibration.max_items_per_user))
    profile = Profile.from_user_items(data, max_items_per_user=keep)
    padding = padded_length(data.num_items) - data.num_items
    frequencies = np.pad(data.frequencies, (0, padding)).astype(np.int32)
    whole = np.repeat(data.set_sizes <= keep, data.set_sizes)
    folded = np.bincount(data.items[whole], minlength=frequencies.size).astype(np.int32)
    heavy = frequencies >= np.float64(lemma_c3_frequency(profile, beta).value)
    # The least whole number of copies that is not below p* N(x)/2.
    enough = np.ceil(profile.keep_probability * frequencies / 2).astype(np.int32)
    state = jax.device_put(WeightedGaussian().prepare(data, calibration))
    numbers = np.arange(num_trials, dtype=np.uint32)
    items = (frequencies, folded, np.where(heavy & (frequencies > 0), enough, 0))
    lost, largest, few, heaviest = _observe(seed_key(seed), numbers, state, items)
    return LemmaEvents(
        lost_mass=np.asarray(lost) / np.float64(data.num_pairs),
        max_lost_mass=np.asarray(largest) / np.float64(data.num_pairs),
        few_copies=np.asarray(few),
        heaviest_missed=np.asarray(heaviest).astype(np.float64),
    )


@jax.jit
def _observe(key: jax.Array, numbers: Any, state: WgmState, items: tuple[Any, Any, Any]) -> Any:
    frequencies, folded, enough = (jnp.asarray(part) for part in items)

    def trial(number: jax.Array) -> tuple[jax.Array, ...]:
        own = jax.random.fold_in(key, number)
        weights, bits = draw(own, state)
        kept = subset_counts(
            jax.random.fold_in(own, 0), state.slots, state.keep, state.base.shape[0]
        )
        lost = jnp.where(weights > 0, 0, frequencies)

        def heaviest(sigma: jax.Array, threshold: jax.Array) -> jax.Array:
            missed = ~release(bits, weights, sigma, threshold)
            return jnp.max(jnp.where(missed, weights, jnp.float32(0)))

        return (
            jnp.sum(lost, dtype=jnp.int32),
            jnp.max(lost),
            jnp.any(folded + kept < enough),
            jax.vmap(heaviest)(jnp.asarray(state.sigma), jnp.asarray(state.threshold)),
        )

    return jax.lax.map(trial, numbers, batch_size=_BATCH)
