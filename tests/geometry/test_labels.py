"""Labels, ids and objects of geometries: stored, refused, and kept by slices, pickles and copies."""

import copy
import pickle

import numpy as np
import pytest

import raybox as rb
from needs import package
from raybox.geometry import with_facts
from raybox.geometry.labels import Labels, column_of

SQUARE = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
FACES = [[0, 1, 2], [0, 2, 3], [0, 1, 3]]
LABELS = {
    "name": ["a", None, "c"],
    "storey": [1, 2, 3],
    "height": [0.5, None, 2.0],
    "open": [True, False, True],
}
LISTS = {
    "name": ["a", None, "c"],
    "storey": [1, 2, 3],
    "height": [0.5, np.nan, 2.0],
    "open": [True, False, True],
}
EDGES = ([0, 1, 2, 3], [0, 1])
TURN = [[[1, 0, 0, k], [0, 1, 0, 0], [0, 0, 1, 0]] for k in range(3)]


def boxes(**options):
    return rb.Boxes([[0, 0, 0], [2, 0, 0], [4, 0, 0]], [[1, 1, 1], [3, 1, 1], [5, 1, 1]], **options)


GEOMETRIES = {
    "boxes": boxes,
    "mesh": lambda **options: rb.Mesh(SQUARE, FACES, **options),
    "objects": lambda **options: rb.Mesh(SQUARE, FACES, objects=[2, 0, 2], **options),
    "planes": lambda **options: rb.Planes([0, 0, 1], [1, 2, 3], **options),
    "grid": lambda **options: rb.Grid(*EDGES, **options),
    "uniform": lambda **options: rb.Grid.uniform([0, 0], 1, (3, 1), **options),
    "instances": lambda **options: rb.Instances(boxes(), TURN, **options),
    "poses": lambda **options: rb.Instances.from_poses(boxes(), np.eye(3), **options),
    "oriented": lambda **options: rb.Instances.oriented_boxes(np.eye(3), 1, **options),
    "centers": lambda **options: rb.Boxes.from_centers(np.eye(3), 1, **options),
    "bounds": lambda **options: rb.Boxes.from_bounds([[0, 0, 1, 1]] * 3, **options),
}


def lists(labels):
    return {name: values.tolist() for name, values in labels.items()}


def same(one, other):
    return repr(lists(one)) == repr(other if isinstance(other, dict) else lists(other))  # NaN is not NaN


@pytest.mark.core
@pytest.mark.parametrize("kind", GEOMETRIES)
def test_ids_and_labels_survive_pickles_and_copies(kind):
    made = GEOMETRIES[kind](ids=["x", "y", "z"], labels=LABELS)
    counted = with_facts(made, {"without geometry": 4})
    assert made.skipped == {}
    for one in (counted, pickle.loads(pickle.dumps(counted)), copy.copy(counted), copy.deepcopy(counted)):
        assert one.ids.tolist() == ["x", "y", "z"]
        assert not one.ids.flags.writeable
        assert same(one.labels, LISTS)
        assert [one.labels[name].dtype for name in LABELS] == [object, np.int64, np.float64, np.bool_]
        assert not any(values.flags.writeable for values in one.labels.values())
        assert dict(one.skipped) == {"without geometry": 4}
        with pytest.raises(TypeError):
            one.labels["name"] = one.ids
        with pytest.raises(TypeError):
            one.skipped["more"] = 1
    plain = GEOMETRIES[kind]()
    assert (plain.ids, dict(plain.labels), dict(plain.skipped)) == (None, {}, {})


@pytest.mark.parametrize("kind", [kind for kind in GEOMETRIES if kind not in ("mesh", "objects")])
@pytest.mark.parametrize("index", [1, slice(1, None), [2, 0]], ids=str)
def test_slices_have_the_rows_of_their_objects(kind, index):
    made = with_facts(GEOMETRIES[kind](ids=[7, 8, 9], labels=LABELS), {"lost": 1})
    if isinstance(made, rb.Grid) and isinstance(index, list):
        return
    rows = np.arange(3)[[index] if isinstance(index, int) else index]
    part = made[index]
    assert part.ids.tolist() == [[7, 8, 9][row] for row in rows]
    assert same(part.labels, {name: [values[row] for row in rows] for name, values in LISTS.items()})
    assert dict(part.skipped) == {"lost": 1}
    if isinstance(made, rb.Boxes):
        assert same(made.expanded(1).labels, LISTS)
    if isinstance(made, rb.Instances):
        assert same(made.boxes().labels, LISTS)
        assert made.boxes().ids.tolist() == [7, 8, 9]


def test_rays_have_counts_of_what_was_left_out():
    plain = rb.Rays(np.zeros((4, 3)), [1, 0, 0])
    rays = with_facts(plain, {"invalid points": 2})
    assert rays.equals(plain)
    assert dict(plain.skipped) == {}
    for one in (rays, rays[1:], rays.reshape(2, 2), pickle.loads(pickle.dumps(rays)), copy.deepcopy(rays)):
        assert dict(one.skipped) == {"invalid points": 2}


