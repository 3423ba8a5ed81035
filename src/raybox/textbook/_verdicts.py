"""The slab table of one ray and one box, and the verdicts of all algorithms beside the exact result."""

from collections.abc import Iterator
from itertools import product
from math import inf, isfinite
from typing import NamedTuple

from raybox.exact import definition
from raybox.exact.definition import Ray1
from raybox.textbook._checks import AXES, Vector, number
from raybox.textbook.bounded_plane import bounded_plane
from raybox.textbook.candidate_planes import candidate_planes
from raybox.textbook.cyrus_beck import cyrus_beck
from raybox.textbook.moller_trumbore import moller_trumbore
from raybox.textbook.near_far import near_far
from raybox.textbook.slab import Face, slab


class SlabRow(NamedTuple):
    """One axis: t of both planes (None if parallel), its interval, and the intersection so far."""

    axis: int
    at_lower: float | None
    at_upper: float | None
    near: float
    far: float
    near_so_far: float
    far_so_far: float


class Verdict(NamedTuple):
    """The result of one algorithm, and the exact one by its convention; None: not applicable."""

    name: str
    hit: bool | None
    says: str
    convention: str
    exact: bool | None

    @property
    def differs(self) -> bool:
        """Whether rounding in float64 made the result wrong."""
        return self.hit != self.exact


class Case(NamedTuple):
    """One ray and one box, with their slab table and candidate faces."""

    ray: Ray1
    lower: Vector
    upper: Vector
    slabs: tuple[SlabRow, ...]
    faces: tuple[Face, ...]


def clip_line(ray: Ray1, lower: Vector, upper: Vector) -> Case:
    """Return the slab table of the whole line; near planes are candidate faces.

    All axes are clipped, even after a miss.
    """
    slabs: list[SlabRow] = []
    faces: list[Face] = []
    so_far = -inf, inf
    for axis, (p, q, a, b) in enumerate(zip(ray.origin, ray.direction, lower, upper, strict=True)):
        at_lower = at_upper = None
        near, far = (-inf, inf) if a <= p <= b else (inf, -inf)
        if q != 0.0:
            at_lower, at_upper = (a - p) / q, (b - p) / q
            near, far = min(at_lower, at_upper), max(at_lower, at_upper)
            if isfinite(near):
                faces.append(Face(axis, a if q > 0.0 else b, near))
        so_far = max(so_far[0], near), min(so_far[1], far)
        slabs.append(SlabRow(axis, at_lower, at_upper, near, far, *so_far))
    return Case(ray, lower, upper, tuple(slabs), tuple(faces))


def verdicts(case: Case) -> tuple[Verdict, ...]:
    """Return the verdict of every algorithm, each beside the exact one by its convention."""
    return tuple(verdict(case) for verdict in _VERDICTS)


def given_length(case: Case) -> float:
    """Return the length for `bounded_plane`: the ray's end, or well behind the box."""
    reach = [row.far for row in case.slabs if isfinite(row.far)]
    return case.ray.t_max if isfinite(case.ray.t_max) else 2.0 * max([1.0, *reach])


def _is_hit(case: Case, t_max: float) -> bool:
    ray = Ray1(case.ray.origin, case.ray.direction, 0.0, t_max)
    return definition.box(ray, case.lower, case.upper) is not None


def _slab_verdict(case: Case) -> Verdict:
    name, convention = "slab", "t in 0 to t_max; inside: t = 0"
    ray, lower, upper = case[:3]
    if ray.t_max < 0.0:
        return Verdict(name, None, "the ray ends before t = 0", convention, None)
    found = slab(ray.origin, ray.direction, lower, upper, t_max=ray.t_max)
    says = f"t = {number(found.t)}" if found else ""
    return Verdict(name, found.hit, says, convention, _is_hit(case, ray.t_max))


def _cyrus_beck_verdict(case: Case) -> Verdict:
    found = cyrus_beck(case.ray.origin, case.ray.direction, case.lower, case.upper)
    convention = "t >= 0; miss: -1; inside: the exit"
    return Verdict("cyrus_beck", found.hit, f"t = {number(found.t)}", convention, _is_hit(case, inf))


