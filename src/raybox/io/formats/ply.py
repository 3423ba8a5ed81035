"""PLY, text and binary: a mesh or a set of points.

Meshes have faces or triangle strips. A row of ``tristrips`` holds one strip, or several with -1 between
them. Rows of other elements are counted.
"""

import re
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.io.formats import ply_meshes
from raybox.io.formats.common import FileArrays, Floats, Loaded, ReadOptions, file_error, quoted
from raybox.io.formats.mesh_parts import (
    Ints,
    MeshPart,
    check_end,
    cut_off,
    faces_of,
    strip_triangles,
    to_scene,
)
from raybox.io.formats.tables import Announced
from raybox.io.formats.text_lines import floats, header_lines, plain, refuse_line

_TYPES = {"b": ("char", "int8"), "B": ("uchar", "uint8"), "h": ("short", "int16"), "H": ("ushort", "uint16")}
_TYPES |= {
    "i": ("int", "int32"),
    "I": ("uint", "uint32"),
    "f": ("float", "float32"),
    "d": ("double", "float64"),
}
TYPES = {name: code for code, names in _TYPES.items() for name in names}
"""Codes of NumPy and of struct."""

ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
POLYGONS = ("face", "tristrips")  # elements whose rows are lists of vertices
CORNERS = ("vertex_indices", "vertex_index")
Row = list[float] | list[int]
Rows = list[Row] | NDArray[np.float64] | NDArray[np.int64]
_WHOLE = re.compile("[+-]?[0-9]{1,18}")


class Property(NamedTuple):
    """A property of an element; lists have a type of length."""

    name: str
    type: str
    length: str = ""


class Element(NamedTuple):
    """An element: its number of rows, the properties of each."""

    name: str
    rows: int
    properties: list[Property]

    def wanted(self) -> list[str]:
        """Return the properties that are read, in the order of their columns."""
        lists = [p.name for p in self.properties if p.length and p.name in CORNERS]
        return {"vertex": ["x", "y", "z"]}.get(self.name, lists if self.name in POLYGONS else [])


class PlyHeader(NamedTuple):
    """Elements, byte order ("" for text), and where the body begins."""

    elements: list[Element]
    order: str
    end: int


