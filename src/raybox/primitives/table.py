"""The table of primitives: a module of kernels for each class of rows.

The tree and the loops call ``intersect(rows, ray, i)``; Numba picks the kernel by the type of the rows. A new
primitive is a module with kernels, and a line here or a call of `add`.
"""

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from raybox.compiler.decorators import Namesakes, declare, device, dispatch, namesakes, no, yes
from raybox.compiler.intrinsics import Fields
from raybox.compiler.simd import Builder, Lanes
from raybox.geometry import BoxRows, GridRows, InstanceRows, PlaneRows, PrimitiveRows, TriangleRows
from raybox.primitives import box, exact_table, grid, instance, plane, triangle
from raybox.primitives.box_simd import Pairs
from raybox.primitives.instance_ray import AnyRay
from raybox.primitives.protocol import LongPrimitive, Primitive, VectorPrimitive
from raybox.validation import Floats

F = TypeVar("F", bound=Callable[..., object])
R = TypeVar("R")
TABLE: dict[type, ModuleType] = {}


def add(rows_class: type[R], module: Primitive[R, Any]) -> None:
    """Register a primitive: the class of its rows, and the module of its kernels.

    Scenes then hold its containers. ``module.EXACT``, if there is one, decides the order of hits of
    several geometries (`raybox.primitives.exact_table.ExactFunctions`).
    """
    _add_kernels(rows_class, module)
    exact_table.TABLE[rows_class] = getattr(module, "EXACT", None)


def _add_kernels(rows_class: type[R], module: Primitive[R, Any]) -> None:
    TABLE[rows_class] = cast(ModuleType, module)


_add_kernels(BoxRows, box)
_add_kernels(GridRows, grid)
_add_kernels(PlaneRows, plane)
_add_kernels(TriangleRows, triangle)
_add_kernels(InstanceRows, instance)
if TYPE_CHECKING:
    _CHECKED: tuple[VectorPrimitive[BoxRows], VectorPrimitive[TriangleRows], LongPrimitive[BoxRows]]
    _CHECKED = box, triangle, box


def bounds(rows: PrimitiveRows) -> tuple[Floats, Floats]:
    """Return the bounds of the primitives, lower and upper, (M, 3) each: plain NumPy."""
    lower, upper = TABLE[type(rows)].bounds(rows)
    return lower, upper


def own_tree(rows: PrimitiveRows) -> Any:
    """Return the module of the tree that a primitive has instead of a tree of boxes, or None.

    It has the functions ``build(rows)``, ``check(tree, rows)`` and ``stats(tree, rows)``, and
    `raybox.traversal.tree.RAY_TRAVERSALS` the traversal.
    """
    return getattr(TABLE.get(type(rows)), "TREE", None)


def has_simd(rows: PrimitiveRows) -> bool:
    """Return whether many pairs with these primitives are classified at a time."""
    return hasattr(TABLE[type(rows)], "classify")


def has_lengths(rows: PrimitiveRows) -> bool:
    """Return whether lengths of rays inside these primitives, or inside instances of these, are computed."""
    inner = rows.rows if isinstance(rows, InstanceRows) else rows
    return isinstance(inner, GridRows) or hasattr(TABLE[type(inner)], "write_lengths")


def fills_boxes(rows: PrimitiveRows | Fields) -> bool:
    """Return whether a ray that hits the box of a primitive hits the primitive."""
    return _fills_boxes(TABLE[rows.__class__])  # not `type`, for vector code, whose rows are wrapped


def plane_order(b: Builder, rows: Fields, one: Lanes, other: Lanes, planes: Lanes) -> Lanes:
    """Return which rays enter one primitive first, by planes of the same number: see `box_planes`."""
    return TABLE[rows.__class__].plane_order(b, rows, one, other, planes)


def entry_planes(b: Builder, rows: Fields, items: Lanes, planes: Lanes) -> Lanes:
    """Return the planes of these numbers by which rays enter primitives: see `box_planes`."""
    return TABLE[rows.__class__].entry_planes(b, rows, items, planes)


def has_planes(rows: Fields) -> bool:
    """Return whether primitives are compared by the planes by which rays enter them."""
    return hasattr(TABLE[rows.__class__], "entry_planes")


_KERNELS = cast("Primitive[PrimitiveRows, AnyRay]", Namesakes(TABLE))
intersect = _KERNELS.intersect
tie = _KERNELS.tie
span = _KERNELS.span
normal = _KERNELS.normal
weights = _KERNELS.weights

_VECTOR_KERNELS = cast("VectorPrimitive[PrimitiveRows]", Namesakes(TABLE))
classify = _VECTOR_KERNELS.classify
first_contacts = _VECTOR_KERNELS.first_contacts
certain_order = _VECTOR_KERNELS.certain_order

write_lengths = cast("LongPrimitive[PrimitiveRows]", Namesakes(TABLE)).write_lengths


def has_volumes(rows: PrimitiveRows | Fields) -> bool:
    """Return whether packets of rays are tested by signed volumes: see `triangle_slots`."""
    return has_volumes_of(rows.__class__)


def has_volumes_of(kind: type) -> bool:
    """Do as `has_volumes`, by the class of the rows."""
    return hasattr(TABLE.get(kind), "VOLUMES")


def _optional(kernel: F) -> F:
    """Return a function whose compiled calls are redirected to a namesake in a primitive's module, if any."""
    return cast(F, declare(kernel.__name__, namesakes(TABLE, kernel.__name__, kernel)))


@_optional
@device
def prefetch_rows(_rows: PrimitiveRows, _i: int) -> None:
    """Prefetch the numbers of primitive i, if many pairs with these primitives are classified at a time."""


@_optional
@device
def hits(rows: PrimitiveRows, ray: AnyRay, i: int) -> bool:
    """Return whether a ray hits primitive i; the ray's range is not empty."""
    return intersect(rows, ray, i)[0]


@_optional
@device
def finish_ray(_rows: PrimitiveRows, _k: int) -> None:
    """Finish ray k: instances write whether it is undecided, other rows write nothing."""


@_optional
@device
def entry_times(rows: PrimitiveRows, exact: Floats, pairs: Pairs, count: int) -> None:
    """Write first contacts of hits whose status is the plane of entry: see `box_planes`."""
    if fills_boxes(rows):
        first_contacts(rows, exact, pairs, count)


def _fills_boxes(module: ModuleType) -> bool:
    return getattr(module, "FILLS_BOXES", False)


dispatch(has_volumes, lambda kind: (yes if has_volumes_of(kind) else no) if kind in TABLE else None)
dispatch(fills_boxes, lambda kind: (yes if _fills_boxes(TABLE[kind]) else no) if kind in TABLE else None)
