"""PLY, text and binary: a mesh or a set of points.

Meshes have faces or triangle strips. A row of ``tristrips`` holds one strip, or several with -1 between
them. An integer property ``object`` of faces is the object of their triangles; a face below 0 has none, and
is counted. Colours are the properties ``red green blue [alpha]`` of faces, else of vertices, whose mean is
that of a triangle: floats from 0 to 1, uint16 to 65535, other integers to 255. Rows of other elements are
counted, and other properties skipped by the sizes of their types. In a text, these may be of any type, of one
word.
"""

import re
import struct
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.geometry import Mesh
from raybox.geometry.colors import COLORS, Colors, color_bytes, joined_colors
from raybox.geometry.labels import with_colors
from raybox.geometry.mesh import stored_objects
from raybox.geometry.polygons import Triangles
from raybox.geometry.triangle_strips import strip_triangles
from raybox.io.formats.common import FileArrays, Floats, Loaded, ReadOptions, file_error, quoted
from raybox.io.formats.mesh_parts import Ints, MeshPart, check_end, cut_off, faces_of, joined, to_scene
from raybox.io.formats.object_boxes import boxes_of_objects
from raybox.io.formats.tables import Announced, exact_floats
from raybox.io.formats.text_lines import body_lines, floats, header_lines, plain, refuse_line, text_rows

