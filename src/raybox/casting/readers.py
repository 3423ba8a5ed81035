"""Files of rays, points or boxes, read block by block where the format allows.

Several are one, their rows numbered on.
"""

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path

import numpy as np

from raybox.casting.blocks import RayFile
from raybox.errors import InvalidInput
from raybox.geometry import Rays
from raybox.io.formats.assembly import check_origin
from raybox.io.formats.columns import RANGES, TableColumns, column_names, is_flat
from raybox.io.formats.common import PACKED, Floats, ReadOptions, file_error, path_of, reader_errors
from raybox.io.formats.loading import load, query_rows
from raybox.io.formats.table import format_of
from raybox.io.formats.tables import BLOCK_ROWS, Column, RowBlock, Table, Wanted, numbers_of, places

_DEFAULTS = {"t_min": 0.0, "t_max": np.inf}


def open_ray_file(path: Path, options: ReadOptions) -> RayFile:
    """Return a file of rays, points or boxes, as the kind of `options` says.

    Every error, now and later, is one line that names the file.
    """
    if path.suffix.lower() == PACKED:  # it has no blocks that a resumed cast could start at
        return load_whole(path, options)
    form = format_of(path, options.kind)
    with reader_errors(path, form.name):
        table = form.open(path, options) if form.open else None
        layout = table.layout(options) if table else None
    if table is None or layout is None or (options.boxes and "lower" not in layout.arrays):
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
    """Load a file; return its rays, points or boxes in blocks."""
    arrays = _rays_in(path, options) if options.kind == "rays" else query_rows(path, options)
    total, columns = len(next(iter(arrays.values()))), dict[str, Floats]()
    widths = {array: 0 if is_flat(array) else values.shape[1] for array, values in arrays.items()}
    for array, values in arrays.items():
        names = column_names(array, widths[array] or 1)
        columns |= dict(zip(names, values.reshape(total, -1).T, strict=True))

    def blocks(row: int, offset: int, others: Sequence[str]) -> Iterator[RowBlock]:
        for start in range(offset, total, BLOCK_ROWS):
            end = min(total, start + BLOCK_ROWS)
            yield RowBlock(start, start, end - start, {name: c[start:end] for name, c in columns.items()})

    where = lambda name, index: f"{name}{list(index)}"  # noqa: E731 - never called: all is checked
    checked = ReadOptions(options.kind, None, options.boxes, options.invalid)
    return RayFile(path, checked, widths, total, blocks, lambda row: (row, row), where)


def _rays_in(path: Path, options: ReadOptions) -> dict[str, Floats]:
    rays = load(path, kind="rays", origin=options.origin, invalid=options.invalid_rays, layout=options.layout)
    assert isinstance(rays, Rays)
    flat = rays.reshape(-1)
    return {name: getattr(flat, name) for name in ("origins", "directions", *RANGES)}


def open_ray_files(paths: Sequence[Path], options: ReadOptions) -> RayFile:
    """Return the rays, points or boxes of one or more files, in the order of the files."""
    sources = [open_ray_file(path, options) for path in paths]
    return _join(sources) if len(sources) > 1 else sources[0]


def _join(sources: Sequence[RayFile]) -> RayFile:
    """Return files as one."""
    kinds = [
        (
            {name: width for name, width in source.widths.items() if name not in RANGES},
            f"{'points' if 'points' in source.widths else source.options.kind} in {source.dimension}D",
        )
        for source in sources
    ]
    for source, (widths, words) in zip(sources, kinds, strict=True):
        if widths != kinds[0][0]:
            problem = f"holds {words}, {sources[0].path} holds {kinds[0][1]}"
            raise file_error(source.path, problem, "cast files of different kinds one after the other")
    totals = [source.total for source in sources]
    total = None if None in totals else sum(t for t in totals if t is not None)
    joined = _JoinedRows(sources, total)
    return RayFile(
        Path(f"{len(sources)} files of {sources[0].options.kind}"),
        sources[0].options,
        {key: width for source in sources for key, width in source.widths.items()},
        total,
        joined.blocks,
        joined.block_at,
        joined.place,
        joined=tuple(sources),
    )


class _JoinedRows:
    """The blocks of files, one file after the other.

    The offset of a block is that in its file, times the number of files, plus the number of the file.
    """

    def __init__(self, sources: Sequence[RayFile], total: int | None) -> None:
        self._sources, self._total = sources, total
        self._first_rows = [0, *accumulate(source.total or 0 for source in sources)]
        """The first row of each file, and the number of all; of no use where `total` is None."""
        self._starts: dict[int, int] = {}
        """The first row of each file that was read from its beginning."""
        self._entry = 0, 0, 0
        """The file in which reading begins, the offset there, and the row of the block at it."""

    def block_at(self, row: int) -> tuple[int, int] | None:
        """Return the row and the offset of a block that holds a row; None: unknown."""
        if self._total is None:
            return None
        number = bisect_right(self._first_rows, row, hi=len(self._sources)) - 1
        start = self._first_rows[number]
        found = self._sources[number].block_at(row - start)
        return found and (found[0] + start, found[1] * len(self._sources) + number)

    def blocks(self, row: int, offset: int, others: Sequence[str]) -> Iterator[RowBlock]:
        """Yield the block that begins at a row and an offset, and all after it."""
        inside, first = divmod(offset, len(self._sources))
        self._entry = first, inside, row
        for number in range(first, len(self._sources)):
            if not inside:
                self._starts[number] = row
            for block in self._sources[number].blocks(0, inside, others):
                yield self._renumbered(block, number, row)
                row += block.rows
            inside = 0

    def _renumbered(self, block: RowBlock, number: int, row: int) -> RowBlock:
        source, count = self._sources[number], len(self._sources)
        fraction = None
        if self._total is None:
            known = (block.row + block.rows) / max(source.total or 1, 1)
            fraction = (number + (block.fraction or known)) / count
        columns: dict[str, Column] = dict(block.columns) | _missing_ranges(self._sources, block)
        return RowBlock(row, block.offset * count + number, block.rows, columns, fraction)

    def place(self, name: str, index: tuple[int, ...]) -> str:
        """Return the file of a number, and its place there."""
        starts = dict([self._entry_start()]) | self._starts
        number = max(k for k, start in starts.items() if start <= index[0])
        source = self._sources[number]
        return f"{source.path}, {source.where(name, (index[0] - starts[number], *index[1:]))}"

    def _entry_start(self) -> tuple[int, int]:
        """Return the file in which reading began, and its first row; slow: it counts the rows before."""
        number, inside, row = self._entry
        before = (block.row for block in self._sources[number].blocks(0, 0, ()) if block.offset >= inside)
        return number, row - next(before, 0)


def _missing_ranges(sources: Sequence[RayFile], block: RowBlock) -> dict[str, Floats]:
    """Return t_min and t_max of rays whose file lacks them, where another file has them."""
    some = {name for source in sources for name in RANGES if name in source.widths}
    return {name: np.full(block.rows, _DEFAULTS[name]) for name in some - set(block.columns)}


def paths_of(rays: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the paths of one file, or of several; raise `InvalidInput` for none."""
    if isinstance(rays, str | Path) or hasattr(rays, "__fspath__"):
        return [path_of(rays)]
    paths = [path_of(path) for path in rays]
    if not paths:
        raise InvalidInput("rays must be a file, or a list of at least one; got an empty list.")
    return paths
