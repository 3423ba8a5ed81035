"""Dask's own collections: arrays and data frames of rays in, the same of answers out, part by part."""

import atexit
import json
import shutil
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raybox.distributed.dask.cluster import engine
from raybox.distributed.split import SplitScene
from raybox.errors import InvalidInput
from raybox.geometry import Rays
from raybox.io import scene_files
from raybox.io.chunked.casting import check_arguments, dimension_of
from raybox.io.chunked.result_columns import kinds, laid_out
from raybox.io.chunked.result_columns import run_query as answers_of
from raybox.io.formats.assembly import RANGES, assemble, names_of
from raybox.scene.scene import Scene
from raybox.threads.chunks import check_workers

_IDS = "ids.json"
_WIDTHS = {4: 2, 6: 3, 8: 3}  # of tables of rays: their D


class _Asked(NamedTuple):
    """What goes with each task."""

    scene: str
    memory: int | None
    """None: the scene is whole; 0: it is split, and parts may take any."""
    ids: str
    query: str
    invalid: str
    workers: int


def ask(
    scene: Scene | SplitScene,
    rays: Any,
    *,
    query: str = "nearest",
    ids: Sequence[str] | None = None,
    invalid: str = "raise",
    workers: int = 1,
    folder: Any = None,
) -> Any:
    """Put one question to every ray of a Dask array or data frame, when Dask computes it.

    Nothing is asked here: what comes back is a collection with the same partitions, to go on with. The scene
    is not in its graph: tasks find it in a folder, and a process maps it once.

    Parameters
    ----------
    scene : Scene or SplitScene
        What is asked: of Boxes or of a Mesh.
    rays : dask.dataframe.DataFrame or dask.array.Array
        A data frame of the columns ``origin_x ... direction_z [t_min t_max]``, among others if need be; or an
        array of shape (N, 6), (N, 8) with ranges, or (N, 4) in 2D, columns in this order.
    query : {"nearest", "occluded", "count", "all"}
        What to ask.
    ids : sequence of str, optional
        One for each box of the scene: the column ``id``.
    invalid : {"raise", "miss"}
        What becomes of rays with NaN, as in `raybox.Rays`.
    workers : int
        Threads of ours that ask in each task; Dask itself runs as many tasks at once as there are threads.
    folder : path, optional
        Where the scene is written for the tasks, new or empty: on a cluster, one that all workers see. A
        temporary one of this machine if left out, which goes away with this process. A `SplitScene` has its
        own.

    Returns
    -------
    dask.dataframe.DataFrame or dask.array.Array
        Of a data frame: columns ``index [id] t x y z`` (``occluded``; ``count``; for "all" ``index [id] t
        t_enter t_exit length``), under the index of the rays; of "all", a ray has as many rows as it meets
        boxes. Of an array: a flat one with these columns as named fields, and ``ray`` before them, the number
        of the ray.

    Raises
    ------
    InvalidInput
        If an argument is none of those above, or columns are missing.
    RayboxError
        dask.distributed is not installed.

    Examples
    --------
    >>> import raybox as rb, numpy as np
    >>> import dask.array as da
    >>> scene = rb.Scene(rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]]))
    >>> rows = np.array([[0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0], [4, 0, 0, 1, 0, 0]])
    >>> rays = da.from_array(rows, chunks=(2, 6))
    >>> met = rb.cluster.ask(scene, rays)
    >>> met.chunks, met["index"].compute()
    (((2, 1),), array([ 0, -1,  1]))
    """
    engine()
    check_arguments(scene, query, ids, 1)
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
    asked = _Asked(*_put(scene, ids, folder), query, invalid, check_workers(workers))
    kept_names = None if ids is None else [str(name) for name in ids]
    take = _take_frame if frame else _take_array
    return take(rays, asked, kinds(query, dimension, kept_names))


def _put(scene: Scene | SplitScene, ids: Sequence[str] | None, folder: Any) -> tuple[str, int | None, str]:
    """Write a scene and ids where tasks find them; return what tells tasks of it."""
    place = _new(folder)
    if ids is not None:
        (place / _IDS).write_text(json.dumps([str(name) for name in ids]), encoding="utf-8")
    named = "" if ids is None else str(place / _IDS)
    if isinstance(scene, SplitScene):
        return str(scene.folder.resolve()), scene.memory or 0, named
    scene_files.keep(place, scene)
    return str(place), None, named


def _new(folder: Any) -> Path:
    """Return a folder that is new, or empty; a temporary one goes away with this process."""
    if folder is None:
        made = tempfile.mkdtemp(prefix="raybox-scene-")
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        return Path(made)
    return scene_files.new_folder(Path(folder).resolve())


