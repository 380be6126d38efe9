"""All figures and all kinds of tasks, imported when they are asked for."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping, Sequence
from types import ModuleType

from experiments.figures.record import FigureSpec
from experiments.figures.task import Kind
from theory._check import invalid

# Each has SPECS, its figures, and KINDS, what computes their numbers.
_MODULES = ("set_union", "top_k", "hitting_set", "shapes", "delta0", "gap", "zipf")
ALL = "all"


@functools.cache
def figures() -> tuple[FigureSpec, ...]:
    """Every figure.

    Returns:
        Those of the paper by number, then the others.

    Example:
        >>> [spec.name for spec in figures()][:1]
        ['1']
    """
    found = [spec for module in _modules() for spec in module.SPECS]
    return tuple(sorted(found, key=lambda spec: int(spec.name) if spec.name.isdigit() else 99))


@functools.cache
def kinds() -> Mapping[str, Kind]:
    """What computes the numbers of every kind of task."""
    return {name: kind for module in _modules() for name, kind in module.KINDS.items()}


def chosen(names: Sequence[str]) -> tuple[FigureSpec, ...]:
    """Figures by name.

    Args:
        names: Names of figures, or "all" for every one.

    Returns:
        In the order of `figures`, each once.

    Raises:
        InvalidInput: A name is unknown; the message lists all.

    Example:
        >>> [spec.stem for spec in chosen(["8", "1", "8"])]
        ['figure-01', 'figure-08']
    """
    known = {spec.name: spec for spec in figures()}
    for name in names:
        if name not in known and name != ALL:
            invalid("NAME", name, f"must be one of {', '.join(known)}, {ALL}")
    return tuple(spec for name, spec in known.items() if name in names or ALL in names)


def _modules() -> list[ModuleType]:
    package = __name__.rpartition(".")[0]
    return [importlib.import_module(f"{package}.{name}") for name in _MODULES]
