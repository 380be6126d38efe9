"""Bernoulli flow selection as a subject: its own release probabilities, asked for kept sets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from experiments.audit.set_union_subjects import Data, Round, SetUnionSubject, Step
from theory import UserItems
from theory.calibration import Calibration
from wgm_jax.set_union.bernoulli_flow import BernoulliFlow


def flow_subject(
    name: str, mechanism: BernoulliFlow, calibration: Calibration, private: bool
) -> SetUnionSubject:
    """The mechanism at a claimed (eps, delta), through its `probabilities`.

    Args:
        name: Name of the mechanism.
        mechanism: The mechanism.
        calibration: A single one.
        private: Whether privacy is claimed.
    """
    (flow,) = mechanism.flows(calibration)
    half, whole = flow.holders(1), flow.holders(flow.max_items_per_user)

    def step(kept: Sequence[Data], num_items: int, _round: int) -> list[Step]:
        # Items are decided one by one: all data sets side by side are one, with its own items.
        place, item, lengths = _side_by_side(kept)
        codes, flat = np.unique(place * num_items + item, return_inverse=True)
        release, miss = np.zeros(len(kept) * num_items), np.ones(len(kept) * num_items)
        if flat.size:
            offsets = np.concatenate(([0], np.cumsum(lengths)))
            data = UserItems(items=flat.astype(np.int32), offsets=offsets.astype(np.int64))
            release[codes], miss[codes] = mechanism.probabilities(data, calibration)
        holders = np.bincount(place * num_items + item, minlength=release.size).astype(float)
        columns = (holders, holders > 0, release, miss)
        tables = [column.reshape(len(kept), num_items) for column in columns]
        return [(w, s, r, m) for w, s, r, m in zip(*tables, strict=True)]

    return SetUnionSubject(
        name=name,
        eps=float(calibration.eps),
        delta=float(calibration.delta),
        max_items_per_user=flow.max_items_per_user,
        private=private,
        clips=True,
        sequential=False,
        shuffles=False,
        rounds=(flow_round(half, whole),),
        step=step,
    )


def flow_round(half: float, whole: float) -> Round:
    """Where a flow decides: from 1/2 to 1 takes about as many holders as from 0 to 1/2.

    Args:
        half: Holders of the smallest class that bring an item to 1/2.
        whole: The same of class Delta0.
    """
    return Round((2 * max(half, whole) - half) / 4, half, math.inf)


def _side_by_side(kept: Sequence[Data]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Data set and item of every pair, user after user, and the users' set sizes."""
    place, item, lengths = [], [], []
    for index, data in enumerate(kept):
        for run in data:
            place += [index] * (len(run.items) * run.repeat)
            item += list(run.items) * run.repeat
            lengths += [len(run.items)] * run.repeat
    return np.array(place, np.int64), np.array(item, np.int64), lengths
