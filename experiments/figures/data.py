"""The data sets of the figures: which the paper calls large or small, which are present here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from experiments.cells import Case
from experiments.loading.presets import data_folder
from experiments.sweep.data_specs import DataSpec, read_data
from theory._check import invalid

Group = Literal["large", "small"]


@dataclass(frozen=True)
class DataSet:
    """A preset and its place in the paper.

    Attributes:
        preset: Name of the preset.
        group: Which of the paper's figures it is drawn in.
        paper: What it stands for: "Steam Games", "part of Amazon Games", "substitute for Reddit",
            or "not in the paper".
    """

    preset: str
    group: Group
    paper: str

    @property
    def own(self) -> bool:
        """Whether it is one of the paper's own data sets, complete."""
        return self.paper in ("Steam Games", "Amazon Magazine")

    @property
    def title(self) -> str:
        """Name with its place, such as `reddit-posts (substitute for Reddit)`."""
        return f"{self.preset} ({self.paper})"


# In the order of the panels. Large and small as the paper says, also of substitutes; the others go
# by their number of pairs.
DATA_SETS: dict[str, DataSet] = {
    each.preset: each
    for each in (
        DataSet("reddit-posts", "large", "substitute for Reddit"),
        DataSet("amazon-video-games", "large", "part of Amazon Games"),
        DataSet("ml-1m", "large", "substitute for Movie Reviews"),
        DataSet("ml-100k", "large", "substitute for Movie Reviews"),
        DataSet("ml-latest-small", "large", "substitute for Movie Reviews"),
        DataSet("imdb", "large", "not in the paper"),
        DataSet("retail", "large", "not in the paper"),
        DataSet("anime", "large", "not in the paper"),
        DataSet("steam", "small", "Steam Games"),
        DataSet("amazon-magazine-subscriptions", "small", "Amazon Magazine"),
        DataSet("amazon-prime-pantry", "small", "part of Amazon Pantry"),
        DataSet("stackexchange-beer", "small", "not in the paper"),
        DataSet("book-crossing", "small", "not in the paper"),
    )
}


def in_group(present: Sequence[str], group: Group) -> list[str]:
    """Presets of one group among those present, in the order of the panels.

    Example:
        >>> in_group(["steam", "imdb", "ml-1m"], "large")
        ['ml-1m', 'imdb']
    """
    return [name for name, each in DATA_SETS.items() if name in present and each.group == group]


def sources(
    folder: Path | None = None, presets: Sequence[str] | None = None
) -> dict[str, DataSpec]:
    """Data sets that are present, with a digest of their raw files.

    Args:
        folder: Folder with one folder per preset; default `WGM_DATA`.
        presets: Only these, all of which must be present.

    Returns:
        Preset -> where it is, in the order of the panels; empty without a folder.

    Raises:
        InvalidInput: The folder does not exist, or a preset is unknown or not present.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> (folder / "retail").mkdir()
        >>> (folder / "retail" / "retail.dat").write_text("1 2")
        3
        >>> list(sources(folder))
        ['retail']
    """
    for name in presets or ():
        if name not in DATA_SETS:
            invalid("preset", name, f"must be one of {', '.join(DATA_SETS)}")
    collection = data_folder() if folder is None else folder
    if collection is None:
        if presets:
            invalid("preset", presets[0], "needs --data DIR, or WGM_DATA: one folder per data set")
        return {}
    if not collection.is_dir():
        told = " (WGM_DATA says so)" if folder is None else ""
        invalid("data", f"{collection}{told}", "must be a folder with one folder per data set")
    for name in presets or ():
        if not _is_present(collection / name):
            invalid("preset", name, f"must be a folder with files in {collection}")
    found = {}
    for name in DATA_SETS:
        place = collection / name
        if (presets is None or name in presets) and _is_present(place):
            told = {"kind": "file", "paths": str(place), "preset": name}
            [found[name]] = read_data(told, collection)
    return found


def absent(folder: Path | None = None) -> list[str]:
    """Presets without data in a folder; default `WGM_DATA`."""
    collection = data_folder() if folder is None else folder
    return [name for name in DATA_SETS if collection is None or not _is_present(collection / name)]


def _is_present(place: Path) -> bool:
    return place.is_dir() and any(
        file.is_file() and not file.name.startswith(".") for file in place.iterdir()
    )


def load_case(name: str, source: DataSpec) -> Case:
    """Read a data set into memory."""
    return Case(name, source.build())
