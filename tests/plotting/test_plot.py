"""rb.plot and rb.plot_slabs: shapes drawn, bit for bit where that is promised, and errors."""

import re
from math import inf
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import same_color, to_rgba

import raybox as rb
from processes import output_of
from raybox.plotting import canvas
from raybox.plotting.shapes import outlines
from raybox.textbook.explain import examine

BOX = rb.Boxes([0.5, 0.5, 0.5], [2, 2, 2])
# The five rays of the tutorial on clipping: the first and the fourth hit the box.
FIVE = rb.Rays(
    [[-2, -2, -2], [0, 0, 0], [0, 0, 0], [1, 1, 1], [0.4, 1, 1]],
    [[2, 2, 2], [0, 1, 0], [-1, 0, 0], [1, 1, 0], [-1, 0, 0]],
)
README = Path(__file__).parents[2] / "README.md"
THREE = rb.Boxes([[9] * 3, [9] * 3, [0] * 3], [[9] * 3, [9] * 3, [1] * 3])
ELSEWHERE = "miss: the ray is elsewhere when its line is in the box"
FLAT = rb.Boxes([[2, -1], [5, 0]], [[3, 1], [6, 3]])
FAN = rb.Rays([0, 0], [[1, 0], [2, 1], [-1, 1], [0.3, 0.1]])


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def segments(collection):
    """Return the segments of a collection of lines, in 2D or 3D."""
    found = getattr(collection, "_segments3d", None)
    return np.array(collection.get_segments() if found is None else found)


def parts(ax):
    """Return the collections of a picture by their contents."""
    found = {"hit": [], "miss": [], "edges": [], "faces": [], "dots": []}
    for one in ax.collections:
        kind = type(one).__name__
        label = str(one.get_label()).partition(" ")[0]
        name = label if label in ("hit", "miss") else "edges"
        found["faces" if "Poly" in kind else "dots" if "Path" in kind else name].append(one)
    return found


def faces_of(collection):
    """Return the number of polygons of a collection."""
    collection.figure.canvas.draw()
    return len(collection.get_paths())


def dots(ax, colour):
    """Return the points of the dots of a colour."""
    (one,) = [x for x in parts(ax)["dots"] if same_color(x.get_facecolor()[:1], to_rgba(colour))]
    return np.array(one._offsets3d).T if hasattr(one, "_offsets3d") else np.asarray(one.get_offsets())


# Rays


@pytest.mark.parametrize(("boxes", "rays"), [(BOX, FIVE), (FLAT, FAN)], ids=["3D", "2D"])
def test_rays_end_where_they_hit_and_are_coloured_by_it(boxes, rays):
    scene = rb.Scene(boxes)
    hits = scene.nearest(rays)
    assert hits.hit.any()
    assert not hits.hit.all()
    ax = rb.plot(scene, rays, hits)
    (hit,), (miss,) = parts(ax)["hit"], parts(ax)["miss"]
    np.testing.assert_array_equal(segments(hit)[:, 1], hits.points[hits.hit])
    np.testing.assert_array_equal(segments(hit)[:, 0], rays.origins[hits.hit])
    np.testing.assert_array_equal(segments(miss)[:, 0], rays.origins[~hits.hit])
    np.testing.assert_array_equal(dots(ax, canvas.HIT), hits.points[hits.hit])
    assert same_color(hit.get_color(), [canvas.HIT])
    assert same_color(miss.get_color(), [canvas.MISS])
    assert hit.get_linestyle() != miss.get_linestyle()


def test_three_of_the_five_rays_are_blue_and_two_are_red():
    ax = rb.plot(BOX, FIVE)
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words == ["hit (2)", "miss (3)"]
    assert len(segments(parts(ax)["miss"][0])) == 3


def test_misses_end_on_the_edge_of_the_picture_just_past_the_scene():
    ax = rb.plot(FLAT, FAN)
    (miss,) = parts(ax)["miss"]
    limits = np.array([ax.get_xlim(), ax.get_ylim()])
    ends = segments(miss)[:, 1]
    assert (np.isclose(ends, limits[:, 0]) | np.isclose(ends, limits[:, 1])).any(axis=1).all()
    assert ((ends >= limits[:, 0] - 1e-9) & (ends <= limits[:, 1] + 1e-9)).all()
    assert np.ptp(limits) < 12


def test_a_segment_that_misses_ends_at_its_end_and_a_line_starts_at_the_edge():
    ax = rb.plot(FLAT, rb.Rays.segments([[0, 0]], [[1.5, 0.25]]))
    assert segments(parts(ax)["miss"][0])[0].tolist() == [[0, 0], [1.5, 0.25]]
    ax = rb.plot(FLAT, rb.Rays.lines([[4, 0.5]], [[1, 0]]))
    ((start, end),) = segments(parts(ax)["hit"][0])
    assert start[0] == pytest.approx(ax.get_xlim()[0])
    assert end.tolist() == [2, 0.5]
    assert len(dots(ax, canvas.HIT)) == 1


