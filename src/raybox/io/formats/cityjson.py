"""CityJSON 1.0 to 2.0 and CityJSONSeq: the surfaces of city objects as triangles.

Each city object with surfaces is an object, a part of a building too; with ``objects="surfaces"``, each of
its semantic surfaces is one. Surfaces are those of one level of detail: of ``lod``, else of the highest that
the object has. An object whose parts have a higher one is left out, since it is the same body, coarser; so is
level 0, a footprint, of an object whose children have any higher one. Levels are compared number by number:
2.10 is higher than 2.2.

Labels are `type`, the one of the topmost parent; `part_type`, the object's own, if any object has a parent;
`parent`; and the attributes of the object and of its parents, of which the nearest counts. An attribute that
is a list or has parts of its own is JSON text; one named `id`, or like another label, is ``attribute_NAME``.
Colours are those of the materials of the theme that the file prefers, else of the first; textures are not
read.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raybox.geometry.colors import Colors, color_bytes
from raybox.geometry.polygons import Polygons, triangulate
from raybox.io.formats.cityjson_document import (
    CHECK,
    MALFORMED,
    City,
    CityObject,
    Json,
    ancestors,
    numbers,
    read_city,
)
from raybox.io.formats.common import Floats, Loaded, ReadOptions, file_error, quoted, reason
from raybox.io.formats.mesh_parts import Ints, MeshPart, to_scene

_DEPTHS = {"MultiSurface": 0, "CompositeSurface": 0, "Solid": 1, "MultiSolid": 2, "CompositeSolid": 2}
_WITHOUT_SURFACES = ("MultiPoint", "MultiLineString")
_NOT_ATTRIBUTES = ("type", "parent", "children")
"""of a semantic surface"""

Level = tuple[int, ...]


class _Geometry(NamedTuple):
    """One geometry of an object, which vertices it counts, and the place of that of a template."""

    type: str
    level: Level
    boundaries: list[Any]
    semantics: Any
    material: Any
    """numbers of materials by theme"""
    first_vertex: int
    vertex_count: int
    appearance: Json
    matrix: Floats | None = None
    anchor: int = 0
    """the vertex that a template is moved to"""

    def polygons(self) -> list[Any]:
        """Return the surfaces of all shells, each a list of rings."""
        polygons = self.boundaries
        for _ in range(_DEPTHS[self.type]):
            polygons = list(chain.from_iterable(polygons))
        return polygons


class _Owner(NamedTuple):
    """What polygons belong to: a city object, or one semantic surface of it."""

    id: str
    city_object: str
    semantics: Json
    """of a surface: its type, and attributes"""


class _Surfaces:
    """The polygons of geometries so far, and their vertices: those of the file, then of placed templates."""

    def __init__(self, vertices: Floats) -> None:
        self.vertices, self.vertex_count = [vertices], len(vertices)
        self.corners: list[Ints] = [np.zeros(0, dtype=np.int64)]
        self.sizes: list[int] = []
        self.rings: list[int] = []
        self.owners: list[_Owner] = []
        self.colors: list[Colors] = [np.zeros((0, 4), np.uint8)]

    def add(self, geometry: _Geometry, city: City, owners: list[_Owner], colors: Colors) -> None:
        """Append the polygons of a geometry, each with its owner and its colour."""
        self.colors.append(colors)
        polygons, matrix = geometry.polygons(), geometry.matrix
        rings = list(chain.from_iterable(polygons))
        if matrix is not None and np.linalg.det(matrix[:3, :3]) < 0:  # outward normals stay outward
            rings = [ring[::-1] for ring in rings]
        corners = list(chain.from_iterable(rings))
        if matrix is None:
            self.corners.append(_checked(corners, geometry.vertex_count) + geometry.first_vertex)
        else:
            used, found = np.unique(_checked(corners, len(city.template_vertices)), return_inverse=True)
            turned = city.template_vertices[used] @ matrix[:3, :3].T
            self.vertices.append(turned + matrix[:3, 3] + city.vertices[geometry.anchor])
            self.corners.append(found + self.vertex_count)
            self.vertex_count += len(used)
        self.sizes.extend(map(len, rings))
        self.rings.extend(map(len, polygons))
        self.owners.extend(owners)


def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the triangles or boxes of a CityJSON file, in the order of its objects."""
    city, left_out = read_city(path), Counter[str]()
    skipped, surfaces = city.skipped, _Surfaces(city.vertices)
    for name, geometries in _chosen(city, options.lod, skipped, left_out):
        with _errors_of(path, name):
            number = 0
            for geometry in geometries:
                semantic = _semantic_surfaces(city, geometry, name, number) if options.objects else []
                owners = _owners(geometry, name, semantic, skipped)
                surfaces.add(geometry, city, owners, _colors(geometry, skipped))
                number += len(semantic)
    if not surfaces.rings:
        there = ", ".join(f"{level or 'none'} ({count})" for level, count in levels(path).items())
        way_out = f"choose one of its levels: {there}" if there else "check the file"
        raise file_error(path, f"has no city object with surfaces{_of_level(options.lod)}", way_out)
    parts = _parts(city, surfaces, options, skipped)
    return to_scene(parts, path, options, skipped, left_out)._replace(units=city.units, up="z")


