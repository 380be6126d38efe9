"""Release probabilities for every number of extra holders that matters, tabulated."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float64, Int64

from theory.flow.calibration import FlowCalibration
from theory.flow.state import FlowState
from theory.item_classes import ItemClasses

# Entries evaluated at once: a few arrays of that length at a time.
_CHUNK = 2**20


@dataclass(frozen=True, eq=False)
class ReleaseTable:
    """One row per item: probabilities with 0, 1, 2, ... extra holders who keep Delta0 items.

    More extra holders than a row has entries count like the last entry.

    Attributes:
        offsets: Item i has the entries offsets[i] to offsets[i + 1] of the next two.
        release: Release probability.
        miss: One minus that, with its own relative precision.
    """

    offsets: Int64[np.ndarray, " items_and_one"]
    release: Float64[np.ndarray, " entries"]
    miss: Float64[np.ndarray, " entries"]

    @classmethod
    def of(cls, state: FlowState, last: Int64[np.ndarray, " items"]) -> ReleaseTable:
        """Tabulate up to `last` extra holders of every item, that number included.

        Example:
            >>> from theory.flow import calibrate_flow
            >>> flow = calibrate_flow(eps=1.0, delta=1e-5, max_items_per_user=2)
            >>> nobody = flow.prepare(np.array([0, 0]), np.empty(0, int), np.empty(0, int))
            >>> table = ReleaseTable.of(nobody, np.array([30]))
            >>> table.release[[0, 22]].round(1)
            array([0. , 0.6])
        """
        offsets = np.concatenate(([0], np.cumsum(last + 1)))
        release, miss = np.empty(offsets[-1]), np.empty(offsets[-1])
        for first in range(0, int(offsets[-1]), _CHUNK):
            entries = np.arange(first, min(first + _CHUNK, int(offsets[-1])))
            item = np.searchsorted(offsets, entries, side="right") - 1
            found = select_items(state, item).probabilities(entries - offsets[item])
            release[entries], miss[entries] = found
        return cls(offsets, release, miss)


def most_telling(state: FlowState) -> Int64[np.ndarray, " items"]:
    """Extra holders with whom an item is released for certain: more change nothing."""
    needed = [
        np.ceil(np.maximum(part.knots[-1] - part.clock, 0.0) / part.step) + 1
        for part in state.components
    ]
    return np.min(needed, axis=0).astype(np.int64)


def base_state(classes: ItemClasses, flow: FlowCalibration) -> FlowState:
    """Every class with the holders who keep all they hold; nobody else has come yet."""
    whole = classes.sizes <= flow.max_items_per_user
    offsets = np.concatenate(([0], np.cumsum(whole)))[classes.offsets]
    return flow.prepare(offsets, classes.sizes[whole], classes.counts[whole])


def select_items(state: FlowState, item: Int64[np.ndarray, " rows"]) -> FlowState:
    """The state of some items, in any order, also repeated."""
    components = tuple(
        replace(
            part,
            clock=part.clock[item],
            empty=part.empty[item],
            other_release=part.other_release[item],
            other_miss=part.other_miss[item],
        )
        for part in state.components
    )
    return FlowState(state.fixed_release[item], state.fixed_miss[item], components)
