"""What the suite runs on: Zipfian data, one setting varied at a time around a main case."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from theory import Calibration, UserItems, calibrate

DELTA = 1e-5
# A grid of eps spans this range evenly on a log scale; a single point is eps = 1.
EPS_RANGE = (0.1, 3.0)


@dataclass(frozen=True)
class Case:
    """One data set at one Delta0.

    Attributes:
        num_pairs: Number of user-item pairs N.
        max_items_per_user: Contribution bound Delta0, or "max" for the largest set: no clipping.
        s: Exponent of the Zipf law that items are drawn from.
        points: Numbers of eps points to be timed, 1 among them.
    """

    num_pairs: int = 10**5
    max_items_per_user: int | str = 10
    s: float = 1.2
    points: tuple[int, ...] = (1,)

    def data(self) -> UserItems:
        """Sets of lognormal size, 8 draws on average, of items drawn from the Zipf law."""
        from wgm_jax.synthetic import SetSizes, zipf_draws

        sizes = SetSizes("lognormal", mean=8, spread=1.1, cap=1000)
        return zipf_draws(s=self.s, num_pairs=self.num_pairs, set_sizes=sizes)

    def calibration(self, data: UserItems, points: int) -> Calibration:
        """Calibration of shape (points,) at this Delta0."""
        bound = self.max_items_per_user
        eps = np.ones(1) if points == 1 else np.geomspace(*EPS_RANGE, points)
        count = data.max_set_size if isinstance(bound, str) else bound
        return calibrate(eps=eps, delta=DELTA, max_items_per_user=count)


@dataclass(frozen=True)
class Settings:
    """A suite.

    Attributes:
        name: Name of the suite.
        cases: The main case first: its compile time is that of a fresh process.
        exact_pairs: Sizes N at which the exact methods are timed.
        repeats: Rounds; every way runs once in each.
        seconds: About how long one way runs in one round.
        largest_loop: Largest N at which the loop over users is timed.
        seed: Seed of all draws.
    """

    name: str
    cases: tuple[Case, ...]
    exact_pairs: tuple[int, ...]
    repeats: int = 5
    seconds: float = 0.5
    largest_loop: int = 10**6
    seed: int = 0


MAIN = Case(points=(1, 4, 16))
DEFAULT = Settings(
    name="default",
    cases=(
        MAIN,
        Case(num_pairs=10**4),
        Case(num_pairs=10**6),
        Case(max_items_per_user=1),
        Case(max_items_per_user=100),
        Case(max_items_per_user="max"),
        Case(s=1.5),
        Case(s=2.0),
    ),
    exact_pairs=(10**4, 10**5, 10**6),
)
LARGE = dataclasses.replace(
    DEFAULT,
    name="large",
    cases=(*DEFAULT.cases, Case(num_pairs=10**7)),
    exact_pairs=(*DEFAULT.exact_pairs, 10**7),
)
QUICK = Settings(
    name="quick",
    cases=(
        Case(num_pairs=10**4, points=(1, 4)),
        Case(num_pairs=3 * 10**4),
        Case(num_pairs=10**4, max_items_per_user="max"),
    ),
    exact_pairs=(10**4,),
    seconds=0.05,
)
