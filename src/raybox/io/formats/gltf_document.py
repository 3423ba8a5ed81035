"""The JSON document of a glTF file, and its checked accessors.

Buffers are in the file, or, of a `.gltf`, in files of its folder or below it: never elsewhere.
"""

import base64
import codecs
import json
import struct
from collections.abc import Collection
from pathlib import Path
from typing import NoReturn, TypeVar
from urllib.parse import unquote, unquote_to_bytes

import numpy as np
from numpy.typing import NDArray

from raybox.io.formats.common import Floats, file_below, file_error, quoted
from raybox.io.formats.mesh_parts import check_end, cut_off
from raybox.io.formats.text_lines import plain

T = TypeVar("T")
Numbers = NDArray[np.number]
TYPES = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
UNSIGNED = (5121, 5123, 5125)
WIDTHS = {"SCALAR": 1, "VEC3": 3, "VEC4": 4, "MAT4": 16}
_KINDS: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false"}
_KINDS |= {str: "a text", list: "a list", dict: "an object"}
_JSON, _BINARY = 0x4E4F534A, 0x004E4942
_AROUND = b"\0 \t\r\n" + codecs.BOM_UTF8


class Item:
    """An object of the document, with its place for errors."""

    def __init__(self, path: Path, place: str, value: object) -> None:
        self.path, self.place = path, place
        if not isinstance(value, dict):
            self.refuse(f"is {quoted(value)}, not a JSON object")
        self.values: dict[str, object] = value

    def refuse(self, problem: str, way_out: str = "export it again") -> NoReturn:
        """Raise the error about this object."""
        raise file_error(self.path, problem, way_out, self.place)

    def get(self, key: str, kind: type[T], default: T | None = None) -> T:
        """Return a value of a type of JSON."""
        value = self.values.get(key, default)
        if value is None:
            self.refuse(f"lacks {key}")
        if type(value) is not kind:
            self.refuse(f"its {key} is {quoted(value)}, not {_KINDS[kind]}")
        return value

    def whole(self, key: str, default: int | None = None) -> int:
        """Return a whole number from 0 on."""
        value = self.get(key, int, default)
        if value < 0:
            self.refuse(f"its {key} is {value}")
        return value

    def listed(self, key: str, *kinds: type[T]) -> list[T]:
        """Return a list of values of some types of JSON."""
        found: list[T] = self.get(key, list, [])
        for value in found:
            if type(value) not in kinds:
                self.refuse(f"has {quoted(value)} among its {key}, which is not {_KINDS[kinds[0]]}")
        return found

    def numbers(self, key: str, default: list[float]) -> Floats:
        """Return numbers, as many as the default has."""
        found = self.listed(key, float, int) if key in self.values else default
        if len(found) != len(default):
            self.refuse(f"has {len(found)} numbers in its {key}, not {len(default)}")
        return np.array([float(str(number)) for number in found])  # infinite for integers of any length

    def child(self, key: str) -> "Item":
        """Return an object inside of this one, empty if it is missing."""
        return Item(self.path, f"{self.place}, {key}" if self.place else key, self.values.get(key, {}))

    def children(self, key: str, name: str) -> "list[Item]":
        """Return a list of objects inside of this one."""
        place = f"{self.place}, {name}" if self.place else name
        found = self.listed(key, dict)
        return [Item(self.path, f"{place} {number}", value) for number, value in enumerate(found)]


