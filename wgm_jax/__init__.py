"""Mechanisms for private domain discovery and their simulation in JAX.

Importing this package does not import JAX; the first use of `simulate` does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from theory import UserItems
    from wgm_jax.censored import Censoring, censoring
    from wgm_jax.conditional import ConditionalMoments, conditional_moments
    from wgm_jax.engine import simulate
    from wgm_jax.law_draws import LawDraws, missing_mass_draws
    from wgm_jax.mechanism import Mechanism, Release
    from wgm_jax.registry import MechanismInfo, mechanisms
    from wgm_jax.trials import Trials

# Where every public name lives; imported on first use.
_HOME = {
    "Censoring": "wgm_jax.censored",
    "ConditionalMoments": "wgm_jax.conditional",
    "LawDraws": "wgm_jax.law_draws",
    "Mechanism": "wgm_jax.mechanism",
    "MechanismInfo": "wgm_jax.registry",
    "Release": "wgm_jax.mechanism",
    "Trials": "wgm_jax.trials",
    "UserItems": "theory",
    "censoring": "wgm_jax.censored",
    "conditional_moments": "wgm_jax.conditional",
    "mechanisms": "wgm_jax.registry",
    "missing_mass_draws": "wgm_jax.law_draws",
    "simulate": "wgm_jax.engine",
}

__all__ = [
    "Censoring",
    "ConditionalMoments",
    "LawDraws",
    "Mechanism",
    "MechanismInfo",
    "Release",
    "Trials",
    "UserItems",
    "censoring",
    "conditional_moments",
    "mechanisms",
    "missing_mass_draws",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'wgm_jax' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
