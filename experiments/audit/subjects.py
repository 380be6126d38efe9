"""What is audited: a mechanism's own weight step in float64, turned into exact laws.

Nothing of a mechanism is written a second time here. A mechanism of the frame
(`wgm_jax.set_union.frame`) gives weights and support of kept sets, and the release probability of
a weight; the weighted Gaussian mechanism is asked through its `base_histogram`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from experiments.audit.selection_subjects import SelectionSubject, selection_subject
from experiments.audit.set_union_subjects import (
    Data,
    Round,
    SetUnionSubject,
    Step,
    Subject,
)
from theory import UserItems, calibrate
from theory._check import check_delta, check_eps, check_max_items_per_user, invalid
from theory.budget import Budget
from theory.calibration import Calibration
from wgm_jax import registry
from wgm_jax.selection.selector import Selector
from wgm_jax.selection.trials import OnFoundDomain
from wgm_jax.set_union.bernoulli_flow import BernoulliFlow
from wgm_jax.set_union.bernoulli_flow_2 import BernoulliFlow2
from wgm_jax.set_union.frame import FramedMechanism
from wgm_jax.set_union.kept_sets import KeptSets
from wgm_jax.set_union.noise import Noise, exact_probabilities
from wgm_jax.wgm import WeightedGaussian, base_histogram

_BATCH = 32
# A mechanism without a threshold is probed at weights up to the first number; a chance of a miss
# below the second one is none.
_MOST_WEIGHT, _RARE = 2000.0, 1e-9


def subject(
    mechanism: str | Any,
    *,
    eps: float,
    delta: float,
    max_items_per_user: int,
    method: str = "split",
    k: int = 2,
    name: str | None = None,
) -> Subject:
    """A mechanism of the registry, one of the frame or a selection, at a claimed (eps, delta).

    A selection that is given itself is audited on a public domain and with the whole budget, or,
    within `OnFoundDomain`, behind the weighted Gaussian mechanism and with half of it.

    Args:
        mechanism: Name from `wgm_jax.mechanisms`, or the mechanism itself.
        eps: Claimed eps.
        delta: Claimed delta.
        max_items_per_user: Delta0.
        method: Calibration method.
        k: Items to select, for selections.
        name: What to call a mechanism that is given itself.

    Returns:
        A `Subject`.

    Raises:
        InvalidInput: An argument is out of range, or the mechanism has no exact law here.

    Example:
        >>> from experiments.audit import Run
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
    if isinstance(mechanism, OnFoundDomain | Selector):
        claim = {"eps": eps, "delta": delta, "max_items_per_user": max_items_per_user}
        return _selection(label, mechanism, private, method=method, k=k, **claim)
    if isinstance(mechanism, WeightedGaussian):
        return _weighted_gaussian(label, calibration, private)
    if isinstance(mechanism, BernoulliFlow):
        from experiments.audit.flow_subject import flow_subject

        return flow_subject(label, mechanism, calibration, private)
    if isinstance(mechanism, BernoulliFlow2):
        from experiments.audit.two_round_subject import two_round_subject

        return two_round_subject(label, mechanism, calibration, private)
    if not isinstance(mechanism, FramedMechanism):
        invalid("mechanism", label, "has no exact law: it is no mechanism of the frame")
    return _framed(label, mechanism, calibration, private)


def _selection(
    label: str,
    mechanism: OnFoundDomain | Selector,
    private: bool,
    *,
    eps: float,
    delta: float,
    max_items_per_user: int,
    method: str,
    k: int,
) -> SelectionSubject:
    budget = Budget(eps, delta)
    if isinstance(mechanism, OnFoundDomain):
        first = budget.part(0)
        calibration = calibrate(
            eps=first[0], delta=first[1], max_items_per_user=max_items_per_user, method=method
        )
        finder, selector = _weighted_gaussian("wgm", calibration, True), mechanism.selector
    else:
        finder, selector = None, mechanism
    return selection_subject(
        selector,
        name=label,
        private=private,
        budget=budget,
        k=k,
        max_items_per_user=max_items_per_user,
        finder=finder,
    )


def _claims(calibration: Calibration) -> dict[str, Any]:
    return {
        "eps": float(calibration.eps),
        "delta": float(calibration.delta),
        "max_items_per_user": int(check_max_items_per_user(calibration.max_items_per_user)),
    }


def _weighted_gaussian(name: str, calibration: Calibration, private: bool) -> SetUnionSubject:
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

    return SetUnionSubject(
        name=name,
        private=private,
        clips=True,
        sequential=False,
        shuffles=False,
        rounds=(Round(float(scale), float(threshold), math.inf),),
        step=step,
        **_claims(calibration),
    )


@functools.lru_cache(maxsize=64)
def _weigher(mechanism: FramedMechanism, num_items: int) -> Any:
    """Weights and support of a batch of rows, compiled once for all claims of a mechanism."""

    def one(rows: Any, now: Any) -> tuple[Any, Any]:
        found = mechanism.weigh(KeptSets.from_rows(rows, num_items), now)
        return found.weights, found.support

    return jax.jit(jax.vmap(one, in_axes=(0, None)))


def _framed(
    name: str, mechanism: FramedMechanism, calibration: Calibration, private: bool
) -> Subject:
    """A mechanism of the frame, through `weigh` and `probabilities`."""
    parameters = mechanism.parameters(calibration)
    rounds = [parameters.round(index) for index in range(mechanism.num_rounds)]

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
                    weights, support = map(np.asarray, _weigher(mechanism, padded)(rows, now))
                if weights.dtype != np.float64:
                    raise TypeError(f"{name} weighs in {weights.dtype}, not in float64")
                hit, miss = mechanism.probabilities(weights, now)
                for place, i in enumerate(part):
                    columns = (weights, support, hit, miss)
                    w, s, h, m = (c[place, :num_items] for c in columns)
                    found[i] = (w, s, h, m)
        return [step for step in found if step is not None]

    return SetUnionSubject(
        name=name,
        private=private,
        clips=mechanism.clips,
        sequential=mechanism.sequential,
        shuffles=getattr(mechanism, "order", "stored") == "random",
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
