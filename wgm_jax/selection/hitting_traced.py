"""Hitting sets of many trials side by side in JAX: every round walks through all pairs.

Rows are users, items or pairs and columns are trials, so that whatever a row index picks or adds to
is one run of memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int32, UInt32

from theory.residual import Incidence
from wgm_jax.mechanism import Array, padded_length
from wgm_jax.selection.noise import gumbel

# Bytes that the numbers of all pairs in all trials of a call may take.
_BYTES_IN_FLIGHT = 2**31
_BYTES_PER_PAIR = 8


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Pairs:
    """All pairs twice, in the order of users and in that of items; indices beyond are padding.

    Attributes:
        items: Item index of the data set of every row of items.
        held: Row of every pair's item, in the order of users.
        owners: Row of every pair's user, ascending.
        holders: Row of every pair's user, in the order of items.
        kinds: Row of every pair's item, ascending.
        num_users: Users that can be hit.
    """

    items: Int32[Array, " items"]
    held: Int32[Array, " pairs"]
    owners: Int32[Array, " pairs"]
    holders: Int32[Array, " pairs"]
    kinds: Int32[Array, " pairs"]
    num_users: Int32[Array, ""]

    @staticmethod
    def of(incidence: Incidence) -> Pairs:
        """Pairs of an incidence, lengths rounded up so that few programs are compiled."""
        num_items, num_users = incidence.items.size, incidence.num_users
        room = padded_length(incidence.held.size) - incidence.held.size

        def padded(values: np.ndarray) -> np.ndarray:
            # Larger than any row: what is added there is dropped, what is read is 0.
            return np.pad(values.astype(np.int32), (0, room), constant_values=2**31 - 1)

        return Pairs(
            items=np.pad(incidence.items, (0, padded_length(num_items) - num_items)),
            held=padded(incidence.held),
            owners=padded(np.repeat(np.arange(num_users), incidence.sizes)),
            holders=padded(incidence.holders),
            kinds=padded(np.repeat(np.arange(num_items), np.diff(incidence.holder_starts))),
            num_users=np.asarray(num_users, np.int32),
        )


def choose_traced(
    incidence: Incidence,
    keys: UInt32[np.ndarray, "trials 2"],
    opened: Bool[np.ndarray, "trials items"] | None,
    *,
    k: int,
    scale: float,
    stops_early: bool,
) -> Int32[np.ndarray, "trials k"]:
    """Chosen items of every trial, as `wgm_jax.selection.hitting_lazy.choose_lazily` finds them.

    Args:
        incidence: The items that any trial may choose.
        keys: One key per trial.
        opened: Which of those items each trial may choose; None for all.
        k: Items to be chosen.
        scale: Scale of the Gumbel noise on counts, 0 for none.
        stops_early: Whether to stop when every user is hit.
    """
    trials, num_items = len(keys), incidence.items.size
    chosen = np.full((trials, k), -1, np.int32)
    rounds = min(k, num_items)
    if rounds == 0:
        return chosen
    pairs = Pairs.of(incidence)
    most = max(1, _BYTES_IN_FLIGHT // (_BYTES_PER_PAIR * pairs.held.size))
    batch = min(trials, most)
    with jax.enable_x64(True):
        pairs = jax.device_put(pairs)
        for start in range(0, trials, batch):
            part = slice(start, min(start + batch, trials))
            # The last batch is filled up with trials that may choose nothing.
            count = part.stop - start
            mask = np.zeros((pairs.items.shape[0], batch), bool)
            mask[:num_items, :count] = True if opened is None else opened[part].T
            found = _choose(
                np.resize(keys[part], (batch, 2)),
                mask,
                pairs,
                np.float64(scale),
                rounds=rounds,
                user_rows=padded_length(incidence.num_users),
                stops_early=stops_early,
            )
            chosen[part, :rounds] = np.asarray(found).T[:count]
    return chosen


@partial(jax.jit, static_argnames=("rounds", "user_rows", "stops_early"))
def _choose(
    keys: UInt32[Array, "trials 2"],
    opened: Bool[Array, "items trials"],
    pairs: Pairs,
    scale: Any,
    *,
    rounds: int,
    user_rows: int,
    stops_early: bool,
) -> Int32[jax.Array, "rounds trials"]:
    """Item of every round and trial, -1 for none."""
    items, held, owners, holders, kinds = (
        jnp.asarray(part)
        for part in (pairs.items, pairs.held, pairs.owners, pairs.holders, pairs.kinds)
    )
    num_items, trials = opened.shape
    columns = jnp.arange(trials, dtype=jnp.int32)
    no_counts = jnp.zeros((num_items, trials), jnp.int32)
    nobody = jnp.zeros((user_rows, trials), bool)

    def turn(carry: tuple, number: jax.Array) -> tuple[tuple, jax.Array]:
        left, opened = carry
        present = left.at[holders].get(mode="fill", fill_value=False)
        counts = no_counts.at[kinds].add(
            present.astype(jnp.int32), mode="drop", indices_are_sorted=True
        )
        noise = gumbel(keys, number, items[:, None])
        scores = jnp.where(opened, counts.astype(jnp.float64) + scale * noise, -jnp.inf)
        best = jnp.argmax(scores, axis=0).astype(jnp.int32)
        going = jnp.any(opened, axis=0)
        if stops_early:
            going &= jnp.any(left, axis=0)
        hit = nobody.at[owners].max(
            held[:, None] == best[None, :], mode="drop", indices_are_sorted=True
        )
        opened = opened.at[best, columns].set(False)
        return (left & ~hit, opened), jnp.where(going, items[best], jnp.int32(-1))

    users = jnp.arange(user_rows, dtype=jnp.int32)[:, None] < pairs.num_users
    left = jnp.broadcast_to(users, (user_rows, trials))
    start = left, jnp.asarray(opened)
    return jax.lax.scan(turn, start, jnp.arange(rounds, dtype=jnp.uint32))[1]
