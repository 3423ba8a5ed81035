"""Bounds and points of GeoParquet and GeoArrow: structs, lists of coordinates, and WKB."""

import json
import re
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raybox.io.formats.common import Floats, file_error, require

if TYPE_CHECKING:
    import pyarrow

_BOUNDS = {f"{axis}{end}": f"{end}_{axis}" for axis in "xyz" for end in ("min", "max")}
_POINTS = ("geoarrow.point", "geoarrow.wkb")
_CODE = struct.Struct("<xI"), struct.Struct(">xI")
_SHAPES = ("", "a Point", "a LineString", "a Polygon", "a MultiPoint", "a MultiLineString", "a MultiPolygon")


_CODES = {1: (2, 2), 1001: (3, 3), 2001: (2, 3), 3001: (3, 4)}
_CODES |= {0x80000001: (3, 3), 0x40000001: (2, 3), 0xC0000001: (3, 4)}  # as GEOS writes them
"""Types of points in WKB: their axes of space, and all their coordinates, with a measure."""


def bounds(schema: "pyarrow.Schema", there: Collection[str]) -> dict[str, str]:
    """Return the columns of bounds that metadata name: the covering of GeoParquet, a box of GeoArrow."""
    boxes = [field.name for field in schema if _extension(field) == "geoarrow.box"]
    ways = [{part: f"{name}.{part}" for part in _BOUNDS} for name in boxes[: len(boxes) == 1]]
    with suppress(KeyError, TypeError, AttributeError):  # no covering, or one of another program
        ways += [{part: ".".join(names) for part, names in _primary(schema)["covering"]["bbox"].items()}]
    return {
        _BOUNDS[part]: name for way in ways for part, name in way.items() if part in _BOUNDS and name in there
    }


def point_field(schema: "pyarrow.Schema") -> "pyarrow.Field | None":
    """Return the column of points that metadata name: the primary one of GeoParquet, or one of GeoArrow."""
    primary = _primary(schema)
    if primary.get("encoding") in ("WKB", "point") and primary["name"] in schema.names:
        types = str(primary.get("geometry_types"))
        return schema.field(primary["name"]) if "Point" in types or types in ("None", "[]") else None
    found = [field for field in schema if _extension(field) in _POINTS]
    return found[0] if len(found) == 1 else None


def _primary(schema: "pyarrow.Schema") -> dict[str, Any]:
    """Return what GeoParquet says of its primary column, and its name; nothing without."""
    try:
        geo = json.loads((schema.metadata or {}).get(b"geo", b"{}"))
        return {**geo["columns"][geo["primary_column"]], "name": geo["primary_column"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}  # no GeoParquet, or metadata of another program


def _extension(field: "pyarrow.Field") -> str:
    """Return the name of the extension type of a field, if any."""
    name = (field.metadata or {}).get(b"ARROW:extension:name", b"").decode(errors="replace")
    return str(getattr(field.type, "extension_name", name))


def axes_of(kind: "pyarrow.DataType", values: Iterator[bytes]) -> int:
    """Return how many coordinates points of a type have, those of WKB as its first value; 0: none."""
    found = re.fullmatch(r"fixed_size_list<(\w+): (?:double|float)[^>]*>\[([234])\]", str(kind))
    if found:
        return 3 if int(found[2]) > 2 and found[1] != "xym" else 2
    return _CODES.get(_code(next(values, b"")), _CODES[1001])[0] if "binary" in str(kind) else 0


def coordinates(
    column: "pyarrow.Array", axes: int, path: Path, place: Callable[[int], str]
) -> "list[pyarrow.Array]":
    """Return an array for each axis, null where there is no point; place: of a row, for errors."""
    is_there = np.asarray(column.is_valid())
    values, rows = column.drop_null(), np.flatnonzero(is_there)
    if str(column.type).startswith("fixed_size_list"):
        numbers = values.flatten().to_numpy(zero_copy_only=False).reshape(len(values), column.type.list_size)
        points = numbers[:, :axes].astype(np.float64)
    else:
        points = _of_wkb(values.to_pylist(), axes, path, lambda row: place(int(rows[row])))
    found = np.zeros((axes, len(column)))
    found[:, is_there] = points.T
    arrow = require("pyarrow", "io", ".parquet")
    return [arrow.array(axis, mask=~is_there) for axis in found]


def _of_wkb(values: Sequence[bytes], axes: int, path: Path, place: Callable[[int], str]) -> Floats:
    """Return points of WKB; those that begin alike are read together."""
    points = np.empty((len(values), axes))
    starts: dict[tuple[bytes, int], list[int]] = {}
    for row, value in enumerate(values):
        starts.setdefault((value[:5], len(value)), []).append(row)
    for (start, size), rows in starts.items():
        code, problem = _code(start), ""
        point = _CODES.get(code)
        if point is None:
            shape = (code & 0xFFFF) % 1000
            what = _SHAPES[shape] if 1 < shape < len(_SHAPES) else f"of type {code}" if code else "no WKB"
            problem = f"is {what}, not a Point"
        elif size != 5 + 8 * point[1]:
            problem = f"has {size} bytes of WKB, where a point has {5 + 8 * point[1]}"
        elif point[0] != axes:
            problem = f"has {point[0]} coordinates, the first one {axes}"
        if problem:
            raise file_error(path, f"its geometry {problem}", "give a file of points", place(rows[0]))
        table = np.frombuffer(b"".join(values[row] for row in rows), np.uint8).reshape(-1, size)
        points[rows] = table[:, 5 : 5 + 8 * axes].copy().view("<f8" if start[0] else ">f8")
    return points


def _code(value: bytes) -> int:
    """Return the number of a value's type; 0 if it has none."""
    return int(_CODE[value[0] == 0].unpack_from(value)[0]) if len(value) >= 5 and value[0] < 2 else 0