def _dimension_of_frame(columns: list[Any]) -> int:
    wanted = [*names_of("origins"), *names_of("directions")]
    dimension = 3 if any(name in columns for name in (wanted[2], wanted[5])) else 2
    needed = [*names_of("origins", dimension), *names_of("directions", dimension)]
    missing = [name for name in needed if name not in columns]
    if missing:
        raise InvalidInput(
            f"a data frame of rays has the columns {' '.join(wanted)} [t_min t_max]; "
            f"{', '.join(missing)} missing. Rename its columns."
        )
    return dimension


def _dimension_of_array(rays: Any) -> int:
    if rays.ndim != 2 or rays.shape[1] not in _WIDTHS:
        raise InvalidInput(
            f"an array of rays has shape (N, 6), (N, 8) with ranges, or (N, 4) in 2D; got {rays.shape}."
        )
    if any(np.isnan(length) for length in rays.chunks[0]):
        raise InvalidInput(
            "rays must have chunks of known lengths, to be numbered; call rays.compute_chunk_sizes() first."
        )
    return _WIDTHS[rays.shape[1]]


def _take_frame(rays: Any, asked: _Asked, columns: dict[str, np.dtype[Any]]) -> Any:
    """Have the answers of a data frame computed partition by partition."""
    names = [name for name in columns if name != "ray"]
    blank = {name: np.empty(0, columns[name]) for name in names}
    meta = import_module("pandas").DataFrame(blank, index=rays._meta.index)
    return rays.map_partitions(_frame, asked, names, meta=meta)


def _frame(part: Any, asked: _Asked, names: list[str]) -> Any:
    """Answer the rays of a partition."""
    dimension = _dimension_of_frame(list(part.columns))
    wanted = [*names_of("origins", dimension), *names_of("directions", dimension)]
    wanted += [name for name in RANGES if name in part.columns]
    columns = {name: part[name].to_numpy(np.float64) for name in wanted}
    found = _answered(asked, assemble(columns, "rays"), 0)
    index = part.index.take(found["ray"])
    return type(part)({name: found[name] for name in names}, index=index)


def _take_array(rays: Any, asked: _Asked, columns: dict[str, np.dtype[Any]]) -> Any:
    """Have the answers of an array computed block by block."""
    kind = np.dtype(list(columns.items()))
    lengths = rays.chunks[0] if asked.query != "all" else (np.nan,) * len(rays.chunks[0])
    how = {"dtype": kind, "drop_axis": 1, "chunks": (lengths,), "meta": np.empty(0, kind)}
    return rays.rechunk({1: -1}).map_blocks(_block, asked, kind, **how)


def _block(table: Any, asked: _Asked, kind: np.dtype[Any], block_info: Any = None) -> Any:
    """Answer the rays of a block."""
    first = block_info[0]["array-location"][0][0]
    table = np.ascontiguousarray(table, np.float64)
    half = _WIDTHS[table.shape[1]]
    arrays = {"origins": table[:, :half], "directions": table[:, half : 2 * half]}
    arrays |= dict(zip(RANGES, table[:, 2 * half :].T, strict=False))
    found = _answered(asked, arrays, first)
    rows = np.empty(len(found["ray"]), kind)
    for name in kind.names or ():
        rows[name] = found[name]
    return rows


def _answered(asked: _Asked, arrays: Any, first: int) -> dict[str, Any]:
    """Ask, and give all columns."""
    scene, ids = _scene_of(asked.scene, asked.memory), _ids_of(asked.ids) if asked.ids else None
    ranges = {name: arrays[name] for name in RANGES if name in arrays}
    rays = Rays(arrays["origins"], arrays["directions"], invalid=asked.invalid, **ranges)
    found = answers_of(scene, asked.query, rays, first, asked.workers) if len(rays) else ()
    parts = [answer.columns({}) for answer in found]
    blank = {name: np.empty(0, kind) for name, kind in kinds(asked.query, rays.ndim_space, None).items()}
    columns = {
        name: np.concatenate([blank[name], *(laid_out(part[name]) for part in parts)]) for name in blank
    }
    return columns if ids is None or "index" not in columns else columns | {"id": ids[columns["index"]]}


@lru_cache(maxsize=4)
def _scene_of(folder: str, memory: int | None) -> Any:
    """Map a scene, once in a process."""
    return (
        scene_files.found(Path(folder)) if memory is None else SplitScene.open(folder, memory=memory or None)
    )


@lru_cache(maxsize=4)
def _ids_of(path: str) -> Any:
    return np.array([*json.loads(Path(path).read_text(encoding="utf-8")), ""], dtype=str)
