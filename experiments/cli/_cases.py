"""The data of a command that needs no users: read, scanned, or given by a formula."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from experiments.cli._options import DataOptions
from experiments.cli._zipf import ZipfOptions

if TYPE_CHECKING:
    from experiments.cells import Case

Scan: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--scan",
        help="For a table larger than memory: read it in passes, keep only the counts per item.",
    ),
]


def one_case(data: DataOptions, zipf: ZipfOptions, *, scan: bool) -> Case:
    """The data set asked for.

    Raises:
        InvalidInput: Both a formula and DATA are given, or a scan of what is not a plain table.
    """
    from experiments.cells import Case
    from experiments.loading.errors import DataError
    from theory import Profile
    from theory._check import invalid

    if zipf.given:
        if data.given or scan:
            invalid("zipf_s", zipf.zipf_s, "must be given instead of DATA, not with it")
        zipf.check()
        if zipf.pairs is None:
            raise DataError("--pairs", "must be given with --zipf-s")
        sizes = Profile.from_classes(
            zipf.classes(), max_items_per_user=1, num_users=zipf.num_pairs // zipf.size
        )
        return Case(zipf.name, sizes, {"kind": "hard_zipf", **_law(zipf)})
    if not scan:
        return Case(data.name, data.load(), {"kind": "file"})
    return Case(data.name, data.scan(), {"kind": "file"})


def _law(zipf: ZipfOptions) -> dict[str, Any]:
    return {"s": zipf.zipf_s, "C": zipf.constant, "N": zipf.num_pairs}
