"""`load`: any of the formats to `UserItems`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from experiments.loading.errors import DataError
from experiments.loading.opening import describe, parts
from experiments.loading.presets import Layout, data_folder, get_preset
from experiments.loading.sniff import check_separator
from theory import UserItems
from theory._check import invalid

FORMATS = ("pairs", "adjacency", "baskets", "text", "posts-xml")
"""Formats that `load` reads."""
_UNUSED = {
    "pairs": ("text",),
    "adjacency": ("user", "item", "text"),
    "baskets": ("user", "item", "text"),
    "text": ("item",),
    "posts-xml": ("item", "separator", "header"),
}


def load(
    *paths: str | os.PathLike[str],
    preset: str | None = None,
    format: str | None = None,
    user: str | int | None = None,
    item: str | int | None = None,
    text: str | int | Sequence[str | int] | None = None,
    separator: str | None = None,
    header: bool | None = None,
    unescape: bool | None = None,
) -> UserItems:
    r"""Read a data set from files.

    Labels stay as they are written: "01" and "1" are two users. Parquet keeps its types. A row
    without user or item is dropped and counted in `missing_dropped`. Text must be UTF-8. Files
    may be plain, .gz or .zip; everything is read to its end before anything is returned.

    Args:
        *paths: One file, several of the same layout, or a folder of them. With a preset and no
            path: the folder of that name in the data collection (`WGM_DATA`).
        preset: Name of a known data set, whose layout is used; other arguments overrule it.
        format: "pairs" (a table with a user and an item column; the default), "adjacency" (lines
            `user item item ...`), "baskets" (lines `item item ...`, each a user of its own),
            "text" (each row is a user, its items are the words of the text; with `user` rows of
            a user are taken together; a file that is neither CSV, TSV nor Parquet is read line by
            line if no column is given), or "posts-xml" (Stack Exchange, words by author).
        user: Column of users: a name, or a number from 0. A string of digits that is not the
            name of a column is a number. Without it: `user` or `user_id`, in any case.
        item: Column of items, likewise `item` or `item_id`.
        text: Column of text, or several, as a list or "title,body". Without it: `text`.
        separator: Between fields. Without it: see `experiments.loading.sniff`.
        header: Whether the first line names the columns. Without it: see there.
        unescape: Whether texts hold HTML entities (`&amp;`) to be undone. Without it: as the
            preset says; yes in posts-xml.

    Returns:
        The data set.

    Raises:
        DataError: A file is missing, damaged, binary, empty or lacks a column; the message is one
            line and begins with the file's name.
        InvalidInput: An argument has no such value.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "buys.csv")
        ...     _ = file.write_text("who,what\nann,tea\nann,milk\nbob,tea\n")
        ...     data = load(file, user="who", item="what")
        >>> data.num_users, data.num_items, data.top_count
        (2, 2, 2)
    """
    layout = get_preset(preset) if preset is not None else Layout()
    told = {
        "format": format,
        "user": user,
        "item": item,
        "text": _text_columns(text),
        "separator": check_separator(separator),
        "header": header,
        "unescape": unescape,
    }
    chosen = told["format"] or layout.format
    if chosen not in FORMATS:
        invalid("format", chosen, f"must be one of {', '.join(FORMATS)}")
    for name in _UNUSED[chosen]:
        if told[name] is not None:
            invalid(name, told[name], f"has no meaning for format {chosen}")
    layout = replace(layout, **{name: value for name, value in told.items() if value is not None})
    if chosen == "posts-xml" and unescape is None:
        layout = replace(layout, unescape=True)
    files = _paths(paths, preset)

    # polars takes longer to import than most files take to read, so it is imported only now.
    from experiments.loading.assemble import assemble

    return assemble(describe(files), parts(files), layout)


def _text_columns(text: str | int | Sequence[str | int] | None) -> tuple[str | int, ...] | None:
    if text is None:
        return None
    columns = (text,) if isinstance(text, (str, int)) else tuple(text)
    if not columns:
        invalid("text", text, "must name at least one column")
    return columns


def _paths(
    paths: tuple[str | os.PathLike[str], ...], preset: str | None
) -> tuple[str | os.PathLike[str], ...]:
    if paths:
        return paths
    if preset is None:
        invalid("paths", "()", "must be at least one file or folder, unless a preset is given")
    collection = data_folder()
    if collection is None:
        problem = "no path given, and WGM_DATA, the folder of the data collection, is not set"
        raise DataError(preset, problem)
    return (collection / preset,)
