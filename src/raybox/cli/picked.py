"""What one ray hits, as rows for people and for programs: hits, and objects with ids and labels."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from raybox.cli.common import Cell
from raybox.cli.notices import print_versions
from raybox.cli.scenes import geometries
from raybox.errors import InvalidInput

if TYPE_CHECKING:
    from raybox.cli.scenes import SceneContent
    from raybox.geometry import Rays
    from raybox.hits import AllHits, ObjectHits
    from raybox.validation import Array

Value: TypeAlias = Cell | list[int] | list[float]
Row: TypeAlias = dict[str, Value]
_CLASSES = "ifc_class", "type", "class", "category"
"""Labels of which a table shows the first that has a value, and `name`; without any, the first two."""


class ObjectRow(NamedTuple):
    """An object that a ray hits: a row of `AllHits.by_object`, and its labels."""

    row: Row
    labels: Row


class PickRows(NamedTuple):
    """What one ray hits, in order along it."""

    hits: list[Row]
    """a row for each box, triangle or cell"""
    objects: list[ObjectRow]
    table: list[Row]
    """the hits, or the objects where triangles belong to some, with labels"""


def picked(ray: "Rays", scene: "SceneContent", where: str | None) -> PickRows:
    """Return what one ray hits of the objects that an expression is true of."""
    found, parts = _all_hits(ray, scene, where), geometries(scene)
    hits, objects = _hits(ray, parts[0] if len(parts) == 1 else parts, found), _objects(found)
    shown = objects
    if not hits or "object" not in hits[0]:
        shown = [ObjectRow(row, labels) for row, labels in zip(hits, _label_rows(found), strict=True)]
    names = [
        name
        for name in shown_labels([labels for _, labels in shown])
        if any(labels[name] != row.get("id") for row, labels in shown)
    ]
    rows = [_with_labels(row, labels, names) for row, labels in shown]
    if shown is objects:
        points = [ray.at(t).tolist() for t in found.by_object().t_first.tolist()]
        rows = [row | {"point": at} for row, at in zip(rows, points, strict=True)]
    return PickRows(hits, objects, rows)


def shown_labels(labels: list[Row]) -> list[str]:
    """Return the names of the labels that a table has room for: class and name."""
    there = [
        name for name in (labels[0] if labels else ()) if any(row[name] not in (None, "") for row in labels)
    ]
    classes = [name for name in _CLASSES if name in there]
    return [*classes[:1], *(name for name in there if name == "name")] or there[:2]


def _with_labels(row: Row, labels: Row, names: list[str]) -> Row:
    """Return a row with some labels after its number and id."""
    from raybox.hits.tables import label_column

    numbers = "index", "object", "geometry", "primitive", "id"
    head = {name: value for name, value in row.items() if name in numbers}
    rest = {name: value for name, value in row.items() if name not in head}
    return head | {label_column(name, {*row, "point"}): labels[name] for name in names} | rest


def _all_hits(ray: "Rays", scene: "SceneContent", where: str | None) -> "AllHits":
    """Return all hits of one ray; those of boxes and triangles by NumPy, of others by compiled code."""
    from raybox.geometry import Bounded
    from raybox.scene.scan import scan

    if isinstance(scene, Bounded):
        return scan(ray, scene, where)
    from raybox.scene.scene import Scene

    if isinstance(scene, Scene) and scene.groups is not None:
        raise InvalidInput(
            "the scene has groups, and a ray of this command has none. In Python: "
            "raybox.Scene.open(path).all(ray, groups=0)."
        )
    print_versions()
    made = scene if isinstance(scene, Scene) else Scene(scene, workers=1)
    hits: AllHits = made.all(ray.reshape(1), workers=1, where=where)
    return hits


def _hits(ray: "Rays", scene: "SceneContent", found: "AllHits") -> list[Row]:
    """Return a row for each hit, in order along the ray."""
    from raybox.geometry import Grid
    from raybox.hits.tables import number_columns

    columns = {
        name: values
        for name, values in number_columns(found._source, found, found.ray).items()
        if name != "ray"
    }
    rows: list[Row] = []
    numbers = _rows(columns, len(found.index))
    for row, index, t in zip(numbers, found.index.tolist(), found.t.tolist(), strict=True):
        cell: Row = {"cell": _cell(scene, index)} if isinstance(scene, Grid) else {}
        rows.append(row | cell | {"t": t, "point": ray.at(t).tolist()} | _face(ray, scene, index))
    return rows


def _objects(found: "AllHits") -> list[ObjectRow]:
    """Return the objects that are hit, in order along the ray."""
    objects = found.by_object()
    columns = {name: values for name, values in objects.to_dict().items() if name != "ray"}
    rows = _rows(columns, len(objects))
    return [ObjectRow(row, labels) for row, labels in zip(rows, _label_rows(objects), strict=True)]


def _label_rows(found: "AllHits | ObjectHits") -> list[Row]:
    """Return the labels of each row of hits."""
    return _rows(found.labels(), len(found.object))


def _rows(columns: "Mapping[str, Array]", count: int) -> list[Row]:
    """Return the rows of columns, as numbers and texts of Python."""
    lists = {name: values.tolist() for name, values in columns.items()}
    return [{name: values[k] for name, values in lists.items()} for k in range(count)]


def _cell(grid: Any, index: int) -> list[int]:
    """Return the place of a cell on each axis."""
    import numpy as np

    return [int(k) for k in np.unravel_index(index, grid.shape)]


def _face(ray: "Rays", scene: "SceneContent", index: int) -> Row:
    """Return the name of the face hit: ``-x`` is at the box's lower x."""
    from raybox.exact import definition
    from raybox.geometry import Boxes, Grid

    if isinstance(scene, Grid):
        return _face(ray, scene.boxes([index]), 0)
    if not isinstance(scene, Boxes):
        return {}
    direction = ray.directions.tolist()
    one = definition.Ray1(tuple(ray.origins.tolist()), tuple(direction), float(ray.t_min), float(ray.t_max))
    crossing = definition.box(one, tuple(scene.lower[index].tolist()), tuple(scene.upper[index].tolist()))
    if crossing is None or crossing.axis < 0:
        return {"face": "inside"}
    return {"face": ("-" if direction[crossing.axis] > 0 else "+") + "xyz"[crossing.axis]}
