"""PCD: points of the Point Cloud Library, as text, binary, or compressed.

Names of fields and of header lines may be in capitals. Without POINTS, there are WIDTH x HEIGHT points; with
it, these change nothing. Compressed fields are stored one after another, each for all points.
"""

import struct
from collections.abc import Container
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.io.formats.common import FileArrays, Floats, ReadOptions, file_error, quoted
from raybox.io.formats.mesh_parts import check_end, cut_off
from raybox.io.formats.tables import Announced
from raybox.io.formats.text_lines import body_lines, floats, header_lines, plain, refuse_line, text_rows
from raybox.validation import Array

TYPES = {"F4", "F8", "I1", "I2", "I4", "I8", "U1", "U2", "U4", "U8"}
AXES = ("x", "y", "z")
ENCODINGS = ("ascii", "binary", "binary_compressed")
_SIZES = struct.Struct("<II")  # in front of compressed data: their size, and the size of what they stand for
_COUNTS = ("POINTS", "WIDTH", "HEIGHT")
_KEYS = {"", "VERSION", "FIELDS", "SIZE", "TYPE", "COUNT", "VIEWPOINT", "DATA", *_COUNTS}
_PADDING = b"\0"  # versions of PCL append zeros, up to a page
_MOST_EXPANSION = 88  # bytes that one compressed byte can become at most: 3 bytes repeat at most 264
_LITERAL = 32  # a smaller control byte begins a run of literal bytes


class Field(NamedTuple):
    """A field of each point: its name, NumPy's type, its numbers."""

    name: str
    type: str
    numbers: int

    @property
    def size(self) -> int:
        """Bytes of the field in a point."""
        return int(self.type[-1]) * self.numbers


class PcdHeader(NamedTuple):
    """Fields of a point, number of points, encoding of the data."""

    fields: list[Field]
    rows: int
    encoding: str
    end: int

    def axes(self) -> list[int]:
        """Return the numbers of the first fields x, y and z."""
        names = [field.name if field.numbers else "" for field in self.fields]
        return [names.index(axis) for axis in AXES]


def read(path: Path, options: ReadOptions) -> FileArrays:
    """Return the fields x, y, z of a PCD file."""
    whole = plain(path.read_bytes(), path)
    header = _header(whole, path)
    if header.rows:
        points = _numbers(whole, header, header.axes(), path)
    else:
        points = np.zeros((0, 3))
        check_end(path, whole[header.end :], _PADDING)
    where = lambda _, index: f"point {index[0]} (the first is 0), column {'xyz'[index[1]]}"  # noqa: E731
    return FileArrays({"points": points}, where)


def columns(path: Path, names: Container[str]) -> dict[str, Floats]:
    """Return the fields whose names in small letters are among some; of several numbers, the first."""
    whole = plain(path.read_bytes(), path)
    header = _header(whole, path)
    chosen = [k for k, field in enumerate(header.fields) if field.numbers and field.name.lower() in names]
    if not chosen or not header.rows:
        return {}
    found = _numbers(whole, header, chosen, path)
    return {header.fields[k].name: found[:, column] for column, k in enumerate(chosen)}


def announced(path: Path) -> Announced:
    """Return the number of points in the header."""
    return Announced(_header(plain(path.read_bytes(), path), path).rows)


def _header(data: bytes, path: Path) -> PcdHeader:
    """Return the checked header."""
    lines, start = dict[str, list[str]](), 0
    for number, text, end in header_lines(data):
        key, *words = [""] if text.startswith("#") else text.split() or [""]
        key = key.upper()
        if key in lines or key not in _KEYS:
            refuse_line(path, text, "is no line of a PCD header, or one that comes again", f"line {number}")
        if key:
            lines[key] = words
        if key == "DATA":
            start = end
            break
    try:
        encoding = " ".join(_words(lines, "DATA")).lower()
        if encoding not in ENCODINGS:
            way_out = "convert it: pcl_convert_pcd_ascii_binary IN OUT 1"
            problem = f"its DATA is {quoted(encoding)}, raybox reads {', '.join(ENCODINGS)}"
            raise file_error(path, problem, way_out, "header")
        fields = _fields(lines)
        counts = {key: _whole(_words(lines, key)[0], key) for key in lines if key in _COUNTS}
        if not counts.keys() & {"POINTS", "WIDTH"}:
            raise ValueError("lacks POINTS, and WIDTH, too")
        rows = counts.get("POINTS", counts.get("WIDTH", 0) * counts.get("HEIGHT", 1))
        return PcdHeader(fields, rows, encoding, start)
    except ValueError as error:
        raise file_error(path, str(error), "check that it is a whole PCD file", "header") from error


def _fields(lines: dict[str, list[str]]) -> list[Field]:
    """Return the fields; X is the axis x if no other is."""
    names, fields = _words(lines, "FIELDS"), list[Field]()
    columns = [_words(lines, "TYPE"), _words(lines, "SIZE"), lines.get("COUNT") or ["1"] * len(names)]
    for key, words in zip(("TYPE", "SIZE", "COUNT"), columns, strict=True):
        if len(words) != len(names):
            raise ValueError(f"has {len(names)} FIELDS, but {len(words)} words after {key}")
    for name, kind, size, count in zip(names, *columns, strict=True):
        if kind.upper() + size not in TYPES:
            raise ValueError(f"field {quoted(name)} has type {quoted(f'{kind} {size}')}")
        is_axis = name.lower() in AXES and name.lower() not in names
        numbers = _whole(count, "COUNT")
        fields.append(Field(name.lower() if is_axis else name, f"<{kind.lower()}{size}", numbers))
    for axis in AXES:
        if not any(field.name == axis and field.numbers for field in fields):
            raise ValueError(f"lacks the field {axis}; it has {quoted(' '.join(names))}")
    return fields


