"""CityJSON 1.0 to 2.0: the surfaces of city objects as triangles.

Each city object with surfaces is an object; so is a part of a building, whose label `parent` names the
building. Surfaces are those of one level of detail: of ``lod``, else of the highest that the object has.
Levels are compared number by number: 2.10 is higher than 2.2. Labels are `type`, `parent` and the attributes;
an attribute that is a list or has parts of its own is JSON text; one named `id`, or like another label, is
``attribute_NAME``. Semantics and appearances are not read.
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

from raybox.geometry.polygons import Polygons, triangulate
from raybox.io.formats.common import Floats, Loaded, ReadOptions, file_error, quoted, reason
from raybox.io.formats.mesh_parts import Ints, MeshPart, to_scene

_DEPTHS = {"MultiSurface": 0, "CompositeSurface": 0, "Solid": 1, "MultiSolid": 2, "CompositeSolid": 2}
_WITHOUT_SURFACES = ("MultiPoint", "MultiLineString")
_VERSIONS = ("1.0", "1.1", "2.0")
_MALFORMED = (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError, OverflowError)
_CHECK = "check it with a CityJSON validator"

Json = dict[str, Any]
Level = tuple[int, ...]


class _City(NamedTuple):
    """A document: its objects, its vertices in world coordinates, its templates and their vertices."""

    path: Path
    objects: dict[str, Json]
    vertices: Floats
    templates: list[Json]
    template_vertices: Floats


class _Geometry(NamedTuple):
    """One geometry of an object; that of a template has a matrix and the vertex that it is moved to."""

    type: str
    lod: Any
    boundaries: list[Any]
    matrix: Floats | None = None
    anchor: int = 0

    @property
    def level(self) -> Level:
        """The level of detail, to compare."""
        return level_of(self.lod)


class _Surfaces:
    """The polygons of geometries so far, and their vertices: those of the file, then of placed templates."""

    def __init__(self, vertices: Floats) -> None:
        self.vertices, self.vertex_count = [vertices], len(vertices)
        self.corners: list[Ints] = [np.zeros(0, dtype=np.int64)]
        self.sizes: list[int] = []
        self.rings: list[int] = []

    def add(self, geometry: _Geometry, city: _City) -> None:
        """Append the polygons of a geometry."""
        polygons = geometry.boundaries
        for _ in range(_DEPTHS[geometry.type]):
            polygons = list(chain.from_iterable(polygons))
        rings, matrix = list(chain.from_iterable(polygons)), geometry.matrix
        if matrix is not None and np.linalg.det(matrix[:3, :3]) < 0:  # outward normals stay outward
            rings = [ring[::-1] for ring in rings]
        corners = list(chain.from_iterable(rings))
        if matrix is None:
            self.corners.append(_checked(corners, city.vertices))
        else:
            used, found = np.unique(_checked(corners, city.template_vertices), return_inverse=True)
            turned = city.template_vertices[used] @ matrix[:3, :3].T
            self.vertices.append(turned + matrix[:3, 3] + city.vertices[geometry.anchor])
            self.corners.append(found + self.vertex_count)
            self.vertex_count += len(used)
        self.sizes.extend(map(len, rings))
        self.rings.extend(map(len, polygons))


def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the triangles or boxes of a CityJSON file, in the order of its objects."""
    city, skipped, left_out = _city(path), Counter[str](), Counter[str]()
    surfaces, polygon_counts = _Surfaces(city.vertices), dict[str, int]()
    for name, item in city.objects.items():
        before = len(surfaces.rings)
        with _errors_of(path, name):
            for geometry in _chosen(_geometries(city, item), options.lod, skipped, left_out):
                surfaces.add(geometry, city)
        polygon_counts[name] = len(surfaces.rings) - before
        if not polygon_counts[name]:
            left_out[f"city objects without surfaces{_of_level(options.lod)}"] += 1
    if not surfaces.rings:
        raise _without_surfaces(city, options.lod)
    vertices, corners = np.concatenate(surfaces.vertices), np.concatenate(surfaces.corners)
    sizes, rings = (np.array(counts, dtype=np.int64) for counts in (surfaces.sizes, surfaces.rings))
    found = triangulate(vertices, Polygons(corners, sizes, rings))
    names = list(city.objects)
    owners = np.repeat(np.arange(len(names)), list(polygon_counts.values()))
    losses = {
        "polygons of fewer than three corners": found.failed,
        "exact shapes of polygons that are not flat or cross themselves,": found.not_flat,
    }
    for loss, lost in losses.items():
        for owner, count in zip(*np.unique(owners[lost], return_counts=True), strict=True):
            skipped[f"{loss} in city object {names[owner]!r}"] = int(count)
    faces = np.split(found.faces, np.searchsorted(owners[found.polygon], np.arange(1, len(names))))
    parts = [
        MeshPart(name, vertices, some, _labels(path, name, city.objects[name]))
        for name, some in zip(names, faces, strict=True)
        if polygon_counts[name]
    ]
    return to_scene(parts, path, options, skipped, left_out)


