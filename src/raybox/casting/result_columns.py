"""The results of a block of rays as columns: those of `raybox.save`, and the number of the ray."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.casting import arguments as cast_arguments
from raybox.casting import column_kernels
from raybox.casting.arguments import Value
from raybox.geometry import Rays
from raybox.queries import table
from raybox.queries.columns import ChunkResults, Column, Columns, Sparse, row_count
from raybox.queries.query import RowsOf
from raybox.scene.scene import Scene
from raybox.validation import Array, Dtype

Dtypes: TypeAlias = dict[str, Dtype]
"""The columns of an output, and their dtypes."""

if TYPE_CHECKING:
    import pyarrow

QUERIES = table.file_queries()
SLICE_ROWS = 1 << 14  # rows that are laid out at once: a megabyte, which stays in a core's cache


def column_dtypes(query: str, dimension: int, ids: Sequence[str] | None, **arguments: Value) -> Dtypes:
    """Return the columns of a query's results, and their dtypes."""
    return table.columns_of(query).dtypes(dimension, ids, **arguments)


def rows_of(query: str) -> RowsOf:
    """Return what the rows of a query's output are of."""
    return table.columns_of(query).rows


def run_query(
    scene: Scene, query: str, rays: Rays, first: int, workers: int, **arguments: Value
) -> Iterator[ChunkResults]:
    """Yield the results of a block of rays, in their order.

    first: the number of its first ray.
    """
    return table.columns_of(query).chunks(scene, rays, first, workers, **arguments)


def run_one_ray(scene: Scene, query: str, dimension: int, **arguments: Value) -> None:
    """Run a query for one ray, and lay out its results: checks arguments, before any work."""
    origins, directions = np.random.default_rng(0).random((2, 1, dimension))
    for name, array in cast_arguments.per_ray(query, arguments).items():
        arguments[name] = np.ones((1, *array.shape[1:]))
    for results in run_query(scene, query, Rays(origins, directions), 0, 1, **arguments):
        for column in results.columns({}).values():
            as_array(column)


def as_array(column: Column) -> NDArray[Any]:
    """Return a column as an array, with NaN where a sparse one has no number."""
    if isinstance(column, Sparse):
        out = np.empty(len(column))
        column_kernels.expand_sparse(column.there, column.numbers, out)
        return out
    return np.arange(column.start, column.stop, dtype=np.int64) if isinstance(column, range) else column


class OutputSpec(NamedTuple):
    """The columns of an output, and their types."""

    dtypes: Dtypes
    ids: list[str] | None
    query: str = ""
    arrow_types: "dict[str, pyarrow.DataType]" = {}  # noqa: RUF012 - a default that is never written to
    """Of columns that come as Arrow arrays, or as text to write as such."""

    suffix: str = ".csv"

    def with_columns(self, dtypes: Dtypes, arrow_types: "dict[str, pyarrow.DataType]") -> "OutputSpec":
        """Return the same with more columns at the end."""
        return self._replace(dtypes=self.dtypes | dtypes, arrow_types=self.arrow_types | arrow_types)


def row_slices(columns: Columns, spec: OutputSpec, ids: Array | None) -> Iterator[dict[str, Array]]:
    """Yield columns some rows at a time, in the order of the output; ids in place of their numbers."""
    full = {
        name: as_array(column) if isinstance(column, Sparse) else column for name, column in columns.items()
    }
    for start in range(0, row_count(columns), SLICE_ROWS):
        part = {name: as_array(column[start : start + SLICE_ROWS]) for name, column in full.items()}
        if ids is not None and "id" in spec.dtypes:
            part["id"] = ids[part["id" if "id" in part else "index"]]
        yield {name: part[name] for name in spec.dtypes}


def id_array(spec: OutputSpec) -> Array | None:
    """Return the ids of the objects, and last that of a miss.

    None if there are none.
    """
    return None if spec.ids is None else np.array([*spec.ids, ""], dtype=str)
