"""Objects of hits, their labels, rows by object and distances, against loops over hits and exact numbers."""

import pickle
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raybox as rb

TURN = np.array([[0.0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])


def soup(rng, triangles, objects):
    """Return a mesh of random triangles: object 0 has none, the others share the triangles."""
    vertices = rng.normal(size=(3 * triangles, 3))
    numbers = rng.integers(1, objects, triangles)
    labels = {
        "storey": [None if k % 3 == 0 else k for k in range(objects)],
        "name": [None if k % 4 == 1 else f"part {k}" for k in range(objects)],
        "area": [np.nan if k % 5 == 2 else k / 2 for k in range(objects)],
        "whole": list(range(objects)),
        "open": [k % 2 == 0 for k in range(objects)],
    }
    faces = np.arange(3 * triangles).reshape(-1, 3)
    return rb.Mesh(vertices, faces, objects=numbers, ids=[f"id {k}" for k in range(objects)], labels=labels)


def rays_of(rng, shape):
    return rb.Rays(2 * rng.normal(size=(*shape, 3)), rng.normal(size=(*shape, 3)))


def wanted(geometries, hits, name):
    """Return object numbers, ids (name "id") or labels of hits by a loop."""
    found = []
    for g, index, row in zip(hits.geometry.ravel(), hits.index.ravel(), hits.primitive.ravel(), strict=True):
        if g < 0:
            found.append(-1 if name == "object" else None)
            continue
        one, number = geometries[g], index
        if name != "object" and isinstance(one, rb.Instances):
            has = one.ids is not None if name == "id" else len(one.labels)
            one, number = (one, index) if has else (one.geometry, row)
        if isinstance(one, rb.Mesh):
            number = one.objects[number]
        column = one.ids if name == "id" else one.labels.get(name)
        found.append(number if name == "object" else None if column is None else column.tolist()[number])
    return found


def same(found, expected):
    """Return whether values are equal; NaN, None and their kinds among misses alike."""
    plain = [None if value is None or value != value else value for value in found.ravel().tolist()]
    return plain == [None if value is None or value != value else value for value in expected]


@pytest.mark.core
@pytest.mark.parametrize("seed", range(3))
def test_objects_ids_and_labels_equal_a_loop(seed):
    rng = np.random.default_rng(seed)
    mesh = soup(rng, 60, 9)
    boxes = rb.Boxes.from_centers(
        rng.normal(size=(20, 3)),
        0.4,
        labels={"name": [f"box {k}" for k in range(20)], "area": np.arange(20) / 4},
    )
    copies = rb.Instances(mesh, [np.eye(4), TURN])
    named = rb.Instances(mesh, [TURN], ids=["copy"], labels={"storey": [5]})
    planes = rb.Planes([0, 0, 1], [0.25], ids=[77])
    geometries = [mesh, boxes, copies, named, planes]
    rays, scene = rays_of(rng, (40, 5)), rb.Scene(geometries)
    for hits in (scene.nearest(rays), scene.first(rays, 3), scene.all(rays), scene.nearest(rays)[3:9, 1]):
        assert hits.object.ravel().tolist() == wanted(geometries, hits, "object")
        assert hits.object.shape == hits.index.shape
        assert hits.ids.ravel().tolist() == wanted(geometries, hits, "id")
        for name in ("name", "area", "storey", "whole", "open"):
            values = hits.labels(name)
            assert values.shape == hits.index.shape
            assert not values.flags.writeable
            assert same(values, wanted(geometries, hits, name)), name
    assert {*scene.all(rays).geometry.tolist()} == {0, 1, 2, 3, 4}
    nearest = scene.nearest(rays)
    assert (~nearest.hit).any() or np.isnan(nearest.labels("area")).any()


@pytest.mark.core
def test_dtypes_of_labels():
    rng = np.random.default_rng(5)
    scene, rays = rb.Scene(soup(rng, 40, 9)), rays_of(rng, (300,))
    hits = scene.nearest(rays)
    assert (~hits.hit).sum() > 20 < hits.hit.sum()
    kinds = {"storey": object, "name": object, "area": np.float64, "whole": object, "open": object}
    assert {name: values.dtype for name, values in hits.labels().items()} == kinds
    only = hits[hits.hit].labels(*kinds)
    assert {name: only[name].dtype for name in kinds} == kinds | {"whole": np.int64, "open": np.bool_}
    assert np.isnan(hits.labels("area")[~hits.hit]).all()
    assert (hits.labels("name")[~hits.hit] == None).all()  # noqa: E711
    with pytest.raises(TypeError):
        hits.labels()["name"] = only["name"]
    assert hits[0].labels("whole").shape == ()
    both = scene.all(rays[:50]).labels("storey", "whole")
    assert list(both) == ["storey", "whole"]
    for one in (hits, scene.all(rays), scene.all(rays).by_object()):
        with pytest.raises(
            rb.InvalidInput, match=r"no label 'story'; labels of this geometry: 'storey', 'name'"
        ):
            one.labels("story")
    plain = rb.Scene(rb.Boxes([0, 0, 0], [1, 1, 1])).nearest(rays)
    assert dict(plain.labels()) == {}
    with pytest.raises(rb.InvalidInput, match="labels of this geometry: none"):
        plain.labels("name")


@pytest.mark.core
def test_dtypes_of_labels_of_a_list_do_not_depend_on_the_rays():
    """Geometry k is hit by ray k alone, and ray 3 hits nothing; some geometries lack some labels."""
    bounds = [([0, 2 * k, 0], [1, 2 * k + 1, 1]) for k in range(3)]
    labels = [
        {"floats": [0.5], "both": [1.5], "whole": [1], "open": [True], "mixed": [2], "some": [0.25]},
        {"floats": [1.5], "both": [2.5], "whole": [2], "open": [False], "mixed": [0.5]},
        {"floats": [2.5], "whole": [3], "open": [True], "mixed": ["x"]},
    ]
    scene = rb.Scene([rb.Boxes(*one, labels=own) for one, own in zip(bounds, labels, strict=True)])
    rays = rb.Rays([[-1, y, 0.5] for y in (0.5, 2.5, 4.5, 9)], [1, 0, 0])
    floats, shown = {"floats", "both", "some"}, 0
    kinds = {name: np.dtype(float if name in floats else object) for name in labels[0]}
    for rows in [[], [0], [1], [2], [3], [0, 1], [1, 2], [0, 1, 2], [2, 3], [0, 1, 2, 3]]:
        for hits in (scene.nearest(rays[rows]), scene.all(rays[rows]), scene.all(rays[rows]).by_object()):
            found = hits.labels()
            assert {name: values.dtype for name, values in found.items()} == kinds
            for name, values in found.items():
                of_rays = [labels[k].get(name, [None])[0] for k in rows if k < 3]
                missed = [None] * (len(values) - len(of_rays))
                assert same(values, of_rays + missed)
                shown += len(values)
    assert shown == len(kinds) * (17 + 14 + 14)


def test_hits_of_one_ray():
    rng = np.random.default_rng(6)
    scene, rays = rb.Scene(soup(rng, 80, 6)), rays_of(rng, (20,))
    every = scene.all(rays)
    for k in range(20):
        first, last = every.offsets[k : k + 2]
        assert every[k].object.tolist() == every.object[first:last].tolist()
        assert every[k].labels("whole").tolist() == every.labels("whole")[first:last].tolist()
        assert every[k].labels("whole", "name")["name"].tolist() == every.labels("name")[first:last].tolist()
    assert len(every.index) > 10


def by_loop(hits):
    """Return rows by object, as the definition says."""
    rows = {}
    for ray, geometry, number, t in zip(hits.ray, hits.geometry, hits.object, hits.t, strict=True):
        rows.setdefault((ray, geometry, number), []).append(t)
    return [(*key, min(times), max(times), len(times)) for key, times in rows.items()]


@pytest.mark.core
@pytest.mark.parametrize("seed", range(4))
def test_rows_by_object_equal_a_loop(seed):
    rng = np.random.default_rng(seed)
    mesh = soup(rng, 90, 5)
    scene = rb.Scene([mesh, rb.Instances(mesh, [np.eye(4), TURN]), rb.Planes([1, 0, 0], [0.5])])
    hits = scene.all(rays_of(rng, (6, 5)))
    rows = hits.by_object()
    names = ("ray", "geometry", "object", "t_first", "t_last", "contacts")
    found = list(zip(*(getattr(rows, name).tolist() for name in names), strict=True))
    assert found == by_loop(hits)
    assert len(rows) == len(found) < len(hits.index)
    assert max(rows.contacts) > 1
    assert rows.contacts.sum() == len(hits.index)
    assert not any(getattr(rows, name).flags.writeable for name in names)
    for k in range(len(rows)):
        of_row = (
            (hits.ray == rows.ray[k]) & (hits.geometry == rows.geometry[k]) & (hits.object == rows.object[k])
        )
        assert rows.ids[k] in hits.ids[of_row].tolist()
    copy = pickle.loads(pickle.dumps(rows))
    assert copy.to_dict()["t_first"].tolist() == rows.t_first.tolist()
    assert not copy.ray.flags.writeable


def test_rows_by_object_where_no_integer_holds_ray_and_object():
    names = np.array([0, 2**62 - 1, 5])
    mesh = rb.Mesh(
        [[0, 0, k] for k in range(3)] + [[4, 0, k] for k in range(3)] + [[0, 4, k] for k in range(3)],
        [[k, k + 3, k + 6] for k in range(3)],
        objects=names,
    )
    hits = rb.Scene(mesh).all(rb.Rays([[1, 1, 9], [9, 9, 9], [1, 1, 5]], [0, 0, -1]))
    assert hits.by_object().object.tolist() == [5, 2**62 - 1, 0] * 2
    assert hits.by_object().ray.tolist() == [0, 0, 0, 2, 2, 2]


def test_rows_by_object_of_boxes_and_of_nothing():
    scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]], ids=["near", "far"]))
    rows = scene.all(rb.Rays([[0, 0], [0, 9]], [1, 0])).by_object()
    assert list(rows.to_dict()) == ["ray", "object", "id", "t_first", "t_last", "contacts"]
    assert rows.object.tolist() == [0, 1]
    assert rows.t_first.tolist() == rows.t_last.tolist() == [2, 5]
    assert repr(rows) == "ObjectHits(2 of 1 rays)"
    none = scene.all(rb.Rays([[0, 9]], [1, 0])).by_object()
    assert (len(none), none.ids.tolist(), none.to_dict()["ray"].tolist()) == (0, [], [])
    assert "<td>near</td>" in rows._repr_html_()


