"""CSV block by block, parsed as `io.formats.csv_table` does."""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from raybox.io.chunked.chunks import RayFile, RowBlock
from raybox.io.formats import csv_blocks, csv_table
from raybox.io.formats.assembly import assemble, choose_columns, column_name
from raybox.io.formats.common import Floats, ReadOptions

BLOCK_BYTES = csv_blocks.BLOCK_BYTES


def csv_rows(path: Path, options: ReadOptions) -> RayFile | None:
    """Return the rows of a CSV file.

    None for lines that end in a single CR: it is loaded whole.
    """
    try:
        with path.open("rb") as file:
            header = csv_blocks.read_header(file)
        if header.rewritten:
            return None
        kind, names, _ = choose_columns(header.names, path, options)
    except (ValueError, csv.Error) as error:
        raise csv_table.row_error(path, options, error) from error
    wanted = header.wanted(names)
    size = path.stat().st_size

    def blocks(row: int, offset: int) -> Iterator[RowBlock]:
        with path.open("rb") as file:
            file.seek(offset or header.start)
            for block in csv_blocks.complete_rows(file, path, BLOCK_BYTES):
                columns = _parsed(block.data, wanted, (path, options))
                if columns is None:
                    continue
                arrays = assemble(dict(zip(names, columns, strict=True)), kind)
                yield RowBlock(row, block.begin, columns.shape[1], dict(arrays), block.end / size)
                row += columns.shape[1]

    shapes = assemble({name: np.empty(0) for name in names}, kind)
    widths = {name: array.shape[1] if array.ndim == 2 else 0 for name, array in shapes.items()}
    where = lambda array, index: f"{csv_table.line_of(path, index[0])}, column {column_name(array, index)}"  # noqa: E731
    return RayFile(path, options, widths, None, blocks, where)


def _parsed(data: bytes, wanted: csv_blocks.Wanted, source: tuple[Path, ReadOptions]) -> Floats | None:
    """Return the wanted columns of rows, shape (columns, rows).

    None for empty lines only.
    """
    try:
        return csv_blocks.numbers(data, wanted)
    except (ValueError, csv.Error) as error:
        raise csv_table.row_error(*source, error) from error