def levels(path: Path) -> dict[str, int]:
    """Return the number of city objects with surfaces of each level of detail, from the lowest on.

    The key of surfaces without a level is "".
    """
    city, counts = _city(path), Counter[Level]()
    for name, item in city.objects.items():
        with _errors_of(path, name):
            counts.update({one.level for one in _geometries(city, item) if one.type in _DEPTHS})
    return {".".join(map(str, level)): counts[level] for level in sorted(counts)}


def _city(path: Path) -> _City:
    """Return the objects and vertices of a document."""
    text = path.read_bytes()
    try:
        document = json.loads(text, object_pairs_hook=_object)
        _check_kind(document, path)
        vertices = _table(document["vertices"])
        if transform := document.get("transform"):
            vertices = vertices * _numbers(transform["scale"], "scales", 3)
            vertices += _numbers(transform["translate"], "translations", 3)
        templates = document.get("geometry-templates") or {}
        of_templates = _table(templates.get("vertices-templates", []))
        objects = document["CityObjects"]
        for name in objects:
            objects[name].get("geometry")
        return _City(path, objects, vertices, templates.get("templates", []), of_templates)
    except UnicodeDecodeError as error:
        problem = f"is no text in UTF-8: byte {error.start} cannot be decoded"
        raise file_error(path, problem, "save it as UTF-8") from error
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and b'"CityJSONFeature"' in text:
            _check_kind({"type": "CityJSONFeature"}, path)
        problem, place = f"is not whole JSON: {error.msg}", f"line {error.lineno}, column {error.colno}"
        raise file_error(path, problem, "copy or download it again", place) from error
    except _MALFORMED as error:
        raise file_error(path, f"is not laid out as CityJSON{reason(error)}", _CHECK) from error


def _check_kind(document: Any, path: Path) -> None:
    """Raise `FileFormatError` unless a document is a CityJSON city of a known version."""
    kind = document.get("type") if isinstance(document, dict) else None
    if kind == "CityJSONFeature":
        problem = "is a CityJSON text sequence (CityJSONSeq), which raybox does not read"
        raise file_error(path, problem, "convert it to one CityJSON file, for instance with cjio")
    if kind != "CityJSON":
        problem = 'is JSON, but not a CityJSON city ("type": "CityJSON")'
        raise file_error(path, problem, "give a CityJSON file")
    version = str(document.get("version", _VERSIONS[-1]))
    if not version.startswith(_VERSIONS):
        problem = f"is CityJSON {quoted(version)}; supported are versions {', '.join(_VERSIONS)}"
        raise file_error(path, problem, "convert it, for instance with cjio")


