"""The first lines of a CSV file: comments, then the names of the columns, which give the delimiter, too."""

import csv
import io
import re
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from raybox.errors import FileFormatError
from raybox.io.formats.columns import SECOND_NAMES, has_kind
from raybox.io.formats.common import file_error

LONGEST_ROW = 1 << 26
_SEPARATOR = re.compile("[,;]")
_BOM = "\ufeff".encode()
_OTHER = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


class CsvHeader(NamedTuple):
    """The names of the columns, what separates them, and where rows begin."""

    names: list[str]
    delimiter: str
    lines: int
    """lines before the rows"""
    start: int
    """the byte at which the rows begin"""
    line_end: bytes
    """CR if that alone ends lines, else LF"""

    @property
    def places(self) -> dict[str, int]:
        """The number of each column in a row."""
        return {name: place for place, name in enumerate(self.names)}


def read_header(path: Path) -> CsvHeader:
    """Return the header of a file, below comments.

    A comment begins with ``#``; one that names columns is the header itself, as `numpy.savetxt` writes it.
    """
    with path.open("rb") as file:
        head = file.read(4)
        other = next((name for mark, name in _OTHER.items() if head.startswith(mark)), None)
        if other or b"\0" in head:
            problem = f"is {other or 'UTF-16'} text, or no text"
            raise file_error(path, problem, "save it as UTF-8, or check that it is a CSV file")
        start = file.seek(len(_BOM) if head.startswith(_BOM) else 0)
        text, lines = io.TextIOWrapper(file, encoding="utf-8", newline=""), list[str]()

        def readline() -> str:
            lines.append(text.readline(LONGEST_ROW))
            return lines[-1]

        try:
            names, delimiter = _columns(readline)
        except csv.Error as error:
            raise quote_error(path, "header", error) from error
    line_end = b"\r" if lines[-1].endswith("\r") else b"\n"
    return CsvHeader(names, delimiter, len(lines), start + len("".join(lines).encode()), line_end)


def quote_error(path: Path, place: str, error: csv.Error) -> FileFormatError:
    """Return the error for a row that is cut off in a quoted field, or has text after one."""
    if "field limit" in str(error):
        problem = f"has a field of more than {csv.field_size_limit()} characters"
        return file_error(path, problem, "check that it is a CSV file", place)
    problem = "is not a whole table: a quoted field does not end, or text follows it"
    return file_error(path, problem, "repair the quotes", place)


def _columns(readline: Callable[[], str]) -> tuple[list[str], str]:
    """Return the names of the columns, and what separates them."""
    while (line := readline()).startswith("#"):
        for text in (line, line.lstrip("# ")) if _may_name_columns(line) else ():
            names = _split(text, _delimiter(text))
            if _has_kind(names):
                return names, _delimiter(text)
    rows = csv.reader(chain([line], iter(readline, "")), delimiter=_delimiter(line), strict=True)
    return [name.strip() for name in next(rows, [])], _delimiter(line)


def _may_name_columns(line: str) -> bool:
    """Return whether a comment has a name of columns; to parse all comments takes long."""
    return not SECOND_NAMES.isdisjoint(word.strip('#" \t\r\n') for word in _SEPARATOR.split(line.lower()))


def _delimiter(line: str) -> str:
    """Return the semicolon if only that separates a line into columns of boxes, rays or points."""
    is_semicolon = ";" in line and _has_kind(_split(line, ";")) and not _has_kind(_split(line, ","))
    return ";" if is_semicolon else ","


def _has_kind(names: list[str]) -> bool:
    return len(names) > 1 and has_kind({*names, *(name.lower() for name in names)})


def _split(line: str, delimiter: str) -> list[str]:
    """Return the names in a line; none if its quotes are broken."""
    try:
        return [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []
