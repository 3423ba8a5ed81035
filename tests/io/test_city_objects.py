"""CityJSON: families of buildings and parts, semantic surfaces, sequences, names that stand twice, units."""

import json
import re

import numpy as np
import pytest

import raybox as rb
from cities import City, geometry
from raybox.errors import InvalidInput
from raybox.files import read
from real_data import CITY
from refusals import counted, refused

DOWN = rb.Rays([5, 5, 50], [0, 0, -1])
COARSE = "city objects whose parts have a higher level of detail"


# Families


def ids(path, **options):
    return read(path, **options).ids


def test_the_footprint_of_a_building_is_not_its_highest_level(tmp_path):
    town = City()
    town.add("b", "Building", town.body("0"), year=1904, height=5.0)
    town.add("b-0", "BuildingPart", town.body("1.2"), town.body("2.2"), parents=["b"])
    town.add("b-1", "BuildingPart", town.body("1.2", 20), town.body("2.2", 20), parents=["b"])
    town.add("flat", "Building", town.body("0", 40))
    path = town.write(tmp_path / "a.city.json")
    mesh = rb.load(path)
    assert mesh.ids.tolist() == ["b-0", "b-1", "flat"]
    assert mesh.skipped == {COARSE: 1}
    assert rb.Scene(mesh).nearest(DOWN, where="type == 'Building'").t == 45
    assert rb.Scene(mesh).nearest(DOWN, where="height > 3").t == 45
    assert mesh.labels["year"].tolist() == [1904, 1904, None]
    assert ids(path, lod="0") == ["b", "flat"]
    assert ids(path, lod="1.2") == ["b-0", "b-1"]


def test_a_coarser_whole_is_left_out_and_a_part_never(tmp_path):
    town = City()
    town.add("tower", "Building", town.body("1"))
    town.add("tower-0", "BuildingPart", town.body("1"), town.body("2"), parents=["tower"])
    town.add("tower-1", "BuildingPart", town.body("1", 20), parents=["tower"])  # nothing else is there
    town.add("bridge", "Bridge", town.body("2", 40))
    town.add("bridge-0", "BridgePart", town.body("2", 60), parents=["bridge"])
    town.add("same", "Building", town.body("2.10", 80))
    town.add("same-0", "BuildingPart", town.body("2.9", 80), parents=["same"])
    assert ids(town.write(tmp_path / "a.city.json")) == [
        *("tower-0", "tower-1", "bridge", "bridge-0", "same", "same-0"),
    ]


def test_a_level_without_a_surface_is_none(tmp_path):
    town = City()
    town.add("a", "Building", town.body("1"), {"type": "Solid", "lod": "2", "boundaries": []})
    assert ids(town.write(tmp_path / "a.city.json")) == ["a"]


def test_what_is_added_to_a_building_does_not_replace_its_walls(tmp_path):
    town = City()
    town.add("house", "Building", town.body("2"))
    town.add("chimney", "BuildingInstallation", town.body("3", height=9), parents=["house"])
    town.add("shed", "Building", town.body("0.1", 20))
    town.add("awning", "BuildingInstallation", town.body("2", 20), parents=["shed"])
    path = town.write(tmp_path / "a.city.json")
    assert ids(path) == ["house", "chimney", "awning"]


def test_parts_of_parts_and_broken_families(tmp_path):
    town = City()
    town.add("a", "Building", town.body("0"), use="office", year=1, name=None)
    town.add("b", "BuildingPart", town.body("1"), parents=["a"], year=2)
    town.add("c", "BuildingPart", town.body("2"), parents=["b", "nowhere"], name="c", type="x", parent=7)
    town.add("round", "Building", town.body("1", 20), parents=["circle"])
    town.add("about", "BuildingPart", town.body("2", 20), parents=["round"])
    town.add("circle", "Building", parents=["about"])
    town.add("group", "CityObjectGroup", use="none")
    town.add("member", "Building", town.body("0", 40), parents=["group"])
    town.add("other", "Building", town.body("2", 60), parents=["group"])
    mesh = rb.load(town.write(tmp_path / "a.city.json"))
    assert mesh.ids.tolist() == ["c", "about", "member", "other"]
    labels = {name: values.tolist() for name, values in mesh.labels.items()}
    assert labels == {
        "type": ["Building"] * 4,
        "part_type": ["BuildingPart", "BuildingPart", "Building", "Building"],
        "parent": ["b,nowhere", "round", "group", "group"],
        "use": ["office", None, None, None],
        "year": [2, None, None, None],
        "name": ["c", None, None, None],
        "attribute_type": ["x", None, None, None],
        "attribute_parent": [7, None, None, None],
    }


