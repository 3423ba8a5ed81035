"""CityJSON 1.0 to 2.0: one box for each city object with geometry, around all its levels of detail.

Any geometry type is read, because only its vertices matter; instances of templates are placed by their
matrices. An object without geometry of its own (a building made of parts) has no box; its parts have.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from raybox.geometry import Boxes
from raybox.io.formats.common import Floats, Loaded, ReadOptions, file_error, reason


def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the boxes of a CityJSON file, in the order of its objects, with the objects' ids."""
    city = _document(path)
    try:
        vertices = _placed(_table(city["vertices"]), city.get("transform"))
        templates = city.get("geometry-templates", {})
        bounds = dict(_bounds(city["CityObjects"], vertices, templates, path))
        kinds = [str(city["CityObjects"][name].get("type", "")) for name in bounds]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        problem = f"is not laid out as CityJSON{reason(error)}"
        raise file_error(path, problem, "check it with a CityJSON validator") from error
    if not bounds:
        raise file_error(path, "has no city object with geometry", "check the file")
    boxes = np.array(list(bounds.values()))
    ids = list(bounds)
    return Loaded(Boxes(boxes[:, 0], boxes[:, 1], ids=ids, labels={"type": kinds}))


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise file_error(
            path, f"is not whole JSON: {error.msg}", "copy or download it again", place
        ) from error
    if not isinstance(document, dict) or document.get("type") != "CityJSON":
        raise file_error(
            path, 'is JSON, but not a CityJSON city ("type": "CityJSON")', "give a CityJSON file"
        )
    return document


def _table(rows: list[list[float]]) -> Floats:
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 3)
    if not np.isfinite(table).all():
        raise ValueError("a vertex is not finite")
    return table


def _placed(vertices: Floats, transform: dict[str, list[float]] | None) -> Floats:
    """Return the vertices in world coordinates, from their integers."""
    return vertices * transform["scale"] + transform["translate"] if transform else vertices


def _bounds(
    objects: dict[str, Any], vertices: Floats, templates: dict[str, Any], path: Path
) -> Iterator[tuple[str, tuple[Floats, Floats]]]:
    for name, item in objects.items():
        try:
            point_sets = [
                _vertices_of(geometry, vertices, templates) for geometry in item.get("geometry", [])
            ]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            problem = f"its geometry is broken{reason(error)}"
            raise file_error(
                path, problem, "check it with a CityJSON validator", f"city object {name!r}"
            ) from error
        points = np.concatenate([np.zeros((0, 3)), *point_sets])
        if len(points):
            yield name, (points.min(axis=0), points.max(axis=0))


def _vertices_of(geometry: dict[str, Any], vertices: Floats, templates: dict[str, Any]) -> Floats:
    """Return the vertices that one geometry uses."""
    if geometry["type"] == "GeometryInstance":
        matrix = np.array(geometry["transformationMatrix"], dtype=np.float64).reshape(4, 4)
        shape = _vertices_of(
            templates["templates"][geometry["template"]], _table(templates["vertices-templates"]), {}
        )
        placed: Floats = shape @ matrix[:3, :3].T + matrix[:3, 3] + vertices[geometry["boundaries"][0]]
        return placed
    used = np.unique(np.fromiter(_flat(geometry["boundaries"]), dtype=np.int64))
    if used.size and not 0 <= used[0] <= used[-1] < len(vertices):
        wrong = used[0] if used[0] < 0 else used[-1]
        raise ValueError(f"vertex {wrong} does not exist: there are {len(vertices)}, from 0 on")
    points: Floats = vertices[used]
    return points


def _flat(nested: list[Any]) -> Iterator[int]:
    """Yield the vertex numbers, however deep the type of geometry nests them."""
    for item in nested:
        if isinstance(item, list):
            yield from _flat(item)
        elif type(item) is int:
            yield item
        else:
            raise ValueError(f"{item!r} is not the number of a vertex")
