"""The [data] table: kinds of data sets, their keys, and how each is made."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.sweep.keys import Key, combinations, one_of, read_table
from theory._check import check_count, check_zipf_constant, check_zipf_exponent, invalid

if TYPE_CHECKING:
    from theory import UserItems

_MOST_PAIRS = 2**31 - 1
_SEEDS = 2**63 - 1


@dataclass(frozen=True)
class DataSpec:
    """A data set to be made or read.

    Attributes:
        kind: One of `KINDS`.
        settings: Its keys and values in normal form; for files, their names and a digest of what
            they hold, so that a cell is the same wherever the files lie.
        paths: Files or folders of kind "file".
    """

    kind: str
    settings: Mapping[str, Any]
    paths: tuple[Path, ...] = field(default=(), compare=False)

    @property
    def parameters(self) -> dict[str, Any]:
        """What identifies the data set."""
        return {"kind": self.kind, **self.settings}

    @property
    def name(self) -> str:
        """Short name, such as `hard_zipf(s=1.5, C=1, N=10000)` or `steam`."""
        if self.kind == "file":
            files = self.settings["files"]
            more = f" and {len(files) - 1} more" if len(files) > 1 else ""
            return self.settings["preset"] or files[0] + more
        return f"{self.kind}({', '.join(f'{k}={_short(v)}' for k, v in self.settings.items())})"

    def build(self) -> UserItems:
        """Make or read the data set."""
        return KINDS[self.kind].build(self)


@dataclass(frozen=True)
class Kind:
    """A kind of data set: its keys, and the function that makes one."""

    keys: tuple[Key, ...]
    build: Callable[[DataSpec], UserItems]


def read_data(given: Any, folder: Path) -> tuple[DataSpec, ...]:
    """All data sets of the [data] table, or of several [[data]] tables, in order.

    Args:
        given: A parsed table or list of tables.
        folder: What relative paths of kind "file" start from.

    Raises:
        InvalidInput: A key is unknown or missing, a value out of range, or a file not there.
    """
    tables = given if isinstance(given, list) else [given]
    if not tables or not all(isinstance(table, dict) for table in tables):
        invalid("data", given, "must be a table [data] or several tables [[data]]")
    specs = [spec for table in tables for spec in _read_one(table, folder)]
    return tuple({json.dumps(spec.parameters, sort_keys=True): spec for spec in specs}.values())


def _read_one(table: Mapping[str, Any], folder: Path) -> list[DataSpec]:
    kind_key = Key("kind", one_of(lambda: list(KINDS)), is_axis=False)
    told = {"kind": table["kind"]} if "kind" in table else {}
    (kind,) = read_table("data", told, [kind_key])["kind"]
    values = read_table("data", table, [kind_key, *KINDS[kind].keys])
    del values["kind"]
    chosen = combinations(values)
    if kind == "file":
        return [_file_spec(settings, folder) for settings in chosen]
    return [DataSpec(kind, settings) for settings in chosen]


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return value["law"] + "".join(f" {k}={_short(v)}" for k, v in value.items() if k != "law")
    return f"{value:g}" if isinstance(value, float) else str(value)


# ---- values


def _count(name: str, minimum: int = 1, maximum: int = _MOST_PAIRS) -> Callable[[Any], int]:
    return lambda value: check_count(name, value, minimum=minimum, maximum=maximum)


def _exponent(above: float) -> Callable[[Any], float]:
    return lambda value: float(check_zipf_exponent(value, above=above))


def _constant(value: Any) -> float:
    return float(check_zipf_constant(value))


def _set_sizes(value: Any) -> dict[str, Any]:
    from wgm_jax.synthetic import SetSizes

    known = [entry.name for entry in fields(SetSizes)]
    if not isinstance(value, dict):
        invalid("set_sizes", value, f"must be an inline table of {', '.join(known)}")
    unknown = [key for key in value if key not in known]
    if unknown:
        invalid(unknown[0], value[unknown[0]], f"is not a key of set_sizes; its keys are {known}")
    for name in ("mean", "spread"):
        if name in value and type(value[name]) not in (int, float):
            invalid(name, value[name], "must be a finite number above 0")
    law = SetSizes(**{**value, **{k: float(value[k]) for k in ("mean", "spread") if k in value}})
    normal = {"law": law.law, "mean": law.mean, "spread": law.spread, "cap": int(law.cap)}
    if law.law != "lognormal":
        del normal["spread"]  # has no effect, so it makes no other cell
    return normal


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        invalid("value", value, "must be a text")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        invalid("value", value, "must be true or false")
    return value


def _column(value: Any) -> str | int:
    if isinstance(value, str) and value:
        return value
    return check_count("column", value, minimum=0)


def _columns(value: Any) -> list[str | int]:
    return [_column(item) for item in (value if isinstance(value, list) else [value])]


def _paths(value: Any) -> list[str]:
    paths = value if isinstance(value, list) else [value]
    if not paths or not all(isinstance(path, str) and path for path in paths):
        invalid("paths", value, "must be a path or a list of paths")
    return paths


def _presets() -> list[str]:
    from experiments.loading import PRESETS

    return list(PRESETS)


def _formats() -> tuple[str, ...]:
    from experiments.loading import FORMATS

    return FORMATS


# ---- files


def _file_spec(settings: dict[str, Any], folder: Path) -> DataSpec:
    written = settings.pop("paths")
    if written is not None:
        paths = [folder / Path(path).expanduser() for path in written]
    else:
        paths = [_collection_folder(settings["preset"])]
    digest = hashlib.sha256()
    for path, shown in zip(paths, written or [settings["preset"]], strict=True):
        for file in _files(path, shown):
            with open(file, "rb") as opened:
                content = hashlib.file_digest(opened, "sha256").hexdigest()
            digest.update(f"{file.name} {content}\n".encode())
    files = [path.resolve().name for path in paths]
    told = {"files": files, "content": digest.hexdigest()[:16], **settings}
    return DataSpec("file", told, tuple(paths))


def _files(path: Path, shown: str) -> list[Path]:
    try:
        if path.is_dir():
            inside = sorted(path.iterdir())
            return [file for file in inside if file.is_file() and not file.name.startswith(".")]
        with open(path, "rb"):
            return [path]
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or str(error)
        invalid("data.paths", shown, f"must be a file or folder that can be read ({reason})")


def _collection_folder(preset: str | None) -> Path:
    from experiments.loading import data_folder

    if preset is None:
        invalid("data.paths", "(left out)", "must be given, unless a preset is")
    collection = data_folder()
    if collection is None:
        accepted = "needs paths, or WGM_DATA set to the folder of the data collection"
        invalid("data.preset", preset, accepted)
    return collection / preset


# ---- making


def _synthetic(function: str, **names: str) -> Callable[[DataSpec], UserItems]:
    """Call one function of `wgm_jax.synthetic`; `names` maps our keys to its arguments."""

    def build(spec: DataSpec) -> UserItems:
        from wgm_jax import synthetic

        arguments = {names.get(key, key): value for key, value in spec.settings.items()}
        if "set_sizes" in arguments:
            arguments["set_sizes"] = synthetic.SetSizes(**arguments["set_sizes"])
        return getattr(synthetic, function)(**arguments)

    return build


def _load(spec: DataSpec) -> UserItems:
    from experiments.loading import load

    options = {k: v for k, v in spec.settings.items() if k not in ("files", "content")}
    return load(*spec.paths, **options)


_option = functools.partial(Key, default=None, is_axis=False)
_S, _C, _N = Key("s", _exponent(1.0)), Key("C", _constant), Key("N", _count("N"))
_SIZES = Key("set_sizes", _set_sizes, default={"law": "constant", "mean": 1.0, "cap": 10**6})
_DATA_SEED = Key("data_seed", _count("data_seed", 0, _SEEDS), default=0)
_DRAWN = {"N": "num_pairs", "data_seed": "seed"}

KINDS: dict[str, Kind] = {
    "zipf_profile": Kind(
        (_S, _C, _N, _SIZES, _DATA_SEED),
        _synthetic("zipf_profile", **_DRAWN),
    ),
    "zipf_draws": Kind(
        (
            Key("s", _exponent(0.0)),
            _N,
            _SIZES,
            Key("support", _count("support", maximum=10**8), default=100_000),
            _DATA_SEED,
        ),
        _synthetic("zipf_draws", **_DRAWN),
    ),
    "hard_zipf": Kind((_S, _C, _N), _synthetic("hard_zipf", **_DRAWN)),
    "singletons": Kind((_N,), _synthetic("singletons", N="num_users")),
    "equal_frequencies": Kind(
        (
            Key("num_items", _count("num_items")),
            Key("frequency", _count("frequency")),
            Key("set_size", _count("set_size"), default=1),
        ),
        _synthetic("equal_frequencies"),
    ),
    "file": Kind(
        (
            _option("paths", _paths),
            Key("preset", one_of(_presets), default=None),
            _option("format", one_of(_formats)),
            _option("user", _column),
            _option("item", _column),
            _option("text", _columns),
            _option("separator", _text),
            _option("header", _flag),
            _option("unescape", _flag),
        ),
        _load,
    ),
}
