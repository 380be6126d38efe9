"""Who leaves least, and how far one mechanism is from the best of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from experiments.comparison.competitors import Competitor
from experiments.comparison.run import Comparison, Entry, Estimate, above_by


@dataclass(frozen=True)
class Distance:
    """How far one mechanism is above another.

    Attributes:
        entry: The mechanism.
        other: What it is compared with.
        above: By which share its missing mass is above the other's; negative if below.
    """

    entry: Entry
    other: Entry
    above: Estimate


def least(
    comparison: Comparison,
    eps: float,
    among: Callable[[Competitor], bool],
    max_items_per_user: int | None = None,
) -> Entry | None:
    """The entry that leaves least at one eps, at one Delta0 or over all; None if there is none.

    Args:
        comparison: The comparison.
        eps: Privacy parameter.
        among: Whether a mechanism takes part.
        max_items_per_user: Delta0; None for all that were compared.

    Returns:
        The entry, or None.

    Example:
        >>> from experiments.comparison import compare, is_private, least
        >>> from theory import UserItems
        >>> data = UserItems.from_sets([{0, 1}] * 40 + [{1}] * 10)
        >>> found = compare(data, eps=[1.0], delta=1e-5, max_items_per_user=[1, 2],
        ...                 mechanisms=["wgm"])
        >>> entry = least(found, 1.0, is_private)
        >>> entry.max_items_per_user, round(entry.missing_mass.mean, 3)
        (2, 0.002)
    """
    found = [
        entry
        for entry in comparison.entries
        if entry.eps == eps
        and among(entry.competitor)
        and max_items_per_user in (None, entry.max_items_per_user)
    ]
    return min(found, key=lambda entry: entry.missing_mass.mean, default=None)


def distances(
    comparison: Comparison, label: str, eps: float, among: Callable[[Competitor], bool]
) -> list[Distance]:
    """One mechanism against the best of others, at every Delta0; without any, no distance.

    Args:
        comparison: The comparison.
        label: The mechanism.
        eps: Privacy parameter.
        among: Whether a mechanism is one of the others.

    Returns:
        One `Distance` per Delta0, in the order of the comparison.

    Example:
        >>> from experiments.comparison import compare, distances
        >>> from theory import UserItems
        >>> data = UserItems.from_sets([{0}] * 20 + [{1}] * 10)
        >>> found = compare(data, eps=[1.0], delta=1e-5, max_items_per_user=[1],
        ...                 mechanisms=["wgm", "optimal-selection"])
        >>> [at] = distances(found, "wgm", 1.0, lambda other: other.name == "optimal-selection")
        >>> round(at.above.mean, 3)
        0.855
    """
    found = []
    for entry in comparison.of(label, eps):
        other = least(comparison, eps, among, entry.max_items_per_user)
        if other is not None:
            found.append(Distance(entry, other, above_by(entry.missing_mass, other.missing_mass)))
    return found


def is_private(competitor: Competitor) -> bool:
    """Claims (eps, delta)-DP.

    Args:
        competitor: One of the mechanisms compared.

    Returns:
        Whether it does.

    Example:
        >>> from experiments.comparison import competitors, is_private
        >>> [is_private(c) for c in competitors(["wgm", "policy-greedy-published"])]
        [True, False]
    """
    return competitor.private


def is_private_policy(competitor: Competitor) -> bool:
    """Claims (eps, delta)-DP, and users act one after the other.

    Args:
        competitor: One of the mechanisms compared.

    Returns:
        Whether it does, and they do.

    Example:
        >>> from experiments.comparison import competitors, is_private_policy
        >>> [is_private_policy(c) for c in competitors(["wgm", "policy-laplace"])]
        [False, True]
    """
    return competitor.private and competitor.sequential