def test_tables_have_objects_and_labels():
    labels = {"t": ["a", None], "object_t": [1, 2], "id": [0.5, None]}
    mesh = rb.Mesh(np.eye(3), [[0, 1, 2], [0, 1, 2]], objects=[1, 0], ids=["x", "y"], labels=labels)
    rays = rb.Rays([[0, 0, 0], [5, 5, 5]], [1, 1, 1])
    hits = rb.Scene(mesh).nearest(rays)
    plain = ["ray", "index", "object", "id", "t", "x", "y", "z"]
    assert list(hits.to_dict()) == plain
    columns = hits.to_dict(labels=True)
    assert list(columns) == [*plain, "object_t", "object_object_t", "object_id"]
    assert columns["object"].tolist() == [1, -1]
    assert columns["object_t"].tolist() == [None, None]
    assert columns["object_object_t"].tolist() == [2, None]
    assert np.isnan(columns["object_id"]).all()
    assert list(hits.to_dict(labels="t")) == [*plain, "object_t"]
    assert list(hits.to_dict(labels=["id"])) == [*plain, "object_id"]
    assert "<th>object</th>" in hits._repr_html_()
    assert "object" not in rb.Scene(rb.Mesh(np.eye(3), [[0, 1, 2]])).nearest(rays).to_dict()
    with pytest.raises(rb.InvalidInput, match="no label 'u'"):
        hits.to_dict(labels="u")
    pytest.importorskip("pandas")
    table, frame = hits.to_arrow(labels=True), hits.to_pandas(labels=True)
    assert table.column_names == list(frame) == list(columns)
    assert table["object_object_t"].to_pylist() == [2, None]
    assert table["object_id"].null_count == 2
    kinds = {"object_t": "string", "object_object_t": "int64", "object_id": "double"}
    for one in (hits, hits[1:], hits[:0]):
        types = one.to_arrow(labels=True).schema
        assert {name: str(types.field(name).type) for name in kinds} == kinds
    other = rb.Boxes([[9, 9, 9]], [[9, 9, 9]], labels={"t": [5], "object_t": [0.5]})
    both = rb.Scene([mesh, other]).all(rb.Rays([[0, 0, 0], [9, 9, 9]], [1, 1, 1]))
    assert both.to_arrow(labels="object_t")["object_t"].to_pylist() == [2.0, 1.0, 0.5, 0.5]
    with pytest.raises(rb.InvalidInput, match="label 't' has values of several types"):
        both.to_arrow(labels="t")
    assert rb.Scene(mesh).all(rays).by_object().to_arrow(labels="object_t")["object_t"].to_pylist() == [2, 1]


