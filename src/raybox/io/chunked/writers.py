"""Writers of each format: rows are appended in order, and a whole file is made of them at the end.

`.npy`, `.csv` and `.parquet` grow as they are. `.npz` and `.zarr` keep columns apart: a file for each grows,
and at the end they are put together. `raybox.io.chunked.parquet` has the writer of `.parquet`.
"""

import csv
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from raybox.io.chunked.journal import folder_of
from raybox.io.chunked.parquet import Parquet
from raybox.io.chunked.part_files import Part, Parts
from raybox.io.chunked.result_columns import Task, names_of, slices
from raybox.io.formats.common import broken, require
from raybox.io.formats.csv_table import plain_numbers
from raybox.io.formats.numpy_arrays import member
from raybox.io.formats.saving import check_target
from raybox.queries.columns import Columns


class Npy:
    """One table with named columns."""

    def __init__(self, task: Task, lengths: dict[str, int]) -> None:
        self._task, self._names = task, names_of(task)
        self._whole = task.folder / "answers.npy"
        self.parts = Parts(answers=Part(self._whole, lengths.get("answers", 0)))
        self.close = self.parts.close
        self._kind = np.dtype(list(task.kinds.items()))
        self.head = len(self._header(0))
        if not self.parts["answers"].length:
            self.parts["answers"].write(self._header(0))

    def add(self, columns: Columns) -> None:
        """Append rows."""
        for some in slices(columns, self._task, self._names):
            table = np.empty(len(some["ray"]), self._kind)
            for name, column in some.items():
                table[name] = column
            self.parts["answers"].write(table)

    def finish(self, rows: int) -> None:
        """Say how many rows there are, where NumPy leaves room for that."""
        header = self._header(rows)
        assert len(header) == self.head
        with self._whole.open("r+b") as file:
            file.write(header)

    def _header(self, rows: int) -> bytes:
        out = io.BytesIO()
        described = np.lib.format.dtype_to_descr(self._kind)
        np.lib.format.write_array_header_1_0(
            out, {"descr": described, "fortran_order": False, "shape": (rows,)}
        )
        return out.getvalue()


class Csv:
    """Text, as `raybox.save` writes it."""

    def __init__(self, task: Task, lengths: dict[str, int]) -> None:
        self._task, self._names = task, names_of(task)
        self.parts = Parts(answers=Part(task.folder / "answers.csv", lengths.get("answers", 0)))
        self.close = self.parts.close
        self.head = len(_line(task))
        if not self.parts["answers"].length:
            self.parts["answers"].write(_line(task))

    def add(self, columns: Columns) -> None:
        """Append rows."""
        for some in slices(columns, self._task, self._names):
            self.parts["answers"].write(_lines(some))

    def finish(self, rows: int) -> None:
        """Need nothing more."""


class CsvTo:
    """Text, to somebody who reads it right away: nothing can be taken back."""

    def __init__(self, task: Task, file: BinaryIO) -> None:
        self._task, self._names, self._file = task, names_of(task), file
        self._begun = False
        self.parts = Parts()
        self.close = self.parts.close

    def add(self, columns: Columns) -> None:
        """Write rows."""
        self._begin()
        for some in slices(columns, self._task, self._names):
            self._file.write(_lines(some))

    def finish(self, rows: int) -> None:
        """Let all of it go."""
        self._begin()
        self._file.flush()

    def _begin(self) -> None:
        if not self._begun:
            self._file.write(_line(self._task))
        self._begun = True


def _line(task: Task) -> bytes:
    return (",".join(task.kinds) + "\n").encode()


