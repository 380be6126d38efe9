"""Results on disk: atomic writes, versions, manifests and results folders.

A reader never sees half a file: everything is written under a name that starts with a dot, flushed
to the disk and renamed. Nothing written here names a host, a user or an absolute path.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import secrets
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from theory._check import invalid

_TEMPORARY_SUFFIX = ".tmp"
_DISTRIBUTIONS = ("wgm-jax", "jax", "jaxlib", "numpy", "scipy", "polars")
# Everything that decides a number; plots, reports and the command line do not.
_SOURCES = {
    "theory": ("**/*.py",),
    "wgm_jax": ("**/*.py",),
    "experiments": ("cells.py", "loading/**/*.py", "statistics/**/*.py", "sweep/*.py"),
}


# ---- files


def write_atomic(path: Path, content: bytes | Callable[[BinaryIO], object]) -> None:
    """Write a file so that it is there complete or not at all, also after a kill or power cut.

    Args:
        path: Where; an existing file is replaced.
        content: The bytes, or a function that writes them to an open binary file.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_atomic(Path(folder, "a.txt"), b"done")
        ...     Path(folder, "a.txt").read_text(), len(os.listdir(folder))
        ('done', 1)
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{_TEMPORARY_SUFFIX}")
    try:
        with open(temporary, "xb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _flush_folder(path.parent)


def write_json(path: Path, value: Any) -> None:
    """Write one JSON value atomically, indented, keys in the order given."""
    text = json.dumps(encode_json(value), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomic(path, (text + "\n").encode())


def read_json(path: Path) -> Any:
    """Read what `write_json` wrote, infinities and NaN included."""
    return json.loads(path.read_bytes(), object_hook=_decode_float)


def encode_json(value: Any) -> Any:
    """`value` in JSON's own types: NumPy numbers as Python's, `{"float": "inf"}` for infinity.

    Example:
        >>> encode_json({"a": (1, math.inf), "b": PurePath("/home/ann/x.csv")})
        {'a': [1, {'float': 'inf'}], 'b': 'x.csv'}
    """
    if isinstance(value, Mapping):
        return {str(key): encode_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode_json(item) for item in value]
    if isinstance(value, PurePath):
        return value.name  # where a file lies is the host's affair
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return encode_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def _decode_float(pairs: dict[str, Any]) -> Any:
    return float(pairs["float"]) if pairs.keys() == {"float"} else pairs


def remove_leftovers(folder: Path) -> int:
    """Delete what an interrupted `write_atomic` left in a folder; returns how many files."""
    leftovers = list(folder.glob(f".*{_TEMPORARY_SUFFIX}"))
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    return len(leftovers)


def _flush_folder(folder: Path) -> None:
    """Make a rename durable; only POSIX systems can open a folder for that."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# ---- folders


def writable_folder(folder: Path, name: str = "out") -> Path:
    """Create a folder if need be and make sure that files can be written to it.

    Raises:
        InvalidInput: It cannot be created or written to; nothing has been written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, prefix="."):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        invalid(name, str(folder), f"must be a folder that can be written to ({reason})")
    return folder


def new_results_folder(base: Path, command: str) -> Path:
    """Create `base/command-YYYYMMDD-HHMMSS`, with -2, -3 … where that name is taken.

    Raises:
        InvalidInput: `base` cannot be created or written to.
    """
    writable_folder(base)
    stem = f"{command}-{datetime.datetime.now():%Y%m%d-%H%M%S}"
    number = 1
    while True:
        folder = base / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            number += 1
        else:
            return folder


# ---- provenance


@functools.cache
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide a number, and a digest of our source.

    The digest tells two states of a checkout apart that carry the same version number.

    Example:
        >>> sorted(versions())
        ['jax', 'jaxlib', 'numpy', 'polars', 'python', 'scipy', 'source', 'wgm-jax']
    """
    found = {"python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"  # our own, when run from a bare checkout
    found["source"] = _source_digest()
    return found


def _source_digest() -> str:
    digest = hashlib.sha256()
    for package, patterns in _SOURCES.items():
        spec = importlib.util.find_spec(package)  # finds a package without importing it
        for root in spec.submodule_search_locations or [] if spec else []:
            files = {path for pattern in patterns for path in Path(root).glob(pattern)}
            for path in sorted(files):
                content = path.read_bytes()
                label = path.relative_to(root).as_posix()
                digest.update(f"{package}/{label} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def manifest(
    command: str,
    *,
    settings: Mapping[str, Any],
    seeds: Any = None,
    sampler: Any = None,
    **more: Any,
) -> dict[str, Any]:
    """What a results folder says about its origin, ready for `write_json`.

    Args:
        command: The command or function that made the results.
        settings: Every setting that decides a number; paths are reduced to their names.
        seeds: Seed or seeds used.
        sampler: Sampler or samplers used.
        **more: Further entries, placed last.

    Returns:
        Entries command, created (UTC), versions, sampler, seeds, settings and `more`.

    Example:
        >>> manifest("bounds", settings={"eps": 1.0}, seeds=[0])["settings"]
        {'eps': 1.0}
    """
    created = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    entries = {
        "command": command,
        "created": created,
        "versions": versions(),
        "sampler": sampler,
        "seeds": seeds,
        "settings": settings,
        **more,
    }
    return encode_json(entries)
