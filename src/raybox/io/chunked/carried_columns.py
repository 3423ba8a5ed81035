"""Columns of a file of rays that are no rays, such as ids and times, carried to the rows of an output.

They are read by the thread that writes, in the order of the rays, so only those of one chunk are in memory.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from raybox.errors import InvalidInput
from raybox.io.chunked.carried_readers import (
    arrow_types,
    check_types,
    extra_columns,
    open_columns,
    output_name,
)
from raybox.io.chunked.chunks import Position, RayFile, RowBlock
from raybox.io.chunked.joined_files import join
from raybox.io.chunked.result_columns import as_array, rows_of
from raybox.io.formats.common import ReadOptions, file_error, require
from raybox.queries.columns import Columns
from raybox.validation import Ints

if TYPE_CHECKING:
    import pyarrow

ALL = "all"
SUFFIXES = (".csv", ".parquet")


class CarriedColumns(NamedTuple):
    """Columns of a file of rays, and their types in the output."""

    source: RayFile
    """Its blocks hold the columns, by their names in the output."""
    arrow_types: "dict[str, pyarrow.DataType]"
    """For Parquet; empty for text."""
    names: list[str]

    def open(self, start: Position) -> "CarriedReader":
        """Return a reader of the rows from a position on."""
        return CarriedReader(self.source.path, self.source.blocks(start.row, start.offset))


class CarriedReader:
    """Reads rows in the order of the rays; those before the last ray that was read are gone."""

    def __init__(self, path: Path, blocks: Iterator[RowBlock]) -> None:
        self._path, self._blocks = path, blocks
        self._window: deque[RowBlock] = deque()

    def rows(self, columns: Columns) -> dict[str, Any]:
        """Return the carried columns of results, whose rays are in order."""
        ray = columns["ray"]
        if not len(ray):
            return {}
        numbers = as_array(ray)
        first, last = int(numbers[0]), int(numbers[-1])
        while not self._window or _end(self._window[-1]) <= last:
            self._window.append(self._next())
        while _end(self._window[0]) <= first:
            self._window.popleft()
        start = self._window[0].row
        return {
            name: _joined([block.arrays[name] for block in self._window], numbers - start)
            for name in self._window[0].arrays
        }

    def _next(self) -> RowBlock:
        block = next(self._blocks, None)
        if block is None:
            raise file_error(self._path, "has changed: rows are missing at its end", "start again")
        return block


def _end(block: RowBlock) -> int:
    return block.row + block.rows


def _joined(parts: Sequence[Any], rows: Ints) -> Any:
    """Return some rows of arrays that follow each other: of NumPy, or of Arrow."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)[rows]
    arrow = require("pyarrow", "io", ".parquet")
    return arrow.chunked_array(parts, parts[0].type).take(arrow.array(rows)).combine_chunks()


def carried(
    source: RayFile, carry: Sequence[str], options: ReadOptions, query: str, target: Path | None
) -> CarriedColumns | None:
    """Return the columns to carry; None for none. Raise `InvalidInput` where that is not possible."""
    if not carry:
        return None
    if rows_of(query) == "primitives":
        raise InvalidInput(f"carry is for rows of rays; {query!r} has a row for each box. Leave it out.")
    suffix = ".csv" if target is None else target.suffix.lower()
    if suffix not in SUFFIXES:
        raise file_error(
            Path(suffix if target is None else target),
            f"{suffix} has no columns of any type, which carry needs",
            f"write {' or '.join(SUFFIXES)}",
        )
    names = _names(source.paths, carry, options)
    if not names:
        return None
    as_text = suffix == ".csv"
    opened = [open_columns(path, names, options, as_text) for path in source.paths]
    types = [arrow_types(path, names) for path in source.paths] if not as_text else [{}]
    check_types(source.paths, types)
    joined = join(opened, source.path.name) if len(opened) > 1 else opened[0]
    return CarriedColumns(joined, types[0], [output_name(name) for name in names])


def _names(paths: Sequence[Path], carry: Sequence[str], options: ReadOptions) -> list[str]:
    """Return the columns to carry; raise if a file lacks one, or two get the same name."""
    extra = [extra_columns(path, options) for path in paths]
    names = extra[0] if list(carry) == [ALL] and ALL not in extra[0] else list(dict.fromkeys(carry))
    for path, there in zip(paths, extra, strict=True):
        for name in names:
            if name not in there:
                known = f"it has {', '.join(there)}" if there else "it has none but those of rays"
                raise file_error(path, f"has no column {name!r} to carry", known)
    renamed = [output_name(name) for name in names]
    for name, new in zip(names, renamed, strict=True):
        if renamed.count(new) > 1:
            raise file_error(paths[0], f"the column {name!r} would be the second {new!r}", "rename it")
    return names
