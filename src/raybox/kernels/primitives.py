"""The table of primitives: which kernel file answers for which kind of rows.

The tree and the loops call ``intersect(rows, ray, i)`` and know no primitive; Numba picks the
kernel by the type of the rows. A new primitive is a file beside this one, and a line here.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from raybox.geometry import BoxRows, PlaneRows, TriangleRows
from raybox.kernels import box, plane, triangle
from raybox.kernels.jit import dispatch
from raybox.kernels.ray import Ray

TABLE: dict[type, ModuleType] = {
    BoxRows: box,
    PlaneRows: plane,
    TriangleRows: triangle,
}


def bounds(rows: Any) -> tuple[Any, Any]:
    """Return the corners (M, 3) of the boxes round the primitives: plain NumPy, called once a scene."""
    lower, upper = TABLE[type(rows)].bounds(rows)
    return lower, upper


def intersect(rows: Any, ray: Ray, i: int) -> tuple[bool, float]:
    """Return (is primitive i met, time of first contact rounded once); the range is not empty."""
    raise NotImplementedError("compiled code only")


def tie(rows: Any, ray: Ray, i: int, j: int) -> int:
    """Compare first contacts with primitives i and j, both met, exactly: -1, 0 or 1."""
    raise NotImplementedError("compiled code only")


def span(rows: Any, ray: Ray, i: int) -> tuple[float, float]:
    """Return where the whole line enters and leaves primitive i, which it meets."""
    raise NotImplementedError("compiled code only")


def normal(rows: Any, ray: Ray, i: int) -> tuple[float, float, float]:
    """Return the unit normal at the first contact."""
    raise NotImplementedError("compiled code only")


def weights(rows: Any, ray: Ray, i: int) -> tuple[float, float]:
    """Return the barycentric weights at the first contact."""
    raise NotImplementedError("compiled code only")


def _kernel_named(name: str) -> Callable[[type], Any]:
    """Return what finds a kind of rows' kernel of this name, or None for what is no primitive's rows."""
    return lambda kind: getattr(TABLE.get(kind), name, None)


for _stub in (intersect, tie, span, normal, weights):
    dispatch(_stub, _kernel_named(_stub.__name__))
