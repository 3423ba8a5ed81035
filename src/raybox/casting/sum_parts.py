"""Parts of sums: each covers a run of blocks, and a longer one replaces those that it covers."""

import time
from collections.abc import Sequence

from raybox.casting.caster import BlockCaster, ReadBlock
from raybox.casting.job import SUMS
from raybox.casting.part import BlockFacts, CastPart, PartFile, PartFolders
from raybox.casting.sums import Sums

_SHARE = 20.0  # how many times as long as they took to write, sums are not written again
_SECONDS = 0.25  # at least, between two parts


class SumWriter:
    """Adds up the terms of blocks that follow one another, and writes parts of them from time to time.

    extends: continue the part of all blocks before the first one; no other process may use it meanwhile.
    """

    def __init__(self, caster: BlockCaster, folders: PartFolders, workers: int, *, extends: bool) -> None:
        self._caster, self._folders, self._workers, self._extends = caster, folders, workers, extends
        self._total, self._parts, self._blocks = _new(caster), list[CastPart](), list[BlockFacts]()
        self._next_write = time.monotonic() + _SECONDS

    def add(self, block: ReadBlock) -> CastPart | None:
        """Add a block; return the part that was written, if one was."""
        done, covered = None, self._covered
        is_alone = self._is_float and covered and covered[0].number > 0  # the order of additions counts
        if covered and (is_alone or block.facts.number != covered[-1].number + 1):
            done = self.finish()
            self._total, self._parts, self._blocks = _new(self._caster), [], []
        if not self._covered and self._extends:
            self._begin(block.facts.number)
        self._caster.add_to(self._total, block, self._workers)
        self._blocks.append(block.facts)
        return self.finish() if time.monotonic() >= self._next_write else done

    @property
    def _is_float(self) -> bool:
        return self._caster.sums is not None and not self._caster.sums.shifts

    @property
    def _covered(self) -> list[BlockFacts]:
        """The blocks in the sums so far."""
        return [*(block for part in self._parts for block in part.blocks), *self._blocks]

    def _begin(self, number: int) -> None:
        """Begin with the sums of the blocks before the first one, if a part covers all of them."""
        for part in self._folders.listed():
            if (part.number, part.end) == (0, number) and part.job == self._caster.job.digest:
                _add(self._total, self._folders, part)
                self._parts = [part]

    def finish(self) -> CastPart | None:
        """Write a part of all blocks so far, in place of those that it covers; None without new blocks."""
        if not self._blocks:
            return None
        started, blocks = time.monotonic(), self._covered
        part = write_sums(self._caster, self._folders, self._total, blocks)
        for old in self._parts:
            self._folders.remove(old)
        self._parts, self._blocks = [part], []
        now = time.monotonic()
        self._next_write = now + max(_SECONDS, _SHARE * (now - started))
        return part


def write_sums(
    caster: BlockCaster, folders: PartFolders, total: Sums, blocks: Sequence[BlockFacts]
) -> CastPart:
    """Write a part of the sums of blocks that follow one another."""
    job, file = caster.job, PartFile(folders)
    try:
        total.write(file)
        caster.check_scene()
        return file.complete(CastPart(job.digest, job.options.invalid, tuple(blocks), SUMS, 0, 0, 0, ""))
    finally:
        file.discard()


def total_of(caster: BlockCaster, folders: PartFolders, parts: Sequence[CastPart]) -> Sums:
    """Return the sums of all parts, in order."""
    total = _new(caster)
    for part in parts:
        _add(total, folders, part)
    return total


def merge(caster: BlockCaster, folders: PartFolders, parts: Sequence[CastPart]) -> CastPart:
    """Write one part of several that follow one another, in their place."""
    blocks = [block for part in parts for block in part.blocks]
    merged = write_sums(caster, folders, total_of(caster, folders, parts), blocks)
    for part in parts:
        folders.remove(part)
    return merged


def _new(caster: BlockCaster) -> Sums:
    assert caster.sums is not None
    return Sums(caster.sums)


def _add(total: Sums, folders: PartFolders, part: CastPart) -> None:
    with folders.open(part) as reader:
        total.add(reader)
