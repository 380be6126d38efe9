"""What is compared: mechanisms of the registry at every calibration that is proved for them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments import flow_store
from theory import calibrate
from theory._check import invalid
from wgm_jax import registry
from wgm_jax.set_union.frame import FramedMechanism
from wgm_jax.wgm import WeightedGaussian

_FULL = " (full)"
_TASK = "set-union"


@dataclass(frozen=True)
class Competitor:
    """A mechanism at one way to spend delta.

    Attributes:
        label: Its name, followed by " (full)" where all of delta is spent on noise and all of it on
            new items.
        name: Name in the registry.
        method: Calibration method, "split" [P1] or "full" [P3].
        private: Whether a proof of (eps, delta)-DP is claimed.
        sequential: Whether users act one after the other.
    """

    label: str
    name: str
    method: str
    private: bool
    sequential: bool

    @property
    def mechanism(self) -> Any:
        """The mechanism itself."""
        return registry.get(self.name, task=_TASK)


def competitors(labels: Sequence[str] | None = None) -> tuple[Competitor, ...]:
    """Mechanisms for set union by label, or all private ones at every calibration proved for them.

    Args:
        labels: Names as in `wgm mechanisms`; "NAME (full)" is the full calibration. Mechanisms that
            are not private take part only if named, and so do the Bernoulli flows, whose first
            calibration takes minutes for every eps and Delta0.

    Returns:
        One `Competitor` each, in the order asked for.

    Raises:
        InvalidInput: A label is unknown, or there is none.

    Example:
        >>> [c.label for c in competitors()][:3]
        ['wgm', 'wgm (full)', 'policy-gaussian']
    """
    known = {}
    for info in registry.mechanisms(_TASK):
        if info.name in known:
            continue
        flags = (info.private, info.sequential)
        known[info.name] = Competitor(info.name, info.name, "split", *flags)
        if _uses_method(info.name):
            known[info.name + _FULL] = Competitor(info.name + _FULL, info.name, "full", *flags)
    if labels is None:
        slow = (flow_store.NAME, flow_store.TWO_ROUNDS)
        return tuple(c for c in known.values() if c.private and c.name not in slow)
    if not labels:
        invalid("mechanism", "", "must name at least one mechanism")
    for label in labels:
        if label not in known:
            invalid("mechanism", label, f"must be one of {', '.join(known)}")
    return tuple(known[label] for label in dict.fromkeys(labels))


@functools.cache
def _uses_method(name: str) -> bool:
    """Whether a mechanism takes noise and threshold from the calibration, as [P2] allows it to."""
    mechanism = registry.get(name, task=_TASK)
    if isinstance(mechanism, WeightedGaussian):
        return True
    if not isinstance(mechanism, FramedMechanism):
        return False
    split, full = (
        np.asarray(getattr(mechanism.parameters(_calibration(method)), "scale", np.nan))
        for method in ("split", "full")
    )
    return bool(np.any(np.abs(split - full) > 0))  # without a scale: nan, and no


def _calibration(method: str) -> Any:
    return calibrate(eps=1.0, delta=1e-5, max_items_per_user=1, method=method)
