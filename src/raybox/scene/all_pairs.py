"""Every ray against every box, without a tree: float32 proposes, sixteen boxes at a time, float64 decides.

Boxes are held in tree coordinates, rounded outward, in *blocks* of sixteen: low x, low y, low z, up x, up y,
up z, sixteen float32 each. Rays come as probes: `raybox.traversal.ray_setup` says why none of the boxes they
meet is refused. A stretch of blocks that fits a core's own cache is tested by all rays of a group before the
next. A test is 6 fused multiply-adds, 6 minima and maxima and a compare for 16 boxes, and a branch for 64.
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
from raybox.compiler.simd_loops import Register
from raybox.compiler.simd_single import lowest_bit
from raybox.primitives.box_pairs import MISS, UNDECIDED, decide_listed
from raybox.primitives.box_simd import Pairs, make_pairs
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
_RAYS = 1024  # rays aimed together
_ROOM = 1024  # words of 64 proposals
_PAIRS = 2048  # pairs decided together


class Blocks(NamedTuple):
    """Boxes ready to be swept."""

    planes: Any  # float32 (blocks, 96)
    frame: Frame
    number: int


class Task(NamedTuple):
    """What is swept: rows of rays, and of boxes, as they came and in blocks."""

    rays: Any
    boxes: Any
    blocks: Blocks
    frame: Frame


def make_task(rays: Any, boxes: Any) -> Task:
    """Make ready to sweep rays over boxes, given as rows of three."""
    blocks = make_blocks(*boxes)
    return Task(rays, boxes, blocks, blocks.frame)


class Answers(NamedTuple):
    """What comes of a sweep. Pair (ray, box) is number ray * boxes + box of index and t; they come as misses.

    Without room there, hits are counted.
    """

    index: Any  # int64 (pairs,): the box, MISS or UNDECIDED
    t: Any
    counts: Any  # int64 (rays,)
    careful: Any  # int64 (rays,): rays that were left out
    state: Any  # int64 (3,): pairs in doubt, rays left out, rays swept


def make_answers(rays: int, index: Any, t: Any) -> Answers:
    """Make room for the answers about so many rays beside those about pairs."""
    counts = np.zeros(rays if index.size == 0 else 0, np.int64)
    return Answers(index, t, counts, np.empty(rays, np.int64), np.zeros(3, np.int64))


class Workspace(NamedTuple):
    """Memory of a sweep."""

    keys: Any  # int32 (rays + 16,)
    order: Any  # int32 (rays + 16,)
    rows: Any  # float64 (rays + 16, 8)
    starts: Any  # int64 (11,)
    packed_rays: Any  # float32 (rays + 16, 8)
    state: Any  # int32 (rays + 16, 2), not asked for
    rays64: Any  # float64 (rays + 16, 8)
    power: Any  # int32 (rays + 16,)
    shift: Any  # float32 (rays + 16,)
    found: Any  # int64 (_ROOM, 3): a ray of the group, the first of 64 boxes, a bit for each it may meet
    pairs: Pairs


def make_blocks(lower: Any, upper: Any) -> Blocks:
    """Lay out boxes, given as float64 rows of three."""
    center, exponent, _ = choose_frame(lower, upper)
    number = len(lower)
    rows = np.empty((-(-number // BLOCK) * BLOCK, 6), np.float32)
    rows[number:] = [np.inf] * 3 + [-np.inf] * 3  # nothing meets these
    rows[:number, :3] = -_outward(-lower, -center, 2.0**exponent)
    rows[:number, 3:] = _outward(upper, center, 2.0**exponent)
    planes = huge_pages.empty((len(rows) // BLOCK, _WORDS), np.float32)
    planes.reshape(-1, 6, BLOCK)[:] = rows.reshape(-1, BLOCK, 6).swapaxes(1, 2)
    root = np.array([rows[:, :3].min(axis=0), rows[:, 3:].max(axis=0)], np.float64)
    return Blocks(planes, make_frame(center, exponent, root), number)


def _outward(planes: Any, center: Any, scale: float) -> Any:
    """Take upper planes to tree coordinates, rounded up as `raybox.bvh.node.outward_up` does."""
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = (planes - center) * scale
        moved = shifted + (np.abs(shifted) * (ULP + 2.0**-50) + NUDGE)
    return np.where(shifted > FAR, np.inf, np.where(shifted < -FAR, -FAR, moved))


def make_workspace() -> Workspace:
    """Make the memory of a sweep."""
    keys, order = (np.empty(_RAYS + 16, np.int32) for _ in range(2))
    rows, exact = (np.empty((_RAYS + 16, NUMBERS)) for _ in range(2))
    packed_rays = np.empty((_RAYS + 16, PACKED_WORDS), np.float32)
    answers = np.empty((_RAYS + 16, STATE_WORDS), np.int32)
    pairs = make_pairs(_PAIRS + 64)
    power, shift = np.empty(_RAYS + 16, np.int32), np.empty(_RAYS + 16, np.float32)
    found = np.empty((_ROOM, 3), np.int64)
    return Workspace(
        keys, order, rows, np.empty(11, np.int64), packed_rays, answers, exact, power, shift, found, pairs
    )


@vector_code(types.int64)
def _propose(b: Any, memory: Any, span: Any, octant: Any, ray: Any, used: Any) -> Any:
    """List the boxes of blocks span[0] <= block < span[1] that a ray may meet; return where the list ends.

    `memory`: the blocks' planes, the rays' probes, and room for the list.
    """
    planes, packed_rays, found = memory
    base = b.mul(ray, I64(PACKED_WORDS))
    words = [packed_rays.splat(b.add(base, I64(k)), BLOCK) for k in range(PACKED_WORDS)]
    lines = expand(*packed_parts(words))
    sides = [sides_of(b, I64(0), octant, axis, BLOCK) for axis in range(3)]
    end = Register(b, used)

    def test(block: Any) -> Lanes:
        start = b.mul(block, I64(_WORDS))

        def planes_of(axis: int) -> list[Lanes]:
            return [planes.load(b.add(start, side), BLOCK) for side in sides[axis]]

        near, far = clip(planes_of, lines, words[STOP])
        return near <= far

    def sweep(begin: Any, stop: Any, tie_is_certain: int) -> None:
        at = Register(b, begin)
        head, body, done = (b.append_basic_block(name) for name in ("head", "body", "done"))
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(b.icmp_signed("<", at.value, stop), body, done)
        b.position_at_end(body)
        block = at.value
        met = [test(b.add(block, I64(k))) for k in range(tie_is_certain)]
        one = met[0]
        for other in met[1:]:
            one = one | other
        with b.if_then(one.any(), likely=False):
            bits = met[0].mask()
            for k in range(1, tie_is_certain):
                bits = b.or_(bits, b.shl(met[k].mask(), I64(BLOCK * k)))
            place = b.mul(end.value, I64(3))
            for k, value in enumerate((ray, b.mul(block, I64(BLOCK)), bits)):
                found.put(value, b.add(place, I64(k)))
            end.value = b.add(end.value, I64(1))
        at.value = b.add(block, I64(tie_is_certain))
        b.branch(head)
        b.position_at_end(done)

    fours = b.sub(span[1], b.and_(b.sub(span[1], span[0]), I64(3)))
    sweep(span[0], fours, 4)
    sweep(fours, span[1], 1)
    return end.value


@device
def _few_keys(task: Task, workspace: Workspace, number: int) -> None:
    """Write by what each of a few rays is sorted, from their probes."""
    set_up_rays(task.frame, workspace, workspace.rows, workspace.order, (whole(0), number))
    for k in range(number):
        workspace.keys[k] = (
            9 if workspace.packed_rays[k, STOP] == PASSES else octant_of(workspace.packed_rays, k)
        )


@device
def _sort(task: Task, workspace: Workspace, begin: int, end: int) -> None:
    """Sort rays by octant; ninth come those that are not for vectors, tenth those that meet nothing."""
    keys, number = workspace.keys, end - begin
    for k in range(number):
        workspace.order[k] = k
    copy_rays(task.rays, begin, workspace.order, (whole(0), number), workspace.rows)
    if number < LANES:
        _few_keys(task, workspace, number)
    else:
        sort_keys(task.rays, task.frame, begin, end, keys)
        for k in range(number):
            keys[k] = keys[k] // CELLS**3 if keys[k] != MISS_KEY else 9
    sort_by(keys, number, workspace.starts, workspace.order)


@device
def _list(workspace: Workspace, begin: int, base: int, word: int, number: int) -> int:
    """Write out the pairs of one word of proposals; return how many pairs there are now."""
    pairs, found = workspace.pairs, workspace.found
    r, first, bits = found[word, 0], found[word, 1], found[word, 2]
    source = base + workspace.order[begin + r]
    while bits != 0:
        pairs.ray[number], pairs.source[number] = r, source
        pairs.item[number] = first + lowest_bit(bits)
        bits &= bits - 1
        number += 1
    return number


@device
def _decide(task: Task, workspace: Workspace, number: int, out: Answers) -> None:
    """Decide the pairs of the desk and write down what came of them."""
    pairs = workspace.pairs
    for k in range(number, (number + 7) // 8 * 8):
        pairs.ray[k], pairs.item[k] = pairs.ray[0], pairs.item[0]
    decide_listed(task.boxes, workspace.rays64, pairs, number)
    for p in range(number):
        status, ray, item = pairs.status[p], pairs.source[p], pairs.item[p]
        if status == UNDECIDED:
            out.state[0] += 1
        if status != MISS and out.index.size > 0:
            k = ray * task.blocks.number + item
            out.index[k] = item if status == 0 else UNDECIDED
            out.t[k] = pairs.low[p] if status == 0 else np.inf
        elif status == 0:
            out.counts[ray] += 1


@device
def _leave_out(out: Answers, ray: int) -> None:
    """List a ray as one that is not for vectors."""
    out.careful[out.state[1]] = ray
    out.state[1] += 1


@device
def _sweep_octant(task: Task, workspace: Workspace, base: int, octant: int, out: Answers) -> None:
    """Decide the rays of a group that run into one octant."""
    begin, end = workspace.starts[octant], workspace.starts[octant + 1]
    set_up_rays(task.frame, workspace, workspace.rows, workspace.order, (begin, end))
    for r in range(end - begin):
        if workspace.packed_rays[r, STOP] == NOT_PACKED:
            _leave_out(out, base + workspace.order[begin + r])
    planes = task.blocks.planes
    number = used = 0
    for tile in range(0, planes.shape[0], _TILE):
        span = (tile, min(tile + _TILE, planes.shape[0]))
        for r in range(end - begin):
            used = _propose((planes, workspace.packed_rays, workspace.found), span, octant, r, used)
            last = span[1] == planes.shape[0] and r == end - begin - 1
            if used > _ROOM - _TILE or last:
                for word in range(used + 1):
                    if word < used:
                        number = _list(workspace, begin, base, word, number)
                    if number > _PAIRS or (last and word == used and number > 0):
                        _decide(task, workspace, number, out)
                        number = 0
                used = 0


@entry
def sweep(task: Task, span: Any, workspace: Workspace, out: Answers) -> None:
    """Decide rays span[0] <= k < span[1] against every box; list the rays that are not for vectors."""
    for base in range(span[0], span[1], _RAYS):
        _sort(task, workspace, base, min(base + _RAYS, span[1]))
        for octant in range(8):
            if workspace.starts[octant] < workspace.starts[octant + 1]:
                _sweep_octant(task, workspace, base, octant, out)
        out.state[2] += workspace.starts[8]
        for k in range(workspace.starts[8], workspace.starts[9]):
            _leave_out(out, base + workspace.order[k])


def rate(rays: Any, boxes: Any, seconds: float = 1.0) -> float:
    """Return how many tests of a ray against a box one thread does in a second, here and now.

    Rays and boxes are rows of three, as `Rays.rows` and `Boxes.rows` give them. Hits are counted, exactly
    but for pairs in doubt, which are listed only; rays that pass by everything are not tested, nor counted.
    """
    task, workspace = make_task(rays, boxes), make_workspace()
    out = make_answers(len(rays.origins), np.empty(0, np.int64), np.empty(0))
    sweep(task, (0, min(out.careful.size, 1)), workspace, out)
    done, start = 0, perf_counter()
    while (spent := perf_counter() - start) < seconds:
        out.state[:] = 0
        sweep(task, (0, out.careful.size), workspace, out)
        done += int(out.state[2]) * task.blocks.number
    return done / spent
