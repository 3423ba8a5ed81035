"""The table of exact functions: one ray and one primitive in integers, without Numba.

Each class of rows that a scene may contain is a key. Both these functions and kernels round the exact time
once, so they return the same bits.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from raybox.exact import definition, instance_definition, paths
from raybox.exact.definition import BoxSpan, Crossing, Ratio, Ray1, Vector
from raybox.exact.triangle_normal import EVEN, NARROW, NEAR_OVERFLOW
from raybox.geometry import BoxRows, GridRows, InstanceRows, PlaneRows, PrimitiveRows, RayRows, TriangleRows
from raybox.validation import Floats

_AXES = np.eye(3)
NO_WEIGHTS = (np.nan, np.nan)

Points = Sequence[Vector]


class FirstContact(NamedTuple):
    """One hit: the times, the unit normal, and barycentric weights (NaN where there are none)."""

    crossing: Crossing
    normal: Floats
    weights: tuple[float, float]


class ExactFunctions(NamedTuple):
    """Exact functions of a primitive: of rows, one ray and the primitive's number."""

    time: Callable[[Any, Ray1, int], Ratio | None]
    """the exact time of the first contact; None: a miss"""
    span: Callable[[Any, Ray1, int], BoxSpan | None] = lambda _rows, _ray, _i: None
    """where the line of a ray enters and leaves; None: a miss, or known from rounded times alone"""


def rows_of(geometry: Any) -> Any:
    """Return the rows of a container of primitives; None for anything else."""
    if isinstance(geometry, type) or not hasattr(geometry, "ndim_space") or not hasattr(geometry, "_rows"):
        return None
    rows = geometry._rows()
    return rows if type(rows) in TABLE else None


def unit(vector: Floats) -> Floats:
    """Return a vector scaled to length 1, or the zero vector; parts that are 0 are +0.0."""
    x, y, z = (vector / (np.abs(vector).max() or 1.0)).tolist()
    scaled: Floats = np.array([x, y, z]) / (math.sqrt(x * x + y * y + z * z) or 1.0)
    return scaled + 0.0


# Boxes, and cells of grids, which are boxes.


def _corners(rows: BoxRows, i: int) -> Points:
    return tuple(rows.lower[i].tolist()), tuple(rows.upper[i].tolist())


def _of_boxes(corners: Callable[[Any, int], Points]) -> ExactFunctions:
    """Return the functions of rows that are boxes; corners: of rows and number, (lower, upper)."""
    return ExactFunctions(
        lambda rows, ray, i: definition.box_time(ray, *corners(rows, i)),
        lambda rows, ray, i: definition.box_span(ray, *corners(rows, i)),
    )


def _cell_corners(rows: GridRows, i: int) -> Points:
    places = np.unravel_index(int(i), tuple(rows.shape.tolist()))
    edges = [one[k : k + 2].tolist() for one, k in zip(rows[:3], places, strict=True)]
    return tuple(low for low, _ in edges), tuple(high for _, high in edges)


# Planes and triangles, which have no inside: lines enter and leave them at one time.


def _of_surfaces(time: Callable[[Any, Ray1, int], Ratio | None]) -> ExactFunctions:
    return ExactFunctions(time, lambda rows, ray, i: _at(time(rows, ray, i)))


def _at(time: Ratio | None) -> BoxSpan | None:
    return time and BoxSpan(time, time, -1)


def _plane_time(rows: PlaneRows, ray: Ray1, i: int) -> Ratio | None:
    return definition.plane_time(ray, rows.normals[i].tolist(), float(rows.offsets[i]), rows.cull_back)


def _vertices(rows: TriangleRows, i: int) -> Points:
    return [tuple(corner) for corner in rows.corners[i].tolist()]


def _triangle_time(rows: TriangleRows, ray: Ray1, i: int) -> Ratio | None:
    a, b, c = _vertices(rows, i)
    hit = definition.triangle_ratios(ray, a, b, c, rows.cull_back)
    return hit and hit.time


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
    from fractions import Fraction

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

    ray: Ray1
    points: Points  # two corners of a box, or three of a triangle
    row: int  # of the inner geometry
    instance: int


def _to_instance(rows: InstanceRows, ray: Ray1, i: int) -> _Local:
    instance, row = divmod(int(i), rows.size)
    inner = rows.rows
    points = _corners(inner, row) if isinstance(inner, BoxRows) else _vertices(inner, row)
    return _Local(*instance_definition.to_local(ray, _matrix(rows, instance), points), row, instance)


def _matrix(rows: InstanceRows, instance: int) -> instance_definition.Matrix:
    return tuple(map(tuple, rows.placed[instance].tolist()))


def _instance_time(rows: InstanceRows, ray: Ray1, i: int) -> Ratio | None:
    local, inner = _to_instance(rows, ray, i), rows.rows
    if isinstance(inner, BoxRows):
        return definition.box_time(local.ray, *local.points)
    a, b, c = local.points
    hit = definition.triangle_ratios(local.ray, a, b, c, inner.cull_back)
    return hit and hit.time


