"""The table of primitives: a module of kernels for each class of rows.

The tree and the loops call ``intersect(rows, ray, i)``; Numba picks the kernel by the type of the rows. A new
primitive is a module with kernels, and a line here or a call of `add`.
"""

from types import ModuleType
from typing import Any

from raybox.compiler.decorators import device, dispatch, dispatch_named, no, yes
from raybox.geometry import BoxRows, InstanceRows, PlaneRows, TriangleRows
from raybox.primitives import box, exact_table, instance, plane, triangle
from raybox.primitives.box_simd import Pairs
from raybox.primitives.ray import Ray

TABLE: dict[type, ModuleType] = {
    BoxRows: box,
    PlaneRows: plane,
    TriangleRows: triangle,
    InstanceRows: instance,
}


def add(rows_class: type, module: ModuleType) -> None:
    """Register a primitive: the class of its rows, and the module of its kernels.

    Scenes then hold its containers. ``module.EXACT``, if there is one, decides a handful of pairs, and the
    order of hits of several geometries (`raybox.primitives.exact_table.ExactFunctions`).
    """
    TABLE[rows_class] = module
    exact_table.TABLE[rows_class] = getattr(module, "EXACT", None)


def bounds(rows: Any) -> tuple[Any, Any]:
    """Return the bounds of the primitives, lower and upper, (M, 3) each: plain NumPy."""
    lower, upper = TABLE[type(rows)].bounds(rows)
    return lower, upper


def has_simd(rows: Any) -> bool:
    """Return whether many pairs with these primitives are classified at a time."""
    return hasattr(TABLE[type(rows)], "classify")


def has_lengths(rows: Any) -> bool:
    """Return whether lengths of rays inside these primitives, or inside instances of these, are computed."""
    inner = rows.rows if isinstance(rows, InstanceRows) else rows
    return hasattr(TABLE[type(inner)], "write_lengths")


def fills_boxes(rows: Any) -> bool:
    """Return whether a ray that hits the box of a primitive hits the primitive."""
    return _fills_boxes(TABLE[rows.__class__])  # not `type`, for vector code, whose rows are wrapped


def intersect(rows: Any, ray: Ray, i: int) -> tuple[bool, float]:
    """Return (hit, first contact rounded once) of primitive i; the ray's range is not empty.

    ray: a `Ray`; for instances, a `raybox.primitives.instance_ray.InstanceRay`.
    """
    raise NotImplementedError("compiled code only")


def prefetch_rows(rows: Any, i: int) -> None:
    """Prefetch the numbers of primitive i."""
    raise NotImplementedError("compiled code only")


def classify(rows: Any, exact: Any, pairs: Pairs, number: int) -> None:
    """Write the status of pairs, and bounds of their first contacts to `low` and `high`.

    exact: rows of rays, see `raybox.traversal.ray_setup`.
    """
    raise NotImplementedError("compiled code only")


def first_contacts(rows: Any, exact: Any, pairs: Pairs, number: int) -> None:
    """Write first contacts of hits, rounded once, to `low`, and the status: `HIT` or `UNDECIDED`."""
    raise NotImplementedError("compiled code only")


def entry_times(rows: Any, exact: Any, pairs: Pairs, number: int) -> None:
    """Write first contacts of hits whose status is the plane of entry: see `box_planes`."""
    raise NotImplementedError("compiled code only")


def write_lengths(rows: Any, rays: Any, pairs: Any, span: Any, lengths: Any) -> None:
    """Write how long rays are inside of primitives that they hit: see `raybox.primitives.box_lengths`."""
    raise NotImplementedError("compiled code only")


def tie_is_certain(rows: Any, exact: Any, r: int, i: int, j: int) -> bool:
    """Return whether the first contacts with primitives i and j, both hit, are equal for certain."""
    raise NotImplementedError("compiled code only")


def tie(rows: Any, ray: Ray, i: int, j: int) -> int:
    """Compare first contacts with primitives i and j, both hit, exactly: -1, 0 or 1."""
    raise NotImplementedError("compiled code only")


def span(rows: Any, ray: Ray, i: int) -> tuple[float, float]:
    """Return where the whole line enters and leaves primitive i, which it hits."""
    raise NotImplementedError("compiled code only")


def normal(rows: Any, ray: Ray, i: int) -> tuple[float, float, float]:
    """Return the unit normal at the first contact."""
    raise NotImplementedError("compiled code only")


def weights(rows: Any, ray: Ray, i: int) -> tuple[float, float]:
    """Return the barycentric weights at the first contact."""
    raise NotImplementedError("compiled code only")


def finish_ray(rows: Any, k: int) -> None:
    """Finish ray k: instances write whether it is undecided, other rows write nothing."""
    raise NotImplementedError("compiled code only")


@device
def _nothing(_rows: Any, _k: int) -> None:
    pass


@device
def _no_times(_rows: Any, _exact: Any, _pairs: Pairs, _number: int) -> None:
    pass


def _fills_boxes(module: ModuleType) -> bool:
    return getattr(module, "FILLS_BOXES", False)


def _entry_times(module: ModuleType) -> Any:
    """Return the kernel that times hits by known planes: by default, the one for any hits."""
    if not _fills_boxes(module):
        return _no_times
    return getattr(module, "entry_times", getattr(module, "first_contacts", None))


dispatch(entry_times, lambda kind: _entry_times(TABLE[kind]) if kind in TABLE else None)
dispatch(fills_boxes, lambda kind: (yes if _fills_boxes(TABLE[kind]) else no) if kind in TABLE else None)
dispatch_named(
    (
        intersect,
        prefetch_rows,
        classify,
        first_contacts,
        write_lengths,
        tie_is_certain,
        tie,
        span,
        normal,
        weights,
    ),
    TABLE,
)
dispatch(finish_ray, lambda kind: getattr(TABLE[kind], "finish_ray", _nothing) if kind in TABLE else None)
