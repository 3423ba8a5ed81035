"""CityJSON: triangles of cities of our own and of a real one, against their polygons, parsed again here."""

import json
import math
from fractions import Fraction
from itertools import chain

import numpy as np
import pytest

import raybox as rb
from cities import City, block, geometry, prism
from polygon_truth import newell
from raybox.errors import FileFormatError, InvalidInput
from raybox.files import read
from raybox.io.formats.cityjson import levels
from real_data import CITY
from refusals import counted, refused

DEPTHS = {"MultiSurface": 0, "CompositeSurface": 0, "Solid": 1, "MultiSolid": 2, "CompositeSolid": 2}


L_SHAPE = [(0, 0), (12, 0), (12, 4), (4, 4), (4, 12), (0, 12)]
COURT = [(1, 1), (1, 3), (3, 3), (3, 1)]
NOOK = [(6, 1), (5, 2), (5, 3), (8, 3), (7, 2), (8, 1)]
STAR = [(30, 0), (33, 6), (40, 7), (34, 10), (35, 17), (30, 12), (25, 17), (26, 10), (20, 7), (27, 6)]


def made_city():
    """Return a city of every type of geometry, with concave polygons, holes, levels, parts and templates."""
    city = City(transform={"scale": [0.5, 0.25, 0.5], "translate": [100.0, -50.0, 8.0]})
    hall = city.surfaces(prism(L_SHAPE, [COURT, NOOK]))
    city.add(
        "hall",
        "Building",
        geometry("MultiSurface", "1", city.surfaces(block(-2, -2, 20))),
        geometry("Solid", "2.10", [hall]),
        geometry("Solid", "2.2", [city.surfaces(block(0, 0, 12, 0, 5))]),
        **{"storeys": 3, "height": 4.5, "listed": True, "use": "office", "area": 7},
    )
    tower = city.surfaces(block(1, 5, 2, 4, 9))
    attributes = {"storeys": None, "height": 5, "use": "", "address": {"street": "Markt", "no": [1, 2]}}
    city.add(
        "hall-tower", "BuildingPart", geometry("CompositeSurface", 2, tower), parents=["hall"], **attributes
    )
    shells = [city.surfaces(block(60, 0, 8)), city.surfaces(block(62, 2, 3, 1, 3))]
    other = [city.surfaces(prism(STAR, [], 0, 6))]
    city.add("two", "Building", geometry("MultiSolid", "1.2", [shells, other]), storeys=2**40, type="x")
    city.add("one", "Bridge", geometry("CompositeSolid", "1.2", [[city.surfaces(block(44, 0, 5))]]))
    city.add("group", "CityObjectGroup")
    city.add("lamp", "CityFurniture", geometry("MultiPoint", "3", [0, 1]))
    city.header["geometry-templates"] = {
        "templates": [
            geometry("MultiSurface", "2", [[[0, 1, 2, 3], [4, 5, 6]], [[0, 4, 1]]]),
            geometry("Solid", "3", [[[[0, 1, 2]]]]),
        ],
        "vertices-templates": [[0.0, 0.0, 0.0], [8.0, 0.0, 0.0], [2.0, 2.0, 0.0], [0.0, 8.0, 0.0],
                               [0.5, 0.5, 0.0], [0.5, 1.0, 0.0], [1.0, 0.5, 0.0]],
    }  # fmt: skip
    upright, quarter_turn, mirrored = (
        [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0.5],
        [0, -2, 0, 1, 1, 0, 0, 0, 0, 0, 1, 0],
        [-1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0],
    )
    for k, rows in enumerate((upright, quarter_turn, mirrored)):
        anchor, matrix = [city.number((10 * k, 40, 1))], [*rows, 0, 0, 0, 1]
        tree = {"type": "GeometryInstance", "template": 0, "boundaries": anchor}
        city.add(f"tree-{k}", "SolitaryVegetationObject", tree | {"transformationMatrix": matrix})
    return city