def _parts(city: City, surfaces: _Surfaces, options: ReadOptions, skipped: Counter[str]) -> list[MeshPart]:
    """Return the triangles of each owner of polygons, with its labels."""
    vertices, corners = np.concatenate(surfaces.vertices), np.concatenate(surfaces.corners)
    sizes, rings = (np.array(counts, dtype=np.int64) for counts in (surfaces.sizes, surfaces.rings))
    found = triangulate(vertices, Polygons(corners, sizes, rings))
    owners = [*{one.id: one for one in surfaces.owners}.values()]
    numbered = {one.id: number for number, one in enumerate(owners)}
    owner_of = np.array([numbered[one.id] for one in surfaces.owners], dtype=np.int64)
    for loss, lost in (
        ("polygons of fewer than three corners", found.failed),
        ("exact shapes of polygons that are not flat or cross themselves,", found.not_flat),
    ):
        for owner in owner_of[lost]:
            skipped[f"{loss} in city object {owners[owner].id!r}"] += 1
    of_faces = owner_of[found.polygon]
    order = np.argsort(of_faces, kind="stable")
    starts = np.searchsorted(of_faces[order], np.arange(1, len(owners)))
    colors = np.concatenate(surfaces.colors)[found.polygon]
    of_owners = (np.split(values[order], starts) for values in (found.faces, colors))
    labels = (_labels(city, owner, options) for owner in owners)
    parts = zip(owners, labels, *of_owners, strict=True)
    return [MeshPart(owner.id, vertices, faces, own, some) for owner, own, faces, some in parts]


def levels(path: Path) -> dict[str, int]:
    """Return the number of city objects with surfaces of each level, from the lowest on; "" for none."""
    city, counts = read_city(path), Counter[Level]()
    for name in city.objects:
        counts.update({one.level for one in _with_surfaces(city, name, Counter(), Counter())})
    return {".".join(map(str, level)): counts[level] for level in sorted(counts)}


@contextmanager
def _errors_of(path: Path, name: str) -> Iterator[None]:
    """Raise `FileFormatError` for errors in the geometry of an object."""
    try:
        yield
    except MALFORMED as error:
        problem = f"its geometry is broken{reason(error)}"
        raise file_error(path, problem, CHECK, f"city object {name!r}") from error


def _of_level(lod: str | None) -> str:
    return "" if lod is None else f" of level {lod}"