# Semantic surfaces

SURFACES = [{"type": "GroundSurface"}, {"type": "RoofSurface", "slope": 0.5}, {"type": "WallSurface"}]


def test_each_semantic_surface_is_an_object(tmp_path):
    town = City()
    values = {"surfaces": SURFACES, "values": [[0, 1, 2, 2, 2, None]]}
    town.add("a", "Building", height=5.0)
    town.add("a-0", "BuildingPart", town.body("2", semantics=values), parents=["a"])
    town.add("b", "Building", town.body("2", 20), slope=2.0)
    path = town.write(tmp_path / "a.city.json")
    mesh, whole = rb.load(path, objects="surfaces"), rb.load(path)
    kinds = ["GroundSurface", "RoofSurface", "WallSurface"]
    assert mesh.ids.tolist() == [*(f"a-0/{kind}/{k}" for k, kind in enumerate(kinds)), "a-0", "b"]
    assert np.bincount(mesh.objects).tolist() == [2, 2, 6, 2, 12]
    labels = {name: values.tolist() for name, values in mesh.labels.items()}
    assert labels["surface"] == [*kinds, None, None]
    assert (labels["type"], labels["height"][:4]) == (["Building"] * 5, [5.0] * 4)
    np.testing.assert_array_equal(labels["slope"], [np.nan, 0.5, np.nan, np.nan, 2.0])
    roof = rb.Scene(mesh).nearest(rb.Rays([5, 5, -9], [0, 0, 1]), where="surface == 'RoofSurface'")
    assert (roof.t, roof.ids) == (14, "a-0/RoofSurface/1")
    assert len(rb.load(path, objects="surfaces", boxes=True)) == 5
    assert sorted(mesh.triangles.tolist()) == sorted(whole.triangles.tolist())
    assert "surface" not in whole.labels


def test_surfaces_of_several_geometries_shells_and_templates(tmp_path):
    town, door = City(), {"surfaces": [{"type": "Door"}]}
    shells = [town.body("2", 20 * k)["boundaries"] for k in range(2)]
    doors = {"surfaces": [{"type": "Door"}, {}], "values": [None, [[0, 1, 1, 1, 1, 0]]]}
    many = geometry("MultiSolid", "2", shells, semantics=doors)
    sheet = geometry("MultiSurface", "2", [[[0, 1, 2, 3]]], semantics=door | {"values": [0]})
    none = geometry("MultiSurface", "2", [[[0, 1, 2]]], semantics=door | {"values": None})
    town.add("a", "Building", many, sheet, none)
    corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    templates = [sheet | {"boundaries": [[[0, 1, 2]]]}]
    town.header["geometry-templates"] = {"templates": templates, "vertices-templates": corners}
    placed = {"type": "GeometryInstance", "template": 0, "boundaries": [0]}
    town.add("t", "CityFurniture", placed | {"transformationMatrix": np.eye(4).ravel().tolist()})
    found = read(town.write(tmp_path / "a.city.json"), objects="surfaces")
    assert found.ids == ["a", "a/Door/0", "a/surface/1", "a/Door/2", "t/Door/0"]
    assert np.bincount(found.geometry.objects).tolist() == [13, 4, 8, 2, 1]
    assert found.labels["surface"] == [None, "Door", None, "Door", "Door"]


def test_ids_of_surfaces_are_unlike_all_others(tmp_path):
    town = City()
    kinds = {"surfaces": [{"type": "b/c"}, {"type": "c"}], "values": [[0, 1, 1, 1, 1, 1]]}
    for number, name in enumerate(("a", "a/b", "a/b/c/1", "a/b c/0")):
        town.add(name, "Building", town.body("2", 20 * number, semantics=kinds))
    town.add("a/c/1", "Road", town.body("2", 99))
    found = read(town.write(tmp_path / "a.city.json"), objects="surfaces")
    assert len(set(found.ids)) == len(found.ids) == 9
    assert found.ids[:2] == ["a/b c/0'", "a/c/1'"]


