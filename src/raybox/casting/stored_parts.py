"""Which parts of an earlier call count: those made of exactly these rays and rows, whose bytes are whole."""

from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress

from raybox.casting.blocks import BlockSpan, Position
from raybox.casting.caster import BlockCaster
from raybox.casting.job import CastJob
from raybox.casting.part import BlockFacts, CastPart, PartFolders
from raybox.errors import FileFormatError


def parts_that_count(
    caster: BlockCaster, folders: PartFolders, numbers: Container[int] | None = None
) -> list[CastPart]:
    """Return the parts that count, in order, each block in one of them; all rays of them are read.

    numbers: of blocks; parts of others are left out. None: of all.
    """
    candidates = [
        part
        for part in folders.listed()
        if (numbers is None or all(block.number in numbers for block in part.blocks))
        and _is_of(part, caster.job)
        and folders.is_whole(part)
    ]
    chosen = list(without_overlaps(candidates))
    found = _facts(caster, chosen)
    return [
        part._replace(blocks=tuple(found[block.number] for block in part.blocks))  # where they are now
        for part in chosen
        if all(block.number in found and found[block.number].equals(block) for block in part.blocks)
    ]


def _is_of(part: CastPart, job: CastJob) -> bool:
    """Return whether a part is of a job; without invalid rays, it is also of one that permits them."""
    is_allowed = part.invalid in ("raise", job.options.invalid)
    return is_allowed and (part.job, part.format) == (job.digest, job.part_format)


def without_overlaps(parts: Sequence[CastPart]) -> Iterator[CastPart]:
    """Yield parts that cover no block twice, the longest first where several begin alike."""
    end = 0
    for part in parts:
        if part.number >= end:
            yield part
            end = part.end


def _facts(caster: BlockCaster, parts: Sequence[CastPart]) -> dict[int, BlockFacts]:
    """Return the facts of the blocks of some parts, as the files are now."""
    found = dict[int, BlockFacts]()
    numbers = [block.number for part in parts for block in part.blocks]
    with suppress(FileFormatError):  # what cannot be read is read again by the cast, which raises
        for facts in caster.facts_of(numbers):
            found[facts.number] = facts
    return found


def missing(parts: Iterable[CastPart], count: int | None) -> Iterator[BlockSpan]:
    """Yield the spans of blocks that no part covers; count: of all blocks, None if unknown."""
    number, position = 0, Position()
    for part in parts:
        if part.number > number:
            yield BlockSpan(number, position, part.number - number)
        number, position = part.end, part.blocks[-1].end
    if count is None or number < count:
        yield BlockSpan(number, position, None if count is None else count - number)
