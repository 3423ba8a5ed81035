"""CityJSON: families of buildings and parts, semantic surfaces, sequences, names that stand twice, units."""

import json

import numpy as np
import pytest

import raybox as rb
from raybox.errors import FileFormatError, InvalidInput, SkippedWarning
from raybox.files import read
from real_data import CITY

DOWN = rb.Rays([5, 5, 50], [0, 0, -1])
COARSE = "city objects whose parts have a higher level of detail"
TWICE = "values whose name stands twice in one JSON object, all but the last"


def prism(x, height):
    """Return the vertices of a prism of 10 x 10, and its faces: floor, roof, walls."""
    ring = [(x, 0), (x + 10, 0), (x + 10, 10), (x, 10)]
    walls = [[[a, b, b + 4, a + 4]] for a, b in ((0, 1), (1, 2), (2, 3), (3, 0))]
    return [[*at, z] for z in (0, height) for at in ring], [[[3, 2, 1, 0]], [[4, 5, 6, 7]], *walls]


class Town:
    """A document of prisms, each with vertices of its own."""

    def __init__(self, **header):
        self.vertices, self.objects, self.header = [], {}, header

    def body(self, lod, x=0, height=5, semantics=None):
        """Return a solid of a level of detail; level 0 is the floor alone."""
        points, faces = prism(x, height)
        first = len(self.vertices)
        self.vertices += points
        faces = [[[corner + first for corner in ring] for ring in face] for face in faces]
        if str(lod).startswith("0"):
            return {"type": "MultiSurface", "lod": lod, "boundaries": faces[:1]}
        extra = {} if semantics is None else {"semantics": semantics}
        return {"type": "Solid", "lod": lod, "boundaries": [faces]} | extra

    def add(self, name, kind, /, *geometry, parents=(), **attributes):
        parents = {"parents": list(parents)} if parents else {}
        item = {"type": kind, "attributes": attributes, "geometry": list(geometry)}
        self.objects[name] = item | parents

    def document(self):
        return {
            "type": "CityJSON",
            "version": "2.0",
            "CityObjects": self.objects,
            "vertices": self.vertices,
            **self.header,
        }

    def write(self, path):
        path.write_text(json.dumps(self.document()))
        return path


# Families


def ids(path, **options):
    return read(path, **options).ids


def test_the_footprint_of_a_building_is_not_its_highest_level(tmp_path):
    town = Town()
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
    town = Town()
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
    town = Town()
    town.add("a", "Building", town.body("1"), {"type": "Solid", "lod": "2", "boundaries": []})
    assert ids(town.write(tmp_path / "a.city.json")) == ["a"]


def test_what_is_added_to_a_building_does_not_replace_its_walls(tmp_path):
    town = Town()
    town.add("house", "Building", town.body("2"))
    town.add("chimney", "BuildingInstallation", town.body("3", height=9), parents=["house"])
    town.add("shed", "Building", town.body("0.1", 20))
    town.add("awning", "BuildingInstallation", town.body("2", 20), parents=["shed"])
    path = town.write(tmp_path / "a.city.json")
    assert ids(path) == ["house", "chimney", "awning"]


def test_parts_of_parts_and_broken_families(tmp_path):
    town = Town()
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
    town = Town()
    values = {"surfaces": SURFACES, "values": [[0, 1, 2, 2, 2, None]]}
    town.add("a", "Building", height=5.0)
    town.add("a-0", "BuildingPart", town.body("2", semantics=values), parents=["a"])
    town.add("b", "Building", town.body("2", 20), slope=2.0)
    path = town.write(tmp_path / "a.city.json")
    mesh = rb.load(path, objects="surfaces")
    assert mesh.ids.tolist() == ["a-0/GroundSurface/0", "a-0/RoofSurface/1", "a-0/WallSurface/2", "a-0", "b"]
    assert np.bincount(mesh.objects).tolist() == [2, 2, 6, 2, 12]
    labels = {name: values.tolist() for name, values in mesh.labels.items()}
    assert labels["surface"] == ["GroundSurface", "RoofSurface", "WallSurface", None, None]
    assert labels["type"] == ["Building"] * 5
    assert labels["height"][:4] == [5.0] * 4
    np.testing.assert_array_equal(labels["slope"], [np.nan, 0.5, np.nan, np.nan, 2.0])
    roof = rb.Scene(mesh).nearest(rb.Rays([5, 5, -9], [0, 0, 1]), where="surface == 'RoofSurface'")
    assert (roof.t, roof.ids) == (14, "a-0/RoofSurface/1")
    assert len(rb.load(path, objects="surfaces", boxes=True)) == 5
    whole = rb.load(path)
    assert sorted(mesh.triangles.tolist()) == sorted(whole.triangles.tolist())
    assert "surface" not in whole.labels