def _words(lines: dict[str, list[str]], key: str) -> list[str]:
    if not lines.get(key):
        raise ValueError(f"lacks {key}")
    return lines[key]


def _whole(word: str, key: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= 18):
        raise ValueError(f"{key} is {quoted(word)}, not a whole number from 0 on")
    return int(word)


def _numbers(whole: bytes, header: PcdHeader, chosen: list[int], path: Path) -> Floats:
    """Return the first number of some fields of all points, a column each."""
    return (_text if header.encoding == "ascii" else _packed)(whole, header, chosen, path)


def _text(whole: bytes, header: PcdHeader, chosen: list[int], path: Path) -> Floats:
    """Return fields of a text body: one point a line."""
    starts = [0, *accumulate(field.numbers for field in header.fields)]
    columns, lines = [starts[k] for k in chosen], body_lines(whole[header.end :])
    if len(lines) < header.rows:
        raise cut_off(path, f"point {len(lines)} of {header.rows}")
    if len(lines) > header.rows:
        problem = f"has {len(lines)} points, but its header announces {header.rows}"
        raise file_error(path, problem, "correct the header", f"point {header.rows}")

    def point(words: list[str]) -> list[float]:
        if len(words) != starts[-1]:
            raise ValueError(f"{len(words)} words, the header announces {starts[-1]}")
        return floats([words[column] for column in columns])

    return np.array(list(text_rows(lines, point, path, "point {}", " is not a point")))


def _packed(whole: bytes, header: PcdHeader, chosen: list[int], path: Path) -> Floats:
    """Return fields of a binary body: stored point by point, or field by field if it is compressed."""
    steps = [field.size for field in header.fields]
    width = sum(steps)
    if header.encoding == "binary":
        starts, data, end = [*accumulate(steps, initial=header.end)], whole, header.end + header.rows * width
        steps = [width] * len(steps)
        if end > len(whole):
            raise cut_off(path, f"byte {len(whole)}")
        check_end(path, whole[end:], _PADDING)
    else:
        starts = [*accumulate((size * header.rows for size in steps), initial=0)]
        data = _decompressed(whole, starts[-1], header.end, path)
    found = np.empty((header.rows, len(chosen)))
    for column, k in enumerate(chosen):
        numbers: Array = np.ndarray((header.rows,), header.fields[k].type, data, starts[k], (steps[k],))
        try:
            found[:, column] = validation.floats(numbers, "numbers")
        except InvalidInput as error:
            problem = f"field {header.fields[k].name} has an integer that float64 does not hold exactly"
            raise file_error(path, problem, "subtract an offset, or store it as F 8") from error
    return found


def _decompressed(whole: bytes, wanted: int, start: int, path: Path) -> bytes:
    """Return the bytes of a compressed body, whose sizes are checked first."""
    data, place = whole[start:], f"byte {start}"
    packed, size = _SIZES.unpack_from(data) if len(data) >= _SIZES.size else (len(data), 0)
    end = _SIZES.size + packed
    if end > len(data):
        raise cut_off(path, f"byte {len(whole)}")
    if size != wanted or size > packed * _MOST_EXPANSION:
        problem = f"{packed} compressed bytes announce {size} bytes, while the header announces {wanted}"
        raise file_error(path, problem, "copy or download it again", place)
    check_end(path, data[end:], _PADDING)
    try:
        return decompress_lzf(data[_SIZES.size : end], size)
    except ValueError as error:
        problem = f"its compressed data are damaged ({error})"
        raise file_error(path, problem, "copy or download it again", place) from error


def decompress_lzf(data: bytes, size: int) -> bytes:
    """Return the ``size`` bytes that LZF data stand for (format: LibLZF by Marc Lehmann).

    A control byte below 32 is followed by that many literal bytes and one more. Any other one refers back:
    its upper three bits are a length (7: the next byte is added), its lower five and the following byte a
    distance. Raise `ValueError` for data that end within a run, refer back before the first byte, or have
    another size.
    """
    out = bytearray()
    at, end = 0, len(data)
    try:
        while at < end and len(out) <= size:
            control = data[at]
            at += 1
            if control < _LITERAL:
                out += data[at : at + control + 1]
                at += control + 1
                continue
            length = control >> 5
            if length == 7:
                length += data[at]
                at += 1
            start = len(out) - ((control & 31) << 8) - data[at] - 1
            at += 1
            if start < 0:
                raise ValueError(f"a reference to {-start} bytes before the first one")
            piece = out[start : start + length + 2]  # it ends early if it overlaps what it appends
            out += (piece * ((length + 2) // len(piece) + 1))[: length + 2]
    except IndexError as error:
        raise ValueError("a reference that is cut off") from error
    if at > end:
        raise ValueError("a run of bytes that is cut off")
    if len(out) != size:
        more = "more than" if len(out) > size else f"{len(out)} of"
        raise ValueError(f"{more} {size} bytes")
    return bytes(out)