def test_pictures_by_object():
    corners = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [2, 0, 0], [2, 1, 0]]
    mesh = rb.Mesh(corners, [[0, 1, 2], [0, 2, 3], [1, 4, 5], [1, 5, 2]], objects=[0, 0, 1, 1])
    origins = np.stack(np.meshgrid([0.3, 0.8, 1.3, 1.8, 9], [0.4, 0.6]), -1)
    hits = rb.Scene(mesh).nearest(
        rb.Rays(np.pad(origins, ((0, 0), (0, 0), (0, 1)), constant_values=5), [0, 0, -1])
    )
    picture = hits.image("object")
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) == 3
    for number in (-1, 0, 1):
        assert len(np.unique(picture[hits.object == number], axis=0)) == 1
    assert (picture[~hits.hit] == 255).all()


def exact_distance(t, direction):
    """Return t * |direction| in fifty digits, from the floats given."""
    with localcontext() as context:
        context.prec = 60
        square = sum(Fraction(x) ** 2 for x in direction)
        length = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
        return Decimal(t) * length


number = st.floats(-1e6, 1e6).filter(lambda x: abs(x) > 1e-6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(number, number, number), min_size=1, max_size=12), st.floats(0, 1e5))
def test_distances_are_times_by_lengths(directions, near):
    rays = rb.Rays(np.zeros((len(directions), 3)), directions)
    box = rb.Boxes([-np.inf] * 3, [np.inf] * 3)
    ranges = rb.Rays(rays.origins, rays.directions, t_min=near)
    hits = rb.Scene(box).nearest(ranges)
    for t, distance, direction in zip(hits.t.tolist(), hits.distances.tolist(), directions, strict=True):
        assert t == near
        assert abs(Decimal(distance) - exact_distance(t, direction)) <= Decimal(0.52 * np.spacing(distance))