def _candidate_planes_verdict(case: Case) -> Verdict:
    name, convention = "candidate_planes", "t in 0 to length; inside: at once"
    ray, lower, upper = case[:3]
    if ray.t_max < 0.0:
        return Verdict(name, None, "the ray ends before t = 0", convention, None)
    found = candidate_planes(ray.origin, ray.direction, lower, upper, length=ray.t_max)
    if found.plane is None:
        says = "the origin is inside"
    elif found.hit:
        says = f"through {_face(found.plane)}"
    elif found.moving_away:
        says = f"moves away from {_face(found.plane)}"
    else:
        says = f"{'ends before' if found.plane.t > ray.t_max else 'passes by'} {_face(found.plane)}"
    return Verdict(name, found.hit, says, convention, _is_hit(case, ray.t_max))


def _near_far_verdict(case: Case) -> Verdict:
    ray, lower, upper = case[:3]
    found = near_far(ray.origin, ray.direction, lower, upper)
    says = f"distance {number(found.distance)}"
    convention = "far >= 0; miss: inf; inside: < 0"
    return Verdict("near_far", found.hit, says, convention, _is_hit(case, inf))


def _bounded_plane_verdict(case: Case) -> Verdict:
    """Test the last candidate face; an endless ray is cut well behind the box."""
    name, convention = "bounded_plane", "one plane, its front; t in 0 to 1"
    o, d = case.ray.origin, case.ray.direction
    length = given_length(case)
    if not case.faces:
        return Verdict(name, None, "there is no face to try", convention, None)
    if length < 0.0:
        return Verdict(name, None, "the ray ends before t = 0", convention, None)
    if not all(isfinite(length * x) for x in d):
        return Verdict(name, None, "too long for float64", convention, None)
    face = max(case.faces, key=lambda face: face.t)
    normal = tuple(0.0 if axis != face.axis else -1.0 if x > 0.0 else 1.0 for axis, x in enumerate(d))
    offset = face.at * normal[face.axis]
    found = bounded_plane(o, d, normal, offset, length=length)
    exact = definition.plane(Ray1(o, d, 0.0, length), normal, offset, cull_back=True)
    says = f"{_face(face)} at {found.t:.6g}" if found else f"{_face(face)} is not ahead"
    return Verdict(name, found.hit, says, convention, exact is not None)


def _triangles_verdict(case: Case) -> Verdict:
    """Test the twelve triangles of the box's surface."""
    name, convention = "moller_trumbore", "t >= 0; 12 triangles, both sides"
    o, d = case.ray.origin, case.ray.direction
    if len(o) != 3:
        return Verdict(name, None, "triangles are for 3D", convention, None)
    if not all(map(isfinite, (*case.lower, *case.upper))):
        return Verdict(name, None, "an endless box has no triangles", convention, None)
    triangles = list(_surface(case.lower, case.upper))
    found = [hit.t for hit in (moller_trumbore(o, d, *corners) for corners in triangles) if hit]
    exact = any(definition.triangle(Ray1(o, d), *corners) for corners in triangles)
    return Verdict(name, bool(found), f"t = {number(min(found))}" if found else "", convention, exact)


def _surface(lower: Vector, upper: Vector) -> Iterator[tuple[Vector, Vector, Vector]]:
    """Yield two triangles for each of the six faces."""
    for axis, side in product(range(3), (lower, upper)):
        u, v = (k for k in range(3) if k != axis)
        corners = []
        for at_u, at_v in ((lower, lower), (upper, lower), (upper, upper), (lower, upper)):
            corner = {axis: side[axis], u: at_u[u], v: at_v[v]}
            corners.append((corner[0], corner[1], corner[2]))
        a, b, c, d = corners
        yield a, b, c
        yield a, c, d


def _face(face: Face) -> str:
    return f"{AXES[face.axis]} = {face.at + 0.0:.9g}"


_VERDICTS = (
    _slab_verdict,
    _cyrus_beck_verdict,
    _candidate_planes_verdict,
    _near_far_verdict,
    _bounded_plane_verdict,
    _triangles_verdict,
)
