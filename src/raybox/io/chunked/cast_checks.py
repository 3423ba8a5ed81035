"""Checks of the arguments of casts, and what identifies a cast."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from raybox._version import __version__
from raybox.errors import InvalidInput, RayboxError
from raybox.geometry import Invalid
from raybox.io import checksums
from raybox.io.checksums import Facts
from raybox.io.chunked import pipeline
from raybox.io.chunked.chunks import RayFile
from raybox.io.chunked.journal import folder_of
from raybox.io.chunked.output_folder import parts_folder_of
from raybox.io.chunked.partitioned import (
    AnyScene,
    PartitionedScene,
    content_of,
    dimension_of,
    objects_of,
    scene_text,
)
from raybox.io.chunked.result_columns import QUERIES, rows_of
from raybox.io.chunked.writers import check_out
from raybox.io.formats.common import ReadOptions, file_error
from raybox.io.formats.loading import check_options
from raybox.scene.scene import Scene, geometries_of


def check_arguments(scene: AnyScene, query: str, ids: Sequence[str] | None, chunk: int) -> None:
    """Raise `InvalidInput` for a wrong scene, query, number of ids or chunk size."""
    if not isinstance(scene, Scene | PartitionedScene):
        raise InvalidInput(
            f"scene must be a raybox.Scene; got {type(scene).__name__}. Make one: Scene(boxes)."
        )
    if query not in QUERIES:
        raise InvalidInput(f"query must be one of {', '.join(QUERIES)}; got {query!r}.")
    parts = objects_of(scene)
    if rows_of(query) == "primitives" and len(parts) > 1:
        raise InvalidInput(
            f"{query} writes a row for each primitive of one geometry; got {scene!r}. "
            "Cast the rays at one geometry after the other."
        )
    count = sum(own.objects.count(own.size) for own in parts)
    if ids is not None and len(ids) != count:
        raise InvalidInput(f"ids must name every object: got {len(ids)} for {count} objects")
    if isinstance(chunk, bool) or not hasattr(chunk, "__index__") or int(chunk) < 1:
        raise InvalidInput(f"chunk must be a whole number of rays, at least 1; got {chunk!r}.")


def check_dimension(scene: AnyScene, source: RayFile) -> None:
    """Raise `InvalidInput` unless a file of rays has the scene's dimensions."""
    wanted = dimension_of(scene)
    if source.dimension != wanted:
        raise InvalidInput(
            f"{source.paths[0]}: holds rays in {source.dimension}D, while the scene is in {wanted}D; "
            "add or drop a coordinate"
        )


def read_options(origin: Sequence[float] | None, invalid: Invalid) -> ReadOptions:
    """Return how to read a file of rays."""
    return check_options(
        ReadOptions("rays", None if origin is None else tuple(map(float, origin)), False, invalid)
    )


def check_target(target: Path, rays: Sequence[Path], scene: AnyScene, *arrays: object) -> None:
    """Raise, before any work, for an output that cannot be written, or that is also an input.

    arrays: of which those that are mapped from files are inputs, too.
    """
    check_out(target)
    geometries = geometries_of(scene) if isinstance(scene, Scene) else ()
    mapped = [*arrays, *(array for one in geometries for array in content_of(one)[1])]
    files = filter(None, map(_file_of, mapped))
    folders = [] if isinstance(scene, Scene) else [scene.folder]
    for source in (*rays, *files, *folders):
        if overwrites(target, source):
            raise InvalidInput(f"out must not be an input, nor be inside of one; got {target} and {source}.")


def overwrites(target: Path, source: Path) -> bool:
    """Return whether an output would change an input: a file of any name, by links too, or a folder.

    The folders of unfinished outputs count as the output.
    """
    if target.exists() and source.exists() and target.samefile(source):
        return True
    out, given = target.resolve(), source.resolve()
    own = (out, folder_of(target), parts_folder_of(target))
    return given in (out, *out.parents) or not {given, *given.parents}.isdisjoint(own)


def _file_of(array: object) -> Path | None:
    """Return the file that an array is mapped from; None if it is in memory."""
    while array is not None:
        if isinstance(array, np.memmap) and array.filename:
            return Path(array.filename)
        array = getattr(array, "base", None)
    return None


def job_facts(
    scene: AnyScene, query: str, ids: Sequence[str] | None, options: ReadOptions, size: int
) -> Facts:
    """Return what determines an output, but for the rays.

    Calls with equal facts resume each other.
    """
    return {
        "raybox": __version__,
        "query": query,
        "scene": scene_text(scene),
        "ids": None if ids is None else f"checksum {checksums.of_text(*ids)[:16]}",
        "origin": None if options.origin is None else list(options.origin),
        "invalid": options.invalid,
        "chunk": size,
    }


def write_error(target: Path, error: OSError) -> RayboxError:
    """Return the error for an output that cannot be written."""
    problem = f"cannot be written: {pipeline.reason(error)}"
    return file_error(target, problem, pipeline.way_out(error))
