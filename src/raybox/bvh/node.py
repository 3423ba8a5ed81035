"""The node format, and the tree coordinates.

A node is one row of 56 four-byte words, 224 bytes, eight slots wide::

    word   0      8      16     24     32     40     48     56
           | low x| low y| low z| up x | up y | up z | child|      8 float32 each; child: 8 int32

    child >= 0      the slot is an inner node: its row
    child <  0      the slot *is* a box: number ~child. There are no leaf nodes.
    child == EMPTY  the slot is free; its bounds are (+inf, -inf), which no ray hits

Node 0 is the root and a node's children come after it. An inner slot's bounds are the exact
union of the child's eight slots (min and max do not round).

Nodes live in *tree coordinates*, so that map coordinates (5e5, 4e6) with millimetre boxes keep
float32's full resolution: ``x' = (x - center) * scale``, scale a power of two that brings the
bulk of the scene near [-1, 1], rounded *outward* to float32 by `outward_down` and `outward_up`. A scale
below 1 is applied before the difference, which may overflow otherwise (`to_tree`).

A large tree has a *top* and *parts* (subtrees that one thread built, see `raybox.bvh.build`): the rows of
the top come first, then those of each part, its root first. No child of a part's node is outside of it,
so a part can be replaced (see `raybox.bvh.partial_rebuild`).

**Starts.** Each ray starts at the nodes of row 0 of `starts`: the root, or, in a tree of groups
(`raybox.bvh.forest`), what is common to all. A ray of a group starts at those of its group's row, too.
"""

from typing import NamedTuple, TypeVar

import numpy as np

from raybox.compiler.decorators import device
from raybox.compiler.struct_ref import struct
from raybox.validation import Floats, Ints, Ints32

X = TypeVar("X", float, Floats)

WIDTH = 8
ROW = 7 * WIDTH
CHILD = 6 * WIDTH
EMPTY = -(2**31)
MAX_DEPTH = 64  # levels of nodes; no build exceeds it, whatever the boxes
MAX_STARTS = 16  # nodes of a row of `Tree.starts`
STACK = MAX_DEPTH * (WIDTH - 1) + WIDTH + 2 * MAX_STARTS
FAR = 2.0**60  # finite planes beyond it are moved to it or to infinity, whichever is outward
ULP = 2.0**-23  # twice what rounding to float32 can move a number
NUDGE = 2.0**-100  # absolute outward slack: float32 underflow loses at most 2^-149


ROOT_ALONE = np.array([[0, 1]], np.int32)
ROOT_ALONE.flags.writeable = False


@struct
class Tree(NamedTuple):
    """A tree, as passed to kernels. All arrays are frozen."""

    nodes: Ints32  # (n, 56), see above
    center: Floats  # (3,)
    root: Floats  # (2, 3): bounds of everything, in tree coordinates
    scale: float  # a power of two
    exponent: int  # of scale
    parts: Ints  # the first row of each part, ascending; empty for a tree that has none
    starts: Ints32 = ROOT_ALONE  # (groups + 1, 2): where rays start, first node and number of nodes


def to_tree(x: X, center: X, scale: float) -> X:
    """Return coordinates in the tree, rounded once; what overflows is beyond `FAR`.

    The product with a scale below 1 is exact, but for an underflow far below `NUDGE`.
    """
    down = min(scale, 1.0)
    return (x * down - center * down) * max(scale, 1.0)


def from_tree(x: Floats, center: Floats, scale: float) -> Floats:
    """Return coordinates outside of the tree, rounded once: the inverse of `to_tree`."""
    down = min(scale, 1.0)
    return (x / max(scale, 1.0) + center * down) / down


@device
def outward_down(x: float) -> np.float32:
    """Return a float32 below x by 2^-24 of x, and by more than underflow can lose."""
    if x > FAR:
        return np.float32(FAR)
    if x < -FAR:
        return np.float32(-np.inf)
    return np.float32(x - (abs(x) * ULP + NUDGE))


@device
def outward_up(x: float) -> np.float32:
    """Return a float32 above x; the mirror image of `outward_down`."""
    return -outward_down(-x)
