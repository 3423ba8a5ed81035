"""One step of a ray in a grid: the nearest node left is entered, and its children are tested.

Steps have no branches that depend on what is hit, which could not be predicted: what is left of a node and
what was found are always stored, and counted if there is any. So the processor computes steps of several rays
at once, while each waits for its own results.
"""

from raybox.bvh.cell_tree import FIRST, MASK
from raybox.compiler.decorators import device, inlined
from raybox.compiler.intrinsics import Fields, int64, lowest_bit, popcount, vector_code
from raybox.compiler.mask_flips import emit_flipped, flipped
from raybox.compiler.simd import I1, I64, Builder, Scalar
from raybox.compiler.simd_arrays import Memory, Register
from raybox.traversal.grid_nodes import emit_hit_near, hit_tame, hit_wild
from raybox.traversal.grid_rays import (
    DEPTH,
    ENTRY,
    FLIP,
    KIND,
    LEFT,
    LEVEL,
    MARKS,
    NEAR,
    NODE_FIRST,
    NODE_LEVEL,
    NODE_MASK,
    OCTANT,
    PLACE,
    STACK,
    STARTS,
    WILD,
    GridScratch,
)
from raybox.traversal.job import Job, cells_of
from raybox.validation import Ints

_ROWS = (0, 0x1, 0x11, 0x111, 0x1111)  # so many rows of four bits
_SLICES = (0, 0x1, 0x10001, 0x100010001, 0x1000100010001)  # so many slices of sixteen bits


@inlined
def step(job: Job, grid: GridScratch, turn: int) -> int:
    """Enter the nearest node left in the stack; return the bits of its cells that the ray may hit, if any.

    A node whose children are nodes goes to the stack itself.
    """
    shape: Ints = job.rows.shape  # type: ignore[attr-defined]  # its rows are `GridRows`
    if grid.marks[turn, KIND] == NEAR:
        levels, stored = cells_of(job).starts.shape[0], job.tree.nodes.shape[0] > 0
        return _step_near(cells_of(job), shape, (levels, stored), grid, turn)
    return _step_any(job, grid, turn)


class _Row:
    """A row of an array in vector code."""

    def __init__(self, b: Builder, memory: Memory, begin: Scalar) -> None:
        self.b, self.memory, self.begin = b, memory, begin

    def get(self, word: int) -> Scalar:
        return self.memory.get(self.b.add(self.begin, I64(word)))

    def put(self, value: Scalar, word: int) -> None:
        self.memory.put(value, self.b.add(self.begin, I64(word)))


def _is_any(b: Builder, value: Scalar) -> Scalar:
    return b.icmp_signed("!=", value, I64(0))


def _place_of(b: Builder, place: Scalar, bit: Scalar, axis: int) -> Scalar:
    """Return the place of a child's first child. place: of any child of its node; bit: the child's."""
    part = b.and_(b.lshr(bit, I64(4 - 2 * axis)), I64(3))
    return b.shl(b.or_(b.and_(place, I64(-4)), part), I64(2))


def _emit_within(
    b: Builder, shape: Memory, node: tuple[Scalar, Scalar, Scalar], places: list[Scalar]
) -> Scalar:
    """Return the mask of the children of a node that are in the grid, upward.

    node: the number of levels, its level, the flip of the ray; places: of its first child.
    """
    levels, level, flip = node
    height, mask = b.shl(level, I64(1)), I64(1)
    last = b.sub(b.shl(I64(1), b.shl(b.sub(levels, level), I64(1))), I64(1))
    for axis, (each, whole) in enumerate(((16, _SLICES[4]), (4, _ROWS[4]), (1, 15))):
        down = b.neg(b.and_(b.lshr(flip, I64(4 - 2 * axis)), I64(1)))
        first = b.and_(b.xor(places[axis], b.and_(last, down)), I64(-4))
        cells = b.sub(b.add(shape.get(axis), b.shl(I64(1), height)), I64(1))
        count = b.sub(b.ashr(cells, height), first)
        count = b.select(b.icmp_signed("<", count, I64(4)), count, I64(4))
        bits = b.lshr(I64(-1), b.sub(I64(64), b.mul(count, I64(each))))
        mask = b.mul(mask, b.and_(bits, I64(whole)))
    return mask


