"""What is audited: a mechanism's own weight step in float64, turned into exact laws.

Nothing of a mechanism is written a second time here. A mechanism of the frame
(`wgm_jax.set_union.frame`) gives weights and support of kept sets, and the release probability of
a weight; the weighted Gaussian mechanism is asked through its `base_histogram`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax
import numpy as np

from experiments.audit.laws import Law, SetLaw, TableLaw
from experiments.audit.pairs import Items, Run
from theory import UserItems, calibrate
from theory._check import check_delta, check_eps, check_max_items_per_user, invalid
from theory.calibration import Calibration
from wgm_jax import registry
from wgm_jax.set_union.frame import FramedMechanism
from wgm_jax.set_union.kept_sets import KeptSets
from wgm_jax.set_union.noise import Noise, exact_probabilities
from wgm_jax.wgm import WeightedGaussian, base_histogram

# A data set as runs of equal users.
Data: TypeAlias = tuple[Run, ...]
# Weights, support, P(released), P(missed) of one kept data set, each (num_items,).
Step: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

MOST_COMPONENTS = 500
_BATCH = 32
# A mechanism without a threshold is probed at weights up to the first number; a chance of a miss
# below the second one is none.
_MOST_WEIGHT, _RARE = 2000.0, 1e-9


class NoExactLaw(Exception):
    """The law of this data set is too large to enumerate."""


@dataclass(frozen=True)
class Round:
    """Where one round decides: heights that a search should look at.

    Attributes:
        scale: Scale of the noise.
        threshold: Threshold.
        cap: Weight from which a policy adds nothing; infinite if none.
    """

    scale: float
    threshold: float
    cap: float


@dataclass(frozen=True, eq=False)
class Subject:
    """A mechanism at its claim, ready to be asked for laws.

    Attributes:
        name: Name of the mechanism.
        eps: Claimed eps.
        delta: Claimed delta.
        max_items_per_user: Delta0 of the claim.
        private: Whether the mechanism claims to keep it.
        clips: Whether users are subsampled to Delta0 items.
        sequential: Whether the order of the users matters.
        rounds: What decides in each round.
        step: (kept data sets, num_items, round) -> one `Step` per data set.
    """

    name: str
    eps: float
    delta: float
    max_items_per_user: int
    private: bool
    clips: bool
    sequential: bool
    rounds: tuple[Round, ...]
    step: Callable[[Sequence[Data], int, int], list[Step]] = field(repr=False)

    def laws(self, data_sets: Sequence[Data]) -> list[Law]:
        """Exact law of the released set on every data set; items are whole numbers from 0.

        Raises:
            NoExactLaw: Too many subsamples, or too many items for several rounds.
        """
        num_items = 1 + max(
            (max(run.items, default=0) for data in data_sets for run in data), default=0
        )
        if len(self.rounds) > 1:
            return [self._law_of_rounds(data, num_items) for data in data_sets]
        kept = [self.kept_sets(data) for data in data_sets]
        steps = iter(self.step([k for sets in kept for k in sets], num_items, 0))
        return [
            _mixture(list(itertools.islice(steps, len(sets))), range(num_items)) for sets in kept
        ]

    def kept_sets(self, data: Data) -> list[Data]:
        """All equally likely outcomes of the subsampling."""
        bound = self.max_items_per_user
        if not self.clips or all(len(run.items) <= bound for run in data):
            return [data]
        sizes = ((math.comb(len(run.items), bound), run.repeat) for run in data)
        count = math.prod(max(1, choices) ** repeat for choices, repeat in sizes)
        if count > MOST_COMPONENTS:
            raise NoExactLaw(f"{count} subsamples")
        choices: list[list[Run]] = []
        for run in data:
            if len(run.items) <= bound:
                choices.append([run])
            else:
                subsets = [Run(kept) for kept in itertools.combinations(run.items, bound)]
                choices += [subsets] * run.repeat
        return [*itertools.product(*choices)]

    def _law_of_rounds(self, data: Data, num_items: int, most_items: int = 10) -> TableLaw:
        """Law of the union of what the rounds release, by what is released so far."""
        present = sorted({x for run in data for x in run.items})
        if len(present) > most_items:
            raise NoExactLaw(f"{len(present)} items in {len(self.rounds)} rounds")
        bits = {x: 1 << i for i, x in enumerate(present)}
        masses = np.zeros(2 ** len(present))
        masses[0] = 1.0
        for index in range(len(self.rounds)):
            states = np.flatnonzero(masses).tolist()
            kept = [self.kept_sets(_without(data, bits, state)) for state in states]
            steps = iter(self.step([k for sets in kept for k in sets], num_items, index))
            after = np.zeros_like(masses)
            for state, sets in zip(states, kept, strict=True):
                left = [x for x in present if not state & bits[x]]
                law = _mixture(list(itertools.islice(steps, len(sets))), left, num_items)
                place, outcomes = np.array([state]), law.weights[:, None]
                for i, x in enumerate(left):
                    place = np.concatenate((place, place | bits[x]))
                    outcomes = np.concatenate(
                        (outcomes * law.missed[:, i, None], outcomes * law.released[:, i, None]), 1
                    )
                after[place] += masses[state] * outcomes.sum(axis=0)
            masses = after
        names: list[Hashable] = [
            frozenset(x for x in present if index & bits[x]) for index in range(masses.size)
        ]
        return TableLaw(dict(zip(names, masses.tolist(), strict=True)))


def subject(
    mechanism: str | Any,
    *,
    eps: float,
    delta: float,
    max_items_per_user: int,
    method: str = "split",
    name: str | None = None,
) -> Subject:
    """A mechanism of the registry, or one of the frame, at a claimed (eps, delta).

    Args:
        mechanism: Name from `wgm_jax.mechanisms`, or the mechanism itself.
        eps: Claimed eps.
        delta: Claimed delta.
        max_items_per_user: Delta0.
        method: Calibration method.
        name: What to call a mechanism that is given itself.

    Returns:
        A `Subject`.

    Raises:
        InvalidInput: An argument is out of range, or the mechanism has no exact law here.

    Example:
        >>> wgm = subject("wgm", eps=1.0, delta=1e-5, max_items_per_user=2)
        >>> law = wgm.laws([(Run((0,), 18), Run((0, 1)))])[0]
        >>> law.released.round(4)
        array([[0.5277, 0.    ]])
    """
    check_eps(eps)
    check_delta(delta)
    calibration = calibrate(
        eps=eps, delta=delta, max_items_per_user=max_items_per_user, method=method
    )
    private = True
    if isinstance(mechanism, str):
        name, known = mechanism, {info.name: info for info in registry.mechanisms()}
        mechanism = registry.get(mechanism)
        private = known[name].private
    label = name or type(mechanism).__name__
    if isinstance(mechanism, WeightedGaussian):
        return _weighted_gaussian(label, calibration, private)
    if not isinstance(mechanism, FramedMechanism):
        invalid("mechanism", label, "has no exact law: it is no mechanism of the frame")
    return _framed(label, mechanism, calibration, private)


def _claims(calibration: Calibration) -> dict[str, Any]:
    return {
        "eps": float(calibration.eps),
        "delta": float(calibration.delta),
        "max_items_per_user": int(check_max_items_per_user(calibration.max_items_per_user)),
    }


def _weighted_gaussian(name: str, calibration: Calibration, private: bool) -> Subject:
    """The weighted Gaussian mechanism, through its own histogram."""
    scale, threshold = np.asarray(calibration.sigma), np.asarray(calibration.threshold)

    def step(kept: Sequence[Data], num_items: int, _round: int) -> list[Step]:
        return [_weigh(data, num_items) for data in kept]

    def _weigh(data: Data, num_items: int) -> Step:
        users = [run.items for run in data for _ in range(run.repeat)]
        flat = np.asarray([x for items in users for x in items], np.int32)
        offsets = np.cumsum([0, *(len(items) for items in users)], dtype=np.int64)
        weights = np.zeros(num_items)
        if flat.size:
            kept = UserItems(items=flat, offsets=offsets)
            histogram = base_histogram(kept, max(1, int(kept.max_set_size)))
            weights[: histogram.size] = histogram
        hit, miss = exact_probabilities(Noise.GAUSSIAN, weights, scale, threshold)
        return weights, weights > 0, hit, miss

    return Subject(
        name=name,
        private=private,
        clips=True,
        sequential=False,
        rounds=(Round(float(scale), float(threshold), math.inf),),
        step=step,
        **_claims(calibration),
    )


def _framed(
    name: str, mechanism: FramedMechanism, calibration: Calibration, private: bool
) -> Subject:
    """A mechanism of the frame, through `weigh` and `probabilities`."""
    parameters = mechanism.parameters(calibration)
    rounds = [parameters.round(index) for index in range(mechanism.num_rounds)]
    compiled: dict[int, Any] = {}

    def weigh(num_items: int) -> Any:
        if num_items not in compiled:

            def one(rows: Any, now: Any) -> tuple[Any, Any]:
                found = mechanism.weigh(KeptSets.from_rows(rows, num_items), now)
                return found.weights, found.support

            compiled[num_items] = jax.jit(jax.vmap(one, in_axes=(0, None)))
        return compiled[num_items]

    def step(kept: Sequence[Data], num_items: int, index: int) -> list[Step]:
        padded, now = _bucket(num_items), rounds[index]
        shapes = [_shape(data) for data in kept]
        found: list[Step | None] = [None] * len(kept)
        for shape in sorted(set(shapes)):
            members = [i for i, s in enumerate(shapes) if s == shape]
            for start in range(0, len(members), _BATCH):
                part = members[start : start + _BATCH]
                rows = np.full((_BATCH, *shape), padded, np.int32)
                for place, i in enumerate(part):
                    _fill(rows[place], kept[i])
                with jax.enable_x64(True):
                    weights, support = map(np.asarray, weigh(padded)(rows, now))
                if weights.dtype != np.float64:
                    raise TypeError(f"{name} weighs in {weights.dtype}, not in float64")
                hit, miss = mechanism.probabilities(weights, now)
                for place, i in enumerate(part):
                    columns = (weights, support, hit, miss)
                    w, s, h, m = (c[place, :num_items] for c in columns)
                    found[i] = (w, s, h, m)
        return [step for step in found if step is not None]

    return Subject(
        name=name,
        private=private,
        clips=mechanism.clips,
        sequential=mechanism.sequential,
        rounds=tuple(_round(mechanism, now) for now in rounds),
        step=step,
        **_claims(calibration),
    )


def _round(mechanism: FramedMechanism, now: Any) -> Round:
    """Where a round decides; by its probabilities where it has no threshold."""
    if hasattr(now, "threshold"):
        scale, threshold, cap = (
            float(np.ravel(getattr(now, name, math.inf))[0])
            for name in ("scale", "threshold", "cap")
        )
        return Round(scale, threshold, cap)
    hit, miss = mechanism.probabilities(np.arange(_MOST_WEIGHT), now)
    half, last = int(np.sum(hit < 0.5)), int(np.sum(miss > _RARE))
    return Round(max(1.0, (last - half) / 4), float(half), math.inf)


def _bucket(count: int) -> int:
    """Lengths rounded up to 4, 16, 64, ...: few shapes, few compilations."""
    size = 4
    while size < count:
        size *= 4
    return size


def _shape(data: Data) -> tuple[int, int]:
    slots = max((len(run.items) for run in data), default=1)
    return _bucket(sum(run.repeat for run in data)), _bucket(slots)


def _fill(rows: np.ndarray, data: Data) -> None:
    """Write a data set into padded rows."""
    user = 0
    for run in data:
        rows[user : user + run.repeat, : len(run.items)] = run.items
        user += run.repeat


def _mixture(steps: list[Step], items: Sequence[int], _: int = 0) -> SetLaw:
    """Components of equal weight, restricted to some items."""
    chosen = list(items)
    support, hit, miss = (np.stack([step[i] for step in steps])[:, chosen] for i in (1, 2, 3))
    return SetLaw(
        items=tuple(chosen),
        weights=np.full(len(steps), 1 / len(steps)),
        released=np.where(support, hit, 0.0),
        missed=np.where(support, miss, 1.0),
    )


def _without(data: Data, bits: dict[int, int], state: int) -> Data:
    """The data after deleting released items; users without items are dropped."""
    left = ((tuple(x for x in run.items if not state & bits[x]), run.repeat) for run in data)
    kept: list[tuple[Items, int]] = [(items, repeat) for items, repeat in left if items]
    return tuple(Run(items, repeat) for items, repeat in kept)
