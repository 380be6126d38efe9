"""Layouts of named data sets, so that `--preset steam` is all one has to say."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from theory._check import invalid


@dataclass(frozen=True)
class Layout:
    """How to read a data set; None is found from the file.

    Attributes:
        format: "pairs", "adjacency", "baskets", "text" or "posts-xml".
        user: Column of users, by name or number from 0.
        item: Column of items.
        text: Columns of text, joined by a space.
        separator: Between fields.
        header: Whether the first line names the columns.
        keep: Column and value of the rows to keep.
        unescape: Whether texts hold HTML entities to be undone.

    Example:
        >>> Layout(format="baskets", separator=" ") == PRESETS["retail"]
        True
    """

    format: str = "pairs"
    user: str | int | None = None
    item: str | int | None = None
    text: tuple[str | int, ...] = ()
    separator: str | None = None
    header: bool | None = None
    keep: tuple[int, str] | None = None
    unescape: bool = False


_LISTS = Layout(format="adjacency", separator=" ")

PRESETS: dict[str, Layout] = {
    "steam": Layout(user=0, item=1, separator=",", header=False, keep=(2, "purchase")),
    "imdb": Layout(format="text", text=("review",), separator=",", header=True),
    "reddit-posts": Layout(
        format="text", text=("title", "selftext"), separator=",", header=True, unescape=True
    ),
    "ml-100k": Layout(user=0, item=1, separator="\t", header=False),
    "ml-1m": _LISTS,
    "ml-latest-small": Layout(user="userId", item="movieId", separator=",", header=True),
    # The item comes first.
    "amazon-magazine-subscriptions": Layout(user=1, item=0, separator=",", header=False),
    "amazon-prime-pantry": _LISTS,
    "amazon-video-games": Layout(user=0, item=1, separator=" ", header=False),
    "book-crossing": Layout(user="user", item="item", separator="\t", header=True),
    "anime": Layout(user="User_ID", item="Anime_ID", separator="\t", header=True),
    "retail": Layout(format="baskets", separator=" "),
    "stackexchange-beer": Layout(format="posts-xml", unescape=True),
}
"""Layouts of the public data sets, by name."""


def get_preset(name: str) -> Layout:
    """Layout of a named data set.

    Raises:
        InvalidInput: There is none of this name; the message lists all.
    """
    if name not in PRESETS:
        invalid("preset", name, f"must be one of {', '.join(PRESETS)}")
    return PRESETS[name]


def data_folder() -> Path | None:
    """Folder of the data collection, one folder per data set, or None if there is none.

    It is `WGM_DATA`; without that, `shared/data` beside the checkout.

    Returns:
        The folder; `WGM_DATA` is not checked to exist.

    Example:
        >>> from unittest import mock
        >>> with mock.patch.dict(os.environ, WGM_DATA="collection"):
        ...     print(data_folder())
        collection
    """
    told = os.environ.get("WGM_DATA")
    if told:
        return Path(told)
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    return beside if beside.is_dir() else None