VALUES = [[[0, 1]], [[0, 1, 2, 2, 2, 3]], [[0, 1, 2, 2, 2, -1]], [0, 1, 2, 2, 2, 2], [[0, 1, 2, 2, 2, True]]]
SEMANTICS = [{"surfaces": SURFACES}, *({"surfaces": SURFACES, "values": values} for values in VALUES)]


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_semantics_that_do_not_fit_cost_no_surface(tmp_path, semantics):
    town = City()
    town.add("a", "Building", town.body("2", semantics=semantics))
    path = town.write(tmp_path / "a.city.json")
    assert len(rb.load(path)) == 12
    mesh, skipped = counted(path, objects="surfaces")
    assert (mesh.ids.tolist(), len(mesh)) == (["a"], 12)
    assert "semantics that do not fit" in str(skipped)


def test_objects_is_for_cityjson(tmp_path):
    with pytest.raises(InvalidInput, match='objects must be "surfaces" or None; got'):
        rb.load(CITY, objects="walls")
    words = r"objects is for files of CityJSON \(\.json \.jsonl\); got it with a\.obj"
    with pytest.raises(InvalidInput, match=words):
        rb.load(tmp_path / "a.obj", objects="surfaces")


# Sequences


def sequence():
    """Return the lines of a sequence: a header, and features with vertices of their own."""
    header = City(transform={"scale": [0.5, 0.5, 0.5], "translate": [100, 0, 0]}).document()
    lines = [header]
    for number in range(3):
        town = City()
        town.add(f"f{number}", "Building", town.body("0", 20 * number), number=number)
        part = town.body("2.2", 20 * number, 10 + number)
        town.add(f"f{number}-0", "BuildingPart", part, parents=[f"f{number}"])
        lines.append(town.document() | {"type": "CityJSONFeature", "id": f"f{number}"})
    return lines


def written(path, lines, end="\n"):
    path.write_text(end.join(map(json.dumps, lines)) + end)
    return path


