"""Zarr: a group of arrays of rays or points (version 3)."""

from pathlib import Path

import numpy as np

from raybox.io.formats.columns import kinds_of
from raybox.io.formats.common import ReadOptions, file_error, require
from raybox.io.formats.numpy_arrays import NAMES, ArraysTable, arrays_of, rows_match
from raybox.io.formats.tables import BLOCK_ROWS, QUERY_KEY
from raybox.scene import file_queries as queries


def open_zarr(path: Path, options: ReadOptions) -> ArraysTable:
    """Return the table of a group of arrays."""
    library = require("zarr", "zarr", ".zarr")
    try:
        group = library.open_group(path, mode="r")
    except FileNotFoundError as error:
        raise file_error(path, "holds no Zarr group", "give the folder of a group") from error
    # one by one: of several at a time that it cannot read, zarr prints tracebacks
    query = group.attrs.get(QUERY_KEY)
    order = [*queries.result_columns(), *(sorted(group.array_keys()) if query else ())]
    found = {name: group.get(name) for name in (dict.fromkeys(order) if query else NAMES)}
    arrays = {name: array for name, array in found.items() if isinstance(array, library.Array)}
    if not kinds_of(arrays) and not query:
        raise file_error(path, "has no arrays of rays or points", "name them origins, directions or points")
    arrays = {name: arrays[name] for name in arrays_of(arrays, path, options)}
    if not rows_match(arrays):
        sizes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        way_out = "give (N, 3) or (N, 2), and (N,) for t_min and t_max"
        raise file_error(path, f"has arrays of shapes {sizes}", way_out)
    table = ArraysTable(path, arrays, lambda name, begin, end: np.asarray(arrays[name][begin:end]))
    # whole chunks of the arrays: any part of one costs a read of all of it
    rows = max(array.chunks[0] for array in arrays.values())
    table.chunk, table.step, table.query = rows, rows * max(1, BLOCK_ROWS // rows), query
    return table
