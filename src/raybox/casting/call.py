"""A checked call of a cast: its arguments, its output, and what determines its results."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

from raybox._version import __version__
from raybox.casting import arguments as cast_arguments
from raybox.casting.cast_folder import cast_folder, system_errors
from raybox.casting.caster import BlockCaster
from raybox.casting.columns import rows_of
from raybox.casting.job import SUFFIXES, CastJob
from raybox.casting.scenes import mapped_files, objects_of, scene_text
from raybox.errors import InvalidInput
from raybox.io.formats import point_files
from raybox.io.formats.common import file_error, path_of, require, resolved
from raybox.io.formats.saving import check_target as check_saved
from raybox.scene.file_queries import file_queries
from raybox.scene.scene import Scene
from raybox.store import checksum
from raybox.store.checksum import Facts
from raybox.store.identity import InputFiles
from raybox.validation import ArrayInput, MaskInput

Out: TypeAlias = str | os.PathLike[str] | BinaryIO

DATASETS = (".parquet", ".zarr")
"""The formats of datasets."""


class CastCall(NamedTuple):
    """A cast that may begin."""

    caster: BlockCaster
    facts: Facts
    """What determines the results, but for the rays."""
    inputs: InputFiles
    """What must stay as it is during the call."""
    target: Path | None
    """None: an open file."""


def prepare(
    scene: Scene,
    job: CastJob,
    out: Out,
    form: str | None,
    ids: Sequence[str] | None,
    *,
    where: MaskInput,
    **given: ArrayInput | None,
) -> CastCall:
    """Check the arguments of a cast, before any work.

    job: as far as it does not depend on the output; form: of a dataset; given: what the query takes besides
    rays.
    """
    _check_arguments(scene, job.query, ids, job.size)
    dataset = dataset_format(out, form)
    target = path_of(out) if isinstance(out, str | os.PathLike) else None
    suffix = dataset or (target.suffix.lower() if target else ".csv")
    job = job._replace(suffix=suffix, is_dataset=dataset is not None)
    with system_errors(target or Path("out")):
        files = [*job.rays, *mapped_files(*given.values(), scene)]
        if target:
            check_out(target, dataset, job.query)
            _check_inputs(target, files)
        inputs = InputFiles(files)
        arguments = cast_arguments.checked(scene, job.query, where, **given)
        caster = BlockCaster(job, scene, arguments, ids)
        if caster.source.total is not None:
            cast_arguments.check_end(job.query, arguments, caster.source.total)
        caster.check()
        return call_of(caster, target, inputs)


def call_of(caster: BlockCaster, target: Path | None, inputs: InputFiles) -> CastCall:
    """Return the call of a caster; its job gets the digest of what determines the results.

    Calls with equal facts continue each other.
    """
    job, spec, origin = caster.job, caster.columns.spec, caster.job.options.origin
    facts: Facts = {
        "raybox": __version__,
        "query": job.query,
        "scene": scene_text(caster.scene),
        "origin": None if origin is None else list(origin),
        "layout": job.options.layout,
        "chunk": job.size,
        "output": f"a dataset of {job.suffix[1:]}" if job.is_dataset else f"one file, {job.suffix[1:]}",
        "carry": list(job.carry),
        **cast_arguments.facts(job.query, caster.arguments),
        **caster.columns.objects.facts(),
        "ids": None if spec.ids is None else f"checksum {checksum.of_texts(*spec.ids)[:16]}",
        "columns": ", ".join(f"{k} {spec.arrow_types.get(k, dtype)}" for k, dtype in spec.dtypes.items()),
    }
    scaled = {"sums": str(caster.sums)}  # by the largest weight: with another one, parts are cast again
    caster.job = job._replace(digest=checksum.of_facts(facts | scaled))
    return CastCall(caster, facts, inputs, target)


def _check_arguments(scene: Scene, query: str, ids: Sequence[str] | None, chunk: int) -> None:
    """Raise `InvalidInput` for a wrong scene, query, number of ids or chunk size."""
    if not isinstance(scene, Scene):
        raise InvalidInput(
            f"scene must be a raybox.Scene; got {type(scene).__name__}. Make one: Scene(boxes)."
        )
    if query not in file_queries():
        raise InvalidInput(f"query must be one of {', '.join(file_queries())}; got {query!r}.")
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


def _check_inputs(target: Path, files: Iterable[Path]) -> None:
    """Raise `InvalidInput` if an output would change an input."""
    for source in files:
        if overwrites(target, source):
            problem = f"got {target} and {source}"
            raise InvalidInput(f"out must not be an input, nor be inside of one; {problem}.")


def overwrites(target: Path, source: Path) -> bool:
    """Return whether an output would change an input: a file of any name, by links too, or a folder.

    The folder of the unfinished output counts as the output.
    """
    if target.exists() and source.exists() and target.samefile(source):
        return True
    out, given = resolved(target), resolved(source)
    return given in (out, *out.parents) or not {given, *given.parents}.isdisjoint((out, cast_folder(target)))
