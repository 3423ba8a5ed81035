"""Dask collections: arrays and data frames of rays in, the same of results out, partition by partition."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.casting.checks import check_arguments
from raybox.casting.dask import job_files
from raybox.casting.dask.connection import import_distributed
from raybox.casting.object_columns import ObjectColumns, object_columns, spec_of
from raybox.casting.result_columns import Dtypes, OutputSpec, as_array, id_array, rows_of, run_query
from raybox.casting.scenes import dimension_of
from raybox.compiler.float_environment import in_default_environment
from raybox.compiler.fork import only_here
from raybox.errors import InvalidInput
from raybox.geometry import Invalid, Rays
from raybox.io import scene_files
from raybox.io.formats.columns import RANGES, column_names
from raybox.queries.query import FileQuery
from raybox.scene.scene import Scene
from raybox.split import SplitScene
from raybox.threads.chunks import check_workers
from raybox.validation import Array, Floats

if TYPE_CHECKING:
    import dask.array
    import dask.dataframe
    import pandas

    Collection: TypeAlias = dask.dataframe.DataFrame | dask.array.Array

_WIDTHS = {4: 2, 6: 3, 8: 3}  # of tables of rays: their D


class _PartitionQuery(NamedTuple):
    """A query of a partition, as its task carries it."""

    files: Path
    """Folder of the scene and the ids."""
    query: str
    invalid: Invalid
    workers: int


@in_default_environment
def ask(
    scene: Scene | SplitScene,
    rays: Collection,
    *,
    query: FileQuery = "nearest",
    ids: Sequence[str] | None = None,
    invalid: Invalid = "raise",
    workers: int = 1,
    folder: str | os.PathLike[str] | None = None,
) -> Collection:
    """Return a Dask collection of the results of a query for all rays of one.

    Nothing is computed here: the result is a lazy collection with the same partitions. The scene is not in
    its graph: tasks read it from a folder, which a process maps once.

    Parameters
    ----------
    scene : Scene or SplitScene
        Of any geometry.
    rays : dask.dataframe.DataFrame or dask.array.Array
        A data frame of the columns ``origin_x ... direction_z [t_min t_max]``, among others if need be; or an
        array of shape (N, 6), (N, 8) with ranges, or (N, 4) in 2D, columns in this order.
    query : {"nearest", "occluded", "count", "all", "segments", "integrate"}
        The query; ``integrate`` gives lengths.
    ids : sequence of str, optional
        One for each object of the scene: the column ``id``. By default, those of the geometry.
    invalid : {"raise", "miss"}
        How to handle rays with NaN, as in `raybox.Rays`.
    workers : int
        Threads of raybox in each task; Dask itself runs as many tasks at once as there are threads.
    folder : path, optional
        Where to write the scene for the tasks, new or empty: on a cluster, one that all workers see. By
        default a temporary one of this machine, removed when this process ends. A `SplitScene` has its own.

    Returns
    -------
    dask.dataframe.DataFrame or dask.array.Array
        Of a data frame: columns ``index [object geometry primitive id] t x y z`` (``occluded``; ``count``;
        ``integral``; for "all" and "segments" ``t_enter t_exit length`` in place of the point), under the
        index of the rays; of these two, a ray has a row for each hit. Of an array: a flat one with these
        columns as named fields, after ``ray``, the number of the ray.

    Raises
    ------
    InvalidInput
        If an argument has another value than those above, or columns are missing.
    RayboxError
        dask.distributed is not installed.

    Examples
    --------
    >>> import raybox as rb, numpy as np
    >>> import dask.array as da
    >>> scene = rb.Scene(rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]]))
    >>> rows = np.array([[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0], [4, 0, 0, 1, 0, 0]])
    >>> rays = da.from_array(rows, chunks=(2, 6))
    >>> hits = rb.cluster.ask(scene, rays)
    >>> hits.chunks, hits["index"].compute()
    (((2, 1),), array([ 0, -1,  1]))
    """
    import_distributed()
    check_arguments(scene, query, ids, 1)
    if rows_of(query) == "primitives":
        raise InvalidInput(
            f"query must have results for each ray; got {query!r}, whose sums are over all rays. "
            "Cast a file of them: raybox.cluster.cast."
        )
    if invalid not in ("raise", "miss"):
        raise InvalidInput(f'invalid must be "raise" or "miss"; got {invalid!r}')
    frame = hasattr(rays, "map_partitions") and hasattr(rays, "columns")
    if not frame and not (hasattr(rays, "map_blocks") and hasattr(rays, "chunks")):
        raise InvalidInput(f"rays must be a Dask DataFrame or a Dask Array; got {type(rays).__name__}.")
    dimension = _dimension_of_frame(list(rays.columns)) if frame else _dimension_of_array(rays)
    own = dimension_of(scene)
    if dimension != own:
        raise InvalidInput(
            f"rays must have the scene's D = {own}; got D = {dimension}. Add or drop a coordinate."
        )
    thread_count, files = check_workers(workers), _scene_folder(folder)
    job_files.write(files, scene, ids, {})
    spec = _PartitionQuery(files, query, invalid, thread_count)
    map_rays = _map_frame if frame else _map_array
    return map_rays(rays, spec, spec_of(query, dimension, object_columns(scene, ids), "").dtypes)


def _scene_folder(folder: str | os.PathLike[str] | None) -> Path:
    """Return a folder that is new, or empty.

    A temporary one is removed when this process ends.
    """
    if folder is None:
        made = tempfile.mkdtemp(prefix="raybox-scene-")
        atexit.register(only_here(shutil.rmtree), made, ignore_errors=True)
        return Path(made)
    return scene_files.new_folder(Path(folder).resolve())


def _dimension_of_frame(columns: list[str]) -> int:
    wanted = [*column_names("origins"), *column_names("directions")]
    dimension = 3 if any(name in columns for name in (wanted[2], wanted[5])) else 2
    needed = [*column_names("origins", dimension), *column_names("directions", dimension)]
    missing = [name for name in needed if name not in columns]
    if missing:
        raise InvalidInput(
            f"a data frame of rays has the columns {' '.join(wanted)} [t_min t_max]; "
            f"{', '.join(missing)} missing. Rename its columns."
        )
    return dimension


def _dimension_of_array(rays: dask.array.Array) -> int:
    if rays.ndim != 2 or rays.shape[1] not in _WIDTHS:
        raise InvalidInput(
            f"an array of rays has shape (N, 6), (N, 8) with ranges, or (N, 4) in 2D; got {rays.shape}."
        )
    if any(np.isnan(length) for length in rays.chunks[0]):
        raise InvalidInput(
            "rays must have chunks of known lengths, to be numbered; call rays.compute_chunk_sizes() first."
        )
    return _WIDTHS[rays.shape[1]]


def _map_frame(
    rays: dask.dataframe.DataFrame, spec: _PartitionQuery, columns: Dtypes
) -> dask.dataframe.DataFrame:
    """Return the lazy results of a data frame, partition by partition."""
    names = [name for name in columns if name != "ray"]
    blank = {name: np.empty(0, columns[name]) for name in names}
    meta = import_module("pandas").DataFrame(blank, index=rays._meta.index)
    return rays.map_partitions(_query_frame, spec, names, meta=meta)


@in_default_environment
def _query_frame(part: pandas.DataFrame, spec: _PartitionQuery, names: list[str]) -> pandas.DataFrame:
    """Return the results of a partition."""
    dimension = _dimension_of_frame(list(part.columns))
    arrays = {
        array: np.stack([part[name].to_numpy(np.float64) for name in column_names(array, dimension)], -1)
        for array in ("origins", "directions")
    }
    arrays |= {name: part[name].to_numpy(np.float64) for name in RANGES if name in part.columns}
    results = _results(spec, arrays, 0)
    index = part.index.take(results["ray"])
    return type(part)({name: results[name] for name in names}, index=index)


def _map_array(rays: dask.array.Array, spec: _PartitionQuery, columns: Dtypes) -> dask.array.Array:
    """Return the lazy results of an array, block by block."""
    kind = np.dtype(list(columns.items()))
    lengths = rays.chunks[0] if rows_of(spec.query) == "rays" else (np.nan,) * len(rays.chunks[0])
    how = {"dtype": kind, "drop_axis": 1, "chunks": (lengths,), "meta": np.empty(0, kind)}
    return rays.rechunk({1: -1}).map_blocks(_query_block, spec, kind, **how)


@in_default_environment
def _query_block(
    table: Floats, spec: _PartitionQuery, kind: np.dtype[np.void], block_info: Any = None
) -> NDArray[np.void]:
    """Return the results of a block."""
    first = block_info[0]["array-location"][0][0]
    table = np.ascontiguousarray(table, np.float64)
    half = _WIDTHS[table.shape[1]]
    arrays = {"origins": table[:, :half], "directions": table[:, half : 2 * half]}
    arrays |= dict(zip(RANGES, table[:, 2 * half :].T, strict=False))
    results = _results(spec, arrays, first)
    rows = np.empty(len(results["ray"]), kind)
    for name in kind.names or ():
        rows[name] = results[name]
    return rows


def _results(spec: _PartitionQuery, arrays: Mapping[str, Floats], first: int) -> dict[str, Array]:
    """Return the columns of the results of rays."""
    loaded = _load(spec, arrays["origins"].shape[1])
    ranges = {name: arrays[name] for name in RANGES if name in arrays}
    rays = Rays(arrays["origins"], arrays["directions"], invalid=spec.invalid, **ranges)  # type: ignore[arg-type]  # ranges
    results = run_query(loaded.scene, spec.query, rays, first, spec.workers) if len(rays) else ()
    parts = [loaded.objects.with_rows(some.columns({})) for some in results]
    types = loaded.output.dtypes | ({"id": np.dtype(np.int64)} if "id" in loaded.output.dtypes else {})
    blank = {name: np.empty(0, dtype) for name, dtype in types.items()}
    columns = {
        name: np.concatenate([blank[name], *(as_array(part[name]) for part in parts)]) for name in blank
    }
    return columns | ({"id": loaded.ids[columns["id"]]} if loaded.ids is not None and "id" in types else {})


class _Loaded(NamedTuple):
    """What the tasks of a process have in common."""

    scene: Scene | SplitScene
    objects: ObjectColumns
    output: OutputSpec
    ids: Array | None


@lru_cache(maxsize=4)
def _load(spec: _PartitionQuery, dimension: int) -> _Loaded:
    """Return the scene of a query, mapped, and its columns."""
    files = job_files.read(spec.files)
    objects = object_columns(files.scene, files.ids)
    output = spec_of(spec.query, dimension, objects, "")
    return _Loaded(files.scene, objects, output, id_array(output))
