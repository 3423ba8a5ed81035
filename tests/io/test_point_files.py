"""Points of hits as .las .laz .ply .pcd, read back by laspy, by hand and by `load`."""

import csv
import io

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import raybox as rb
from streaming import get

ENDINGS = ("las", "laz", "ply", "pcd")
LABELS = {
    "class": ["wall", None, 'Tür\n"x"'],
    "cost": [1.5, np.nan, -2.0],
    "level": [3, 4, 2**40],
    "serial": [2**62 + 1, 1, -(2**63)],
    "count": [7, None, 8],
    "open": [True, False, True],
    "maybe": [True, None, False],
    "t": [0, 1, 2],
    "intensity": [5, 6, 7],
    "X": [8, 9, 10],
    "Fläche in Quadratmetern, ohne Öffnungen": [1.0, 2.0, 3.0],
    "Fläche in Quadratmetern, ohne Öffnungen!": [4.0, 5.0, 6.0],
}
WALLS = rb.Boxes([[k, -1, -1] for k in (1, 3, 5)], [[k + 1, 1, 1] for k in (1, 3, 5)], ids=["a", "b", "c"])
BOXES = rb.Boxes(WALLS.lower, WALLS.upper, ids=["a", "b", "c"], labels=LABELS)
RAYS = rb.Rays([[0, 0.25, 0], [0, 9, 0], [2.5, 0, 0.125], [4.5, 0, 0]], [1, 0, 0])
HITS = rb.Scene(BOXES).nearest(RAYS)


def table_of(path):
    """Return the rows of the table of codes; none without."""
    beside = path.with_name(path.name + ".labels.csv")
    if not beside.exists():
        return []
    rows = list(csv.reader(io.StringIO(beside.read_text(encoding="utf-8"), newline="")))
    assert rows[0] == ["dimension", "label", "code", "text"]
    return rows[1:]


def fields_of(path):
    """Return the columns of a file of points by a reader written again here."""
    if path.suffix in (".las", ".laz"):
        las = pytest.importorskip("laspy").read(path)
        columns = {name: np.array(las[name]) for name in las.point_format.extra_dimension_names}
        return columns | {axis: np.array(las[axis]) for axis in "xyz"}
    mark = b"end_header\n" if path.suffix == ".ply" else b"DATA binary\n"
    head, body = path.read_bytes().split(mark, 1)
    lines = [line.split() for line in head.decode("ascii").splitlines()]
    if path.suffix == ".ply":
        kinds = {"double": "<f8", "int": "<i4", "uchar": "u1"}
        types = [(line[2], kinds[line[1]]) for line in lines if line[0] == "property"]
        (count,) = (int(line[2]) for line in lines if line[0] == "element")
    else:
        by_name = {line[0]: line[1:] for line in lines}
        kinds = zip(by_name["FIELDS"], by_name["TYPE"], by_name["SIZE"], strict=True)
        types = [(name, f"<{kind.lower()}{size}") for name, kind, size in kinds]
        (count,) = map(int, by_name["POINTS"])
    rows = np.frombuffer(body, types)
    assert len(rows) == count
    return {name: rows[name] for name in rows.dtype.names}


