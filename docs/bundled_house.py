"""Write the building that the package contains, src/raybox/data/duplex.npz, from its IFC file.

``python docs/bundled_house.py duplex_a_20110907.ifc``; the credit next to it says where the file comes from.
"""

import sys
from pathlib import Path

import numpy as np

import raybox as rb

BUNDLED = Path(__file__).parents[1] / "src" / "raybox" / "data" / "duplex.npz"
DECIMALS = 4  # of coordinates in metres: a tenth of a millimetre, and a third of the bytes


def write(source: Path, target: Path = BUNDLED) -> None:
    """Write the model's surfaces in the format of ``rb.save``, compressed."""
    house = rb.load(source)
    rounded = rb.Mesh(
        house.vertices.round(DECIMALS), house.faces, objects=house.objects, ids=house.ids, labels=house.labels
    )
    rb.save(target, rounded)
    with np.load(target) as file:
        arrays = dict(file)
    arrays["vertices"] = np.asfortranarray(arrays["vertices"])  # by axis: half the bytes
    arrays["faces"] = arrays["faces"].astype(np.uint16)
    arrays["objects"] = arrays["objects"].astype(np.uint8)
    np.savez_compressed(target, **arrays)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
