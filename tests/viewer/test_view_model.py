"""The viewer without a browser: picks, lines of sight, uploads, HTML."""

import math
import tempfile
from importlib import resources

import numpy as np
import pytest

import raybox as rb
from file_samples import samples
from processes import output_of
from raybox.viewer import appearance, open_file
from raybox.viewer import html as markup
from raybox.viewer.model import LineOfSight, LineStart, PageState
from raybox.viewer.stage import Stage, rays_in_3d, stage
from view_truth import boxes_hit

ROW = rb.Boxes([[2, -1, -1], [5, -1, -1], [8, -1, -1]], [[3, 1, 1], [6, 1, 1], [9, 1, 1]])
IDS = ["near", "middle", "far"]


def page_state(boxes=ROW, ids=IDS, **options) -> PageState:
    return PageState(stage(boxes, "row", ids, **options))


def duplex() -> Stage:
    with resources.as_file(resources.files("raybox") / "data" / "duplex.npz") as path:
        return open_file.stage_of(path, boxes=True)


# Clicks


def test_a_click_lists_all_hits_in_order():
    answer = page_state().click([0, 0, 0], [1, 0, 0])
    assert [(c.index, c.id, c.t, c.length) for c in answer.contacts] == [
        (0, "near", 2.0, 1.0),
        (1, "middle", 5.0, 1.0),
        (2, "far", 8.0, 1.0),
    ]
    assert (answer.nearest, answer.total, answer.face) == (0, 3, "-x")
    assert answer.contacts[1].point == (5.0, 0.0, 0.0)
    assert page_state().click([10, 0, 0], [-1, 0, 0]).face == "+x"
    assert page_state().click([2.5, 0, 0], [-1, 0, 0]).face == "inside"
    nothing = page_state().click([0, 0, 0], [-1, 0, 0])
    assert (nothing.nearest, nothing.contacts, nothing.total) == (-1, (), 0)


@pytest.mark.core
def test_clicks_on_a_building_agree_with_fractions():
    house = duplex()
    shown, (low, high) = PageState(house), house.scene.bounds
    random = np.random.default_rng(5)
    hits = 0
    for _ in range(40):
        side = random.normal(size=3)
        eye = (low + high) / 2 + 40 * side / np.linalg.norm(side)
        direction = random.uniform(low, high) - eye
        want = boxes_hit(house.solid.lower, house.solid.upper, eye, direction)
        got = shown.click(eye, direction)
        assert [(c.t, c.index) for c in got.contacts] == [(float(t), row) for t, row in want]
        hits += bool(want)
    assert hits > 30


def test_the_range_of_t_limits_the_last_click_too():
    shown = page_state()
    shown.click([0, 0, 0], [1, 0, 0])
    assert [c.index for c in shown.limit(4.0, 7.0).contacts] == [1]
    assert shown.click([0, 0.5, 0], [1, 0, 0]).nearest == 1
    with pytest.raises(rb.InvalidInput, match="the range of t from 7 to 4 is empty"):
        shown.limit(7.0, 4.0)
    assert shown.range == (4.0, 7.0)
    shown.forget()
    assert shown.limit(0.0, math.inf) is None


def test_a_line_of_sight_between_two_clicks():
    shown = page_state()
    shown.set_mode(True)
    start = shown.click([0, 0, 0], [1, 0, 0])
    assert isinstance(start, LineStart)
    assert start.end.index == 0
    line = shown.click([10, 0, 0], [-1, 0, 0])
    assert isinstance(line, LineOfSight)
    assert not line.clear
    assert [c.index for c in line.contacts] == [1]
    assert [c.index for c in line.ends] == [0, 2]
    # The next click starts another line; the clicked boxes do not block it.
    assert isinstance(shown.click([0, 0, 0], [1, 0, 0]), LineStart)
    assert shown.click([4, 0, 0], [1, 0, 0]).clear
    with pytest.raises(rb.InvalidInput, match="the ray of this click hits nothing"):
        shown.click([0, 0, 0], [-1, 0, 0])


@pytest.mark.parametrize(
    "ray", [([math.nan, 0, 0], [1, 0, 0]), ([0, 0], [1, 0]), ([[0, 0, 0]] * 2, [1, 0, 0])]
)
def test_invalid_rays_are_refused(ray):
    shown = page_state()
    shown.click([0, 0, 0], [1, 0, 0])
    with pytest.raises(rb.InvalidInput):
        shown.click(*ray)
    assert shown.result.nearest == 0


# Page coordinates


