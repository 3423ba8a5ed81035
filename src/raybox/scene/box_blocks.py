"""Boxes in blocks of sixteen, and the float32 test of a ray against them.

A block has low x, low y, low z, up x, up y, up z, in tree coordinates, rounded outward, sixteen float32 each.
Rays are packed as for a tree: `raybox.traversal.ray_setup` proves that no box they hit is lost. A test is 6
multiply-adds, 6 minima and maxima and a compare for 16 boxes, and a branch for 64.
"""

from typing import NamedTuple

import numpy as np

from raybox.bvh.frame import choose_frame
from raybox.bvh.node import FAR, NUDGE, ROW, ULP, Tree, to_tree
from raybox.compiler import huge_pages
from raybox.compiler.intrinsics import Fields, int64, vector_code
from raybox.compiler.simd import I64, Builder, Lanes, Scalar
from raybox.compiler.simd_arrays import Memory, Register
from raybox.traversal.node_test import clip, sides_of, slab_times
from raybox.traversal.ray_setup import PACKED_WORDS, STOP, Frame, frame_of
from raybox.traversal.slab_coefficients import expand, packed_parts
from raybox.validation import Floats, Floats32, Ints

BLOCK = 16
_WORDS = 6 * BLOCK
_NO_NODES, _NO_PARTS = np.empty((0, ROW), np.int32), np.empty(0, np.int64)


class Blocks(NamedTuple):
    """Boxes in blocks of sixteen."""

    planes: Floats32  # (blocks, 96)
    frame: Frame
    box_count: int


def make_blocks(lower: Floats, upper: Floats) -> Blocks:
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
    tree = Tree(_NO_NODES, center, root, 2.0**exponent, exponent, _NO_PARTS)
    return Blocks(planes, frame_of(tree), count)


def _outward(planes: Floats, center: Floats, scale: float) -> Floats:
    """Return upper planes in tree coordinates, rounded up as by `raybox.bvh.node.outward_up`."""
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = to_tree(planes, center, scale)
        moved = shifted + (np.abs(shifted) * (ULP + 2.0**-50) + NUDGE)
    return np.where(shifted > FAR, np.inf, np.where(shifted < -FAR, -FAR, moved))


class BlockHits(NamedTuple):
    """Rays and boxes that they may hit: a row for each ray and 64 boxes."""

    ray: Ints
    first: Ints  # of 64 boxes
    boxes: Ints  # a bit for each of them


@vector_code(int64)
def list_candidates(
    b: Builder, memory: list[Memory], found: Fields, span: list[Scalar], which: list[Scalar], used: Scalar
) -> Scalar:
    """Append the candidates of a ray in blocks span[0]:span[1]; return the new length of the list.

    memory: the planes of the blocks, and the packed rays; which: an octant, and a ray.
    """
    (planes, packed_rays), (octant, ray) = memory, which
    base = b.mul(ray, I64(PACKED_WORDS))
    words = [packed_rays.splat(b.add(base, I64(k)), BLOCK) for k in range(PACKED_WORDS)]
    slabs = expand(*packed_parts(words))
    sides = [sides_of(b, I64(0), octant, axis, BLOCK) for axis in range(3)]
    end = Register(b, used)

    def test(block: Scalar) -> Lanes:
        start = b.mul(block, I64(_WORDS))

        def planes_of(axis: int) -> list[Lanes]:
            return [planes.load(b.add(start, side), BLOCK) for side in sides[axis]]

        near, far = clip(slab_times(planes_of, slabs), words[STOP])
        return near <= far

    def test_blocks(begin: Scalar, stop: Scalar, blocks_per_branch: int) -> None:
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
            found.ray.put(ray, end.value)
            found.first.put(b.mul(block, I64(BLOCK)), end.value)
            found.boxes.put(bits, end.value)
            end.value = b.add(end.value, I64(1))
        at.value = b.add(block, I64(blocks_per_branch))
        b.branch(head)
        b.position_at_end(done)

    fours = b.sub(span[1], b.and_(b.sub(span[1], span[0]), I64(3)))
    test_blocks(span[0], fours, 4)
    test_blocks(fours, span[1], 1)
    return end.value