def test_surfaces_of_several_geometries_shells_and_templates(tmp_path):
    town = Town()
    first, second = (town.body("2", 20 * k)["boundaries"] for k in range(2))
    many = {"type": "MultiSolid", "lod": "2", "boundaries": [first, second]}
    many["semantics"] = {"surfaces": [{"type": "Door"}, {}], "values": [None, [[0, 1, 1, 1, 1, 0]]]}
    sheet = {"type": "MultiSurface", "lod": "2", "boundaries": [[[0, 1, 2, 3]]]}
    sheet["semantics"] = {"surfaces": [{"type": "Door"}], "values": [0]}
    none = {"type": "MultiSurface", "lod": "2", "boundaries": [[[0, 1, 2]]]}
    none["semantics"] = {"surfaces": [{"type": "Door"}], "values": None}
    town.add("a", "Building", many, sheet, none)
    town.header["geometry-templates"] = {
        "templates": [{**sheet, "boundaries": [[[0, 1, 2]]]}],
        "vertices-templates": [[0, 0, 0], [1, 0, 0], [0, 1, 0]],
    }
    placed = {"type": "GeometryInstance", "template": 0, "boundaries": [0]}
    town.add("t", "CityFurniture", placed | {"transformationMatrix": np.eye(4).ravel().tolist()})
    found = read(town.write(tmp_path / "a.city.json"), objects="surfaces")
    assert found.ids == ["a", "a/Door/0", "a/surface/1", "a/Door/2", "t/Door/0"]
    assert np.bincount(found.geometry.objects).tolist() == [13, 4, 8, 2, 1]
    assert found.labels["surface"] == [None, "Door", None, "Door", "Door"]


def test_ids_of_surfaces_are_unlike_all_others(tmp_path):
    town = Town()
    kinds = {"surfaces": [{"type": "b/c"}, {"type": "c"}], "values": [[0, 1, 1, 1, 1, 1]]}
    for number, name in enumerate(("a", "a/b", "a/b/c/1", "a/b c/0")):
        town.add(name, "Building", town.body("2", 20 * number, semantics=kinds))
    town.add("a/c/1", "Road", town.body("2", 99))
    found = read(town.write(tmp_path / "a.city.json"), objects="surfaces")
    assert len(set(found.ids)) == len(found.ids) == 9
    assert found.ids[:2] == ["a/b c/0'", "a/c/1'"]


@pytest.mark.parametrize(
    "semantics",
    [
        {"surfaces": SURFACES, "values": [[0, 1]]},
        {"surfaces": SURFACES, "values": [[0, 1, 2, 2, 2, 3]]},
        {"surfaces": SURFACES, "values": [[0, 1, 2, 2, 2, -1]]},
        {"surfaces": SURFACES, "values": [0, 1, 2, 2, 2, 2]},
        {"surfaces": SURFACES, "values": [[0, 1, 2, 2, 2, True]]},
        {"surfaces": SURFACES},
    ],
)
def test_semantics_that_do_not_fit_cost_no_surface(tmp_path, semantics):
    town = Town()
    town.add("a", "Building", town.body("2", semantics=semantics))
    path = town.write(tmp_path / "a.city.json")
    assert len(rb.load(path)) == 12
    with pytest.warns(SkippedWarning, match="semantics that do not fit"):
        found = read(path, objects="surfaces")
    assert (found.ids, len(found.geometry)) == (["a"], 12)


def test_objects_is_for_cityjson(tmp_path):
    town = Town()
    town.add("a", "Building", town.body("2"))
    with pytest.raises(InvalidInput, match='objects must be "surfaces" or None; got'):
        rb.load(town.write(tmp_path / "a.city.json"), objects="walls")
    with pytest.raises(
        InvalidInput, match=r"objects is for files of CityJSON \(\.json \.jsonl\); got it with a\.obj"
    ):
        rb.load(tmp_path / "a.obj", objects="surfaces")


# Sequences


def sequence():
    """Return the lines of a sequence: a header, and features with vertices of their own."""
    header = Town(transform={"scale": [0.5, 0.5, 0.5], "translate": [100, 0, 0]}).document()
    lines = [header]
    for number in range(3):
        town = Town()
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
    triangle = {"type": "MultiSurface", "lod": "3", "boundaries": [[[0, 1, 2]]]}
    corners = [[0, 0, 0], [4, 0, 0], [0, 4, 0]]
    lines[0]["geometry-templates"] = {"templates": [triangle], "vertices-templates": corners}
    placed = {"type": "GeometryInstance", "template": 0, "boundaries": [6]}
    lines[2]["CityObjects"]["tree"] = {
        "type": "SolitaryVegetationObject",
        "geometry": [placed | {"transformationMatrix": np.eye(4).ravel().tolist()}],
    }
    mesh = rb.load(written(tmp_path / "a.city.jsonl", lines))
    (tree,) = mesh.triangles[mesh.objects == mesh.ids.tolist().index("tree")]
    assert tree.tolist() == [[115, 5, 2.5], [119, 5, 2.5], [115, 9, 2.5]]


