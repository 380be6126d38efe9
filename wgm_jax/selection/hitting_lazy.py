"""Hitting sets on a CPU: a round updates the counts of the users just hit, and nothing else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from jaxtyping import Bool, Int32, Int64, UInt32

from theory.residual import Incidence, Residual
from wgm_jax.devices import num_cores
from wgm_jax.selection.noise import gumbel
from wgm_jax.selection.shared_residuals import SharedResiduals, TrialResidual

# Noises drawn at a time, those of several rounds: enough for the compiled cipher to be used.
_BLOCK = 2**18


def choose_lazily(
    incidence: Incidence,
    keys: UInt32[np.ndarray, "trials 2"],
    opened: Bool[np.ndarray, "trials items"] | None,
    *,
    k: int,
    scale: float,
    stops_early: bool,
) -> Int32[np.ndarray, "trials k"]:
    """Chosen items of every trial; a trial costs O(pairs + k items), and every core takes trials.

    Args:
        incidence: The items that any trial may choose.
        keys: One key per trial.
        opened: Which of those items each trial may choose; None for all.
        k: Items to be chosen.
        scale: Scale of the Gumbel noise on counts, 0 for none.
        stops_early: Whether to stop when every user is hit.
    """
    shared = SharedResiduals(Residual(incidence))

    def trial(number: int) -> np.ndarray:
        if opened is None:
            places = np.arange(incidence.items.size)
        else:
            places = np.flatnonzero(opened[number])
        items = incidence.items[places]
        residual = TrialResidual(shared)
        return _one_trial(residual, places, items, keys[number], k, scale, stops_early)

    with ThreadPoolExecutor(num_cores(), thread_name_prefix="trials") as pool:
        return np.array(list(pool.map(trial, range(len(keys)))), np.int32).reshape(len(keys), k)


def _one_trial(
    residual: TrialResidual,
    places: Int64[np.ndarray, " items"],
    items: Int32[np.ndarray, " items"],
    key: UInt32[np.ndarray, " 2"],
    k: int,
    scale: float,
    stops_early: bool,
) -> Int32[np.ndarray, " k"]:
    """Chosen items among those at `places` of the residual."""
    chosen = np.full(k, -1, np.int32)
    rounds = min(k, items.size)
    taken = np.empty(0, np.int64)
    block = max(1, _BLOCK // max(1, items.size))
    for start in range(0, rounds, block):
        turns = np.arange(start, min(start + block, rounds))
        if scale > 0:
            noise = scale * gumbel(key, turns[:, None], items)
        else:
            noise = np.zeros((turns.size, items.size))
        noise[:, taken] = -np.inf
        best = np.empty(turns.size, np.int64)
        for row, turn in enumerate(turns):
            if stops_early and residual.exhausted:
                return chosen
            best[row] = np.argmax(residual.counts[places] + noise[row])
            residual.choose(int(places[best[row]]))
            noise[row:, best[row]] = -np.inf
            chosen[turn] = items[best[row]]
        taken = np.concatenate([taken, best])
    return chosen