class Content(NamedTuple):
    """The vertices of a file, and its polygons as sizes and corners."""

    vertices: Floats = np.zeros((0, 3))
    sizes: Ints = np.zeros(0, dtype=np.int64)
    corners: Ints = np.zeros(0, dtype=np.int64)

    def with_rows(self, element: Element, rows: Rows) -> "Content":
        """Return the content with the rows of one more element."""
        if element.name == "vertex":
            return self._replace(vertices=np.array(rows, dtype=np.float64).reshape(-1, 3))
        if element.name not in POLYGONS:
            return self
        sizes = np.array([len(row) for row in rows], dtype=np.int64)
        corners = np.ravel(rows) if isinstance(rows, np.ndarray) else np.array([c for r in rows for c in r])
        corners = corners.astype(np.int64)
        if element.name == "tristrips":  # a restart at the end of each row
            corners = strip_triangles(np.insert(corners, np.cumsum(sizes), -1)).ravel()
            sizes = np.full(len(corners) // 3, 3)
        join = np.concatenate
        return self._replace(sizes=join([self.sizes, sizes]), corners=join([self.corners, corners]))


def read(path: Path, options: ReadOptions) -> Loaded | FileArrays:
    """Return a mesh, or points if `options` is for rays."""
    if (own := ply_meshes.read(path, options)) is not None:
        return own
    data = plain(path.read_bytes(), path)
    header = _header(data, path)
    _check_elements(header, len(data), path)
    content = (_binary if header.order else _text)(header, data, path)
    others = {e.name: e.rows for e in header.elements if e.rows and not e.wanted()}
    skipped = Counter({f"rows of {name}": rows for name, rows in others.items()})
    unfaced = options.origin is not None or not content.sizes.size
    if options.kind == "rays" or (options.kind is None and unfaced):
        where = lambda _, index: f"vertex {index[0]}, column {'xyz'[index[1]]}"  # noqa: E731
        return FileArrays({"points": content.vertices}, where, skipped=skipped)
    faces = faces_of(content.vertices, content.corners, content.sizes, skipped).faces
    return to_scene([MeshPart(path.stem, content.vertices, faces)], path, options, +skipped)


def _header(data: bytes, path: Path) -> PlyHeader:
    """Return the header, whose statements must be those of PLY."""
    elements, order = list[Element](), ""
    for number, statement, end in header_lines(data):
        problem = ""
        match statement.split():
            case ["end_header"] if order:
                return PlyHeader(elements, ORDERS[order], end)
            case ["format", name, "1.0"] if name in ORDERS and not order:
                order = name
            case ["element", name, count] if _WHOLE.fullmatch(count) and int(count) >= 0:
                elements.append(Element(name, int(count), []))
            case ["property", "list", length, kind, name] if elements and {length, kind} <= set(TYPES):
                elements[-1].properties.append(Property(name, TYPES[kind], TYPES[length]))
            case ["property", kind, name] if elements and kind in TYPES:
                elements[-1].properties.append(Property(name, TYPES[kind]))
            case ["format", *_]:
                problem = f"is no format that raybox reads: {', '.join(ORDERS)} 1.0, in one line"
            case ["property", *_] if elements:
                problem = f"is no property of a type of PLY: {' '.join(TYPES)}"
            case ["ply"] | ["comment", *_] | ["obj_info", *_] | []:
                pass
            case _:
                problem = "is no statement of a PLY header"
        if problem:
            refuse_line(path, statement, problem, f"line {number}")
    raise file_error(path, "has no line end_header", "copy or download it again", "header")


def _check_elements(header: PlyHeader, size: int, path: Path) -> None:
    """Raise unless counts fit the file, and coordinates and corners are declared."""
    elements = [element.name for element in header.elements]
    for name, count, properties in header.elements:
        names = [p.name for p in properties] + ["#" + p.name for p in properties if p.length]
        corners = [p for p in properties if p.name in CORNERS and p.length]
        problem, way_out = "", "correct the header"
        if elements.count(name) > 1:
            problem = f"declares the element {name} twice"
        elif len(set(names)) < len(names):
            problem = f"declares a property of {name} twice"
        elif count > size or (count and not properties):
            problem, way_out = (
                f"announces {count} rows of {name} in {size} bytes",
                "copy or download it again",
            )
        elif name == "vertex" and not {"x", "y", "z"} <= {p.name for p in properties if not p.length}:
            problem = "vertices lack x, y, z"
        elif name in POLYGONS and len(corners) != 1:
            problem = f"{name} has {len(corners)} lists of vertices, named {' or '.join(CORNERS)}, not one"
        elif any(p.length in ("f", "d") for p in properties) or any(p.type in "fd" for p in corners):
            problem = f"lengths of lists and vertices of {name} are not whole numbers"
        if problem:
            raise file_error(path, problem, way_out, "header")


def _text(header: PlyHeader, data: bytes, path: Path) -> Content:
    """Return the content of a text body: one row a line."""
    lines = [line.decode("latin-1") for line in data[header.end :].splitlines() if line.strip()]
    content, at = Content(), 0
    for element in header.elements:
        rows, at = lines[at : at + element.rows], at + element.rows
        if len(rows) < element.rows:
            raise cut_off(path, f"row {len(rows)} of {element.name}")
        if element.wanted():
            content = content.with_rows(element, list(_parsed(rows, element, path)))
    if len(lines) > at:
        problem = f"{quoted(lines[at])} follows the end that the header announces"
        raise file_error(path, problem, "copy or download it again, or correct the header")
    return content


def _parsed(rows: list[str], element: Element, path: Path) -> Iterator[Row]:
    """Yield x, y, z or the corners of each row."""
    names = [p.name for p in element.properties]
    columns = [names.index(name) for name in element.wanted()]
    has_lists = any(p.length for p in element.properties)
    for number, row in enumerate(rows):
        words = row.split()
        try:
            if has_lists:
                lists = _lists(words, element)
                yield [item for column in columns for item in lists[column]]
                continue
            if len(words) != len(names):
                raise ValueError(f"{len(words)} words, the header announces {len(names)}")
            numbers = floats(words)
            yield [numbers[column] for column in columns]
        except ValueError as error:
            problem, place = f"{quoted(row)}: {error}", f"row {number} of {element.name}"
            raise file_error(path, problem, "correct the row", place) from error


def _lists(words: list[str], element: Element) -> list[Row]:
    """Return the numbers of each property of a row."""
    found, at = list[Row](), 0
    for name, kind, length in element.properties:
        size = _integers(words[at : at + 1])[0] if length and at < len(words) else 1
        at += bool(length)
        if not 0 <= size <= len(words) - at:
            raise ValueError(f"ends in {name}")
        items = words[at : at + size]
        found.append(_integers(items) if length and kind not in "fd" else floats(items) if items else [])
        at += size
    if at < len(words):
        raise ValueError(f"{len(words) - at} words more than the header announces")
    return found


def _integers(words: list[str]) -> list[int]:
    for word in words:
        if not _WHOLE.fullmatch(word):
            raise ValueError(f"{quoted(word)} is not a whole number of up to 18 digits")
    return list(map(int, words))


def _binary(header: PlyHeader, data: bytes, path: Path) -> Content:
    """Return the content of a binary body.

    An element whose lists all have one length is read as one array, others row by row.
    """
    content, at = Content(), header.end
    for element in header.elements:
        if element.rows:
            table = _table(element, data, header.order, at)
            rows, at = _unpacked(element, data, header.order, at, path) if table is None else table
            content = content.with_rows(element, rows)
    check_end(path, data[at:])
    return content


def _table(element: Element, data: bytes, order: str, at: int) -> tuple[Rows, int] | None:
    """Return rows as one array, and their end; None if sizes differ."""
    dtype = _row_type(element, data, order, at)
    if dtype is None or at + element.rows * dtype.itemsize > len(data):
        return None
    table = np.frombuffer(data, dtype, element.rows, at)
    sizes = [table["#" + p.name] for p in element.properties if p.length]
    if any((size != size[0]).any() for size in sizes):
        return None
    columns = [table[name] for name in element.wanted()]
    rows: Rows = np.stack(columns, axis=-1) if element.name == "vertex" else columns[0] if columns else []
    return rows, at + table.nbytes


def _row_type(element: Element, data: bytes, order: str, at: int) -> np.dtype[np.void] | None:
    """Return the dtype of the first row, lengths as ``#name``, or None."""
    fields: list[tuple[str, str] | tuple[str, str, tuple[int]]] = []
    for name, kind, length in element.properties:
        start, size = at + struct.calcsize(length), 1
        if length and start <= len(data):
            (size,) = struct.unpack_from(order + length, data, at)
            fields.append(("#" + name, order + length))
        at = start + size * struct.calcsize(kind)
        if size < 0 or at > len(data):
            return None
        fields.append((name, order + kind, (size,)) if length else (name, order + kind))
    return np.dtype(fields)


def _unpacked(element: Element, data: bytes, order: str, at: int, path: Path) -> tuple[Rows, int]:
    """Return rows whose lists differ in length, and their end."""
    rows, wanted = list[Row](), element.wanted()
    for row in range(element.rows):
        found: dict[str, tuple[int, ...] | tuple[float, ...]] = {}
        try:
            for name, kind, length in element.properties:
                size = 1
                if length:
                    (size,) = struct.unpack_from(order + length, data, at)
                    at += struct.calcsize(length)
                if name in wanted:
                    found[name] = struct.unpack_from(f"{order}{size}{kind}", data, at)
                at += size * struct.calcsize(kind)
                if size < 0 or at > len(data):
                    raise struct.error
        except struct.error as error:
            raise cut_off(path, f"row {row} of {element.name}") from error
        rows.append([number for name in wanted for number in found[name]])
    return rows, at


def announced(path: Path) -> Announced:
    """Return the number of faces, else of vertices, in the header."""
    header = _header(plain(path.read_bytes(), path), path)
    counts = {element.name: element.rows for element in header.elements}
    return Announced(counts.get("face") or counts.get("vertex", 0))
