"""Masks of 4 x 4 x 4 places as 64 bits, in the order in which a ray passes the places.

Places have numbers of six bits, two an axis. Of a ray that goes down on some axes, those bits are inverted:
place k is at bit k xor `flip`.
"""

from typing import Any

from raybox.compiler.intrinsics import int64, vector_code
from raybox.compiler.llvm_ir import cgutils, ir
from raybox.compiler.simd import I8, I32, I64
from raybox.compiler.target import has

_TABLES = "raybox.mask_flips"
_ROW = 48  # bytes of an octant in the tables: three vectors
_BYTES, _WORDS = ir.VectorType(I8, 16), ir.VectorType(ir.IntType(16), 8)
_SWAPS = (  # bits that change places with those above them, how far, and the bit of `flip` for it
    (0x5555555555555555, 1, 0),
    (0x3333333333333333, 2, 0),
    (0x0F0F0F0F0F0F0F0F, 4, 2),
    (0x00FF00FF00FF00FF, 8, 2),
    (0x0000FFFF0000FFFF, 16, 4),
    (0x00000000FFFFFFFF, 32, 4),
)


def flip_of(octant: int) -> int:
    """Return the flip of an octant: a bit for each axis on which rays go down, x the highest."""
    return sum(3 << 2 * axis for axis in range(3) if octant >> axis & 1)


def emit_flipped(b: Any, mask: Any, octant: Any) -> Any:
    """Return a mask in the order of travel. Without branches: directions of rays cannot be predicted."""
    return emit_shuffled(b, mask, octant) if has("avx2") else emit_swapped(b, mask, octant)


def emit_swapped(b: Any, mask: Any, octant: Any) -> Any:
    """Return a mask in the order of travel, by swaps of neighbours."""
    for low, shift, bit in _SWAPS:
        swapped = b.or_(b.and_(b.lshr(mask, I64(shift)), I64(low)), b.shl(b.and_(mask, I64(low)), I64(shift)))
        down = b.trunc(b.lshr(octant, I64(bit // 2)), ir.IntType(1))
        mask = b.select(down, swapped, mask)
    return mask


def emit_shuffled(b: Any, mask: Any, octant: Any) -> Any:
    """Return a mask in the order of travel: its bytes shuffled, each half of a byte replaced by a table."""
    table, row = b.bitcast(_tables(b.module), I8.as_pointer()), b.mul(octant, I64(_ROW))
    places = [b.gep(table, [b.add(row, I64(16 * k))]) for k in range(3)]
    order, low, high = (b.load(b.bitcast(place, _BYTES.as_pointer()), align=1) for place in places)
    two = ir.VectorType(I64, 2)
    rows = b.insert_element(ir.Constant(two, [0, 0]), mask, I32(0))
    rows = _shuffle(b, b.bitcast(rows, _BYTES), order)
    half = ir.Constant(_BYTES, [15] * 16)
    shifted = b.lshr(b.bitcast(rows, _WORDS), ir.Constant(_WORDS, [4] * 8))
    lows, highs = b.and_(rows, half), b.and_(b.bitcast(shifted, _BYTES), half)
    both = b.or_(_shuffle(b, low, lows), _shuffle(b, high, highs))
    return b.extract_element(b.bitcast(both, two), I32(0))


def _shuffle(b: Any, vector: Any, order: Any) -> Any:
    kind = ir.FunctionType(_BYTES, [_BYTES, _BYTES])
    shuffle = cgutils.get_or_insert_function(b.module, kind, "llvm.x86.ssse3.pshuf.b.128")
    return b.call(shuffle, [vector, order])


def _tables(module: Any) -> Any:
    """Return the address of the order of bytes and the halves of bytes, low and high, for each octant."""
    if _TABLES not in module.globals:
        rows = [byte for octant in range(8) for byte in _octant_table(flip_of(octant))]
        kind = ir.ArrayType(I8, len(rows))
        table = ir.GlobalVariable(module, kind, _TABLES)
        table.linkage, table.global_constant = "internal", True
        table.initializer = ir.Constant(kind, bytearray(rows))
    return module.globals[_TABLES]


def _octant_table(flip: int) -> list[int]:
    """Return three vectors of 16 bytes: the second half of the order is unused."""
    order = [k ^ flip >> 3 for k in range(8)]
    swap = flip & 4  # the low half of a byte becomes the high one
    halves = [sum((k >> bit & 1) << (bit ^ flip & 3) for bit in range(4)) for k in range(16)]
    return [*order, *order, *(k << swap for k in halves), *(k << (4 ^ swap) for k in halves)]


@vector_code(int64)
def flipped(b: Any, mask: Any, octant: Any) -> Any:
    """Return a mask in the order of travel."""
    return emit_flipped(b, mask, octant)


@vector_code(int64)
def swapped(b: Any, mask: Any, octant: Any) -> Any:
    """Return `flipped` as machines without shuffles compute it."""
    return emit_swapped(b, mask, octant)
