"""Ray setup, many rays at a time: in tree coordinates, in float32, with margins so that no box is lost.

A *packed ray* is one row of 8 four-byte words::

    word   0     3         6       7
           | c   | inverse | slack | stop
           | xyz | xyz     |       |

The lower half of the slack's word is that of another number: the error of the ends of the range.

Of a plane, near time = plane * inverse + c - e, and far time = K (plane * inverse + c) + e, where ``e = 3.25
u abs(c) + abs(inverse) slack`` and K = 1 + 8u, for u = 2^-24 (`raybox.traversal.slab_coefficients`): in units
of the tree's length over the direction's, counted from a shift that is stored beside: t * 2^n - shift. These
are the numbers for fused operations (`FUSED`); see below for machines without.

`raybox.traversal.ray_bounds` takes rays to tree coordinates and clips them, `raybox.traversal.packed_rays`
writes packed rays. The point x = v + shift w takes float64, for numbers may cancel there; the rest is
float32.

**Why no box is lost.** Times count from `shift`, before which the ray is in no box, so all that matter are 0
or more. Let a plane at p be crossed at such a time T = (p - x)/w. The slot holds a plane b beyond p, outward,
so (b - x)/w is at most T for near planes, and at least T for far ones. The inverse is rounded twice, so it is
off by 2u of itself; c is off by u of itself, and by abs(inverse) times what float64 rounds off x, which slack
is well above.

Near times: c - e is rounded by u abs(c), and the sum by u of itself. They come out at T (1 + 3u) at most,
since 2u abs(c) are less than e; and at 0 or below for planes behind, where it makes no difference. Far times:
K c + e is rounded by u abs(c), K inverse by u of itself, which is u of T and of abs(c), and the sum by u of
itself. They come out at T (1 + 8u - 4u) at least, since 3u abs(c) are less than e. So near times are at most
the far times of the same box, and at most the ends, which are later by 8u than the time they stand for
(`LATER`). A parent's planes lie outside its child's, and rounding is monotone: ``b <= b'  =>  fl(b inverse +
c) <= fl(b' inverse + c)`` for an inverse above 0, so a parent never drops a ray that its child accepts.

An axis along which the ray stands still has inverse = 2^100, with nothing rounded in c. A slot's planes are
no nearer to x, rounded, than those that they stand for, and slack is 2^-38 at least: near times are at most
-2^62, far times at least 2^62, wherever the origin is between the planes or on one; and after all ends where
it is outside by more than the slack. Rays that might hit something even later than that are not packed. A ray
of zero direction is a point: it ends where it begins, and its times count in lengths of 1.

**Error bounds.** Slots hold planes off by 3u of themselves, which is 3u of T and of abs(c).
So near times are early by 7u of T and 5u abs(c) + e, far times late by 16u of T and 6u abs(c) + e. The
*margin* is 3e, the worst of three axes, which is more than either beside its share of T, and the error of the
ends of the range. Where a ray stands still on an axis it is larger than all times.

**Without fused operations** (`UNFUSED`) products are rounded, too: ``e = 5.25 u abs(c) + abs(inverse) slack``
and K = 1 + 10u. The product of a plane is off by u of itself, which is u of T and of abs(c); K c is off by u
abs(c). So near times come out at T (1 + 4u) at most, since 3u abs(c) are less than e; far times at T (1 + 10u
- 5u) at least, since 5u abs(c) are less than e. Near times are early by 8u of T and 6u abs(c) + e, far times
late by 19u of T and 8u abs(c) + e; 3e is more than either beside its share of T. Rounded products are
monotone, too, and one that overflows has the sign of the sum, which is beyond 2^127. Where a ray stands still
on an axis, e covers the products with K, which are off by 3u abs(c) together. The product shift w is off by
2^-53 of x and of v: little beside u abs(c), and an eighth of the slack.

Rays whose numbers are so large or small that floats might over- or underflow are not packed (`NOT_PACKED`,
`UNDECIDED_INDEX`): the single-ray traversal decides them, one at a time.
"""

from typing import NamedTuple

import numpy as np

from raybox.bvh.node import CHILD, EMPTY, FAR, WIDTH, Tree
from raybox.bvh.selection import smallest
from raybox.compiler.decorators import device, whole
from raybox.compiler.entry_points import entry
from raybox.compiler.struct_ref import struct
from raybox.compiler.target import has
from raybox.validation import Floats, Floats32, Ints32

PACKED_WORDS = 8
NUMBERS = 8  # of a ray, in a row: its origin, its direction, t_min and t_max
INVERSE, SLACK, STOP = 3, 6, 7
RESULT, TIMED, STATE_WORDS = 0, 1, 2  # of a ray's state, which a query records; how many words it has
LANES, _EIGHT = 16, 8
LATER = 2.0**-21  # of themselves: by so much ends are later than the times they stand for
CELLS = 8  # on each axis
PASSES, NOT_PACKED = -1.0, -2.0  # the ends of rays that hit nothing (more), and of those that are not packed
_TAME = 400  # a scale of up to two to this power leaves float64 room
_SAMPLE = 128  # nodes


