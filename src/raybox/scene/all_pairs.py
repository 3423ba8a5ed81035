"""Every ray against every box, without a tree: float32 lists candidates, float64 decides.

Boxes are in tree coordinates, rounded outward, in *blocks* of sixteen: low x, low y, low z, up x, up y, up z,
sixteen float32 each. Rays are packed as for a tree: `raybox.traversal.ray_setup` proves that no box they hit
is lost. All rays of a group are tested against a tile of blocks, which fits a core's cache, before the next
tile. A test takes 6 fused multiply-adds, 6 minima and maxima and a compare for 16 boxes, and a branch for 64.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numba import types

from raybox.bvh.frame import choose_frame
from raybox.bvh.node import FAR, NUDGE, ULP
from raybox.compiler import huge_pages
from raybox.compiler.decorators import device, entry, whole
from raybox.compiler.intrinsics import vector_code
from raybox.compiler.simd import I64, Lanes
from raybox.compiler.simd_arrays import Register
from raybox.compiler.simd_single import lowest_bit
from raybox.primitives.box_pairs import decide_listed
from raybox.primitives.box_simd import Pairs, make_pairs
from raybox.primitives.status import HIT, MISS, UNDECIDED, UNDECIDED_INDEX
from raybox.traversal.node_test import clip, sides_of
from raybox.traversal.packed_rays import set_up_rays
from raybox.traversal.ray_keys import MISS_KEY, copy_rays, sort_by, sort_keys
from raybox.traversal.ray_setup import (
    CELLS,
    LANES,
    NOT_PACKED,
    NUMBERS,
    PACKED_WORDS,
    PASSES,
    STATE_WORDS,
    STOP,
    Frame,
    make_frame,
    octant_of,
)
from raybox.traversal.slab_coefficients import expand, packed_parts

BLOCK = 16
_WORDS = 6 * BLOCK
_TILE = 64  # blocks: 24 KiB
_GROUP = 1024  # rays that are set up together
_CANDIDATE_WORDS = 1024  # rows of the list of candidates, of 64 boxes each
_PAIRS = 2048  # pairs that float64 decides together


class Blocks(NamedTuple):
    """Boxes in blocks of sixteen."""

    planes: Any  # float32 (blocks, 96)
    frame: Frame
    box_count: int


class AllPairsTask(NamedTuple):
    """Rays, and boxes as given and in blocks."""

    rays: Any
    boxes: Any
    blocks: Blocks
    frame: Frame


def make_task(rays: Any, boxes: Any) -> AllPairsTask:
    """Return the task of rays against boxes, given as rows of three."""
    blocks = make_blocks(*boxes)
    return AllPairsTask(rays, boxes, blocks, blocks.frame)


class AllPairsResults(NamedTuple):
    """Results: pair (ray, box) is element ray * boxes + box of index and t, which start as misses.

    Where these arrays are empty, hits are counted.
    """

    index: Any  # int64 (pairs,): the box, MISS_INDEX or UNDECIDED_INDEX
    t: Any
    counts: Any  # int64 (rays,)
    single_rays: Any  # int64 (rays,): rays that cannot be packed, for another kernel
    state: Any  # int64 (3,): undecided pairs, length of single_rays, packed rays


def make_results(rays: int, index: Any, t: Any) -> AllPairsResults:
    """Return results of so many rays, given arrays for pairs or empty ones."""
    counts = np.zeros(rays if index.size == 0 else 0, np.int64)
    return AllPairsResults(index, t, counts, np.empty(rays, np.int64), np.zeros(3, np.int64))


class AllPairsWorkspace(NamedTuple):
    """Scratch memory of one thread."""

    keys: Any  # int32 (rays + 16,)
    order: Any  # int32 (rays + 16,)
    rows: Any  # float64 (rays + 16, 8)
    starts: Any  # int64 (11,)
    packed_rays: Any  # float32 (rays + 16, 8)
    state: Any  # int32 (rays + 16, 2), not used here
    rays64: Any  # float64 (rays + 16, 8)
    power: Any  # int32 (rays + 16,)
    shift: Any  # float32 (rays + 16,)
    found: Any  # int64 (_CANDIDATE_WORDS, 3): ray of the group, first of 64 boxes, a bit for each candidate
    pairs: Pairs


def make_blocks(lower: Any, upper: Any) -> Blocks:
    """Return blocks of boxes, given as float64 rows of three."""
    center, exponent, _ = choose_frame(lower, upper)
    count = len(lower)
    rows = np.empty((-(-count // BLOCK) * BLOCK, 6), np.float32)
    rows[count:] = [np.inf] * 3 + [-np.inf] * 3  # no ray hits these
    rows[:count, :3] = -_outward(-lower, -center, 2.0**exponent)
    rows[:count, 3:] = _outward(upper, center, 2.0**exponent)
    planes = huge_pages.empty((len(rows) // BLOCK, _WORDS), np.float32)
    planes.reshape(-1, 6, BLOCK)[:] = rows.reshape(-1, BLOCK, 6).swapaxes(1, 2)
    root = np.array([rows[:, :3].min(axis=0), rows[:, 3:].max(axis=0)], np.float64)
    return Blocks(planes, make_frame(center, exponent, root), count)


def _outward(planes: Any, center: Any, scale: float) -> Any:
    """Return upper planes in tree coordinates, rounded up as by `raybox.bvh.node.outward_up`."""
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = (planes - center) * scale
        moved = shifted + (np.abs(shifted) * (ULP + 2.0**-50) + NUDGE)
    return np.where(shifted > FAR, np.inf, np.where(shifted < -FAR, -FAR, moved))


def make_workspace() -> AllPairsWorkspace:
    """Return the scratch memory of one thread."""
    keys, order = (np.empty(_GROUP + 16, np.int32) for _ in range(2))
    rows, exact = (np.empty((_GROUP + 16, NUMBERS)) for _ in range(2))
    packed_rays = np.empty((_GROUP + 16, PACKED_WORDS), np.float32)
    state = np.empty((_GROUP + 16, STATE_WORDS), np.int32)
    pairs = make_pairs(_PAIRS + 64)
    power, shift = np.empty(_GROUP + 16, np.int32), np.empty(_GROUP + 16, np.float32)
    found = np.empty((_CANDIDATE_WORDS, 3), np.int64)
    return AllPairsWorkspace(
        keys, order, rows, np.empty(11, np.int64), packed_rays, state, exact, power, shift, found, pairs
    )


@vector_code(types.int64)
def _list_candidates(b: Any, memory: Any, span: Any, octant: Any, ray: Any, used: Any) -> Any:
    """Append the candidates of a ray in blocks span[0]:span[1]; return the new length of the list.

    memory: the planes of the blocks, the packed rays, and the list.
    """
    planes, packed_rays, found = memory
    base = b.mul(ray, I64(PACKED_WORDS))
    words = [packed_rays.splat(b.add(base, I64(k)), BLOCK) for k in range(PACKED_WORDS)]
    slabs = expand(*packed_parts(words))
    sides = [sides_of(b, I64(0), octant, axis, BLOCK) for axis in range(3)]
    end = Register(b, used)

    def test(block: Any) -> Lanes:
        start = b.mul(block, I64(_WORDS))

        def planes_of(axis: int) -> list[Lanes]:
            return [planes.load(b.add(start, side), BLOCK) for side in sides[axis]]

        near, far = clip(planes_of, slabs, words[STOP])
        return near <= far

    def test_blocks(begin: Any, stop: Any, blocks_per_branch: int) -> None:
        at = Register(b, begin)
        head, body, done = (b.append_basic_block(name) for name in ("head", "body", "done"))
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(b.icmp_signed("<", at.value, stop), body, done)
        b.position_at_end(body)
        block = at.value
        hit = [test(b.add(block, I64(k))) for k in range(blocks_per_branch)]
        any_hit = hit[0]
        for other in hit[1:]:
            any_hit = any_hit | other
        with b.if_then(any_hit.any(), likely=False):
            bits = hit[0].mask()
            for k in range(1, blocks_per_branch):
                bits = b.or_(bits, b.shl(hit[k].mask(), I64(BLOCK * k)))
            place = b.mul(end.value, I64(3))
            for k, value in enumerate((ray, b.mul(block, I64(BLOCK)), bits)):
                found.put(value, b.add(place, I64(k)))
            end.value = b.add(end.value, I64(1))
        at.value = b.add(block, I64(blocks_per_branch))
        b.branch(head)
        b.position_at_end(done)

    fours = b.sub(span[1], b.and_(b.sub(span[1], span[0]), I64(3)))
    test_blocks(span[0], fours, 4)
    test_blocks(fours, span[1], 1)
    return end.value


@device
def _write_keys_singly(task: AllPairsTask, workspace: AllPairsWorkspace, count: int) -> None:
    """Write the sort keys of fewer than 16 rays, from their packed rays."""
    set_up_rays(task.frame, workspace, workspace.rows, workspace.order, (whole(0), count))
    for k in range(count):
        workspace.keys[k] = (
            9 if workspace.packed_rays[k, STOP] == PASSES else octant_of(workspace.packed_rays, k)
        )


@device
def _sort(task: AllPairsTask, workspace: AllPairsWorkspace, begin: int, end: int) -> None:
    """Sort rays by octant; group 8 has rays that cannot be packed, group 9 rays that hit nothing."""
    keys, count = workspace.keys, end - begin
    for k in range(count):
        workspace.order[k] = k
    copy_rays(task.rays, begin, workspace.order, (whole(0), count), workspace.rows)
    if count < LANES:
        _write_keys_singly(task, workspace, count)
    else:
        sort_keys(task.rays, task.frame, begin, end, keys)
        for k in range(count):
            keys[k] = keys[k] // CELLS**3 if keys[k] != MISS_KEY else 9
    sort_by(keys, count, workspace.starts, workspace.order)


@device
def _write_pairs(workspace: AllPairsWorkspace, begin: int, base: int, word: int, count: int) -> int:
    """Append the pairs of one row of candidates; return the new number of pairs."""
    pairs, found = workspace.pairs, workspace.found
    r, first, bits = found[word, 0], found[word, 1], found[word, 2]
    source = base + workspace.order[begin + r]
    while bits != 0:
        pairs.ray[count], pairs.source[count] = r, source
        pairs.item[count] = first + lowest_bit(bits)
        bits &= bits - 1
        count += 1
    return count


@device
def _decide(task: AllPairsTask, workspace: AllPairsWorkspace, count: int, out: AllPairsResults) -> None:
    """Decide the listed pairs and write their results."""
    pairs = workspace.pairs
    for k in range(count, (count + 7) // 8 * 8):
        pairs.ray[k], pairs.item[k] = pairs.ray[0], pairs.item[0]
    decide_listed(task.boxes, workspace.rays64, pairs, count)
    for p in range(count):
        status, ray, item = pairs.status[p], pairs.source[p], pairs.item[p]
        if status == UNDECIDED:
            out.state[0] += 1
        if status != MISS and out.index.size > 0:
            k = ray * task.blocks.box_count + item
            out.index[k] = item if status == HIT else UNDECIDED_INDEX
            out.t[k] = pairs.low[p] if status == HIT else np.inf
        elif status == HIT:
            out.counts[ray] += 1


@device
def _list_single_ray(out: AllPairsResults, ray: int) -> None:
    """List a ray as one that cannot be packed."""
    out.single_rays[out.state[1]] = ray
    out.state[1] += 1


@device
def _intersect_octant(
    task: AllPairsTask, workspace: AllPairsWorkspace, base: int, octant: int, out: AllPairsResults
) -> None:
    """Decide the rays of a group whose directions are in one octant."""
    begin, end = workspace.starts[octant], workspace.starts[octant + 1]
    set_up_rays(task.frame, workspace, workspace.rows, workspace.order, (begin, end))
    for r in range(end - begin):
        if workspace.packed_rays[r, STOP] == NOT_PACKED:
            _list_single_ray(out, base + workspace.order[begin + r])
    planes = task.blocks.planes
    count = used = 0
    for tile in range(0, planes.shape[0], _TILE):
        span = (tile, min(tile + _TILE, planes.shape[0]))
        for r in range(end - begin):
            used = _list_candidates((planes, workspace.packed_rays, workspace.found), span, octant, r, used)
            last = span[1] == planes.shape[0] and r == end - begin - 1
            if used > _CANDIDATE_WORDS - _TILE or last:
                for word in range(used + 1):
                    if word < used:
                        count = _write_pairs(workspace, begin, base, word, count)
                    if count > _PAIRS or (last and word == used and count > 0):
                        _decide(task, workspace, count, out)
                        count = 0
                used = 0


@entry
def intersect_all_pairs(
    task: AllPairsTask, span: Any, workspace: AllPairsWorkspace, out: AllPairsResults
) -> None:
    """Decide rays span[0]:span[1] against every box; list the rays that cannot be packed."""
    for base in range(span[0], span[1], _GROUP):
        _sort(task, workspace, base, min(base + _GROUP, span[1]))
        for octant in range(8):
            if workspace.starts[octant] < workspace.starts[octant + 1]:
                _intersect_octant(task, workspace, base, octant, out)
        out.state[2] += workspace.starts[8]
        for k in range(workspace.starts[8], workspace.starts[9]):
            _list_single_ray(out, base + workspace.order[k])


def measure_rate(rays: Any, boxes: Any, seconds: float = 1.0) -> float:
    """Return the number of ray-box tests a second of one thread, measured.

    Rays and boxes are rows of three, as from `Rays.rows` and `Boxes.rows`. Hits are counted, undecided pairs
    are not; rays that miss the bounds of all boxes are neither tested nor counted.
    """
    task, workspace = make_task(rays, boxes), make_workspace()
    out = make_results(len(rays.origins), np.empty(0, np.int64), np.empty(0))
    intersect_all_pairs(task, (0, min(out.single_rays.size, 1)), workspace, out)
    done, start = 0, perf_counter()
    while (spent := perf_counter() - start) < seconds:
        out.state[:] = 0
        intersect_all_pairs(task, (0, out.single_rays.size), workspace, out)
        done += int(out.state[2]) * task.blocks.box_count
    return done / spent
