"""From a job to its output: whole parts are skipped, missing ones cast by a runner, all joined and placed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import partial
from threading import Event, Thread
from typing import NamedTuple

from raybox.casting import blocks, zarr_parts
from raybox.casting.arguments import check_end
from raybox.casting.block_caster import BlockCaster
from raybox.casting.blocks import BlockSpan, Position
from raybox.casting.cast_folder import CastFolder, whole_parts
from raybox.casting.dataset import DatasetOutput
from raybox.casting.job import ZARR
from raybox.casting.join import JoinedOutput
from raybox.casting.output import Output, Totals
from raybox.casting.part import PartInfo
from raybox.casting.progress import Progress
from raybox.casting.runner import Runner
from raybox.casting.steps import step
from raybox.casting.sum_output import SumOutput
from raybox.casting.sums import SumTotal
from raybox.errors import FileFormatError
from raybox.io.formats.common import file_error
from raybox.store.folder import Folder
from raybox.store.identity import InputFiles

SYNC_SECONDS = 0.25  # between two syncs, so that little is left to sync at the end


class CastRun(NamedTuple):
    """A cast to run: its caster, what runs its blocks, and files that must stay as they are."""

    caster: BlockCaster
    runner: Runner
    inputs: InputFiles
    progress: Progress


def run(cast: CastRun, output: Output, done: Mapping[int, Position]) -> Totals:
    """Cast the missing blocks, and complete the output; return its totals.

    done: blocks whose parts are whole, and where the next ones begin.
    """
    caster, rays = cast.caster, max((end.first for end in done.values()), default=0)
    runs = cast.runner.run(caster.job, missing(done, caster.source.block_count(caster.job.size)))
    with _synced_in_background(output), closing(runs) as written:  # else an error's traceback lets it go on
        for part in written:
            output.add(part)
            rays = max(rays, part.end.first)
            cast.progress.advance(part.rays, caster.fraction)
    output.sync()
    _check_inputs(cast.inputs)
    check_end(caster.job.query, caster.arguments, rays)
    totals = output.finish()
    step("output complete")
    return totals


def open_output(
    caster: BlockCaster, folder: Folder, parts: Folder, rows: Callable[[], Output] | None = None
) -> Output:
    """Return the output of a cast, with what an earlier call has joined.

    rows: make what rows are added to; by default, as the job says.
    """
    job, spec = caster.job, caster.columns.spec
    if rows is None and job.is_dataset:
        rows = partial(DatasetOutput, folder, parts, spec, job)
    rows = rows or partial(JoinedOutput, folder, parts, spec, job.suffix)
    return SumOutput(folder, parts, SumTotal(caster.sums), rows, job, spec) if caster.sums else rows()


def add_whole_parts(
    caster: BlockCaster, folder: CastFolder, parts: Folder, output: Output
) -> dict[int, Position]:
    """Add the parts that are whole to an output.

    Return where the block after each part begins, of those of the output, too. If the file of rays has
    changed, only parts of rays that it still has count.
    """
    found = whole_parts(parts, caster.job)
    if caster.job.suffix == ZARR and caster.job.is_dataset:
        found = zarr_parts.whole(folder.folder.path, parts, found)
    joined = {part.number: part for part in output.parts}
    ends = {number: part.end for number, part in (joined | found).items()}
    if not folder.same_input:
        ends = _still_valid(caster, found | joined)
        output.cut(next((number for number in joined if number not in ends), len(joined)))
        joined = {part.number: part for part in output.parts}
    for number, part in found.items():
        if number in joined or number not in ends:
            parts.remove(part.name)
        else:
            output.add(part)
    there = joined.keys() | found.keys()
    return {number: end for number, end in ends.items() if number in there}


def rays_of(done: Mapping[int, Position], caster: BlockCaster) -> int:
    """Return how many rays the blocks have that are done."""
    size = caster.job.size
    return sum(end.first - number * size for number, end in done.items())


def _still_valid(caster: BlockCaster, parts: Mapping[int, PartInfo]) -> dict[int, Position]:
    """Return the parts of rays that the file still has, and where the next blocks begin."""
    if caster.columns.carried and parts:
        path = caster.source.path
        way_out = f"restore the old one, or remove the folder {caster.job.folder} and start again"
        raise file_error(path, "has changed, and columns are carried from it", way_out)
    ends: dict[int, Position] = {}
    left = len(parts)
    with suppress(FileFormatError):  # rays after it are read again, and the error raised then
        for number, (checksum, end) in enumerate(blocks.checksums(caster.source, caster.job.size)):
            if number in parts:
                left -= 1
                if parts[number].rays_checksum == checksum:
                    ends[number] = end
            if not left:
                break
    return ends


def missing(done: Mapping[int, Position], count: int | None) -> Iterator[BlockSpan]:
    """Yield the spans of blocks that are not done; count: of all blocks, None if unknown."""
    number, position = 0, Position()
    for following, end in sorted(done.items()):
        if following > number:
            yield BlockSpan(number, position, following - number)
        number, position = following + 1, end
    if count is None or number < count:
        yield BlockSpan(number, position, None if count is None else count - number)


def _check_inputs(inputs: InputFiles) -> None:
    """Raise `FileFormatError` if a file was changed while it was read."""
    changed = inputs.changed()
    if changed:
        problem = "was changed while it was cast"
        raise file_error(changed[0], problem, "cast again: only what was changed is cast anew")


@contextmanager
def _synced_in_background(output: Output) -> Iterator[None]:
    """Sync an output in a thread from time to time."""
    done = Event()

    def work() -> None:
        while not done.wait(SYNC_SECONDS):
            with suppress(OSError):  # the last sync raises it again
                output.sync()

    thread = Thread(target=work, name="raybox-sync", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
