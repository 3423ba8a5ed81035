"""`.npz` and `.zarr` keep columns apart: a file for each grows, and at the end they are put together."""

import io
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from raybox.files.arrays import member
from raybox.files.common import require
from raybox.stream.answers import Columns
from raybox.stream.part_files import Part, Parts
from raybox.stream.plain import Task, names_of, slices

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