@pytest.mark.parametrize("name", ["a.city.jsonl", "a.jsonl", "a.city.json"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\n\x1e"])
def test_a_sequence_is_its_features(tmp_path, name, end):
    found = read(written(tmp_path / name, sequence(), end))
    assert found.ids == ["f0-0", "f1-0", "f2-0"]
    assert found.labels["number"] == [0, 1, 2]
    boxes = read(tmp_path / name, boxes=True).geometry
    assert boxes.lower.tolist() == [[100, 0, 0], [110, 0, 0], [120, 0, 0]]
    assert boxes.upper.tolist() == [[105, 5, 5], [115, 5, 5.5], [125, 5, 6]]


def test_a_sequence_has_the_templates_of_its_header(tmp_path):
    lines = sequence()
    corners = [[0, 0, 0], [4, 0, 0], [0, 4, 0]]
    templates = [geometry("MultiSurface", "3", [[[0, 1, 2]]])]
    lines[0]["geometry-templates"] = {"templates": templates, "vertices-templates": corners}
    anchor = lines[2]["vertices"].index([30, 10, 0])
    placed = {"type": "GeometryInstance", "template": 0, "boundaries": [anchor]}
    placed |= {"transformationMatrix": np.eye(4).ravel().tolist()}
    lines[2]["CityObjects"]["tree"] = {"type": "SolitaryVegetationObject", "geometry": [placed]}
    mesh = rb.load(written(tmp_path / "a.city.jsonl", lines))
    (tree,) = mesh.triangles[mesh.objects == mesh.ids.tolist().index("tree")]
    assert tree.tolist() == [[115, 5, 0], [119, 5, 0], [115, 9, 0]]


BROKEN = {
    "begins with a CityJSONFeature, not with the header": lambda lines: lines.pop(0),
    "the city object 'f0' stands twice": lambda lines: lines.append(lines[1]),
    "a feature has transform of its own": lambda lines: lines[2].update(transform={}),
    "line 5, column 1: is not whole JSON: Extra data": lambda lines: lines.append({"type": "CityJSON"}),
    "it lacks 'vertices'": lambda lines: lines[3].pop("vertices"),
    "city object 'f2-0': its geometry is broken (vertex 11": lambda lines: lines[3]["vertices"].pop(),
    "has no city object with surfaces": lambda lines: lines.__delitem__(slice(1, None)),
}


@pytest.mark.parametrize("problem", BROKEN)
def test_broken_sequences_are_named(tmp_path, problem):
    lines = sequence()
    BROKEN[problem](lines)
    assert problem in refused(written(tmp_path / "a.city.jsonl", lines))


def test_a_sequence_that_is_cut_off(tmp_path):
    path = written(tmp_path / "a.city.jsonl", sequence())
    path.write_text(path.read_text()[:-40])
    assert re.search(r"line 4, column .*is not whole JSON", refused(path))


# Names that stand twice

HARMLESS = {
    ('"attributes": {', '"attributes": {"h": 1, "h": 1, "h": {"h": 2, "h": 3}, '): 3,
    (
        '"geometry": [{',
        '"b": {"a": 1, "a": 2}, "+x": 1, "+x": 2, "geometry": [{"texture": 1, "texture": 2, ',
    ): 3,
    (
        '{"type": "CityJSON",',
        '{"metadata": {"title": 1, "title": 2, "lod": 1, "lod": 2}, "type": "CityJSON",',
    ): 2,
}
HARMFUL = {
    "vertices": ('"vertices": ', '"vertices": [], "vertices": '),
    "CityObjects": ('"CityObjects": ', '"CityObjects": {}, "CityObjects": '),
    "type": ('{"type": "CityJSON",', '{"type": "CityJSON", "type": "CityJSON",'),
    "boundaries": ('"boundaries": ', '"boundaries": [], "boundaries": '),
    "lod": ('"lod": ', '"lod": "1", "lod": '),
    "geometry": ('"geometry": ', '"geometry": [], "geometry": '),
    "metadata": ('"CityObjects": {', '"CityObjects": {"metadata": {}, "metadata": {}, '),
    "parents": ('"attributes": ', '"parents": [], "parents": [], "attributes": '),
}


def repeating(put, old, new):
    """Return a file of one building, in which a text is replaced by one that repeats a name."""
    town = City()
    town.add("a", "Building", town.body("2"), use="office")
    text = json.dumps(town.document())
    assert old in text
    return put("a.city.json", text.replace(old, new))


@pytest.mark.parametrize("change", HARMLESS)
def test_a_repeated_attribute_is_counted_and_the_last_value_counts(put, change):
    mesh, skipped = counted(repeating(put, *change))
    reason = "values whose name stands twice in one JSON object, all but the last"
    assert (len(mesh), skipped) == (12, {reason: HARMLESS[change]})
    if "attributes" in change[0]:
        assert mesh.labels["h"].tolist() == ['{"h": 3}']


@pytest.mark.parametrize("name", HARMFUL)
def test_a_repeated_name_that_is_read_is_refused(put, name):
    assert f"the name '{name}' stands twice" in refused(repeating(put, *HARMFUL[name]))


# Units

SYSTEMS = {
    "https://www.opengis.net/def/crs/EPSG/0/7415": "metre",
    "urn:ogc:def:crs:EPSG::28992": "metre",
    "EPSG:25832": "metre",
    "urn:ogc:def:crs,crs:EPSG::25832,crs:EPSG::5783": "metre",
    "http://www.opengis.net/def/crs/EPSG/9.9.1/4979": "degree",
    "https://www.opengis.net/def/crs/OGC/0/CRS84h": "degree",
    "https://www.opengis.net/def/crs/EPSG/0/2263": "US survey foot",
    **dict.fromkeys(("https://www.opengis.net/def/crs/EPSG/0/27492", "here", 7415, None)),
}


METADATA = [({"referenceSystem": system}, units) for system, units in SYSTEMS.items()]


@pytest.mark.parametrize(("metadata", "units"), [*METADATA, (["none"], None), (None, None)])
def test_units_are_those_of_the_reference_system(tmp_path, metadata, units):
    town = City(**({"metadata": metadata} if metadata else {}))
    town.add("a", "Building", town.body("2"))
    found = read(town.write(tmp_path / "a.city.json"))
    assert (found.units, found.up) == (units, "z")
