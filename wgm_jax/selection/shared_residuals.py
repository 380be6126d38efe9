"""Residuals that the trials of a run have in common."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int64

from theory.residual import Residual

# Memory for residuals that trials share.
_SHARED_BYTES = 2**27


@dataclass(frozen=True, eq=False)
class SharedResiduals:
    """Residuals that trials have in common: mostly they begin with the same few large choices.

    A residual is a function of what is chosen, in whatever order. Threads may share this object.

    Attributes:
        start: The residual before any choice.
    """

    start: Residual
    _known: dict[frozenset[int], Residual] = field(default_factory=dict)

    @property
    def least_hits(self) -> int:
        """New users from which a choice is worth a copy of the residual."""
        return self.start.users_left // 256

    def after(self, before: Residual, chosen: frozenset[int], item: int) -> Residual:
        """The residual after all of `chosen`, of which `item` is not in `before` yet."""
        found = self._known.get(chosen)
        if found is None:
            found = before.copy()
            found.choose(item)
            if len(self._known) * found.num_bytes < _SHARED_BYTES:
                self._known[chosen] = found
        return found


class TrialResidual:
    """The residual of one trial, which follows shared ones as far as they lead.

    Args:
        shared: What this trial may have in common with others.
    """

    def __init__(self, shared: SharedResiduals) -> None:
        self._shared = shared
        self._residual = shared.start
        self._chosen: frozenset[int] | None = frozenset()

    @property
    def counts(self) -> Int64[np.ndarray, " items"]:
        """See `Residual`."""
        return self._residual.counts

    @property
    def exhausted(self) -> bool:
        """See `Residual`."""
        return self._residual.exhausted

    def choose(self, item: int) -> None:
        """See `Residual`."""
        if self._chosen is not None:
            if self.counts[item] > self._shared.least_hits:
                self._chosen |= {item}
                self._residual = self._shared.after(self._residual, self._chosen, item)
                return
            self._residual, self._chosen = self._residual.copy(), None
        self._residual.choose(item)
