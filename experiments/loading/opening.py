"""Paths to file contents: plain files, gzip, zip, folders, several parts.

A part is always read and checked to its end before anything is made of it: a truncated download
is an error, never a smaller data set.
"""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from experiments.loading.errors import DataError, listing

_GZIP, _ZIP, _EMPTY_ZIP = b"\x1f\x8b", b"PK\x03\x04", b"PK\x05\x06"
_DEEPEST = 3  # an archive in an archive is common, more is a quine or an attack
_DECODE_STEP = 1 << 24
_WHITE = b" \t\r\n\f\v"


@dataclass(frozen=True, repr=False)
class Part:
    """One decompressed file.

    Attributes:
        name: What messages call it.
        content: All of its bytes.
    """

    name: str
    content: bytes

    @property
    def suffix(self) -> str:
        """Lower-case suffix of the file inside the compression, such as ".csv"."""
        return PurePosixPath(self.name.lower().removesuffix(".gz").removesuffix(".zip")).suffix

    @property
    def is_parquet(self) -> bool:
        """Whether the content is Parquet, whatever its name."""
        return self.content[:4] == b"PAR1"

    def text(self) -> bytes:
        r"""The content as UTF-8 bytes: mark dropped, Mac line ends made `\n`, outer ones cut.

        Raises:
            DataError: The content is empty, binary, or text in another encoding.
        """
        content = self.content.removeprefix(codecs.BOM_UTF8)
        if not content or content.isspace():
            raise DataError(self.name, "empty file")
        if self.is_parquet:
            raise DataError(self.name, "a Parquet file, which this format cannot be read from")
        check_utf8(self.name, content)
        if b"\r" in content and b"\n" not in content:
            content = content.replace(b"\r", b"\n")
        return content.strip(b"\r\n")


def parts(paths: Sequence[str | os.PathLike[str]]) -> Iterator[Part]:
    """All parts of a data set, one in memory at a time.

    Args:
        paths: Files or folders. Of a folder all data files are taken, in order of name; hidden
            files, those starting with an underscore, README and LICENSE files and Markdown are
            not data.

    Yields:
        The parts; members of a zip archive one by one.

    Raises:
        DataError: A path does not exist, cannot be read, or is damaged.
    """
    for name, path in files(paths):
        yield from _unpack(name, _read(path), 0)


def files(paths: Sequence[str | os.PathLike[str]]) -> Iterator[tuple[str, Path]]:
    """Name for messages and path of all files of a data set, packed ones too."""
    for given in paths:
        path = Path(given)
        if path.is_dir():
            for file in _data_files(path):
                yield f"{_base(path)}/{file.name}", file
        else:
            yield path.name, path


def is_packed(head: bytes) -> bool:
    """Whether a file with these first bytes is gzip or zip."""
    return head.startswith((_GZIP, _ZIP, _EMPTY_ZIP))


def describe(paths: Sequence[str | os.PathLike[str]]) -> str:
    """Short name of a data set of one or several paths, for messages."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return _base(paths[0]) + more


def _base(path: str | os.PathLike[str]) -> str:
    return os.path.basename(os.path.abspath(path))  # "." has a name too


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DataError(str(path), "no such file or folder") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise DataError(str(path), getattr(error, "strerror", None) or str(error)) from None


def _is_data(name: str) -> bool:
    low = name.lower()
    return not low.startswith((".", "_", "readme", "license", "licence")) and low[-3:] != ".md"


def _data_files(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise DataError(str(folder), error.strerror or str(error)) from None
    files = [entry for entry in entries if entry.is_file() and _is_data(entry.name)]
    if not files:
        inner = [entry.name for entry in entries if entry.is_dir() and _is_data(entry.name)]
        hint = f" (folders in it: {listing(inner)}; give one of them)" if inner else ""
        raise DataError(str(folder), "no data files in this folder" + hint)
    return files


def _unpack(name: str, content: bytes, depth: int) -> Iterator[Part]:
    compressed = is_packed(content)
    if compressed and depth == _DEEPEST:
        raise DataError(name, f"compressed more than {_DEEPEST} times")
    if content.startswith(_GZIP):
        yield from _unpack(name, _gunzip(name, content), depth + 1)
    elif compressed:
        for member, inside in _members(name, content):
            yield from _unpack(f"{name}/{member}", inside, depth + 1)
    elif not content:
        raise DataError(name, "empty file")
    elif depth == 0 and name.lower().endswith((".gz", ".zip")):
        raise DataError(name, f"not a {name[name.rindex('.') + 1 :].lower()} file, or damaged")
    else:
        yield Part(name, content)


def _gunzip(name: str, content: bytes) -> bytes:
    try:
        return gzip.decompress(content)
    except EOFError:
        raise DataError(name, "truncated gzip file: it ends before its end mark") from None
    except (OSError, zlib.error) as error:
        raise DataError(name, f"damaged gzip file ({error})") from None


def _members(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
            if "[Content_Types].xml" in names:
                raise DataError(name, "an office document; save the table as CSV")
            data = sorted(
                member
                for member in names
                if not member.endswith("/") and all(map(_is_data, member.split("/")))
            )
            if not data:
                raise DataError(name, "no data files in this archive")
            for member in data:
                yield member, archive.read(member)
    except (zipfile.BadZipFile, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        raise DataError(name, f"damaged or truncated zip file ({error})") from None
    except (RuntimeError, NotImplementedError):
        raise DataError(name, "a zip file with a password or an unusual compression") from None


def check_utf8(name: str, content: bytes) -> None:
    """Raise unless these bytes are UTF-8 text.

    They are decoded in steps, so that a large file is never held as text beside its bytes.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), _DECODE_STEP):
            decoder.decode(content[start : start + _DECODE_STEP])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise DataError(name, "UTF-16 text; save it as UTF-8") from None
        sample = content[:4096]
        if any(byte < 32 and byte not in _WHITE for byte in sample):
            raise DataError(name, "a binary file, not text") from None
        byte = error.object[error.start] if error.start < len(error.object) else 0
        problem = f"not UTF-8 text (byte 0x{byte:02x}); save it as UTF-8"
        raise DataError(name, problem) from None
