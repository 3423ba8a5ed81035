"""The independent truth for instances and for scenes of several geometries, in Fractions.

Written from the definition: an instance is the image of its geometry under p -> A p + b. The ray's image
under the inverse map (Gauss and Jordan, in Fractions) hits the geometry at the same t (exact.py,
exact_surfaces.py).
"""

import itertools
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

import exact
import exact_surfaces
from exact import INF, Found, Real, rounded


class Contact(NamedTuple):
    t: Real
    geometry: int
    index: int
    primitive: int
    t_enter: Real
    t_exit: Real
    touch: bool = False

    def found(self) -> Found:
        t, enter, leave = map(rounded, (self.t, self.t_enter, self.t_exit))
        return Found(self.index, self.t, (True, t, enter, leave, -1, self.touch))


def solved(matrix, *columns) -> list[list[Fraction]]:
    """Return the solution of A x = column for each column."""
    size = len(matrix)
    rows = [[Fraction(x) for x in (*row, *(c[k] for c in columns))] for k, row in enumerate(matrix)]
    for k in range(size):
        pivot = next(i for i in range(k, size) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [x / rows[k][k] for x in rows[k]]
        for i in range(size):
            if i != k:
                rows[i] = [x - rows[i][k] * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [[row[size + j] for row in rows] for j in range(len(columns))]


def local(o, d, transform) -> tuple[list[Fraction], list[Fraction]]:
    """Return a ray's image under the inverse of a map [A b]."""
    moved = [Fraction(x) - Fraction(row[-1]) for x, row in zip(o, transform, strict=False)]
    columns = inverse(tuple(tuple(row[:-1]) for row in transform[: len(o)]))

    def image(vector) -> list[Fraction]:
        terms = [[x * Fraction(y) for x in column] for column, y in zip(columns, vector, strict=True)]
        return [sum(row) for row in zip(*terms, strict=True)]

    return image(moved), image(d)


@lru_cache(maxsize=256)
def inverse(matrix) -> list[list[Fraction]]:
    """Return the columns of the inverse of a matrix."""
    return solved(matrix, *np.eye(len(matrix), dtype=int).tolist())


def of_boxes(o, d, span, lower, upper):
    """Yield (row, t, t_enter, t_exit, touch) of the boxes that one ray hits."""
    for i, (low, up) in enumerate(zip(lower, upper, strict=True)):
        met = exact.by_slabs(o, d, *span, low, up)
        if met is not None:
            yield i, met.t, met.t_enter, met.t_exit, met.touch


def of_triangles(o, d, span, corners, cull_back=False):
    """Yield the same of triangles."""
    for i, (a, b, c) in enumerate(corners):
        met = exact_surfaces.triangle_by_signs(o, d, span, a, b, c)
        if met is not None and not (cull_back and _behind(d, a, b, c)):
            yield i, met.t, met.t, met.t, False


def _behind(d, a, b, c) -> bool:
    a, b, c = ([Fraction(x) for x in corner] for corner in (a, b, c))
    return exact_surfaces.dot(exact_surfaces.normal(a, b, c), map(Fraction, d)) > 0


def of_planes(o, d, span, normals, offsets):
    """Yield the same of planes."""
    for i, (n, offset) in enumerate(zip(normals, offsets, strict=True)):
        met = exact_surfaces.plane(o, d, span, n, offset)
        if met is not None:
            yield i, met.t, met.t, met.t, False


def weights(o, d, t, a, b, c) -> tuple[float, float]:
    """Return the barycentric weights of b and c at t, from areas."""
    p = [Fraction(x) + t * Fraction(y) for x, y in zip(o, d, strict=True)]
    to = [[Fraction(y) - Fraction(x) for x, y in zip(a, end, strict=True)] for end in (b, c)]
    along = [y - Fraction(x) for x, y in zip(a, p, strict=True)]
    bb, bc, cc = (sum(map(Fraction.__mul__, to[i], to[j])) for i, j in ((0, 0), (0, 1), (1, 1)))
    pb, pc = (sum(map(Fraction.__mul__, along, side)) for side in to)
    det = bb * cc - bc * bc
    return rounded((cc * pb - bc * pc) / det), rounded((bb * pc - bc * pb) / det)


def parts_of(rays):
    """Yield each ray as plain numbers: o, d, (t_min, t_max)."""
    for o, d, low, high in zip(rays.origins, rays.directions, rays.t_min, rays.t_max, strict=True):
        yield o.tolist(), d.tolist(), (float(low), float(high))


def contacts_with(geometry, o, d, span, cull=False):
    """Yield (index, primitive, t, t_enter, t_exit, touch) of a ray's hits of a geometry."""
    name = type(geometry).__name__
    if name == "Grid":
        yield from contacts_with(geometry.boxes(), o, d, span)
        return
    if name == "Instances":
        if not exact.has_range(*span):
            return
        for i, transform in enumerate(geometry.transforms.tolist()):
            for row in contacts_with(geometry.geometry, *local(o, d, transform), span, cull):
                yield (i, *row[1:])
        return
    if name == "Boxes":
        found = of_boxes(o, d, span, geometry.lower.tolist(), geometry.upper.tolist())
    elif name == "Mesh":
        found = of_triangles(o, d, span, geometry.triangles.tolist(), cull)
    else:
        found = of_planes(o, d, span, geometry.normals.tolist(), geometry.offsets.tolist())
    for i, *rest in found:
        yield (i, i, *rest)


def along(rays, *geometries, where=None, cull=False) -> list[list[Contact]]:
    """Return each ray's hits, sorted by (exact t, geometry, index, primitive)."""
    want = []
    for o, d, span in parts_of(rays):
        row = []
        for k, geometry in enumerate(geometries):
            for i, j, t, enter, leave, touch in contacts_with(geometry, o, d, span, cull):
                if where is None or where[k] is None or where[k][i]:
                    row.append(Contact(t, k, i, j, enter, leave, touch))
        want.append(sorted(row, key=lambda x: x[:4]))
    return want


def assert_queries(scene, rays, want, **options) -> dict[str, int]:
    """Assert the results of every query of a scene; return counts of the kinds of hits."""
    from compare import assert_scene

    assert_scene(scene, rays, [[x.found() for x in row] for row in want], **options)
    hits, every = scene.nearest(rays, **options), scene.all(rays, **options)
    first_two = scene.first(rays, 2, **options)
    for name in ("geometry", "primitive"):
        first = [getattr(row[0], name) if row else -1 for row in want]
        np.testing.assert_array_equal(getattr(hits, name), first, err_msg=name)
        second = [getattr(row[1], name) if len(row) > 1 else -1 for row in want]
        np.testing.assert_array_equal(
            getattr(first_two, name), np.stack([first, second], axis=1), err_msg=name
        )
        flat = [getattr(x, name) for row in want for x in row]
        np.testing.assert_array_equal(getattr(every, name), np.array(flat, dtype=np.int64), err_msg=name)
    starts = [t for _, _, (t, _) in parts_of(rays)]
    return {
        "rays": len(want),
        "hits": sum(map(bool, want)),
        "several": sum(len(row) > 1 for row in want),
        "touches": sum(x.touch for row in want for x in row),
        "ties": sum(a.t == b.t for row in want for a, b in itertools.pairwise(row)),
        "inside": sum(x.t == t > x.t_enter for row, t in zip(want, starts, strict=True) for x in row),
        "unlike": sum(
            rounded(a.t) == rounded(b.t) and a.t != b.t for row in want for a, b in itertools.pairwise(row)
        ),
    }


__all__ = ["INF", "Contact", "along", "assert_queries", "contacts_with", "local", "solved", "weights"]
