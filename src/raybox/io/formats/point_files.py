"""Points of hits as `.las .laz .ply .pcd`: t, numbers, ids and labels are further dimensions of a point.

Misses have no point and are left out; the dimension `ray` numbers the rays that hit. Texts are codes, whose
table is a CSV file of its own, as are names that a format does not allow.
"""

from collections.abc import Iterator
from datetime import date
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.hits.tables import Columns
from raybox.io.formats.common import checked_texts, require
from raybox.validation import Array, Floats

SUFFIXES = (".las", ".laz", ".ply", ".pcd")
_LAS = (".las", ".laz")
_LAS_NAME, _NAME = 32, 200  # bytes of the name of a dimension, at most
_MAX_EXACT = 2**53
_STEPS = 2**31 - 2  # of a coordinate of LAS from its offset, at most
_PLY = {"i1": "char", "u1": "uchar", "i4": "int", "f8": "double"}
_SAVED = date(2000, 1, 1)  # LAS has a date; with one date, equal hits make equal files
_TABLE = ("dimension", "label", "code", "text")


class Points(NamedTuple):
    """Points of hits, further dimensions by name, and the table of codes and of names that are others."""

    xyz: Floats
    dimensions: dict[str, Array]
    table: Columns
    miss_count: int


class _Dimension(NamedTuple):
    values: Array
    texts: list[str] | None = None
    """the text of each code, if the values are codes; -1: none"""


def points_of(columns: Columns, suffix: str) -> Points:
    """Return the points of the columns of hits, in dimensions that a format has."""
    if not {"x", "y", "index"} <= columns.keys():
        raise InvalidInput(
            "files of points hold Hits, as of nearest or first; other results have no points. Save a table."
        )
    hit = columns["index"] >= 0
    xyz = np.stack([columns[axis][hit] if axis in columns else np.zeros(hit.sum()) for axis in "xyz"], -1)
    names, found, rows = _names(columns, suffix), dict[str, Array](), list[tuple[str, ...]]()
    for own, name in names.items():
        found[name], texts = _dimension(own, columns[own][hit], suffix)
        codes = enumerate(texts) if texts is not None else [("", "")] * (name != own)
        rows += [(name, own, str(code), text) for code, text in codes]
    cells = zip(*rows, strict=True) if rows else ()
    table = {name: np.array(values, dtype=object) for name, values in zip(_TABLE, cells, strict=False)}
    return Points(xyz, found, table, int(len(hit) - hit.sum()))


def _names(columns: Columns, suffix: str) -> dict[str, str]:
    """Return the name of the dimension of each column: of 32 bytes in LAS, without blanks in PLY and PCD."""
    taken, size = {"x", "y", "z"}, _LAS_NAME if suffix in _LAS else _NAME
    if suffix in _LAS:
        header = require("laspy", "las", suffix).LasHeader(version="1.4", point_format=6)
        taken |= {name.lower() for name in header.point_format.dimension_names}
    found = dict[str, str]()
    for own in checked_texts(columns, "names of labels"):
        name = "".join(c if c.isprintable() and c != "\0" else "_" for c in own)
        if suffix not in _LAS:
            name = "".join(c if c.isascii() and not c.isspace() else "_" for c in name)
        if own not in ("x", "y", "z"):
            found[own] = _unique(name or "_", taken, size)
            taken.add(found[own].lower())
    return found


def _unique(name: str, taken: set[str], size: int) -> str:
    """Return a name of some bytes at most that no other dimension has."""
    found, count = _cut(name, size), 2
    while found.lower() in taken:
        found, count = f"{_cut(name, size - 1 - len(str(count)))}_{count}", count + 1
    return found


def _cut(name: str, size: int) -> str:
    """Return the first characters of a name, as many as fit into bytes of UTF-8."""
    return name.encode()[:size].decode(errors="ignore")


def _dimension(name: str, values: NDArray[Any], suffix: str) -> _Dimension:
    """Return a column as numbers of a type that a format has."""
    if values.dtype == object or values.dtype.kind == "U":
        given = [value for value in values.tolist() if value is not None]
        limit = 2**63 - 1 if len(given) == len(values) else _MAX_EXACT
        if not given or {*map(type, given)} != {int} or max(map(abs, given)) > limit:
            return _codes(name, values)
        if len(given) == len(values):
            values = values.astype(np.int64)
        else:
            values = np.array([np.nan if value is None else value for value in values.tolist()], np.float64)
    if values.dtype.kind == "b":
        return _Dimension(values.astype(np.uint8))
    if values.dtype.kind == "f" or suffix in _LAS:
        return _Dimension(values)
    largest = max(-int(values.min(initial=0)), int(values.max(initial=0)))
    if largest < 2**31:
        return _Dimension(values.astype(np.int32))
    if largest > _MAX_EXACT:
        return _codes(name, values)
    return _Dimension(values.astype(np.float64))


