"""Separator and header of a table where the caller does not say.

The rules are few and documented, so that a wrong guess can be understood and overruled:

*Separator of a table*: of tab, comma, semicolon, bar and `::` the one that occurs most often in the
first line outside quotes; where none does, a space (a comma in `.csv` files, a tab in `.tsv`).

*Separator of adjacency lists and baskets*: white space; a comma, semicolon or bar in `.csv` files
and where the first hundred lines hold no white space; a tab in `.tsv` files.

*Header*: the first line is one if a column is asked for by name, if it holds a usual name (`user`,
`user_id`, `item`, `item_id`, `text`, in any case), or if it holds no number while some column holds
nothing but numbers below it (hundred lines are looked at).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from theory._check import invalid

USUAL_NAMES = {"user": ("user", "userid"), "item": ("item", "itemid"), "text": ("text",)}
LINES_LOOKED_AT = 100
_WRITTEN = {"\\t": "\t", "tab": "\t", "space": " ", "comma": ",", "semicolon": ";", "bar": "|"}
_QUOTED = re.compile(r'"[^"]*(?:"|$)')


def check_separator(separator: str | None) -> str | None:
    r"""A separator as told; "tab", "space", `\t` and the like are words for it."""
    if separator is None:
        return None
    separator = _WRITTEN.get(separator, separator)
    if not separator or any(c in separator for c in '\r\n"'):
        invalid("separator", separator, "must be some characters other than a quote or line end")
    return separator


def usual_name(name: str, role: str) -> bool:
    """Whether `name` is a usual one for a column of users, items or texts."""
    return re.sub(r"[ _-]", "", name).lower() in USUAL_NAMES[role]


def table_separator(text: str, suffix: str) -> str:
    """Separator of a table from its first line."""
    if suffix == ".tsv":
        return "\t"
    line = _QUOTED.sub("", text.split("\n", 1)[0])
    best = max(("\t", ",", ";", "|", "::"), key=line.count)
    if best in line:
        return best
    return " " if suffix != ".csv" and " " in line.strip() else ","


def list_separator(text: str, suffix: str) -> str | None:
    """Separator of lines of many items; None is white space."""
    if suffix == ".tsv":
        return "\t"
    lines = [_QUOTED.sub("", line).strip() for line in text.split("\n", LINES_LOOKED_AT)]
    lines = lines[:LINES_LOOKED_AT]
    if suffix != ".csv" and any(re.search(r"\s", line) for line in lines):
        return None
    best = max((",", ";", "|"), key=lambda mark: sum(line.count(mark) for line in lines))
    return best if any(best in line for line in lines) else None


def header_evidence(rows: Sequence[Sequence[str]]) -> bool | None:
    """True: the first row is a header. False: it holds numbers, so it is data. None: no telling."""
    first, below = rows[0], [row for row in rows[1:] if row]
    if any(usual_name(name, role) for name in first for role in USUAL_NAMES):
        return True
    if any(map(is_number, first)):
        return False
    for index in range(len(first)):
        column = [row[index] for row in below if index < len(row) and row[index]]
        if column and all(map(is_number, column)):
            return True
    return None


def is_number(field: str) -> bool:
    """Whether a field is written as a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True
