"""Damaged copies of a file, the same ones for the same seed, and what reading one of them comes to."""

import re
import signal
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import raybox as rb
from raybox.io.formats import read

SECONDS = 10  # of processor time: a mutant that is read for longer hangs
MEMORY = 100e6  # bytes that a sample of a few kilobytes may need
# Texts of Python's and NumPy's own errors; "buffer" alone is a word of glTF.
FOREIGN = re.compile(
    r"in list|invalid literal|could not convert|unpack|buffer size|buffer is|whole buffer|out of range"
    r"|Error\b|\bOverflow|not readable as|dtype|cannot reshape|\(\)|\('\w+'\)|too large to convert|codec"
)


class _TooSlow(BaseException):
    """Not an Exception: readers turn those into errors of the file."""


class Tally(NamedTuple):
    """Counts of mutants: those read, those refused as they should be, and the faults of raybox."""

    read: int = 0
    refused: int = 0
    foreign: int = 0
    worded: int = 0
    slow: int = 0
    large: int = 0

    @property
    def faults(self) -> int:
        """Mutants with a foreign exception, with Python's words in the text, too slow, or too large."""
        return sum(self[2:])


def mutants(content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Yield damaged copies: flipped bits, ends cut off, pieces moved, doubled or removed, huge numbers."""
    rng = np.random.default_rng(seed)
    kinds = (_flipped, _cut, _spliced, _huge)
    for k in range(count):
        yield kinds[k % len(kinds)](content, rng)


def _flipped(content: bytes, rng: np.random.Generator) -> bytes:
    bent = bytearray(content)
    for at in rng.integers(0, len(bent), rng.integers(1, 4)):
        bent[at] ^= 1 << int(rng.integers(8))
    return bytes(bent)


def _cut(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: rng.integers(0, len(content))]


def _spliced(content: bytes, rng: np.random.Generator) -> bytes:
    """Overwrite, insert or remove a piece."""
    source, target = rng.integers(0, len(content), 2)
    length = int(rng.integers(1, 65))
    piece = content[source : source + length] if rng.integers(3) else b""
    removed = length if rng.integers(2) else 0
    return content[:target] + piece + content[target + removed :]


def _huge(content: bytes, rng: np.random.Generator) -> bytes:
    """Announce 10^12 where a number is in the text, or set four bytes to the largest integer."""
    numbers = list(re.finditer(rb"\d+", content))
    if numbers and rng.integers(2):
        number = numbers[rng.integers(len(numbers))]
        return content[: number.start()] + b"1000000000000" + content[number.end() :]
    at = int(rng.integers(0, len(content)))
    return content[:at] + bytes([255, 255, 255, [127, 255][rng.integers(2)]]) + content[at + 4 :]


def tally(path: Path, files: Iterator[bytes], options: dict[str, object]) -> tuple[Tally, list[str]]:
    """Read each file under one name; return the counts, and a line about each fault."""
    signal.signal(signal.SIGPROF, _too_slow)
    counts, faults = dict.fromkeys(Tally._fields, 0), list[str]()
    for number, content in enumerate(files):
        path.write_bytes(content)
        found, text = _outcome(path, options)
        counts[found] += 1
        if found not in ("read", "refused"):
            faults.append(f"{path.name}, mutant {number}: {found}: {text}")
    return Tally(**counts), faults


def _outcome(path: Path, options: dict[str, object]) -> tuple[str, str]:
    """Return the field of `Tally` that a file counts for, and the text of its error."""
    found, text = "read", ""
    tracemalloc.start()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        read(path, **options)
    except rb.FileFormatError as error:
        text = str(error)
        plain = text.removeprefix(str(path))
        found = "worded" if "\n" in text or FOREIGN.search(re.sub(r"'.*?'", "", plain)) else "refused"
    except _TooSlow:
        found = "slow"
    except BaseException as error:  # a panic of compiled code is no Exception
        found, text = "foreign", f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return ("large", f"{peak} bytes") if peak > MEMORY else (found, text)


def _too_slow(_signal: int, _frame: object) -> None:
    raise _TooSlow
