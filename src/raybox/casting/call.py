"""A checked call of ``cast``, on one machine or on a cluster, from its arguments to its summary."""

import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias
from typing import cast as typed

from raybox.casting import arguments as cast_arguments
from raybox.casting import checks, engine
from raybox.casting.block_caster import BlockCaster
from raybox.casting.cast_folder import CastFolder, open_cast, stored_rays
from raybox.casting.engine import CastRun
from raybox.casting.job import ZARR, CastJob, job_facts
from raybox.casting.output import Outcome, Totals
from raybox.casting.part import PARTS
from raybox.casting.place import Placed, place_output
from raybox.casting.progress import progress
from raybox.casting.runner import Runner
from raybox.casting.scenes import AnyScene, scene_text
from raybox.casting.stream_output import StreamOutput
from raybox.errors import OutOfMemory, RayboxError
from raybox.io.formats.common import path_of
from raybox.store import checksum
from raybox.store.checksum import Facts
from raybox.store.folder import make_folder
from raybox.store.identity import InputFiles
from raybox.validation import ArrayInput, MaskInput

Out: TypeAlias = str | os.PathLike[str] | BinaryIO
MakeRunner: TypeAlias = Callable[[BlockCaster], Runner]


class Summary(NamedTuple):
    """The totals of a cast."""

    rays: int
    """Rays of the file."""
    hit_count: int
    """Rays that hit anything; of ``all`` and ``segments``: hits; of ``deposit``: sums that are not zero."""
    rows: int
    """Rows of the output."""
    resumed: int
    """Rays that an earlier call had done."""
    seconds: float
    """Time for the others, reading and writing included."""


class CastRequest(NamedTuple):
    """The arguments of a cast that describe its output."""

    scene: AnyScene
    job: CastJob
    """As far as it does not depend on the output."""
    ids: Sequence[str] | None
    given: Mapping[str, ArrayInput | None]
    """What the query takes besides rays."""
    where: MaskInput


class CastCall(NamedTuple):
    """A cast that may begin."""

    caster: BlockCaster
    facts: Facts
    """What determines the output, but for the rays."""
    inputs: InputFiles
    target: Path | None
    """None: an open file."""


def prepare(request: CastRequest, out: Out, form: str | None) -> CastCall:
    """Check the arguments of a cast, before any work; form: of a dataset."""
    scene, job, query = request.scene, request.job, request.job.query
    checks.check_arguments(scene, query, request.ids, job.size)
    dataset = checks.dataset_format(out, form)
    target = path_of(out) if isinstance(out, str | os.PathLike) else None
    files = checks.input_files(job.rays, scene, *request.given.values())
    if target:
        checks.check_out(target, dataset, query)
        checks.check_no_input(target, files)
    suffix = dataset or (target.suffix.lower() if target else ".csv")
    inputs = InputFiles(files)
    job = job._replace(suffix=suffix, is_dataset=dataset is not None)
    arguments = cast_arguments.checked(scene, query, None, **request.given)
    arguments |= cast_arguments.masks(scene, request.where)
    caster = BlockCaster(job, scene, arguments, request.ids)
    if caster.source.total is not None:
        cast_arguments.check_end(query, arguments, caster.source.total)
    caster.check()
    ids = caster.columns.spec.ids
    given: Facts = {**dict(cast_arguments.facts(arguments)), **caster.columns.objects.facts()}
    given["ids"] = None if ids is None else f"checksum {checksum.of_texts(*ids)[:16]}"
    return CastCall(caster, job_facts(job, scene_text(scene), given), inputs, target)


def run(call: CastCall, out: Out, make_runner: MakeRunner, *, shown: bool) -> Summary:
    """Cast what is missing, and return the summary; shown: whether a bar is."""
    started, caster = time.perf_counter(), call.caster
    with closing(caster), progress(caster.source.total, shown) as bar:
        cast = CastRun(caster, make_runner(caster), call.inputs, bar)
        if call.target is None:
            done = Outcome(_to_stream(cast, typed(BinaryIO, out)), 0)
        else:
            done = _to_target(cast, call.facts, call.target)
    (rays, rows, hit_count), resumed = done
    return Summary(rays, hit_count, rows, resumed, time.perf_counter() - started)


def _to_stream(cast: CastRun, out: BinaryIO) -> Totals:
    """Cast all rays; parts are in a temporary folder."""
    caster = cast.caster
    with tempfile.TemporaryDirectory(prefix="raybox-") as path, make_folder(Path(path)) as folder:
        caster.job = caster.job._replace(folder=Path(path), id="stream")
        with folder.subfolder(PARTS) as parts:
            rows = partial(StreamOutput, parts, caster.columns.spec, out)
            with closing(engine.open_output(caster, folder, parts, rows)) as output:
                return engine.run(cast, output, {})


def _to_target(cast: CastRun, facts: Facts, target: Path) -> Outcome:
    """Cast the missing parts of an output, and move it to its place."""
    caster = cast.caster
    with open_cast(target, facts, caster.job.rays) as folder:
        caster.job = caster.job._replace(folder=folder.folder.path, id=folder.job_id)
        try:
            done = folder.placed or _to_folder(cast, folder, target)
        except BaseException as error:
            stored = stored_rays(folder)
            if stored == 0:
                folder.remove()
            explained = _explained(error, target, cast, stored)
            if explained is error:
                raise
            raise explained from error
        folder.remove()
    return Outcome(*done)


def _to_folder(cast: CastRun, folder: CastFolder, target: Path) -> Outcome:
    caster = cast.caster
    if caster.job.is_dataset or caster.job.suffix == ZARR:
        checks.check_place(target)
    with (
        folder.open_parts() as parts,
        closing(engine.open_output(caster, folder.folder, parts)) as output,
    ):
        done = engine.add_whole_parts(caster, folder, parts, output)
        resumed = engine.rays_of(done, caster)
        cast.progress.skip(resumed)
        totals = engine.run(cast, output, done)
    place_output(folder.folder, Placed(caster.job.id, output.name, {}, totals), target.resolve())
    return Outcome(totals, resumed)


def _explained(error: BaseException, target: Path, cast: CastRun, stored: int | None) -> BaseException:
    """Return an error of a cast as users get it, with the rays that are stored."""
    job = cast.caster.job
    done = f"{stored or 0:,} rays are done and stored in {job.folder.name}"
    text = f"{done}; the same command continues from there"
    if isinstance(error, MemoryError):
        problem = f"chunks of {job.size:,} rays do not fit into memory; give a smaller chunk"
        error = OutOfMemory(f"{cast.caster.source.path}: {problem}")
    elif isinstance(error, OSError) and not isinstance(error, RayboxError):
        error = checks.write_error(target, error)
    if not stored:
        return error
    if isinstance(error, RayboxError):
        return type(error)(f"{error}; {text}")
    error.add_note(text)
    return error
