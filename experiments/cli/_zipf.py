"""Options for Zipfian data without users: a formula instead of a file."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from theory.item_classes import ItemClasses

# What the formula calls its arguments, and what the options are called.
_NAMES = {"s": "zipf_s", "C": "zipf_constant", "num_pairs": "pairs"}


@dataclasses.dataclass(frozen=True)
class ZipfOptions:
    """Hard Zipfian data, given by a formula."""

    zipf_s: Annotated[
        float | None,
        typer.Option(
            metavar="S", help="Instead of DATA: Zipfian data with this exponent, above 1."
        ),
    ] = None
    zipf_constant: Annotated[
        float | None,
        typer.Option(metavar="C", help="Their constant, at least 1 (the default)."),
    ] = None
    pairs: Annotated[
        float | None, typer.Option(metavar="N", help="Their number of user-item pairs, up to 1e15.")
    ] = None
    set_size: Annotated[
        float | None, typer.Option(metavar="L", help="Items of each of their users; default 1.")
    ] = None

    @property
    def given(self) -> bool:
        """Whether any of the options was given."""
        return any(value is not None for value in dataclasses.astuple(self))

    @property
    def size(self) -> int:
        """Items per user."""
        from theory._check import check_count

        return 1 if self.set_size is None else check_count("set_size", self.set_size)

    @property
    def constant(self) -> float:
        """C."""
        return 1.0 if self.zipf_constant is None else self.zipf_constant

    @property
    def num_pairs(self) -> int:
        """N as asked for, less what is not a multiple of the set size."""
        from theory._check import check_count

        pairs = check_count("pairs", self.pairs, minimum=self.size, maximum=10**15)
        return pairs // self.size * self.size

    @property
    def settings(self) -> dict[str, Any]:
        """What was given, for a manifest."""
        given = dataclasses.asdict(self)
        return {name: value for name, value in given.items() if value is not None}

    @property
    def name(self) -> str:
        """Short name of the data for tables and plots."""
        constant = "" if self.constant == 1 else f", C = {self.constant:g}"
        size = "" if self.size == 1 else f", sets of {self.size:,}"
        return f"Zipf s = {self.zipf_s:g}{constant}{size}"

    @property
    def shell(self) -> str:
        """The options as one would type them again."""
        given = self.settings.items()
        return " ".join(f"--{name.replace('_', '-')} {value:.15g}" for name, value in given)

    def check(self) -> None:
        """Raise unless there are such data."""
        from experiments.loading.errors import DataError

        if self.zipf_s is None:
            name = next(iter(self.settings)).replace("_", "-")
            raise DataError(f"--{name}", "needs --zipf-s")

    def classes(self) -> ItemClasses:
        """Items of the data."""
        from experiments.planning import zipf_classes

        with renamed():
            return zipf_classes(self.zipf_s, self.constant, self.num_pairs, self.size)


@contextmanager
def renamed() -> Iterator[None]:
    """Bad arguments of the formula under the names of the options."""
    from theory import InvalidInput

    try:
        yield
    except InvalidInput as error:
        if error.name not in _NAMES:
            raise
        raise type(error)(_NAMES[error.name], error.value, error.accepted) from None
