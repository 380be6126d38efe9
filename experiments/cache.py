"""Where things are kept that can be made again at any time."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder(name: str) -> Path:
    """Folder for one kind of things, as the XDG base directories say; it need not exist.

    Args:
        name: Kind, such as "programs".

    Example:
        >>> cache_folder("programs").parts[-2:]
        ('wgm-jax', 'programs')
    """
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "wgm-jax", name)