def test_map_coordinates_reach_the_page_without_loss_and_picks_are_exact():
    corner = np.array([84_916.123, 447_512.456, 3.0])
    # A millimetre apart, where float32 has steps of 8 mm at best
    lower = corner + np.array([[0, 0, 0], [0, 0.001, 0]])
    city = stage(rb.Boxes(lower, lower + np.array([0.5, 0.0005, 0.5])))
    on_page = city.page_frame.to_page(lower).astype(np.float32).astype(np.float64)
    assert np.abs(city.page_frame.to_scene(on_page) - lower).max() < 1e-6
    assert np.abs(city.page_frame.to_page(city.scene.bounds)).max() <= 4.0
    assert math.frexp(city.page_frame.scale)[0] == 0.5
    answer = PageState(city).click(corner + np.array([0.25, 0.0012, 2.0]), [0, 0, -1])
    assert (answer.nearest, answer.total) == (1, 1)


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 1e12, 1e308])
def test_any_size_fits_the_page(size):
    shown = stage(rb.Boxes([[-size, -size, -size]], [[size, size, size]]))
    page = shown.page_frame.to_page(shown.scene.bounds)
    assert np.isfinite(page).all()
    assert 1e-3 < np.abs(page).max() <= 4.0
    assert size == 1e308 or math.isclose(shown.radius, math.sqrt(3) * size)


def test_flat_unbounded_and_missing_boxes_are_shown():
    flat = stage(rb.Boxes([[0, 0]], [[1, 2]]))
    assert PageState(flat).click([0.5, 0.5, 3], [0, 0, -1]).face == "+z"
    inf = math.inf
    ground = rb.Boxes([[-inf, -inf, -inf], [0, 0, 0], [inf, 0, 0]], [[inf, inf, 0], [4, 4, 4], [inf, 1, 1]])
    lower, upper, worth = appearance.drawable(stage(ground).solid)
    assert worth.tolist() == [True, True, False]
    assert (lower[0].tolist(), upper[0].tolist()) == ([-1, -1, -1], [5, 5, 0])
    assert len(stage(rb.Boxes(np.zeros((0, 3)), np.zeros((0, 3)))).page_frame.shift) == 3
    rays = rays_in_3d(rb.Rays([[0, 0], [math.nan, 0]], [1, 1], invalid="miss"))
    assert stage(rb.Boxes([[1, 1]], [[2, 2]])).scene.nearest(rays).index.tolist() == [0, -1]


def test_a_click_on_a_mesh_picks_a_triangle():
    mesh = rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    answer = PageState(stage(mesh)).click([0.2, 0.2, 5], [0, 0, -1])
    assert (answer.nearest, answer.contacts[0].t, answer.face) == (0, 5.0, "normal 0, 0, 1")
    assert "Triangle 0" in markup.panel(answer)


# Drawing


def test_only_boxes_hidden_on_all_sides_are_not_drawn():
    cube = rb.Boxes.of_voxels(np.ones((3, 3, 3), bool), origin=[7, 8, 9], pitch=0.5)
    assert np.flatnonzero(~appearance.drawable(cube)[2]).tolist() == [13]
    holed = cube[np.arange(27) != 4]  # a neighbour of the middle one
    assert appearance.drawable(holed)[2].all()
    stretched = rb.Boxes(cube.lower, cube.upper + np.eye(27)[:, :1] * 0.25)
    assert appearance.drawable(stretched)[2].all()


def test_colours_show_kinds_or_heights():
    house = duplex()
    by_kind = appearance.colors(house, house.solid.centers)
    kinds = np.array(house.labels["ifc_class"])
    for kind in np.unique(kinds):
        assert len(np.unique(by_kind[kinds == kind], axis=0)) == 1
    by_height = appearance.colors(stage(ROW), np.arange(9.0).reshape(3, 3))
    assert len(np.unique(by_height, axis=0)) == 3


def test_the_legend_lists_all_colours_and_none_is_the_highlight():
    house = duplex()
    kinds = np.array(house.labels["ifc_class"])
    by_kind, legend = appearance.colors(house, house.solid.centers), appearance.legend(house)
    assert [name for name, _ in legend][:2] == ["IfcFurnishingElement", "IfcWallStandardCase"]
    assert legend[-1][0] == "others"
    for name, color in legend[:-1]:
        assert (by_kind[kinds == name] == color).all()
        assert name in markup.summary(house)
    rare = ~np.isin(kinds, [name for name, _ in legend])
    assert rare.sum() == 7
    assert (by_kind[rare] == legend[-1][1]).all()
    assert len(np.unique([color for _, color in legend], axis=0)) == len(legend) == 10
    orange = np.array([255, 140, 0])
    assert min(np.abs(orange - color).max() for _, color in legend) > 100


