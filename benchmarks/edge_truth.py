"""The exact results of a case of edges.py: hits, paths, normals and weights, in Fractions.

All arithmetic is that of the oracles in tests/, which share no code with the library.
"""

import math
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

import exact
import exact_instances
import exact_surfaces
import integer_grid
import path_truth
from exact_instances import Contact
from path_truth import Path, root


class Case(NamedTuple):
    """One scene and its rays."""

    primitive: str  # the name under which the case is counted
    geometries: tuple  # of raybox
    rays: object  # rb.Rays of shape (n,)
    sorted: bool = False  # rays are traversed in groups, as many rays are


def cell_bounds(grid) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper bounds of all cells of a grid, in C order."""
    lower = np.meshgrid(*(axis[:-1] for axis in grid.edges), indexing="ij")
    upper = np.meshgrid(*(axis[1:] for axis in grid.edges), indexing="ij")
    return tuple(np.stack([x.ravel() for x in side], axis=-1) for side in (lower, upper))


class Truth:
    """The exact results of a case; rows hold each ray's contacts by (t, geometry, index, primitive)."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.parts = list(exact_instances.parts_of(case.rays))

    @cached_property
    def rows(self) -> list[list[Contact]]:
        rows = [[] for _ in self.parts]
        for k, geometry in enumerate(self.case.geometries):
            for ray, found in enumerate(self._contacts(k, geometry)):
                rows[ray] += found
        return [sorted(row, key=lambda x: x[:4]) for row in rows]

    def _contacts(self, k: int, geometry):
        name = type(geometry).__name__
        if name in ("Boxes", "Grid"):
            bounds = cell_bounds(geometry) if name == "Grid" else (geometry.lower, geometry.upper)
            allowed = geometry.occupied.ravel() if name == "Grid" else np.ones(len(geometry), bool)
            rays = self.case.rays
            each = exact.contacts(rays.origins, rays.directions, rays.t_min, rays.t_max, *bounds)
            for found in each:
                yield [
                    Contact(_time(c.t), k, i, i, _time(c.t_enter), _time(c.t_exit), c.touch)
                    for i, c in found
                    if allowed[i]
                ]
        elif name == "Mesh":
            corners = geometry.triangles.tolist()
            for o, d, span in self.parts:
                found = [exact_surfaces.triangle(o, d, span, *one) for one in corners]
                yield [Contact(x[0].t, k, i, i, x[0].t, x[0].t) for i, x in enumerate(found) if x is not None]
        else:
            for ray in self.parts:
                found = exact_instances.contacts_with(geometry, *ray)
                yield [Contact(t, k, i, j, enter, leave, touch) for i, j, t, enter, leave, touch in found]

    @cached_property
    def paths(self) -> list[list[Path]]:
        """Each ray's paths inside of what it hits; cells of grids part it."""
        rows = []
        for row, (_, d, span) in zip(self.rows, self.parts, strict=True):
            boxes = [hit for hit in row if type(self.case.geometries[hit.geometry]).__name__ != "Grid"]
            rows.append([_faint(path_truth.path(hit, d, *span), d) for hit in boxes])
        for k, geometry in enumerate(self.case.geometries):
            if type(geometry).__name__ == "Grid":
                for row, cut, (_, d, _) in zip(rows, self.cuts(geometry), self.parts, strict=True):
                    row += [_cell_path(k, one, d) for one in cut]
        return rows

    def cuts(self, grid) -> list[list[Contact]]:
        """Return the stretches of each ray in the occupied cells of a grid, as contacts."""
        occupied = grid.occupied.ravel()
        return [
            [
                Contact(Fraction(s.begin, cut.scale), 0, s.cell, s.cell, *_ends(s, cut.scale))
                for s in cut.stretches
                if occupied[s.cell]
            ]
            for cut in integer_grid.cut_all(grid.edges, self.case.rays)
        ]

    def normal(self, hit: Contact, ray: int) -> list[float]:
        """Return the unit normal at a contact; zero where a ray starts inside of a box."""
        geometry, (o, d, span) = self.case.geometries[hit.geometry], self.parts[ray]
        if type(geometry).__name__ != "Instances":
            return _unit(_normal(geometry, hit.primitive, o, d, span))
        transform = geometry.transforms[hit.index].tolist()
        n = _normal(geometry.geometry, hit.primitive, *exact_instances.local(o, d, transform), span)
        rows = tuple(tuple(row[:-1]) for row in transform[: len(o)])
        columns = exact_instances.inverse(rows)
        return _unit([sum(x * y for x, y in zip(column, n, strict=True)) for column in columns])

    def weights(self, hit: Contact, ray: int) -> list[float]:
        """Return the barycentric weights at a contact; NaN without."""
        geometry, (o, d, _) = self.case.geometries[hit.geometry], self.parts[ray]
        if type(geometry).__name__ == "Instances":
            o, d = exact_instances.local(o, d, geometry.transforms[hit.index].tolist())
            geometry = geometry.geometry
        if type(geometry).__name__ != "Mesh":
            return [math.nan, math.nan]
        return list(exact_instances.weights(o, d, hit.t, *geometry.triangles[hit.primitive].tolist()))


def _time(x: tuple[int, int]):
    return Fraction(*x) if x[1] else x[0] * math.inf


def _ends(stretch, scale: int) -> tuple[Fraction, Fraction]:
    return Fraction(stretch.begin, scale), Fraction(stretch.end, scale)


def _cell_path(geometry: int, hit: Contact, d) -> Path:
    speed = root(sum(Fraction(x) ** 2 for x in d))
    reach = (abs(hit.t_enter) + abs(hit.t_exit)) * speed
    path = Path(geometry, hit.index, (hit.t_exit - hit.t_enter) * speed, reach, False, False, hit.t)
    return _faint(path, d)


def _faint(path: Path, d) -> Path:
    """Return a path whose times may lose what underflows, if components of the direction are 2^1000 apart.

    See "underflow may cost more" in docs/numerics.md: half the least float, times the direction's length.
    """
    sizes = [abs(x) for x in d if x != 0]
    if not sizes or isinstance(path.reach, float) or Fraction(max(sizes)) <= Fraction(min(sizes)) * 2**1000:
        return path
    return path._replace(reach=path.reach + Fraction(max(sizes)) / (1 << 1021))


def _normal(geometry, row: int, o, d, span) -> list[Fraction]:
    """Return a normal of any length."""
    name = type(geometry).__name__
    if name == "Planes":
        return [Fraction(x) for x in geometry.normals[row].tolist()]
    if name == "Mesh":
        a, b, c = ([Fraction(x) for x in v] for v in geometry.triangles[row].tolist())
        return exact_surfaces.normal(a, b, c)
    if name == "Grid":
        lower, upper = (side[row].tolist() for side in cell_bounds(geometry))
    else:
        lower, upper = geometry.lower[row].tolist(), geometry.upper[row].tolist()
    met = exact.by_slabs(o, d, *span, lower, upper)
    return [Fraction(0) if k != met.axis else Fraction(-1 if x > 0 else 1) for k, x in enumerate(d)]


def _unit(vector) -> list[float]:
    square = sum(x * x for x in vector)
    return [0.0] * len(vector) if square == 0 else [float(x / root(square)) for x in vector]
