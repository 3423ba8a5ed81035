"""The table of primitives: which kernel file answers for which kind of rows.

The tree and the loops call ``intersect(rows, ray, i)`` and know no primitive; Numba picks the
kernel by the type of the rows. A new primitive is a file beside this one, and a line here.
"""

from types import ModuleType
from typing import Any

from raybox.compiler.decorators import device, dispatch, dispatch_named, no, yes
from raybox.geometry import BoxRows, InstanceRows, PlaneRows, TriangleRows
from raybox.primitives import box, instance, plane, triangle
from raybox.primitives.box_simd import Pairs
from raybox.primitives.ray import Ray

TABLE: dict[type, ModuleType] = {
    BoxRows: box,
    PlaneRows: plane,
    TriangleRows: triangle,
    InstanceRows: instance,
}


def bounds(rows: Any) -> tuple[Any, Any]:
    """Return the corners (M, 3) of the boxes round the primitives: plain NumPy, called once a scene."""
    lower, upper = TABLE[type(rows)].bounds(rows)
    return lower, upper


def has_simd(rows: Any) -> bool:
    """Tell whether these primitives are screened many at a time."""
    return hasattr(TABLE[type(rows)], "classify")


def fills_boxes(rows: Any) -> bool:
    """Tell whether primitives are all of their boxes, so that who meets the box has met them."""
    return bool(TABLE[rows.__class__].FILLS_BOXES)  # of vector code, too: `type` would tell its own


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


dispatch(
    entry_times, lambda kind: getattr(TABLE[kind], "entry_times", _none_enters) if kind in TABLE else None
)
dispatch(
    fills_boxes,
    lambda kind: (yes if getattr(TABLE[kind], "FILLS_BOXES", False) else no) if kind in TABLE else None,
)
dispatch_named(
    (intersect, prefetch_rows, classify, first_contacts, tie_is_certain, tie, span, normal, weights), TABLE
)
dispatch(close, lambda kind: getattr(TABLE[kind], "close", _nothing) if kind in TABLE else None)
