"""A grid file: its schema, and the cells it stands for.

Three flat tables. A key is a value or a list of values, and the cells are all combinations; several
[[data]] tables are taken one after the other. `docs/sweeps.md` lists the keys.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from experiments.sweep.data_specs import DataSpec, read_data
from experiments.sweep.keys import Key, combinations, distinct, one_of, read_table
from experiments.sweep.store import encode_json
from theory._check import (
    check_beta,
    check_count,
    check_delta,
    check_eps,
    check_max_items_per_user,
    invalid,
)

SCHEMA = 1  # raised when the meaning of a parameter changes: old cells then no longer count
_TABLES = ("data", "privacy", "run")


@dataclass(frozen=True)
class Group:
    """What one simulation serves: everything but eps.

    Attributes:
        data: The data set.
        max_items_per_user: Delta0, or "max" for the largest set size of the data.
        method: Calibration method, "split" or "full".
        delta: Privacy parameter delta.
        beta: Failure probability of the bounds.
        mechanism: Name of the mechanism.
        trials: Number of trials.
        seed: Seed of the trials.
        eps: Privacy parameters eps.

    Example:
        >>> grid = parse_grid({
        ...     "data": {"kind": "hard_zipf", "s": 1.5, "C": 1, "N": 1e4},
        ...     "privacy": {"eps": [0.1, 1], "delta": 1e-5, "max_items_per_user": 1},
        ... })
        >>> (group,) = grid.groups
        >>> isinstance(group, Group), group.eps, group.mechanism
        (True, (0.1, 1.0), 'wgm')
    """

    data: DataSpec
    max_items_per_user: int | Literal["max"]
    method: str
    delta: float
    beta: float
    mechanism: str
    trials: int
    seed: int
    eps: tuple[float, ...]

    @property
    def label(self) -> str:
        """One line for progress bars and lists of failures."""
        eps = ", ".join(f"{value:g}" for value in self.eps)
        return (
            f"{self.data.name} {self.mechanism} eps={eps} delta={self.delta:g} "
            f"max_items_per_user={self.max_items_per_user} seed={self.seed}"
        )

    @cached_property
    def name(self) -> str:
        """Digest of all parameters but eps; what a process claims when it works on the group."""
        return digest({k: v for k, v in self.cells[0].parameters.items() if k != "eps"})

    @property
    def cells(self) -> tuple[Cell, ...]:
        """One cell per eps."""
        return tuple(Cell(self, eps) for eps in self.eps)


@dataclass(frozen=True)
class Cell:
    """One combination of parameters, and one row of the results.

    Attributes:
        group: The simulation it is part of.
        eps: Its privacy parameter.

    Example:
        >>> grid = parse_grid({
        ...     "data": {"kind": "hard_zipf", "s": 1.5, "C": 1, "N": 1e4},
        ...     "privacy": {"eps": [0.1, 1], "delta": 1e-5, "max_items_per_user": 1},
        ... })
        >>> cell = grid.cells[0]
        >>> isinstance(cell, Cell), cell.eps, cell.parameters["delta"], len(cell.name)
        (True, 0.1, 1e-05, 16)
    """

    group: Group
    eps: float

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """All that decides the cell's numbers, in JSON's own types."""
        group = self.group
        return {
            "schema": SCHEMA,
            "data": encode_json(group.data.parameters),
            "max_items_per_user": group.max_items_per_user,
            "method": group.method,
            "delta": group.delta,
            "beta": group.beta,
            "mechanism": group.mechanism,
            "trials": group.trials,
            "seed": group.seed,
            "eps": self.eps,
        }

    @cached_property
    def name(self) -> str:
        """Name of its file: digest of the parameters, whatever their order or spelling."""
        return digest(self.parameters)


@dataclass(frozen=True)
class Grid:
    """All cells of a grid file, grouped by simulation, in the order of the file.

    Attributes:
        groups: The simulations.
    """

    groups: tuple[Group, ...]

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, eps varying fastest."""
        return tuple(cell for group in self.groups for cell in group.cells)

    @cached_property
    def name(self) -> str:
        """Digest of all cells in their order."""
        return digest([cell.name for cell in self.cells])

    @property
    def settings(self) -> dict[str, Any]:
        """The distinct values of every parameter, for the manifest."""
        cells = [cell.parameters for cell in self.cells]
        return {name: list(distinct(cell[name] for cell in cells)) for name in cells[0]}


