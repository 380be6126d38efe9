"""What is claimed against what is seen: files, grids, claims, verdicts, plots, command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiments.loading import load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    if name != "load":
        raise AttributeError(f"module 'experiments' has no attribute {name!r}")
    from experiments.loading import load

    return load
