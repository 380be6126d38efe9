"""WGM and peeling, WGM and user peeling, on one run of the grid: certificates and trials."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from theory import (
    Bound,
    Budget,
    Calibration,
    MissProbabilities,
    Profile,
    UserItems,
    calibrate,
    hits_upper_bound,
    lemma_c7,
    miss_probabilities,
    opt_upper_bound,
    peeling_loss_bound,
    peeling_scale,
    user_peeling_scale,
)
from theory.top_k_bounds import top_sum

if TYPE_CHECKING:
    from experiments.cells import Run
    from wgm_jax.selection.record import SelectionTrials

# Numbers of items selected.
SIZES = (10, 100)
# Enough to confirm 5 % at a family-wise level of 1 % over a hundred cells.
_TRIALS = 200
# Trials of hitting sets on larger data take longer than all the rest of a verification.
_MOST_PAIRS = 200_000


@dataclass(frozen=True)
class Point:
    """One eps and k of the grid.

    Attributes:
        cell: Settings.
        index: Index of eps in the selection's own grid.
        eps: Privacy parameter of the whole algorithm.
        k: Items selected.
        place: Index of k in `SIZES`.
    """

    cell: dict[str, Any]
    index: int
    eps: float
    k: int
    place: int


@dataclass(frozen=True, eq=False)
class SelectionRun:
    """Half of the budget for WGM, half for a selection, at every positive eps of a run.

    Attributes:
        run: The run; its calibration, which has the whole budget, is not used.
    """

    run: Run

    @property
    def profile(self) -> Profile:
        """Sufficient statistics."""
        return self.run.profile

    @property
    def users(self) -> UserItems | None:
        """The users' items, where they are known."""
        data = self.run.case.data
        return data if isinstance(data, UserItems) else None

    @cached_property
    def budgets(self) -> list[Budget]:
        """Budgets of the whole, one per positive eps."""
        noise = self.run.calibration
        return [
            Budget(float(eps), float(delta))
            for eps, delta in zip(noise.eps, noise.delta, strict=True)
            if eps > 0
        ]

    @cached_property
    def points(self) -> list[Point]:
        """All eps and k."""
        return [
            Point({**self.run.cell, "eps": budget.eps, "k": k}, index, budget.eps, k, place)
            for index, budget in enumerate(self.budgets)
            for place, k in enumerate(SIZES)
        ]

    @cached_property
    def calibration(self) -> Calibration:
        """Noise and threshold of the domain stage."""
        parts = np.array([budget.part(0) for budget in self.budgets])
        return calibrate(
            eps=parts[:, 0],
            delta=parts[:, 1],
            max_items_per_user=self.profile.max_items_per_user,
            method=self.run.calibration.method,
        )

    @cached_property
    def miss(self) -> MissProbabilities | None:
        """Exact miss probabilities of the domain stage [E1]; None for bare frequencies."""
        if not self.budgets or self.run.mechanism != "wgm" or self.profile.classes is None:
            return None
        return miss_probabilities(self.profile, self.calibration)

    def peeling_scale(self, point: Point) -> float:
        """Noise of peeling [K1]."""
        eps, delta = self.budgets[point.index].part(1)
        return float(peeling_scale(eps=eps, delta=delta, k=point.k))

    def user_peeling_scale(self, point: Point) -> float:
        """Noise of user peeling, the smaller of [K1] and [K1h]."""
        eps, delta = self.budgets[point.index].part(1)
        return float(user_peeling_scale(eps=eps, delta=delta, k=point.k))

    def top_pairs(self, k: int) -> float:
        """Pairs of the k most frequent items."""
        return float(top_sum(self.profile, k))

    @cached_property
    def optimum(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limit of Opt(W, k), one entry per size: greedy, and what is proved."""
        assert self.users is not None
        return _optimum(self.users)

    def most_hits(self, point: Point) -> Bound:
        """[L5] for the whole budget."""
        assert self.users is not None
        levels = tuple(budget.eps for budget in self.budgets)
        return _most_hits(self.users, point.k, levels, self.budgets[0].delta).at(point.index)

    # ---- without trials

    def sure_frequency(self, point: Point, beta: float) -> int:
        """Least v such that an item of N(x) > v is outside the domain with probability <= beta.

        By the union bound over exact miss probabilities: at most [U1].
        """
        miss = self.miss
        assert miss is not None
        expected = np.cumsum(miss.multiplicity * miss.miss[point.index])
        beyond = np.flatnonzero(expected > beta)
        return int(miss.frequencies[beyond[0]]) if beyond.size else 0

    def certified_loss(self, point: Point) -> float:
        """Pairs of the top k that WGM and peeling lose at most, with probability 1 - beta."""
        half = self.run.beta / 2
        scale = self.peeling_scale(point)
        lost = float(top_sum(self.profile, point.k, float(self.sure_frequency(point, half))))
        picked = peeling_loss_bound(
            self.profile.num_items, k=point.k, scale=scale, beta=half, form="sharp"
        )
        return lost + float(picked.value)

    def certified_hits(self, point: Point) -> float:
        """Users that WGM and user peeling hit at least, with probability 1 - beta."""
        half = self.run.beta / 2
        lost = float(top_sum(self.profile, point.k, float(self.sure_frequency(point, half))))
        best = max(float(self.optimum[0][point.place]) - lost, 0.0)
        scale = self.user_peeling_scale(point)
        made = lemma_c7(
            best, self.profile.num_items, k=point.k, scale=scale, beta=half, form="sharp"
        )
        return float(made.value)

    def released_at_most(self, point: Point) -> float:
        """Most pairs that any k items of the domain have on average [L4], by exact marginals."""
        miss = self.miss
        assert miss is not None
        capacity = miss.multiplicity * miss.hit[point.index]
        before = np.concatenate(([0.0], np.cumsum(capacity)[:-1]))
        return float(np.clip(point.k - before, 0.0, capacity) @ miss.frequencies)

    def hits_at_most(self, point: Point) -> float:
        """Users that hold an item of the domain on average, at most, by exact marginals."""
        miss, data = self.miss, self.users
        assert miss is not None and data is not None
        classes = data.item_classes.class_of_item
        chance = miss.hit[point.index][classes]
        each = np.add.reduceat(chance[data.items], data.offsets[:-1])
        return min(float(np.minimum(each, 1.0).sum()), self.released_at_most(point))

    # ---- with trials

    @property
    def simulated(self) -> bool:
        """Whether trials are made: where nobody is clipped, on data that are not too large."""
        small = self.users is not None and self.users.num_pairs <= _MOST_PAIRS
        return self.run.simulated is not None and small and not self.profile.clipped

    @cached_property
    def trials(self) -> tuple[SelectionTrials, SelectionTrials]:
        """Trials of peeling and of user peeling, on the same domains."""
        from wgm_jax.selection.hitting import UserPeeling
        from wgm_jax.selection.top_k import Peeling
        from wgm_jax.selection.trials import OnFoundDomain, run_selections

        assert self.users is not None
        made = self.run.trials
        found = run_selections(
            self.users,
            [OnFoundDomain(Peeling()), OnFoundDomain(UserPeeling())],
            eps=[budget.eps for budget in self.budgets],
            delta=self.budgets[0].delta,
            k=SIZES,
            max_items_per_user=self.profile.max_items_per_user,
            num_trials=min(made.num_trials, _TRIALS),
            seed=made.seed,
            method=self.run.calibration.method,
        )
        return found[0], found[1]

    def lost(self, point: Point) -> np.ndarray:
        """(trials,) pairs of the top k that were lost."""
        missed = self.trials[0].top_k_missing_mass[:, point.index, point.place]
        return missed * self.profile.num_pairs

    def hits(self, point: Point) -> np.ndarray:
        """(trials,) users hit."""
        return self.trials[1].users_hit[:, point.index, point.place].astype(np.float64)


# Neither depends on Delta0, and the runs of one data set follow each other.
@lru_cache(maxsize=1)
def _optimum(data: UserItems) -> tuple[np.ndarray, np.ndarray]:
    made = opt_upper_bound(data, SIZES)
    return made.details["greedy_hits"], made.value


@lru_cache(maxsize=len(SIZES))
def _most_hits(data: UserItems, k: int, eps: tuple[float, ...], delta: float) -> Bound:
    return hits_upper_bound(data, k=k, eps=eps, delta=delta)


def known_points(run: Run, *, with_users: bool) -> Iterator[tuple[SelectionRun, Point]]:
    """Points of a run about which something exact is known, and whose users are if asked for."""
    selection = run.selection
    if selection.miss is None or (with_users and selection.users is None):
        return
    for point in selection.points:
        yield selection, point
