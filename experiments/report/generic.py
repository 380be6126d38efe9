"""Results of any command as tables: one fact per line, or one row per record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from experiments.report.labels import heading, shown
from experiments.report.tables import Table

if TYPE_CHECKING:
    import polars as pl

_MOST_ROWS = 500
_MOST_SIDE_BY_SIDE = 4
_LONGEST_TEXT = 300
_NOTES = "notes"


def flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Entries of nested records under dotted names.

    Example:
        >>> dict(flat({"a": 1, "b": {"c": 2}}))
        {'a': 1, 'b.c': 2}
    """
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from flat(inner, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", inner


def record_tables(name: str, title: str, value: Any) -> list[Table]:
    """Records as tables: few of them side by side, many of them as rows.

    Args:
        name: Name of the first table.
        title: Its title.
        value: A record, a list of records, or anything else JSON can hold.

    Returns:
        Tables; lists of records inside a record become tables of their own.
    """
    records = value if isinstance(value, list) else [value]
    if not records or not all(isinstance(record, Mapping) for record in records):
        return [Table(name, title, ("value",), [[_text("", part)] for part in records])]
    flattened = [dict(flat(record)) for record in records]
    names = list(dict.fromkeys(key for record in flattened for key in record))
    nested = [key for key in names if any(_is_records(record.get(key)) for record in flattened)]
    plain = [key for key in names if key not in nested]
    tables = [_facts(name, title, flattened, plain)]
    for key in nested:
        rows = [row for record in flattened for row in _records(record.get(key))]
        tables.append(_rows(f"{name}-{key}", heading(key), [dict(flat(row)) for row in rows]))
    return tables


def _is_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)


def _records(value: Any) -> Sequence[Mapping[str, Any]]:
    return value if _is_records(value) else []


def _facts(
    name: str, title: str, records: Sequence[Mapping[str, Any]], keys: Sequence[str]
) -> Table:
    if len(records) > _MOST_SIDE_BY_SIDE:
        return _rows(name, title, [{key: record.get(key) for key in keys} for record in records])
    told = [str(note) for record in records for note in record.get(_NOTES) or []]
    # Versions have a place of their own on the page.
    keys = [key for key in keys if key != _NOTES and not key.startswith("versions.")]
    said = [key for key in keys if any(record.get(key) not in (None, []) for record in records)]
    rows = [[heading(key), *(_text(key, record.get(key)) for record in records)] for key in said]
    heads = [""] if len(records) == 1 else [str(place + 1) for place in range(len(records))]
    left = 2 if len(records) == 1 else 1
    return Table(name, title, ("", *heads), rows, left=left, note=" ".join(dict.fromkeys(told)))


def frame_table(name: str, title: str, frame: pl.DataFrame) -> Table:
    """A table of results, without the columns that are the same in every row."""
    return _rows(name, title, frame.head(_MOST_ROWS).to_dicts(), total=frame.height)


def _rows(
    name: str, title: str, records: Sequence[Mapping[str, Any]], total: int | None = None
) -> Table:
    keys = list(dict.fromkeys(key for record in records for key in record))
    values = {key: [record.get(key) for record in records] for key in keys}
    same = [
        key for key in keys if len(records) > 2 and all(v == values[key][0] for v in values[key])
    ]
    kept = [key for key in keys if key not in same]
    # Words first, then numbers, each in the order given.
    words = [k for k in kept if any(isinstance(v, str) for v in values[k])]
    ordered = words + [key for key in kept if key not in words]
    told = [f"{heading(k)} = {_text(k, values[k][0])}" for k in same if values[k][0] is not None]
    count = len(records) if total is None else total
    note = "; ".join(told)
    note = f"In every row: {note}." if note else ""
    if count > len(records[:_MOST_ROWS]):
        note += f" The first {min(len(records), _MOST_ROWS):,} of {count:,} rows."
    return Table(
        name, title, [heading(key) for key in ordered],
        [[_text(key, record.get(key)) for key in ordered] for record in records[:_MOST_ROWS]],
        left=len(words), note=note.strip(),
    )  # fmt: skip


def _text(name: str, value: Any) -> str:
    text = shown(name, value)
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
