"""From a call to its output: parts that count are kept, missing ones cast, and all finished in one pass.

Parts of earlier calls count if they are made of exactly these rays and rows, and their bytes are whole.
"""

import tempfile
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from raybox.casting import job_files
from raybox.casting.arguments import check_end
from raybox.casting.blocks import BlockSpan, Position
from raybox.casting.call import CastCall
from raybox.casting.cast_folder import CastFolder, open_cast, system_error, system_errors
from raybox.casting.caster import BlockCaster
from raybox.casting.finishing import StreamOutput, Summary, check_place, finish, source_of, summary_of
from raybox.casting.part import BlockFacts, CastPart, PartFolders, part_folders, without_overlaps
from raybox.casting.runner import Done, Runner
from raybox.errors import FileFormatError, OutOfMemory, RayboxError
from raybox.io.formats.common import file_error
from raybox.store.folder import make_folder
from raybox.threads.progress import progress_bar

MakeRunner: TypeAlias = Callable[[BlockCaster], Runner]


def run(call: CastCall, out: BinaryIO | None, make_runner: MakeRunner | None, *, shown: bool) -> Summary:
    """Cast what is missing, make the output, and return the summary.

    out: the open file, without a target; make_runner: None if no block may be missing; shown: whether a bar
    is.
    """
    started = time.perf_counter()
    with (
        progress_bar(call.caster.job.reads, call.caster.source.total, shown=shown) as bar,
        system_errors(call.target or Path("out")),
    ):
        if call.target is None:
            assert out is not None
            assert make_runner is not None
            summary = _to_stream(call, make_runner, out, bar)
        else:
            with _opened(call, is_complete=make_runner is None) as cast:
                summary = _to_target(call, cast, make_runner, bar)
    return summary._replace(seconds=time.perf_counter() - started)


def cast_numbers(
    call: CastCall, make_runner: MakeRunner, numbers: Sequence[int], *, stored: bool = False
) -> Summary:
    """Cast the blocks of some numbers, and leave their parts in the folder of the output.

    stored: write the files of the job there, too, for other processes.
    """
    started, caster = time.perf_counter(), call.caster
    with system_errors(call.target or Path()), _opened(call, shared=True) as cast:
        if stored:
            job_files.write(cast.folder, caster)
        there = parts_that_count(caster, cast.parts, numbers)
        covered = {block.number for part in there for block in part.blocks}
        spans = caster.spans_of([number for number in numbers if number not in covered])
        written = _cast_spans(call, make_runner(caster), cast.parts, spans, progress_bar(caster.job.reads))
    return summary_of([*there, *written], there)._replace(seconds=time.perf_counter() - started)


@contextmanager
def _opened(call: CastCall, *, shared: bool = False, is_complete: bool = False) -> Iterator[CastFolder]:
    """Yield the folder of a call; an error says how many rays are stored there, unless all must be."""
    caster, target = call.caster, call.target
    assert target is not None
    check_place(target, caster.job)
    with open_cast(target, call.facts, shared=shared) as cast:
        caster.job = caster.job._replace(folder=cast.folder.path)
        try:
            yield cast
        except BaseException as error:
            found = error if is_complete else _explained(error, cast, caster, shared)
            if found is error:
                raise
            raise found from error


def _explained(error: BaseException, cast: CastFolder, caster: BlockCaster, shared: bool) -> BaseException:
    """Return an error with the number of rays that are stored; remove the folder if there are none.

    shared: other processes may be about to store some.
    """
    if isinstance(error, MemoryError):
        problem = (
            f"chunks of {caster.job.size:,} {caster.job.reads} do not fit into memory; give a smaller chunk"
        )
        error = OutOfMemory(f"{caster.source.path}: {problem}")
    elif isinstance(error, OSError) and not isinstance(error, RayboxError):
        error = system_error(cast.target, error)
    with suppress(OSError, RayboxError):  # the error that ended the cast counts
        blocks = {block.number: block.size for part in cast.parts.listed() for block in part.blocks}
        if blocks:
            done = (
                f"{sum(blocks.values()):,} {caster.job.reads} are done and stored in {cast.folder.path.name}"
            )
            text = f"{done}; the same command continues from there"
            if isinstance(error, RayboxError):
                return type(error)(f"{error}; {text}")
            error.add_note(text)
        elif not shared:
            cast.remove()
    return error


