"""Parts of a dataset in Zarr: a chunk of each column, which is a file where the finished group has it.

The part file lists the checksums of its chunks.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from raybox.casting.append_file import sync_file
from raybox.casting.part import PART, PartFile, PartInfo
from raybox.casting.result_columns import OutputSpec, id_array, row_slices
from raybox.io.formats.common import require
from raybox.io.formats.tables import QUERY_KEY
from raybox.queries.columns import Columns
from raybox.store import checksum, record
from raybox.store.folder import Folder
from raybox.validation import Array, Dtype

GROUP = "group"
"""The folder of the group, next to that of the parts."""


class ZarrWriter:
    """A chunk for each column."""

    def __init__(self, spec: OutputSpec, file: PartFile) -> None:
        self._spec, self._file, self._ids = spec, file, id_array(spec)
        self._slices: dict[str, list[Array]] = {name: [] for name in spec.dtypes}

    def add(self, columns: Columns) -> None:
        """Append rows."""
        for some in row_slices(columns, self._spec, self._ids):
            for name, column in some.items():
                self._slices[name].append(np.array(column, self._spec.dtypes[name]))

    def finish(self) -> tuple[int, int]:
        """Write the chunks, and list them; there is no body."""
        group, found = self._file.folder.parent / GROUP, dict[str, str | None]()
        for name, slices in self._slices.items():
            data = _encoded(np.concatenate(slices), self._spec.size)
            found[name] = None if data is None else checksum.of_bytes(data)
            _write_chunk(chunk_path(group, name, self._file.number), data)
        self._file.write(json.dumps(found).encode())
        return 0, 0


def _write_chunk(path: Path, data: bytes | None) -> None:
    """Write a chunk; None: it has but the fill value, and no file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"new-{os.getpid()}-{path.name}")
    if data is None:
        path.unlink(missing_ok=True)
        return
    new.write_bytes(data)
    new.replace(path)


def chunk_path(group: Path, column: str, number: int) -> Path:
    """Return the file of a chunk."""
    return group / column / "c" / str(number)


def whole(folder: Path, parts: Folder, found: dict[int, PartInfo]) -> dict[int, PartInfo]:
    """Return the parts whose chunks are those that they list."""
    right = dict[int, PartInfo]()
    for number, part in found.items():
        with parts.open(part.name) as file:
            size = record.read_trailer(PART, file, check=False).data_bytes
            listed = json.loads(file.read(size))
        if all(_checksum(chunk_path(folder / GROUP, name, number)) == listed[name] for name in listed):
            right[number] = part
    return right


def _checksum(path: Path) -> str | None:
    """Return the checksum of a chunk; None without one."""
    return checksum.of_bytes(path.read_bytes()) if path.is_file() and not path.is_symlink() else None


def _encoded(values: Array, size: int) -> bytes | None:
    """Return a chunk of `size` values as Zarr stores it; None if it stores no file."""
    zarr = require("zarr", "zarr", ".zarr")
    store = zarr.storage.MemoryStore()
    array = make_array(zarr, store, None, values.dtype, (size, size))
    array[: len(values)] = values.astype(zarr_dtype(values.dtype), copy=False)
    chunk = store._store_dict.get("c/0")
    return None if chunk is None else bytes(chunk.to_bytes())


def make_array(zarr: Any, store: Any, name: str | None, dtype: Dtype, shape: tuple[int, int]) -> Any:
    """Return a new array, not compressed: floats hardly shrink.

    shape: how many values, in all and in a chunk.
    """
    size, chunk = shape
    return zarr.create_array(
        store, name=name, shape=(size,), chunks=(max(1, chunk),), dtype=zarr_dtype(dtype), compressors=None
    )


def write_metadata(group: Path, spec: OutputSpec, rows: int) -> None:
    """Write what makes a group of the chunks."""
    zarr = require("zarr", "zarr", ".zarr")
    zarr.open_group(group, mode="a", zarr_format=3, attributes={QUERY_KEY: spec.query})
    for name, dtype in spec.dtypes.items():
        make_array(zarr, group, name, dtype, (rows, spec.size))


def remove_others(group: Path, columns: Iterable[str], blocks: int) -> None:
    """Remove files that are no chunks of the first blocks: of killed writes, or of rays that are gone."""
    folders, numbers = {group / column / "c" for column in columns}, {str(k) for k in range(blocks)}
    for path in group.rglob("*"):
        if not path.is_dir() and not (path.parent in folders and path.name in numbers):
            path.unlink()


def sync(group: Path) -> None:
    """Wait until all files of a group are on the disk."""
    for path in group.rglob("*"):
        if path.is_file():
            with path.open("r+b") as file:
                sync_file(file)


def zarr_dtype(dtype: Dtype) -> type[str] | Dtype:
    """Return the dtype of an array.

    Zarr's stable type for text has no fixed length.
    """
    return str if dtype.kind == "U" else dtype
