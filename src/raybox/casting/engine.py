"""From a call to its output: parts that count are kept, missing ones cast, and all finished in one pass."""

import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

from raybox.casting import job_files
from raybox.casting.arguments import check_end
from raybox.casting.blocks import BlockSpan
from raybox.casting.call import CastCall
from raybox.casting.cast_folder import CastFolder, open_cast
from raybox.casting.caster import BlockCaster
from raybox.casting.errors import explained, system_errors
from raybox.casting.finishing import StreamOutput, Totals, check_place, finish, source_of
from raybox.casting.job import SUMS
from raybox.casting.part import PARTS, RECORDS, CastPart, PartFolders
from raybox.casting.progress import Progress, progress
from raybox.casting.runner import Runner
from raybox.casting.stored_parts import missing, parts_that_count, without_overlaps
from raybox.io.formats.common import file_error
from raybox.store.folder import make_folder, open_folder

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


class _Outcome(NamedTuple):
    totals: Totals
    resumed: int


def run(call: CastCall, out: BinaryIO | None, make_runner: MakeRunner, *, shown: bool) -> Summary:
    """Cast what is missing, make the output, and return the summary.

    out: the open file, without a target; shown: whether a bar is.
    """
    started = time.perf_counter()
    with progress(call.caster.source.total, shown) as bar, system_errors(call.target or Path("out")):
        if call.target is None:
            assert out is not None
            totals, resumed = _to_stream(call, make_runner, out, bar)
        else:
            with opened(call) as cast:
                totals, resumed = _to_target(call, cast, make_runner, bar)
    return Summary(totals.rays, totals.hit_count, totals.rows, resumed, time.perf_counter() - started)


@contextmanager
def opened(call: CastCall, *, shared: bool = False) -> Iterator[CastFolder]:
    """Yield the folder of a call; an error says how many rays are stored there."""
    caster, target = call.caster, call.target
    assert target is not None
    check_place(target, caster.job)
    with open_cast(target, call.facts, shared=shared) as cast:
        caster.job = caster.job._replace(folder=cast.folder.path)
        try:
            yield cast
        except BaseException as error:
            found = explained(error, cast, caster, shared=shared)
            if found is error:
                raise
            raise found from error


def _to_target(call: CastCall, cast: CastFolder, make_runner: MakeRunner, bar: Progress) -> _Outcome:
    """Cast what is missing of an output, and finish it."""
    caster = call.caster
    if placed := _placed(caster, cast):
        cast.remove()
        return _Outcome(placed, placed.rays)
    there = parts_that_count(caster, cast.parts)
    cast.parts.remove_others(there)
    resumed = sum(part.rays for part in there)
    bar.skip(resumed)
    spans = missing(there, caster.source.block_count(caster.job.size))
    written = cast_spans(call, make_runner(caster), cast.parts, spans, bar)
    return _Outcome(finish(caster, cast, complete(call, [*there, *written])), resumed)


def _placed(caster: BlockCaster, cast: CastFolder) -> Totals | None:
    """Return the totals of a dataset that was moved to its place just before its call ended, else None."""
    if not caster.job.is_parts or not cast.target.is_dir() or cast.parts.parts.names():
        return None
    with open_folder(cast.target, own=False) as there:
        parts = parts_that_count(caster, PartFolders(there, cast.parts.records))
        is_all = {part.name for part in parts} == set(there.names())
    spans = missing(parts, caster.source.block_count(caster.job.size))
    is_all = is_all and not any(True for span in spans for _ in caster.facts(span))
    return Totals.of(parts) if parts and is_all else None