def test_cells_of_a_grid_in_two_dimensions():
    numbers = np.arange(6)
    grid = rb.Grid([0, 1, 2], [0, 1, 2, 3], ids=numbers, labels={"n": numbers * 10})
    assert grid[1, 1:].ids.tolist() == [4, 5]
    assert grid[:, 2].labels["n"].tolist() == [20, 50]
    assert grid.boxes([3, 1]).labels["n"].tolist() == [30, 10]
    assert grid.boxes().ids.tolist() == numbers.tolist()
    mask = np.array([[True, False, False], [False, True, False]])
    assert grid.boxes(mask).ids.tolist() == [0, 4]


@pytest.mark.core
def test_objects_of_a_mesh():
    assert rb.Mesh(SQUARE, FACES).objects.tolist() == [0, 1, 2]
    mesh = rb.Mesh(SQUARE, FACES, objects=np.array([2, 0, 2], np.uint8), ids=["a", "b", "c", "d"])
    assert mesh.objects.tolist() == [2, 0, 2]
    assert mesh.objects.dtype == np.int64
    assert not mesh.objects.flags.writeable
    assert repr(mesh) == "Mesh(3, vertices=4, objects=4)"
    part = mesh[[2, 1]]
    assert (part.faces.tolist(), part.objects.tolist()) == ([FACES[2], FACES[1]], [2, 0])
    assert part.ids.tolist() == ["a", "b", "c", "d"]
    assert mesh[0].objects.tolist() == [2]
    assert mesh[np.array([False, True, True])].objects.tolist() == [0, 2]
    assert rb.Mesh(SQUARE, FACES)[1:].objects.tolist() == [1, 2]
    assert pickle.loads(pickle.dumps(part)).objects.tolist() == [2, 0]
    assert rb.Mesh(SQUARE, FACES, objects=[0, 0, 5]).objects.tolist() == [0, 0, 5]
    assert repr(rb.Mesh(SQUARE, FACES, objects=[0, 0, 5], labels={})) == "Mesh(3, vertices=4, objects=6)"
    empty = rb.Mesh(SQUARE, [], objects=[], ids=["alone"])
    assert (len(empty), empty.ids.tolist(), empty.objects.tolist()) == (0, ["alone"], [])
    for index in ((0, 1), None, np.zeros((1, 3), int)):
        with pytest.raises(IndexError, match="flat list"):
            mesh[index]


def test_bounds_of_a_mesh_are_those_of_its_triangles():
    mesh = rb.Mesh([*SQUARE, [9, 9, 9]], FACES)
    assert mesh.bounds.tolist() == [[0, 0, 0], [1, 1, 0]]
    assert mesh[[2]].bounds.tolist() == [[0, 0, 0], [1, 1, 0]]
    assert mesh[:0].bounds.tolist() == [[np.inf] * 3, [-np.inf] * 3]
    rng = np.random.default_rng(3)
    many = rb.Mesh(rng.normal(size=(40, 3)), rng.integers(0, 40, (25, 3)))
    corners = many.triangles.reshape(-1, 3)
    np.testing.assert_array_equal(many.bounds, [corners.min(axis=0), corners.max(axis=0)])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objects": [0, 1]}, r"objects must have shape \(3,\), one for each triangle; got shape \(2,\)"),
        ({"objects": [0.0, 1, 2]}, "objects must be of an integer type"),
        ({"objects": [0, -1, 0]}, "from 0 to 0; 1 of 3 break this, first triangle 1"),
        ({"objects": [0, 3, 1], "ids": ["a", "b"]}, "from 0 to 1; 1 of 3 break this, first triangle 1"),
        ({"objects": [0, 1, 1], "labels": {"a": [1]}}, "from 0 to 0; 2 of 3"),
        (
            {"objects": [0, 1, 1], "labels": {"a": [1, 2], "b": [1]}},
            r"labels must have .*'b' has shape \(1,\)",
        ),
        ({"objects": [0, 1, 1], "labels": {"a": [1, 2]}, "ids": [1]}, "one id for each object: 2; got 1"),
        ({"objects": [0, 0, 0], "ids": []}, "there are no objects"),
        ({"ids": ["a"]}, "one id for each triangle: 3; got 1"),
    ],
)
def test_wrong_objects_are_refused(options, words):
    with pytest.raises(rb.InvalidInput, match=words):
        rb.Mesh(SQUARE, FACES, **options)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (5, "labels must be a mapping of names to columns, or a table; got int"),
        ("name", "got str"),
        ([[1, 2, 3]], "got list"),
        ({"a": "xyz"}, "labels must be columns; 'a' is str"),
        ({"a": 5}, "'a' is int"),
        ({"a": [1, 2]}, r"of shape \(3, one for each box\); 'a' has shape \(2,\)"),
        ({"a": np.zeros((3, 1))}, r"has shape \(3, 1\)"),
        ({"a": ["x", 1, 2]}, "of one kind in a column; 'a' holds int, 1, in row 1"),
        ({"a": [1, True, 2]}, "'a' holds"),
        ({"a": [[1], [2], [3]]}, "'a' holds list"),
        ({"a": [1j, 2, 3]}, "'a' holds complex"),
        ({"a": np.array([1, 2, 3], "M8[s]")}, "'a' holds datetime64"),
        ({"a": [2**70, 0, 1]}, "an integer beyond 64 bits"),
        ({"a": [2**53 + 1, 0.5, 1]}, "the integer 9007199254740993, which is not exact"),
        ({"a": np.array([2**64 - 1, 0, 0], np.uint64)}, "'a' holds uint64"),
        ({5: [1, 2, 3]}, "names of labels must be str; got 5"),
    ],
)
def test_wrong_labels_are_refused(labels, words):
    with pytest.raises(rb.InvalidInput, match=words):
        boxes(labels=labels)


