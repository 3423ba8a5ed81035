"""The first occupied cell that a ray hits in a grid of even planes, or how many: no tree, slab by slab.

Where a quarter of the nodes of a grid's tree are not empty, and nearly all large ones, as where one of a
hundred cells is occupied at random, the tree leaves out little: a ray passes its cells faster
(`raybox.traversal.plane_slabs`). Next to a solid body it leaves out most cells.

**Why the first occupied cell is the first hit.** Cells are closed here: a ray hits all that it touches. Let
its times be certain, and begin and end, too (`raybox.traversal.grid_clip`). Then it crosses one plane at a
time, and is between planes, or at one outer plane, where it begins and ends; on axes on which it does not
move it is between planes, or at an outer one. So it touches no other cells than those that it passes, and
enters each later than the one before, at times that differ in exact arithmetic. The first occupied one is
hit first. Certain slabs up to its own are enough: all planes that follow are crossed later. If all slabs are
certain, the ray hits the occupied cells that it passes, and no others.
"""

from typing import NamedTuple

from raybox.bvh.cell_tree import FIRST, SIDE, CellTree
from raybox.compiler.decorators import device, inlined
from raybox.compiler.intrinsics import Fields, int64, vector_code
from raybox.compiler.simd import I1, I64, Builder, Lanes, Scalar, constant
from raybox.compiler.simd_arrays import Memory, Register, loop, on_stack, while_any
from raybox.geometry import GridRows
from raybox.primitives.ray import Ray
from raybox.traversal.grid_axes import GridAxis, axes_of
from raybox.traversal.grid_clip import INSIDE, OUTSIDE, AxisScales, computed_course, scale_of
from raybox.traversal.grid_first import MISS, UNDECIDED
from raybox.traversal.grid_rays import is_tame_grid, is_tame_ray
from raybox.traversal.job import Job, cells_of, grid_of
from raybox.traversal.plane_slabs import LANES, SlabRun, Slabs, crossings_of, has_even_planes

_LEAST = 0.25  # of all nodes: those that are not empty
_LEAST_LARGE = 0.9375  # of those whose children are nodes


class ScannedGrid(NamedTuple):
    """What is the same for all rays through a grid whose cells are scanned."""

    scales: AxisScales
    is_scanned: bool  # whether that is faster than the tree, and possible
    is_counted: bool  # whether the number of cells is scanned: also where all are occupied