def test_rays_without_points_or_directions():
    rays = rb.Rays([[np.nan, 0], [2.5, 0], [0, 0]], [[1, 0], [0, 0], [0, 0]], invalid="miss")
    ax = rb.plot(FLAT, rays)
    assert segments(parts(ax)["hit"][0]).tolist() == [[[2.5, 0], [2.5, 0]]]
    assert segments(parts(ax)["miss"][0]).tolist() == [[[0, 0], [0, 0]]]


def test_tiny_and_huge_directions_are_drawn():
    rays = rb.Rays([0, 5], [[1e-310, 0], [1e300, 0], [1, 0]])
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        ax = rb.plot(FLAT, rays)
    ends = segments(parts(ax)["miss"][0])[:, 1]
    assert np.isfinite(ends).all()
    np.testing.assert_allclose(ends[1:], [[ax.get_xlim()[1], 5]] * 2)


def test_rays_of_any_shape_and_none_at_all():
    rays = rb.Rays.pinhole([1, 1, 8], [1, 1, 0], up=[0, 1, 0], fov=40, width=5, height=4)
    ax = rb.plot(BOX, rays)
    assert sum(len(segments(parts(ax)[name][0])) for name in ("hit", "miss")) == 20
    assert rb.plot(BOX, rb.Rays(np.zeros((0, 3)), np.zeros((0, 3)))).get_legend() is None
    nothing = rb.plot(rb.Boxes(np.zeros((0, 2)), np.zeros((0, 2))), rb.Rays([0, 0], [1, 0]))
    assert len(segments(parts(nothing)["miss"][0])) == 1


def test_normals_start_at_the_hit_points_and_none_inside():
    hits = rb.Scene(BOX).nearest(FIVE)
    before = len(rb.plot(BOX, FIVE, hits).collections)
    ax = rb.plot(BOX, FIVE, hits, normals=True)
    assert len(ax.collections) == before + 1
    shafts = segments(ax.collections[-1])
    assert len(shafts) == 3  # one arrow: a shaft and two barbs; the ray from inside has none
    foot, tip = sorted(shafts[0], key=lambda end: np.abs(end - hits.points[0]).max())
    np.testing.assert_allclose(foot, hits.points[0])
    step = tip - foot
    np.testing.assert_allclose(step / np.linalg.norm(step), hits.normals[0])
    flat = rb.plot(FLAT, FAN, normals=True)
    assert rb.Scene(FLAT).nearest(FAN).hit.sum() == flat.collections[-1].N


@pytest.mark.parametrize("page", [README, README.parent / "docs" / "index.md"], ids=["README", "start"])
def test_a_page_makes_its_picture(page, tmp_path, monkeypatch):
    """Run the block that saves a picture, and compare it with the page's picture."""
    block = re.compile(r"^```python\n(import raybox.*?savefig.*?)^```", re.MULTILINE | re.DOTALL)
    (code,) = block.findall(page.read_text())
    assert len(list(filter(None, code.splitlines()))) < 5
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(code, names)
    shown = plt.imread(README.parent / "docs" / "images" / "first_picture.png")
    assert shown.shape == plt.imread("picture.png").shape
    assert [text.get_text() for text in names["ax"].get_legend().get_texts()] == ["hit (2)", "miss (2)"]


# Boxes


@pytest.mark.parametrize(("boxes", "edges", "faces"), [(BOX, 12, 6), (FLAT[:1], 4, 1)], ids=["3D", "2D"])
def test_a_box_is_its_edges_and_faces(boxes, edges, faces):
    ax = rb.plot(boxes)
    (lines,), (flat,) = parts(ax)["edges"], parts(ax)["faces"]
    found = segments(lines)
    assert len(found) == edges
    ends = {tuple(sorted(map(tuple, pair))) for pair in found.tolist()}
    assert len(ends) == edges
    assert all(sum(a != b for a, b in zip(*pair, strict=True)) == 1 for pair in ends)
    np.testing.assert_array_equal(np.unique(found), np.unique([boxes.lower, boxes.upper]))
    assert faces_of(flat) == faces
    assert 0 < flat.get_alpha() < 1
    if faces == 6:  # neighbouring corners of a face differ on one axis; each plane has one face
        (drawn,) = outlines(boxes, np.array([[0.0] * 3, [9.0] * 3]))[1]
        assert all(((face != np.roll(face, 1, axis=0)).sum(axis=1) == 1).all() for face in drawn)
        planes = [(axis, face[0, axis]) for face in drawn for axis in range(3) if np.ptp(face[:, axis]) == 0]
        assert sorted(planes) == [(axis, at) for axis in range(3) for at in (0.5, 2.0)]