@vector_code(int64)
def _step_near(
    b: Builder, tree: Fields, shape: Memory, kind: list[Scalar], grid: Fields, turn: Scalar
) -> Scalar:
    """Return `step` of a ray of kind `NEAR`; all in vector code, which takes four fifths of the time.

    kind: the number of levels of the tree, and whether its nodes are stored.
    """
    marks = _Row(b, grid.marks, b.mul(turn, I64(MARKS)))
    base = b.mul(turn, I64(STACK * ENTRY))
    depth = b.sub(marks.get(DEPTH), I64(1))

    # Take the nearest child of the last node.
    entry = _Row(b, grid.stack, b.add(base, b.mul(depth, I64(ENTRY))))
    left, level, first = entry.get(LEFT), entry.get(NODE_LEVEL), entry.get(NODE_FIRST)
    bit = b.cttz(left, I1(1))
    left = b.and_(left, b.sub(left, I64(1)))
    entry.put(left, LEFT)
    depth = b.add(depth, b.zext(_is_any(b, left), I64))
    before = b.sub(b.shl(I64(1), b.xor(bit, marks.get(FLIP))), I64(1))
    number = b.add(first, b.ctpop(b.and_(entry.get(NODE_MASK), before)))

    # Find its planes.
    below, up = b.sub(level, I64(1)), b.shl(b.sub(level, marks.get(LEVEL)), I64(1))
    marks.put(below, LEVEL)
    starts, places, planes = b.mul(below, I64(6)), [], []
    for axis in range(3):
        place = _place_of(b, b.ashr(marks.get(PLACE + axis), up), bit, axis)
        marks.put(place, PLACE + axis)
        places.append(place)
        planes.append(b.add(place, tree.starts.get(b.add(starts, marks.get(STARTS + axis)))))

    # Test its children; it is the last node, if nodes among them are hit.
    mask, first = Register(b, I64(0)), Register(b, I64(0))
    with b.if_else(kind[1]) as (stored, full):
        with stored:
            node = _Row(b, tree.nodes, b.shl(number, I64(1)))
            mask.value, first.value = node.get(MASK), node.get(FIRST)
        with full:
            mask.value = _emit_within(b, shape, (kind[0], below, marks.get(FLIP)), places)
    mask, first = mask.value, first.value
    hit = emit_hit_near(b, tree.planes, planes, grid.numbers, turn)
    found = b.and_(hit, emit_flipped(b, mask, marks.get(OCTANT)))
    entry = _Row(b, grid.stack, b.add(base, b.mul(depth, I64(ENTRY))))
    for word, value in ((LEFT, found), (NODE_LEVEL, below), (NODE_MASK, mask), (NODE_FIRST, first)):
        entry.put(value, word)
    more = b.and_(_is_any(b, below), _is_any(b, found))
    marks.put(b.add(depth, b.zext(more, I64)), DEPTH)
    return b.select(_is_any(b, below), I64(0), found)


@device
def _children_within(cells: int, level: int, first: int) -> int:
    """Return how many of a node's children on an axis of so many cells are in the grid."""
    return min(4, ((cells + (1 << 2 * level) - 1) >> 2 * level) - first)


@device
def _mask_within(shape: Ints, level: int, place: tuple[int, int, int]) -> int:
    """Return the mask of the children that are in the grid; place: of the first of them, upward."""
    a = _children_within(shape[0], level, place[0])
    b = _children_within(shape[1], level, place[1])
    c = _children_within(shape[2], level, place[2])
    return ((1 << c) - 1) * _ROWS[b] * _SLICES[a]


@inlined
def upward(marks: Ints, levels: int, level: int, place: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the number of a child on each axis, from its place."""
    last, flip = (1 << 2 * (levels - level)) - 1, marks[FLIP]
    return (
        place[0] ^ (last & -(flip >> 4 & 1)),
        place[1] ^ (last & -(flip >> 2 & 1)),
        place[2] ^ (last & -(flip & 1)),
    )


@inlined
def place_of(marks: Ints, level: int, bit: int) -> tuple[int, int, int]:
    """Return the place of a child of a node on the way to the node entered last. bit: the child's."""
    up = 2 * (level - marks[LEVEL])
    return (
        (marks[PLACE] >> up & ~3) | bit >> 4,
        (marks[PLACE + 1] >> up & ~3) | (bit >> 2 & 3),
        (marks[PLACE + 2] >> up & ~3) | (bit & 3),
    )


@device
def _step_any(job: Job, grid: GridScratch, turn: int) -> int:
    """Return `step` of a ray of another kind."""
    tree, marks, stack = cells_of(job), grid.marks[turn], grid.stack[turn]
    shape: Ints = job.rows.shape  # type: ignore[attr-defined]  # its rows are `GridRows`
    depth = marks[DEPTH] - 1
    entry = stack[depth]

    # Take the nearest child of the last node.
    bit, level = lowest_bit(entry[LEFT]), entry[NODE_LEVEL]
    number = entry[NODE_FIRST] + popcount(entry[NODE_MASK] & ((1 << (bit ^ marks[FLIP])) - 1))
    entry[LEFT] &= entry[LEFT] - 1
    depth += entry[LEFT] != 0

    # Find its planes.
    a, b, c = place_of(marks, level, bit)
    a, b, c, level = a << 2, b << 2, c << 2, level - 1
    marks[PLACE], marks[PLACE + 1], marks[PLACE + 2], marks[LEVEL] = a, b, c, level
    starts = tree.starts.reshape(-1)[6 * level :]
    places = starts[marks[STARTS]] + a, starts[marks[STARTS + 1]] + b, starts[marks[STARTS + 2]] + c

    # Test its children; it is the last node, if nodes among them are hit.
    if tree.nodes.size > 0:
        mask, first = tree.nodes[number, MASK], tree.nodes[number, FIRST]
    else:
        a, b, c = upward(marks, tree.starts.shape[0], level, (a, b, c))
        mask, first = _mask_within(shape, level, (a & ~3, b & ~3, c & ~3)), 0
    if marks[KIND] == WILD:
        found = hit_wild(tree.planes, places, grid.numbers, turn)
    else:
        found = hit_tame(tree.planes, places, grid.numbers, turn)
    found &= flipped(mask, marks[OCTANT])
    entry = stack[depth]
    entry[LEFT], entry[NODE_LEVEL], entry[NODE_MASK], entry[NODE_FIRST] = found, level, mask, first
    marks[DEPTH] = depth + (found != 0 and level > 0)
    return found if level == 0 else 0
