"""Every ray against every box, without a tree: float32 lists candidates, float64 decides.

Boxes are in blocks of sixteen (`raybox.scene.box_blocks`). All rays of a group are tested against a tile of
blocks, which fits a core's cache, before the next tile.
"""

from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import device, whole
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import lowest_bit
from raybox.geometry import BoxRows, RayRows
from raybox.primitives.box_pairs import decide_listed
from raybox.primitives.box_simd import Pairs, make_pairs
from raybox.primitives.status import HIT, MISS, UNDECIDED, UNDECIDED_INDEX
from raybox.scene.box_blocks import BlockHits, Blocks, list_candidates, make_blocks
from raybox.traversal.job import RaySpan
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
    octant_of,
)
from raybox.traversal.workspace import SetupSpan
from raybox.validation import Floats, Floats32, Ints, Ints32

_TILE = 64  # blocks: 24 KiB
_GROUP = 1024  # rays that are set up by one call
_CANDIDATE_WORDS = 1024  # rows of the list of candidates, of 64 boxes each
_PAIRS = 2048  # pairs that float64 decides by one call
_SINGLE, _MISS = 8, 9  # keys after those of octants: of rays that cannot be packed, or hit nothing


class AllPairsTask(NamedTuple):
    """Rays, and boxes as given and in blocks."""

    rays: RayRows
    rows: BoxRows
    blocks: Blocks
    frame: Frame


def make_task(rays: RayRows, boxes: BoxRows) -> AllPairsTask:
    """Return the task of rays against boxes, given as rows of three."""
    blocks = make_blocks(*boxes)
    return AllPairsTask(rays, boxes, blocks, blocks.frame)


class AllPairsResults(NamedTuple):
    """Results: pair (ray, box) is element ray * boxes + box of index and t, which start as misses."""

    index: Ints  # type: ignore[assignment]  # (pairs,): the box, MISS_INDEX or UNDECIDED_INDEX
    t: Floats
    single_rays: Ints  # (rays,): rays that cannot be packed, for another kernel
    single_count: Ints  # (1,): how many these are
    undecided_count: Ints  # (1,): of pairs


def make_results(rays: int, index: Ints, t: Floats) -> AllPairsResults:
    """Return the results of `rays` rays; index and t: of pairs."""
    return AllPairsResults(index, t, np.empty(rays, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64))


class AllPairsWorkspace(NamedTuple):
    """Scratch memory of one thread."""

    keys: Ints32  # (rays + 16,)
    order: Ints32  # (rays + 16,)
    rows: Floats  # (rays + 16, 8)
    starts: Ints  # (11,)
    packed_rays: Floats32  # (rays + 16, 8)
    state: Ints32  # (rays + 16, 2), not used here
    rays64: Floats  # (rays + 16, 8)
    power: Ints32  # (rays + 16,)
    shift: Floats32  # (rays + 16,)
    found: BlockHits  # room for _CANDIDATE_WORDS
    pairs: Pairs


def make_workspace() -> AllPairsWorkspace:
    """Return the scratch memory of one thread."""
    keys, order = (np.empty(_GROUP + 16, np.int32) for _ in range(2))
    rows, exact = (np.empty((_GROUP + 16, NUMBERS)) for _ in range(2))
    packed_rays = np.empty((_GROUP + 16, PACKED_WORDS), np.float32)
    state = np.empty((_GROUP + 16, STATE_WORDS), np.int32)
    pairs = make_pairs(_PAIRS + 64)
    power, shift = np.empty(_GROUP + 16, np.int32), np.empty(_GROUP + 16, np.float32)
    found = BlockHits(*(np.empty(_CANDIDATE_WORDS, np.int64) for _ in range(3)))
    return AllPairsWorkspace(
        keys, order, rows, np.empty(11, np.int64), packed_rays, state, exact, power, shift, found, pairs
    )


@device
def _write_keys_singly(task: AllPairsTask, workspace: AllPairsWorkspace, count: int) -> None:
    """Write the sort keys of fewer than 16 rays, from their packed rays."""
    set_up_rays(task, workspace, workspace.rows, workspace.order, SetupSpan(whole(0), count, False))
    for k in range(count):
        workspace.keys[k] = (
            _MISS if workspace.packed_rays[k, STOP] == PASSES else octant_of(workspace.packed_rays, k)
        )


@device
def _sort(task: AllPairsTask, workspace: AllPairsWorkspace, begin: int, end: int) -> None:
    """Sort rays by octant, or `_SINGLE` and `_MISS`."""
    keys, count = workspace.keys, end - begin
    for k in range(count):
        workspace.order[k] = k
    copy_rays(task.rays, begin, workspace.order, RaySpan(whole(0), count), workspace.rows)
    if count < LANES:
        _write_keys_singly(task, workspace, count)
    else:
        sort_keys(task.rays, task.frame, begin, end, keys)
        for k in range(count):
            keys[k] = keys[k] // CELLS**3 if keys[k] != MISS_KEY else _MISS
    sort_by(keys, count, workspace.starts, workspace.order)


@device
def _write_pairs(workspace: AllPairsWorkspace, begin: int, base: int, word: int, count: int) -> int:
    """Append the pairs of one row of candidates; return the new number of pairs."""
    pairs, found = workspace.pairs, workspace.found
    r, first, bits = found.ray[word], found.first[word], found.boxes[word]
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
    decide_listed(task.rows, workspace.rays64, pairs, count)
    for p in range(count):
        status, ray, item = pairs.status[p], pairs.source[p], pairs.item[p]
        if status == UNDECIDED:
            out.undecided_count[0] += 1
        if status != MISS:
            k = ray * task.blocks.box_count + item
            out.index[k] = item if status == HIT else UNDECIDED_INDEX
            out.t[k] = pairs.low[p] if status == HIT else np.inf


@device
def _list_single_ray(out: AllPairsResults, ray: int) -> None:
    """List a ray as one that cannot be packed."""
    out.single_rays[out.single_count[0]] = ray
    out.single_count[0] += 1


@device
def _intersect_octant(
    task: AllPairsTask, workspace: AllPairsWorkspace, base: int, octant: int, out: AllPairsResults
) -> None:
    """Decide the rays of a group whose directions are in one octant."""
    begin, end = workspace.starts[octant], workspace.starts[octant + 1]
    set_up_rays(task, workspace, workspace.rows, workspace.order, SetupSpan(begin, end, False))
    for r in range(end - begin):
        if workspace.packed_rays[r, STOP] == NOT_PACKED:
            _list_single_ray(out, base + workspace.order[begin + r])
    planes = task.blocks.planes
    count = used = 0
    for tile in range(0, planes.shape[0], _TILE):
        span = (tile, min(tile + _TILE, planes.shape[0]))
        for r in range(end - begin):
            used = list_candidates((planes, workspace.packed_rays), workspace.found, span, (octant, r), used)
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
    task: AllPairsTask, span: tuple[int, int], workspace: AllPairsWorkspace, out: AllPairsResults
) -> None:
    """Decide rays span[0]:span[1] against every box; list the rays that cannot be packed."""
    for base in range(span[0], span[1], _GROUP):
        _sort(task, workspace, base, min(base + _GROUP, span[1]))
        for octant in range(8):
            if workspace.starts[octant] < workspace.starts[octant + 1]:
                _intersect_octant(task, workspace, base, octant, out)
        for k in range(workspace.starts[_SINGLE], workspace.starts[_MISS]):
            _list_single_ray(out, base + workspace.order[k])