def test_distances_by_hand():
    boxes = rb.Boxes([[6, 8, -1]], [[7, 9, 1]])
    rays = rb.Rays(
        [[0, 0, 0], [0, 0, 0], [0, 0, 0], [6, 8, 0]], [[3, 4, 0], [-3, 4, 0], [0.3, 0.4, 0], [0, 0, 0]]
    )
    hits = rb.Scene(boxes).nearest(rays)
    assert hits.distances.tolist() == [10, np.inf, pytest.approx(10), 0]
    assert not hits.distances.flags.writeable
    lines = rb.Scene(boxes).nearest(rb.Rays.lines([[12, 16, 0]], [[3, 4, 0]]))
    assert lines.distances.tolist() == [-10]
    every = rb.Scene(boxes).all(rays)
    assert every.distances.tolist() == hits.distances[hits.hit].tolist()
    assert every[0].distances.tolist() == [10]
    assert rb.Scene(boxes).first(rays, 2).distances.tolist()[0] == [10, np.inf]
    flat = rb.Scene(rb.Boxes([3, 4], [5, 5])).nearest(rb.Rays([0, 0], [0.75, 1]))
    assert flat.distances.item() == 5
    moved = rb.sweep(
        rb.Boxes([[0, 0, 0]], [[1, 1, 1]]), [0, 20, 0], rb.Scene(rb.Boxes([0, 11, 0], [1, 12, 1]))
    )
    assert moved.distances.tolist() == [10]


def test_distances_beyond_the_range_of_times():
    scene = rb.Scene(rb.Boxes([1e10, -1, -1], [2e10, 1, 1]))
    hits = scene.nearest(rb.Rays([0, 0, 0], [[1e-310, 0, 0], [-1e-310, 0, 0], [5e-324, 0, 0]]))
    assert hits.t.tolist() == [np.inf] * 3
    assert hits.distances.tolist() == [1e10, np.inf, 1e10]
    far = scene.nearest(rb.Rays.lines([3e10, 0, 0], [1e-310, 0, 0]))
    assert (far.t.item(), far.distances.item()) == (-np.inf, -2e10)
    near = rb.Scene(rb.Boxes([1e-20, -1, -1], [1, 1, 1])).nearest(rb.Rays([0, 0, 0], [1e303, 0, 0]))
    assert near.t.item() < 1e-322
    assert near.distances.item() == 1e-20


