"""geometry.properties: the property sets of IFC products, as ifcopenshell reads them."""

import copy
import json
import pickle
from functools import cache

import numpy as np
import pytest

import raybox as rb
from needs import package
from raybox.errors import SkippedWarning
from raybox.geometry.labels import with_properties
from raybox.geometry.property_sets import PropertySets
from real_data import HOUSE
from test_ifc import cubes_of

ifcopenshell = package("ifcopenshell")
element = package("ifcopenshell.util.element")
SETS = [{"Pset_A": {"Width": 1.5, "Names": ["a", None]}}, {}, {"Qto_B": {"Höhe": True, "Parts": {"x": "1"}}}]
BOXES = with_properties(
    rb.Boxes(np.zeros((3, 3)), np.ones((3, 3)), ids=list("abc")),
    PropertySets([json.dumps(one) if one else "" for one in SETS]),
)
MESH = with_properties(
    rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]] * 4, objects=[0, 0, 1, 2], ids=list("abc")),
    BOXES.properties,
)


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
    assert list(house().labels) == ["name", "ifc_class", "storey", "predefined_type"]
    rb.save(tmp_path / "boxes.csv", BOXES)
    assert (tmp_path / "boxes.csv").read_text().splitlines()[0] == "min_x,min_y,min_z,max_x,max_y,max_z,id"


def test_objects_keep_their_sets(tmp_path):
    assert [*BOXES.properties] == SETS
    assert [*BOXES[[2, 0]].properties] == [SETS[2], SETS[0]]
    assert [*BOXES[1].properties] == [{}]
    assert [*MESH[2:].properties] == SETS
    for same in (pickle.loads(pickle.dumps(MESH)), copy.deepcopy(MESH)):
        assert same.properties == MESH.properties
        assert not same.properties.texts.flags.writeable
    bare = with_properties(BOXES, None)
    assert bare.properties is None
    assert [*rb.concatenate([bare[:1], BOXES]).properties] == [{}, *SETS]
    assert [*BOXES.translated([1, 0, 0]).properties] == SETS
    with pytest.raises(AttributeError):
        BOXES.properties = None
    assert "3 objects, 2 with sets" in repr(BOXES.properties)


@pytest.mark.parametrize("made", [BOXES, MESH], ids=["boxes", "mesh"])
def test_saved_files_and_scenes_keep_sets(tmp_path, made):
    rb.save(tmp_path / "a.npz", [made, with_properties(made, None)])
    found, bare = rb.load(tmp_path / "a.npz")
    assert (found.properties == made.properties, bare.properties) == (True, None)
    boxes = rb.load(tmp_path / "a.npz", boxes=True)
    assert [*boxes.properties] == [*SETS, {}, {}, {}]
    rb.Scene(made).save(tmp_path / "a.scene")
    assert rb.Scene.open(tmp_path / "a.scene").geometry.properties == made.properties


@pytest.mark.parametrize("lines", [b"", b"{}\n{}", b"{}\n{\n{}", b"[]\n{}\n{}", b'{"a": 1}\n\n', b"\xff\n\n"])
def test_damaged_sets_are_refused(tmp_path, lines):
    arrays = {"raybox": np.array("boxes"), "lower": BOXES.lower, "upper": BOXES.upper}
    np.savez(tmp_path / "a.npz", **arrays, **{"file/properties": np.frombuffer(lines, np.uint8)})
    with pytest.raises(
        rb.FileFormatError, match="property sets must be a line of JSON for each of 3 objects"
    ):
        rb.load(tmp_path / "a.npz")


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
