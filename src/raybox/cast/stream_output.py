"""CSV to an open file, in order, as parts come; it cannot be continued."""

from typing import BinaryIO

from raybox.cast.output import Totals
from raybox.cast.part import PART, PartInfo
from raybox.cast.result_columns import OutputSpec
from raybox.io.formats import csv_table
from raybox.store import record
from raybox.store.folder import Folder

_COPIED = 1 << 20  # bytes that are copied at once


class StreamOutput:
    """Writes the lines of parts."""

    name = ""

    def __init__(self, parts: Folder, spec: OutputSpec, file: BinaryIO) -> None:
        self._parts, self._spec, self._file = parts, spec, file
        self._waiting: dict[int, PartInfo] = {}
        self._next, self._has_header = 0, False
        self._totals = Totals()

    @property
    def parts(self) -> list[PartInfo]:
        """No part: a stream is not continued."""
        return []

    def cut(self, count: int) -> None:
        """Do nothing."""

    def add(self, part: PartInfo) -> None:
        """Write a part, and those after it that wait for it; or let it wait."""
        self._waiting[part.number] = part
        while (following := self._waiting.pop(self._next, None)) is not None:
            self._write_header()
            with self._parts.open(following.name) as file:
                record.read_trailer(PART, file, check=True)
                self._copy(file, following.body[1])
            self._parts.remove(following.name)
            self._next, self._totals = self._next + 1, self._totals.plus(following)

    def _copy(self, source: BinaryIO, left: int) -> None:
        while left:
            data = source.read(min(left, _COPIED))
            self._file.write(data)
            left -= len(data)

    def _write_header(self) -> None:
        if not self._has_header:
            self._file.write(csv_table.line([*self._spec.dtypes]))
        self._has_header = True

    def sync(self) -> None:
        """Do nothing: the file is its owner's."""

    def finish(self) -> Totals:
        """Flush the file."""
        self._write_header()
        self._file.flush()
        return self._totals

    def close(self) -> None:
        """Do nothing: the file is its owner's."""