def _codes(name: str, values: NDArray[Any]) -> _Dimension:
    """Return texts as codes, in the order of their table; -1 for none."""
    texts = [None if value is None else str(value) for value in values.tolist()]
    known = sorted({text for text in texts if text is not None})
    checked_texts(known, f"values of {name!r}")
    codes: dict[str | None, int] = {text: code for code, text in enumerate(known)} | {None: -1}
    return _Dimension(np.array([codes[text] for text in texts], dtype=np.int32), known)


def write(file: BinaryIO, points: Points, suffix: str) -> None:
    """Write points in the format of an extension."""
    if suffix in _LAS:
        _write_las(file, points, suffix)
        return
    fields = dict(zip("xyz", points.xyz.T, strict=True)) | points.dimensions
    types = [(name, f"<{values.dtype.kind}{values.dtype.itemsize}") for name, values in fields.items()]
    rows = np.empty(len(points.xyz), dtype=types)
    for name, values in fields.items():
        rows[name] = values
    header = _ply_header(rows, points) if suffix == ".ply" else _pcd_header(rows, points)
    file.write(("\n".join(header) + "\n").encode("ascii"))
    file.write(rows.tobytes())


def _misses(points: Points) -> str:
    return f"points of hits by raybox; {points.miss_count} misses are left out"


def _fields(rows: Array) -> Iterator[tuple[str, np.dtype[Any]]]:
    """Yield names and types of the fields of rows."""
    for name in rows.dtype.names or ():
        yield name, cast("Any", rows.dtype.fields)[name][0]


def _ply_header(rows: Array, points: Points) -> list[str]:
    lines = ["ply", "format binary_little_endian 1.0", f"comment {_misses(points)}"]
    lines += [f"element vertex {len(rows)}"]
    lines += [f"property {_PLY[kind.str[1:]]} {name}" for name, kind in _fields(rows)]
    return [*lines, "end_header"]


def _pcd_header(rows: Array, points: Points) -> list[str]:
    fields = list(_fields(rows))
    lines = [f"# .PCD v0.7, {_misses(points)}", "VERSION 0.7"]
    lines += [" ".join(["FIELDS", *(name for name, _ in fields)])]
    lines += [" ".join(["SIZE", *(str(kind.itemsize) for _, kind in fields)])]
    lines += [" ".join(["TYPE", *(kind.kind.upper() for _, kind in fields)])]
    lines += [" ".join(["COUNT", *("1" for _ in fields)])]
    lines += [f"WIDTH {len(rows)}", "HEIGHT 1", "VIEWPOINT 0 0 0 1 0 0 0", f"POINTS {len(rows)}"]
    return [*lines, "DATA binary"]


def _write_las(file: BinaryIO, points: Points, suffix: str) -> None:
    """Write LAS 1.4; coordinates are rounded to the smallest power of ten that reaches all of them."""
    laspy = require("laspy", "las", suffix)
    header = laspy.LasHeader(version="1.4", point_format=6)
    header.creation_date, header.generating_software = _SAVED, "raybox"
    header.global_encoding.wkt = True  # required of this point format
    header.add_extra_dims(
        [laspy.ExtraBytesParams(name, values.dtype) for name, values in points.dimensions.items()]
    )
    header.offsets, header.scales = _las_steps(points.xyz)
    las = laspy.LasData(header)
    las.points = laspy.ScaleAwarePointRecord.zeros(len(points.xyz), header=header)
    las.x, las.y, las.z = points.xyz.T
    las.return_number[:], las.number_of_returns[:] = 1, 1
    for name, values in points.dimensions.items():
        las[name] = values
    las.write(file, do_compress=suffix == ".laz")


def _las_steps(xyz: Floats) -> tuple[Floats, Floats]:
    """Return offsets and scales of the axes of points."""
    lower, upper = (xyz.min(axis=0), xyz.max(axis=0)) if len(xyz) else (np.zeros(3), np.zeros(3))
    with np.errstate(over="ignore", invalid="ignore"):
        offsets = np.where(upper - lower >= 1, np.floor(lower), lower)
        spans = upper - offsets
    if not np.isfinite(spans).all():
        raise InvalidInput("points lie too far apart for LAS. Save them as .ply or .pcd.")
    steps = np.maximum(spans / _STEPS, 1e-300)
    return offsets, np.where(spans > 0, 10.0 ** np.ceil(np.log10(steps)), 1e-9)
