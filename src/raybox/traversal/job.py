"""What the traversals run on: a job, and the recorder of a query."""

from typing import Any, NamedTuple, Protocol

from raybox.compiler.decorators import inlined
from raybox.compiler.struct_ref import struct
from raybox.geometry import GridRows, Rows
from raybox.validation import Bools


@struct
class Job(NamedTuple):
    """What a query runs on: a tree, the rows of its primitives, rays, and which primitives may be hit."""

    tree: Any  # a `Tree`, or the `CellTree` of a grid
    rows: Rows
    rays: Any  # RayRows, or MovingBoxRows of a sweep
    allowed: Bools  # for each primitive, or empty: all
    frame: Any = None  # the `Frame` of the tree, for primitives with vector code
    base: int = 0  # the index of row 0


@inlined
def grid_of(job: Job) -> GridRows:
    """Return the rows of a job on a grid."""
    rows: Any = job.rows
    return rows


class Recorder(Protocol):
    """A query's state in compiled code: a `NamedTuple` of arrays, whose class chooses the hooks."""

    def _asdict(self) -> dict[str, Any]: ...
