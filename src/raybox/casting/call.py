"""A checked call of a cast: its arguments, and what determines its results."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

from raybox.casting import arguments as cast_arguments
from raybox.casting import checks
from raybox.casting.cast_folder import digest_of
from raybox.casting.caster import BlockCaster
from raybox.casting.job import CastJob, job_facts
from raybox.casting.scenes import scene_text
from raybox.io.formats.common import path_of
from raybox.scene.scene import Scene
from raybox.store import checksum
from raybox.store.checksum import Facts
from raybox.store.identity import InputFiles
from raybox.validation import ArrayInput, MaskInput

Out: TypeAlias = str | os.PathLike[str] | BinaryIO


class CastRequest(NamedTuple):
    """The arguments of a cast that describe its output."""

    scene: Scene
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
    """What determines the results, but for the rays."""
    inputs: InputFiles
    """What must stay as it is during the call."""
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
    return call_of(caster, target, inputs)


def call_of(caster: BlockCaster, target: Path | None, inputs: InputFiles) -> CastCall:
    """Return the call of a caster; its job gets the digest of what determines the results."""
    job, spec = caster.job, caster.columns.spec
    given: Facts = {
        **dict(cast_arguments.facts(job.query, caster.arguments)),
        **caster.columns.objects.facts(),
    }
    given["ids"] = None if spec.ids is None else f"checksum {checksum.of_texts(*spec.ids)[:16]}"
    given["columns"] = ", ".join(f"{k} {spec.arrow_types.get(k, dtype)}" for k, dtype in spec.dtypes.items())
    facts = job_facts(job, scene_text(caster.scene), given)
    scaled = {"sums": str(caster.sums)}  # by the largest weight: with another one, parts are cast again
    caster.job = job._replace(digest=digest_of(facts | scaled))
    return CastCall(caster, facts, inputs, target)