TYPES = {"char": "b", "uchar": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I"}
TYPES |= {"int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I"}
TYPES |= {"float": "f", "float32": "f", "double": "d", "float64": "d"}
TYPES |= {"int64": "q", "uint64": "Q", "float16": "e", "half": "e", "longlong": "q", "ulonglong": "Q"}
TYPES |= {f"{name}_t": code for name, code in TYPES.items() if "int" in name and name[-1].isdigit()}
"""Codes of NumPy and of struct: those of PLY, and others that programs write."""
_LENGTHS = {"": "", **{f"list {name}": code for name, code in TYPES.items()}}
_WORD = "word"  # the code of any other type, which is one word of a text
_WHOLE_TYPES = frozenset("bBhHiIqQ")
_SCALES = {"f": 1.0, "d": 1.0, "e": 1.0, "H": 65535.0}
"""The numbers of full colours by type; of others, 255."""

ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
CORNERS, OBJECT = ("vertex_indices", "vertex_index"), "object"
UNFACED = "vertices without a face (points need an origin)"
_READ = {"vertex": ("x", "y", "z"), "face": (*CORNERS, OBJECT), "tristrips": CORNERS}
OWN = "triangles by raybox"  # a comment: without the property `object`, each triangle is an object
_OWN_HEADER = f"""ply
format binary_little_endian 1.0
comment {OWN}
element vertex %s
property double x
property double y
property double z
element face %s
property list uchar int vertex_indices
%send_header
"""
Numbers = NDArray[np.number]
Rows = Sequence[Sequence[float]] | Numbers
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
    colors: tuple[int, ...] = ()
    """the numbers of the properties red, green, blue and alpha, if they are read"""

    def with_colors(self) -> "Element":
        """Return the element with its colours, if vertices or faces have red, green and blue."""
        numbers = {p.name: k for k, p in enumerate(self.properties) if not p.length and p.type != _WORD}
        if self.name not in ("vertex", "face") or not {*COLORS[:3]} <= numbers.keys():
            return self
        return self._replace(colors=tuple(numbers[name] for name in COLORS if name in numbers))

    def wanted(self) -> list[int]:
        """Return the numbers of the properties that are read: in the order of `_READ`, colours last."""
        read = {
            k: _READ[self.name].index(name)
            for k, (name, kind, length) in enumerate(self.properties)
            if name in _READ.get(self.name, ())
            and bool(length) == (name in CORNERS)
            and (name != OBJECT or kind in _WHOLE_TYPES)
        }
        return [*sorted(read, key=read.__getitem__), *self.colors]


class PlyHeader(NamedTuple):
    """Elements, byte order ("" for text), where the body begins, whether raybox wrote it."""

    elements: list[Element]
    order: str
    end: int
    is_own: bool


class Content(NamedTuple):
    """The vertices of a file; its polygons as sizes and corners, and their objects."""

    vertices: Floats = np.zeros((0, 3))
    sizes: Ints = np.zeros(0, dtype=np.int64)
    corners: Ints = np.zeros(0, dtype=np.int64)
    objects: Ints | None = None
    vertex_colors: Colors | None = None
    colors: Colors | None = None
    """of polygons"""

    def with_rows(self, element: Element, rows: Rows) -> "Content":
        """Return the content with the rows of one more element."""
        if isinstance(rows, np.ndarray):
            numbers, sizes = rows.ravel(), np.full(len(rows), rows.shape[-1])
        else:
            numbers = np.array([*chain.from_iterable(rows)])
            sizes = np.array([*map(len, rows)], dtype=np.int64)
        colors, count = None, len(element.colors)
        if count:
            numbers, sizes, last = _without_last(numbers, sizes, count)
            scales = [_SCALES.get(element.properties[k].type, 255.0) for k in element.colors]
            colors = color_bytes(np.hstack([last / scales, np.ones((len(last), 4 - count))]))
        if element.name == "vertex":
            return self._replace(vertices=numbers.astype(np.float64).reshape(-1, 3), vertex_colors=colors)
        objects = self.objects
        if len(element.wanted()) > 1 + count:  # the last number of a row is its object
            numbers, sizes, last = _without_last(numbers, sizes, 1)
            objects = last[:, 0].astype(np.int64)
        corners = numbers.astype(np.int64)
        if element.name == "tristrips":  # a restart at the end of each row
            corners = strip_triangles(np.insert(corners, np.cumsum(sizes), -1)).ravel()
            sizes = np.full(len(corners) // 3, 3)
        join, counts = np.concatenate, [len(self.sizes), len(sizes)]
        polygons = join([self.sizes, sizes]), join([self.corners, corners]), objects
        return Content(
            self.vertices, *polygons, self.vertex_colors, joined_colors([self.colors, colors], counts)
        )

    def colors_of(self, found: Triangles) -> Colors | None:
        """Return the colours of triangles: those of their polygons, else the means of their vertices."""
        if self.colors is not None:
            return self.colors[found.polygon]
        if self.vertex_colors is None or not self.vertex_colors.size:
            return None
        corners = self.vertex_colors.take(found.faces, axis=0, mode="clip")  # wrong numbers are refused later
        means: Colors = np.rint(corners.mean(axis=1)).astype(np.uint8)
        return means


def _without_last(numbers: Numbers, sizes: Ints, count: int) -> tuple[Numbers, Ints, Numbers]:
    """Return rows of these sizes without their last numbers, their new sizes, and the last numbers."""
    last = np.cumsum(sizes)[:, np.newaxis] - np.arange(count, 0, -1)
    return np.delete(numbers, last), sizes - count, numbers[last]


def read(path: Path, options: ReadOptions) -> Loaded | FileArrays:
    """Return a mesh, or points if `options` is for rays or points."""
    data = plain(path.read_bytes(), path)
    header = _header(data, path)
    _check_elements(header, len(data), path)
    has_faces = any(element.name in ("face", "tristrips") for element in header.elements)
    is_mesh = options.kind not in ("rays", "points") and (
        options.kind or (options.origin is None and has_faces)
    )
    if is_mesh:
        header = header._replace(elements=[element.with_colors() for element in header.elements])
    content = (_binary if header.order else _text)(header, data, path)
    skipped = Counter[str]()
    for element in header.elements:
        skipped[f"rows of {element.name}"] += 0 if element.name in _READ else element.rows
    if not is_mesh:
        where = lambda _, index: f"vertex {index[0]}, column {'xyz'[index[1]]}"  # noqa: E731
        return FileArrays({"points": content.vertices}, where, skipped=+skipped)
    found = faces_of(content.vertices, content.corners, content.sizes, skipped)
    part = MeshPart(path.stem, content.vertices, found.faces, colors=content.colors_of(found))
    objects = content.objects
    if objects is not None and len(objects) < len(content.sizes):
        skipped["objects of faces, next to triangle strips"] = len(objects)
        objects = None
    if not header.is_own and (objects is None or not len(found.faces)):
        if not has_faces or content.sizes.size or skipped.total():
            return to_scene([part], path, options, +skipped)
        skipped[UNFACED] = len(content.vertices)
        return to_scene([], path, options, may_be_empty=True)._replace(skipped=+skipped)
    if objects is not None and objects.min(initial=0) < 0:
        skipped["faces of an object below 0, which are one object, the last"] = int((objects < 0).sum())
        objects = np.where(objects < 0, objects.max() + 1, objects)
    own = None if objects is None else objects[found.polygon]
    mesh = with_colors(Mesh(*joined([part], path), objects=own), part.colors)
    return Loaded(boxes_of_objects(mesh) if options.boxes else mesh, +skipped)


def _header(data: bytes, path: Path) -> PlyHeader:
    """Return the header, whose statements must be those of PLY."""
    elements, order, is_own = list[Element](), "", False
    for number, statement, end in header_lines(data):
        problem = ""
        match statement.split():
            case ["end_header"] if order:
                return PlyHeader(elements, ORDERS[order], end, is_own)
            case ["format", name, "1.0"] if name in ORDERS and not order:
                order = name
            case ["element", name, count] if _WHOLE.fullmatch(count) and int(count) >= 0:
                elements.append(Element(name, int(count), []))
            case ["property", *length, kind, name] if (
                elements
                and " ".join(length) in _LENGTHS
                and (kind in TYPES or (order == "ascii" and kind != "list"))
            ):
                code = TYPES.get(kind, _WORD)
                elements[-1].properties.append(Property(name, code, _LENGTHS[" ".join(length)]))
            case ["format", *_]:
                problem = f"is no format that raybox reads: {', '.join(ORDERS)} 1.0, in one line"
            case ["property", *_] if elements:
                problem = f"is of a type whose size raybox does not know; it knows {' '.join(TYPES)}"
            case ["comment", *words]:
                is_own |= words == OWN.split()
            case ["ply"] | ["obj_info", *_] | []:
                pass
            case _:
                problem = "is no statement of a PLY header"
        if problem:
            refuse_line(path, statement, problem, f"line {number}")
    raise file_error(path, "has no line end_header", "copy or download it again", "header")


def _check_elements(header: PlyHeader, size: int, path: Path) -> None:
    """Raise unless counts fit the file, and coordinates and corners are declared."""
    elements = [element.name for element in header.elements]
    for element in header.elements:
        name, count, properties, _ = element
        wanted = [properties[k] for k in element.wanted()]
        corners = [p for p in wanted if p.length]
        problem, way_out = "", "correct the header"
        if elements.count(name) > 1 and name in _READ:
            problem = f"declares the element {name} twice"
        elif len({p.name for p in wanted}) < len(wanted):
            problem = f"declares a property of {name} twice"
        elif count > size or (count and not properties):
            problem = f"announces {count} rows of {name} in {size} bytes"
            way_out = "copy or download it again"
        elif name == "vertex" and len(wanted) < 3:
            problem = "vertices lack x, y, z"
        elif name in _READ and name != "vertex" and len(corners) != 1:
            problem = f"{name} has {len(corners)} lists of vertices, named {' or '.join(CORNERS)}, not one"
        elif not {p.length for p in properties} | {p.type for p in corners} <= _WHOLE_TYPES | {""}:
            problem = f"lengths of lists and vertices of {name} are not whole numbers"
        if problem:
            raise file_error(path, problem, way_out, "header")


def _text(header: PlyHeader, data: bytes, path: Path) -> Content:
    """Return the content of a text body: one row a line."""
    lines, content = iter(body_lines(data[header.end :])), Content()
    for element in header.elements:
        rows = list(islice(lines, element.rows))
        if len(rows) < element.rows:
            raise cut_off(path, f"row {len(rows)} of {element.name}")
        if element.name in _READ:
            parse = _row_of_lists if any(p.length for p in element.properties) else _row_of_numbers
            parse = partial(parse, element.properties, element.wanted())
            parsed = text_rows(rows, parse, path, f"row {{}} of {element.name}")
            content = content.with_rows(element, list(parsed))
    check_end(path, "\n".join(lines).encode())
    return content


def _row_of_numbers(properties: list[Property], wanted: list[int], words: list[str]) -> Sequence[float]:
    """Return the wanted numbers of a row without lists."""
    if len(words) != len(properties):
        raise ValueError(f"{len(words)} words, the header announces {len(properties)}")
    return floats([words[k] for k in wanted])


def _row_of_lists(properties: list[Property], wanted: list[int], words: list[str]) -> Sequence[float]:
    """Return the wanted numbers of a row with lists."""
    rest, found = iter(words), list[list[str]]()
    for name, _, length in properties:
        size = _integers([next(rest, "-1")])[0] if length else 1
        found.append(list(islice(rest, max(size, 0))))
        if len(found[-1]) != size:
            raise ValueError(f"ends in {name}")
    if more := len(list(rest)):
        raise ValueError(f"{more} words more than the header announces")
    numbers: list[float] = []
    for k in wanted:
        numbers += (_integers if properties[k].name in _READ["face"] else floats)(found[k])
    return numbers


def _integers(words: list[str]) -> list[int]:
    for word in words:
        if not _WHOLE.fullmatch(word):
            raise ValueError(f"{quoted(word)} is not a whole number of up to 18 digits")
    return list(map(int, words))


def _binary(header: PlyHeader, data: bytes, path: Path) -> Content:
    """Return the content of a binary body: at once where lists have one length, else row by row."""
    content, at = Content(), header.end
    for element in header.elements:
        if element.rows:
            body = _Body(data, header.order, element)
            rows, at = body.table(at, path) or body.row_by_row(at, path)
            content = content.with_rows(element, rows) if element.name in _READ else content
    check_end(path, data[at:])
    return content


class _Body(NamedTuple):
    """The bytes of a file, and an element in them."""

    data: bytes
    order: str
    element: Element

    def row(self, at: int) -> tuple[list[tuple[int, int]], int]:
        """Return first byte and length of each property of a row, and the row's end.

        Raise `struct.error` if it lies behind the end of the file.
        """
        found = []
        for _, kind, length in self.element.properties:
            (size,) = struct.unpack_from(self.order + length, self.data, at) if length else (1,)
            at += struct.calcsize(length)
            found.append((at, size))
            at += size * struct.calcsize(kind)
            if size < 0 or at > len(self.data):
                raise struct.error
        return found, at

    def table(self, at: int, path: Path) -> tuple[Rows, int] | None:
        """Return rows as one array, and their end; None if sizes differ, or rows are missing."""
        fields: list[tuple[str, str] | tuple[str, str, tuple[int]]] = []
        try:
            sizes = [size for _, size in self.row(at)[0]]
        except struct.error:
            return None
        for k, ((_, kind, length), size) in enumerate(zip(self.element.properties, sizes, strict=True)):
            fields += [(f"#{k}", self.order + length)] * bool(length)
            fields.append((f"{k}", self.order + kind, (size,)))
        dtype, count = np.dtype(fields), self.element.rows
        if at + count * dtype.itemsize > len(self.data):
            return None
        table = np.frombuffer(self.data, dtype, count, at)
        if any((table[name] != table[name][0]).any() for name in dtype.names or () if name[0] == "#"):
            return None
        columns = [table[f"{k}"] for k in self.element.wanted()]
        if self.element.name == "vertex":  # of several types: each is exact in float64, or refused
            columns = [exact_floats(column, path, lambda index: f"vertex {index[:1]}") for column in columns]
        else:
            columns = [column if column.dtype.kind == "f" else column.astype(np.int64) for column in columns]
        return np.concatenate([np.empty((count, 0), np.uint8), *columns], axis=1), at + table.nbytes

    def row_by_row(self, at: int, path: Path) -> tuple[Rows, int]:
        """Return rows whose lists differ in length, and their end."""
        rows, wanted = list[list[float]](), self.element.wanted()
        kinds = [self.order + "{}" + p.type for p in self.element.properties]
        for row in range(self.element.rows):
            try:
                places, at = self.row(at)
            except struct.error as error:
                raise cut_off(path, f"row {row} of {self.element.name}") from error
            found: list[float] = []
            for k in wanted:
                start, size = places[k]
                found += struct.unpack_from(kinds[k].format(size), self.data, start)
            rows.append(found)
        return rows, at


def announced(path: Path) -> Announced:
    """Return the number of faces, else of vertices, in the header."""
    header = _header(plain(path.read_bytes(), path), path)
    counts = {element.name: element.rows for element in header.elements}
    return Announced(counts.get("face") or counts.get("vertex", 0))


def write(file: BinaryIO, mesh: Mesh) -> None:
    """Write a mesh: float64 vertices, triangles, their objects and colours, without ids and labels."""
    objects = stored_objects(mesh)
    if max(len(mesh.vertices), int(mesh.objects.max(initial=0))) >= 2**31:
        raise InvalidInput("PLY holds numbers of vertices and objects below 2**31. Save the mesh as .npz.")
    fields: list[Any] = [("size", "u1"), ("corners", "<i4", (3,))]
    fields += [("object", "<i4")] * (objects is not None)
    fields += [("colors", "u1", (4,))] * (mesh.colors is not None)
    rows = np.empty(len(mesh), fields)
    rows["size"], rows["corners"] = 3, mesh.faces
    if objects is not None:
        rows["object"] = objects
    if mesh.colors is not None:
        rows["colors"] = mesh.colors
    own = "" if objects is None else "property int object\n"
    own += "".join(f"property uchar {name}\n" for name in COLORS) * (mesh.colors is not None)
    file.write((_OWN_HEADER % (len(mesh.vertices), len(mesh), own)).encode())
    file.write(mesh.vertices.astype("<f8").tobytes())
    file.write(rows.tobytes())
