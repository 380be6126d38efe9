"""Neighbouring data sets: one user more or less, written as runs of equal users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

# Items are whole numbers, and their order is the order of their names.
Items: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Run:
    """Some users in a row with the same items.

    Attributes:
        items: Their items, distinct, in the order of the user's own list.
        repeat: Number of such users.

    Example:
        >>> Run((0, 1), repeat=3)
        Run(items=(0, 1), repeat=3)
    """

    items: Items
    repeat: int = 1


@dataclass(frozen=True)
class Pair:
    """A data set, and its neighbour with one more user.

    Attributes:
        before: Users in front of the extra one.
        extra: Items of the extra user.
        after: Users behind the extra one.
        family: Which search made it.

    Example:
        >>> pair = Pair(before=(Run((0,), 19),), extra=(0, 1))
        >>> pair.num_users, pair.num_items, [len(runs) for runs in pair.data]
        (20, 2, [2, 1])
    """

    before: tuple[Run, ...]
    extra: Items
    after: tuple[Run, ...] = ()
    family: str = ""

    @property
    def data(self) -> list[tuple[Run, ...]]:
        """The data set with the extra user, and the one without, as runs."""
        extra = (Run(self.extra),) if self.extra else ()
        return [(*self.before, *extra, *self.after), (*self.before, *self.after)]

    @property
    def num_users(self) -> int:
        """Users of the larger data set."""
        return 1 + sum(run.repeat for run in (*self.before, *self.after))

    @property
    def num_items(self) -> int:
        """Distinct items of the larger data set."""
        return len({x for run in (*self.before, *self.after) for x in run.items} | {*self.extra})

    def entries(self) -> dict[str, Any]:
        """The pair for JSON."""
        return {
            "before": [[list(run.items), run.repeat] for run in self.before],
            "extra": list(self.extra),
            "after": [[list(run.items), run.repeat] for run in self.after],
            "users": self.num_users,
            "items": self.num_items,
            "family": self.family,
        }

    def describe(self, most: int = 8) -> str:
        """The pair in one line.

        Example:
            >>> Pair((Run((0,), 19), Run((0, 1))), (1, 2, 3)).describe()
            '19 x {0}, 1 x {0 1}; extra user {1 2 3}'
        """
        parts = [_describe_runs(self.before, most), f"extra user {_describe_items(self.extra)}"]
        parts += [_describe_runs(self.after, most)] if self.after else []
        return "; ".join(part for part in parts if part)


def _describe_runs(runs: tuple[Run, ...], most: int) -> str:
    shown = [f"{run.repeat} x {_describe_items(run.items)}" for run in runs[:most]]
    return ", ".join(shown + ["..."] * (len(runs) > most))


def _describe_items(items: Items) -> str:
    if len(items) > 8:
        return f"{{{items[0]} .. {items[-1]}}} ({len(items)} items)"
    return "{" + " ".join(map(str, items)) + "}"
