"""The slab table of one ray and one box, and what every algorithm says of the two beside the exact answer."""

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
    """One axis: the t of both planes (None if parallel), near and far, and what the axes so far share."""

    axis: int
    at_lower: float | None
    at_upper: float | None
    near: float
    far: float
    near_so_far: float
    far_so_far: float


class Verdict(NamedTuple):
    """What one algorithm says, and what rational arithmetic answers to the same question; None: not asked."""

    name: str
    hit: bool | None
    says: str
    convention: str
    exact: bool | None

    @property
    def differs(self) -> bool:
        """Whether float64 got it wrong."""
        return self.hit != self.exact


class Case(NamedTuple):
    """One ray and one box, as far as they have been looked at."""

    ray: Ray1
    lower: Vector
    upper: Vector
    slabs: tuple[SlabRow, ...]
    faces: tuple[Face, ...]


def look(ray: Ray1, lower: Vector, upper: Vector) -> Case:
    """Clip the whole line, axis by axis, without stopping at a miss; the near planes are the candidates."""
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
    """Ask every algorithm its own question, and rational arithmetic the same one."""
    ask = _ask_slab, _ask_cyrus_beck, _ask_candidate_planes, _ask_near_far, _ask_bounded_plane, _ask_triangles
    return tuple(one(case) for one in ask)


def given_length(case: Case) -> float:
    """Give the length for `bounded_plane`: where the ray ends, or well behind the box if it does not."""
    reach = [row.far for row in case.slabs if isfinite(row.far)]
    return case.ray.t_max if isfinite(case.ray.t_max) else 2.0 * max([1.0, *reach])


def _meets(case: Case, t_max: float) -> bool:
    ray = Ray1(case.ray.origin, case.ray.direction, 0.0, t_max)
    return definition.box(ray, case.lower, case.upper) is not None


def _ask_slab(case: Case) -> Verdict:
    name, convention = "slab", "t in 0 to t_max; inside: t = 0"
    ray, lower, upper, *_ = case
    if ray.t_max < 0.0:
        return Verdict(name, None, "the ray ends before t = 0", convention, None)
    found = slab(ray.origin, ray.direction, lower, upper, t_max=ray.t_max)
    says = f"t = {number(found.t)}" if found else ""
    return Verdict(name, found.hit, says, convention, _meets(case, ray.t_max))


def _ask_cyrus_beck(case: Case) -> Verdict:
    found = cyrus_beck(case.ray.origin, case.ray.direction, case.lower, case.upper)
    convention = "t >= 0; miss: -1; inside: the exit"
    return Verdict("cyrus_beck", found.hit, f"t = {number(found.t)}", convention, _meets(case, inf))


def _ask_candidate_planes(case: Case) -> Verdict:
    name, convention = "candidate_planes", "t in 0 to length; inside: at once"
    ray, lower, upper, *_ = case
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
    return Verdict(name, found.hit, says, convention, _meets(case, ray.t_max))


def _ask_near_far(case: Case) -> Verdict:
    found = near_far(case.ray.origin, case.ray.direction, case.lower, case.upper)
    convention = "far >= 0; miss: inf; inside: < 0"
    return Verdict("near_far", found.hit, f"distance {number(found.distance)}", convention, _meets(case, inf))


def _ask_bounded_plane(case: Case) -> Verdict:
    """Try the last candidate face; a ray without end is cut well behind the box."""
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


def _ask_triangles(case: Case) -> Verdict:
    """Try the twelve triangles of the box's surface, as a tracer of triangles does."""
    name, convention = "moller_trumbore", "t >= 0; 12 triangles, both sides"
    o, d = case.ray.origin, case.ray.direction
    if len(o) != 3:
        return Verdict(name, None, "triangles are for 3D", convention, None)
    if not all(map(isfinite, (*case.lower, *case.upper))):
        return Verdict(name, None, "an endless box has no triangles", convention, None)
    triangles = list(_surface(case.lower, case.upper))
    found = [answer.t for answer in (moller_trumbore(o, d, *corners) for corners in triangles) if answer]
    exact = any(definition.triangle(Ray1(o, d), *corners) for corners in triangles)
    return Verdict(name, bool(found), f"t = {number(min(found))}" if found else "", convention, exact)


def _surface(lower: Vector, upper: Vector) -> Iterator[tuple[Vector, Vector, Vector]]:
    """Cut each of the six faces along its diagonal."""
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
