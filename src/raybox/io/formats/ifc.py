"""IFC building models, through ifcopenshell: one box for each product with a body, in world coordinates.

Spaces and openings count too; the label ``ifc_class`` gives the class of each.
"""

import json
from pathlib import Path

import numpy as np

from raybox.geometry import Boxes
from raybox.io.formats import subprocess_reader
from raybox.io.formats.common import Loaded, ReadOptions, file_error, require
from raybox.io.formats.mesh_parts import cut_off

TAIL = b"END-ISO-10303-21;"

# One thread: with several, a failure of one leaves the others waiting for ever (ifcopenshell 0.9).
READER = """
import json, sys
import ifcopenshell, ifcopenshell.geom

model = ifcopenshell.open(sys.argv[1])
settings = ifcopenshell.geom.settings()
settings.set("use-world-coords", True)
shapes = ifcopenshell.geom.iterator(settings, model, 1)
rows = {}
more = shapes.initialize()
while more:
    shape = shapes.get()
    axes = [shape.geometry.verts[axis::3] for axis in range(3)]
    if axes[0]:
        product = model.by_id(shape.id)
        labels = product.GlobalId or "", product.is_a(), product.Name or ""
        rows[shape.id] = [*map(min, axes), *map(max, axes), *labels]
    more = shapes.next()
print("\\n" + json.dumps([rows[number] for number in sorted(rows)]))
"""


def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the boxes of an IFC file, in the order of its instances; ids are the GlobalIds."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        if TAIL not in file.read():
            raise cut_off(path, f"byte {path.stat().st_size}")
    require("ifcopenshell", "ifc", ".ifc")
    rows = json.loads(subprocess_reader.run(READER, path).splitlines()[-1])
    if not rows:
        raise file_error(path, "holds no product with a body", "check the model")
    *bounds, ids, classes, names = zip(*rows, strict=True)
    corners = np.array(bounds, dtype=np.float64).T
    labels = {"ifc_class": list(classes), "name": list(names)}
    return Loaded(Boxes(corners[:, :3], corners[:, 3:], ids=ids, labels=labels))