def _chosen(
    city: City, lod: str | None, skipped: Counter[str], left_out: Counter[str]
) -> Iterator[tuple[str, list[_Geometry]]]:
    """Yield each object with its surfaces of the wanted level; count the objects that have none."""
    given = {name: _with_surfaces(city, name, skipped, left_out) for name in city.objects}
    highest = {name: max(one.level for one in found) for name, found in given.items() if found}
    coarse = _coarser_than_parts(city.objects, highest) if lod is None else set[str]()
    wanted = highest if lod is None else dict.fromkeys(given, level_of(lod))
    for name, found in given.items():
        if name in coarse:
            left_out["city objects whose parts have a higher level of detail"] += 1
        elif some := [one for one in found if one.level == wanted[name]]:
            yield name, some
        else:
            left_out[f"city objects without surfaces{_of_level(lod)}"] += 1


def _coarser_than_parts(objects: dict[str, CityObject], highest: dict[str, Level]) -> set[str]:
    """Return the objects whose highest level is below that of their parts.

    Installations and rooms add to a building, where its parts are its body: of other children than parts, a
    higher level shows only that level 0 is a footprint.
    """
    found = set[str]()
    for name, level in highest.items():
        is_part = str(objects[name].item.get("type")).endswith("Part")
        for above in ancestors(objects, name):
            own = highest.get(above)
            if own and own < level and (is_part or own[0] == 0):
                found.add(above)
    return found


def _with_surfaces(city: City, name: str, skipped: Counter[str], left_out: Counter[str]) -> list[_Geometry]:
    """Return the geometries of an object with surfaces, those of templates too; count the others."""
    found, one = [], city.objects[name]
    with _errors_of(city.path, name):
        for given in one.item.get("geometry") or []:
            is_placed, shape, own = given["type"] == "GeometryInstance", given, one
            if is_placed:
                own = one._replace(appearance=city.appearance)
                shape = city.templates[_checked([given["template"]], len(city.templates), "template")[0]]
            if shape["type"] in _DEPTHS:
                place = _place(given, one, city) if is_placed else (None, 0)
                stated = shape["boundaries"], shape.get("semantics"), shape.get("material")
                found.append(_Geometry(shape["type"], level_of(shape.get("lod")), *stated, *own[1:], *place))
            elif shape["type"] in _WITHOUT_SURFACES:
                left_out["geometries of points or lines"] += 1
            else:
                skipped[f"geometries of the unknown type {quoted(shape['type'])}"] += 1
    return [geometry for geometry in found if geometry.boundaries]


def _place(geometry: Json, one: CityObject, city: City) -> tuple[Floats, int]:
    """Return the matrix and the vertex that place a template."""
    matrix = numbers(geometry["transformationMatrix"], "matrix", 16).reshape(4, 4)
    if matrix[3].tolist() != [0, 0, 0, 1]:
        raise ValueError(f"the last row of its matrix is {matrix[3].tolist()}, not 0 0 0 1")
    anchors = _checked(list(geometry["boundaries"]), one.vertex_count)
    if len(anchors) != 1:
        raise ValueError(f"a template is placed at one vertex, this one at {len(anchors)}")
    return matrix, one.first_vertex + int(anchors[0])


def level_of(lod: Any) -> Level:
    """Return a level of detail as numbers, () for none; raise ValueError for other text."""
    if lod is None:
        return ()
    if isinstance(lod, bool) or not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})*", str(lod)):
        raise ValueError(f"{quoted(lod)} is no level of detail such as 2.2")
    found = [int(part) for part in str(lod).split(".")]
    while len(found) > 1 and found[-1] == 0:  # "2" and "2.0" are one level
        found.pop()
    return tuple(found)


def _checked(given: list[Any], count: int, what: str = "vertex") -> Ints:
    """Return numbers of vertices; raise ValueError if one is no integer, or not below `count`."""
    if not set(map(type, given)) <= {int}:
        wrong = next(number for number in given if type(number) is not int)
        raise ValueError(f"{quoted(wrong)} is not the number of a {what}")
    if given and not 0 <= min(given) <= max(given) < count:
        wrong = min(given) if min(given) < 0 else max(given)
        raise ValueError(f"{what} {wrong} does not exist: there are {count}, from 0 on")
    return np.array(given, dtype=np.int64)


