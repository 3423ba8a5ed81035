"""A program: write the surfaces of the products of an IFC file to stdout.

`raybox.io.formats.ifc` runs it in a process of its own, since on some damaged products ifcopenshell 0.9
crashes or does not come back. A record is a line of JSON, after which the arrays follow that it announces; of
each product there are two, one before its tessellation and one after.
"""

import faulthandler
import json
import math
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

import ifcopenshell
import ifcopenshell.geom
import ifcopenshell.util.element
import numpy as np

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]  # the limit is of wall time there

SURFACES = (
    *("IfcSolidModel", "IfcSurface", "IfcFaceBasedSurfaceModel", "IfcShellBasedSurfaceModel"),
    *("IfcTessellatedItem", "IfcBooleanResult", "IfcCsgPrimitive3D", "IfcHalfSpaceSolid", "IfcBoundingBox"),
    *("IfcSectionedSpine", "IfcConnectedFaceSet", "IfcFace"),
)
SETTINGS = ("use-world-coords", "reorient-shells", "keep-bounding-boxes", "no-normals")
LOGGED = re.compile(r"^\[(error|warning)\] \[\w+\] \[[^]]*\] (.*?)[ :]*(?:for:)?$", re.MULTILINE)
NO_REASON = ("No plane angle unit", "No material and surface styles", "0 duplicate faces", "Warning nullptr")
NO_COLOR = "-"
"""The name of a style that states no colour; any other begins with the class of what states it."""
WAITS = 10
"""How many times its limit of processor time a product may take by the clock."""


def main() -> None:
    """Write the records of all products after the number that the request gives."""
    request = json.loads(sys.argv[2])
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print does not belong among the records
    _limit(WAITS * request["seconds"])
    try:
        model = ifcopenshell.open(sys.argv[1])
    except ifcopenshell.Error as error:
        is_schema = isinstance(error, ifcopenshell.SchemaError)
        known = ifcopenshell.ifcopenshell_wrapper.schema_names() if is_schema else ()
        schemas = [name for name in known if name.startswith("IFC")]
        return _write(out, {"refused": str(error).replace(": ", " "), "schemas": schemas})
    products = sorted(filter(_has_shape, model.by_type("IfcProduct")), key=lambda product: product.id())
    of_file = {"of": len(products), "has_unit": _has_unit(model)}
    settings = ifcopenshell.geom.settings()
    for setting in SETTINGS:
        settings.set(setting, True)
    settings.set("apply-default-materials", False)
    for product in products:
        if product.id() > request["after"]:
            _limit(request["seconds"])
            _write(out, {"number": product.id()} | of_file | _labels(product))
            if product.is_a() in request["no_matter"]:
                _write(out, {"left_out": product.is_a()})
            else:
                _write(out, *_surface(settings, product, request["library"]))
    _write(out, {"done": True})


def _limit(seconds: float) -> None:
    """End the process when it takes more processor time than this from now on, or waits far longer."""
    waits = 1
    if resource is not None:
        waits, (_, hard) = WAITS, resource.getrlimit(resource.RLIMIT_CPU)
        end = math.ceil(time.process_time() + seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (end if hard < 0 else min(end, hard), hard))
    faulthandler.dump_traceback_later(waits * seconds, exit=True)


def _has_unit(model: Any) -> bool:
    """Return whether a file states its unit of length, which ifcopenshell converts to metres."""
    stated = [getattr(project.UnitsInContext, "Units", None) or () for project in model.by_type("IfcProject")]
    return any(getattr(unit, "UnitType", None) == "LENGTHUNIT" for units in stated for unit in units)


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
        "predefined_type": _predefined_type(product),
        "storey": storey and storey.Name,
    }


def _predefined_type(product: Any) -> str:
    """Return the predefined type of a product or of its type; for USERDEFINED, the word of the user."""
    types = (product, "ObjectType"), (ifcopenshell.util.element.get_type(product), "ElementType")
    for one, own in types:
        found = getattr(one, "PredefinedType", None)
        if found == "USERDEFINED":
            return str(getattr(one, own, None) or found)
        if found and found != "NOTDEFINED":
            return str(found)
    return "NOTDEFINED"


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
        return _without_triangles(product, str(error).partition(". Product:")[0]), b""
    vertices = np.frombuffer(shape.geometry.verts_buffer, np.float64)
    faces = np.frombuffer(shape.geometry.faces_buffer, np.int32)
    if not faces.size:
        return _without_triangles(product, "its solids and surfaces have no triangle"), b""
    if not np.isfinite(vertices).all():
        return {"failed": "a vertex is not finite"}, b""
    arrays = {"vertices": vertices, "faces": faces, "colors": _colors(shape.geometry)}
    sizes = {name: array.nbytes for name, array in arrays.items()}
    problem = _reasons(ifcopenshell.get_log(), "error")[:1]
    try:
        properties = _properties(product)
    except Exception as error:  # a damaged set: ifcopenshell raises anything
        properties, problem = b"", [*problem, f"its property sets: {type(error).__name__}"]
    header = {**sizes, "properties": len(properties), "problem": problem}
    return header, b"".join(array.tobytes() for array in arrays.values()) + properties


def _properties(product: Any) -> bytes:
    """Return the property sets and quantities of a product and its type, as JSON; none without any."""
    sets = ifcopenshell.util.element.get_psets(product)
    for values in sets.values():
        values.pop("id", None)  # the number of the set in the file, which a property may not have as its name
    return json.dumps(_plain(sets), separators=(",", ":")).encode() if sets else b""


def _plain(value: Any) -> Any:
    """Return a value as JSON may have it: instances as their text, infinite numbers as text."""
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _colors(geometry: Any) -> Any:
    """Return red, green, blue and alpha of each triangle, (F, 4); none if no triangle has a style."""
    styles = np.frombuffer(geometry.colors_buffer, np.float64).reshape(-1, 4)
    if not styles.size:
        return styles
    named = [[style.name != NO_COLOR] for style in geometry.materials]
    # number -1, of triangles without a style, is the last row
    rows = np.append(np.where(named, styles, 0.0), np.zeros((1, 4)), axis=0)
    return rows[np.frombuffer(geometry.material_ids_buffer, np.int32)]


def _without_triangles(product: Any, problem: str) -> dict[str, Any]:
    """Return the record of a product that fails, or that has only curves and points, or nothing."""
    log, shape = ifcopenshell.get_log(), product.Representation
    errors = _reasons(log, "error")
    if errors or (shape and any(map(_has_surfaces, shape.Representations or ()))):
        return {"failed": [*errors, *_reasons(log, "warning")[::-1], problem][0]}
    return {"left_out": f"{product.is_a()} without a surface"}


def _reasons(log: str, level: str) -> list[str]:
    """Return the messages of a level that say why a product fails."""
    return [text for of, text in LOGGED.findall(log) if of == level and not text.startswith(NO_REASON)]


def _has_surfaces(representation: Any, depth: int = 0) -> bool:
    """Return whether a representation has solids or surfaces, or lacks what it should have."""
    items = getattr(representation, "Items", None) or getattr(representation, "Elements", None)
    if not items or depth > 9:
        return True
    for item in items:
        if item.is_a("IfcMappedItem"):
            found = _has_surfaces(getattr(item.MappingSource, "MappedRepresentation", None), depth + 1)
        elif item.is_a("IfcGeometricSet"):
            found = _has_surfaces(item, depth + 1)
        else:
            found = any(map(item.is_a, SURFACES))
        if found:
            return True
    return False


if __name__ == "__main__":
    main()