def broken(change):
    lines = sequence()
    change(lines)
    return lines


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda s: s.pop(0), "begins with a CityJSONFeature, not with the header"),
        (lambda s: s.append(s[1]), "the city object 'f0' stands twice"),
        (lambda s: s[2].update(transform={}), "a feature has transform of its own"),
        (lambda s: s.append({"type": "CityJSON"}), "line 5, column 1: is not whole JSON: Extra data"),
        (lambda s: s[3].pop("vertices"), "it lacks 'vertices'"),
        (lambda s: s[3]["vertices"].pop(), "city object 'f2-0': its geometry is broken (vertex 15 does not"),
        (lambda s: s.__delitem__(slice(1, None)), "has no city object with surfaces"),
    ],
)
def test_broken_sequences_are_named(tmp_path, change, problem):
    path = written(tmp_path / "a.city.jsonl", broken(change))
    with pytest.raises(FileFormatError) as error:
        rb.load(path)
    assert problem in str(error.value)


def test_a_sequence_that_is_cut_off(tmp_path):
    path = written(tmp_path / "a.city.jsonl", sequence())
    path.write_text(path.read_text()[:-40])
    with pytest.raises(FileFormatError, match=r"line 4, column .*is not whole JSON"):
        rb.load(path)


# Names that stand twice

HARMLESS = {
    '"attributes": {': '"attributes": {"h": 1, "h": 1, "h": {"h": 2, "h": 3}, ',
    '"geometry": [{': '"b": {"a": 1, "a": 2}, "+x": 1, "+x": 2, "geometry": [{"texture": 1, "texture": 2, ',
    '{"type": "CityJSON",': '{"metadata": {"title": 1, "title": 2, "lod": 1, "lod": 2}, "type": "CityJSON",',
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


@pytest.mark.parametrize("place", HARMLESS)
def test_a_repeated_attribute_is_counted_and_the_last_value_counts(tmp_path, place):
    town = Town()
    town.add("a", "Building", town.body("2"), use="office")
    path = town.write(tmp_path / "a.city.json")
    text = path.read_text()
    assert place in text
    path.write_text(text.replace(place, HARMLESS[place]))
    with pytest.warns(SkippedWarning, match="stands twice"):
        mesh = rb.load(path)
    assert len(mesh) == 12
    assert mesh.skipped == {TWICE: {0: 3, 1: 3, 2: 2}[[*HARMLESS].index(place)]}
    if place == '"attributes": {':
        assert mesh.labels["h"].tolist() == ['{"h": 3}']


@pytest.mark.parametrize("name", HARMFUL)
def test_a_repeated_name_that_is_read_is_refused(tmp_path, name):
    town = Town()
    town.add("a", "Building", town.body("2"))
    path = town.write(tmp_path / "a.city.json")
    old, new = HARMFUL[name]
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(FileFormatError, match=f"the name '{name}' stands twice"):
        rb.load(path)


# Units


@pytest.mark.parametrize(
    ("system", "units"),
    [
        ("https://www.opengis.net/def/crs/EPSG/0/7415", "metre"),
        ("urn:ogc:def:crs:EPSG::28992", "metre"),
        ("EPSG:25832", "metre"),
        ("urn:ogc:def:crs,crs:EPSG::25832,crs:EPSG::5783", "metre"),
        ("http://www.opengis.net/def/crs/EPSG/9.9.1/4979", "degree"),
        ("https://www.opengis.net/def/crs/OGC/0/CRS84h", "degree"),
        ("https://www.opengis.net/def/crs/EPSG/0/2263", "US survey foot"),
        ("https://www.opengis.net/def/crs/EPSG/0/27492", None),
        ("here", None),
        (7415, None),
        (None, None),
    ],
)
def test_units_are_those_of_the_reference_system(tmp_path, system, units):
    town = Town(metadata={"referenceSystem": system})
    town.add("a", "Building", town.body("2"))
    found = read(town.write(tmp_path / "a.city.json"))
    assert (found.units, found.up) == (units, "z")


def test_a_city_without_metadata_states_no_units(tmp_path):
    town = Town()
    town.add("a", "Building", town.body("2"))
    assert read(town.write(tmp_path / "a.city.json")).units is None
    town.header["metadata"] = ["none"]
    assert read(town.write(tmp_path / "a.city.json")).units is None
    assert read(CITY).units == "metre"
