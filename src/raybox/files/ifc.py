"""IFC building models, through ifcopenshell: one box of each product that has a body, in world coordinates.

Everything with a body counts, spaces and openings too: the label ``ifc_class`` tells them apart.
"""

import os
from pathlib import Path

import numpy as np

from raybox.files.common import Loaded, Want, broken, require
from raybox.files.meshes import cut_off
from raybox.geometry import Boxes

TAIL = b"END-ISO-10303-21;"


def read(path: Path, want: Want) -> Loaded:
    """Read the boxes of an IFC file, in the order of its instances; ids are the GlobalIds."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        if TAIL not in file.read():
            raise cut_off(path, f"byte {path.stat().st_size}")
    ifcopenshell, geom = require("ifcopenshell", "ifc", ".ifc"), require("ifcopenshell.geom", "ifc", ".ifc")
    model = ifcopenshell.open(str(path))
    settings = geom.settings()
    settings.set("use-world-coords", True)
    shapes = geom.iterator(settings, model, os.cpu_count() or 1)
    found: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    more = shapes.initialize()
    while more:
        shape = shapes.get()
        vertices = np.array(shape.geometry.verts, dtype=np.float64).reshape(-1, 3)
        if len(vertices):
            found[shape.id] = vertices.min(axis=0), vertices.max(axis=0)
        more = shapes.next()
    if not found:
        raise broken(path, "holds no product with a body", "check the model")
    products = [model.by_id(number) for number in sorted(found)]
    bounds = np.array([found[number] for number in sorted(found)])
    ids = [str(product.GlobalId) for product in products]
    labels = {"id": ids, "ifc_class": [p.is_a() for p in products], "name": [p.Name or "" for p in products]}
    return Loaded(Boxes(bounds[:, 0], bounds[:, 1]), ids, labels)
