"""PLY, text and binary, both byte orders: a mesh (vertex and face elements) or a set of points."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from raybox.io.formats.common import Floats, Loaded, Parts, Want, broken, shown
from raybox.io.formats.mesh_parts import Ints, Part, cut_off, to_scene, triangulate

TYPES = {
    **{"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"},
    **{"float": "f4", "double": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2"},
    **{"int32": "i4", "uint32": "u4", "float32": "f4", "float64": "f8"},
}
ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
CORNERS = ("vertex_indices", "vertex_index")


class Property(NamedTuple):
    """One property of an element; a list has a type for its length too."""

    name: str
    type: str
    length: str = ""


class Element(NamedTuple):
    """One element of the header: so many rows of these properties."""

    name: str
    rows: int
    properties: list[Property]


class Content(NamedTuple):
    """What raybox takes from the file: the vertices, and the polygons as sizes and corners."""

    vertices: Floats = np.zeros((0, 3))
    sizes: Ints = np.zeros(0, dtype=np.int64)
    corners: Ints = np.zeros(0, dtype=np.int64)


def read(path: Path, want: Want) -> Loaded | Parts:
    """Read a mesh, or points where rays are wanted."""
    with path.open("rb") as file:
        elements, order = _header(file, path)
        data = file.read()
    _check_counts(elements, len(data), path)
    content = _binary(elements, data, order, path) if order else _text(elements, data, path)
    unfaced = want.origin is not None or not content.sizes.size
    if want.kind == "rays" or (want.kind is None and unfaced):
        return Parts(
            {"points": content.vertices}, lambda _, index: f"vertex {index[0]}, column {'xyz'[index[1]]}"
        )
    if content.sizes.size and content.sizes.min() < 3:
        face = int(np.argmax(content.sizes < 3))
        problem = f"has {content.sizes[face]} corners, a face has at least 3"
        raise broken(path, problem, "correct the face", f"face {face} (the first is 0)")
    return to_scene(
        [Part(path.stem, content.vertices, triangulate(content.sizes, content.corners))], path, want
    )


def _header(file: BinaryIO, path: Path) -> tuple[list[Element], str]:
    """Read the header: the elements, and the byte order (none for text)."""
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
            problem = f"{shown(statement)} is not understood"
            raise broken(
                path, problem, "the file may be cut off, or is no PLY file", f"line {number}"
            ) from error
    raise cut_off(path, "header")


def _check_counts(elements: list[Element], size: int, path: Path) -> None:
    """Hold the header's counts against the size of the file, and see that x, y, z and corners are there."""
    for name, count, properties in elements:
        if not 0 <= count <= size or (count and not properties):
            raise broken(
                path,
                f"announces {count} rows of {name} in {size} bytes",
                "copy or download it again",
                "header",
            )
        scalars = {p.name for p in properties if not p.length}
        if name == "vertex" and not {"x", "y", "z"} <= scalars:
            raise broken(path, "vertices lack x, y, z", "add them", "header")
        if name == "face" and not any(p.name in CORNERS and p.length for p in properties):
            raise broken(path, f"faces lack the list {CORNERS[0]}", "add it", "header")


def _text(elements: list[Element], data: bytes, path: Path) -> Content:
    """Read a body of text: one row a line."""
    lines = [line for line in data.decode("ascii", errors="replace").splitlines() if line.strip()]
    content, at = Content(), 0
    for element in elements:
        rows, at = lines[at : at + element.rows], at + element.rows
        if len(rows) < element.rows:
            raise cut_off(path, f"row {len(rows)} of {element.name}")
        if element.name == "vertex":
            content = content._replace(vertices=np.array(list(_parsed(rows, element, path))).reshape(-1, 3))
        if element.name == "face":
            faces = list(_parsed(rows, element, path))
            sizes = np.array([len(face) for face in faces], dtype=np.int64)
            content = content._replace(
                sizes=sizes, corners=np.array([c for f in faces for c in f], dtype=np.int64)
            )
    return content


def _parsed(rows: list[str], element: Element, path: Path) -> Iterator[list[float]]:
    """Take x, y, z or the corners out of each row."""
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
            raise broken(path, f"{shown(row)} is not such a row", "the file may be cut off", place) from error
        corners = next((found[name] for name in CORNERS if name in found), [])
        yield corners if element.name == "face" else found["x"] + found["y"] + found["z"]


def _binary(elements: list[Element], data: bytes, order: str, path: Path) -> Content:
    """Read a binary body: as one array where all lists of an element are of one length, else row by row."""
    content, at = Content(), 0
    for element in elements:
        dtype = _row_type(element, data, order, at)
        whole = dtype is not None and at + element.rows * dtype.itemsize <= len(data)
        table = np.frombuffer(data, dtype, element.rows, at) if dtype is not None and whole else None
        lists = [p.name for p in element.properties if p.length]
        if table is not None and all((table["#" + name] == table["#" + name][:1]).all() for name in lists):
            at += table.nbytes
            if element.name == "vertex":
                xyz = np.stack([table[axis].astype(np.float64) for axis in "xyz"], axis=-1)
                content = content._replace(vertices=xyz)
            if element.name == "face" and element.rows:
                name = next(name for name in CORNERS if name in lists)
                sizes, corners = table["#" + name].astype(np.int64), table[name].astype(np.int64).ravel()
                content = content._replace(sizes=sizes, corners=corners)
            continue
        if not lists or element.name == "vertex":
            raise cut_off(path, f"byte {len(data)} of the body, in {element.name}")
        sizes, corners, at = _walked(element, data, order, at, path)
        if element.name == "face":
            content = content._replace(sizes=sizes, corners=corners)
    return content


def _row_type(element: Element, data: bytes, order: str, at: int) -> np.dtype | None:
    """Give the type of a row if all rows are like the first, with the length of each list in ``#name``."""
    fields: list[tuple[str, str] | tuple[str, str, tuple[int]]] = []
    for name, kind, length in element.properties:
        if length:
            at, size = _length(data, at, order + length) if element.rows else (at, 0)
            if size < 0 or at + size * np.dtype(kind).itemsize > len(data):
                return None
            fields += [("#" + name, order + length), (name, order + kind, (size,))]
            at += size * np.dtype(kind).itemsize
        else:
            fields.append((name, order + kind))
            at += np.dtype(kind).itemsize
    return np.dtype(fields)


def _length(data: bytes, at: int, kind: str) -> tuple[int, int]:
    """Read the length of a list: where its items begin, and how many they are (-1 beyond the end)."""
    width = np.dtype(kind).itemsize
    if at + width > len(data):
        return at, -1
    return at + width, int(np.frombuffer(data, kind, 1, at)[0])


def _walked(element: Element, data: bytes, order: str, at: int, path: Path) -> tuple[Ints, Ints, int]:
    """Walk over rows whose lists differ in length; give the polygons, and where the next element begins."""
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
    return np.array(sizes, dtype=np.int64), np.concatenate(corners), at
