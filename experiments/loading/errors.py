"""The one error of the loaders: which file, and what is wrong with it, in one line."""

from __future__ import annotations

from collections.abc import Sequence

_LONGEST = 400
_MOST_NAMES = 15


class DataError(ValueError):
    """A file cannot be read as the data set it was said to be.

    Attributes:
        source: File name; inside an archive or folder, `archive/member`.
        problem: What is wrong, and where there is one, the option that helps.

    Example:
        >>> str(DataError("buys.csv", "no column 'user' (columns: who, what)"))
        "buys.csv: no column 'user' (columns: who, what)"
    """

    def __init__(self, source: str, problem: str) -> None:
        self.source, self.problem = one_line(source), one_line(problem)
        super().__init__(f"{self.source}: {self.problem}")


def one_line(text: str) -> str:
    """`text` with control characters escaped, cut where a label or header is absurdly long."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 3] + "..."


def listing(names: Sequence[str]) -> str:
    """Names for a message: the first few, each cut so that the advice after them stays visible."""
    shown = [name if len(name) <= 20 else name[:17] + "..." for name in names[:_MOST_NAMES]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
