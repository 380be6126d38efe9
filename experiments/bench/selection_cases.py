"""What the selection suite runs on: the data of the main suite, one N and k at a time."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from experiments.bench.cases import Case

EPS, MAX_ITEMS_PER_USER = 1.0, 100


@dataclass(frozen=True)
class SelectionCase:
    """One data set at one k; eps = 1, delta = 1e-5 and Delta0 = 100 in all.

    Attributes:
        num_pairs: Number of user-item pairs N of the Zipfian data of `Case`.
        k: Items to select.
        s: Exponent of its Zipf law: the smaller, the more items matter.
    """

    num_pairs: int = 10**6
    k: int = 200
    s: float = 1.2

    @property
    def source(self) -> Case:
        """Where the data come from."""
        return Case(num_pairs=self.num_pairs, max_items_per_user=MAX_ITEMS_PER_USER, s=self.s)


@dataclass(frozen=True)
class SelectionSettings:
    """A suite.

    Attributes:
        name: Name of the suite.
        cases: The main case first.
        trials: Trials of the library per round, a tenth of them for hitting sets of all items,
            whose noise takes long.
        peer_trials: Trials of plain NumPy per round. All times are scaled to `trials`.
        repeats: Rounds; every way runs once in each.
        largest_sets: Largest N at which Python's sets are timed, one trial a round.
        seed: Seed of all draws.
    """

    name: str
    cases: tuple[SelectionCase, ...]
    trials: int = 100
    peer_trials: int = 5
    repeats: int = 5
    largest_sets: int = 10**6
    seed: int = 0


SELECTION = SelectionSettings(
    name="selection",
    cases=(
        SelectionCase(),
        SelectionCase(k=20),
        SelectionCase(s=1.0),
        SelectionCase(num_pairs=10**5),
    ),
)
SELECTION_LARGE = dataclasses.replace(
    SELECTION,
    name="selection, large",
    cases=(*SELECTION.cases, SelectionCase(num_pairs=10**7)),
)
SELECTION_QUICK = SelectionSettings(
    name="selection, quick",
    cases=(SelectionCase(num_pairs=10**5, k=50), SelectionCase(num_pairs=10**4, k=20)),
    peer_trials=3,
)
