"""Which sixteen rays make a packet: tiles of four by four pixels of a picture, or sixteen rays in a row.

Rays of a picture lie row after row. A packet is narrow, and visits few nodes, if its rays are those of a
small square and not of a long row. A tile has a first ray and a *stride* s, a multiple of four::

    first        first + 1        first + 2        first + 3
    first + s    first + s + 1    ...
    first + 2s   ...
    first + 3s   ...              ...              first + 3s + 3

A *band* is 4s rays: its tiles begin at 0, 4, 8, ... s - 4, and have each of its rays once, whatever the
picture's width is. If s is the width, rounded to a multiple of four, tiles lean by two pixels a row at most.
Those at the picture's edge have rays of both its sides, and form no packet. With s = 4 a tile is sixteen rays
in a row: so go rays that are in no picture, and those that fill no band.

Results do not depend on s. So `row_length` may guess the width: there directions jump (`raybox.geometry` does
not say it of flat arrays, of files' chunks and of batches).
"""

from collections.abc import Callable
from typing import NamedTuple

from raybox.compiler.decorators import device, inlined, whole
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import Fields, int64, larger, smaller, vector_code
from raybox.compiler.simd import F64, I1, I64, Builder, Lanes, Scalar, constant, greater, joined, splat
from raybox.compiler.simd_arrays import Memory
from raybox.compiler.target import has
from raybox.geometry import RayRows
from raybox.primitives.ray import origin_row
from raybox.traversal.ray_setup import CENTER, GRAIN, LANES, SCALE
from raybox.validation import Floats

SIDE = 4  # rays of a tile's row, and rows
LONGEST_ROW = 1 << 12  # rays: of wider pictures, a band has too many for a group
_JUMP = 8.0  # times as far as before and after: there a row ends
_CHECKED = 8  # places in which a guess is compared with neighbours above each other


class Tile(NamedTuple):
    """Sixteen rays, as the docstring of this module shows."""

    first: int
    stride: int


class TileGroup(NamedTuple):
    """Tiles that are traversed together."""

    stride: int
    count: int  # type: ignore[assignment]  # not the method of tuples


class PacketForm(NamedTuple):
    """How packets are formed: of tiles of this stride, at most so many boxes wide."""

    stride: int
    grains: float
    origins: float  # how many times the distance between these counts