def digest(value: Any) -> str:
    """First 16 hexadecimal digits of SHA-256 of the canonical JSON of a value.

    Example:
        >>> digest({"a": 1, "b": 2.0}) == digest({"b": 2.0, "a": 1})
        True
    """
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def load_grid(path: Path) -> Grid:
    """Read and check a grid file; relative data paths start from its folder.

    Args:
        path: A TOML file in UTF-8.

    Returns:
        The `Grid`.

    Raises:
        InvalidInput: It cannot be read, is not TOML, or holds an unknown key or a bad value.

    Example:
        >>> from importlib.resources import as_file, files
        >>> with as_file(files("experiments.sweep") / "example.toml") as path:
        ...     grid = load_grid(path)
        >>> len(grid.cells) > 1
        True
    """
    try:
        given = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        invalid("grid", str(path), f"must be a file that can be read ({error.strerror})")
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = " ".join(str(error).split())
        invalid("grid", str(path), f"must be TOML in UTF-8 ({reason})")
    return parse_grid(given, path.parent)


def parse_grid(given: Mapping[str, Any], folder: Path = Path()) -> Grid:
    """Check a parsed grid as a whole and list its cells.

    Args:
        given: Tables "data", "privacy" and, if wanted, "run".
        folder: What relative data paths start from.

    Returns:
        The `Grid`.

    Raises:
        InvalidInput: A table or key is unknown or missing, or a value is out of range.

    Example:
        >>> grid = parse_grid({
        ...     "data": {"kind": "hard_zipf", "s": [1.5, 2], "C": 1, "N": 1e4},
        ...     "privacy": {"eps": [0.1, 1], "delta": 1e-5, "max_items_per_user": [1, "max"]},
        ... })
        >>> len(grid.groups), len(grid.cells)
        (4, 8)
    """
    for name in given:
        if name not in _TABLES:
            invalid(name, given[name], f"is not a table of a grid; its tables are {_TABLES_TEXT}")
    privacy = _table(given, "privacy", _PRIVACY)
    run = _table(given, "run", _RUN)
    specs = read_data(given.get("data", {}), folder)
    eps = privacy.pop("eps")
    axes: dict[str, tuple[Any, ...]] = {"data": specs, **privacy, **run}
    chosen = combinations(axes, more=len(eps))
    return Grid(tuple(Group(**parameters, eps=eps) for parameters in chosen))


def _table(given: Mapping[str, Any], name: str, keys: tuple[Key, ...]) -> dict[str, Any]:
    table = given.get(name, {})
    if not isinstance(table, dict):
        invalid(name, table, f"must be a table [{name}]")
    return read_table(name, table, keys)


# ---- values


def _eps(value: Any) -> float:
    return float(check_eps(value)) + 0.0  # -0.0 and 0.0 are one cell


def _max_items(value: Any) -> int | str:
    if isinstance(value, str):
        if value != "max":
            invalid("max_items_per_user", value, 'must be a whole number from 1 to 1e9, or "max"')
        return value
    return int(check_max_items_per_user(value))


def _mechanisms() -> list[str]:
    from wgm_jax import registry

    return [info.name for info in registry.mechanisms("set-union")]


def _trials(value: Any) -> int:
    return check_count("trials", value, maximum=10**9)


def _seed(value: Any) -> int:
    return check_count("seed", value, minimum=0, maximum=2**63 - 1)


_TABLES_TEXT = ", ".join(_TABLES)
_PRIVACY = (
    Key("eps", _eps),
    Key("delta", lambda value: float(check_delta(value))),
    Key("max_items_per_user", _max_items),
    Key("method", one_of(lambda: ("split", "full")), default="split"),
)
_RUN = (
    Key("mechanism", one_of(_mechanisms), default="wgm"),
    Key("beta", lambda value: float(check_beta(value)), default=0.05),
    Key("trials", _trials, default=1000),
    Key("seed", _seed, default=0),
)