def truth(document, lod=None):
    """Return the polygons of each object (rings of Fractions) of its highest level, or of one."""
    scale, move = ([Fraction(float(x)) for x in document["transform"][k]] for k in ("scale", "translate"))
    points = [
        tuple(Fraction(x) * s + m for x, s, m in zip(point, scale, move, strict=True))
        for point in document["vertices"]
    ]
    templates = document.get("geometry-templates", {"templates": []})
    found = {}
    for name, item in document["CityObjects"].items():
        by_level = {}
        for given in item["geometry"]:
            one, place, turn = given, points.__getitem__, 1
            if given["type"] == "GeometryInstance":
                place = placed(given, points, templates["vertices-templates"])
                one = templates["templates"][given["template"]]
                matrix = np.reshape(given["transformationMatrix"], (4, 4))
                turn = int(np.sign(np.linalg.det(matrix)))  # a mirrored template faces the side of its matrix
            if one["type"] not in DEPTHS:
                continue
            surfaces = one["boundaries"]
            for _ in range(DEPTHS[one["type"]]):
                surfaces = [surface for shell in surfaces for surface in shell]
            level = tuple(int(part) for part in str(one["lod"]).split("."))
            by_level.setdefault(level, []).extend(
                [[[place(c) for c in ring][::turn] for ring in s] for s in surfaces]
            )
        wanted = max(by_level, default=None) if lod is None else tuple(int(part) for part in lod.split("."))
        if wanted in by_level:
            found[name] = by_level[wanted]
    return found


def placed(one, points, corners):
    matrix = np.reshape(one["transformationMatrix"], (4, 4))
    anchor = points[one["boundaries"][0]]

    def place(corner):
        return tuple(
            sum(Fraction(float(matrix[i, j])) * Fraction(corners[corner][j]) for j in range(3))
            + Fraction(float(matrix[i, 3]))
            + anchor[i]
            for i in range(3)
        )

    return place


@pytest.mark.parametrize("lod", [None, "1", "1.2", "2.2"])
def test_triangles_are_the_polygons_of_the_file(tmp_path, lod):
    """The same corners, and exactly the same area along each axis, with and without its sign."""
    path = made_city().write(tmp_path / "made.city.json")
    polygons = truth(json.loads(path.read_text()), lod)
    mesh, boxes = rb.load(path, lod=lod), rb.load(path, lod=lod, boxes=True)
    assert mesh.ids.tolist() == boxes.ids.tolist() == list(polygons)
    assert boxes.labels == mesh.labels
    for number, surfaces in enumerate(polygons.values()):
        corners = mesh.triangles[mesh.objects == number]
        triangles = [[tuple(map(Fraction, point)) for point in one] for one in corners.tolist()]
        points = {point for rings in surfaces for ring in rings for point in ring}
        assert {point for one in triangles for point in one} == points
        wanted = [[*map(sum, zip(*map(newell, rings), strict=True))] for rings in surfaces]
        assert areas([newell(one) for one in triangles]) == areas(wanted)
        ends = np.array([[float(x) for x in point] for point in points])
        assert boxes.lower[number].tolist() == ends.min(axis=0).tolist()
        assert boxes.upper[number].tolist() == ends.max(axis=0).tolist()


def areas(normals):
    """Return the sums along each axis, with signs and without."""
    return [(sum(along), sum(map(abs, along))) for along in zip(*normals, strict=True)]


def test_labels_have_the_types_of_the_attributes(tmp_path):
    mesh = rb.load(made_city().write(tmp_path / "made.city.json"))
    labels = {name: values.tolist()[:4] for name, values in mesh.labels.items()}
    assert mesh.ids.tolist()[:4] == ["hall", "hall-tower", "two", "one"]
    assert labels.pop("height")[:2] == [4.5, 5.0]
    assert labels == {
        "type": ["Building", "Building", "Building", "Bridge"],
        "part_type": ["Building", "BuildingPart", "Building", "Bridge"],
        "parent": [None, "hall", None, None],
        "storeys": [3, None, 2**40, None],
        "listed": [True, True, None, None],
        "use": ["office", "", None, None],
        "area": [7, 7, None, None],
        "address": [None, '{"street": "Markt", "no": [1, 2]}', None, None],
        "attribute_type": [None, None, "x", None],
    }
    assert mesh.labels["height"].dtype == np.float64