def _to_target(call: CastCall, cast: CastFolder, make_runner: MakeRunner | None, bar: Any) -> Summary:
    """Cast what is missing of an output, and finish it."""
    caster = call.caster
    there = parts_that_count(caster, cast.parts)
    cast.parts.remove_others(there)
    bar.initial = bar.n = summary_of(there).rays  # they do not count for the rate
    spans, written = missing(there, caster.source.block_count(caster.job.size)), list[CastPart]()
    if make_runner:
        written = _cast_spans(call, make_runner(caster), cast.parts, spans, bar)
    elif lacking := [str(facts.number) for span in spans for facts in caster.facts(span)]:
        shown = ", ".join(lacking[:8]) + (", …" if len(lacking) > 8 else "")
        problem = f"lacks {len(lacking):,} blocks of {caster.job.reads}: {shown}"
        raise file_error(cast.folder.path, problem, "cast them, or run the cast as a whole")
    parts = _complete(call, [*there, *written])
    return summary_of(finish(caster, cast, parts), there, rays=parts)


def _to_stream(call: CastCall, make_runner: MakeRunner, out: BinaryIO, bar: Any) -> Summary:
    """Cast all rays to an open file; parts are in a temporary folder."""
    caster = call.caster
    with (
        tempfile.TemporaryDirectory(prefix="raybox-") as path,
        make_folder(Path(path)) as folder,
        part_folders(folder) as folders,
    ):
        caster.job = caster.job._replace(folder=Path(path))
        stream = StreamOutput(caster.columns.spec, out)
        add = _ignore if caster.sums else partial(stream.add, folders)
        spans = missing((), caster.source.block_count(caster.job.size))
        parts = _complete(call, _cast_spans(call, make_runner(caster), folders, spans, bar, add))
        with source_of(caster, folder, folders, parts) as source:
            for part in source.parts if caster.sums else ():
                stream.add(source.folders, part)
            stream.flush()
            return summary_of(source.parts, rays=parts)


def _ignore(part: CastPart) -> None:
    """Do nothing."""


def _cast_spans(
    call: CastCall,
    runner: Runner,
    folders: PartFolders,
    spans: Iterable[BlockSpan],
    bar: Any,
    add: Callable[[CastPart], None] = _ignore,
) -> list[CastPart]:
    """Cast the blocks of spans, and return their parts; add: called with each.

    If a file was changed meanwhile, the parts are removed, also after another error.
    """
    written = list[CastPart]()
    try:
        with closing(runner.run(folders, spans)) as steps:  # else an error's traceback lets it go on
            for done in steps:
                _advance(bar, done)
                if done.part is not None:
                    written.append(done.part)
                    add(done.part)
    finally:
        changed = call.inputs.changed()
        for part in written if changed else ():
            folders.remove(part)
    if changed:
        raise file_error(changed[0], "was changed while it was cast", "cast again")
    return without_overlaps(written)  # longer parts of sums replace shorter ones


def _complete(call: CastCall, parts: Iterable[CastPart]) -> list[CastPart]:
    """Return the parts that an output is made of, in order; raise if weights go on after the last ray."""
    found = without_overlaps(parts)
    check_end(call.caster.job.query, call.caster.arguments, summary_of(found).rays)
    return found


# Parts of earlier calls


def parts_that_count(
    caster: BlockCaster, folders: PartFolders, numbers: Container[int] | None = None
) -> list[CastPart]:
    """Return the parts that count, in order, each block in one of them; all rays of them are read.

    A part without invalid rays is also of a job that permits them. numbers: of blocks; parts of others are
    left out. None: of all.
    """
    job = caster.job
    candidates = [
        part
        for part in folders.listed()
        if (numbers is None or all(block.number in numbers for block in part.blocks))
        and part.invalid in ("raise", job.options.invalid)
        and (part.job, part.format) == (job.digest, job.part_format)
        and folders.is_whole(part)
    ]
    chosen = without_overlaps(candidates)
    found = dict[int, BlockFacts]()
    with suppress(FileFormatError):  # what cannot be read is read again by the cast, which raises
        for facts in caster.facts_of([block.number for part in chosen for block in part.blocks]):
            found[facts.number] = facts
    return [
        part._replace(blocks=tuple(found[block.number] for block in part.blocks))  # where they are now
        for part in chosen
        if all(block.number in found and found[block.number].equals(block) for block in part.blocks)
    ]


def missing(parts: Iterable[CastPart], count: int | None) -> Iterator[BlockSpan]:
    """Yield the spans of blocks that no part covers; count: of all blocks, None if unknown."""
    number, position = 0, Position()
    for part in parts:
        if part.number > number:
            yield BlockSpan(number, position, part.number - number)
        number, position = part.end, part.blocks[-1].end
    if count is None or number < count:
        yield BlockSpan(number, position, None if count is None else count - number)


def _advance(bar: Any, done: Done) -> None:
    """Show a step; where the number of rays is unknown, it is estimated from the bytes read."""
    if done.fraction:
        bar.total = max(bar.n + done.rays, round((bar.n + done.rays) / done.fraction))
    bar.update(done.rays)
