"""The independent truth for planes and triangles, in rational arithmetic (rays and numbers: see exact.py)."""

from fractions import Fraction

from exact import Found, Met, Row, has_range, rounded


def plane(o: Row, d: Row, span: Row, normal: Row, offset: float, *, cull_back: bool = False) -> Met | None:
    """Return the hit of a ray and the plane n.p = offset; parallel rays miss."""
    if not has_range(*span):
        return None
    n = [Fraction(x) for x in normal]
    slope = sum(a * Fraction(b) for a, b in zip(n, d, strict=True))
    if slope == 0 or (cull_back and slope > 0):
        return None
    t = (Fraction(offset) - sum(a * Fraction(b) for a, b in zip(n, o, strict=True))) / slope
    return Met(t, t, t) if span[0] <= t <= span[1] else None


def triangle_by_signs(o: Row, d: Row, span: Row, a: Row, b: Row, c: Row) -> Met | None:
    """Return the hit by the plane of the triangle and the point's side of each edge."""
    if not has_range(*span):
        return None
    o, d, a, b, c = ([Fraction(x) for x in v] for v in (o, d, a, b, c))
    across = normal(a, b, c)
    slope = dot(across, d)
    if slope == 0:
        return None
    t = dot(across, minus(a, o)) / slope
    if not span[0] <= t <= span[1]:
        return None
    p = [x + t * y for x, y in zip(o, d, strict=True)]
    sides = (dot(across, cross(minus(w, v), minus(p, v))) for v, w in ((a, b), (b, c), (c, a)))
    return Met(t, t, t) if all(side >= 0 for side in sides) else None


def triangle(
    o: Row, d: Row, span: Row, a: Row, b: Row, c: Row, *, cull_back: bool = False
) -> tuple[Met, Fraction, Fraction] | None:
    """Return the hit, u and v, by Cramer's rule in integers.

    The equation is o + t d = a + u (b - a) + v (c - a).
    """
    if not has_range(*span):
        return None
    scale, (o, a, b, c) = _whole(o, a, b, c)
    d_scale, (d,) = _whole(d)
    e1, e2, s = minus(b, a), minus(c, a), minus(o, a)
    q = cross(d, e2)
    det = dot(e1, q)
    if det == 0 or (cull_back and det < 0):  # det is -d . n
        return None
    r = cross(s, e1)
    u, v, w = (x if det > 0 else -x for x in (dot(s, q), dot(d, r), dot(e2, r)))
    det = abs(det)
    if u < 0 or v < 0 or u + v > det:
        return None
    t = Fraction(w * d_scale, det * scale)
    return (Met(t, t, t), Fraction(u, det), Fraction(v, det)) if span[0] <= t <= span[1] else None


def triangles_along(rays, corners, *, cull_back: bool = False) -> list[list[Found]]:
    """Return the hits of each ray, in order of time and index. corners: (triangles, 3, 3)."""
    found, corners = [], corners.tolist()
    numbers = rays.origins, rays.directions, rays.t_min, rays.t_max
    for o, d, *span in zip(*(x.tolist() for x in numbers), strict=True):
        hits = ((i, triangle(o, d, span, *one, cull_back=cull_back)) for i, one in enumerate(corners))
        times = [(i, hit[0].t, rounded(hit[0].t)) for i, hit in hits if hit is not None]
        row = [Found(i, exact, (True, t, t, t, -1, True)) for i, exact, t in times]
        found.append(sorted(row, key=lambda f: (f.t, f.index)))
    return found


def normal(a, b, c) -> list[Fraction]:
    """Return the normal (b - a) x (c - a) of a triangle of Fractions."""
    return cross(minus(b, a), minus(c, a))


def _whole(*vectors: Row) -> tuple[int, list[list[int]]]:
    """Return a common denominator, a power of two, and the vectors as integers over it."""
    ratios = [[float(x).as_integer_ratio() for x in v] for v in vectors]
    scale = max(d for v in ratios for _, d in v)
    return scale, [[n * (scale // d) for n, d in v] for v in ratios]


def minus(a, b):
    return [x - y for x, y in zip(a, b, strict=True)]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def cross(a, b):
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