LOWER, UPPER, NAMES = [[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [7, 1, 1]], ["door", "wall"]
BOXES = rb.Boxes(LOWER, UPPER, ids=NAMES)
TRIANGLES = rb.Mesh([[9, -9, -9], [9, 9, -9], [9, 0, 9]], [[0, 1, 2]], ids=[7])
RAYS = rb.Rays([[[0, 0, 0], [0, 9, 0]], [[4, 0, 0], [6, 0, 0.5]]], [2, 0, 0])
PLAIN = rb.Boxes(LOWER, UPPER)


@pytest.mark.core
def test_ids_are_of_the_boxes_hit_and_none_for_a_miss():
    hits = rb.Scene(BOXES).nearest(RAYS)
    assert hits.ids.tolist() == [["door", None], ["wall", "wall"]]
    assert hits.ids.dtype == object
    assert not hits.ids.flags.writeable
    assert hits[0].ids.tolist() == ["door", None]
    assert hits[0, 0].ids.item() == "door"
    assert hits[hits.hit].ids.tolist() == ["door", "wall", "wall"]
    assert rb.Scene(BOXES).nearest(RAYS, where=[False, True]).ids.tolist() == [["wall", None], ["wall"] * 2]
    assert rb.Scene(BOXES).first(RAYS[0, 0], 3).ids.tolist() == ["door", "wall", None]


def test_ids_without_a_scene():
    assert rb.intersect(RAYS[..., None], BOXES).ids.tolist()[0] == [NAMES, [None, None]]
    moving = rb.Boxes([[0, 0, 0], [0, 5, 0]], [[1, 1, 1], [1, 6, 1]])
    assert rb.sweep(moving, [9, 0, 0], rb.Scene(BOXES)).ids.tolist() == ["door", None]


def test_ids_of_tables():
    bounds = np.hstack([LOWER, UPPER])
    assert rb.Boxes.from_bounds(bounds, ids=NAMES).ids.tolist() == NAMES
    table = dict(zip(["min_x", "min_y", "min_z", "max_x", "max_y", "max_z"], bounds.T, strict=True))
    assert rb.Boxes.from_bounds(table).ids is None
    assert rb.Boxes.from_bounds(table | {"id": NAMES}).ids.tolist() == NAMES
    assert rb.Boxes.from_bounds(table | {"id": NAMES}, ids=[4, 5]).ids.tolist() == [4, 5]


def test_ids_are_stored_as_given():
    given = np.array(["a", "b"])
    boxes = rb.Boxes(LOWER, UPPER, ids=given)
    given[0] = "changed"
    assert boxes.ids.tolist() == ["a", "b"]
    whole = rb.Boxes(LOWER, UPPER, ids=[np.int32(4), 5]).ids
    assert [type(one) for one in whole] == [int, int]
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    for column in (pandas.Series(NAMES), arrow.array(NAMES)):
        assert rb.Boxes(LOWER, UPPER, ids=column).ids.tolist() == NAMES


def test_update_takes_the_ids_of_the_new_boxes():
    scene = rb.Scene(BOXES)
    before = scene.nearest(RAYS)
    scene.update(rb.Boxes(BOXES.lower + 1, BOXES.upper + 1, ids=["gate", "fence"]))
    assert scene.nearest(RAYS[0, 0]).ids.item() == "gate"
    assert before.ids[0, 0] == "door"


def test_columns_have_ids():
    hits = rb.Scene(BOXES).nearest(RAYS)
    assert list(hits.to_dict())[:3] == ["ray", "index", "id"]
    assert hits.to_dict()["id"].tolist() == ["door", None, "wall", "wall"]
    assert "<td>-1</td><td></td>" in hits._repr_html_()
    pytest.importorskip("pandas")
    assert hits.to_arrow()["id"].to_pylist() == ["door", None, "wall", "wall"]
    assert hits.to_pandas()["id"].isna().tolist() == [False, True, False, False]
    assert str(hits[0, 1:].to_arrow()["id"].type) == "string"
    both = rb.Scene([TRIANGLES, BOXES]).all(RAYS[0, 0])
    assert both.to_arrow()["id"].to_pylist() == ["door", "wall", "7"]
    assert rb.Scene(TRIANGLES).all(RAYS[0]).to_arrow()["id"].to_pylist() == [7]


def test_a_scene_without_ids_says_so():
    for hits in (rb.Scene(PLAIN).nearest(RAYS), rb.Scene(PLAIN).all(RAYS), rb.intersect(RAYS, PLAIN[0])):
        with pytest.raises(rb.InvalidInput, match="need a geometry with ids"):
            hits.ids  # noqa: B018
        assert "id" not in hits.to_dict()


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["a"], "one id for each box: 2; got 1"),
        ("ab", "must be a sequence, one id for each box; got str"),
        (5, "must be a sequence, one id for each box; got int"),
        (["a", None], "all str or all int; the id of box 1 is None"),
        (["a", 5], "the id of box 1 is 5"),
        ([1.5, 2.5], "the id of box 0 is 1.5"),
        ([True, False], "the id of box 0 is True"),
    ],
)
def test_wrong_ids_are_refused(ids, words):
    with pytest.raises(rb.InvalidInput, match=words):
        rb.Boxes(LOWER, UPPER, ids=ids)
