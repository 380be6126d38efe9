"""Items numbered by name, so that the order of a user's list says nothing about other users."""

from __future__ import annotations

import dataclasses

import numpy as np

from theory import UserItems


def by_name(data: UserItems) -> UserItems:
    """The same sets with items numbered in the order of their labels as text.

    Loading numbers items in order of first appearance, which one user more can change. A mechanism
    that goes by the order of a user's list (Policy Greedy) is private only if that order is the
    user's own or public. Items without labels keep their numbers.

    Example:
        >>> data = by_name(UserItems.from_sets([["tea", "milk"], ["milk"]]))
        >>> data.item_labels, data.items.tolist()
        (['milk', 'tea'], [0, 1, 0])
    """
    if data.item_labels is None:
        return data
    ranks = data.name_ranks
    owners = np.repeat(np.arange(data.num_users), data.set_sizes) * data.num_items
    labels = list(data.item_labels)
    return dataclasses.replace(
        data,
        items=(np.sort(owners + ranks[data.items]) - owners).astype(np.int32),
        item_labels=[labels[i] for i in np.argsort(ranks).tolist()],
    )
