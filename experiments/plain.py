"""Results for other programs: JSON's own types and nothing else."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def plain(value: Any) -> Any:
    """A value in JSON's own types; NaN and infinity, which JSON lacks, become None.

    Args:
        value: Mappings, sequences, NumPy arrays and scalars, numbers, texts, booleans and None.
            Anything else becomes a text.

    Example:
        >>> plain({1: (0.5, math.nan), "path": None})
        {'1': [0.5, None], 'path': None}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