def _object(pairs: list[tuple[str, Any]]) -> Json:
    """Return a JSON object; raise ValueError if a name stands twice, since one value would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the name {quoted(twice)} stands twice in one JSON object")
    return found


def _table(rows: list[list[float]]) -> Floats:
    """Return vertices; raise ValueError for an integer that float64 rounds."""
    if not set(map(len, rows)) <= {3}:
        raise ValueError("vertices are not rows of 3 numbers")
    table = _numbers(list(chain.from_iterable(rows)), "vertices", 3 * len(rows)).reshape(-1, 3)
    for row in np.flatnonzero((np.abs(table) >= 2.0**53).any(axis=1)):
        for value, number in zip(rows[row], table[row].tolist(), strict=True):
            if value != number:
                raise ValueError(f"vertex {row} has the number {value}, which float64 rounds")
    return table


def _numbers(values: list[Any], what: str, count: int) -> Floats:
    """Return JSON numbers as an array; raise ValueError unless there are `count`."""
    if len(values) != count or not set(map(type, values)) <= {int, float}:
        raise ValueError(f"{what}: these are not {count} numbers")
    return np.array(values, dtype=np.float64)


@contextmanager
def _errors_of(path: Path, name: str) -> Iterator[None]:
    """Raise `FileFormatError` for errors in the geometry of an object."""
    try:
        yield
    except _MALFORMED as error:
        problem = f"its geometry is broken{reason(error)}"
        raise file_error(path, problem, _CHECK, f"city object {name!r}") from error


def _geometries(city: _City, item: Json) -> Iterator[_Geometry]:
    """Yield the geometries of an object; one of a template has its surfaces."""
    for given in item.get("geometry") or []:
        one = _Geometry(given["type"], given.get("lod"), given["boundaries"])
        yield _instance(given, city) if one.type == "GeometryInstance" else one


def _instance(geometry: Json, city: _City) -> _Geometry:
    """Return the geometry of a template, with the matrix and the vertex that place it."""
    number = geometry["template"]
    if type(number) is not int or not 0 <= number < len(city.templates):
        raise ValueError(f"template {number!r} does not exist: there are {len(city.templates)}, from 0 on")
    template = city.templates[number]
    matrix = _numbers(geometry["transformationMatrix"], "matrix", 16).reshape(4, 4)
    if matrix[3].tolist() != [0, 0, 0, 1]:
        raise ValueError(f"the last row of its matrix is {matrix[3].tolist()}, not 0 0 0 1")
    anchors = _checked(list(geometry["boundaries"]), city.vertices)
    if len(anchors) != 1:
        raise ValueError(f"a template is placed at one vertex, this one at {len(anchors)}")
    return _Geometry(template["type"], template.get("lod"), template["boundaries"], matrix, int(anchors[0]))


def level_of(lod: Any) -> Level:
    """Return a level of detail as numbers, to compare; () for none. "2" and "2.0" are one level.

    Raise ValueError if it is none.
    """
    if lod is None:
        return ()
    if isinstance(lod, bool) or not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})*", str(lod)):
        raise ValueError(f"{quoted(lod)} is no level of detail such as 2.2")
    numbers = [int(part) for part in str(lod).split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _chosen(
    geometries: Iterator[_Geometry], lod: str | None, skipped: Counter[str], left_out: Counter[str]
) -> list[_Geometry]:
    """Return the surfaces of the wanted level, by default of the highest; count what has none."""
    surfaces = []
    for one in geometries:
        if one.type in _DEPTHS:
            surfaces.append(one)
        elif one.type in _WITHOUT_SURFACES:
            left_out["geometries of points or lines"] += 1
        else:
            skipped[f"geometries of the unknown type {quoted(one.type)}"] += 1
    found = [one.level for one in surfaces]
    wanted = max(found, default=()) if lod is None else level_of(lod)
    return [one for one, level in zip(surfaces, found, strict=True) if level == wanted]


def _checked(corners: list[Any], vertices: Floats) -> Ints:
    """Return numbers of vertices; raise ValueError if one is no integer, or there is no such vertex."""
    if not set(map(type, corners)) <= {int}:
        wrong = next(corner for corner in corners if type(corner) is not int)
        raise ValueError(f"{quoted(wrong)} is not the number of a vertex")
    if corners and not 0 <= min(corners) <= max(corners) < len(vertices):
        wrong = min(corners) if min(corners) < 0 else max(corners)
        raise ValueError(f"vertex {wrong} does not exist: there are {len(vertices)}, from 0 on")
    return np.array(corners, dtype=np.int64)


def _labels(path: Path, name: str, item: Json) -> dict[str, object]:
    """Return the type, the parent and the attributes of an object."""
    parents, attributes = item.get("parents") or [], item.get("attributes") or {}
    if not isinstance(parents, list) or not isinstance(attributes, dict):
        problem = "its parents are no list, or its attributes no JSON object"
        raise file_error(path, problem, _CHECK, f"city object {name!r}")
    labels: dict[str, object] = {
        "type": item.get("type"),
        "parent": ",".join(map(str, parents)) if parents else None,
    }
    for attribute, value in attributes.items():
        label = f"attribute_{attribute}" if attribute in ("id", "type", "parent") else attribute
        is_nested = isinstance(value, list | dict)
        labels[label] = json.dumps(value, ensure_ascii=False) if is_nested else value
    return labels


def _of_level(lod: str | None) -> str:
    return "" if lod is None else f" of level {lod}"


def _without_surfaces(city: _City, lod: str | None) -> Exception:
    there = ", ".join(f"{level or 'none'} ({count})" for level, count in levels(city.path).items())
    problem = f"has no city object with surfaces{_of_level(lod)}"
    way_out = f"choose one of its levels: {there}" if there else "check the file"
    return file_error(city.path, problem, way_out)
