"""Files of rays, read block by block where the format allows."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from raybox.cast.blocks import RayFile
from raybox.geometry import Rays
from raybox.io.formats.assembly import check_origin
from raybox.io.formats.columns import TableColumns, column_names, is_flat
from raybox.io.formats.common import ReadOptions, file_error, reader_errors
from raybox.io.formats.loading import load
from raybox.io.formats.table import format_of
from raybox.io.formats.tables import BLOCK_ROWS, RowBlock, Table, Wanted, numbers_of, places


def open_ray_file(path: Path, options: ReadOptions) -> RayFile:
    """Return a file of rays or points.

    Every error, now and later, is one line that names the file.
    """
    form = format_of(path, "rays")
    with reader_errors(path, form.name):
        table = form.open(path, options) if form.open else None
        layout = table.layout(options) if table else None
    if table is None or layout is None:
        return load_whole(path, options)
    check_origin(layout.kind, path, options)
    widths = {array: 0 if is_flat(array) else len(names) for array, names in layout.arrays.items()}
    blocks = partial(_blocks, table, layout, options)
    return RayFile(path, options, widths, table.rows, blocks, table.block_at, places(table, layout), table)


def _blocks(
    table: Table, layout: TableColumns, options: ReadOptions, row: int, offset: int, others: Sequence[str]
) -> Iterator[RowBlock]:
    """Yield blocks whose columns of rays have raybox's names."""
    wanted = numbers_of(layout, options)._replace(others=others)
    names = [name for array, own in layout.arrays.items() for name in column_names(array, len(own))]
    for block in _guarded(table, wanted, row, offset):
        columns = {name: block.columns[name] for name in others}
        columns |= {name: block.columns[own] for name, own in zip(names, wanted.numbers, strict=True)}
        yield block._replace(columns=columns)


def _guarded(table: Table, wanted: Wanted, row: int, offset: int) -> Iterator[RowBlock]:
    """Yield blocks; raise `FileFormatError` if rows are missing."""
    path, expected = table.path, None
    with reader_errors(path, format_of(path).name, "give a smaller chunk"):
        for block in table.blocks(wanted, row, offset):
            _check_count(path, block.row, expected)
            expected = block.row + block.rows
            yield block
        _check_count(path, row if expected is None else expected, table.rows)


def _check_count(path: Path, count: int, expected: int | None) -> None:
    """Raise unless as many rows were read as expected; None: any number."""
    if expected is not None and count != expected:
        problem = f"{count:,} rows were read where {expected:,} are promised"
        raise file_error(path, problem, "copy or write it again")


def load_whole(path: Path, options: ReadOptions) -> RayFile:
    """Load a file; return its rays in blocks."""
    rays = load(path, kind="rays", origin=options.origin, invalid=options.invalid)
    assert isinstance(rays, Rays)
    flat = rays.reshape(-1)
    columns = {"t_min": flat.t_min, "t_max": flat.t_max}
    for array, values in (("origins", flat.origins), ("directions", flat.directions)):
        columns |= dict(zip(column_names(array, rays.ndim_space), values.T, strict=True))

    def blocks(row: int, offset: int, others: Sequence[str]) -> Iterator[RowBlock]:
        for start in range(offset, len(flat), BLOCK_ROWS):
            end = min(len(flat), start + BLOCK_ROWS)
            yield RowBlock(start, start, end - start, {name: c[start:end] for name, c in columns.items()})

    widths = {"origins": rays.ndim_space, "directions": rays.ndim_space, "t_min": 0, "t_max": 0}
    where = lambda name, index: f"{name}{list(index)}"  # noqa: E731 - never called: `load` has checked all
    checked = ReadOptions("rays", None, False, options.invalid)
    return RayFile(path, checked, widths, len(flat), blocks, lambda row: (row, row), where)