@pytest.mark.parametrize("ending", ENDINGS)
def test_points_have_all_that_hits_have(tmp_path, ending):
    path, is_las = tmp_path / f"out.{ending}", ending in ("las", "laz")
    rb.save(path, HITS)
    first, found, table = path.read_bytes(), fields_of(path), table_of(path)
    rb.save(path, HITS)
    assert path.read_bytes() == first
    names = {row[1]: row[0] for row in table}
    assert len({*found}) == len(LABELS) + 7  # ray, index, id, t and x, y, z
    texts = {(row[0], int(row[2])): row[3] for row in table if row[2]}
    points = np.stack([found[axis] for axis in "xyz"], -1)
    for given_points in (points, rb.load(path, kind="rays", origin=(0, 0, 0)).directions):
        np.testing.assert_allclose(given_points, HITS.points[HITS.hit], rtol=0, atol=1e-8 if is_las else 0)
    assert (found["ray"].tolist(), found["index"].tolist()) == ([0, 2, 3], [0, 1, 2])
    assert found["t"].tolist() == HITS.t[HITS.hit].tolist()
    assert [texts["id", code] for code in found["id"].tolist()] == ["a", "b", "c"]
    for label, values in LABELS.items():
        name = "object_t" if label == "t" else names.get(label, label)
        for number, value in zip(found[name].tolist(), values, strict=True):
            if (name, 0) in texts:  # codes
                assert (number == -1) if value is None else texts[name, number] == str(value)
            elif value is None or value != value:
                assert np.isnan(number)
            else:
                assert number == value
    for name in found:
        assert len(name.encode()) <= (32 if is_las else 200)
        assert is_las or (name.isascii() and " " not in name)


@pytest.mark.parametrize("ending", ENDINGS)
def test_no_points_and_points_in_2d(tmp_path, ending):
    path = tmp_path / f"out.{ending}"
    flat = rb.Scene(rb.Boxes([[1, -1]], [[2, 1]]))
    for hits in (flat.nearest(rb.Rays([[0, 9]], [1, 0])), rb.Scene(BOXES).all(SEVERAL[1:2])):
        rb.save(path, hits, labels=False)
        assert all(not values.size for values in fields_of(path).values())
    rb.save(path, flat.nearest(rb.Rays([[0, 0.5]], [1, 0])))
    assert [fields_of(path)[axis].tolist() for axis in "xyz"] == [[1.0], [0.5], [0.0]]
    assert not table_of(path)


def test_labels_are_chosen_and_an_old_table_is_removed(tmp_path):
    path = tmp_path / "out.ply"
    rb.save(path, HITS, labels=["cost", "class"])
    assert {*fields_of(path)} == {*"xyz", "ray", "index", "id", "t", "cost", "class"}
    assert {row[0] for row in table_of(path)} == {"id", "class"}
    rb.save(path, rb.Scene(rb.Boxes(BOXES.lower, BOXES.upper)).nearest(RAYS))
    assert not table_of(path)
    rb.save(path, HITS, ids=["u", "v", "w"], labels=False)
    assert [row[3] for row in table_of(path)] == ["u", "v", "w"]


def test_objects_of_meshes_and_several_geometries_are_dimensions(tmp_path):
    pytest.importorskip("laspy")
    corners = [[1, -1, -1], [1, 1, -1], [1, 0, 1]]
    wall = rb.Mesh(corners, [[0, 1, 2]], objects=[1], ids=[5, 6])
    scene = rb.Scene([wall, rb.Instances(wall, [np.eye(3, 4) + [[0, 0, 0, 2]] * 1 + np.zeros((3, 4))])])
    rb.save(tmp_path / "a.las", scene.nearest(RAYS))
    found = fields_of(tmp_path / "a.las")
    assert {"object", "geometry", "primitive", "id"} <= {*found}
    assert found["object"][0] == 1
    assert found["id"].dtype == np.int64
    assert found["id"][0] == 6


def test_what_has_no_points_is_refused(tmp_path):
    for content in (rb.Scene(BOXES).all(RAYS).by_object(), BOXES, RAYS, {"a": np.zeros(3)}):
        with pytest.raises(rb.InvalidInput, match="hold points of hits"):
            rb.save(tmp_path / "a.las", content)
    with pytest.raises(rb.InvalidInput, match="ids must name every box: got 1, a hit has index 2"):
        rb.save(tmp_path / "a.ply", HITS, ids=["a"])
    assert not list(tmp_path.iterdir())