def test_levels_are_compared_as_numbers(tmp_path):
    path = made_city().write(tmp_path / "made.city.json")
    assert levels(path) == {"1": 1, "1.2": 2, "2": 4, "2.2": 1, "2.10": 1}
    assert dict(rb.load(path).skipped) == {
        "city objects without surfaces": 2,
        "geometries of points or lines": 1,
    }
    only = read(path, lod="2.0")
    assert only.ids == ["hall-tower", "tree-0", "tree-1", "tree-2"]
    assert only.left_out["city objects without surfaces of level 2.0"] == 5
    assert not only.skipped
    with pytest.raises(FileFormatError, match=r"no city object with surfaces of level 3; choose .*1 \(1\)"):
        rb.load(path, lod="3")
    for wrong in ("two", "", "1.", "-1", "²"):
        with pytest.raises(InvalidInput, match="lod must be a level of detail"):
            rb.load(path, lod=wrong)
    city = City()
    city.add("x", "Building", geometry("MultiSurface", None, city.surfaces(block(0, 0, 1)[:1])),
             geometry("MultiSurface", 1.5, city.surfaces(block(0, 0, 1)[:2])))  # fmt: skip
    path = city.write(tmp_path / "numbers.city.json")
    assert levels(path) == {"": 1, "1.5": 1}
    assert len(rb.load(path)) == 4
    assert len(rb.load(path, lod="1.5")) == 4


def test_losses_are_named_and_counted(tmp_path):
    city = City()
    bow = [[(0, 0, 0), (2, 2, 0), (2, 0, 0), (0, 3, 0)]]
    short = [[(0, 0, 0), (1, 0, 0)]]
    city.add(
        "bad roof", "Building", geometry("MultiSurface", "2", city.surfaces([bow, *block(0, 0, 2), short]))
    )
    city.add(
        "new",
        "Building",
        geometry("Brep", "2", []),
        geometry("MultiSurface", "1", city.surfaces(block(3, 0, 2))),
    )
    city.add("gone", "Building", geometry("MultiSurface", "2", city.surfaces([bow])))
    mesh, skipped = counted(city.write(tmp_path / "lossy.city.json"))
    assert mesh.ids.tolist() == ["bad roof", "new", "gone"]
    assert mesh.objects.tolist() == [0] * 14 + [1] * 12 + [2] * 2
    not_flat = "exact shapes of polygons that are not flat or cross themselves, in city object"
    assert skipped == {
        "polygons of fewer than three corners in city object 'bad roof'": 1,
        f"{not_flat} 'bad roof'": 1,
        f"{not_flat} 'gone'": 1,
        "geometries of the unknown type 'Brep'": 1,
    }


def bent(change):
    document = made_city().document()
    change(document)
    return json.dumps(document)


def of(name, **members):
    return lambda d: d["CityObjects"][name]["geometry"][0].update(members)


def instance(**members):
    return of("tree-0", **members)


