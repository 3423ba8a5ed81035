"""The first lines of a CSV file: comments, then the names of the columns, which give the delimiter, too."""

import csv
import re
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

from raybox.io.formats.columns import SECOND_NAMES, has_kind

_SEPARATOR = re.compile("[,;]")


class CsvHeader(NamedTuple):
    """The names of the columns, what separates them, and the number of lines up to their end."""

    names: list[str]
    delimiter: str
    lines: int


def read_header(readline: Callable[[], str]) -> CsvHeader:
    """Return the header that a file begins with, below comments; raise `csv.Error` for broken quotes.

    A comment begins with ``#``; one that names columns is the header itself, as `numpy.savetxt` writes it.
    """
    lines = 0
    while (line := readline()).startswith("#"):
        lines += 1
        header = _comment_header(line, lines)
        if header:
            return header
    delimiter = _delimiter(line)
    rows = csv.reader(chain([line], iter(readline, "")), delimiter=delimiter, strict=True)
    names = [name.strip() for name in next(rows, [])]
    return CsvHeader(names, delimiter, lines + rows.line_num)


def _comment_header(line: str, lines: int) -> CsvHeader | None:
    """Return the columns that a comment names; None if they are none of boxes, rays or points."""
    if SECOND_NAMES.isdisjoint(word.strip('#" \t\r\n') for word in _SEPARATOR.split(line.lower())):
        return None  # most comments: to parse them all takes long
    for text in (line, line.lstrip("# ")):
        delimiter = _delimiter(text)
        names = _split(text, delimiter)
        if _has_kind(names):
            return CsvHeader(names, delimiter, lines)
    return None


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
