"""Commands on files of objects: ids and labels of what is hit, filters, levels of detail, losses."""

import base64
import gzip
import json
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest

import raybox as rb
from cities import City, geometry
from commands import cast, raybox
from needs import package
from raybox.geometry.labels import with_facts
from raybox.viewer.stage import make_stage
from streaming import get, stopping_at


def city():
    """Return CityJSON: a house of two levels, a shed of one without a name, a tree of points."""
    town = City()
    blocks = {"house": (2, [("1.2", 1.0), ("2.2", 3.0)]), "shed": (5, [("2.2", 2.0)])}
    attributes = {"house": {"name": "Town, hall", "floors": 3}, "shed": {"floors": None}}
    for name, (x, levels) in blocks.items():
        bodies = [town.body(lod, x, height, size=1) for lod, height in levels]
        town.add(name, "Building", *bodies, **attributes[name])
    town.add("tree", "SolitaryVegetationObject", geometry("MultiPoint", None, [0]))
    return town.document()


RAY = "--origin", "0,0.4,0.5", "--direction", "1,0,0"
CROSSED = [[0, 0, 0], [1, 1, 0], [0, 1, 0], [1, 0, 0]]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to a folder with a city, rays, and boxes with labels."""
    monkeypatch.chdir(tmp_path)
    Path("city.json").write_text(json.dumps(city()))
    rb.save("rays.csv", rb.Rays([[0, 0.4, 0.5], [0, 0.4, 2.5], [0, 9, 0]], [1, 0, 0]))
    Path("boxes.csv").write_text(
        "id,min_x,min_y,min_z,max_x,max_y,max_z,kind,cost\na,2,-1,0,3,1,2,door,1.5\nb,5,-1,0,6,1,2,wall,\n"
    )
    return tmp_path


def columns(text):
    return [line.split() for line in text.splitlines()]


# pick


def test_pick_lists_objects_with_class_and_name(folder):
    done = raybox("pick", "city.json", *RAY)
    assert done.stdout == (
        "object  id     type      name        t_first  t_last  contacts  point\n"
        "     0  house  Building  Town, hall        2       3         2  2,0.4,0.5\n"
        "     1  shed   Building                    5       6         2  5,0.4,0.5\n"
    )
    assert done.stderr.splitlines() == [
        "raybox: city.json: left out: geometries of points or lines (1), city objects without surfaces (1)"
    ]
    assert raybox("pick", "city.json", *RAY, "-q").stderr == ""


def test_pick_as_json_has_hits_and_objects_with_all_labels(folder):
    found = json.loads(raybox("pick", "city.json", *RAY, "--json").stdout)
    mesh = rb.load("city.json")
    hits = rb.Scene(mesh).all(rb.Rays([0, 0.4, 0.5], [1, 0, 0]))
    assert [row["index"] for row in found["hits"]] == hits.index.tolist()
    assert [row["object"] for row in found["hits"]] == hits.object.tolist() == [0, 0, 1, 1]
    assert [row["t"] for row in found["hits"]] == hits.t.tolist()
    assert list(found["hits"][0]) == ["index", "object", "id", "t", "point"]
    labels = {"type": "Building", "parent": None, "name": "Town, hall", "floors": 3}
    row = {"object": 0, "id": "house", "t_first": 2.0, "t_last": 3.0, "contacts": 2, "labels": labels}
    assert found["objects"][0] == row
    assert found["objects"][1]["labels"]["floors"] is None


def test_pick_of_boxes_has_their_labels(folder):
    ray = "--from", "0,0,1", "--to", "10,0,1"
    assert columns(raybox("pick", "boxes.csv", *ray).stdout) == [
        ["index", "id", "kind", "cost", "t", "point", "face"],
        ["0", "a", "door", "1.5", "0.2", "2,0,1", "-x"],
        ["1", "b", "wall", "nan", "0.5", "5,0,1", "-x"],
    ]
    found = json.loads(raybox("pick", "boxes.csv", *ray, "--json").stdout)
    assert list(found["hits"][0]) == ["index", "id", "t", "point", "face"]
    assert found["objects"][1]["labels"] == {"kind": "wall", "cost": None}
    assert found["objects"][1]["contacts"] == 1


def test_boxes_of_the_same_objects(folder):
    rows = columns(raybox("pick", "city.json", *RAY, "--boxes").stdout)
    assert rows[1][:3] == ["0", "house", "Building"]
    assert [row[-1] for row in rows[1:]] == ["-x", "-x"]


def test_a_file_of_several_is_numbered_on(folder):
    found = json.loads(raybox("pick", "city.json", "city.json", *RAY, "--json").stdout)
    assert [row["object"] for row in found["objects"]] == [0, 2, 1, 3]
    assert [row["id"] for row in found["objects"]] == ["house", "house", "shed", "shed"]


def test_ids_of_some_files_alone_are_left_out(folder):
    lines = Path("boxes.csv").read_text().splitlines()
    Path("other.csv").write_text("\n".join(line.split(",", 1)[1].rsplit(",", 2)[0] for line in lines) + "\n")
    rows = columns(raybox("pick", "boxes.csv", "other.csv", "--from", "0,0,1", "--to", "10,0,1").stdout)
    assert "id" not in rows[0]
    assert [row[0] for row in rows[1:]] == ["0", "2", "1", "3"]


# --where


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("floors >= 3", ["house"]),
        ("id != 'house'", ["shed"]),
        ("type == 'Building'", ["house", "shed"]),
        ("type == 'Road'", []),
    ],
)
def test_where_filters_what_is_hit(folder, where, ids):
    for boxes in ([], ["--boxes"]):
        found = json.loads(raybox("pick", "city.json", *RAY, "--json", "--where", where, *boxes).stdout)
        assert [row["id"] for row in found["objects"]] == ids
        rows = cast("city.json", "rays.csv", "--where", where, *boxes)
        assert [row["id"] for row in rows] == [ids[0] if ids else "", "house" if "house" in ids else "", ""]
        counted = cast("city.json", "rays.csv", "--query", "count", "--where", where, *boxes)
        assert int(counted[0]["count"]) == len(ids) * (1 if boxes else 2)


def test_where_keeps_the_numbers_of_the_file(folder):
    (first, *_) = cast("city.json", "rays.csv", "--where", "id == 'shed'")
    mesh = rb.load("city.json")
    assert (first["object"], first["t"]) == ("1", "5.0")
    assert mesh.objects[int(first["index"])] == 1


def test_a_filter_that_fits_nothing_says_so(folder):
    done = raybox("pick", "city.json", *RAY, "--where", "id == 'barn'")
    assert done.stdout == "the ray hits nothing\n"
    assert done.stderr.splitlines()[-1] == "raybox: --where: no object fits id == 'barn'"
    assert "no object fits" not in raybox("pick", "city.json", *RAY, "--where", "id == 'shed'").stderr


def test_where_of_info_and_deposit(folder):
    facts = json.loads(raybox("info", "city.json", "--where", "id == 'shed'", "--json").stdout)
    assert (facts["objects"], facts["count"], facts["ids"]) == (1, 12, ["shed"])
    facts = json.loads(raybox("info", "boxes.csv", "--where", "cost > 1", "--json").stdout)
    assert (facts["count"], facts["ids"]) == (1, ["a"])
    rows = cast("boxes.csv", "rays.csv", "--query", "deposit", "--where", "kind == 'wall'")
    assert [float(row["deposit"]) > 0 for row in rows] == [False, True]


# cast


def test_cast_names_objects_and_joins_labels(folder):
    rows = cast("city.json", "rays.csv", "--labels", "name,floors,type")
    assert list(rows[0]) == ["ray", "index", "object", "id", "t", "x", "y", "z", "name", "floors", "type"]
    assert [row["object"] for row in rows] == ["0", "0", "-1"]
    assert [row["id"] for row in rows] == ["house", "house", ""]
    assert [row["name"] for row in rows] == ["Town, hall", "Town, hall", ""]
    assert [row["floors"] for row in rows] == ["3", "3", ""]
    rows = cast("city.json", "rays.csv", "--query", "all", "--labels", "floors")
    assert [row["id"] for row in rows] == ["house", "house", "shed", "shed", "house", "house"]
    assert [row["floors"] for row in rows] == ["3", "3", "", "", "3", "3"]
    assert "object" not in cast("boxes.csv", "rays.csv")[0]


def test_all_labels_and_a_label_that_is_the_id(folder):
    assert list(cast("boxes.csv", "rays.csv", "--labels", "all")[0])[-2:] == ["kind", "cost"]
    Path("named.csv").write_text(Path("boxes.csv").read_text().replace("door", "a").replace("wall", "b"))
    header, *_ = columns(raybox("pick", "named.csv", "--from", "0,0,1", "--to", "10,0,1").stdout)
    assert header == ["index", "id", "cost", "t", "point", "face"]


@pytest.mark.parametrize("suffix", [".parquet", ".npz", ".npy", ".csv"])
@pytest.mark.parametrize("query", ["nearest", "all"])
def test_all_formats_have_the_columns_of_save(folder, suffix, query):
    raybox("cast", "city.json", "rays.csv", "-o", f"out{suffix}", "--query", query)
    hits = getattr(rb.Scene(rb.load("city.json")), query)(rb.load("rays.csv", kind="rays"))
    rb.save(f"whole{suffix}", hits)
    found, wanted = (get(Path(f"{name}{suffix}")) for name in ("out", "whole"))
    assert list(found) == list(wanted)
    assert list(found)[:4] == ["ray", "index", "object", "id"]
    for name, column in wanted.items():
        np.testing.assert_array_equal(found[name], column)


def test_a_label_named_like_a_column_of_results(folder):
    Path("t.csv").write_text(Path("boxes.csv").read_text().replace("kind,cost", "t,object_t"))
    rows = cast("t.csv", "rays.csv", "--labels", "t,object_t")
    assert list(rows[0])[-2:] == ["object_t", "object_object_t"]
    assert [row["object_t"] for row in rows] == ["door", "", ""]


def test_labels_and_carried_columns_side_by_side(folder):
    lines = zip(Path("rays.csv").read_text().splitlines(), ["name", "one", "two", "three"], strict=True)
    Path("named.csv").write_text("".join(f"{line},{value}\n" for line, value in lines))
    rows = cast("city.json", "named.csv", "--labels", "name", "--carry", "name")
    assert list(rows[0])[-2:] == ["name", "ray_name"]
    wanted = [("Town, hall", "one"), ("Town, hall", "two"), ("", "three")]
    assert [(row["name"], row["ray_name"]) for row in rows] == wanted


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_an_interrupted_cast_of_objects_continues_to_the_same_bytes(folder, monkeypatch, ending):
    rb.save("many.npy", rb.Rays(np.random.default_rng(3).uniform(0, [1, 1, 4], (40, 3)), [1, 0, 0]))
    scene, out = rb.Scene(rb.load("city.json")), f"out.{ending}"
    how = {"labels": ["name", "floors"], "where": "floors > 2 or id == 'shed'", "chunk": 7, "workers": 1}
    rb.stream.cast(scene, "many.npy", f"whole.{ending}", **how)
    with stopping_at(monkeypatch, 21, KeyboardInterrupt()):
        rb.stream.cast(scene, "many.npy", out, **how)
    for other in ({"where": "id == 'shed'"}, {"labels": ["name"]}, {"ids": ["a", "b"]}):
        with pytest.raises(rb.RayboxError, match=r"remove the folder|another"):
            rb.stream.cast(scene, "many.npy", out, **(how | other))
    assert rb.stream.cast(scene, "many.npy", out, **how).resumed == 21
    assert Path(out).read_bytes() == Path(f"whole.{ending}").read_bytes()


# levels of detail, what is left out


def test_levels_of_detail(folder):
    highest = json.loads(raybox("info", "city.json", "--json").stdout)
    assert highest["levels_of_detail"] == {"1.2": 1, "2.2": 2}
    assert (highest["objects"], highest["count"], highest["upper_bound"]) == (2, 24, [6.0, 1.0, 3.0])
    assert highest["left_out"] == {"geometries of points or lines": 1, "city objects without surfaces": 1}
    lowest = json.loads(raybox("info", "city.json", "--json", "--lod", "1.2").stdout)
    assert (lowest["objects"], lowest["upper_bound"][2]) == (1, 1.0)
    found = raybox("cast", "city.json", "rays.csv", "-o", "-", "--lod", "1.2")
    assert [line.split(",")[1] for line in found.stdout.splitlines()[2:]] == ["-1", "-1"]
    assert "city objects without surfaces of level 1.2 (2)" in found.stderr
    error = raybox("pick", "city.json", *RAY, "--lod", "9", code=2).stderr
    assert "surfaces of level 9; pass --lod with one of its levels: 1.2 (1), 2.2" in error


def test_semantic_surfaces_of_a_sequence(folder):
    document = city()
    values = [0, 1, 2, 2, 2, 2]
    kinds = ("GroundSurface", "RoofSurface", "WallSurface")
    for item in document["CityObjects"].values():
        for one in item["geometry"]:
            surfaces = [{"type": kind} for kind in kinds]
            one["semantics"] = {"surfaces": surfaces, "values": [values]}
    header = {"type": "CityJSON", "version": "2.0", "CityObjects": {}, "vertices": []}
    lines = (json.dumps(header), json.dumps(document | {"type": "CityJSONFeature"}))
    Path("city.jsonl").write_text("\n".join(lines))
    surfaces = "--objects", "surfaces"
    facts = json.loads(raybox("info", "city.jsonl", "--json", *surfaces).stdout)
    assert (facts["objects"], facts["levels_of_detail"]) == (6, {"1.2": 1, "2.2": 2})
    down = "--origin", "2.5,0.4,9", "--direction", "0,0,-1"
    roof = raybox("pick", "city.jsonl", *down, *surfaces, "--where", "surface == 'RoofSurface'").stdout
    assert "house/RoofSurface/1" in roof
    assert "GroundSurface" not in roof
    assert "GroundSurface" in raybox("pick", "city.jsonl", *down, *surfaces).stdout


def test_info_of_objects(folder):
    text = raybox("info", "city.json").stdout
    lines = facts_of(text)
    assert lines["holds"] == "triangles"
    assert lines["objects"] == "2"
    assert lines["labels"] == "type  parent  name  floors"
    assert lines["levels of detail"] == "1.2 1, 2.2 2"
    boxes = facts_of(raybox("info", "city.json", "--boxes").stdout)
    assert (boxes["holds"], boxes["one box for"]) == ("boxes", "each object")
    assert "objects" not in boxes
    assert "one box for" not in facts_of(raybox("info", "boxes.csv").stdout)


def test_info_names_labels_as_expressions_do_and_what_was_left_out_before_saving(folder):
    boxes = rb.Boxes(np.zeros((4, 3)), np.ones((4, 3)), labels={"ifc_class": ["a", "a", "b", "b"]})
    rb.save("named.npz", with_facts(boxes, {"IfcSpace": 3}))
    facts = facts_of(raybox("info", "named.npz").stdout)
    assert facts["ifc_class"] == "a 2, b 2"
    assert facts["left out"] == "IfcSpace 3"
    assert "left out" not in facts_of(raybox("info", "boxes.csv").stdout)


def facts_of(text):
    """Return the lines of `info` by name."""
    return dict(map(str.strip, line.split("  ", 1)) for line in text.splitlines())


def test_losses_are_one_line_without_a_warning_of_python(folder, recwarn):
    document = city()
    first = len(document["vertices"])
    document["vertices"] += [[20.0 + x, y, z] for x, y, z in CROSSED]
    polygon = [[list(range(first, first + 4))]]
    document["CityObjects"]["shed"]["geometry"].append(geometry("MultiSurface", "2.2", polygon))
    Path("lossy.json").write_text(json.dumps(document))
    lost, left_out = raybox("pick", "lossy.json", *RAY).stderr.splitlines()
    assert re.fullmatch(
        r"raybox: lossy.json: lost: exact shapes of polygons .*, in city object 'shed' \(1\)", lost
    )
    assert left_out.startswith("raybox: lossy.json: left out: geometries of points or lines (1), ")
    facts = json.loads(raybox("info", "lossy.json", "--json").stdout)
    assert facts["lost"] == {lost.partition(": lost: ")[2].removesuffix(" (1)"): 1}
    assert not recwarn.list


# IFC


def house(path="house.ifc"):
    """Write a model of a wall, a space and an opening, in a row."""
    from test_ifc import cubes_of  # needs ifcopenshell

    cubes_of(Path(path), "IFC4", ["IfcWall", "IfcSpace", "IfcOpeningElement"])


def test_a_model_leaves_out_spaces_and_openings_and_says_so(folder):
    package("ifcopenshell")
    house()
    ray = "--from", "-1,0.1,0.2", "--to", "10,0.1,0.2"
    done = raybox("pick", "house.ifc", *ray)
    (wall,) = rb.load("house.ifc").ids
    assert columns(done.stdout)[1][:3] == ["0", wall, "IfcWall"]
    assert "IfcWall, 0" in done.stdout
    left_out = "raybox: house.ifc: left out: IfcSpace (1), IfcOpeningElement (1)"
    assert done.stderr == f"{left_out}; --all-objects reads spaces and openings, too\n"
    done = raybox("pick", "house.ifc", *ray, "--all-objects", "--json")
    classes = [row["labels"]["ifc_class"] for row in json.loads(done.stdout)["objects"]]
    assert (classes, done.stderr) == (["IfcWall", "IfcSpace", "IfcOpeningElement"], "")
    facts = json.loads(raybox("info", "house.ifc", "--json").stdout)
    assert facts["left_out"] == {"IfcSpace": 1, "IfcOpeningElement": 1}
    assert (facts["objects"], facts["ids"]) == (1, [wall])
    raybox("pick", "house.ifc", *ray, "--tessellation", "hybrid")


# other geometries


def test_oriented_boxes_are_picked_and_named(folder):
    rb.save("cars.npz", rb.Instances.oriented_boxes([[2, 0, 0]], [[1, 1, 1]], yaw=[0.3], ids=["car"]))
    header, row = columns(raybox("pick", "cars.npz", *RAY).stdout)
    assert header == ["index", "primitive", "id", "t", "point"]
    assert row[:3] == ["0", "0", "car"]
    assert json.loads(raybox("info", "cars.npz", "--json").stdout)["holds"] == "oriented boxes"
    first, *_ = cast("cars.npz", "rays.csv")
    assert [first[name] for name in ("index", "primitive", "id")] == ["0", "0", "car"]
    # the line y = 0.4 enters a square of side 1, turned by 0.3 about (2, 0), through its upper side
    sine, cosine = math.sin(0.3), math.cos(0.3)
    assert float(first["t"]) == pytest.approx(2 + (0.4 - cosine / 2) * cosine / sine - sine / 2)
    assert [row["id"] for row in cast("cars.npz", "rays.csv", "--boxes")][:1] == ["car"]


def test_info_refuses_a_filter_of_what_has_no_objects(folder):
    raybox("cast", "boxes.csv", "rays.csv", "-o", "hits.csv")
    rb.save("two.npz", [rb.Boxes([[0, 0, 0]], [[1, 1, 1]])] * 2)
    Path("points.csv").write_text("x,y,z\n1,2,3\n")
    kinds = {"rays.csv": "rays", "two.npz": "geometries", "points.csv": "points", "hits.csv": "results of"}
    for name, what in kinds.items():
        error = raybox("info", name, "--where", "id == 'a'", code=2).stderr
        assert error.startswith(f"raybox: {name}: --where is for objects; the file holds {what}"), error


def test_a_scene_of_several_geometries(folder):
    crate = rb.Boxes([[0, 0, 0], [2, 0, 0]], [[1, 1, 1], [3, 1, 1]], labels={"kind": ["box", "lid"]})
    copies = rb.Instances.from_poses(crate, [[4, 0, 0]])
    rb.save("two.npz", [copies, rb.Planes([[1.0, 0, 0]], [5.0], ids=["east"])])
    assert json.loads(raybox("info", "two.npz", "--json").stdout)["count"] == 2
    assert columns(raybox("pick", "two.npz", *RAY).stdout) == [
        ["index", "geometry", "primitive", "id", "kind", "t", "point"],
        ["0", "0", "0", "box", "4", "4,0.4,0.5"],
        ["0", "1", "0", "east", "5", "5,0.4,0.5"],
        ["0", "0", "1", "lid", "6", "6,0.4,0.5"],
    ]
    rows = cast("two.npz", "rays.csv", "--query", "all", "--labels", "kind")[:3]
    assert [[row[n] for n in ("index", "geometry", "primitive", "id", "t", "kind")] for row in rows] == [
        ["0", "0", "0", "", "4.0", "box"],
        ["0", "1", "0", "east", "5.0", ""],
        ["0", "0", "1", "", "6.0", "lid"],
    ]
    error = raybox("pick", "two.npz", *RAY, "--boxes", code=2).stderr
    assert error == "raybox: two.npz: holds Planes, which have no boxes; leave out --boxes\n"


# view


def test_view_shows_triangles_and_names_objects(folder):
    stage = make_stage("city.json")
    (part,) = stage.parts
    assert (len(part.geometry), part.objects) == (24, 2)
    found = stage.all(rb.Rays([0, 0.4, 0.5], [1, 0, 0])).by_object().to_dict(labels=True)
    columns = ("object", "id", "t_first", "t_last", "contacts")
    assert list(zip(*(found[name].tolist() for name in columns), strict=True)) == [
        (0, "house", 2.0, 3.0, 2),
        (1, "shed", 5.0, 6.0, 2),
    ]
    assert [found[name][0] for name in ("type", "name", "floors")] == ["Building", "Town, hall", 3]


@pytest.mark.parametrize("boxes", [False, True])
def test_view_with_a_filter_keeps_the_numbers_of_the_file(folder, boxes):
    stage = make_stage("city.json", boxes=boxes, where="id == 'shed'")
    assert stage.visible.tolist() == [False, True]
    hits = stage.all(rb.Rays([0, 0.4, 0.5], [1, 0, 0]))
    assert (hits.object[0], hits.ids[0], hits.t[0]) == (1, "shed", 5.0)
    whole = rb.load("city.json", boxes=boxes)
    assert (hits.index[0] if boxes else whole.objects[hits.index[0]]) == 1
    assert not stage.all(rb.Rays([0, 0.4, 2.5], [1, 0, 0])).index.size


def test_view_writes_a_page_of_objects_without_a_server(folder, monkeypatch):
    monkeypatch.setattr("raybox.viewer.viewer.Viewer.__init__", lambda *_: pytest.fail("it serves"))
    raybox("view", "city.json", "rays.csv", "--html", "all.html")
    raybox("view", "city.json", "--where", "id == 'shed'", "--html", "shed.html", "--boxes")
    assert 0 < os.path.getsize("shed.html") < os.path.getsize("all.html")


@pytest.mark.parametrize("more", [[], ["--all-objects"]])
def test_view_reads_spaces_and_openings_and_hides_them_at_the_start(folder, more):
    package("ifcopenshell")
    house()
    raybox("view", "house.ifc", "--boxes", *more, "--html", "house.html")
    scene = scene_in("house.html")
    assert all(name in scene for name in (b"IfcSpace", b"IfcOpeningElement", b"IfcWall"))
    assert (b'["hidden", "u1"' not in scene) == bool(more)


FEET = [
    (name, [], "ft", "y") for name in ("feet_0.npz", "feet_*.npz", "feet.scene", "feet.parquet", "list.npz")
]
FEET += [("feet.scene", ["--where", "floors == 3"], "ft", "y"), ("feet_*.npz", ["--boxes"], "ft", "y")]
FEET += [("*_0.npz", [], "", "y"), ("metre_0.npz", [], "m", "y"), ("metre_0.npz", ["--up", "z"], "m", "z")]


@pytest.mark.parametrize(("shown", "more", "unit", "up"), FEET)
def test_view_passes_the_unit_and_the_axis_of_whatever_holds_a_scene(folder, shown, more, unit, up):
    """Files of two units state none."""
    mesh, metre = (with_facts(rb.load("city.json"), {}, units=units, up="y") for units in ("foot", "metre"))
    for name, saved in (
        ("feet_0.npz", mesh),
        ("feet_1.npz", mesh),
        ("feet.parquet", mesh),
        ("metre_0.npz", metre),
    ):
        rb.save(name, saved)
    rb.save("list.npz", [mesh, mesh])
    rb.Scene(mesh).save("feet.scene")
    raybox("view", shown, *more, "--html", "feet.html")
    assert f'"unit": "{unit}", "up": "{up}"'.encode() in scene_in("feet.html")


def test_view_of_several_geometries(folder):
    rb.save("two.npz", [rb.load("city.json"), rb.Planes([0, 0, 1], 0)])
    raybox("view", "two.npz", "--html", "two.html")
    assert b'"type": "planes"' in scene_in("two.html")


def test_view_of_points_shows_them(folder):
    np.savez("scan.npz", points=np.array([[3.0, 0.5, 0.5], [9.0, 0.5, 0.5]]))
    raybox("view", "city.json", "scan.npz", "--origin", "0,0.5,0.5", "--html", "scan.html")
    assert b'"kind": "points"' in scene_in("scan.html")
    Path("scan.csv").write_text("x,y,z,ring,intensity,note\n3,0.5,0.5,7,12.5,a\n9,0.5,0.5,8,,b\n")
    raybox("view", "city.json", "scan.csv", "--origin", "0,0.5,0.5", "--html", "fields.html")
    assert b'"fields": ["ring", "intensity"]' in scene_in("fields.html")
    raybox("view", "city.json", "rays.csv", "--html", "rays.html")
    assert b'"kind": "points"' not in scene_in("rays.html")


def scene_in(path) -> bytes:
    """Return the frames in a saved page."""
    content = re.search(rb'id="raybox-scene">([^<]*)<', Path(path).read_bytes())[1]
    return gzip.decompress(base64.b64decode(content))


def test_view_of_oriented_boxes(folder):
    centers, labels = [[2, 0, 0], [6, 0, 0], [9, 0, 0]], {"kind": list("xyy")}
    rb.save("cars.npz", rb.Instances.oriented_boxes(centers, [2, 1, 1], yaw=0.3, ids=[*"abc"], labels=labels))
    hits = make_stage("cars.npz", where="kind == 'y'").all(rb.Rays([0, 0, 0], [1, 0, 0]))
    assert (hits.object.tolist(), hits.ids.tolist()) == ([1, 2], ["b", "c"])
    assert hits.labels("kind").tolist() == ["y", "y"]
    assert hits.t[0] == pytest.approx(6 - 1 / math.cos(0.3))
    raybox("view", "cars.npz", "rays.csv", "--html", "cars.html", "--where", "kind == 'x'")
    error = raybox("view", "cars.npz", "--where", "colour == 1", code=2).stderr
    assert "--where, column 1: there is no label 'colour'" in error


# demo


def test_a_second_demo_replaces_its_own_files_only(folder):
    raybox("demo")
    before = Path("depth.png").read_bytes()
    raybox("demo")
    assert Path("depth.png").read_bytes() == before
    Path("depth.png").write_bytes(b"mine")
    assert "depth.png exists already; pass --force" in raybox("demo", code=2).stderr
    assert Path("depth.png").read_bytes() == b"mine"