def cast_spans(
    call: CastCall,
    runner: Runner,
    folders: PartFolders,
    spans: Iterable[BlockSpan],
    bar: Progress,
    add: Callable[[CastPart], None] = lambda part: None,
) -> list[CastPart]:
    """Cast the blocks of spans, and return their parts; add: called with each.

    If a file was changed meanwhile, the parts are removed, whatever else has happened.
    """
    written = list[CastPart]()
    try:
        with closing(runner.run(folders, spans)) as steps:  # else an error's traceback lets it go on
            for done in steps:
                bar.advance(done.rays, done.fraction)
                if done.part is not None:
                    written.append(done.part)
                    add(done.part)
    finally:
        changed = call.inputs.changed()
        for part in written if changed else ():
            folders.remove(part)
    if changed:
        raise file_error(changed[0], "was changed while it was cast", "cast again")
    return written


def complete(call: CastCall, parts: Collection[CastPart]) -> list[CastPart]:
    """Return the parts that an output is made of, in order; raise if weights go on after the last ray."""
    found = list(without_overlaps(sorted(parts, key=lambda part: (part.number, -part.end))))
    check_end(call.caster.job.query, call.caster.arguments, sum(part.rays for part in found))
    return found


def _to_stream(call: CastCall, make_runner: MakeRunner, out: BinaryIO, bar: Progress) -> _Outcome:
    """Cast all rays to an open file; parts are in a temporary folder."""
    caster = call.caster
    with (
        tempfile.TemporaryDirectory(prefix="raybox-") as path,
        make_folder(Path(path)) as folder,
        closing(PartFolders(folder.subfolder(PARTS), folder.subfolder(RECORDS))) as folders,
    ):
        caster.job = caster.job._replace(folder=Path(path))
        runner, spans = make_runner(caster), missing((), caster.source.block_count(caster.job.size))
        if caster.job.part_format == SUMS:
            parts = complete(call, cast_spans(call, runner, folders, spans, bar))
            source = source_of(caster, folder, folders, parts)
            StreamOutput(source.folders, source.spec, out).add_all(source.parts)
            return _Outcome(Totals.of(source.parts)._replace(rays=sum(part.rays for part in parts)), 0)
        stream = StreamOutput(folders, caster.columns.spec, out)
        parts = complete(call, cast_spans(call, runner, folders, spans, bar, stream.add))
        stream.add_all(())
        return _Outcome(Totals.of(parts), 0)


def cast_numbers(
    call: CastCall, make_runner: MakeRunner, numbers: Sequence[int], *, stored: bool = False
) -> Summary:
    """Cast the blocks of some numbers, and leave their parts in the folder of the output.

    stored: write the files of the job there, too, for other processes.
    """
    started, caster = time.perf_counter(), call.caster
    with system_errors(call.target or Path()), opened(call, shared=True) as cast:
        if stored:
            job_files.write(cast.folder, caster)
        there = parts_that_count(caster, cast.parts, numbers)
        covered = {block.number for part in there for block in part.blocks}
        spans = caster.spans_of([number for number in numbers if number not in covered])
        written = cast_spans(call, make_runner(caster), cast.parts, spans, Progress())
    totals, resumed = Totals.of([*there, *written]), sum(part.rays for part in there)
    return Summary(totals.rays, totals.hit_count, totals.rows, resumed, time.perf_counter() - started)


def finish_parts(call: CastCall) -> Summary:
    """Make the output of the parts that other calls have cast; raise if some are missing."""
    started, caster = time.perf_counter(), call.caster
    with system_errors(call.target or Path()), opened(call) as cast:
        there = parts_that_count(caster, cast.parts)
        spans = missing(there, caster.source.block_count(caster.job.size))
        lacking = [facts.number for span in spans for facts in caster.facts(span)]
        if lacking:
            shown = ", ".join(map(str, lacking[:8])) + (", …" if len(lacking) > 8 else "")
            problem = f"lacks {len(lacking):,} blocks of rays: {shown}"
            raise file_error(cast.folder.path, problem, "cast them, or run the cast as a whole")
        cast.parts.remove_others(there)
        totals = finish(caster, cast, complete(call, there))
    return Summary(totals.rays, totals.hit_count, totals.rows, totals.rays, time.perf_counter() - started)