@device
def _node_count(rows: GridRows, first: int, levels: int) -> int:
    """Return how many nodes the tree of a grid has from a level up, the empty ones included."""
    total, side = 0, SIDE**first
    for _ in range(first, levels):
        side *= SIDE
        total += -(-rows.shape[0] // side) * -(-rows.shape[1] // side) * -(-rows.shape[2] // side)
    return total


@device
def _has_small_gaps(rows: GridRows, tree: CellTree) -> bool:
    """Return whether so few nodes are empty that the tree leaves out little."""
    levels, large = tree.starts.shape[0], 0
    if tree.nodes.shape[0] < _LEAST * _node_count(rows, 0, levels):
        return False
    for _ in range(1, levels):
        large = tree.nodes[large, FIRST]  # the first node of the next level
    return large >= _LEAST_LARGE * _node_count(rows, 1, levels)


@device
def scanned_grid(job: Job) -> ScannedGrid:
    """Return what is the same for all rays through the grid of a job."""
    rows = grid_of(job)
    scales = scale_of(rows.x_edges), scale_of(rows.y_edges), scale_of(rows.z_edges)
    stored = rows.blocks.size > 0 and rows.words.size == 32 * rows.blocks.size  # the bits of all cells
    possible = job.allowed.size == 0 and is_tame_grid(rows) and has_even_planes(rows)
    scanned = possible and stored and _has_small_gaps(rows, cells_of(job))
    return ScannedGrid(scales, scanned, scanned or (possible and rows.blocks.size == 0))


def _are_occupied(words: Memory, cells: Lanes, mask: Lanes) -> Lanes:
    """Return which cells are occupied, of those of a mask.

    Others read the first word: where gathers are slow, LLVM would branch at each lane of a masked one.
    """
    bits = words.pick(mask.choose(cells >> 6, 0)) >> (cells & 63)
    return mask & ((bits & 1) > 0)


def _first_of(words: Memory, slabs: Slabs) -> tuple[Lanes, Lanes]:
    """Return in which slabs cells are occupied, and the first of each."""
    entered, one, two = slabs.parts
    first, this, other = (_are_occupied(words, part.cells, part.is_in) for part in slabs.parts)
    earlier = this & (~other | (one.times < two.times))
    return first | this | other, first.choose(entered.cells, earlier.choose(one.cells, two.cells))


@vector_code(int64)
def _scan(b: Builder, words: Memory, way: Fields) -> Scalar:
    """Return the first occupied cell of a ray, `MISS`, or `UNDECIDED`."""
    run = SlabRun(b, way.major, way.others, way.ends)
    at, going = Register(b, I64(0)), Register(b, I64(1))
    uncertain, stop = Register(b, I64(0)), Register(b, I64(0))
    cells = Register(b, constant(b, I64, LANES, 0).value)
    with while_any(b, going):
        slabs = run.enter(at.value)
        occupied, first = _first_of(words, slabs)
        uncertain.value, cells.value = (slabs.is_slab & ~slabs.is_certain).mask(), first.value
        stop.value = b.or_(uncertain.value, occupied.mask())
        at.value = b.add(at.value, I64(LANES))
        more = b.and_(b.icmp_signed("==", stop.value, I64(0)), b.icmp_signed("<", at.value, run.slab_count))
        going.value = b.zext(more, I64)
    lane = b.cttz(stop.value, I1(0))
    stored = on_stack(b, I64, 2 * LANES)
    stored.store(cells.lanes, I64(0))
    found = stored.get(b.and_(lane, I64(LANES - 1)))
    is_certain = b.icmp_signed("==", b.and_(b.lshr(uncertain.value, b.and_(lane, I64(63))), I64(1)), I64(0))
    found = b.select(is_certain, found, I64(UNDECIDED))
    return b.select(b.icmp_signed("==", stop.value, I64(0)), I64(MISS), found)


@inlined
def _is_between(axis: GridAxis, place: int) -> bool:
    """Return whether a ray that does not move on an axis touches no other place.

    On a plane, its place is the one above.
    """
    return axis.direction != 0.0 or place == 0 or axis.edges[place] < axis.origin


@vector_code(int64)
def _count(b: Builder, words: Memory, way: Fields) -> Scalar:
    """Return how many occupied cells a ray passes, or `UNDECIDED`; without words, all are occupied."""
    run = SlabRun(b, way.major, way.others, way.ends)
    count, uncertain = Register(b, I64(0)), Register(b, I64(0))
    with loop(b, run.slab_count, LANES) as s:
        slabs = run.enter(s)
        for part in slabs.parts:
            passed = Register(b, part.is_in.mask())
            with b.if_then(b.icmp_signed(">", words.size, I64(0))):
                passed.value = _are_occupied(words, part.cells, part.is_in).mask()
            count.value = b.add(count.value, b.ctpop(passed.value))
        uncertain.value = b.or_(uncertain.value, (slabs.is_slab & ~slabs.is_certain).mask())
    return b.select(b.icmp_signed("==", uncertain.value, I64(0)), count.value, I64(UNDECIDED))


@inlined
def scan_cells(rows: GridRows, ray: Ray, scales: AxisScales, counts: bool) -> int:
    """Return the occupied cell that a ray hits first, or `MISS`; or how many it hits; or `UNDECIDED`."""
    d = ray.direction
    if (d[0] == 0.0 and d[1] == 0.0 and d[2] == 0.0) or not is_tame_ray(ray):
        return UNDECIDED
    x, y, z = axes = axes_of(rows, ray, True)
    course = computed_course(ray, axes, scales)
    if course.status != INSIDE:
        return (0 if counts else MISS) if course.status == OUTSIDE else UNDECIDED
    if not (
        _is_between(x, course.x.first) and _is_between(y, course.y.first) and _is_between(z, course.z.first)
    ):
        return UNDECIDED
    way = crossings_of(axes, scales, course)
    return _count(rows.words, way) if counts else _scan(rows.words, way)
