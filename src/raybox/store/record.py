"""The one form of what raybox stores for itself: a JSON value with its kind, version and checksum.

A record is one line, ``{"raybox": KIND, "version": N, "checksum": C, "value": ...}``. The checksum is that
of the kind, the version and the value, and nothing is parsed before it is compared. A record is a file, or
the *trailer* of one: then it comes after the data, holds their size and checksum too, and is found from the
end by a last line with its length.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Generic, NamedTuple, TypeVar

from raybox.errors import FileFormatError
from raybox.store import checksum
from raybox.store.checksum import Json
from raybox.store.disk import OutFile

T = TypeVar("T")

_MAX_BYTES = 1 << 26  # of a record: more is damage
_RECORD = re.compile(
    rb'\{"raybox": "([a-z ]{1,40})", "version": (\d{1,9}), "checksum": "([0-9a-f]{32})", "value": (.*)\}\n',
    re.DOTALL,
)
_TAIL = re.compile(rb"([0-9a-f]{8}) raybox\n")
_TAIL_BYTES = 16


class RecordKind(NamedTuple, Generic[T]):
    """A kind of record: what it is, and how its value is read."""

    name: str
    """Lower-case letters and spaces, 40 at most."""
    version: int
    """One more at each change of the value, or of the files that it is about."""
    parse: Callable[[Any], T]
    """From the JSON value. `KeyError`, `TypeError`, `ValueError` and `AttributeError` count as damage."""
    way_out: str = "write it again"
    """What a user does about a record that cannot be read."""


class Record(NamedTuple, Generic[T]):
    """A value that was read, and the checksum of its record."""

    value: T
    checksum: str


class Trailer(NamedTuple, Generic[T]):
    """A value at the end of a file, and the data before it."""

    value: T
    data_bytes: int
    data_checksum: str


class BrokenRecord(Exception):
    """The bytes are no such record; the text gives the problem."""


def encode(kind: RecordKind[Any], value: Json) -> bytes:
    """Return a record."""
    text = json.dumps(value).encode()
    found = _checksum(kind.name.encode(), b"%d" % kind.version, text)
    head = f'{{"raybox": "{kind.name}", "version": {kind.version}, "checksum": "{found}", "value": '
    return head.encode() + text + b"}\n"


def decode(kind: RecordKind[T], data: bytes) -> Record[T]:
    """Return the value of a record; raise `BrokenRecord` unless it is as it was written."""
    parts = _RECORD.fullmatch(data)
    if parts is None:
        raise BrokenRecord("is damaged, or is no record of raybox")
    name, version, found, text = parts.groups()
    if _checksum(name, version, text) != found.decode():
        raise BrokenRecord("is damaged: its checksum differs")
    if name.decode() != kind.name:
        raise BrokenRecord(f"is the record of a {name.decode()}, not of a {kind.name}")
    if int(version) != kind.version:
        raise BrokenRecord("was written by another version of raybox")
    try:
        return Record(kind.parse(json.loads(text)), checksum.of_bytes(data))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise BrokenRecord(f"is no {kind.name} of raybox") from error


def _checksum(name: bytes, version: bytes, text: bytes) -> str:
    return checksum.of_bytes(b"%s %s " % (name, version), text)


def read(kind: RecordKind[T], path: Path, file: BinaryIO) -> Record[T]:
    """Return the record that an open file holds; raise `FileFormatError` if it is no such record.

    path: of the file, for the error.
    """
    try:
        return decode(kind, file.read(_MAX_BYTES + 1))
    except BrokenRecord as error:
        raise FileFormatError(f"{path}: {error}; {kind.way_out}") from error


def append_trailer(kind: RecordKind[Any], value: Json, file: OutFile, data_checksum: str) -> None:
    """Write a trailer at the position of a file, which is its end.

    data_checksum: of all bytes before.
    """
    record = encode(kind, [file.tell(), data_checksum, value])
    file.write(record + b"%08x raybox\n" % len(record))


def read_trailer(kind: RecordKind[T], file: BinaryIO, *, check: bool) -> Trailer[T]:
    """Return the trailer of a file, which then stands at its start.

    check: read the data, and compare their checksum. Raise `BrokenRecord` unless the file is whole.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL_BYTES))
    tail = _TAIL.fullmatch(file.read(_TAIL_BYTES))
    begin = size - _TAIL_BYTES - int(tail[1], 16) if tail else -1
    if tail is None or begin < 0 or size - begin > _MAX_BYTES:
        raise BrokenRecord("has no trailer: it was cut, or was not written by raybox")
    file.seek(begin)
    parse = lambda found: Trailer(kind.parse(found[2]), int(found[0]), str(found[1]))  # noqa: E731
    outer = RecordKind(kind.name, kind.version, parse)
    trailer = decode(outer, file.read(size - _TAIL_BYTES - begin)).value
    file.seek(0)
    if trailer.data_bytes != begin:
        raise BrokenRecord(f"has {begin:,} bytes in place of {trailer.data_bytes:,}")
    if check:
        if checksum.of_file(file, begin) != trailer.data_checksum:
            raise BrokenRecord("is damaged: its checksum differs")
        file.seek(0)
    return trailer
