"""A program: write the surfaces of the products of an IFC file to stdout.

`raybox.io.formats.ifc` runs it in a process of its own, since on some damaged products ifcopenshell 0.9
crashes or does not come back. A record is a line of JSON, after which the arrays follow that it announces; of
each product there are two, one before its tessellation and one after.
"""

import faulthandler
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

import ifcopenshell
import ifcopenshell.geom
import ifcopenshell.util.element
import numpy as np

ON_REQUEST = ("IfcSpace", "IfcOpeningElement")
SETTINGS = ("use-world-coords", "reorient-shells", "keep-bounding-boxes", "no-normals")
ERROR = re.compile(r"^\[error\] \[\w+\] \[[^]]*\] (.*?)(?: for:)?$", re.MULTILINE)
NO_SURFACE = ("Failed to process shape", "No suitable IfcRepresentation")
"""How the errors begin for a product that has only curves, or nothing: no other error is logged."""


def main() -> None:
    """Write the records of all products after the number that the request gives."""
    request = json.loads(sys.argv[2])
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print does not belong among the records
    model = ifcopenshell.open(sys.argv[1])
    products = sorted(filter(_has_shape, model.by_type("IfcProduct")), key=lambda product: product.id())
    settings = ifcopenshell.geom.settings()
    for setting in SETTINGS:
        settings.set(setting, True)
    for product in products:
        if product.id() > request["after"]:
            _write(out, {"number": product.id(), "of": len(products)} | _labels(product))
            if not request["all_objects"] and any(map(product.is_a, ON_REQUEST)):
                _write(out, {"left_out": product.is_a()})
                continue
            faulthandler.dump_traceback_later(request["seconds"], exit=True)
            _write(out, *_surface(settings, product, request["library"]))
            faulthandler.cancel_dump_traceback_later()
    _write(out, {"done": True})


def _has_shape(product: Any) -> bool:
    """Return whether a product has a shape, or is an element that should: it has no parts that do."""
    return bool(product.Representation) or (product.is_a("IfcElement") and not product.IsDecomposedBy)


def _write(out: BinaryIO, header: dict[str, Any], arrays: bytes = b"") -> None:
    """Write a record at once, so that it is there if the process ends in the next one."""
    out.write(json.dumps(header).encode() + b"\n" + arrays)
    out.flush()


def _labels(product: Any) -> dict[str, str | None]:
    storey = next((parent for parent in _parents(product) if parent.is_a("IfcBuildingStorey")), None)
    return {
        "id": product.GlobalId or "",
        "name": product.Name,
        "ifc_class": product.is_a(),
        "storey": storey and storey.Name,
    }


def _parents(product: Any) -> Iterator[Any]:
    """Yield a product and what it is in, up to the project; a damaged file may have circles."""
    passed = set[int]()
    while product is not None and product.id() not in passed:
        passed.add(product.id())
        yield product
        product = ifcopenshell.util.element.get_parent(product)


def _surface(settings: Any, product: Any, library: str) -> tuple[dict[str, Any], bytes]:
    """Return the record of a product's triangles, or of the reason why there are none."""
    ifcopenshell.get_log()  # empties it
    try:
        shape = ifcopenshell.geom.create_shape(settings, product, geometry_library=library)
    except RuntimeError as error:
        logged = ERROR.findall(ifcopenshell.get_log())
        if not logged and str(error).startswith(NO_SURFACE):
            return {"left_out": f"{product.is_a()} without a surface"}, b""
        return {"failed": logged[0] if logged else str(error).splitlines()[0]}, b""
    vertices = np.frombuffer(shape.geometry.verts_buffer, np.float64)
    faces = np.frombuffer(shape.geometry.faces_buffer, np.int32)
    if not faces.size:
        return {"left_out": f"{product.is_a()} without a surface"}, b""
    if not np.isfinite(vertices).all():
        return {"failed": "a vertex is not finite"}, b""
    header = {
        "vertices": vertices.nbytes,
        "faces": faces.nbytes,
        "problem": ERROR.findall(ifcopenshell.get_log())[:1],
    }
    return header, vertices.tobytes() + faces.tobytes()


if __name__ == "__main__":
    main()