@pytest.mark.core
@pytest.mark.parametrize("size", [(1, 1, 1), (10, 1, 1), (1, 30, 2), (3, 4, 0), (0, 0, 0)])
def test_everything_fits_the_first_picture(size):
    low, high = -np.array(size) / 2.0 + 7, np.array(size) / 2.0 + 7
    eye = appearance.camera_position(low, high)
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]) * (high - low) + low
    # The textbook camera: picture coordinates in units of half its height and width
    ahead, up = (low + high) / 2 - eye, np.array([0.0, 0.0, 1.0])
    ahead /= np.linalg.norm(ahead)
    right = np.cross(ahead, up) / np.linalg.norm(np.cross(ahead, up))
    deep, slope = (corners - eye) @ ahead, math.tan(appearance.FOV / 2)
    across = np.abs((corners - eye) @ right) / (deep * slope * appearance.ASPECT)
    upright = np.abs((corners - eye) @ np.cross(right, ahead)) / (deep * slope)
    assert (deep > 0).all()
    assert max(across.max(), upright.max()) <= 1.0
    assert max(across.max(), upright.max()) > 0.85 or size == (0, 0, 0)


# Uploads


def test_an_upload_is_read_from_its_bytes(tmp_path):
    for name in ("boxes.csv", "boxes.npz"):
        rb.save(tmp_path / name, ROW, ids=IDS)
        shown = open_file.stage_of_bytes(f"C:\\fake\\..\\{name}", (tmp_path / name).read_bytes())
        assert (shown.name, len(shown.scene), shown.ids) == (name, 3, IDS)


@pytest.mark.parametrize(
    ("name", "content", "text_part"),
    [
        ("../../../etc/passwd", b"root", "passwd: unsupported file extension ''"),
        ("/etc/passwd.csv", b"a,b\n1,2\n", "passwd.csv"),
        ("x.csv", b"", "x.csv: is empty"),
        ("x.npz", b"PK\3\4 cut off", "x.npz"),
        ("x.ifc", b"ISO-10303-21; and then nothing", "x.ifc"),
        ("", b"", "file: unsupported file extension"),
    ],
)
def test_a_bad_upload_is_one_line_that_names_no_folder(name, content, text_part, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(rb.RayboxError) as caught:
        open_file.stage_of_bytes(name, content)
    text = str(caught.value)
    assert text_part in text
    assert "\n" not in text
    assert str(tmp_path) not in text
    assert not list(tmp_path.iterdir())


def test_an_upload_is_bounded(monkeypatch):
    monkeypatch.setattr(open_file, "MAX_BYTES", 2**20)
    with pytest.raises(rb.RayboxError, match=r"big\.csv: 2 MiB exceed the limit of 1 MiB"):
        open_file.stage_of_bytes("big.csv", b"0" * 2**21)
    monkeypatch.setattr(open_file, "MAX_ROWS", 2)
    with pytest.raises(rb.RayboxError, match="3 rows exceed the limit of 2"):
        open_file.stage_of_bytes("row.csv", b"min_x,min_y,min_z,max_x,max_y,max_z\n" + b"0,0,0,1,1,1\n" * 3)


def test_every_scene_format_opens_from_bytes():
    opened = set()
    for name, (content, options) in samples().items():
        if options.get("kind") == "scene":
            assert len(open_file.stage_of_bytes(name, content).scene) > 0
            opened.add(name.rpartition(".")[2])
    assert opened >= {"npz", "npy", "csv", "parquet", "ply", "stl", "obj", "glb", "ifc", "json", "vox"}


# HTML


def test_the_panel_shows_ids_and_labels_of_the_hit():
    house = duplex()
    answer = PageState(house).click([25.0, -30.0, 14.0], [-1.0, 1.0, -0.5])
    row, text = answer.nearest, markup.panel(answer)
    assert f"Box {row}<" in text
    for value in (house.ids[row], house.labels["ifc_class"][row], house.labels["name"][row], answer.face):
        assert value in text
    assert f"{answer.contacts[0].t:.9g}" in text
    assert text.count("<tr>") > answer.total


def test_names_from_files_are_text_never_markup():
    evil = "<img src=x onerror=alert(1)>{alert(2)}"
    shown = PageState(stage(ROW, evil, [evil] * 3))
    answer = shown.click([0, 0, 0], [1, 0, 0])
    for html in (markup.panel(answer), markup.summary(shown.stage), markup.message(evil)):
        assert "<img" not in html
        assert "&lt;img" in html


def test_long_lists_end_with_a_count():
    lower = np.pad(np.arange(500.0)[:, None], ((0, 0), (0, 2)))
    answer = PageState(stage(rb.Boxes(lower, lower + 0.5))).click([-1, 0.1, 0.1], [1, 0, 0])
    assert (answer.total, len(answer.contacts)) == (500, 200)
    assert "and 440 more" in markup.panel(answer)


# Imports


def test_the_name_view_is_a_function_and_costs_no_import():
    code = "import raybox.viewer.model, raybox as rb, sys; print(callable(rb.view), 'viser' in sys.modules)"
    assert output_of("-c", code).split() == ["True", "False"]


def test_without_viser_the_command_to_install_it_is_given(monkeypatch):
    monkeypatch.setattr("raybox.viewer.server.find_spec", lambda name: None)
    with pytest.raises(rb.RayboxError, match=r'pip install "raybox\[view\]"'):
        rb.view(ROW, port=0)