def _instance_span(rows: InstanceRows, ray: Ray1, i: int) -> BoxSpan | None:
    if isinstance(rows.rows, BoxRows):
        local = _to_instance(rows, ray, i)
        return definition.box_span(local.ray, *local.points)
    return _at(_instance_time(rows, ray, i))


def instance_contact(rows: InstanceRows, ray: Ray1, i: int) -> FirstContact | None:
    """Return the first contact of a ray with primitive i of instances, or None."""
    local, inner = _to_instance(rows, ray, i), rows.rows
    if isinstance(inner, BoxRows):
        crossing = definition.box(local.ray, *local.points)
        return crossing and FirstContact(crossing, _face_normal(rows, local, crossing.axis), NO_WEIGHTS)
    a, b, c = local.points
    hit = definition.triangle(local.ray, a, b, c, inner.cull_back)
    return hit and FirstContact(hit.crossing, _world_triangle_normal(inner, rows, local), (hit.u, hit.v))


def _face_normal(rows: InstanceRows, local: _Local, axis: int) -> Floats:
    """Return the outward normal of the face of entry in the world; zero where the ray starts inside."""
    if axis < 0:
        return np.zeros(3)
    outward = (-1.0 if local.ray.direction[axis] > 0.0 else 1.0) * _AXES[axis]
    if rows.tame[local.instance]:
        return _to_world(rows, local, outward)
    matrix = _matrix(rows, local.instance)
    return unit(np.array(instance_definition.world_normal(outward.tolist(), matrix)))


def _world_triangle_normal(mesh: TriangleRows, rows: InstanceRows, local: _Local) -> Floats:
    if rows.tame[local.instance]:
        return _to_world(rows, local, _triangle_normal(mesh, local.row))
    corners, matrix = _vertices(mesh, local.row), _matrix(rows, local.instance)
    return unit(np.array(instance_definition.world_triangle_normal(corners, matrix)))


def _to_world(rows: InstanceRows, local: _Local, normal: Floats) -> Floats:
    """Return a normal in world coordinates, of length 1: the transposed inverse times it."""
    x, y, z = normal.tolist()
    inverse = rows.high[local.instance]
    return unit(x * inverse[0] + y * inverse[1] + z * inverse[2])


TABLE: dict[type, ExactFunctions | None] = {
    BoxRows: _of_boxes(_corners),
    GridRows: _of_boxes(_cell_corners),
    PlaneRows: _of_surfaces(_plane_time),
    TriangleRows: _of_surfaces(_triangle_time),
    InstanceRows: ExactFunctions(_instance_time, _instance_span),
}
"""Classes of rows and their exact functions; None: kernels only. `raybox.primitives.table.add` adds to it."""


def ray_at(rays: RayRows, i: int) -> Ray1:
    """Return one ray as plain numbers."""
    low = rays.t_min[i if rays.t_min.size > 1 else 0]
    high = rays.t_max[i if rays.t_max.size > 1 else 0]
    origin = rays.origins[i if len(rays.origins) > 1 else 0].tolist()
    direction = rays.directions[i].tolist()
    return Ray1(tuple(origin), tuple(direction), float(low), float(high))


def exact_time(rows: PrimitiveRows, ray: Ray1, i: int) -> Ratio | None:
    """Return the exact time of the first contact with primitive i, or None."""
    functions = TABLE[type(rows)]
    assert functions is not None  # as scenes of several geometries check
    return functions.time(rows, ray, i)


def path_length(rows: PrimitiveRows, ray: Ray1, i: int) -> float | None:
    """Return the length of a ray inside of primitive i, by exact times; None if these are not known."""
    functions = TABLE.get(type(rows))
    span = functions and functions.span(rows, ray, i)
    return span and paths.length(ray, span.enter, span.leave)


def contact_point(rows: PrimitiveRows, ray: Ray1, i: int) -> Vector | None:
    """Return the point of first contact with primitive i, each coordinate rounded once; None if unknown."""
    functions = TABLE.get(type(rows))
    time = functions and functions.time(rows, ray, i)
    return time and paths.point(ray, time)


def contact_distance(rows: PrimitiveRows, ray: Ray1, i: int) -> float | None:
    """Return the distance of first contact, by its exact time; None if unknown."""
    functions = TABLE.get(type(rows))
    time = functions and functions.time(rows, ray, i)
    if time is None:
        return None
    whole, ends = ray._replace(t_min=-math.inf, t_max=math.inf), (time, (0, 1))
    return -paths.length(whole, *ends) if time[0] < 0 else paths.length(whole, *reversed(ends))


def compare_contacts(one: tuple[Ratio, int], other: tuple[Ratio, int]) -> int:
    """Compare first contacts by time, exactly, then by number."""
    return definition.order(one[0], other[0]) or one[1] - other[1]