def _semantic_surfaces(city: City, geometry: _Geometry, name: str, first: int) -> list[_Owner]:
    """Return the semantic surfaces of a geometry of an object, numbered from `first` on; [] without.

    No two ids are equal: no type has a slash, and an object with such a name adds a quote.
    """
    found = []
    try:
        for number, one in enumerate(geometry.semantics["surfaces"], first):
            own = f"{name}/{str(one.get('type', 'surface')).replace('/', ' ')}/{number}"
            found.append(_Owner(own + "'" * (own in city.objects), name, one))
    except MALFORMED:
        return []
    return found


def _owners(geometry: _Geometry, name: str, surfaces: list[_Owner], skipped: Counter[str]) -> list[_Owner]:
    """Return the owner of each polygon of a geometry: one of its semantic surfaces, or the object."""
    whole = _Owner(name, name, {})
    polygons = [whole] * len(geometry.polygons())
    if not surfaces:
        return polygons
    try:
        values = _flat(geometry.semantics["values"], geometry.boundaries, _DEPTHS[geometry.type])
        _checked([value for value in values if value is not None], len(surfaces))
    except MALFORMED:
        skipped["semantics that do not fit their surfaces"] += 1
        return polygons
    return [whole if value is None else surfaces[value] for value in values]


def _colors(geometry: _Geometry, skipped: Counter[str]) -> Colors:
    """Return the colour of each polygon of a geometry, zeros without."""
    given, appearance = geometry.material, geometry.appearance
    rows = [_material({})] * len(geometry.polygons())
    try:
        if given:
            theme = given.get(appearance.get("default-theme-material")) or next(iter(given.values()))
            materials, values = appearance["materials"], [theme.get("value")] * len(rows)
            if "value" not in theme:
                values = _flat(theme["values"], geometry.boundaries, _DEPTHS[geometry.type])
            _checked([value for value in values if value is not None], len(materials), "material")
            rows = [_material({} if value is None else materials[value]) for value in values]
    except MALFORMED:
        skipped["materials that do not fit their surfaces"] += 1
    return color_bytes(np.array(rows).reshape(-1, 4))


def _material(material: Json) -> list[float]:
    """Return red, green, blue and alpha of a material; zeros if it states no colour."""
    if "diffuseColor" not in material:
        return [0.0] * 4
    opacity = 1.0 - float(material.get("transparency", 0.0))
    return [*numbers(material["diffuseColor"], "diffuseColor", 3).tolist(), opacity]


def _flat(values: Any, boundaries: list[Any], depth: int) -> list[Any]:
    """Return the semantic value of each polygon; null stands for all of a shell, or of a geometry."""
    pairs = list(zip([None] * len(boundaries) if values is None else values, boundaries, strict=True))
    if depth == 0:
        return [value for value, _ in pairs]
    return list(chain.from_iterable(_flat(value, shell, depth - 1) for value, shell in pairs))


def _labels(city: City, owner: _Owner, options: ReadOptions) -> dict[str, object]:
    """Return the types, the parent and the attributes of an owner of polygons."""
    objects = city.objects
    family = [owner.city_object, *ancestors(objects, owner.city_object)]
    own, topmost = (objects[name].item for name in (family[0], family[-1]))
    labels: dict[str, object] = {"type": topmost.get("type")}
    labels |= {"part_type": own.get("type")} if city.has_parts else {}
    labels["parent"] = ",".join(map(str, own.get("parents") or [])) or None
    labels |= {"surface": owner.semantics.get("type")} if options.objects else {}
    reserved, attributes = {"id", *labels}, dict[str, Any]()
    for name in reversed(family):
        attributes |= objects[name].item.get("attributes") or {}
    attributes |= {name: value for name, value in owner.semantics.items() if name not in _NOT_ATTRIBUTES}
    for name, value in attributes.items():
        is_nested = isinstance(value, list | dict)
        label = f"attribute_{name}" if name in reserved else name
        labels[label] = json.dumps(value, ensure_ascii=False) if is_nested else value
    return labels
