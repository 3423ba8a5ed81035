"""Colours of glTF: base colours of materials, and `COLOR_0` of vertices.

Both are linear numbers, which become bytes of sRGB. Textures are not read, but counted.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from raybox.errors import FileFormatError
from raybox.geometry.colors import Colors, color_bytes
from raybox.io.formats.common import TEXTURES, Floats
from raybox.io.formats.gltf_document import Document, Item
from raybox.io.formats.mesh_parts import Ints


class BaseColor(NamedTuple):
    """The linear base colour (4,) of a material."""

    factor: Floats
    is_opaque: bool


class GltfColors:
    """The colours of a document; those that are not read are counted."""

    def __init__(self, document: Document, skipped: Counter[str], left_out: Counter[str]) -> None:
        self.document, self.skipped, self.left_out = document, skipped, left_out
        self._materials = dict[object, BaseColor | None]()

    def of_faces(self, primitive: Item, vertex_count: int, faces: Ints) -> Colors | None:
        """Return the colours of the triangles of a primitive; None if it states none."""
        material, number = None, primitive.values.get("material")
        if type(number) is int:
            if number not in self._materials:
                self._materials[number] = self._material(primitive)
            material = self._materials[number]
        corners = self._corners(primitive.child("attributes"), vertex_count)
        if material is None and corners is None:
            return None
        factor, is_opaque = material or BaseColor(np.ones(4), is_opaque=True)
        linear = factor * (np.ones((len(faces), 4)) if corners is None else corners[faces].mean(axis=1))
        linear[:, 3] = 1.0 if is_opaque else linear[:, 3]
        x = np.clip(linear[:, :3], 0.0, 1.0)
        linear[:, :3] = np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)  # sRGB
        return color_bytes(linear)

    def _material(self, primitive: Item) -> BaseColor | None:
        """Return the base colour of the material of a primitive; None if it is broken."""
        try:
            materials = self.document.root.children("materials", "material")
            number = primitive.whole("material")
            if number >= len(materials):
                primitive.refuse(f"refers to material {number}, the file has {len(materials)}")
            base = materials[number].child("pbrMetallicRoughness")
            factor = base.numbers("baseColorFactor", [1.0] * 4)
            is_opaque = materials[number].get("alphaMode", str, "OPAQUE") != "BLEND"
        except FileFormatError:
            self.skipped["materials that are broken"] += 1
            return None
        self.left_out[TEXTURES] += "baseColorTexture" in base.values
        return BaseColor(factor, is_opaque)

    def _corners(self, attributes: Item, vertex_count: int) -> Floats | None:
        """Return the linear colours of vertices (V, 4); None without."""
        if "COLOR_0" not in attributes.values:
            return None
        try:
            item = self.document.item("accessor", attributes.whole("COLOR_0"), attributes)
            kind = "VEC3" if item.get("type", str) == "VEC3" else "VEC4"
            found = self.document.accessor(attributes, "COLOR_0", kind, vertex_count)
        except FileFormatError:
            self.skipped["colours of vertices that are broken"] += 1
            return None
        clipped = np.clip(np.nan_to_num(found), 0.0, 1.0)
        return np.hstack([clipped, np.ones((vertex_count, 4 - clipped.shape[1]))])
