"""PLY, text and binary, both byte orders: a mesh (vertices and faces or triangle strips) or a set of points.

A row of ``tristrips`` holds one strip, or several with -1 between them.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from raybox.io.formats.common import FileArrays, Floats, Loaded, ReadOptions, file_error, quoted
from raybox.io.formats.mesh_parts import (
    Ints,
    MeshPart,
    check_end,
    cut_off,
    strip_triangles,
    to_scene,
    triangulate,
)
from raybox.io.formats.tables import Announced

TYPES = {
    **{"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"},
    **{"float": "f4", "double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2"},
    **{"int32": "i4", "uint32": "u4", "float32": "f4", "float64": "f8"},
}
ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
POLYGONS = ("face", "tristrips")  # elements whose rows are lists of vertices
CORNERS = ("vertex_indices", "vertex_index")


class Property(NamedTuple):
    """One property of an element.

    A list also has a type for its length.
    """

    name: str
    type: str
    length: str = ""


class Element(NamedTuple):
    """One element of the header.

    Its number of rows, and the properties of each.
    """

    name: str
    rows: int
    properties: list[Property]


class Content(NamedTuple):
    """The vertices of a file, and its polygons as sizes and corners."""

    vertices: Floats = np.zeros((0, 3))
    sizes: Ints = np.zeros(0, dtype=np.int64)
    corners: Ints = np.zeros(0, dtype=np.int64)

    def with_polygons(self, name: str, sizes: Ints, corners: Ints) -> "Content":
        """Return the content with the polygons of one more element; strips become triangles."""
        if name == "tristrips":
            # a restart at the end of each row
            corners = strip_triangles(np.insert(corners, np.cumsum(sizes), -1)).ravel()
            sizes = np.full(len(corners) // 3, 3)
        return self._replace(
            sizes=np.concatenate([self.sizes, sizes]), corners=np.concatenate([self.corners, corners])
        )


def read(path: Path, options: ReadOptions) -> Loaded | FileArrays:
    """Return a mesh, or points if `options` is for rays."""
    with path.open("rb") as file:
        elements, order = _header(file, path)
        data = file.read()
    _check_counts(elements, len(data), path)
    content = _binary(elements, data, order, path) if order else _text(elements, data, path)
    unfaced = options.origin is not None or not content.sizes.size
    if options.kind == "rays" or (options.kind is None and unfaced):
        return FileArrays(
            {"points": content.vertices}, lambda _, index: f"vertex {index[0]}, column {'xyz'[index[1]]}"
        )
    if content.sizes.size and content.sizes.min() < 3:
        face = int(np.argmax(content.sizes < 3))
        problem = f"has {content.sizes[face]} corners, a face has at least 3"
        raise file_error(path, problem, "correct the face", f"face {face} (the first is 0)")
    return to_scene(
        [MeshPart(path.stem, content.vertices, triangulate(content.sizes, content.corners))], path, options
    )


def _header(file: BinaryIO, path: Path) -> tuple[list[Element], str]:
    """Return the elements of the header, and the byte order ("" for text)."""
    elements: list[Element] = []
    order: str | None = None
    for number, raw in enumerate(iter(file.readline, b""), 1):
        statement = raw.decode("ascii", errors="replace").strip()
        try:
            match statement.split():
                case ["end_header"] if order is not None:
                    return elements, order
                case ["format", name, _]:
                    order = ORDERS[name]
                case ["element", name, count]:
                    elements.append(Element(name, int(count), []))
                case ["property", "list", length, kind, name]:
                    elements[-1].properties.append(Property(name, TYPES[kind], TYPES[length]))
                case ["property", kind, name]:
                    elements[-1].properties.append(Property(name, TYPES[kind]))
                case ["ply"] | ["comment", *_] | ["obj_info", *_] | []:
                    pass
                case _:
                    raise ValueError
        except (ValueError, KeyError, IndexError) as error:
            problem = f"{quoted(statement)} is no statement of a PLY header"
            raise file_error(
                path, problem, "the file may be cut off, or is no PLY file", f"line {number}"
            ) from error
    raise cut_off(path, "header")


def _check_counts(elements: list[Element], size: int, path: Path) -> None:
    """Raise unless the header's counts fit the file's size, and x, y, z and corners are declared."""
    for name, count, properties in elements:
        names = [p.name for p in properties] + ["#" + p.name for p in properties if p.length]
        if len(set(names)) < len(names):
            raise file_error(path, f"declares a property of {name} twice", "rename one of them", "header")
        if not 0 <= count <= size or (count and not properties):
            raise file_error(
                path,
                f"announces {count} rows of {name} in {size} bytes",
                "copy or download it again",
                "header",
            )
        scalars = {p.name for p in properties if not p.length}
        if name == "vertex" and not {"x", "y", "z"} <= scalars:
            raise file_error(path, "vertices lack x, y, z", "add them", "header")
        corners = [p for p in properties if p.name in CORNERS and p.length]
        if name in POLYGONS and len(corners) != 1:
            problem = f"{name} has {len(corners)} lists of vertices, named {' or '.join(CORNERS)}, not one"
            raise file_error(path, problem, "correct the header", "header")
        if any("f" in p.length for p in properties) or any("f" in p.type for p in corners):
            problem = f"lengths of lists and vertices of {name} are not whole numbers"
            raise file_error(path, problem, "declare them as integers", "header")


def _text(elements: list[Element], data: bytes, path: Path) -> Content:
    """Return the content of a text body: one row a line."""
    lines = [line for line in data.decode("ascii", errors="replace").splitlines() if line.strip()]
    content, at = Content(), 0
    for element in elements:
        rows, at = lines[at : at + element.rows], at + element.rows
        if len(rows) < element.rows:
            raise cut_off(path, f"row {len(rows)} of {element.name}")
        if element.name == "vertex":
            content = content._replace(vertices=np.array(list(_parsed(rows, element, path))).reshape(-1, 3))
        if element.name in POLYGONS:
            faces = list(_parsed(rows, element, path))
            sizes = np.array([len(face) for face in faces], dtype=np.int64)
            content = content.with_polygons(element.name, sizes, _corners(faces, element, path))
    if len(lines) > at:
        problem = f"{quoted(lines[at])} follows the end that the header announces"
        raise file_error(path, problem, "copy or download it again, or correct the header")
    return content


def _corners(faces: list[list[float]], element: Element, path: Path) -> Ints:
    try:
        return np.array([c for f in faces for c in f], dtype=np.int64)
    except OverflowError as error:
        problem = f"a vertex of {element.name} has a number of more than 64 bits"
        raise file_error(path, problem, "the file may be damaged", "body") from error


def _parsed(rows: list[str], element: Element, path: Path) -> Iterator[list[float]]:
    """Yield x, y, z or the corners of each row."""
    for number, row in enumerate(rows):
        fields = row.split()
        found: dict[str, list[float]] = {}
        try:
            for name, _, length in element.properties:
                size = int(fields.pop(0)) if length else 1
                if not 0 <= size <= len(fields):
                    raise ValueError
                found[name], fields = (
                    [float(f) if not length else int(f) for f in fields[:size]],
                    fields[size:],
                )
        except (ValueError, IndexError) as error:
            place = f"row {number} of {element.name}"
            raise file_error(
                path, f"{quoted(row)} is not such a row", "the file may be cut off", place
            ) from error
        corners = next((found[name] for name in CORNERS if name in found), [])
        yield corners if element.name in POLYGONS else found["x"] + found["y"] + found["z"]


def _binary(elements: list[Element], data: bytes, order: str, path: Path) -> Content:
    """Return the content of a binary body.

    An element whose lists all have one length is read as one array, others row by row.
    """
    content, at = Content(), 0
    for element in elements:
        if not element.rows:
            continue
        dtype = _row_type(element, data, order, at)
        whole = dtype is not None and at + element.rows * dtype.itemsize <= len(data)
        table = np.frombuffer(data, dtype, element.rows, at) if dtype is not None and whole else None
        lists = [p.name for p in element.properties if p.length]
        if table is not None and all((table["#" + name] == table["#" + name][:1]).all() for name in lists):
            at += table.nbytes
            if element.name == "vertex":
                xyz = np.stack([table[axis].astype(np.float64) for axis in "xyz"], axis=-1)
                content = content._replace(vertices=xyz)
            if element.name in POLYGONS:
                name = next(name for name in CORNERS if name in lists)
                sizes, corners = table["#" + name].astype(np.int64), table[name].astype(np.int64).ravel()
                content = content.with_polygons(element.name, sizes, corners)
            continue
        if not lists or element.name == "vertex":
            raise cut_off(path, f"byte {len(data)} of the body, in {element.name}")
        polygons = _read_rows(element, data, order, at, path)
        at = polygons.end
        if element.name in POLYGONS:
            content = content.with_polygons(element.name, polygons.sizes, polygons.corners)
    check_end(path, data[at:])
    return content


def _row_type(element: Element, data: bytes, order: str, at: int) -> np.dtype[np.void] | None:
    """Return the dtype of the first row, lengths of lists as ``#name``.

    None if the file is too short.
    """
    fields: list[tuple[str, str] | tuple[str, str, tuple[int]]] = []
    for name, kind, length in element.properties:
        if length:
            at, size = _length(data, at, order + length)
            if size < 0 or at + size * np.dtype(kind).itemsize > len(data):
                return None
            fields += [("#" + name, order + length), (name, order + kind, (size,))]
            at += size * np.dtype(kind).itemsize
        else:
            fields.append((name, order + kind))
            at += np.dtype(kind).itemsize
    return np.dtype(fields)


def _length(data: bytes, at: int, kind: str) -> tuple[int, int]:
    """Return where the items of a list begin, and how many there are (-1 beyond the end)."""
    width = np.dtype(kind).itemsize
    if at + width > len(data):
        return at, -1
    return at + width, int(np.frombuffer(data, kind, 1, at)[0])


class _PolygonRows(NamedTuple):
    """Polygons, and the byte at which their rows end."""

    sizes: Ints
    corners: Ints
    end: int


def _read_rows(element: Element, data: bytes, order: str, at: int, path: Path) -> _PolygonRows:
    """Return the polygons in rows whose lists differ in length, and the end of the rows."""
    sizes, corners = list[int](), [np.zeros(0, dtype=np.int64)]
    for row in range(element.rows):
        for name, kind, length in element.properties:
            at, size = _length(data, at, order + length) if length else (at, 1)
            width = size * np.dtype(kind).itemsize
            if size < 0 or at + width > len(data):
                raise cut_off(path, f"row {row} of {element.name}")
            if length and name in CORNERS:
                sizes.append(size)
                corners.append(np.frombuffer(data, order + kind, size, at).astype(np.int64))
            at += width
    return _PolygonRows(np.array(sizes, dtype=np.int64), np.concatenate(corners), at)


def announced(path: Path) -> Announced:
    """Return the number of faces, else of vertices, in the header."""
    with path.open("rb") as file:
        counts = {element.name: element.rows for element in _header(file, path)[0]}
    return Announced(counts.get("face") or counts.get("vertex", 0))