class Document:
    """The objects of a file by kind and number, and its buffers."""

    def __init__(self, path: Path) -> None:
        self.path, self.size, data = path, path.stat().st_size, path.read_bytes()
        is_binary = path.suffix.lower() == ".glb"
        chunks = _chunks(data, path) if is_binary else {_JSON: data}
        self.skipped, self._folder = dict[str, int](), None if is_binary else path.parent
        self.root, self._binary = Item(path, "", self._json(chunks.get(_JSON, b""))), chunks.get(_BINARY)
        if "asset" not in self.root.values and "meshes" not in self.root.values:
            self.root.refuse("has no asset, as every glTF", "rename CityJSON to end in .city.json")
        asset = self.root.child("asset").values
        version = str(asset.get("minVersion", asset.get("version", "2.0")))
        if not version.startswith("2") or (version != "2.0" and "minVersion" in asset):
            self.root.refuse(f"is glTF {quoted(version)}, raybox reads 2.0", "export it as glTF 2.0")
        kinds = ("node", "mesh", "skin", "scene", "accessor", "bufferView", "buffer")
        self.items = {
            kind: self.root.children("meshes" if kind == "mesh" else kind + "s", kind) for kind in kinds
        }
        self._buffers: dict[int, bytes] = {}
        files = (self._beside(item.values.get("uri")) for item in self.items["buffer"])
        self.size += sum(file.stat().st_size for file in files if file)

    def _json(self, data: bytes) -> object:
        """Return the JSON in bytes; zeros and byte order marks around it are padding."""
        text = plain(data, self.path).strip(_AROUND).decode(errors="replace")
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            problem = "its JSON is missing, damaged, or too deep"
            raise file_error(self.path, problem, "copy or export it again") from error
        lost = text.count("\ufffd") - data.count("\ufffd".encode())
        if lost > 0:
            self.skipped["bytes of names that are not UTF-8"] = lost
        return value

    def item(self, kind: str, number: int, user: Item) -> Item:
        """Return an object to which another one refers."""
        if not 0 <= number < len(self.items[kind]):
            user.refuse(f"refers to {kind} {number}, the file has {len(self.items[kind])}")
        return self.items[kind][number]

    def accessor(
        self, user: Item, key: str, kind: str, rows: int | None = None, codes: Collection[int] = tuple(TYPES)
    ) -> Floats:
        """Return the numbers of an accessor of this type, (rows, width); rows: how many there must be."""
        item = self.item("accessor", user.whole(key), user)
        name, code, count = item.get("type", str), item.whole("componentType"), item.whole("count")
        if name != kind or code not in codes:
            item.refuse(f"is {quoted(name)} of components {code}; a {kind} of {sorted(codes)} is needed here")
        if rows not in (None, count):
            user.refuse(f"has {count} rows in its {key}, not {rows}")
        dtype, width = np.dtype(TYPES[code]), WIDTHS[name]
        if "bufferView" in item.values:
            found = self._elements(item, count, dtype, width, strided=True).astype(np.float64)
        elif count <= self.size:
            found = np.zeros((count, width))
        else:
            item.refuse(f"announces {count} items in a file of {self.size} bytes")
        if "sparse" in item.values:
            self._override(found, item.child("sparse"), dtype)
        if item.get("normalized", bool, False) and dtype.kind != "f":
            found = np.maximum(found / np.iinfo(dtype).max, -1.0)
        return found

    def _override(self, numbers: Floats, sparse: Item, dtype: np.dtype[np.number]) -> None:
        """Write the values of a sparse accessor in place of some numbers."""
        count, indices = sparse.whole("count"), sparse.child("indices")
        code = indices.whole("componentType")
        if code not in UNSIGNED:
            indices.refuse(f"has components {code}, not {sorted(UNSIGNED)}")
        rows = self._elements(indices, count, np.dtype(TYPES[code]), 1).ravel().astype(np.int64)
        if count and rows.max() >= len(numbers):
            indices.refuse(f"names item {rows.max()} of {len(numbers)}")
        numbers[rows] = self._elements(sparse.child("values"), count, dtype, numbers.shape[1])

    def _elements(
        self, user: Item, count: int, dtype: np.dtype[np.number], width: int, *, strided: bool = False
    ) -> Numbers:
        """Return rows of a buffer view, checked before memory is used."""
        number, item = user.whole("bufferView"), dtype.itemsize * width
        view, offset = self.item("bufferView", number, user), user.whole("byteOffset", 0)
        buffer = self._buffer(view)
        start, size = view.whole("byteOffset", 0), view.whole("byteLength")
        step = view.whole("byteStride", item) if strided else item
        if start + size > len(buffer):
            view.refuse(f"ends at byte {start + size} of a buffer of {len(buffer)} bytes")
        if step < item or (count and offset + (count - 1) * step + item > size):
            user.refuse(f"{count} items from byte {offset} on do not fit into bufferView {number}")
        if not count:
            return np.zeros((0, width), dtype)
        return np.ndarray((count, width), dtype, buffer, start + offset, (step, dtype.itemsize))

    def _buffer(self, view: Item) -> bytes:
        """Return the buffer of a view, whose bytes must be here."""
        number = view.whole("buffer")
        item = self.item("buffer", number, view)
        if number not in self._buffers:
            found = self._of_uri(item) if "uri" in item.values else self._binary if not number else None
            if found is None:
                names = ", ".join(view.child("extensions").values) or "no uri"
                item.refuse(f"has no bytes in this file ({names})", "export it without compression")
            size = item.whole("byteLength")
            if size > len(found):
                item.refuse(f"announces {size} bytes, {len(found)} are there", "copy or download it again")
            self._buffers[number] = found[:size]
        return self._buffers[number]

    def _of_uri(self, buffer: Item) -> bytes:
        """Return the bytes in a ``data:`` URI, or of a file in the folder of a `.gltf`."""
        uri = buffer.get("uri", str)
        head, _, data = uri.partition(",")
        if head.startswith("data:"):
            try:
                if not head.endswith(";base64"):
                    raise ValueError
                return base64.b64decode(unquote_to_bytes(data), validate=True)
            except ValueError:
                buffer.refuse(f"its data URI {quoted(uri)} is not in base64")
        if self._folder is None:
            problem = f"refers to another file, {quoted(uri)}, which raybox does not read"
            buffer.refuse(problem, "export it as one file")
        file = self._beside(uri)
        if file is None:
            problem = f"refers to {quoted(uri)}, which is no file in its folder"
            buffer.refuse(problem, "put that file next to it, or export it as .glb")
        with file.open("rb") as opened:
            return opened.read(min(buffer.whole("byteLength"), file.stat().st_size))

    def _beside(self, uri: object) -> Path | None:
        """Return the path of a file in the folder of a `.gltf`, links followed; None for any other."""
        if self._folder is None or not isinstance(uri, str) or uri.startswith("data:"):
            return None
        return file_below(self._folder, unquote(uri))


def _chunks(data: bytes, path: Path) -> dict[int, bytes]:
    """Return the first chunk of each type; all sizes are checked."""
    if len(data) < 20:
        raise cut_off(path, f"byte {len(data)}")
    version, end = struct.unpack_from("<II", data, 4)
    if version != 2:
        raise file_error(path, f"is glTF {version}, raybox reads 2", "export it as glTF 2.0", "byte 4")
    if end > len(data):
        raise cut_off(path, f"byte {len(data)} of {end}")
    check_end(path, data[end:], b"\0")
    at, found = 12, dict[int, bytes]()
    while at < end:
        size, kind = struct.unpack_from("<II", data, at) if at + 8 <= end else (end, 0)
        if at + 8 + size > end:
            problem = f"its chunk of {size} bytes ends after the {end} bytes that the header announces"
            raise file_error(path, problem, "copy or download it again", f"byte {at}")
        found.setdefault(kind, data[at + 8 : at + 8 + size])
        at += 8 + size
    return found
