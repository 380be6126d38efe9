"""The users' kept items as flat arrays: what every weight step reads."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Int32, Int64, Num

from theory import UserItems
from wgm_jax.mechanism import Array, padded_length

__all__ = ["KeptSets"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KeptSets:
    """Users one after another, each with its pairs in the order of its own list.

    Padding has item `num_items` and is not kept; the last user is followed by at least `longest`
    pairs of padding, so that a window of that length fits from every start.

    Attributes:
        items: Item of every pair.
        users: User of every pair.
        kept: Whether the pair is kept; the others do not exist for a weight step.
        starts: Position of every user's first pair.
        sizes: Number of pairs of every user, kept or not; 0 for users that are padding.
        num_items: Number of items, padding included; static.
        longest: At least the largest entry of `sizes`; static.

    Example:
        >>> sets = KeptSets.from_data(UserItems.from_sets([("a", "b"), ("a",)]))
        >>> sets.items[:3].tolist(), sets.users[:3].tolist(), sets.sizes[:2].tolist()
        ([0, 1, 0], [0, 0, 1], [2, 1])
    """

    items: Int32[Array, " pairs"]
    users: Int32[Array, " pairs"]
    kept: Bool[Array, "*batch pairs"]
    starts: Int32[Array, " users"]
    sizes: Int32[Array, " users"]
    num_items: int = dataclasses.field(metadata={"static": True})
    longest: int = dataclasses.field(metadata={"static": True})

    @staticmethod
    def from_rows(rows: Int32[Array, "users slots"], num_items: int) -> KeptSets:
        """Kept sets from one row of items per user; entries of `num_items` or more are padding.

        Slots are the user's list, in its order. May be traced.

        Example:
            >>> sets = KeptSets.from_rows(np.array([[0, 1], [1, 9]], np.int32), 2)
            >>> sets.items[:4].tolist(), sets.kept[:4].tolist()
            ([0, 1, 1, 2], [True, True, True, False])
        """
        users, slots = rows.shape
        kept = (rows >= 0) & (rows < num_items)
        items = jnp.where(kept, rows, jnp.int32(num_items)).ravel()
        owners = np.repeat(np.arange(users, dtype=np.int32), slots)
        return KeptSets(
            items=jnp.pad(items, (0, slots), constant_values=num_items),
            users=np.pad(owners, (0, slots), constant_values=users),
            kept=jnp.pad(kept.ravel(), (0, slots)),
            starts=np.arange(users, dtype=np.int32) * np.int32(slots),
            sizes=np.full(users, slots, np.int32),
            num_items=num_items,
            longest=slots,
        )

    @staticmethod
    def from_data(data: UserItems, ranks: Int64[np.ndarray, " items"] | None = None) -> KeptSets:
        """All pairs of a data set, kept; lengths rounded up.

        Users in stored order, and a user's pairs too, or by ascending rank of their item.
        """
        users = padded_length(data.num_users)
        longest = padded_length(data.max_set_size)
        num_items = padded_length(data.num_items)
        tail = padded_length(data.num_pairs) + longest - data.num_pairs
        owners = np.repeat(np.arange(data.num_users, dtype=np.int32), data.set_sizes)
        idle = users - data.num_users
        items = data.items if ranks is None else data.items[np.lexsort((ranks[data.items], owners))]
        return KeptSets(
            items=np.pad(items, (0, tail), constant_values=num_items),
            users=np.pad(owners, (0, tail), constant_values=users),
            kept=np.pad(np.ones(data.num_pairs, bool), (0, tail)),
            starts=np.pad(data.offsets[:-1], (0, idle)).astype(np.int32),
            sizes=np.pad(data.set_sizes, (0, idle)).astype(np.int32),
            num_items=num_items,
            longest=longest,
        )

    @property
    def counts(self) -> Int32[jax.Array, " users"]:
        """Number of kept items of every user."""
        empty = jnp.zeros(self.starts.shape[0], jnp.int32)
        ones = jnp.asarray(self.kept).astype(jnp.int32)
        return empty.at[self.users].add(ones, mode="drop", indices_are_sorted=True)

    @property
    def support(self) -> Bool[jax.Array, " num_items"]:
        """Whether an item is in some kept set."""
        empty = jnp.zeros(self.num_items, bool)
        return empty.at[self.items].max(jnp.asarray(self.kept), mode="drop")

    def to_pairs(self, values: Num[Array, " users"]) -> jax.Array:
        """Every user's value at its pairs, (pairs,)."""
        return (
            jnp.asarray(values)
            .at[self.users]
            .get(mode="fill", fill_value=0, indices_are_sorted=True)
        )

    def add_up(self, values: Num[Array, " pairs"]) -> jax.Array:
        """Sum over kept pairs of a value per pair, (num_items,) of the dtype of `values`."""
        values = jnp.where(self.kept, values, jnp.zeros((), values.dtype))
        return jnp.zeros(self.num_items, values.dtype).at[self.items].add(values, mode="drop")

    def by_user(self, values: Num[Array, " pairs"]) -> jax.Array:
        """Sum over kept pairs of a value per pair, (users,) of the dtype of `values`."""
        values = jnp.where(self.kept, values, jnp.zeros((), values.dtype))
        empty = jnp.zeros(self.starts.shape[0], values.dtype)
        return empty.at[self.users].add(values, mode="drop", indices_are_sorted=True)
