"""Whether a cell of a grid is occupied, by its bits (`raybox.geometry.cell_bits`)."""

from raybox.compiler.decorators import inlined
from raybox.compiler.intrinsics import popcount
from raybox.geometry import GridRows


@inlined
def is_occupied(rows: GridRows, cell: int) -> bool:
    """Return whether rays may hit a cell of a grid; not all cells may be occupied."""
    if rows.words.size == 32 * rows.blocks.size:  # all are stored
        return rows.words[cell >> 6] >> (cell & 63) & 1 != 0
    block, bit = cell >> 12, 1 << (cell >> 6 & 63)
    stored = rows.blocks[block, 0]
    if stored & bit == 0:
        return False
    word = rows.words[rows.blocks[block, 1] + popcount(stored & (bit - 1))]
    return word >> (cell & 63) & 1 != 0
