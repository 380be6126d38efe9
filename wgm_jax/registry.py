"""Names of mechanisms, known without importing JAX or any of their code.

A mechanism from outside is an entry point of the group "wgm_jax.mechanisms" that names a
`MechanismInfo`:

    [project.entry-points."wgm_jax.mechanisms"]
    mine = "my_package.info:MINE"
"""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

from theory._check import invalid

GROUP = "wgm_jax.mechanisms"


@dataclass(frozen=True)
class MechanismInfo:
    """One line about a mechanism, and where its code is.

    Attributes:
        name: Name in `simulate` and on the command line.
        task: "set-union", "top-k" or "hitting-set".
        private: Whether a proof of (eps, delta)-DP is claimed.
        privacy: The claim, or why there is none.
        summary: What it does, one sentence.
        reference: Where it is described.
        target: "module:attribute" of a mechanism, imported on first use.
    """

    name: str
    task: str
    private: bool
    privacy: str
    summary: str
    reference: str
    target: str


_BUILT_IN = (
    MechanismInfo(
        name="wgm",
        task="set-union",
        private=True,
        privacy="(eps, delta)-DP for one added or removed user (Theorem 3.2, [P2])",
        summary="Weighted Gaussian mechanism: subsample, weight, add Gaussian noise, threshold.",
        reference="Dick, Joseph, Raman (ICLR 2026), Algorithm 1; Gopi et al. (ICML 2020)",
        target="wgm_jax.wgm:WeightedGaussian",
    ),
)


def mechanisms() -> tuple[MechanismInfo, ...]:
    """All known mechanisms, built-in ones first.

    Example:
        >>> [info.name for info in mechanisms()][0]
        'wgm'
    """
    return _BUILT_IN + _installed()


def get(name: str) -> Any:
    """The mechanism of that name, a `wgm_jax.mechanism.Mechanism`.

    Raises:
        InvalidInput: No mechanism has this name; the message lists those that exist.

    Example:
        >>> get("wgm")
        WeightedGaussian()
    """
    known = {info.name: info for info in reversed(mechanisms())}  # built-in names win
    if name not in known:
        invalid("mechanism", name, f"must be one of {', '.join(sorted(known))}")
    module, _, attribute = known[name].target.partition(":")
    target: Any = getattr(importlib.import_module(module), attribute)
    return target() if isinstance(target, type) else target


def _installed() -> tuple[MechanismInfo, ...]:
    found = []
    for point in entry_points(group=GROUP):
        try:
            info = point.load()
        except Exception as error:  # a broken plug-in must not take the others down
            warnings.warn(f"mechanism {point.name!r} cannot be loaded: {error}", stacklevel=3)
            continue
        if isinstance(info, MechanismInfo):
            found.append(info)
        else:
            warnings.warn(f"mechanism {point.name!r} is no MechanismInfo", stacklevel=3)
    return tuple(found)
