"""Text to sets of words.

The order matters and is fixed: tags become spaces, HTML entities are undone where the source is
escaped, tags that came to light become spaces too, lower case, distinct matches of `[a-z0-9']+`.
"""

from __future__ import annotations

import html

import polars as pl

_TAG = "<[^>]*>"
_WORD = "[a-z0-9']+"


def words(texts: pl.Series, *, unescape: bool) -> pl.Series:
    """Distinct words of every text, null where it has none.

    Args:
        texts: (rows,) String; null is an empty text.
        unescape: Whether the texts hold HTML entities.

    Returns:
        (rows,) List(String).

    Example:
        >>> words(pl.Series(["Isn't <b>it</b>&lt;br&gt;IT?"]), unescape=True).to_list()
        [["isn't", 'it']]
    """
    texts = texts.fill_null("").str.replace_all(_TAG, " ")
    if unescape:
        # Rust has no equal of Python's table of entities; few texts hold any.
        plain = [html.unescape(text) if "&" in text else text for text in texts]
        texts = pl.Series(texts.name, plain, dtype=pl.String).str.replace_all(_TAG, " ")
    lists = texts.str.to_lowercase().str.extract_all(_WORD)
    return lists.list.unique(maintain_order=True)