# all three walls in order; none; from inside the second; along a face to before the third; backwards
SEVERAL = rb.Rays(
    [[0, 0.25, 0], [0, 9, 0], [3.5, 0, 0.125], [0, 1, 0], [0, 0, 0]],
    [[1, 0, 0], [1, 0, 0], [2, 0, 0], [1, 0, 0], [-1, 0, 0.5]],
    t_min=[0, 0, 0, 0, -4],
    t_max=[9, 9, 9, 4.5, 0],
)
CONTACTS = {  # of each ray: wall, t, t_enter, t_exit
    0: [(0, 1, 1, 2), (1, 3, 3, 4), (2, 5, 5, 6)],
    2: [(1, 0, -0.25, 0.25), (2, 0.75, 0.75, 1.25)],
    3: [(0, 1, 1, 2), (1, 3, 3, 4)],
    4: [(0, -2, -2, -1)],
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("rays", [slice(None), [3, 0]])
def test_all_hits_are_a_point_for_each_contact(tmp_path, ending, rays):
    path = tmp_path / f"out.{ending}"
    rb.save(path, rb.Scene(BOXES).all(SEVERAL)[rays], labels=["cost", "class", "t"])
    found, table = fields_of(path), table_of(path)
    chosen = [*range(5)][rays] if isinstance(rays, slice) else rays
    rows = [(k, *contact) for k, ray in enumerate(chosen) for contact in CONTACTS.get(ray, [])]
    for k, name in enumerate(("ray", "index", "t", "t_enter", "t_exit")):
        assert found[name].tolist() == [row[k] for row in rows]
    points = (
        SEVERAL[chosen].origins[found["ray"]] + found["t"][:, None] * SEVERAL[chosen].directions[found["ray"]]
    )
    atol = 0 if ending in ("ply", "pcd") else 1e-8
    np.testing.assert_allclose(np.stack([found[axis] for axis in "xyz"], -1), points, rtol=0, atol=atol)
    assert found["object_t"].tolist() == [LABELS["t"][row[1]] for row in rows]
    np.testing.assert_array_equal(found["cost"], [LABELS["cost"][row[1]] for row in rows])
    texts = {(name, int(code)): text for name, _, code, text in table if code}
    wanted = [LABELS["class"][row[1]] for row in rows]
    assert [texts.get(("class", code)) for code in found["class"].tolist()] == wanted
    assert [texts["id", code] for code in found["id"].tolist()] == ["abc"[row[1]] for row in rows]


@pytest.mark.parametrize("ending", ENDINGS)
def test_labels_named_like_axes_move_no_points(tmp_path, ending):
    labels = {"x": [7.0], "z": [8.0], "object_z": [9.0]}
    scene = rb.Scene(rb.Boxes([[1, -1]], [[2, 1]], labels=labels))
    for hits in (scene.nearest(rb.Rays([[0, 0.5]], [1, 0])), scene.all(rb.Rays([[0, 0.5]], [1, 0]))):
        rb.save(tmp_path / f"a.{ending}", hits)
        found = fields_of(tmp_path / f"a.{ending}")
        assert [found[axis].tolist() for axis in "xyz"] == [[1.0], [0.5], [0.0]]
        assert sorted(v[0] for n, v in found.items() if n.startswith("object_")) == [7.0, 8.0, 9.0]


@pytest.mark.parametrize("kind", ["nearest", "all"])
def test_trimesh_reads_the_points(tmp_path, kind):
    trimesh = pytest.importorskip("trimesh")
    hits = getattr(rb.Scene(BOXES), kind)(SEVERAL)
    rb.save(tmp_path / "a.ply", hits)
    vertices = trimesh.load(tmp_path / "a.ply", process=False).metadata["_ply_raw"]["vertex"]["data"]
    assert vertices.dtype["t"] == np.float64
    found = fields_of(tmp_path / "a.ply")
    for name, values in found.items():
        np.testing.assert_array_equal(vertices[name], values)
    points = hits.points[hits.index >= 0]
    assert np.stack([vertices[axis] for axis in "xyz"], -1).tolist() == points.tolist()


@given(
    st.lists(st.tuples(*[st.floats(-1e12, 1e12)] * 3), max_size=5),
    st.sampled_from(["las", "ply", "pcd"]),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_coordinates_are_exact_or_within_half_a_step(tmp_path, points, ending):
    boxes = rb.Boxes(np.reshape(points, (-1, 3)), np.reshape(points, (-1, 3)))
    hits = rb.Scene(boxes).nearest(rb.Rays(boxes.lower, [1, 0, 0]))
    path = tmp_path / f"a.{ending}"
    rb.save(path, hits)
    found = fields_of(path)
    for axis, values in zip("xyz", hits.points.T, strict=True):
        span = np.ptp(values) + 1 if len(values) else 0  # an offset may be a whole number below
        room = 0 if ending != "las" else 10 * span / 2**31 + 2 * np.spacing(np.abs(values).max(initial=0))
        np.testing.assert_allclose(found[axis], values, rtol=0, atol=room)


def test_points_too_far_apart_for_las_are_refused(tmp_path):
    pytest.importorskip("laspy")
    boxes = rb.Boxes([[-1.5e308, 0, 0], [1.5e308, 0, 0]], [[-1.5e308, 0, 0], [1.5e308, 0, 0]])
    hits = rb.Scene(boxes).nearest(rb.Rays(boxes.lower, [0, 1, 0]))
    with pytest.raises(rb.InvalidInput, match="too far apart"):
        rb.save(tmp_path / "a.las", hits)
    rb.save(tmp_path / "a.ply", hits)
    assert fields_of(tmp_path / "a.ply")["x"].tolist() == [-1.5e308, 1.5e308]


def test_labels_of_results_are_columns_of_tables(tmp_path):
    names = ["class", "cost", "count"]
    for ending in ("csv", "npy", "npz", "parquet"):
        path = tmp_path / f"a.{ending}"
        rb.save(path, HITS)
        plain = path.read_bytes()
        rb.save(path, HITS, labels=names)
        assert len(path.read_bytes()) > len(plain)
        columns = get(path)
        assert [*columns] == ["ray", "index", "id", "t", "x", "y", "z", *names]
        text = None if ending == "parquet" else ""
        assert columns["class"].tolist() == ["wall", text, text, 'Tür\n"x"']
        for name, values in (("cost", [1.5, np.nan, np.nan, -2.0]), ("count", [7, np.nan, np.nan, 8])):
            numbers = [np.nan if value in ("", None) else value for value in columns[name].tolist()]
            np.testing.assert_array_equal(np.array(numbers, float), values)
    infinite = rb.Scene(rb.Boxes([[1, -1]], [[2, 1]], labels={"cost": [-np.inf]}))
    for hits in (HITS, rb.Scene(BOXES).all(RAYS), infinite.nearest(rb.Rays([0, 0], [1, 0]))):
        rb.save(path, hits, labels=["cost"])
        wanted = [None if number != number else number for number in hits.labels("cost").ravel().tolist()]
        assert get(path)["cost"].tolist() == wanted
    with pytest.raises(rb.InvalidInput, match="'serial' holds integers that are not exact"):
        rb.save(tmp_path / "a.npz", HITS, labels="serial")
    rb.save(tmp_path / "objects.csv", rb.Scene(BOXES).all(RAYS).by_object())
    head = "ray,object,id,t_first,t_last,contacts\n0,0,a,1.0"
    assert (tmp_path / "objects.csv").read_text().startswith(head)


GRID = rb.Rays.lidar([[0, 0, 0], [0, 0.5, 0], [2.5, 0, 0.25]], [-10, 0, 10, 180], [0, 5])
BEAM = np.arange(2, dtype=np.uint8)[:, None]
TIMES = np.array([1.25, 2.5, 1e9 + 0.125])[:, None, None]
CARRIED = {
    "beam": BEAM,
    "gps_time": TIMES,
    "intensity": np.arange(24).reshape(3, 2, 4) + 65_000,
    "scanner_channel": BEAM,
    "quality": np.float32([0.5, 1.5, 2.5, np.nan]),
    "street": np.array(["Oude Delft", "Markt", "Markt"])[:, None, None],
    "good": np.array([True, False])[:, None],
}


@pytest.mark.parametrize("ending", [*ENDINGS, "csv", "npz", "parquet"])
@pytest.mark.parametrize("query", ["nearest", "all"])
def test_columns_of_rays_are_those_of_each_hit(tmp_path, ending, query):
    path = tmp_path / f"out.{ending}"
    hits = getattr(rb.Scene(BOXES), query)(GRID)
    rb.save(path, hits, columns=CARRIED, labels=["cost", "intensity"] if ending in ENDINGS else ["cost"])
    if ending in ENDINGS:
        found = fields_of(path)
    elif ending == "npz":
        found = dict(np.load(path))
    else:
        found = pytest.importorskip("pandas").__dict__[f"read_{ending}"](path).to_dict("list")
    ray = np.asarray(found["ray"]).astype(int)
    own = hits.to_dict()
    assert ray.tolist() == own["ray"][(own["index"] >= 0) | (ending not in ENDINGS)].tolist()
    wanted = {name: np.broadcast_to(values, GRID.shape).reshape(-1)[ray] for name, values in CARRIED.items()}
    if ending in ("las", "laz"):
        las = pytest.importorskip("laspy").read(path)
        names = [*las.point_format.extra_dimension_names]
        assert {"beam", "quality", "street", "good"} <= {*names}
        assert not {"gps_time", "scanner_channel"} & {*names}
        found |= {name: np.array(las[name]) for name in ("gps_time", "intensity", "scanner_channel")}
        assert found["beam"].dtype == np.uint8
        assert found["quality"].dtype == np.float32
        assert found["gps_time"].dtype == np.float64
    for name in ("beam", "gps_time", "intensity", "scanner_channel", "quality", "good"):
        np.testing.assert_array_equal(np.asarray(found[name], float), wanted[name].astype(float))
    if ending in ENDINGS:
        texts = {row[2]: row[3] for row in table_of(path) if row[0] == "street"}
        assert [texts[str(code)] for code in found["street"].tolist()] == wanted["street"].tolist()
        assert "object_intensity" in found
    else:
        assert [*found["street"]] == wanted["street"].tolist()
    assert len(ray) > 4


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"beam": np.arange(3)}, r"'beam' must broadcast to the shape of the hits, \(3, 2, 4\); got shape"),
        ({"ray": 1}, "'ray' is a column of the hits. Rename it"),
        ({"x": 1}, "'x' is a column of the hits"),
        ({"when": np.datetime64("2024-01-01")}, "'when' holds datetime64"),
        ({"intensity": 65_536}, "'intensity' must be numbers from 0 to 65535.*got int64 from 65536 to 65536"),
        ({"intensity": 0.5}, "'intensity' must be integers, as LAS has a dimension of this name"),
        ({"gps_time": "noon"}, "'gps_time' must be numbers"),
        ({"scanner_channel": 4}, "'scanner_channel' must be numbers from 0 to 3"),
    ],
)
def test_columns_that_do_not_fit_are_refused(tmp_path, columns, words):
    pytest.importorskip("laspy")
    with pytest.raises(rb.InvalidInput, match=words):
        rb.save(tmp_path / "a.las", rb.Scene(BOXES).nearest(GRID), columns=columns)
    assert not list(tmp_path.iterdir())


def test_columns_are_those_of_hits_alone(tmp_path):
    for content in (BOXES, RAYS, {"a": [1]}, rb.Scene(BOXES).all(RAYS).by_object()):
        with pytest.raises(rb.InvalidInput, match="columns are for Hits and AllHits"):
            rb.save(tmp_path / "a.npz", content, columns={"b": 1})
