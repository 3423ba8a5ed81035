"""IFC building models, through ifcopenshell: the surfaces of each product, in world coordinates and metres.

Openings are cut, shells face outward, and a product that has a bounding box alone is its twelve triangles.
Products without matter, such as spaces and openings, are left out by default: `NO_MATTER`.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from raybox.geometry.colors import color_bytes
from raybox.io.formats.common import Loaded, ReadOptions, counts_in_words, file_error, quoted, require
from raybox.io.formats.mesh_parts import MeshPart, cut_off, to_scene
from raybox.io.formats.subprocess_reader import OUT_OF_TIME, ProcessEnded, stream_stdout
from raybox.threads.progress import progress_bar

TAIL = b"END-ISO-10303-21;"
PROGRAM = Path(__file__).with_name("ifc_products.py")
SECONDS = 60.0
"""Limit of processor time of a product, since a busy machine takes any time by the clock.

Those of the data set `duplex_ifc` take 0.2 s at most.
"""

_NO_MATTER = """
    Space SpatialZone ExternalSpatialElement Building BuildingStorey Facility FacilityPartCommon
    Bridge BridgePart MarineFacility MarinePart Railway RailwayPart Road RoadPart OpeningElement
    OpeningStandardCase VoidingFeature ChamferEdgeFeature RoundedEdgeFeature EarthworksCut
    VirtualElement Annotation Grid Referent LinearPositioningElement LinearElement Alignment
    AlignmentCant AlignmentHorizontal AlignmentSegment AlignmentVertical DistributionPort
"""
_STRUCTURAL = """
    CurveAction CurveConnection CurveMember CurveMemberVarying CurveReaction LinearAction
    LinearActionVarying PlanarAction PlanarActionVarying PointAction PointConnection PointReaction
    SurfaceAction SurfaceConnection SurfaceMember SurfaceMemberVarying SurfaceReaction
"""
NO_MATTER = (
    *(f"Ifc{name}" for name in _NO_MATTER.split()),
    *(f"IfcStructural{name}" for name in _STRUCTURAL.split()),
)
"""Classes of products without matter, none of which is a superclass; a site has its terrain."""
LIBRARIES = {"opencascade": "opencascade", "hybrid": "hybrid-cgal-simple-opencascade"}
ARRAYS = ("vertices", "faces", "colors", "properties")
LABELS = ("name", "ifc_class", "storey", "predefined_type")


class _Product(NamedTuple):
    """A product: its labels, and its arrays or why there are none."""

    labels: dict[str, Any]
    result: dict[str, Any]
    vertices: bytes = b""
    faces: bytes = b""
    colors: bytes = b""
    properties: bytes = b""


def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the surfaces of an IFC file, in the order of its instances; ids are the GlobalIds."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        if TAIL not in file.read():
            raise cut_off(path, f"byte {path.stat().st_size}")
    require("ifcopenshell", "ifc", ".ifc")
    parts, skipped, left_out, has_unit = [], Counter[str](), Counter[str](), False
    for product in _with_progress(_products(path, options), shown=options.progress):
        labels, result = product.labels, product.result
        has_unit = labels["has_unit"]
        name = f"{labels['ifc_class']} {labels['id']} {quoted(labels['name'])}"
        if "left_out" in result:
            left_out[result["left_out"]] += 1
        elif "failed" in result:
            skipped[f"{name}: {result['failed']}"] += 1
        else:
            vertices = np.frombuffer(product.vertices, np.float64).reshape(-1, 3)
            faces = np.frombuffer(product.faces, np.int32).reshape(-1, 3).astype(np.int64)
            colors = color_bytes(np.frombuffer(product.colors).reshape(-1, 4)) if product.colors else None
            own = {key: labels[key] for key in LABELS}
            properties = product.properties.decode()
            parts.append(MeshPart(labels["id"], vertices, faces, own, colors, properties))
            skipped.update(f"{name}, in part: {problem}" for problem in result["problem"])
    if not parts:
        counts = skipped or left_out
        problem = "holds no product with a surface" + (f", but {counts_in_words(counts)}" if counts else "")
        on_request = not skipped and any(" " not in reason for reason in left_out)
        way_out = "all_objects=True reads what has no matter, too" if on_request else "check the model"
        raise file_error(path, problem, way_out)
    found = to_scene(parts, path, options, skipped, left_out)
    return found._replace(units="metre" if has_unit else None, up="z")


def _with_progress(products: Iterator[_Product], *, shown: bool) -> Iterator[_Product]:
    """Yield the products; shown: whether a bar is."""
    with progress_bar("products", shown=shown) as bar:
        for product in products:
            bar.total = product.labels["of"]
            yield product
            bar.update(1)


def _products(path: Path, options: ReadOptions) -> Iterator[_Product]:
    """Yield all products; the program begins again after one in which it ends."""
    no_matter = () if options.all_objects else NO_MATTER
    request: dict[str, Any] = {"no_matter": no_matter, "seconds": SECONDS, "after": -1}
    request["library"] = LIBRARIES[options.tessellation]
    done = False
    while not done:
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
                        sizes = (header.get(name, 0) for name in ARRAYS)
                        yield _Product(current, header, *map(stream.read, sizes))
                        current = {}
            if not done:
                raise ProcessEnded(str(cut_off(path, "its reader's output")))
        except ProcessEnded as ended:
            if not current:
                raise
            verb = f"fails ({ended.problem})" if ended.problem else "crashes"
            if ended.problem == OUT_OF_TIME:
                verb = f"takes over {SECONDS:.0f} s of processor time, or far longer by the clock"
            yield _Product(current, {"failed": f"its tessellation {verb}"})
            request["after"] = current["number"]
