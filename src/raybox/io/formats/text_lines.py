"""Lines of text in any encoding and with any ends: their numbers, names, and statements that are unknown."""

import codecs
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn, TextIO, TypeVar

from raybox.io.formats.common import file_error, quoted

# UTF-32 first: its mark begins with that of UTF-16
_MARKS = {
    codecs.BOM_UTF8: "UTF-8",
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
T = TypeVar("T")
_EXACT = 2.0**53  # below it, every integer is a float64
_INTEGER = re.compile(r"[+-]?\d+")
_UNKNOWN_WORDS = 20  # reasons of their own in `skipped`


class HeaderLine(NamedTuple):
    """A line of a header: number from 1 on, text, next line."""

    number: int
    text: str
    end: int


def plain(data: bytes, path: Path) -> bytes:
    """Return data without a byte order mark; UTF-16 and UTF-32 become UTF-8."""
    mark = next((mark for mark in _MARKS if data.startswith(mark)), b"")
    if not mark or _MARKS[mark] == "UTF-8":
        return data[len(mark) :]
    try:
        return data.decode(_MARKS[mark]).encode()
    except UnicodeError as error:
        problem = f"its text in {_MARKS[mark]} is damaged"
        raise file_error(path, problem, "save it again, as UTF-8") from error


def text_lines(data: bytes, path: Path) -> TextIO:
    """Return the lines of a text; bytes beyond ASCII are for `decoded_names`."""
    return io.TextIOWrapper(io.BytesIO(plain(data, path)), "ascii", "surrogateescape")


def header_lines(data: bytes) -> Iterator[HeaderLine]:
    """Yield header lines, which end like the first: with CR or LF."""
    first = re.search(rb"\r\n?|\n", data)
    mark, at, number = (b"\r" if first and first[0] == b"\r" else b"\n"), 0, 0
    while (end := data.find(mark, at)) >= 0:
        number += 1
        yield HeaderLine(number, data[at:end].decode("ascii", errors="replace").strip(), end + 1)
        at = end + 1


def body_lines(data: bytes) -> list[str]:
    """Return the lines of the text after a header that are not blank."""
    return [line.decode("latin-1") for line in data.splitlines() if line.strip()]


def text_rows(
    lines: list[str], parse: Callable[[list[str]], T], path: Path, place: str, problem: str = ""
) -> Iterator[T]:
    """Yield `parse` of the words of each line; place: with {} for the number of the row, from 0 on."""
    for row, line in enumerate(lines):
        try:
            yield parse(line.split())
        except ValueError as error:
            text = f"{quoted(line)}{problem}: {error}"
            raise file_error(path, text, "correct the row", place.format(row)) from error


def floats(words: Sequence[str]) -> list[float]:
    """Return the nearest float64 of each word; integers must be exact, else `ValueError`."""
    try:
        numbers = list(map(float, words))
    except ValueError:
        numbers = []
    if numbers and "_" not in "".join(words) and -_EXACT < min(numbers) <= max(numbers) < _EXACT:
        return numbers
    return list(map(_exact, words))


def _exact(word: str) -> float:
    try:
        number = float("" if "_" in word else word)
    except ValueError:
        raise ValueError(f"{quoted(word)} is not a number") from None
    if abs(number) >= _EXACT and _INTEGER.fullmatch(word) and int(word) != number:
        raise ValueError(f"float64 does not hold the integer {quoted(word)} exactly")
    return number


def decoded_names(names: Sequence[str], skipped: Counter[str], unnamed: str) -> list[str]:
    """Return names as UTF-8, or `unnamed`; count names that are not, and those that become equal."""
    given = [name.encode("ascii", "surrogateescape") for name in names]
    found = [name.decode(errors="replace") for name in given]
    skipped["names that are not UTF-8"] += sum(
        text.encode() != name for text, name in zip(found, given, strict=True)
    )
    skipped["different names that are equal without what is not UTF-8"] += len({*given}) - len({*found})
    return [name or unnamed for name in found]


def count_unknown(key: str, skipped: Counter[str]) -> None:
    """Count a statement that a format does not have, under its word; many different words together."""
    word = key.encode("ascii", "surrogateescape").decode(errors="replace")
    reason = f"lines of {quoted(word)}, which raybox does not know"
    is_other = reason not in skipped and len(skipped) >= _UNKNOWN_WORDS
    skipped["lines of other words that raybox does not know" if is_other else reason] += 1


def refuse_line(path: Path, line: str, problem: str, place: str) -> NoReturn:
    """Raise the error about a line of a text."""
    way_out = "correct or remove the line"
    if "\0" in line:
        problem, way_out = "is binary, or UTF-16 without a byte order mark", "save it as text in UTF-8"
    text = quoted(line.encode("utf-8", "surrogateescape").decode(errors="replace").strip())
    raise file_error(path, f"{text} {problem}", way_out, place)
