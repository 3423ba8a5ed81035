"""What the traversals run on: a job, and the recorder of a query."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from raybox.bvh.cell_tree import CellTree
from raybox.bvh.node import Tree
from raybox.compiler.decorators import inlined
from raybox.compiler.struct_ref import struct
from raybox.geometry import GridRows, PrimitiveRows, RayRows
from raybox.primitives.triangle_slots import ROOM
from raybox.traversal.ray_setup import Frame
from raybox.validation import Bools, Floats32, Ints

NO_OWNERS = np.empty(0, np.int64)
NO_OWNERS.flags.writeable = False
NO_TRIANGLES = np.empty((0, ROOM), np.float32)
NO_TRIANGLES.flags.writeable = False


@struct
class Job(NamedTuple):
    """What a query runs on: a tree, the rows of its primitives, rays, and which primitives may be hit."""

    tree: Tree  # of a grid: a `CellTree`, see `cells_of`
    rows: PrimitiveRows
    rays: RayRows  # of a sweep: MovingBoxRows, which `get_ray` reads, too
    allowed: Bools  # for each primitive, or empty: all
    frame: Frame | None = None  # of the tree, for primitives with vector code
    base: int = 0  # the index of row 0
    owners: Ints = NO_OWNERS  # of each primitive, what rays exclude: an object; empty: its hit id
    first: int = 0  # hit id of the first primitive, among those of all geometries
    triangles: Floats32 = NO_TRIANGLES  # those of nodes, in float32: `raybox.traversal.node_triangles`


@inlined
def grid_of(job: Job) -> GridRows:
    """Return the rows of a job on a grid."""
    rows: Any = job.rows
    return rows


@inlined
def cells_of(job: Job) -> CellTree:
    """Return the tree of a job on a grid."""
    tree: Any = job.tree
    return tree


@inlined
def frame_of(job: Job) -> Frame:
    """Return the frame of a job with vector code."""
    frame: Any = job.frame
    return frame


class RaySpan(NamedTuple):
    """The rays begin <= k < end of a job."""

    begin: int
    end: int


class Recorder(Protocol):
    """A query's state in compiled code: a `NamedTuple` of arrays, whose class chooses the hooks."""

    def _asdict(self) -> dict[str, Any]: ...
