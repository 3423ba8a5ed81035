"""IFC building models, through ifcopenshell: the surfaces of each product, in world coordinates and metres.

Openings are cut, shells face outward, and a product that has a bounding box alone is its twelve triangles.
Products without matter, such as spaces and openings, are left out by default: `ifc_products.NO_MATTER`.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raybox.errors import FileFormatError
from raybox.io.formats.common import Loaded, ReadOptions, counts_in_words, file_error, quoted, require
from raybox.io.formats.mesh_parts import MeshPart, cut_off, to_scene
from raybox.io.formats.subprocess_reader import ProcessEnded, stream_stdout

TAIL = b"END-ISO-10303-21;"
PROGRAM = Path(__file__).with_name("ifc_products.py")
SECONDS = 60.0
"""Limit of processor time of a product, since a busy machine takes any time by the clock.

Those of the data set `duplex_ifc` take 0.2 s at most.
"""

LIBRARIES = {"opencascade": "opencascade", "hybrid": "hybrid-cgal-simple-opencascade"}
LABELS = ("name", "ifc_class", "storey", "predefined_type")


class _Product(NamedTuple):
    """A product: its labels, and its arrays or why there are none."""

    labels: dict[str, Any]
    result: dict[str, Any]
    vertices: bytes = b""
    faces: bytes = b""

    @property
    def name(self) -> str:
        """Class, GlobalId and name, for what is said of losses."""
        return f"{self.labels['ifc_class']} {self.labels['id']} {quoted(self.labels['name'])}"

    @property
    def part(self) -> MeshPart:
        """The triangles with their labels."""
        vertices = np.frombuffer(self.vertices, np.float64).reshape(-1, 3)
        faces = np.frombuffer(self.faces, np.int32).reshape(-1, 3).astype(np.int64)
        labels = {name: self.labels[name] for name in LABELS}
        return MeshPart(str(self.labels["id"]), vertices, faces, labels)


def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the surfaces of an IFC file, in the order of its instances; ids are the GlobalIds."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        if TAIL not in file.read():
            raise cut_off(path, f"byte {path.stat().st_size}")
    require("ifcopenshell", "ifc", ".ifc")
    from tqdm import tqdm

    parts, skipped, left_out, has_unit = [], Counter[str](), Counter[str](), False
    bar = tqdm(_products(path, options), unit=" products", delay=0.5, disable=not options.progress)
    for product in bar:
        bar.total, has_unit = product.labels["of"], product.labels["has_unit"]
        if "left_out" in product.result:
            left_out[product.result["left_out"]] += 1
        elif "failed" in product.result:
            skipped[f"{product.name}: {product.result['failed']}"] += 1
        else:
            parts.append(product.part)
            skipped.update(f"{product.name}, in part: {problem}" for problem in product.result["problem"])
    if not parts:
        raise _without_parts(path, skipped, left_out)
    found = to_scene(parts, path, options, skipped, left_out)
    return found._replace(units="metre" if has_unit else None, up="z")


def _without_parts(path: Path, skipped: Counter[str], left_out: Counter[str]) -> FileFormatError:
    """Return the error for a file of which no product remains, with the reasons."""
    counts = skipped or left_out
    problem = "holds no product with a surface" + (f", but {counts_in_words(counts)}" if counts else "")
    on_request = not skipped and any(" " not in reason for reason in left_out)
    way_out = "all_objects=True reads what has no matter, too" if on_request else "check the model"
    return file_error(path, problem, way_out)


def _products(path: Path, options: ReadOptions) -> Iterator[_Product]:
    """Yield all products; the program begins again after one in which it ends."""
    after, done = -1, False
    while not done:
        request = {
            "after": after,
            "all_objects": options.all_objects,
            "library": LIBRARIES[options.tessellation],
            "seconds": SECONDS,
        }
        current: dict[str, Any] = {}
        try:
            with stream_stdout(PROGRAM, path, json.dumps(request)) as stream:
                for header in map(json.loads, stream):
                    if "number" in header:
                        current = header
                    elif "refused" in header:
                        known = ", ".join(header["schemas"])
                        way_out = f"save it as one of {known}" if known else "check the file"
                        raise file_error(path, header["refused"], way_out)
                    elif "done" in header:
                        done = True
                    else:
                        arrays = (stream.read(header.get(name, 0)) for name in ("vertices", "faces"))
                        yield _Product(current, header, *arrays)
                        current = {}
            if not done:
                raise ProcessEnded(str(cut_off(path, "its reader's output")))
        except ProcessEnded as ended:
            if not current:
                raise
            yield _Product(current, {"failed": f"its tessellation {_verb(ended)}"})
            after = current["number"]


def _verb(ended: ProcessEnded) -> str:
    if ended.is_out_of_time:
        return f"takes over {SECONDS:.0f} s of processor time, or far longer by the clock"
    return f"fails ({ended.problem})" if ended.problem else "crashes"
