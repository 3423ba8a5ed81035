"""Checks of the arguments of casts, before any work."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from raybox.casting.arguments import mapped_from
from raybox.casting.blocks import RayFile
from raybox.casting.cast_folder import cast_folder
from raybox.casting.job import SUFFIXES
from raybox.casting.result_columns import QUERIES, rows_of
from raybox.casting.scenes import content_of, dimension_of, objects_of
from raybox.errors import InvalidInput
from raybox.geometry import Invalid
from raybox.io.formats import point_files
from raybox.io.formats.common import ReadOptions, file_error, require, resolved
from raybox.io.formats.loading import check_options
from raybox.io.formats.saving import check_target as check_saved
from raybox.scene.scene import Scene, geometries_of, state_of
from raybox.validation import Array

DATASETS = (".parquet", ".zarr")
"""The formats of datasets."""


def check_arguments(scene: Scene, query: str, ids: Sequence[str] | None, chunk: int) -> None:
    """Raise `InvalidInput` for a wrong scene, query, number of ids or chunk size."""
    if not isinstance(scene, Scene):
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


def check_dimension(scene: Scene, source: RayFile) -> None:
    """Raise `InvalidInput` unless a file of rays has the scene's dimensions."""
    wanted = dimension_of(scene)
    if source.dimension != wanted:
        raise InvalidInput(
            f"{source.files[0].path}: holds rays in {source.dimension}D, while the scene is in {wanted}D; "
            "add or drop a coordinate"
        )


def read_options(origin: Sequence[float] | None, invalid: Invalid, layout: str | None = None) -> ReadOptions:
    """Return how to read a file of rays."""
    start = None if origin is None else tuple(map(float, origin))
    return check_options(ReadOptions("rays", start, False, invalid, layout=layout))


def dataset_format(out: object, form: str | None) -> str | None:
    """Return the format of an output that is a dataset, as a suffix; None for one file.

    An output is a dataset if its format is given, or if its name ends with a slash.
    """
    is_folder = isinstance(out, str | os.PathLike) and os.fspath(out).endswith(("/", os.sep))
    if form is None:
        return DATASETS[0] if is_folder else None
    suffix = f".{form.removeprefix('.')}"
    if suffix not in DATASETS:
        known = " or ".join(repr(name[1:]) for name in DATASETS)
        raise InvalidInput(f"format is that of a dataset, {known}; got {form!r}. Leave it out for one file.")
    return suffix


def check_out(path: Path, dataset: str | None = None, query: str = "nearest") -> None:
    """Raise, before any work, if an output cannot be written there; dataset: its format, if it is one."""
    suffix = dataset or path.suffix.lower()
    if dataset == ".zarr" and rows_of(query) != "rays":
        problem = f"a dataset of Zarr has a row for each ray, and {query} has others"
        raise file_error(path, problem, "write a dataset of Parquet, or one .zarr")
    if suffix in point_files.SUFFIXES:
        way_out = "write a table, such as .parquet; in Python: raybox.save(path, scene.nearest(rays))"
        raise file_error(path, "cannot be written: cast writes no files of points", way_out)
    if suffix != ".zarr" and not dataset:
        check_saved(path, SUFFIXES)
        return
    if not resolved(path).parent.is_dir():
        problem = f"cannot be written: there is no folder {path.parent}"
        raise file_error(path, problem, "make the folder first")
    require("zarr" if suffix == ".zarr" else "pyarrow", suffix[1:] if suffix == ".zarr" else "io", suffix)


def input_files(rays: Sequence[Path], scene: Scene, *arrays: object) -> list[Path]:
    """Return the files that a cast reads: of rays, and of mapped arrays."""
    return [*rays, *_mapped_files(arrays), *scene_files(scene)]


def scene_files(scene: Scene) -> list[Path]:
    """Return the files that arrays of a scene are mapped from: of its geometries, and of its trees."""
    own = [array for one in geometries_of(scene) for array in content_of(one)[1]]
    return list(dict.fromkeys(_mapped_files([*own, *_arrays_in(state_of(scene).parts)])))


def _arrays_in(value: object) -> Iterator[Array]:
    """Yield the arrays in named tuples, also in those that are fields of them."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for field in value:
            yield from _arrays_in(field)


def _mapped_files(arrays: Sequence[object]) -> Iterator[Path]:
    found = (mapped_from(array) for array in arrays)
    return (mapped.path for mapped in found if mapped is not None)


def check_no_input(target: Path, inputs: Sequence[Path]) -> None:
    """Raise `InvalidInput` for an output that is also an input."""
    for source in inputs:
        if overwrites(target, source):
            raise InvalidInput(f"out must not be an input, nor be inside of one; got {target} and {source}.")


def overwrites(target: Path, source: Path) -> bool:
    """Return whether an output would change an input: a file of any name, by links too, or a folder.

    The folder of the unfinished output counts as the output.
    """
    if target.exists() and source.exists() and target.samefile(source):
        return True
    out, given = resolved(target), resolved(source)
    return given in (out, *out.parents) or not {given, *given.parents}.isdisjoint((out, cast_folder(target)))
