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
    whole, damaged = model.by_type("IfcWall")
    value = model.create_entity("IfcLabel", "x\ny\N{GRINNING FACE}")
    single = model.create_entity("IfcPropertySingleValue", "Single", None, value)
    empty = model.create_entity("IfcPropertySingleValue", "Empty")
    listed = model.create_entity("IfcPropertyListValue", "List", None, [value, value])
    high = model.create_entity("IfcReal", 2.5)
    bounded = model.create_entity("IfcPropertyBoundedValue", "Bounded", None, high)
    group = model.create_entity("IfcComplexProperty", "Group", None, "use", [single])
    properties = [single, empty, listed, bounded, group]
    length = model.create_entity("IfcQuantityLength", "Length", None, None, 3.25)
    sets = [
        model.create_entity("IfcPropertySet", ifcopenshell.guid.new(), None, "Pset_A", None, properties),
        model.create_entity(
            "IfcElementQuantity", ifcopenshell.guid.new(), None, "Qto_A", Quantities=[length]
        ),
    ]
    for one in sets:
        model.create_entity(
            "IfcRelDefinesByProperties",
            ifcopenshell.guid.new(),
            RelatedObjects=[whole],
            RelatingPropertyDefinition=one,
        )
    model.create_entity("IfcRelDefinesByProperties", ifcopenshell.guid.new(), RelatedObjects=[damaged])
    model.write(str(path))
    with pytest.warns(SkippedWarning, match="its property sets"):
        found = rb.load(path)
    own = found.properties[found.ids.tolist().index(whole.GlobalId)]
    assert own["Qto_A"] == {"Length": 3.25}
    assert own["Pset_A"]["Single"] == "x\ny\N{GRINNING FACE}"
    assert own["Pset_A"]["List"] == ["x\ny\N{GRINNING FACE}"] * 2
    assert own["Pset_A"]["Empty"] is None
    assert own["Pset_A"]["Group"]["properties"] == {"Single": "x\ny\N{GRINNING FACE}"}
    assert "2.5" in str(own["Pset_A"]["Bounded"])
    assert found.properties[found.ids.tolist().index(damaged.GlobalId)] == {}
    assert len(found) == 24
