"""Join parts to the output, in order, as they come: bytes are copied, nothing is encoded again.

The output is what `raybox.stream.cast` writes of the same chunks, byte for byte. Joined parts are listed once
they are on the disk (`raybox.distributed.dask.part_folder`), and removed, mostly before they reach the disk
themselves. A call that resumes reads what was joined, up to the first part whose bytes are not those of its
line, truncates the output's files to before that, and continues with the next part.
"""

from collections import deque
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from raybox.distributed.dask.part_folder import (
    PART_SUFFIX,
    JoinedPart,
    PartInfo,
    checksum_of_file,
    joined_line,
)
from raybox.io.chunked import parquet_footer as footer
from raybox.io.chunked.parquet import ParquetWriter
from raybox.io.chunked.part_files import PartFile, PartFiles
from raybox.io.chunked.result_columns import SLICE_ROWS, OutputSpec
from raybox.io.chunked.writers import WRITERS, CsvWriter, NpyWriter, Writer


class Joiner:
    """Appends parts to an output, in order, after those that are joined already."""

    def __init__(self, log: Path, spec: OutputSpec, suffix: str, joined: list[JoinedPart]) -> None:
        self.joined = joined = _undamaged(spec, suffix, joined)
        self._writer = _open(spec, suffix, joined)
        self._append = _APPEND.get(suffix, _append_rows)
        self._log = PartFile(log, sum(len(joined_line(*numbered)) for numbered in enumerate(joined)))
        self._number = len(joined)
        self._lengths = joined[-1].lengths if joined else {}
        self._unsynced = deque[tuple[Path, bytes]]()

    def add(self, path: Path, info: PartInfo) -> None:
        """Append the next part."""
        if info.rows:
            self._append(self._writer, path, info)
        files = self._writer.files
        part = JoinedPart(info, files.lengths(), _checksums(files, self._lengths, files.lengths()))
        self._lengths = part.lengths
        self._unsynced.append((path, joined_line(self._number, part)))
        self._number += 1

    def sync(self) -> None:
        """Sync the output, list the parts that are joined, and remove them.

        `add` may run meanwhile.
        """
        some = [self._unsynced[k] for k in range(len(self._unsynced))]
        if not some:
            return
        for file in self._writer.files.values():
            file.sync()
        before = self._log.length
        try:
            self._log.write(b"".join(line for _, line in some))
            self._log.sync()
        except OSError:
            self._log.truncate(before)
            raise
        for path, _ in some:
            path.unlink(missing_ok=True)
            self._unsynced.popleft()

    def finish(self, rows: int) -> None:
        """Complete the output: headers, footers, archives."""
        self._writer.finish(rows)

    def close(self) -> None:
        """Close all files."""
        self._writer.close()
        self._log.close()


def _open(spec: OutputSpec, suffix: str, joined: list[JoinedPart]) -> Writer:
    """Return the writer of an output, after the parts that are joined."""
    return WRITERS[suffix](spec, joined[-1].lengths if joined else {})


def _checksums(files: PartFiles, start: dict[str, int], end: dict[str, int]) -> dict[str, str]:
    """Return the checksum of the bytes of each file between two lengths; a length that is missing is 0."""
    return {
        name: checksum_of_file(file.path, start.get(name, 0), end.get(name, 0))
        for name, file in files.items()
    }


def _undamaged(spec: OutputSpec, suffix: str, joined: list[JoinedPart]) -> list[JoinedPart]:
    """Return the joined parts before the first whose bytes are not those that were joined."""
    lengths: dict[str, int] = {}
    with closing(_open(spec, suffix, joined)) as writer:
        for k, part in enumerate(joined):
            if _checksums(writer.files, lengths, part.lengths) != part.checksums:
                return joined[:k]
            lengths = part.lengths
    return joined


def _append_after_header(writer: NpyWriter | CsvWriter, path: Path, info: PartInfo) -> None:
    """Append a `.npy` or `.csv` part, less its header."""
    length = info.length - writer.header_length
    writer.files["results"].append_from(path, writer.header_length, length)


def _append_row_groups(writer: ParquetWriter, path: Path, info: PartInfo) -> None:
    """Append the row groups of a `.parquet` part, with offsets shifted in their footers."""
    with path.open("rb") as part:
        body_length, end = footer.read_footer(part, info.length)
    output = writer.files["results"]
    writer.add_footer(footer.shift_offsets(end, output.length - len(footer.MAGIC)))
    output.append_from(path, len(footer.MAGIC), body_length)


def _append_rows(writer: Writer, path: Path, info: PartInfo) -> None:
    """Append the rows of a `.npy` part to an output that stores columns apart."""
    with path.open("rb") as part:
        np.lib.format.read_magic(part)
        dtype = np.lib.format.read_array_header_1_0(part)[2]
        for begin in range(0, info.rows, SLICE_ROWS):
            rows = np.fromfile(part, dtype, min(SLICE_ROWS, info.rows - begin))
            writer.add({name: rows[name] for name in dtype.names or ()})


_APPEND: dict[str, Callable[[Any, Path, PartInfo], None]] = {
    ".npy": _append_after_header,
    ".csv": _append_after_header,
    ".parquet": _append_row_groups,
}
assert all((suffix in _APPEND) == (part == suffix) for suffix, part in PART_SUFFIX.items())