class Margins(NamedTuple):
    """What makes node tests conservative; proven in the docstring of this module."""

    offset: float
    """Share of c in the error e, beside the slack."""
    far_factor: float
    """K: the factor of far times."""
    growth: float
    """Factor of near times that exceeds all relative errors (`raybox.traversal.node_test`)."""


FUSED = Margins(3.25 * 2.0**-24, 1.0 + 2.0**-21, 1.0 + 1.5 * 2.0**-20)
UNFUSED = Margins(5.25 * 2.0**-24, 1.0 + 1.25 * 2.0**-21, 1.0 + 2.0**-19)


def margins() -> Margins:
    """Return the margins of the code that is compiled here."""
    return FUSED if has("fma") else UNFUSED


def at_a_time() -> int:
    """Return how many rays are packed, and tested at a node, at a time.

    Sixteen float32 are two registers of AVX2, sixteen float64 four, of the sixteen that it has: most would
    live on the stack (rays that go anywhere take 5 to 14 % less time by eights).
    """
    return LANES if has("avx512f") else _EIGHT


@struct
class Frame(NamedTuple):
    """Tree coordinates as vector code reads them, and the grid by which rays are sorted."""

    numbers: Floats  # (18,), see `CENTER` and so on
    exponent: int


CENTER, SCALE, LOW, HIGH, CORNER, CELLS_A_UNIT, GRAIN, REACH = 0, 3, 4, 7, 10, 13, 16, 17
"""Places in `Frame.numbers`.

Of three axes each: the centre of the scene, the bounds of all boxes, the lower corner of the grid, and its
cells a unit. Of all: the scale of tree coordinates, the length of a box, and how far the origins of packed
rays may be.
"""


def frame_of(tree: Tree) -> Frame:
    """Return a tree's frame."""
    numbers, sizes = np.empty(REACH + 1), np.empty(min(len(tree.nodes), _SAMPLE) * WIDTH)
    _write_frame(tree, tree.nodes.view(np.float32), sizes, numbers)
    return Frame(numbers, tree.exponent)


@entry
def _write_frame(tree: Tree, planes: Floats32, sizes: Floats, numbers: Floats) -> None:
    """Write the numbers of a frame; `sizes` is scratch memory."""
    tame = abs(tree.exponent) <= _TAME
    for axis in range(3):
        tame &= abs(tree.center[axis]) <= 2.0**_TAME
        low, up = max(-2.0, min(2.0, tree.root[0, axis])), max(-2.0, min(2.0, tree.root[1, axis]))
        numbers[CENTER + axis] = tree.center[axis]
        numbers[LOW + axis], numbers[HIGH + axis] = tree.root[0, axis], tree.root[1, axis]
        numbers[CORNER + axis], numbers[CELLS_A_UNIT + axis] = low, CELLS / max(up - low, 2.0**-30)
    numbers[SCALE], numbers[REACH] = tree.scale, FAR if tame else 0.0
    numbers[GRAIN] = _grain(tree.nodes, planes, sizes)


@device
def _grain(nodes: Ints32, planes: Floats32, sizes: Floats) -> float:
    """Return how long boxes are: the median of the mean of three axes, of a few hundred boxes."""
    chosen, last = min(nodes.shape[0], _SAMPLE), nodes.shape[0] - 1
    step = last / max(chosen - 1, 1)
    count = 0
    for k in range(chosen):
        node = last if k == chosen - 1 else int(k * step)
        for slot in range(WIDTH):
            child, size = nodes[node, CHILD + slot], _mean_size(planes, node, slot)
            if child < 0 and child != EMPTY and size == size:  # damaged files may have NaN
                sizes[count] = size
                count += 1
    if count == 0:
        return 0.0
    upper = smallest(sizes, count, count // 2)
    lower = upper if count % 2 == 1 else smallest(sizes, count // 2, count // 2 - 1)
    return float(np.float32(lower + upper) / np.float32(2.0))


@device
def _mean_size(planes: Floats32, node: int, slot: int) -> np.float32:
    total = np.float32(0.0)
    for axis in range(3):
        total += planes[node, WIDTH * (3 + axis) + slot] - planes[node, WIDTH * axis + slot]
    return total / np.float32(3.0)


@device
def octant_of(packed_rays: Floats32, r: int) -> int:
    """Return the octant that a packed ray runs into."""
    octant = whole(0)
    for axis in range(3):
        octant |= int(packed_rays[r, INVERSE + axis] < 0.0) << axis
    return octant
