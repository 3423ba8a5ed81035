"""Colours of glTF: base colours of materials, means of their textures, and `COLOR_0` of vertices.

Factors and vertices have linear numbers, which become bytes of sRGB; those of images are sRGB already.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from raybox.errors import FileFormatError
from raybox.geometry.colors import Colors, color_bytes
from raybox.io.formats.common import Floats
from raybox.io.formats.gltf_document import Document, Item
from raybox.io.formats.images import NOT_READ, mean_color
from raybox.io.formats.mesh_parts import Ints


class BaseColor(NamedTuple):
    """The linear base colour (4,) of a material; None if the material is broken."""

    factor: Floats | None
    is_opaque: bool = True


class GltfColors:
    """The colours of a document, and counts of those that are not read."""

    def __init__(self, document: Document) -> None:
        self.document, self.skipped = document, Counter[str]()
        self._materials = dict[object, BaseColor]()

    def of_faces(self, primitive: Item, vertex_count: int, faces: Ints) -> Colors | None:
        """Return the colours of the triangles of a primitive; None if it states none."""
        given, number = BaseColor(None), primitive.values.get("material")
        if type(number) is int:
            if number not in self._materials:
                self._materials[number] = self._material(primitive)
            given = self._materials[number]
        corners = self._corners(primitive.child("attributes"), vertex_count)
        if given.factor is None and corners is None:
            return None
        linear = np.ones((1, 4)) if corners is None else corners[faces].mean(axis=1)
        linear = linear if given.factor is None else linear * given.factor
        alpha = np.ones_like(linear[:, 3:]) if given.is_opaque else linear[:, 3:]
        colors = color_bytes(np.hstack([_srgb(linear[:, :3]), alpha]))
        return np.broadcast_to(colors, (len(faces), 4))

    def _material(self, primitive: Item) -> BaseColor:
        try:
            number, materials = primitive.whole("material"), self._items("materials")
            if number >= len(materials):
                primitive.refuse(f"refers to material {number}, the file has {len(materials)}")
            base = materials[number].child("pbrMetallicRoughness")
            factor = base.numbers("baseColorFactor", [1.0] * 4)
            if "baseColorTexture" in base.values:
                factor = factor * self._texture(base.child("baseColorTexture"))
            return BaseColor(factor, materials[number].get("alphaMode", str, "OPAQUE") != "BLEND")
        except FileFormatError:
            self.skipped["materials that are broken"] += 1
            return BaseColor(None)

    def _texture(self, user: Item) -> Floats:
        """Return the linear mean of a texture; ones if it is not read."""
        mean = None
        try:
            texture = self._items("textures")[user.whole("index")]
            mean = mean_color(self.document.image(self._items("images")[texture.whole("source")]))
        except (FileFormatError, IndexError, OSError):
            pass
        if mean is None:
            self.skipped[NOT_READ] += 1
            return np.ones(4)
        linear = np.where(mean <= 0.04045, mean / 12.92, ((mean + 0.055) / 1.055) ** 2.4)
        return np.append(linear[:3], mean[3])

    def _items(self, key: str) -> list[Item]:
        return self.document.root.children(key, key.removesuffix("s"))

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


def _srgb(linear: Floats) -> Floats:
    """Return linear numbers as those of sRGB."""
    x = np.clip(linear, 0.0, 1.0)
    return np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)
