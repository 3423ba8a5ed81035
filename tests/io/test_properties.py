"""geometry.properties: the property sets of IFC products, as ifcopenshell reads them."""

from functools import cache

import numpy as np
import pytest

import raybox as rb
from needs import package
from raybox.errors import SkippedWarning
from real_data import HOUSE
from test_ifc import cubes_of

ifcopenshell = package("ifcopenshell")
element = package("ifcopenshell.util.element")


@cache
def house() -> rb.Mesh:
    return rb.load(HOUSE, tessellation="hybrid", all_objects=True)


def wanted(product) -> dict:
    """Return the sets of a product as ifcopenshell returns them, without their numbers in the file."""
    found = element.get_psets(product)
    return {name: {key: one for key, one in own.items() if key != "id"} for name, own in found.items()}


def test_the_sets_of_all_products_are_those_that_ifcopenshell_returns():
    model, mesh = ifcopenshell.open(str(HOUSE)), house()
    assert len(mesh.properties) == len(mesh.ids) == 286
    for id_, found in zip(mesh.ids.tolist(), mesh.properties, strict=True):
        assert found == wanted(model.by_guid(id_))
    walls = np.flatnonzero(mesh.labels["ifc_class"] == "IfcWallStandardCase")
    assert {mesh.properties[int(k)]["Pset_WallCommon"]["IsExternal"] for k in walls} == {True, False}


def test_sets_are_no_labels(tmp_path):
    mesh = house()
    assert list(mesh.labels) == ["name", "ifc_class", "storey", "predefined_type"]
    rb.save(tmp_path / "boxes.csv", rb.load(HOUSE, boxes=True))
    head = (tmp_path / "boxes.csv").read_text().splitlines()[0]
    assert head == "min_x,min_y,min_z,max_x,max_y,max_z,id,name,ifc_class,storey,predefined_type"


def test_sets_of_every_kind_and_damaged_ones(tmp_path):
    """A set that ifcopenshell does not read is counted; the product is there."""
    path = cubes_of(tmp_path / "sets.ifc", "IFC4", ["IfcWall", "IfcWall"])
    model = ifcopenshell.open(str(path))
    entity, guid, (whole, damaged) = model.create_entity, ifcopenshell.guid.new, model.by_type("IfcWall")
    text = "x\ny\N{GRINNING FACE}"
    value = entity("IfcLabel", text)
    single = entity("IfcPropertySingleValue", "Single", None, value)
    properties = [
        single,
        entity("IfcPropertySingleValue", "Empty"),
        entity("IfcPropertyListValue", "List", None, [value, value]),
        entity("IfcPropertyBoundedValue", "Bounded", None, entity("IfcReal", 2.5)),
        entity("IfcComplexProperty", "Group", None, "use", [single]),
    ]
    length = entity("IfcQuantityLength", "Length", None, None, 3.25)
    for own in (
        entity("IfcPropertySet", guid(), None, "Pset_A", None, properties),
        entity("IfcElementQuantity", guid(), None, "Qto_A", Quantities=[length]),
    ):
        related = {"RelatedObjects": [whole], "RelatingPropertyDefinition": own}
        entity("IfcRelDefinesByProperties", guid(), **related)
    entity("IfcRelDefinesByProperties", guid(), RelatedObjects=[damaged])
    model.write(str(path))
    with pytest.warns(SkippedWarning, match="its property sets"):
        found = rb.load(path)
    sets = dict(zip(found.ids.tolist(), found.properties, strict=True))
    own = sets[whole.GlobalId]["Pset_A"]
    assert sets[whole.GlobalId]["Qto_A"] == {"Length": 3.25}
    assert (own["Single"], own["List"], own["Empty"]) == (text, [text] * 2, None)
    assert own["Group"]["properties"] == {"Single": text}
    assert "2.5" in str(own["Bounded"])
    assert sets[damaged.GlobalId] == {}
    assert len(found) == 24
