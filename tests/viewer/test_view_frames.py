"""Frames of scenes: every geometry, the numbers of objects, labels, and what is hidden at the start."""

import math
import zlib

import numpy as np
import pytest

import raybox as rb
from cube_mesh import CORNERS, FACES, cubes
from raybox.geometry import with_facts
from raybox.geometry.labels import with_colors, with_properties
from raybox.geometry.property_sets import PropertySets
from raybox.io.formats.scans import Scan
from raybox.viewer import frames, stage
from raybox.viewer.content import Layer, _content_of, _scan_layers, make_content
from raybox.viewer.frames import frame, scene_frame
from raybox.viewer.stage import make_stage
from view_client import decoded

INF = math.inf
BOXES = rb.Boxes(
    [[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]], ids=["near", "far"], labels={"kind": ["a", "b"]}
)
MESH = rb.Mesh(CORNERS, FACES, objects=np.arange(12) // 2, labels={"size": np.arange(6) * 0.5})
GRID = rb.Grid([0, 1, 2], [0, 1, 4], [0, 5, 6], occupied=np.array([1, 0, 1, 1, 0, 0, 0, 1]) > 0)
COPIES = rb.Instances.oriented_boxes([[9, 0, 0], [12, 0, 0]], [1, 2, 3], yaw=0.5, ids=[7, 8])
PLANES = rb.Planes([[0, 0, 2], [3, 4, 0]], [10, 25])


def scene_of(scene, **options):
    return decoded(scene_frame(make_stage(scene, **options)))


def hidden(found):
    count = sum(one["objects"] for one in found.header["geometries"])
    return np.unpackbits(found.arrays["hidden"], count=count, bitorder="little").tolist()


def test_a_frame_is_a_header_and_arrays_at_multiples_of_8():
    arrays = {
        "odd": np.arange(3, dtype=np.uint16),
        "none": np.zeros((0, 3)),
        "big": np.arange(2, dtype=">f8"),
    }
    content = frame({"kind": "try", "text": "é\N{GRINNING FACE}", "seq": 4}, arrays)
    kind, header, found = decoded(content)
    assert (kind, header) == ("try", {"text": "é\N{GRINNING FACE}", "seq": 4})
    assert {name: values.tolist() for name, values in found.items()} == {
        "odd": [0, 1, 2],
        "none": [],
        "big": [0, 1],
    }
    assert found["none"].shape == (0, 3)
    with pytest.raises(ValueError, match="JSON"):
        frame({"kind": "try", "t": INF})


def of_file(geometry, units, up):
    """Return a geometry that states a unit and the axis that is up, as readers make it."""
    return with_facts(geometry, {}, units=units, up=up)


def test_a_stage_has_the_unit_and_the_axis_that_all_geometries_state():
    house, shed = of_file(BOXES, "metre", "y"), of_file(MESH, "foot", "y")
    stages = [make_stage(one) for one in (house, shed, [house, house], [house, shed], BOXES, [house, BOXES])]
    assert [(one.unit, one.up) for one in stages] == [
        ("m", "y"),
        ("ft", "y"),
        ("m", "y"),
        ("", "y"),
        ("", "z"),
        ("", "z"),
    ]
    assert make_stage(rb.Scene(house)).unit == "m"
    assert make_stage(of_file(BOXES, "US survey foot", "z")).unit == "ft"
    header = decoded(scene_frame(stages[0])).header
    assert (header["unit"], header["up"]) == ("m", "y")


def test_names_from_files_survive_whatever_they_are():
    evil = "</script><img src=x onerror=alert(1)>\ud800"
    found = decoded(frame({"kind": "scene", "name": evil}))
    assert found.header["name"] == evil.replace("\ud800", "?")


def test_objects_are_numbered_through_all_geometries():
    found = scene_of([BOXES, MESH, GRID, COPIES, PLANES])
    entries = [
        (one["type"], one["firstObject"], one["objects"], one["primitives"])
        for one in found.header["geometries"]
    ]
    assert entries == [
        ("boxes", 0, 2, 2),
        ("mesh", 2, 6, 12),
        ("grid", 8, 4, 8),
        ("instances", 12, 2, 2),
        ("planes", 14, 2, 2),
    ]
    assert found.header["ids"] == ["near", "far", *[""] * 10, "7", "8", "", ""]
    kind, size = found.header["labels"]
    assert (kind["name"], kind["words"], size["words"]) == ("kind", ["a", "b"], None)
    assert found.arrays["label.0"].tolist() == [0, 1, *[2] * 14]
    np.testing.assert_array_equal(found.arrays["label.1"][2:8], np.arange(6) * 0.5)
    assert np.isnan(np.delete(found.arrays["label.1"], range(2, 8))).all()


def test_arrays_are_those_of_the_geometries():
    arrays = scene_of([BOXES, MESH, GRID, COPIES, PLANES]).arrays
    for name, want in {
        "0.lower": BOXES.lower,
        "0.upper": BOXES.upper,
        "1.vertices": MESH.vertices,
        "1.faces": MESH.faces,
        "1.objects": MESH.objects,
        "2.y": [0, 1, 4],
        "3.transforms": COPIES.transforms,
        "3.base.lower": [[-0.5, -0.5, -0.5]],
        "4.normals": PLANES.normals,
        "4.offsets": PLANES.offsets,
    }.items():
        np.testing.assert_array_equal(arrays[name], want, err_msg=name)
    assert (
        np.unpackbits(arrays["2.occupied"], bitorder="little").tolist()
        == GRID.occupied.ravel().astype(int).tolist()
    )
    assert arrays["2.visible"].tolist() == [0, 1, 2, 3]  # objects, not cells
    assert len(arrays["1.edges"]) == 24  # of six objects, none of which shares an edge
    assert len(scene_of(cubes()).arrays["0.edges"]) == 12


def test_buried_cells_are_not_drawn_and_too_many_are_an_outline(monkeypatch):
    block = rb.Grid.uniform([0, 0, 0], 1, (3, 3, 3))
    found = scene_of(block)
    assert found.arrays["0.visible"].tolist() == [k for k in range(27) if k != 13]
    assert "0.occupied" not in found.arrays
    monkeypatch.setattr(frames, "MAX_DRAWN_CELLS", 25)
    assert "0.visible" not in scene_of(block).arrays
    monkeypatch.setattr(stage, "MAX_CELLS", 26)
    (entry,) = scene_of(block).header["geometries"]
    assert (entry["objects"], entry["primitives"]) == (1, 27)


def test_labels_are_words_or_numbers():
    labels = {
        "ifc_class": ["wall", "door", "wall"],
        "storey": [None, "1", None],
        "height": [1, None, 2.5],
        "flag": [True, False, True],
        "empty": [None] * 3,
    }
    found = scene_of(rb.Boxes(np.zeros((3, 3)), np.ones((3, 3)), labels=labels))
    assert {one["name"]: one["words"] for one in found.header["labels"]} == {
        "ifc_class": ["door", "wall"],
        "storey": ["1"],
        "height": None,
        "flag": ["False", "True"],
        "empty": [],
    }
    assert found.arrays["label.0"].tolist() == [1, 0, 1]
    assert found.arrays["label.1"].tolist() == [1, 0, 1]  # 1 is no word: missing
    np.testing.assert_array_equal(found.arrays["label.2"], [1, math.nan, 2.5])


def test_objects_have_their_property_sets():
    sets = PropertySets(['{"Pset": {"Höhe": 1}}', ""])
    made = scene_of([MESH, with_properties(BOXES, sets)])
    lines = zlib.decompress(made.arrays["properties"].tobytes()).decode().split("\n")
    assert lines == [*[""] * 6, '{"Pset": {"Höhe": 1}}', ""]
    assert "properties" not in scene_of([MESH, BOXES]).arrays


def test_many_objects_have_no_ids(monkeypatch):
    monkeypatch.setattr(frames, "MAX_IDS", 1)
    assert scene_of(BOXES).header["ids"] is None


# What is hidden


def test_where_hides_objects_and_is_hit_by_nothing():
    shown = make_stage(BOXES, where="kind == 'b'")
    assert hidden(decoded(scene_frame(shown))) == [1, 0]
    ray = rb.Rays([0, 0, 0], [1, 0, 0])
    assert shown.all(ray).index.tolist() == [1]
    assert shown.all(ray, np.array([True, True])).index.tolist() == [0, 1]
    assert hidden(scene_of([BOXES, COPIES], where=[[False, True], None])) == [1, 0, 0, 0]
    assert hidden(scene_of(BOXES, where=[True, False])) == [0, 1]
    assert hidden(scene_of([BOXES], where=[np.array([True, False])])) == [0, 1]
    assert "hidden" not in scene_of(BOXES, where="kind in ('a', 'b')").arrays
    with pytest.raises(rb.InvalidInput, match="where must be a list of 2"):
        make_stage([BOXES, COPIES], where=[True])


def test_where_on_cells():
    mask = np.array(GRID.occupied)
    mask[0, 0, 0] = False
    shown = make_stage(GRID, where=mask)
    assert shown.visible.tolist() == [False, True, True, True]
    down = rb.Rays([0.5, 0.5, 9], [0, 0, -1])
    assert not shown.all(down).index.size
    assert shown.all(down, np.ones(4, bool)).index.tolist() == [0]


def test_triangles_that_a_mask_splits_off_their_object_are_gone():
    """No mask of objects can leave them out: they become points, and all numbers stay."""
    mask = np.ones(12, bool)
    mask[[0, 4, 5]] = False  # half of object 0, all of object 2
    shown = make_stage(MESH, where=mask)
    assert shown.visible.tolist() == [True, True, False, True, True, True]
    faces = decoded(scene_frame(shown)).arrays["0.faces"]
    assert (faces[0] == faces[0, 0]).all()
    np.testing.assert_array_equal(faces[1:], MESH.faces[1:])


def test_a_grid_that_is_one_object_loses_cells(monkeypatch):
    monkeypatch.setattr(stage, "MAX_CELLS", 1)
    mask = np.zeros(8, bool)
    mask[[2, 3]] = True
    shown = make_stage(GRID, where=mask)
    assert shown.visible.tolist() == [True]
    assert shown.parts[0].geometry.occupied.sum() == 2
    ray = rb.Rays([0.5, 2, -1], [0, 0, 1])
    assert shown.all(ray).index.tolist() == [2, 3]
    assert not shown.all(ray, np.zeros(1, bool)).index.size
    assert shown.objects_of(shown.scene.nearest(rb.Rays([[0.5, 2, -1], [9, 9, 9]], [0, 0, 1]))).tolist() == [
        0,
        -1,
    ]


def test_spaces_and_openings_are_hidden_unless_nothing_else_is_shown():
    labels = {"ifc_class": ["IfcWall", "IfcSpace", "IfcOpeningElement"]}
    boxes = rb.Boxes(np.zeros((3, 3)), np.ones((3, 3)), labels=labels)
    assert hidden(scene_of(boxes, hides_spaces=True)) == [0, 1, 1]
    assert "hidden" not in scene_of(boxes).arrays
    assert hidden(scene_of(boxes, hides_spaces=True, where="ifc_class == 'IfcSpace'")) == [1, 0, 1]


# Shapes


def test_2d_is_shown_at_zero():
    flat = rb.Boxes([[0, 0]], [[1, 2]], ids=["a"])
    shown = make_stage(flat)
    assert (shown.ids, shown.parts[0].geometry.upper.tolist()) == (["a"], [[1, 2, 0]])
    cells = rb.Grid([0, 1, 2], [0, 1], occupied=[[False], [True]], labels={"v": [1.0, 2.0]})
    shown = make_stage(cells, where=[False, True])
    assert (shown.parts[0].geometry.lower.tolist(), shown.visible.tolist()) == ([[1, 0, 0]], [True])
    assert shown.labels["v"].tolist() == [2.0]
    lines = make_stage(
        [rb.Planes([[1, 0]], [3]), rb.Instances(rb.Boxes([0, 0], [1, 1]), [[[1, 0, 5], [0, 1, 0]]])]
    )
    assert lines.all(rb.Rays([0, 0.5, 0], [1, 0, 0])).t.tolist() == [3, 5]
    rays = make_content(shown, rb.Rays([[0, 0.5], [math.nan, 0]], [1, 0], invalid="miss"))
    assert decoded(rays.frames[-1]).arrays["object"].tolist() == [0, -1]


def test_a_scene_that_is_built_is_used():
    scene = rb.Scene([BOXES, COPIES])
    assert make_stage(scene).scene is scene
    scene = rb.Scene(BOXES)
    shown = make_stage(scene, where="kind == 'b'")
    assert shown.scene is scene
    assert shown.all(rb.Rays([0, 0, 0], [1, 0, 0])).index.tolist() == [1]


# Rays


def test_an_even_sample_of_rays_is_drawn_and_all_are_listed(monkeypatch):
    monkeypatch.setattr(frames, "MAX_DRAWN_RAYS", 4)
    origins = np.stack([np.zeros(10), np.zeros(10), np.linspace(-2, 2, 10)], axis=1)
    rays = rb.Rays(origins.reshape(2, 5, 3), [2, 0, 0], t_min=0.5, t_max=2.0)
    content = make_content(make_stage(BOXES), rays)
    scene, drawn, table = map(decoded, content.frames)
    assert scene.header["follow"] == ["rays", "table"]
    assert (drawn.header["total"], drawn.arrays["row"].tolist()) == (10, [0, 2, 5, 7])
    np.testing.assert_array_equal(drawn.arrays["origin"], origins[[0, 2, 5, 7]])
    assert drawn.arrays["t_max"].tolist() == [2.0] * 4
    hit = np.abs(origins[:, 2]) <= 1
    assert table.arrays["object"].tolist() == np.where(hit, 0, -1).tolist()
    assert table.arrays["t"].tolist() == np.where(hit, 1.0, INF).tolist()
    assert table.arrays["distance"].tolist() == np.where(hit, 2.0, INF).tolist()


def test_a_scan_has_points():
    points = np.array([[3.0, 0, 4], [0, 2, 0]])
    content = make_content(make_stage(BOXES), rb.Rays([1, 1, 1], points - 1), is_scan=True)
    scene, _, cloud, _ = map(decoded, content.frames)
    assert scene.header["follow"] == ["rays", "points", "table"]
    np.testing.assert_array_equal(cloud.arrays["xyz"], points)
    np.testing.assert_allclose(cloud.arrays["distance"], np.linalg.norm(points - 1, axis=1))
    assert (cloud.arrays["ray"] == np.arange(len(points))).all()


def test_points_of_hits_are_no_scan():
    """Rays that are added later are drawn, too: they would cover the points of a scan only."""
    with rb.view(BOXES, port=0) as viewer:
        viewer.add("points", viewer.click([0, 0, 0], [1, 0, 0]))
        viewer.add("rays", rb.Rays([0, 0, 0], [1, 0, 0]))
        _, rays, points, _ = map(decoded, viewer._content.frames)
    assert (rays.header["total"], points.arrays["ray"].tolist()) == (1, [-1, -1])


def test_points_have_the_rows_of_their_rays_and_the_fields_of_all_scans():
    rays = [rb.Rays([0, 0, 0], np.full((count, 3), count)) for count in (1, 2, 3)]
    scans = [
        _scan_layers(Scan(own, {name: np.arange(len(own)) + 0.5}, True), f"{k}", f"points {k}")
        for k, (own, name) in enumerate(zip(rays, ("ring", "time", "ring"), strict=True))
    ]
    layers = {"scene": Layer(make_stage(BOXES))} | scans[0] | scans[1] | scans[2]
    layers["1"] = layers["1"]._replace(is_visible=False)
    _, _, cloud, _ = map(decoded, _content_of(layers).frames)
    assert cloud.header["fields"] == ["ring", "time"]
    assert cloud.arrays["ray"].tolist() == [0, -1, -1, 1, 2, 3]
    np.testing.assert_array_equal(cloud.arrays["field.0"], [0.5, math.nan, math.nan, 0.5, 1.5, 2.5])
    np.testing.assert_array_equal(cloud.arrays["field.1"], [math.nan, 0.5, 1.5, *[math.nan] * 3])


def test_too_many_rays_are_refused(monkeypatch):
    monkeypatch.setattr("raybox.viewer.content.MAX_RAYS", 1)
    with pytest.raises(rb.InvalidInput, match="a page shows up to 1 rays; got 2"):
        make_content(make_stage(BOXES), rb.Rays([[0, 0, 0]] * 2, [1, 0, 0]))


RED, GLASS, NONE = (255, 0, 0, 255), (10, 200, 255, 90), (0, 0, 0, 0)


def painted(geometry, colors):
    return with_colors(geometry, np.array(colors, np.uint8))


def colors_of(found, name):
    return [tuple(row) for row in found.arrays["palette"][found.arrays[f"{name}.colors"]].tolist()]


def test_primitives_have_the_colours_of_the_file_as_rows_of_one_palette():
    mesh = painted(MESH, [RED, GLASS] * 6)
    grid = painted(GRID, [RED] * 4 + [GLASS] * 4)
    copies = rb.Instances(painted(BOXES, [GLASS, NONE]), COPIES._rows())
    found = scene_of([BOXES, mesh, grid, copies, painted(PLANES, [RED, NONE])])
    assert [tuple(row) for row in found.arrays["palette"].tolist()] == [NONE, GLASS, RED]
    assert colors_of(found, "1") == [RED, GLASS] * 6
    assert colors_of(found, "2") == [RED, RED, RED, GLASS]  # of objects: occupied cells
    assert (colors_of(found, "3.base"), colors_of(found, "4")) == ([GLASS, NONE], [RED, NONE])
    assert "0.colors" not in found.arrays
    assert "3.colors" not in found.arrays
    assert {found.arrays[f"{k}.colors"].dtype for k in (1, 2, 4)} == {np.dtype(np.uint8)}


def test_without_colours_there_is_no_palette_and_one_colour_for_all_comes_first():
    assert not {"palette", "0.colors"} & set(scene_of(BOXES).arrays)
    one = make_stage(painted(BOXES, [RED, GLASS]))
    own = one._replace(parts=(one.parts[0]._replace(color="#112233"),))
    assert "palette" not in decoded(scene_frame(own)).arrays


def test_more_colours_than_a_palette_has_are_rounded():
    colors = np.random.default_rng(5).integers(0, 256, (200_000, 4), dtype=np.uint8)
    colors[:, 3] = 255
    lower = np.arange(600_000.0).reshape(-1, 3)
    found = scene_of(painted(rb.Boxes(lower, lower + 1), colors))
    palette, rows = found.arrays["palette"], found.arrays["0.colors"]
    assert len(palette) <= 2**16
    assert rows.dtype == np.uint16
    assert np.abs(palette[rows].astype(int) - colors).max() <= 4
