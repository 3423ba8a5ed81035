"""Rays as the tree sees them, many at a time: in tree coordinates, in float32, and never too strict.

A *probe* is one row of 16 four-byte words::

    word   0       3       6          9         12    13      14      15
           | c near| c far | inverse | inverse | stop| answer| margin| timed|
           | xyz   | xyz   | near xyz| far xyz |

near time = plane * inverse + c, in units of the tree's length over the direction's, counted from a shift
that is kept beside: t * 2^n - shift. Answer and timed are for `raybox.bvh.notes`.

`raybox.bvh.seen` takes rays to tree coordinates and clips them, `raybox.bvh.words` writes probes. Where the
ray is, x = v + shift w, takes float64, for numbers may cancel there; the rest is float32. Let u = 2^-24.

**Why no box is lost.** Times count from `shift`, before which the ray is in no box, so all that
matter are 0 or more. Let a plane at p be met at such a time T = (p - x)/w. The slot holds a plane b beyond p,
outward, so N = (b - x)/w is at most T for near planes, and at least T for far ones. What float32 computes is
``fl(b inv + c)``, rounded once. For near planes inv is less than 1/w by 3u of itself at least: it is rounded
three times, and `PAD` is 6u. c is below -x inv: x is off by u abs(x) and its share of what float64 rounds,
c is rounded once, and its *error*, taken off, is abs(inv) times 3u abs(x) and more than that share (`slack`).
So near times come out at N (1 - 3u)(1 + u) at most where N > 0, and at 0 or below otherwise, where it makes
no difference; far times, by the mirror image, at N at least. A parent's planes lie outside its child's, and
rounding is monotone: ``b <= b'  =>  fl(b inv + c) <= fl(b' inv + c)`` for inv > 0, so a parent never refuses
what its child accepts.

An axis along which the ray stands still has inv = 2^64, and c goes outward by the length of the
whole ray besides: near times at 0 or below, and far times past the ray's end, wherever the origin is
between the planes or on one, and times out of all reach where it is outside by more than a trifle.

**How far off times are at most.** Slots hold planes off by 3u of themselves, the inverse is off by 9u, and
the last rounding adds u: 13u of T. Of abs(x inv) it is 8u: 3u from the slot's plane, which is T w + x, u from
x, 3u from the error in c, and u from rounding that. Let e = 2^-20 = 16u: a computed time T of a plane
stands for a true one within e |T| + M/4 of it. The margin M is 16 times the error of c, the worst of three
axes; and enough to cover how far off the ends of the range are. There is none (M is infinite) for rays with
an axis that stands still.

Rays whose numbers are so large or small that floats might over- or underflow on the way are left
to `raybox.bvh.traverse`, one at a time (`UNAIMED`, `DOUBT`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.layout import CHILD, EMPTY, FAR, WIDTH, Tree
from raybox.kernels.jit import device, whole
from raybox.kernels.machine import has

PROBE = 16
NUMBERS = 8  # of a ray, in a row: its origin, its direction, t_min and t_max
INVERSE, STOP, ANSWER, MARGIN, TIMED = 6, 12, 13, 14, 15
LANES, _EIGHT = 16, 8
CELLS = 8  # on each axis
PASSES, UNAIMED = -1.0, -2.0  # the stops of rays that meet nothing, and of those that are not for vectors
MISS = -1  # the answer to begin with
DOUBT = -2  # the answer of rays that are not for vectors
_CALM = 400  # a scale of up to two to this power leaves float64 room
_SAMPLE = 128  # nodes


def at_a_time() -> int:
    """Return how many rays are made probes of, and tested at a node, at a time.

    Sixteen float32 are two registers of AVX2, sixteen float64 four, of the sixteen that it has: most would
    live on the stack. (10^5 boxes, AMD EPYC of family 25: rays that go anywhere take 5 to 14 % less time by
    eights, their lists being short besides.)
    """
    return LANES if has("avx512f") else _EIGHT


class Frame(NamedTuple):
    """Tree coordinates as vector code takes them, and the grid by which rays are sorted."""

    # float64: center xyz, scale, root's corners xyz xyz, grid's corner xyz, cells a unit xyz, a box's length,
    # and how far away, in tree coordinates, the origins of rays may be that are for vectors
    numbers: Any
    exponent: int


def frame_of(tree: Tree) -> Frame:
    """Return a tree's frame."""
    return make_frame(tree.center, tree.exponent, tree.root, _grain(tree.nodes))


def make_frame(center: Any, exponent: int, root: Any, grain: float = 0.0) -> Frame:
    """Return the frame of boxes with these tree coordinates, and these bounds in them."""
    low, up = (np.clip(corner, -2.0, 2.0) for corner in root)
    size = np.maximum(up - low, 2.0**-30)
    calm = abs(exponent) <= _CALM and bool((np.abs(center) <= 2.0**_CALM).all())
    numbers = [center, [2.0**exponent], root.ravel(), low, CELLS / size, [grain, FAR if calm else 0.0]]
    return Frame(np.concatenate(numbers), exponent)


def _grain(nodes: Any) -> float:
    """Return how long boxes are, the median of the mean of three axes, of a few hundred boxes at most."""
    some = nodes[np.linspace(0, len(nodes) - 1, min(len(nodes), _SAMPLE)).astype(np.int64)]
    children = some[:, CHILD:]
    planes = some[:, :CHILD].view(np.float32).reshape(-1, 2, 3, WIDTH)
    with np.errstate(invalid="ignore"):
        sizes = (planes[:, 1] - planes[:, 0]).mean(axis=1)[(children < 0) & (children != EMPTY)]
    return float(np.median(sizes)) if sizes.size else 0.0


@device
def octant_of(probes: Any, r: int) -> int:
    """Return the octant that a ray runs into, by its probe."""
    octant = whole(0)
    for axis in range(3):
        octant |= int(probes[r, INVERSE + axis] < 0.0) << axis
    return octant
