"""The table of exact functions: one ray and one primitive in integers, without Numba.

Each class of rows that a scene may contain is a key. Small batches of rows without exact functions run in the
kernels too. Both round the exact time once, so they return the same bits.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from raybox.exact import definition, instance_definition
from raybox.exact.definition import Crossing, Ratio, Ray1, Vector
from raybox.geometry import BoxRows, GridRows, InstanceRows, PlaneRows, TriangleRows
from raybox.validation import Floats

_AXES = np.eye(3)
# Where normals of triangles need integers, in Python and in `raybox.primitives.triangle_normal` alike:
NEAR_OVERFLOW = 2.0**1000  # coordinates up to here have differences
EVEN = 2.0**-400  # the least share of an edge's largest part that any other may have
NARROW = 2.0**-40  # the sine of an angle that rounded edges leave a few digits of
NO_WEIGHTS = (np.nan, np.nan)

Points = Sequence[Vector]


class FirstContact(NamedTuple):
    """One hit: the times, the unit normal, and barycentric weights (NaN where there are none)."""

    crossing: Crossing
    normal: Floats
    weights: tuple[float, float]


Span = tuple[Ratio, Ratio]
"""The exact times at which a whole line enters a primitive and leaves it."""


def no_points(_rows: Any, _i: int) -> Points:
    """Return no points: the primitive cannot be instanced."""
    return ()


def no_span(_rows: Any, _ray: Ray1, _i: int, _points: Points) -> Span | None:
    """Return None: the length inside is known from rounded times alone."""
    return None


class ExactFunctions(NamedTuple):
    """Exact functions of a primitive: of rows, one ray, the primitive's number and its points."""

    contact: Callable[[Any, Ray1, int, Points], FirstContact | None]
    """the first contact; None: a miss"""
    time: Callable[[Any, Ray1, int, Points], Ratio | None]
    """the exact time of the first contact; None: a miss"""
    points: Callable[[Any, int], Points] = no_points
    """(rows, i) -> the points that define primitive i; instances transform them like the ray"""
    span: Callable[[Any, Ray1, int, Points], Span | None] = no_span
    """where the line of a ray enters and leaves; None: a miss"""


def rows_of(geometry: Any) -> Any:
    """Return the rows of a container of primitives; None for anything else."""
    if isinstance(geometry, type) or not hasattr(geometry, "ndim_space") or not hasattr(geometry, "rows"):
        return None
    rows = geometry.rows()
    return rows if type(rows) in TABLE else None


def unit(vector: Floats) -> Floats:
    """Return a vector scaled to length 1, or the zero vector; parts that are 0 are +0.0."""
    x, y, z = (vector / (np.abs(vector).max() or 1.0)).tolist()
    scaled: Floats = np.array([x, y, z]) / (math.sqrt(x * x + y * y + z * z) or 1.0)
    return scaled + 0.0


# Boxes.


def _box_points(rows: BoxRows, i: int) -> Points:
    return tuple(rows.lower[i].tolist()), tuple(rows.upper[i].tolist())


def _box_time(_rows: BoxRows, ray: Ray1, _i: int, points: Points) -> Ratio | None:
    return definition.box_time(ray, *points)


def _box_contact(_rows: BoxRows, ray: Ray1, _i: int, points: Points) -> FirstContact | None:
    crossing = definition.box(ray, *points)
    return crossing and FirstContact(crossing, _face_normal(crossing, ray), NO_WEIGHTS)


def _box_span(_rows: BoxRows, ray: Ray1, _i: int, points: Points) -> Span | None:
    found = definition.box_span(ray, *points)
    return found and found[:2]


def _face_normal(crossing: Crossing, ray: Ray1) -> Floats:
    """Return the outward normal of the face of entry; zero where the ray starts inside."""
    if crossing.axis < 0:
        return np.zeros(3)
    outward = -1.0 if ray.direction[crossing.axis] > 0.0 else 1.0
    normal: Floats = outward * _AXES[crossing.axis] + 0.0
    return normal


def _cell_points(rows: GridRows, i: int) -> Points:
    places = np.unravel_index(int(i), tuple(rows.shape.tolist()))
    edges = [one[k : k + 2].tolist() for one, k in zip(rows[:3], places, strict=True)]
    return tuple(low for low, _ in edges), tuple(high for _, high in edges)


# Planes.


def _plane_time(rows: PlaneRows, ray: Ray1, i: int, _points: Points) -> Ratio | None:
    return definition.plane_time(ray, rows.normals[i].tolist(), float(rows.offsets[i]), rows.cull_back)


def _plane_span(rows: PlaneRows, ray: Ray1, i: int, points: Points) -> Span | None:
    time = _plane_time(rows, ray, i, points)
    return time and (time, time)


def _plane_contact(rows: PlaneRows, ray: Ray1, i: int, _points: Points) -> FirstContact | None:
    crossing = definition.plane(ray, rows.normals[i].tolist(), float(rows.offsets[i]), rows.cull_back)
    return crossing and FirstContact(crossing, unit(rows.normals[i]), NO_WEIGHTS)


# Triangles.