@pytest.mark.parametrize(
    ("values", "dtype", "wanted"),
    [
        ([2**60 + 1, 0, -(2**63)], np.int64, [2**60 + 1, 0, -(2**63)]),
        ([2**60 + 1, None, 1], object, [2**60 + 1, None, 1]),
        ([1, 2.5, None], np.float64, [1.0, 2.5, np.nan]),
        (["1", np.nan, "x"], object, ["1", None, "x"]),
        ([True, None, False], object, [True, None, False]),
        ([None, None, None], object, [None, None, None]),
        (np.array(["a", "bb", ""]), object, ["a", "bb", ""]),
        (np.float32([0.5, 1, np.nan]), np.float64, [0.5, 1.0, np.nan]),
        (np.uint8([1, 2, 3]), np.int64, [1, 2, 3]),
        (np.ma.array([1, 2, 3], mask=[0, 1, 0]), object, [1, None, 3]),
        (np.array([1, None, 2.5], object), np.float64, [1.0, np.nan, 2.5]),
        ([np.int8(4), 5, 6], np.int64, [4, 5, 6]),
    ],
)
def test_columns_keep_their_kind(values, dtype, wanted):
    found = boxes(labels={"a": values}).labels["a"]
    assert found.dtype == dtype
    assert repr(found.tolist()) == repr(wanted)


TABLE = {"i": [2**60 + 1, None, 3], "f": [0.5, None, 2.5], "s": ["x", None, "z"], "b": [True, False, True]}


def test_tables_of_arrow_pandas_and_polars_give_the_same_labels():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table(TABLE | {"c": arrow.array(["u", "v", "u"]).dictionary_encode()})
    tables = [table, dict(zip(table.column_names, table.columns, strict=True))]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "i": pandas.array(TABLE["i"], dtype="Int64"),
            **{name: TABLE[name] for name in ("f", "s", "b")},
            "c": pandas.Categorical(["u", "v", "u"]),
        }
    )
    tables += [frame, frame.set_index(pandas.Index([5, 6, 7], name="row"))]
    try:
        tables.append(package("polars").from_arrow(table))
    except pytest.skip.Exception:
        assert len(tables) == 4
    wanted = {
        "i": TABLE["i"],
        "f": [0.5, np.nan, 2.5],
        "s": TABLE["s"],
        "b": TABLE["b"],
        "c": ["u", "v", "u"],
    }
    for one in tables:
        labels = boxes(labels=one).labels
        assert same(labels, wanted)
        assert [values.dtype for values in labels.values()] == [object, np.float64, object, np.bool_, object]
    with pytest.raises(rb.InvalidInput, match="more than one column named 'a'"):
        boxes(labels=pandas.DataFrame([[1, 2]] * 3, columns=["a", "a"]))
    with pytest.raises(rb.InvalidInput, match=r"must be numbers, bools or text.*'a' holds timestamp"):
        boxes(labels={"a": arrow.array([1, 2, 3], arrow.timestamp("s"))})


class Column:
    """A column of a table that has `to_numpy` alone."""

    def __init__(self, values):
        self.values = values

    def to_numpy(self):
        return np.array(self.values, dtype=object)


class Frame(dict):
    """A table without the Arrow stream."""

    columns = property(list)


def test_tables_without_the_arrow_stream():
    labels = boxes(labels=Frame({name: Column(values) for name, values in TABLE.items()})).labels
    assert same(labels, {"i": TABLE["i"], "f": [0.5, np.nan, 2.5], "s": TABLE["s"], "b": TABLE["b"]})


def test_values_of_files_become_text_where_kinds_are_mixed():
    for values, wanted in [
        ([1, "a", None], ["1", "a", None]),
        ([True, 2, 0.5], ["True", "2", "0.5"]),
        ([2**70, 1], [str(2**70), "1"]),
        ([1, None], [1, None]),
        ([1, 2], [1, 2]),
        ([0.5, 2], [0.5, 2.0]),
    ]:
        assert column_of(values).tolist() == wanted


def test_labels_compare_by_value():
    one = Labels({"a": np.array([1.0, np.nan])})
    assert one == Labels({"a": np.array([1.0, np.nan])})
    assert one != Labels({"a": np.array([1.0, 2.0])})
    assert one != Labels({"a": np.array([1, 2])})
    assert one != Labels({"b": np.array([1.0, np.nan])})
    assert repr(one) == "Labels(a: float64)"