def test_boxes_hit_are_tinted():
    ax = rb.plot(FLAT, rb.Rays([0, 0], [1, 0]))
    others, hit = parts(ax)["edges"]
    assert segments(others)[..., 0].min() == 5
    assert segments(hit)[..., 0].max() == 3
    assert same_color(hit.get_color(), [canvas.BOX_HIT])


def many(n):
    rng = np.random.default_rng(1)
    return rb.Boxes.from_centers(rng.uniform(0, 100, (n, 3)), rng.uniform(0.5, 2, (n, 3)))


def test_ten_thousand_boxes_are_one_collection_of_thin_edges_without_faces():
    ax = rb.plot(many(10_000))
    (lines,) = ax.collections
    assert len(segments(lines)) == 120_000
    assert max(lines.get_linewidth()) < 0.2
    assert min(rb.plot(many(20)).collections[-1].get_linewidth()) > 0.5


def test_of_many_boxes_only_those_hit_have_faces():
    boxes = many(1000)
    rays = rb.Rays.segments([50, 50, 150], boxes.centers[:3])
    hit = np.unique(rb.Scene(boxes).nearest(rays).index)
    (flat,) = parts(rb.plot(boxes, rays))["faces"]
    assert hit[0] >= 0
    assert faces_of(flat) == 6 * len(hit)


def test_endless_boxes_are_cut_and_boxes_without_a_point_are_left_out():
    boxes = rb.Boxes([[0, 0], [5, -inf], [inf, 0]], [[1, 1], [6, inf], [inf, 1]])
    ax = rb.plot(boxes, rb.Rays([0, -2], [1, 0]))
    found = np.concatenate([segments(lines) for lines in parts(ax)["edges"]])
    assert np.isfinite(found).all()
    assert len(found) == 8
    assert found[..., 1].max() == pytest.approx(ax.get_ylim()[1])


def test_a_mesh_is_its_triangles():
    mesh = rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 2], [0, 1, 3]])
    for scene in (mesh, rb.Scene(mesh)):
        ax = rb.plot(scene, rb.Rays([0.2, 0.2, 5], [[0, 0, -1], [1, 0, 0]]))
        assert sum(len(segments(lines)) for lines in parts(ax)["edges"]) == 6


def test_given_axes_are_drawn_on_and_extended():
    _, ax = plt.subplots()
    ax.plot([-50, 0], [0, 0])
    assert rb.plot(FLAT, ax=ax) is ax
    assert ax.get_xlim()[0] <= -50
    assert ax.get_xlim()[1] > 6
    _, given = plt.subplots(2)
    axes = rb.plot_slabs(rb.Rays([0, 0], [2, 1]), rb.Boxes([1, 0], [4, 1]), ax=given)
    assert list(axes) == list(given)


# Errors


def test_errors_state_the_rule_and_a_remedy():
    scene, hits = rb.Scene(BOX), rb.Scene(BOX).nearest(FIVE)
    far = rb.Boxes([inf] * 3, [inf] * 3)
    _, flat = plt.subplots()
    for words, call in {
        "scene must be a Scene, Boxes, a Grid or a Mesh; got list": lambda: rb.plot([1, 2]),
        "rays must be raybox.Rays; got str": lambda: rb.plot(scene, "rays"),
        "scene's dimensions, D = 3; got D = 2": lambda: rb.plot(scene, FAN),
        "got no rays. Pass the rays that were cast": lambda: rb.plot(scene, hits=hits),
        r"hits must be raybox.Hits; got AllHits": lambda: rb.plot(scene, FIVE, scene.all(FIVE)),
        r"shape \(5,\); got shape \(5, 2\)": lambda: rb.plot(scene, FIVE, scene.first(FIVE, 2)),
        r"\(1 rows\); got a hit of row 2": lambda: rb.plot(BOX, FIVE[:1], rb.Scene(THREE).nearest(FIVE[:1])),
        "ax must be 3D axes, as the scene is 3D; got Axes.*projection='3d'": lambda: rb.plot(scene, ax=flat),
        "explain takes one ray; got 5": lambda: rb.plot_slabs(FIVE, BOX),
        "ax must be 4 axes, the last for t; got 1": lambda: rb.plot_slabs(FIVE[0], BOX, ax=flat),
        "nothing to draw: the box holds no point": lambda: rb.plot_slabs(FIVE[0], far),
    }.items():
        with pytest.raises(rb.InvalidInput, match=words):
            call()