def _lines(columns: dict[str, NDArray[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(plain_numbers(columns))
    return text.getvalue().encode()


_BYTES = 1 << 22  # copied at once
ZARR_ROWS = 1 << 20  # rows of a chunk of an array


class _Apart:
    """What both have in common: numbers of a column one after the other."""

    def __init__(self, task: Task, lengths: dict[str, int]) -> None:
        self.task, self._names = task, names_of(task)
        paths = {name: task.folder / f"column.{name}" for name in task.kinds}
        self.parts = Parts({name: Part(path, lengths.get(name, 0)) for name, path in paths.items()})

    def add(self, columns: Columns) -> None:
        for some in slices(columns, self.task, self._names):
            for name, column in some.items():
                self.parts[name].write(np.ascontiguousarray(column, self.task.kinds[name]))

    def read(self, name: str, file: BinaryIO, rows: int) -> Any:
        """Give the next rows of a column."""
        self.task.check()
        return np.fromfile(file, self.task.kinds[name], rows)


class Npz:
    """One array for each column."""

    def __init__(self, task: Task, lengths: dict[str, int]) -> None:
        self._apart = _Apart(task, lengths)
        self.parts, self.add, self.close = self._apart.parts, self._apart.add, self._apart.parts.close
        self._whole = task.folder / "answers.npz"

    def finish(self, rows: int) -> None:
        """Put the columns into one archive."""
        task = self._apart.task
        with zipfile.ZipFile(self._whole, "w") as archive:
            for name, kind in task.kinds.items():
                with archive.open(member(name), "w", force_zip64=True) as out, _open(task, name) as file:
                    head = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False}
                    _header(out, head | {"shape": (rows,)})
                    while data := file.read(_BYTES):
                        task.check()
                        out.write(data)


class Zarr:
    """A group with one array for each column (Zarr version 3), not compressed: floats hardly shrink."""

    def __init__(self, task: Task, lengths: dict[str, int]) -> None:
        self._zarr = require("zarr", "zarr", ".zarr")
        self._apart = _Apart(task, lengths)
        self.parts, self.add, self.close = self._apart.parts, self._apart.add, self._apart.parts.close
        self._whole = task.folder / "answers.zarr"

    def finish(self, rows: int) -> None:
        """Put the columns into one group."""
        task = self._apart.task
        group = self._zarr.open_group(self._whole, mode="w", zarr_format=3)
        for name, kind in task.kinds.items():
            array = group.create_array(
                name,
                shape=(rows,),
                chunks=(min(ZARR_ROWS, max(1, rows)),),
                dtype=_zarrs(kind),
                compressors=None,
            )
            with _open(task, name) as file:
                for start in range(0, rows, ZARR_ROWS):
                    some = self._apart.read(name, file, ZARR_ROWS)
                    array[start : start + len(some)] = some.astype(_zarrs(kind), copy=False)


def _zarrs(kind: np.dtype[Any]) -> Any:
    """Give the type of an array; text of any length is what Zarr has a stable word for."""
    return str if kind.kind == "U" else kind


def _open(task: Task, name: str) -> BinaryIO:
    return Path(task.folder / f"column.{name}").open("rb")


def _header(out: Any, head: dict[str, Any]) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, head)
    out.write(header.getvalue())


class Sink(Protocol):
    """Rows are added in order; ``finish`` makes a whole file of them, as often as it is asked to."""

    @property
    def parts(self) -> Parts:
        """The files that grow; cut back to lengths that were theirs, they hold what they held then."""
        ...

    def add(self, columns: Columns) -> None:
        """Append rows; the column ``id`` is the sink's to add."""
        ...

    def finish(self, rows: int) -> None:
        """Write what a whole file has and a growing one has not."""
        ...

    def close(self) -> None:
        """Close the files."""
        ...


SINKS: dict[str, Callable[[Task, dict[str, int]], Sink]] = {
    ".npz": Npz,
    ".npy": Npy,
    ".csv": Csv,
    ".parquet": Parquet,
    ".zarr": Zarr,
}


def check_out(path: Path) -> None:
    """Refuse, before any work, a place that cannot be written to."""
    if path.suffix.lower() != ".zarr":
        check_target(path, tuple(SINKS))
        return
    if path.exists() and not folder_of(path).exists():
        raise broken(path, "is there already", "remove it first, or give another name")
    if not path.resolve().parent.is_dir():
        raise broken(path, f"cannot be written: there is no folder {path.parent}", "make the folder first")
    require("zarr", "zarr", ".zarr")