SHORT = [[[[[0, 1, 999]]]]]
TWO = [1, 0, 0, 0] * 3 + [0, 0, 0, 2]
WRONG = {
    "city object 'one': its geometry is broken (vertex 999 does not": of("one", boundaries=SHORT),
    "city object 'one': its geometry is broken (vertex -1 does not": of("one", boundaries=[[[[[0, 1, -1]]]]]),
    "city object 'one': its geometry is broken (True is not the": of("one", boundaries=[[[[[0, 1, True]]]]]),
    "city object 'one': its geometry is broken (1.0 is not the": of("one", boundaries=[[[[[0, 1.0, 2]]]]]),
    "city object 'one': its geometry is broken ([0, 1, 2] is not": of("one", boundaries=[[[[[[0, 1, 2]]]]]]),
    "city object 'one': its geometry is broken": of("one", boundaries=[[[0, 1, 2]]]),
    "city object 'two': its geometry is broken ('high' is no level": of("two", lod="high"),
    "city object 'two': its geometry is broken (True is no level": of("two", lod=True),
    "city object 'tree-0': its geometry is broken (template -1 does": instance(template=-1),
    "city object 'tree-0': its geometry is broken (template 2 does": instance(template=2),
    "(the last row of its matrix is [0.0, 0.0, 0.0, 2.0]": instance(transformationMatrix=TWO),
    "city object 'tree-0': its geometry is broken (vertex 999": instance(boundaries=[999]),
    "(a template is placed at one vertex, this one at 2)": of("tree-1", boundaries=[0, 1]),
    "(matrix: these are not 16 numbers)": instance(transformationMatrix=[1] * 15),
    "(scales: these are not 3 numbers)": lambda d: d["transform"].update(scale=["1", 1, 1]),
    "(vertices are not rows of 3 numbers)": lambda d: d["vertices"].__setitem__(1, [0, 1]),
    "(vertices: these are not": lambda d: d["vertices"].__setitem__(1, [0, True, 1]),
    "is not laid out as CityJSON (it lacks 'vertices')": lambda d: d.pop("vertices"),
    "vertex 2 has the number 9007199254740993, which float64 rounds": (
        lambda d: d["vertices"].__setitem__(2, [0, 9007199254740993, 0])
    ),
    "is CityJSON '3.0'; supported are versions 1.0, 1.1, 2.0": lambda d: d.update(version="3.0"),
    "its parents are no list": lambda d: d["CityObjects"]["hall-tower"].update(parents="hall"),
    "its attributes no JSON object": lambda d: d["CityObjects"]["hall"].update(attributes=[1]),
    "nan is not a finite number": lambda d: d["vertices"].__setitem__(0, [0, math.nan, 0]),
}  # fmt: skip


DEEP = b'{"type": "CityJSON", "vertices": [], "CityObjects": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
DOCUMENTS = {
    "'type' stands twice": b'{"type": "CityJSON", "version": "2.0", "type": "CityJSON"}',
    "it lacks 'vertices'": b'{"type": "CityJSON", "version": "2.0"}\n{"type": "CityJSONFeature"}\n',
    "(CityJSONSeq)": b'{"type": "CityJSONFeature", "id": "a"}',
    "is no text in UTF-8: byte 34": b'{"type": "CityJSON", "version": "2\xff0"}',
    'not a CityJSON city ("type": "CityJSON")': b"{}",
    "not a CityJSON city": b"[]",
    "is not whole JSON: Extra data": b'{"type": "CityJSON"} 5',
    "line 1, column": b'{"type": "CityJSON",',
    "is not laid out as CityJSON; check it": DEEP,
}


@pytest.mark.parametrize("problem", [*WRONG, *DOCUMENTS])
def test_damaged_cities_are_errors_of_one_line(put, problem):
    content = bent(WRONG[problem]) if problem in WRONG else DOCUMENTS[problem]
    assert problem in refused(put("a.city.json", content))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_harmless_differences(tmp_path, encoding):
    plain = rb.load(made_city().write(tmp_path / "plain.city.json"))

    def harmless(document):
        document["vertices"].append([0, math.nan, 0])  # no surface has it
        document["CityObjects"]["group"]["geometry"] = None
        document["CityObjects"]["hall"]["geometry"][1]["boundaries"][0][0].append(
            []
        )  # a hole without corners

    path = tmp_path / "other.city.json"
    path.write_bytes((bent(harmless) + "\r\n\n").encode(encoding))
    same = rb.load(path)
    np.testing.assert_array_equal(same.triangles, plain.triangles)
    assert same.labels == plain.labels


def test_triangles_of_a_real_city_are_those_of_its_file():
    document = json.loads(CITY.read_text())
    scale, move = document["transform"]["scale"], document["transform"]["translate"]
    points = np.array(document["vertices"]) * scale + move
    corners, owners = [], []
    for number, item in enumerate(document["CityObjects"].values()):
        (one,) = item["geometry"]
        surfaces = one["boundaries"] if one["type"] == "MultiSurface" else [*chain(*one["boundaries"])]
        corners += [ring for (ring,) in surfaces]
        owners += [number] * len(surfaces)
    mesh = rb.load(CITY)
    np.testing.assert_array_equal(mesh.triangles, points[corners])
    assert (mesh.objects.tolist(), mesh.ids.tolist()) == (owners, list(document["CityObjects"]))
    assert (mesh.labels["measuredHeight"].dtype, mesh.units) == (np.float64, "metre")
