"""One unit of work behind a figure: numbers on one data set, kept in one file."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from experiments.sweep.store import encode_json

if TYPE_CHECKING:
    import polars as pl

    from experiments.cells import Case

# What computes the numbers of one kind of task: from the data set (None for synthetic data) and
# the task's settings, to rows with a column `dataset`.
Kind: TypeAlias = "Callable[[Case | None, Mapping[str, Any]], pl.DataFrame]"


@dataclass(frozen=True)
class Task:
    """One unit of work; its result is one table of long rows with a column `dataset`.

    Attributes:
        kind: A key of `registry.KINDS`.
        dataset: Preset of the data set; None for synthetic data.
        settings: Everything else that decides a number, seed included; JSON values.

    Example:
        >>> Task("contribution", "steam", {"eps": [1.0]}).label
        'contribution, steam'
    """

    kind: str
    dataset: str | None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """What progress shows.

        Example:
            >>> Task("union", "steam", {"max_items_per_user": 50}).label
            'union, steam'
        """
        return self.kind if self.dataset is None else f"{self.kind}, {self.dataset}"

    def key(self, content: str = "") -> str:
        """Name of the file of its numbers: readable, and another one for other numbers.

        Args:
            content: Digest of the data set's raw files.

        Example:
            >>> task = Task("union", "steam", {"max_items_per_user": 50})
            >>> task.key("a").startswith("union-steam-"), task.key("a") == task.key("b")
            (True, False)
        """
        told = [self.kind, self.dataset, dict(self.settings), content, _version()]
        text = json.dumps(encode_json(told), sort_keys=True, allow_nan=False)
        readable = re.sub(r"[^a-z0-9]+", "-", f"{self.kind}-{self.dataset or 'synthetic'}".lower())
        return f"{readable}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _version() -> str:
    try:
        return importlib.metadata.version("wgm-jax")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
