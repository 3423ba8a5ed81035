"""CSV to an open file, in order, as parts come; it cannot be continued."""

from typing import BinaryIO

from raybox.casting.output import Output, Totals
from raybox.casting.part import PartInfo, open_part
from raybox.casting.result_columns import OutputSpec
from raybox.io.formats import csv_table
from raybox.store.folder import Folder

_COPIED = 1 << 20  # bytes that are copied at once


class StreamOutput(Output):
    """Writes the lines of parts."""

    def __init__(self, parts: Folder, spec: OutputSpec, file: BinaryIO) -> None:
        super().__init__()
        self._folder, self._spec, self._file = parts, spec, file

    def _append(self, part: PartInfo) -> None:
        """Write the lines of a part, and remove it."""
        if not self.parts:
            self._write_header()
        with open_part(self._folder, part, check=True) as opened:
            left = part.body[1]
            while left:
                data = opened.file.read(min(left, _COPIED))
                self._file.write(data)
                left -= len(data)
        self._folder.remove(part.name)

    def _write_header(self) -> None:
        self._file.write(csv_table.line([*self._spec.dtypes]))

    def sync(self) -> None:
        """Do nothing: the file is its owner's."""

    def finish(self) -> Totals:
        """Flush the file."""
        if not self.parts:
            self._write_header()
        self._file.flush()
        return self.totals