@inlined
def tile_of(begin: int, stride: int, k: int) -> Tile:
    """Return tile k of the bands from `begin` on."""
    band, column = divmod(k, stride // SIDE)
    return Tile(begin + SIDE * (band * stride + column), stride)


@inlined
def ray_of(tile: Tile, lane: int) -> int:
    """Return the number of a ray of a tile."""
    return tile.first + lane % SIDE + lane // SIDE * tile.stride


def rows_of(b: Builder, first: Scalar, stride: Scalar) -> list[Scalar]:
    """Return the first ray of each row of a tile."""
    return [b.add(first, b.mul(stride, I64(k))) for k in range(SIDE)]


def store_tile(memory: Memory, rows: list[Scalar], numbers: Lanes) -> None:
    """Store a number of each ray of a tile."""
    for k, row in enumerate(rows):
        memory.store(numbers.permuted(range(SIDE * k, SIDE * k + SIDE)), row)


def load_rows(memory: Memory, places: list[Scalar], numbers: int = 1) -> Lanes:
    """Load so many numbers of each of sixteen rays, which begin at one place, or in rows at several."""
    count = LANES // len(places) * numbers
    return joined([memory.load(memory.b.mul(place, I64(numbers)), count) for place in places])


def _loaded(
    memory: Memory, width: int, each: Callable[[], list[Lanes]], one: Callable[[], list[Lanes]]
) -> list[Lanes]:
    """Return what `each` loads of an array of rows of this width, or `one` of a single row."""
    b = memory.b
    with b.if_else(b.icmp_signed(">", memory.size, I64(width))) as (many, once):
        with many:
            several, there = each(), b.block
        with once:
            same, here = one(), b.block
    chosen = [b.phi(some.value.type) for some in several]
    for phi, *ways in zip(chosen, several, same, strict=True):
        for lanes, block in zip(ways, (there, here), strict=True):
            phi.add_incoming(lanes.value, block)
    return [Lanes(b, phi) for phi in chosen]


def load_bounds(bound: Memory, places: list[Scalar]) -> Lanes:
    """Load one bound of sixteen rays; one given once serves every ray."""
    return _loaded(bound, 1, lambda: [load_rows(bound, places)], lambda: [bound.splat(0, LANES)])[0]


def load_origins(origins: Memory, places: list[Scalar]) -> Lanes:
    """Load the origins of sixteen rays as `load_rows`; a single one serves every ray."""
    one = [k % 3 for k in range(3 * LANES)]
    return _loaded(
        origins, 3, lambda: [load_rows(origins, places, 3)], lambda: [origins.load(0, 3).permuted(one)]
    )[0]


def load_vectors(b: Builder, rays: Fields, rows: list[Scalar]) -> tuple[list[Lanes], list[Lanes]]:
    """Load origins and directions of a tile, axis by axis; a single origin serves every ray."""
    origins = _loaded(
        rays.origins,
        3,
        lambda: load_columns(b, rays.origins, rows),
        lambda: [rays.origins.splat(k, LANES) for k in range(3)],
    )
    return origins, load_columns(b, rays.directions, rows)


def load_columns(b: Builder, vectors: Memory, rows: list[Scalar]) -> list[Lanes]:
    """Load the vectors of a tile, axis by axis: by shuffles that AVX2 has.

    Of longer ones LLVM goes lane by lane there.
    """
    together = 2 if has("avx512f") else 1
    parts = [_columns(b, vectors, rows[k : k + together]) for k in range(0, SIDE, together)]
    return [joined(list(columns)) for columns in zip(*parts, strict=True)]


def _columns(b: Builder, vectors: Memory, rows: list[Scalar]) -> list[Lanes]:
    """Load the vectors of some rows of a tile, axis by axis."""
    starts = [b.mul(row, I64(3)) for row in rows]
    one, two, three = (
        joined([vectors.load(b.add(start, I64(SIDE * k)), SIDE) for start in starts]) for k in range(3)
    )

    def mixed(some: Lanes, others: Lanes, picks: list[int]) -> Lanes:
        """Shuffle each row's four: 0 to 3 are some, 4 to 7 others."""
        size = some.count
        return some.shuffled(
            others, [k % SIDE + k // SIDE * size + first for first in range(0, size, SIDE) for k in picks]
        )

    picks = [0, 1, 6, 7]
    xy, zx, yz = mixed(one, two, picks), mixed(one, three, [2, 3, 4, 5]), mixed(two, three, picks)
    return [mixed(xy, zx, [0, 5, 2, 7]), mixed(xy, yz, [1, 4, 3, 6]), mixed(zx, yz, [0, 5, 2, 7])]


@device
def apart(rays: RayRows, numbers: Floats, one: int, other: int) -> float:
    """Return how far apart two rays are near the centre of the scene, roughly, in the scene's units."""
    o, d = rays.origins, rays.directions
    start, end = origin_row(rays, one), origin_row(rays, other)
    size = larger(larger(abs(d[one, 0]), abs(d[one, 1])), abs(d[one, 2]))
    away = between = 0.0
    for axis in range(3):
        away += abs(o[start, axis] - numbers[CENTER + axis])
        between += abs(d[one, axis] - d[other, axis])
    between *= away / size
    for axis in range(3):
        between += abs(o[start, axis] - o[end, axis])
    return between


@device
def is_narrow(rays: RayRows, numbers: Floats, one: int, other: int, grains: float) -> bool:
    """Return whether two rays are no farther apart than so many boxes are long."""
    return apart(rays, numbers, one, other) * numbers[SCALE] <= grains * numbers[GRAIN]


@vector_code(int64)
def is_coherent(b: Builder, rays: Fields, numbers: Memory, tile: Fields, form: Fields) -> Scalar:
    """Return 1 if the rays of a tile seem to form a packet, else 0.

    They run into one octant and, at the centre of the scene, are no farther from the first one than so many
    boxes are long. (In vectors: one by one, the rays at the corners alone took 5 % of `nearest`.)
    """
    vectors = load_vectors(b, rays, rows_of(b, tile.first, tile.stride))
    return b.zext(coherent(b, vectors, numbers, form), I64)


def coherent(b: Builder, rays: tuple[list[Lanes], list[Lanes]], numbers: Memory, form: Fields) -> Scalar:
    """Return the same of the origins and directions of a tile, as one bit."""
    o, d = rays
    first, ways = ([x.permuted([0] * LANES) for x in columns] for columns in (o, d))
    size = greater(greater(ways[0].magnitude(), ways[1].magnitude()), ways[2].magnitude())
    away = between = turned = constant(b, F64, LANES, 0.0)
    same = b.trunc(I64(1), I1)
    for k in range(3):
        away = away + (first[k] - numbers.splat(CENTER + k, LANES)).magnitude()
        between = between + (o[k] - first[k]).magnitude()
        turned = turned + (d[k] - ways[k]).magnitude()
        backward = (d[k] < 0.0).mask()
        none, all_of_them = (b.icmp_signed("==", backward, I64(mask)) for mask in (0, (1 << LANES) - 1))
        same = b.and_(same, b.or_(none, all_of_them))
    widest = b.fdiv(b.fmul(form.grains, numbers.get(GRAIN)), numbers.get(SCALE))
    apart = between * splat(b, form.origins, LANES) + turned * (away / size)
    narrow = (apart <= splat(b, widest, LANES)).mask()
    return b.and_(same, b.icmp_signed("==", narrow, I64((1 << LANES) - 1)))


@entry
def row_length(rays: RayRows, numbers: Floats, begin: int, end: int, grains: float) -> int:
    """Return how long the rows of a picture are, if the rays begin <= k < end seem to be one; else 0.

    0, too, if its pixels are so large that no tile is a packet. There are sixteen rays at least.
    """
    near = 0
    for k in range(_CHECKED):
        at = begin + (end - begin - LANES) * k // (_CHECKED - 1)
        near += is_narrow(rays, numbers, at, at + SIDE - 1, grains)
    first, last = whole(0), smaller(end, begin + 2 * LONGEST_ROW + SIDE) - 2 if near > 0 else 0
    before, here = 0.0, apart(rays, numbers, begin, begin + 1)
    for k in range(begin + 1, last):
        after = apart(rays, numbers, k, k + 1)
        if here > _JUMP * (before + after) and k > begin + 1:
            if first > 0:
                return _checked(rays, numbers, Tile(begin, k - first), end)
            first = whole(k)
        before, here = here, after
    return 0


@device
def _checked(rays: RayRows, numbers: Floats, tile: Tile, end: int) -> int:
    """Return a guess of a row's length if most tiles are narrower than sixteen rays in a row; else 0."""
    begin, length = tile
    room, narrower = end - begin - (SIDE - 1) * length - LANES, 0
    if length < SIDE or length > LONGEST_ROW or room < 0:
        return 0
    for k in range(_CHECKED):
        at = begin + room * k // (_CHECKED - 1)
        tall = apart(rays, numbers, at, at + (SIDE - 1) * length)
        wide = apart(rays, numbers, at, at + SIDE - 1)
        half, row = apart(rays, numbers, at, at + LANES // 2), apart(rays, numbers, at, at + LANES - 1)
        narrower += tall + wide < larger(half, row)  # rows may end between
    return length if 2 * narrower > _CHECKED else 0


def stride_of(length: int) -> int:
    """Return the stride of tiles for rows of this length; 0: there are no rows."""
    return max(SIDE, (length + SIDE // 2) // SIDE * SIDE)
