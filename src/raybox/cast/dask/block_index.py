"""Where the blocks of a file of rays begin, so that workers can read each by itself."""

from collections.abc import Iterable, Iterator

from raybox.cast import blocks as ray_blocks
from raybox.cast.blocks import BlockBuffers, BlockSpan, Position, RayFile


def blocks_of(source: RayFile, size: int, spans: Iterable[BlockSpan]) -> Iterator[BlockSpan]:
    """Yield the blocks of spans, each as a span of one; `size` rays each.

    Text has no index of rows, so files of it are read here.
    """
    for span in spans:
        count = source.block_count(size)
        if count is None or source.block_at(0) is None:
            yield from _read_blocks(source, size, span)
            continue
        end = count if span.blocks is None else span.number + span.blocks
        for number in range(span.number, end):
            first = number * size
            yield BlockSpan(number, Position(first, *(source.block_at(first) or ())), 1)


def _read_blocks(source: RayFile, size: int, span: BlockSpan) -> Iterator[BlockSpan]:
    """Yield the blocks of a span by reading it here."""
    position, buffers = span.position, BlockBuffers()
    for block in ray_blocks.read(source, size, span, buffers):
        yield BlockSpan(block.number, position, 1)
        position = block.end
        buffers.release(block.buffers)
