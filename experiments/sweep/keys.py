"""Keys of a grid file: which there are, what values they take, and their normal form.

Every value is brought to one form (4 and 4.0 for a number that may be fractional, 1e4 and 10000
for a count), so that two spellings of a grid name the same cells.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from theory._check import InvalidInput, invalid

REQUIRED = object()
MOST_CELLS = 100_000


@dataclass(frozen=True)
class Key:
    """One key of a table.

    Attributes:
        name: As written in the file.
        check: Brings one value to its normal form or raises InvalidInput.
        default: Value where the key is left out; REQUIRED if it may not be.
        is_axis: Whether a list means several cells. Otherwise a list is one value.
    """

    name: str
    check: Callable[[Any], Any]
    default: Any = REQUIRED
    is_axis: bool = True


def read_table(
    table: str, given: Mapping[str, Any], keys: Collection[Key]
) -> dict[str, tuple[Any, ...]]:
    """Values of every key of one table, defaults filled in.

    Args:
        table: Name of the table, for messages.
        given: The table as parsed.
        keys: The keys it may have.

    Returns:
        Key name -> its distinct values in the order given; one value unless a list was given.

    Raises:
        InvalidInput: A key is unknown or missing, or a value is out of range.

    Example:
        >>> count = Key("n", lambda value: int(value), default=1)
        >>> read_table("run", {"n": [3, 3.0, 4]}, [count]), read_table("run", {}, [count])
        ({'n': (3, 4)}, {'n': (1,)})
        >>> read_table("run", {"m": 3}, [count])
        Traceback (most recent call last):
        theory._check.InvalidInput: run.m = 3: is not a key of [run]; its keys are n
    """
    known = {key.name: key for key in keys}
    for name, value in given.items():
        if name not in known:
            listed = ", ".join(known)
            invalid(f"{table}.{name}", value, f"is not a key of [{table}]; its keys are {listed}")
    return {name: _values(f"{table}.{name}", given, key) for name, key in known.items()}


def _values(where: str, given: Mapping[str, Any], key: Key) -> tuple[Any, ...]:
    if key.name not in given:
        if key.default is REQUIRED:
            invalid(where, "(left out)", "must be given; it has no default")
        return (key.default,)
    value = given[key.name]
    listed = value if key.is_axis and isinstance(value, list) else [value]
    if not listed:
        invalid(where, value, "must be a value or a list of at least one value")
    checked = [_checked(where, item, key) for item in listed]
    return distinct(checked)


def distinct(values: Iterable[Any]) -> tuple[Any, ...]:
    """The different ones of some JSON values, in order: listed twice, a cell still counts once."""
    return tuple({json.dumps(value, sort_keys=True): value for value in values}.values())


def combinations(axes: Mapping[str, tuple[Any, ...]], more: int = 1) -> list[dict[str, Any]]:
    """All combinations of values, the last axis varying fastest.

    Args:
        axes: Name -> values.
        more: Cells that each combination will make.

    Raises:
        InvalidInput: There are too many to be meant.
    """
    count = prod(map(len, axes.values())) * more
    if count > MOST_CELLS:
        invalid("cells", count, f"must be at most {MOST_CELLS}")
    return [dict(zip(axes, chosen, strict=True)) for chosen in product(*axes.values())]


def _checked(where: str, value: Any, key: Key) -> Any:
    if key.is_axis and isinstance(value, list):
        invalid(where, value, "must be a value or a flat list of values")
    try:
        return key.check(value)
    except InvalidInput as error:
        # The range as the argument's own check words it, under the name the file uses.
        inner = f".{error.name}" if isinstance(value, dict) else ""
        invalid(where + inner, error.value if inner else value, error.accepted)


def one_of(options: Callable[[], Collection[str]]) -> Callable[[Any], str]:
    """Check that a value is one of some words, which are looked up when they are needed."""

    def check(value: Any) -> str:
        words = options()
        if not isinstance(value, str) or value not in words:
            invalid("value", value, f"must be one of {', '.join(words)}")
        return value

    return check
