"""Columns of a file of rays that are no rays: ids, times, carried to the rows of an output, and groups.

They are read with the rays, so only those of a few blocks are in memory.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from raybox.casting.blocks import Others, RayFile
from raybox.casting.columns import Dtypes, as_array
from raybox.casting.job import SUMS, CastJob
from raybox.errors import InvalidInput
from raybox.hits.file_columns import Columns
from raybox.io.formats.common import file_error, require
from raybox.io.formats.parquet import ParquetTable
from raybox.io.formats.tables import Column, Table
from raybox.io.formats.typed_labels import label
from raybox.scene import file_queries as queries
from raybox.scene.groups import COMMON
from raybox.store import checksum
from raybox.validation import Ints

if TYPE_CHECKING:
    import pyarrow

ALL = "all"
SUFFIXES = (".csv", ".parquet")


class CarriedColumns(NamedTuple):
    """Columns of a file of rays, and their types in the output."""

    names: dict[str, str]
    """In the file, and in the output."""
    arrow_types: "dict[str, pyarrow.DataType]"
    """For Parquet, by names in the output; empty for text."""

    @property
    def dtypes(self) -> Dtypes:
        """The columns in the output: objects of Python, or Arrow arrays."""
        return dict.fromkeys(self.names.values(), np.dtype(object))

    def of_block(self, others: Others, path: Path) -> dict[str, Column]:
        """Return the columns of the rays of a block, by their names in the output."""
        columns = {new: [some[name] for some in others] for name, new in self.names.items()}
        if not self.arrow_types:
            return {
                new: np.concatenate([_as_text(x, new, path) for x in some]) for new, some in columns.items()
            }
        arrow = require("pyarrow", "io", ".parquet")
        return {
            new: np.concatenate(some) if isinstance(some[0], np.ndarray) else arrow.concat_arrays(some)
            for new, some in columns.items()
        }

    def checksum_of(self, columns: Mapping[str, Column]) -> str:
        """Return the checksum of the columns of a block, their names and types included."""
        if not self.arrow_types:
            return checksum.of_texts(*(str(x) for name, column in columns.items() for x in (name, *column)))
        arrow = require("pyarrow", "io", ".parquet")
        batch = arrow.record_batch([*columns.values()], [*columns])
        return checksum.of_bytes(str(batch.schema).encode(), memoryview(batch.serialize()))


def rows_of_hits(carried: Mapping[str, Column], columns: Columns, first: int) -> dict[str, Any]:
    """Return the carried columns of results: a row for each ray, or for each hit.

    carried: those of all rays of a block; first: its first ray.
    """
    ray = next(iter(columns.values()))  # the first column numbers them
    if isinstance(ray, range):
        return {name: column[ray.start - first : ray.stop - first] for name, column in carried.items()}
    numbers = as_array(ray) - first
    return {name: column.take(numbers) for name, column in carried.items()}


def carried(source: RayFile, job: CastJob, used_names: Sequence[str]) -> CarriedColumns | None:
    """Return the columns to carry; None for none.

    Raise `InvalidInput` where that is not possible.
    """
    if not job.carry:
        return None
    if job.part_format == SUMS:
        raise InvalidInput(f"carry is for rows of rays; {job.query!r} has a row for each box. Leave it out.")
    if job.suffix not in SUFFIXES:
        problem = f"{job.suffix} has no columns of any type, which carry needs"
        raise file_error(Path(f"out{job.suffix}"), problem, f"write {' or '.join(SUFFIXES)}")
    tables = _tables(source, "to carry")
    names = _names(tables, job, used_names)
    if not names:
        return None
    types = [{} if job.suffix == ".csv" else _arrow_types(table, names) for table in tables]
    _check_types(tables, types)
    return CarriedColumns(names, types[0])


def group_column(source: RayFile, job: CastJob, groups: object) -> str | None:
    """Return the column that holds the groups of rays; None without; raise if a file lacks it."""
    if not isinstance(groups, str):
        return None
    for table in _tables(source, "of groups"):
        _check_there(table, groups, job, "of groups")
    return groups


def groups_of_block(others: Others, name: str, first: int, path: Path) -> Ints:
    """Return the groups of the rays of a block, from a column; raise for others than integers."""
    numbers = label("", [some[name] for some in others])
    if numbers.dtype.kind != "i" or (numbers < COMMON).any():
        problem = "a group is neither -1, for what is common to all, nor an integer from 0 on"
        place = f"column {name}, rows {first:,} to {first + len(numbers) - 1:,}"
        raise file_error(path, problem, "correct the column", place)
    return numbers


def _tables(source: RayFile, use: str) -> list[Table]:
    """Return the table of each file; raise for one without names of columns."""
    for file in source.files:
        if file.table is None or not file.table.has_names:
            problem = f"has no named columns {use}"
            way_out = f"give {file.options.kind} in {' or '.join(SUFFIXES)}"
            raise file_error(file.path, problem, way_out)
    return [file.table for file in source.files if file.table]


def _others(table: Table, job: CastJob) -> list[str]:
    """Return the columns of a table that are no numbers of rays."""
    numbers = table.layout(job.options).numbers
    return [name for name in table.names if name not in numbers]


def _check_there(table: Table, name: str, job: CastJob, use: str) -> None:
    there = _others(table, job)
    if name not in there:
        known = f"it has {', '.join(there)}" if there else f"it has none but those of {job.reads}"
        raise file_error(table.path, f"has no column {name!r} {use}", known)


def _names(tables: Sequence[Table], job: CastJob, used_names: Sequence[str]) -> dict[str, str]:
    """Return the columns to carry, and their names in the output.

    Raise if a file lacks one, or two get the same name.
    """
    carry, extra = job.carry, _others(tables[0], job)
    names = extra if list(carry) == [ALL] and ALL not in extra else list(dict.fromkeys(carry))
    for table in tables:
        for name in names:
            _check_there(table, name, job, "to carry")
    is_used = {name: queries.is_result_column(name, job.reads) or name in used_names for name in names}
    renamed = {name: f"{used_names[0]}_{name}" if is_used[name] else name for name in names}
    for name, new in renamed.items():
        if [*renamed.values(), *used_names].count(new) > 1:
            problem = f"the column {name!r} would be the second {new!r}"
            raise file_error(tables[0].path, problem, "rename it")
    return renamed


def _as_text(column: Column, name: str, path: Path) -> Column:
    """Return a column as text; "" for null."""
    if isinstance(column, np.ndarray):
        return column
    arrow = require("pyarrow", "io", ".parquet")
    try:
        texts = column.cast(arrow.string())
    except arrow.ArrowException as error:
        problem = f"holds {column.type}, which CSV cannot hold"
        raise file_error(path, problem, "write .parquet", f"column {name}") from error
    return texts.fill_null("").to_numpy(zero_copy_only=False).astype(object)


def _arrow_types(table: Table, names: Mapping[str, str]) -> "dict[str, pyarrow.DataType]":
    """Return the types of columns in a Parquet output: of CSV, text."""
    if not isinstance(table, ParquetTable):
        return dict.fromkeys(names.values(), require("pyarrow", "io", ".parquet").string())
    types = {new: table.types[name] for name, new in names.items()}
    return {
        new: getattr(kind, "value_type", kind) if str(kind).startswith("dictionary") else kind
        for new, kind in types.items()
    }


def _check_types(tables: Sequence[Table], types: "Sequence[dict[str, pyarrow.DataType]]") -> None:
    """Raise if a column has another type in another file."""
    for table, found in zip(tables, types, strict=True):
        for name, kind in found.items():
            if kind != types[0][name]:
                problem = f"the column {name} is {kind}, in {tables[0].path} it is {types[0][name]}"
                raise file_error(table.path, problem, "store it as one type, or write .csv")
