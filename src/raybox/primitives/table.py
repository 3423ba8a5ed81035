"""The table of primitives: which kernel file answers for which kind of rows.

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
    """Return the corners (M, 3) of the boxes round the primitives: plain NumPy, called once a scene."""
    lower, upper = TABLE[type(rows)].bounds(rows)
    return lower, upper


def has_simd(rows: Any) -> bool:
    """Tell whether these primitives are screened many at a time."""
    return hasattr(TABLE[type(rows)], "classify")


def fills_boxes(rows: Any) -> bool:
    """Tell whether primitives are all of their boxes, so that who meets the box has met them."""
    return _fills_boxes(TABLE[rows.__class__])  # of vector code, too: `type` would tell its own


def intersect(rows: Any, ray: Ray, i: int) -> tuple[bool, float]:
    """Return (is primitive i met, time of first contact rounded once); the range is not empty.

    ray: a `Ray`; for copies, a `raybox.primitives.instance_ray.Seen`.
    """
    raise NotImplementedError("compiled code only")


def prefetch_rows(rows: Any, i: int) -> None:
    """Ask the machine for primitive i's numbers, soon to be read."""
    raise NotImplementedError("compiled code only")


def classify(rows: Any, exact: Any, pairs: Pairs, number: int) -> None:
    """Judge pairs of rays and primitives as far as floats can tell: fill verdict, low and high."""
    raise NotImplementedError("compiled code only")


def first_contacts(rows: Any, exact: Any, pairs: Pairs, number: int) -> None:
    """Write the first contacts of pairs that are surely met to `low`; verdict 0 where floats cannot tell."""
    raise NotImplementedError("compiled code only")


def entry_times(rows: Any, exact: Any, pairs: Pairs, number: int) -> None:
    """Do as `settle` for pairs whose verdicts say by which planes of boxes rays enter: see `box_planes`."""
    raise NotImplementedError("compiled code only")


def tie_is_certain(rows: Any, exact: Any, r: int, i: int, j: int) -> bool:
    """Tell whether a ray surely meets primitives i and j, both met, first at the very same time."""
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


def close(rows: Any, k: int) -> None:
    """Note what else there is to say of ray k, now answered: nothing, but for copies."""
    raise NotImplementedError("compiled code only")


@device
def _nothing(_rows: Any, _k: int) -> None:
    pass


@device
def _none_enters(_rows: Any, _exact: Any, _pairs: Pairs, _number: int) -> None:
    pass


def _fills_boxes(module: ModuleType) -> bool:
    return getattr(module, "FILLS_BOXES", False)


def _entry_times(module: ModuleType) -> Any:
    """Return what times hits by known planes: by default, as any other hits."""
    return getattr(module, "entry_times", module.first_contacts) if _fills_boxes(module) else _none_enters


dispatch(entry_times, lambda kind: _entry_times(TABLE[kind]) if kind in TABLE else None)
dispatch(fills_boxes, lambda kind: (yes if _fills_boxes(TABLE[kind]) else no) if kind in TABLE else None)
dispatch_named(
    (intersect, prefetch_rows, classify, first_contacts, tie_is_certain, tie, span, normal, weights), TABLE
)
dispatch(close, lambda kind: getattr(TABLE[kind], "close", _nothing) if kind in TABLE else None)
