"""The table of primitives: a module of kernels for each class of rows.

The tree and the loops call ``intersect(rows, ray, i)``; Numba picks the kernel by the type of the rows. A new
primitive is a module with kernels, and a line here or a call of `add`.
"""

from types import ModuleType
from typing import Any

from raybox.compiler.decorators import device, dispatch, dispatch_named, no, yes
from raybox.compiler.intrinsics import Fields
from raybox.compiler.simd import Builder, Lanes
from raybox.exact.double_double import Vector3
from raybox.geometry import BoxRows, GridRows, InstanceRows, PlaneRows, Rows, TriangleRows
from raybox.primitives import box, exact_table, grid, instance, plane, triangle
from raybox.primitives.box_simd import Pairs
from raybox.primitives.instance_ray import AnyRay
from raybox.validation import Floats

TABLE: dict[type, ModuleType] = {
    BoxRows: box,
    GridRows: grid,
    PlaneRows: plane,
    TriangleRows: triangle,
    InstanceRows: instance,
}


def add(rows_class: type, module: ModuleType) -> None:
    """Register a primitive: the class of its rows, and the module of its kernels.

    Scenes then hold its containers. ``module.EXACT``, if there is one, decides the order of hits of
    several geometries (`raybox.primitives.exact_table.ExactFunctions`).
    """
    TABLE[rows_class] = module
    exact_table.TABLE[rows_class] = getattr(module, "EXACT", None)


def bounds(rows: Rows) -> tuple[Floats, Floats]:
    """Return the bounds of the primitives, lower and upper, (M, 3) each: plain NumPy."""
    lower, upper = TABLE[type(rows)].bounds(rows)
    return lower, upper


def own_tree(rows: Rows) -> Any:
    """Return the module of the tree that a primitive has instead of a tree of boxes, or None.

    It has the functions ``build(rows)``, ``check(tree, rows)`` and ``stats(tree, rows)``, and
    `raybox.traversal.single.RAY_TRAVERSALS` the traversal.
    """
    return getattr(TABLE.get(type(rows)), "TREE", None)


def has_simd(rows: Rows) -> bool:
    """Return whether many pairs with these primitives are classified at a time."""
    return hasattr(TABLE[type(rows)], "classify")


def has_lengths(rows: Rows) -> bool:
    """Return whether lengths of rays inside these primitives, or inside instances of these, are computed."""
    inner = rows.rows if isinstance(rows, InstanceRows) else rows
    return isinstance(inner, GridRows) or hasattr(TABLE[type(inner)], "write_lengths")


def fills_boxes(rows: Rows | Fields) -> bool:
    """Return whether a ray that hits the box of a primitive hits the primitive."""
    return _fills_boxes(TABLE[rows.__class__])  # not `type`, for vector code, whose rows are wrapped


def plane_order(b: Builder, rows: Fields, one: Lanes, other: Lanes, planes: Lanes) -> Lanes:
    """Return which rays enter one primitive first, by planes of the same number: see `box_planes`."""
    return TABLE[rows.__class__].plane_order(b, rows, one, other, planes)


def has_planes(rows: Fields) -> bool:
    """Return whether primitives are compared by the planes by which rays enter them."""
    return hasattr(TABLE[rows.__class__], "plane_order")


def intersect(rows: Rows, ray: AnyRay, i: int) -> tuple[bool, float]:
    """Return (hit, first contact rounded once) of primitive i; the ray's range is not empty.

    ray: a `Ray`; for instances, a `raybox.primitives.instance_ray.InstanceRay`.
    """
    raise NotImplementedError("compiled code only")


def hits(rows: Rows, ray: AnyRay, i: int) -> bool:
    """Return whether a ray hits primitive i; the ray's range is not empty."""
    raise NotImplementedError("compiled code only")


def prefetch_rows(rows: Rows, i: int) -> None:
    """Prefetch the numbers of primitive i."""
    raise NotImplementedError("compiled code only")


def classify(rows: Rows, exact: Floats, pairs: Pairs, number: int) -> None:
    """Write the status of pairs, and bounds of their first contacts to `low` and `high`.

    exact: rows of rays, see `raybox.traversal.ray_setup`.
    """
    raise NotImplementedError("compiled code only")


def first_contacts(rows: Rows, exact: Floats, pairs: Pairs, number: int) -> None:
    """Write first contacts of hits, rounded once, to `low`, and the status: `HIT` or `UNDECIDED`."""
    raise NotImplementedError("compiled code only")


def entry_times(rows: Rows, exact: Floats, pairs: Pairs, number: int) -> None:
    """Write first contacts of hits whose status is the plane of entry: see `box_planes`."""
    raise NotImplementedError("compiled code only")


def write_lengths(rows: Rows, rays: Any, pairs: Any, span: Any, lengths: Floats) -> None:
    """Write how long rays are inside of primitives that they hit: see `raybox.primitives.box_lengths`."""
    raise NotImplementedError("compiled code only")


def certain_order(rows: Rows, exact: Floats, r: int, i: int, j: int) -> int:
    """Return the order of first contacts with primitives i and j, both hit, or `UNKNOWN_ORDER`."""
    raise NotImplementedError("compiled code only")


def tie(rows: Rows, ray: AnyRay, i: int, j: int) -> int:
    """Compare first contacts with primitives i and j, both hit, exactly: -1, 0 or 1."""
    raise NotImplementedError("compiled code only")


def span(rows: Rows, ray: AnyRay, i: int) -> tuple[float, float]:
    """Return where the whole line enters and leaves primitive i, which it hits."""
    raise NotImplementedError("compiled code only")


def normal(rows: Rows, ray: AnyRay, i: int) -> Vector3:
    """Return the unit normal at the first contact."""
    raise NotImplementedError("compiled code only")


def weights(rows: Rows, ray: AnyRay, i: int) -> tuple[float, float]:
    """Return the barycentric weights at the first contact."""
    raise NotImplementedError("compiled code only")


def finish_ray(rows: Rows, k: int) -> None:
    """Finish ray k: instances write whether it is undecided, other rows write nothing."""
    raise NotImplementedError("compiled code only")


@device
def _nothing(_rows: Rows, _k: int) -> None:
    pass


@device
def _hits(rows: Rows, ray: AnyRay, i: int) -> bool:
    return intersect(rows, ray, i)[0]


@device
def _no_times(_rows: Rows, _exact: Floats, _pairs: Pairs, _number: int) -> None:
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
dispatch(hits, lambda kind: getattr(TABLE[kind], "hits", _hits) if kind in TABLE else None)
dispatch_named(
    (
        intersect,
        prefetch_rows,
        classify,
        first_contacts,
        write_lengths,
        certain_order,
        tie,
        span,
        normal,
        weights,
    ),
    TABLE,
)
dispatch(finish_ray, lambda kind: getattr(TABLE[kind], "finish_ray", _nothing) if kind in TABLE else None)
