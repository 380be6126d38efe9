"""Labels to integer codes, without changing a label."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from theory._check import invalid


@runtime_checkable
class Labels(Protocol):
    """Labels by index: a list, a NumPy array or a polars Series."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...


def encode(values: Iterable[Any], name: str) -> tuple[np.ndarray, Labels]:
    """Codes (rows,) int64 and labels in order of first appearance; -1 marks None and NaN.

    Integer arrays take one sort; everything else goes through a dictionary of the Python objects,
    because NumPy and pandas string types cut labels at NUL characters.
    """
    if isinstance(values, (str, bytes)):
        invalid(name, values, "must be a column of labels, not one string")
    array = values if isinstance(values, np.ndarray) else _numeric_array(values)
    if array is not None and array.dtype.kind in "iu":
        if array.ndim != 1:
            invalid(name, array.shape, "must have one dimension")
        labels, codes = np.unique(array, return_inverse=True)
        return codes.astype(np.int64), labels
    return _encode_objects(values, name)


def _numeric_array(values: Iterable[Any]) -> np.ndarray | None:
    """The integers behind a frame's column, None where it holds anything else or has gaps."""
    if not hasattr(values, "to_numpy") or getattr(values, "null_count", 0):
        return None
    kind = str(getattr(values, "dtype", getattr(values, "type", ""))).lower()
    if not kind.startswith(("int", "uint")):
        return None
    array = values.to_numpy()  # pyright: ignore[reportAttributeAccessIssue]
    return array if array.dtype.kind in "iu" else None


def _encode_objects(values: Iterable[Any], name: str) -> tuple[np.ndarray, Labels]:
    for method in ("to_list", "to_pylist", "tolist"):  # frames give back Python objects
        if hasattr(values, method):
            values = getattr(values, method)()
            break
    codes: dict[Any, int] = {}

    def code(label: Any) -> int:
        # NaN is the one common label unequal to itself; pandas marks gaps with it and with NA.
        if label is None or type(label).__name__ in ("NAType", "NaTType") or label != label:
            return -1
        return codes.setdefault(label, len(codes))

    try:
        return np.fromiter(map(code, values), np.int64), list(codes)
    except TypeError as error:
        invalid(name, type(error).__name__, f"must hold hashable labels ({error})")
