"""Documents of glTF, built piece by piece: their buffer, accessors, meshes and nodes."""

import struct

import numpy as np

from file_samples import glb

CODES = {"b": 5120, "B": 5121, "h": 5122, "H": 5123, "I": 5125, "f": 5126}
KINDS = {1: "SCALAR", 3: "VEC3", 4: "VEC4", 16: "MAT4"}


class Builder:
    """A document and its buffer, to which accessors are added."""

    def __init__(self):
        self.binary = b""
        self.document = {"asset": {"version": "2.0"}}
        self.document |= {name: [] for name in ("bufferViews", "accessors", "meshes", "nodes")}

    def _add(self, name: str, item: dict) -> int:
        self.document[name].append(item)
        return len(self.document[name]) - 1

    def view(self, content: bytes, **more) -> int:
        """Add bytes to the buffer; return the number of their view."""
        self.binary += b"\0" * (-len(self.binary) % 4)
        view = {"buffer": 0, "byteOffset": len(self.binary), "byteLength": len(content)}
        self.binary += content
        return self._add("bufferViews", view | more)

    def accessor(self, rows, code="f", view=None, **more) -> int:
        """Add rows of numbers, or the description of those of a view; return the accessor's number."""
        rows = np.asarray(rows).reshape(len(rows), -1)
        if view is None:
            view = self.view(struct.pack(f"<{rows.size}{code}", *rows.ravel().tolist()))
        found = {"bufferView": view, "componentType": CODES[code], "count": len(rows)}
        return self._add("accessors", found | {"type": KINDS[rows.shape[1]]} | more)

    def mesh(self, *primitives: dict) -> int:
        """Add a mesh; return its number."""
        return self._add("meshes", {"primitives": list(primitives)})

    def node(self, **values) -> int:
        """Add a node; return its number."""
        return self._add("nodes", values)

    def content(self, **more) -> bytes:
        """Return the file, with more members of its document."""
        return glb(self.document | {"buffers": [{"byteLength": len(self.binary)}]} | more, self.binary)
