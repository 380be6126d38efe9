"""Stack Exchange `Posts.xml`: one `<row .../>` element per post."""

from __future__ import annotations

from collections.abc import Sequence
from xml.parsers import expat

import polars as pl

from experiments.loading.errors import DataError
from experiments.loading.opening import Part

AUTHOR = "OwnerUserId"
TEXTS = ("Title", "Body")


def read_posts(part: Part, *, user: str = AUTHOR, texts: Sequence[str] = TEXTS) -> pl.DataFrame:
    """Authors and texts of all posts.

    Args:
        part: The file.
        user: Attribute that names the author.
        texts: Attributes that are joined by a space to the text.

    Returns:
        Frame with columns `user` (null where the post has no author) and `text`.

    Raises:
        DataError: Not well-formed, no posts, or with a document type: that is the door to
            entity bombs and foreign files, and no dump has one.
    """
    authors: list[str | None] = []
    bodies: list[str] = []
    seen: set[str] = set()

    def on_element(name: str, attributes: dict[str, str]) -> None:
        if name == "row":
            seen.update(attributes)
            authors.append(attributes.get(user) or None)
            bodies.append(" ".join(attributes.get(text, "") for text in texts))

    def on_doctype(*_: object) -> None:
        raise DataError(part.name, "XML with a document type (DOCTYPE) is refused")

    parser = expat.ParserCreate()
    parser.StartElementHandler = on_element
    parser.StartDoctypeDeclHandler = on_doctype
    try:
        parser.Parse(part.content, True)
    except expat.ExpatError as error:
        raise DataError(part.name, f"not well-formed XML ({error})") from None
    if not authors:
        raise DataError(part.name, "no <row> elements, so not a Posts.xml")
    for role, wanted in (("user", [user]), ("text", list(texts))):
        if not seen.intersection(wanted):
            raise DataError(part.name, f"no post has {' or '.join(wanted)}; use --{role}-column")
    schema = {"user": pl.String, "text": pl.String}
    return pl.DataFrame({"user": authors, "text": bodies}, schema=schema)
