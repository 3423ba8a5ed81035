"""The first lines of a table of text: comments, then names of columns, which give the delimiter, too."""

import csv
import io
import re
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from raybox.errors import FileFormatError
from raybox.io.formats.columns import SECOND_NAMES, has_kind
from raybox.io.formats.common import file_error

LONGEST_ROW = 1 << 26
SPACES = " "  # the delimiter of tables whose fields have blanks or tabs between them, one or more
_DELIMITERS = f",;\t{SPACES}"
_GIVEN = re.compile(r'"?sep=([,;:|\t ])"?\s*', re.IGNORECASE)
_COMMENTS = ("#", "//")
_SEPARATOR = re.compile(r"[,;\s]")
DECIMAL_COMMA = re.compile(r"\s*[+-]?[\d.]*,\d+([eE][+-]?\d+)?\s*")  # in a number
_BOM = "\ufeff".encode()
_OTHER = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


class CsvHeader(NamedTuple):
    """The names of the columns, what separates them, and where rows begin."""

    names: list[str]
    delimiter: str
    is_bare: bool = False  # whether the line that was read last is the first row, not a header
    has_names: bool = True  # whether the file has the names; else they are of a layout, or numbers
    lines: int = 0  # lines before the rows
    start: int = 0  # the byte at which the rows begin
    line_end: bytes = b"\n"  # CR if that alone ends lines, else LF

    @property
    def places(self) -> dict[str, int]:
        """The number of each column in a row."""
        return {name: place for place, name in enumerate(self.names)}


def read_header(path: Path, layout: Sequence[str] | None = None) -> CsvHeader:
    """Return the header of a file, below comments.

    A comment begins with ``#`` or ``//``; one that names columns is the header itself, as `numpy.savetxt` and
    CloudCompare write it. A first line ``sep=;`` gives the delimiter.
    """
    with path.open("rb") as file:
        head = file.read(4)
        other = next((name for mark, name in _OTHER.items() if head.startswith(mark)), None)
        if other or b"\0" in head:
            problem = f"is {other or 'UTF-16'} text, or no text"
            raise file_error(path, problem, "save it as UTF-8, or check that it is a CSV file")
        start = file.seek(len(_BOM) if head.startswith(_BOM) else 0)
        text = io.TextIOWrapper(file, encoding="utf-8", errors="surrogateescape", newline="")
        lines = list[str]()

        def readline() -> str:
            lines.append(text.readline(LONGEST_ROW))
            return lines[-1]

        try:
            found = _columns(readline, layout)
        except csv.Error as error:
            raise quote_error(path, "header", error) from error
    line_end = b"\r" if lines[-1].endswith("\r") else b"\n"
    if found.is_bare:
        lines.pop()
    read = "".join(lines).encode(errors="surrogateescape")
    try:
        read.decode()
    except UnicodeDecodeError as error:
        raise not_utf8(path, start + error.start) from error
    return found._replace(lines=len(lines), start=start + len(read), line_end=line_end)


def not_utf8(path: Path, position: int) -> FileFormatError:
    """Return the error for a byte that is not UTF-8."""
    way_out = "save it as UTF-8, or check that it is a CSV file"
    return file_error(path, "is not UTF-8 text", way_out, f"byte {position}")


def is_number(text: str) -> bool:
    """Return whether a text is a number, also for NumPy."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text  # Python parses 1_000, NumPy does not


def quote_error(path: Path, place: str, error: csv.Error) -> FileFormatError:
    """Return the error for a row that is cut off in a quoted field, or has text after one."""
    if "field limit" in str(error):
        problem = f"has a field of more than {csv.field_size_limit()} characters"
        return file_error(path, problem, "check that it is a CSV file", place)
    problem = "is not a whole table: a quoted field does not end, or text follows it"
    return file_error(path, problem, "repair the quotes", place)


def _columns(readline: Callable[[], str], layout: Sequence[str] | None) -> CsvHeader:
    """Return the names of the columns: of the layout, of the first line, or of a comment; else numbers."""
    line, comment, delimiters = readline(), CsvHeader([], ""), _DELIMITERS
    if given := _GIVEN.fullmatch(line):
        line, delimiters = readline(), given[1]
    while line.isspace() or line.startswith(_COMMENTS):
        comment = _in_comment(line, delimiters) or comment
        line = readline()
    most = _first_split(line, delimiters, lambda fields: len(fields) > 1).delimiter or delimiters[0]
    if layout is not None:
        found = _first_split(line, delimiters, lambda fields: len(fields) == len(layout))
        bare = CsvHeader([*layout], found.delimiter or most, is_bare=True, has_names=False)
        return found if _has_kind(found.names) else bare
    found = _first_split(line, delimiters, _has_kind)
    is_sentence = comment.delimiter == SPACES and len(line.split()) not in (0, len(comment.names))
    if not found.names and comment.names and not is_sentence:
        return comment._replace(is_bare=True)
    bare = _first_split(line, delimiters, _are_numbers)
    if not found.names and bare.names:
        names = [*"xyz"] if len(bare.names) == 3 else [str(k) for k in range(len(bare.names))]
        return bare._replace(names=names, is_bare=True, has_names=False)
    if (delimiter := found.delimiter or most) == SPACES:
        return CsvHeader(line.split(), SPACES)
    lines = chain([line], iter(readline, ""))  # in quotes, a line may end
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    return CsvHeader([name.strip() for name in next(rows, [])], delimiter)


def _in_comment(line: str, delimiters: str) -> CsvHeader | None:
    """Return the names of columns in a comment, if any; between spaces they may be words of a sentence."""
    if SECOND_NAMES.isdisjoint(word.strip('#/" ') for word in _SEPARATOR.split(line.lower())):
        return None  # to parse all comments takes long
    bare = line.lstrip("#/ \t")
    texts = [bare] if line.lstrip("#/")[:1].isspace() else [line, bare]
    return next((one for text in texts if (one := _first_split(text, delimiters, _has_kind)).names), None)


def _first_split(line: str, delimiters: str, fits: Callable[[list[str]], bool]) -> CsvHeader:
    """Return the fields of a line by the first delimiter whose fields fit; none if none does."""
    fields = (CsvHeader(_split(line, one), one) for one in delimiters)
    return next((found for found in fields if fits(found.names)), CsvHeader([], ""))


def _are_numbers(fields: list[str]) -> bool:
    return bool(fields) and all(is_number(field) or DECIMAL_COMMA.fullmatch(field) for field in fields)


def _has_kind(names: list[str]) -> bool:
    return len(names) > 1 and has_kind({*names, *(name.lower() for name in names)})


def _split(line: str, delimiter: str) -> list[str]:
    """Return the names in a line; none if its quotes are broken."""
    if delimiter == SPACES:
        return line.split()
    try:
        return [name.strip() for name in next(csv.reader([line], delimiter=delimiter), [])]
    except csv.Error:
        return []