def _triangle_points(rows: TriangleRows, i: int) -> Points:
    return [tuple(corner) for corner in rows.corners[i].tolist()]


def _triangle_time(rows: TriangleRows, ray: Ray1, _i: int, points: Points) -> Ratio | None:
    a, b, c = points
    return definition.triangle_time(ray, a, b, c, rows.cull_back)


def _triangle_span(rows: TriangleRows, ray: Ray1, i: int, points: Points) -> Span | None:
    time = _triangle_time(rows, ray, i, points)
    return time and (time, time)


def _triangle_contact(rows: TriangleRows, ray: Ray1, i: int, points: Points) -> FirstContact | None:
    a, b, c = points
    hit = definition.triangle(ray, a, b, c, rows.cull_back)
    return hit and FirstContact(hit[0], _triangle_normal(rows, i), hit[1:])


def _triangle_normal(rows: TriangleRows, i: int) -> Floats:
    corners = rows.corners[i]
    sizes = np.abs(corners[corners != 0.0])
    factor = 0.5 if sizes.max(initial=0.0) >= NEAR_OVERFLOW else 1.0
    a, b, c = factor * corners
    ab, ac = b - a, c - a
    if (factor == 1.0 or sizes.min() > 1.0 / NEAR_OVERFLOW) and _is_even(ab) and _is_even(ac):
        cross = _cross(unit(ab), unit(ac))
        if np.abs(cross).max() > NARROW:
            return unit(cross)
    return unit(np.array(definition.triangle_normal(*corners.tolist())))


def _cross(p: Floats, q: Floats) -> Floats:
    """Return p x q, each part rounded once."""
    a, b, c = map(Fraction, p.tolist())
    x, y, z = map(Fraction, q.tolist())
    return np.array([float(b * z - c * y), float(c * x - a * z), float(a * y - b * x)])


def _is_even(vector: Floats) -> bool:
    """Return whether neither quotients of its parts nor products of these underflow."""
    sizes = np.abs(vector)
    return bool(((sizes == 0.0) | (sizes >= sizes.max() * EVEN)).all())


# Instances: the ray and the points of the inner primitive are transformed to the instance's coordinates.


class _Local(NamedTuple):
    """A ray and one primitive in the coordinates of an instance, in integers."""

    functions: ExactFunctions  # of the inner geometry
    ray: Ray1
    row: int  # of the inner geometry
    points: Points


def _to_instance(rows: InstanceRows, ray: Ray1, i: int) -> _Local:
    instance, row = divmod(int(i), rows.size)
    functions = TABLE[type(rows.rows)]
    assert functions is not None  # all that can be instanced has exact functions
    local, points = instance_definition.to_local(
        ray, _matrix(rows, instance), functions.points(rows.rows, row)
    )
    return _Local(functions, local, row, points)


def _matrix(rows: InstanceRows, instance: int) -> instance_definition.Matrix:
    return tuple(map(tuple, rows.placed[instance].tolist()))


def _instance_time(rows: InstanceRows, ray: Ray1, i: int, _points: Points) -> Ratio | None:
    functions, local, row, points = _to_instance(rows, ray, i)
    return functions.time(rows.rows, local, row, points)


def _instance_span(rows: InstanceRows, ray: Ray1, i: int, _points: Points) -> Span | None:
    functions, local, row, points = _to_instance(rows, ray, i)
    return functions.span(rows.rows, local, row, points)


def _instance_contact(rows: InstanceRows, ray: Ray1, i: int, _points: Points) -> FirstContact | None:
    functions, local, row, points = _to_instance(rows, ray, i)
    hit = functions.contact(rows.rows, local, row, points)
    return hit and hit._replace(normal=_to_world(rows, int(i), hit.normal))


def _to_world(rows: InstanceRows, i: int, normal: Floats) -> Floats:
    """Return the normal of primitive i in world coordinates: the transposed inverse times it."""
    instance, row = divmod(i, rows.size)
    x, y, z = normal.tolist()
    if not rows.tame[instance]:
        if isinstance(rows.rows, TriangleRows):  # the rounded normal may have lost its smallest part
            corners = _triangle_points(rows.rows, row)
            return unit(np.array(instance_definition.world_triangle_normal(corners, _matrix(rows, instance))))
        return unit(np.array(instance_definition.world_normal((x, y, z), _matrix(rows, instance))))
    inverse = rows.high[instance]
    return unit(x * inverse[0] + y * inverse[1] + z * inverse[2])


TABLE: dict[type, ExactFunctions | None] = {
    BoxRows: ExactFunctions(_box_contact, _box_time, _box_points, _box_span),
    GridRows: ExactFunctions(_box_contact, _box_time, _cell_points, _box_span),
    PlaneRows: ExactFunctions(_plane_contact, _plane_time, span=_plane_span),
    TriangleRows: ExactFunctions(_triangle_contact, _triangle_time, _triangle_points, _triangle_span),
    InstanceRows: ExactFunctions(_instance_contact, _instance_time, span=_instance_span),
}
"""Classes of rows and their exact functions; None: kernels only. `raybox.primitives.table.add` adds to it."""
