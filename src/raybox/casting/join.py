"""One file joined of parts, in order, as they come: bytes are copied, nothing is encoded again.

Joined parts are listed in ``joined``, a record a line, once their bytes are on the disk; then the part files
are removed, mostly before they reach the disk themselves. The bytes of a part are read again, from the
output, before the part counts. A call that continues compares all joined bytes with these records, and
cuts the output before the first part that differs.
"""

from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple

from raybox.casting.append_file import AppendFile
from raybox.casting.join_formats import FORMATS, JoinFormat
from raybox.casting.output import Output, Totals
from raybox.casting.part import PART, PartInfo, open_part
from raybox.casting.result_columns import OutputSpec
from raybox.casting.steps import step
from raybox.store import record
from raybox.store.folder import Folder
from raybox.store.record import BrokenRecord, RecordKind

LOG = "joined"


class JoinedPart(NamedTuple):
    """A part that is joined."""

    part: PartInfo
    lengths: dict[str, int]
    """Of the output's files after it."""
    checksums: dict[str, str]
    """Of the bytes that each file got with it."""
    extra: str
    """What the format needs of it at the end."""


def _parsed(value: Any) -> JoinedPart:
    part, lengths, checksums, extra = value
    return JoinedPart(PART.parse(part), {k: int(v) for k, v in lengths.items()}, dict(checksums), str(extra))


JOINED = RecordKind("joined part", 1, _parsed)


class JoinedOutput(Output):
    """Appends parts to an output, in order, after those that are joined already."""

    def __init__(self, folder: Folder, parts: Folder, spec: OutputSpec, suffix: str) -> None:
        self._folder, self._parts = folder, parts
        self._format = FORMATS[suffix](folder, spec, suffix)
        self.name = self._format.name
        self._log = AppendFile(folder, LOG)
        self._joined = _undamaged(folder, self._format)
        super().__init__([joined.part for joined in self._joined])
        self._unsynced = deque[JoinedPart]()
        self._cut_files()

    def cut(self, count: int) -> None:
        """Forget all but the first `count` parts."""
        if count < len(self.parts):
            super().cut(count)
            del self._joined[count:]
            self._cut_files()

    def _cut_files(self) -> None:
        """Cut the files after the parts that are joined."""
        lengths = self._joined[-1].lengths if self._joined else {}
        self._log.truncate(sum(len(record.encode(JOINED, joined)) for joined in self._joined))
        for name, file in self._format.files.items():
            file.truncate(lengths.get(name, 0))
            if not self._joined:
                file.write(self._format.header(0))

    def _append(self, part: PartInfo) -> None:
        """Join a part."""
        joined = self._join(part)
        self._joined.append(joined)
        self._unsynced.append(joined)
        step("part joined")

    def _join(self, part: PartInfo) -> JoinedPart:
        """Append the bytes of a part, and read them again."""
        files = self._format.files
        before = {name: file.length for name, file in files.items()}
        with open_part(self._parts, part, check=False) as opened:
            try:
                checksums, extra = self._format.append(part, opened.file, opened.trailer)
            except BrokenRecord:
                for name, length in before.items():
                    files[name].truncate(length)
                raise
        lengths = {name: file.length for name, file in files.items()}
        return JoinedPart(part, lengths, checksums, extra)

    def sync(self) -> None:
        """Sync the output, list the parts that are joined, and remove them."""
        some = [self._unsynced[k] for k in range(len(self._unsynced))]
        if not some:
            return
        for file in self._format.files.values():
            file.sync()
        step("prefix synced")
        before = self._log.length
        try:
            self._log.write(b"".join(record.encode(JOINED, joined) for joined in some))
            self._log.sync()
        except OSError:
            self._log.truncate(before)
            raise
        step("prefix stored")
        for joined in some:
            self._parts.remove(joined.part.name)
            self._unsynced.popleft()
            step("part removed")

    def finish(self) -> Totals:
        """Complete the output: headers, footers, archives."""
        totals = self.totals
        self._format.finish(totals.rows, [joined.extra for joined in self._joined])
        return totals

    def close(self) -> None:
        """Close all files; what is not listed is cut off, which frees space: its parts are still there."""
        listed = self._joined[: len(self._joined) - len(self._unsynced)]
        for name, file in self._format.files.items():
            with suppress(OSError):
                if self._unsynced:
                    file.truncate(listed[-1].lengths[name] if listed else 0)
                file.close()
        self._log.close()


def joined_parts(folder: Folder) -> list[PartInfo]:
    """Return the parts that are listed as joined."""
    return [joined.part for joined in _read_log(folder)]


def _read_log(folder: Folder) -> list[JoinedPart]:
    """Return the joined parts in the list, from the first on, as far as its lines are whole."""
    found = list[JoinedPart]()
    with suppress(FileNotFoundError, BrokenRecord), folder.open(LOG) as log:
        for line in log:
            joined = record.decode(JOINED, line).value
            if joined.part.number != len(found):
                break
            found.append(joined)
    return found


def _undamaged(folder: Folder, form: JoinFormat) -> list[JoinedPart]:
    """Return the joined parts before the first whose bytes are not those that were joined."""
    listed, lengths = _read_log(folder), dict.fromkeys(form.files, len(form.header(0)))
    for k, joined in enumerate(listed):
        if not _is_whole(form.files, lengths, joined):
            return listed[:k]
        lengths = joined.lengths
    return listed


def _is_whole(files: dict[str, AppendFile], start: dict[str, int], found: JoinedPart) -> bool:
    """Return whether the files have the bytes of a part that is listed."""
    if set(files) != set(found.lengths):
        return False
    return all(
        file.length >= found.lengths[name]
        and file.checksum(start.get(name, 0), found.lengths[name]) == found.checksums.get(name)
        for name, file in files.items()
    )