def test_without_matplotlib_the_error_contains_the_command(monkeypatch):
    monkeypatch.setattr(canvas, "find_spec", lambda name: None)
    for call in (lambda: rb.plot(BOX), lambda: rb.plot_slabs(FIVE[0], BOX)):
        with pytest.raises(rb.RayboxError, match=r'pip install "raybox\[plot\]"'):
            call()


def test_matplotlib_and_numba_are_loaded_only_when_needed():
    code = """
import sys, raybox as rb
rb.plot, rb.plot_slabs
assert not {"matplotlib", "numba"} & set(sys.modules)
import matplotlib; matplotlib.use("Agg")
rb.plot(rb.Boxes([0, 0], [1, 1]))
rb.plot_slabs(rb.Rays([0, 0], [2, 1]), rb.Boxes([[1, 0]], [[4, 1]]))
assert "numba" not in sys.modules
"""
    output_of("-c", code)


# Slabs


def drawn(ax):
    """Return t of the dots and rings of a timeline, and whether each is a dot, by row."""
    marks = [line for line in ax.lines if line.get_marker() == "o"]
    return [(float(m.get_xdata()[0]), m.get_markerfacecolor() != canvas.PAPER) for m in marks]


def test_the_timeline_shows_the_numbers_of_explain():
    ray, box = rb.Rays([0, 0, 0.5], [2, 1.5, 1]), rb.Boxes([1, 1, 0], [3, 3, 2])
    axes = rb.plot_slabs(ray, box)
    assert len(axes) == 4
    found = examine(ray, box)
    expected = [(row.near, row.far) for row in found.case.slabs]
    expected += [found.case.slabs[-1][-2:], (0.0,), (found.exact.t, found.exact.t_exit)]
    assert drawn(axes[-1]) == [(t, k == 0) for pair in expected for k, t in enumerate(pair)]
    names = [label.get_text() for label in axes[-1].get_yticklabels()]
    assert names == ["x", "y", "z", "shared", "ray", "hit"]
    assert axes[-1].get_title() == "hit at t = 0.666667"


def test_faces_and_crossings_are_where_explain_has_them():
    ray, box = rb.Rays([0, 0], [2, 1.2]), rb.Boxes([1, 1], [4, 3])
    above, _ = rb.plot_slabs(ray, box)
    thick = [line.get_xydata().tolist() for line in above.lines if line.get_linewidth() == 4.5]
    assert thick == [[[1, 1], [1, 3]], [[1, 1], [4, 1]]]
    rows = examine(ray, box).case.slabs
    marks = [line.get_xydata()[0] for line in above.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(marks, [ray.at(t) for row in rows for t in (row.near, row.far)])
    (inside,) = [line for line in above.lines if same_color(line.get_color(), canvas.HIT)]
    np.testing.assert_allclose(inside.get_xydata(), [ray.at(rows[1].near), ray.at(rows[0].far)])


@pytest.mark.parametrize(
    ("ray", "title", "words"),
    [
        (rb.Rays([0, 2.2], [1, 1.1]), "miss: the slabs share no t", "nothing: in at 1, out at 0.7273"),
        (rb.Rays([0, 4], [1, 0]), "miss: the slabs share no t", "parallel, and outside"),
        (rb.Rays([0, 0], [2, 1.2], t_max=0.4), ELSEWHERE, None),
        (rb.Rays([2, 2], [0, 0]), "hit at t = 0", None),
    ],
)
def test_the_title_states_the_reason_of_a_miss(ray, title, words):
    axes = rb.plot_slabs(ray, rb.Boxes([1, 1], [4, 3]))
    assert axes[-1].get_title() == title
    texts = [text.get_text() for text in axes[-1].texts]
    assert words is None or words in texts
    assert any(same_color(line.get_color(), canvas.HIT) for line in axes[0].lines) == title.startswith("hit")


def test_the_title_of_a_miss_is_exact():
    """Titles follow rational arithmetic where float64 finds a false touch, or misses one."""
    past, corner = rb.Rays([0, 0], [0.3, 0.1]), rb.Boxes([3, -9], [9, 1])
    title = rb.plot_slabs(past, corner)[-1].get_title()
    assert title == "miss: the slabs share no t, though rounded to float64 they do"

    ends, box = rb.Rays([0.7, 0.6], [0.4, 0.3], t_max=1), rb.Boxes([3.1, -9], [90, 2.4])
    near, far = examine(ends, box).case.slabs[-1][-2:]
    assert near > far  # in float64
    assert rb.plot_slabs(ends, box)[-1].get_title() == ELSEWHERE


def test_endless_boxes_and_far_crossings_leave_the_drawing_in_sight():
    axes = rb.plot_slabs(rb.Rays([2, 2], [-1, 1e-9]), rb.Boxes([-inf, 1], [4, inf]))
    assert np.ptp(axes[0].get_xlim()) < 20
    assert np.ptp(axes[0].get_ylim()) < 20
