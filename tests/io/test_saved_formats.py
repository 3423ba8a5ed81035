"""Every geometry and result in every format of `save`: what loads again, and what other programs read."""

import numpy as np
import pytest

import raybox as rb
from raybox.geometry import with_facts
from refusals import refused
from streaming import get

NAN = np.nan
LABELS = {
    "kind": ["wall", None, "Tür"],
    "cost": [1.5, NAN, -2.0],
    "count": [1, 2, 2**60 + 1],
    "flag": [True] * 3,
}
SOME = {"sparse": [None, 7, 8], "maybe": [True, None, False]}
LOWER = np.array([[0.0, 0.0, 0.1], [2.0, 0.0, 0.0], [5.0, 1 / 3, 0.0]])
VERTICES = np.random.default_rng(2).normal(size=(7, 3))
FACES = [[0, 1, 2], [2, 1, 4], [5, 1, 0]]
MATRICES = np.eye(3, 4) + np.array([0.0, 2.5, -1.0])[:, None, None] * [[0, 0, 0, 1]]
IDS = ["a", "b", "ö"]
GEOMETRIES = {
    "boxes": rb.Boxes(LOWER, LOWER + 1),
    "named boxes": rb.Boxes(LOWER, LOWER + 1, ids=IDS, labels=LABELS | SOME),
    "flat boxes": rb.Boxes(LOWER[:, :2], LOWER[:, :2] + 1, ids=[3, 2**40, -1]),
    "mesh": rb.Mesh(VERTICES, FACES),
    "named mesh": rb.Mesh(VERTICES, FACES, objects=[2, 0, 0], ids=IDS, labels=LABELS | SOME),
    "grid": rb.Grid([0, 1, 3], [0, 1], [0, 0.5], occupied=[True, False], ids=["u", "v"]),
    "flat grid": rb.Grid([0, 1, 3], [0, 1, 2.5]),
    "planes": rb.Planes([[0, 0, 1.0], [1, 0, 0], [0, 1, 0]], [1, 2, 3], ids=IDS, labels=LABELS),
    "instances": rb.Instances(
        rb.Mesh(VERTICES, FACES, objects=[1, 0, 0], ids=IDS[:2]), MATRICES, labels=SOME
    ),
    "copies of boxes": rb.Instances(rb.Boxes(LOWER, LOWER + 1, labels=LABELS), MATRICES, ids=IDS),
}
EQUAL, VALUES, OBJECTS = "equal", "values", "objects"
"""What loads again: the same; types of labels by the rules of tables; triangles and objects."""
SAVED = {
    ".npz": dict.fromkeys(GEOMETRIES, EQUAL),
    ".parquet": dict.fromkeys(["boxes", "named boxes", "flat boxes", "mesh", "named mesh"], EQUAL),
    ".csv": {"boxes": EQUAL, "named boxes": VALUES, "flat boxes": VALUES},
    ".npy": {"boxes": EQUAL, "named boxes": VALUES, "flat boxes": VALUES},
    ".ply": {"mesh": OBJECTS, "named mesh": OBJECTS},
    ".las": {},
    ".laz": {},
    ".pcd": {},
}


def plain(values):
    """Return values as a table without types has them: numbers, and text; None for each missing one."""
    return [
        None if v is None or v != v or v == "" else v + 0 if not isinstance(v, str) else v for v in values
    ]


@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("ending", SAVED)
def test_a_geometry_loads_as_the_table_says(tmp_path, ending, name):
    geometry, path = GEOMETRIES[name], tmp_path / f"a{ending}"
    if name not in SAVED[ending]:
        with pytest.raises(rb.InvalidInput, match=f"got {type(geometry).__name__}. Save it as .npz"):
            rb.save(path, geometry)
        assert not list(tmp_path.iterdir())
        return
    rb.save(path, geometry)
    first, found = path.read_bytes(), rb.load(path, kind="scene")
    outcome = SAVED[ending][name]
    if outcome == EQUAL:
        assert found.equals(geometry)
        assert repr(found) == repr(geometry)
        rb.save(path, found)
        assert path.read_bytes() == first
    elif outcome == VALUES:
        assert np.array_equal([found.lower, found.upper], [geometry.lower, geometry.upper])
        assert found.ids.tolist() == list(map(str, geometry.ids))
        assert found.labels.keys() == geometry.labels.keys()
        for label, values in geometry.labels.items():
            assert plain(found.labels[label].tolist()) == plain(values.tolist()), label
    else:
        for field in ("vertices", "faces", "objects"):
            assert np.array_equal(getattr(found, field), getattr(geometry, field))


def numbers_of(column):
    """Return values of another program as Python's, NaN as None."""
    return [None if value is None or value != value else value for value in column]


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".npy"])
def test_other_programs_read_the_columns_of_boxes(tmp_path, ending):
    boxes, path = GEOMETRIES["named boxes"], tmp_path / f"a{ending}"
    rb.save(path, boxes)
    names = [f"{end}_{axis}" for end in ("min", "max") for axis in "xyz"]
    wanted = (
        dict(zip(names, np.hstack([boxes.lower, boxes.upper]).T, strict=True))
        | {"id": IDS}
        | dict(boxes.labels)
    )
    found = get(path)
    assert [*found] == [*wanted]
    for name, column in wanted.items():
        values = numbers_of(np.array(column).tolist())
        if ending == ".csv":
            values = ["" if v is None else v if isinstance(v, str) else repr(v + 0) for v in values]
        elif (ending, name) == (".npy", "kind"):
            values = [v or "" for v in values]
        assert numbers_of(found[name].tolist()) == values


@pytest.mark.parametrize("name", GEOMETRIES)
def test_numpy_reads_the_arrays_of_npz(tmp_path, name):
    geometry = GEOMETRIES[name]
    rb.save(tmp_path / "a.npz", geometry)
    with np.load(tmp_path / "a.npz") as archive:  # allow_pickle=False
        arrays = dict(archive)
    if "raybox" in arrays:
        assert str(arrays["raybox"]) == type(geometry).__name__.lower()
    for field in ("lower", "upper", "vertices", "faces", "normals", "offsets", "transforms", "occupied"):
        assert (field in arrays) == hasattr(geometry, field)
        if field in arrays:
            assert np.array_equal(arrays[field], getattr(geometry, field))
    for label, values in geometry.labels.items():
        missing = arrays.get(f"missing/{label}", np.zeros(len(values), bool))
        found = np.where(missing, None, arrays[f"labels/{label}"].astype(object))
        assert numbers_of(found) == numbers_of(values)
    if geometry.ids is not None:
        assert arrays["id"].tolist() == geometry.ids.tolist()


def test_trimesh_reads_the_triangles(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    for name in ("mesh", "named mesh"):
        mesh = GEOMETRIES[name]
        rb.save(tmp_path / "a.ply", mesh)
        found = trimesh.load(tmp_path / "a.ply", process=False)
        assert found.vertices.tolist() == mesh.vertices.tolist()
        assert found.faces.tolist() == mesh.faces.tolist()
    assert found.metadata["_ply_raw"]["face"]["data"]["object"].tolist() == mesh.objects.tolist()


def test_the_table_beside_a_mesh_is_a_table_of_boxes(tmp_path):
    rb.save(tmp_path / "a.ply", GEOMETRIES["named mesh"])
    rb.save(tmp_path / "a.csv", GEOMETRIES["named boxes"])
    mesh, boxes = get(tmp_path / "a.ply.labels.csv"), get(tmp_path / "a.csv")
    assert [*mesh] == ["object", "id", *LABELS, *SOME]
    assert all(mesh[name].tolist() == boxes[name].tolist() for name in [*mesh][1:])
    labels = {"object": [7, 8, 9], "id": [4, 5, 6], "object_id": ["x", "y", "z"]}
    rb.save(tmp_path / "a.ply", rb.Mesh(VERTICES, FACES, ids=IDS, labels=labels))
    text = (tmp_path / "a.ply.labels.csv").read_text(encoding="utf-8")
    head = "object,id,object_object,object_object_id,object_id"
    assert text.splitlines() == [head, "0,a,7,4,x", "1,b,8,5,y", "2,ö,9,6,z"]


def test_integers_as_ids_of_npy_stay_integers(tmp_path):
    rb.save(tmp_path / "a.npy", GEOMETRIES["flat boxes"])
    assert np.load(tmp_path / "a.npy")["id"].tolist() == [3, 2**40, -1]
    assert rb.load(tmp_path / "a.npy", kind="scene").ids.tolist() == ["3", str(2**40), "-1"]


@pytest.mark.parametrize("ending", [".csv", ".npy", ".parquet"])
@pytest.mark.parametrize("columns", [{"a": [1, 2], "b": [1]}, {"a": np.zeros((2, 2))}, {"a": 5}])
def test_columns_of_several_shapes_are_refused(tmp_path, ending, columns):
    words = r"flat and of one length; got 'a' of shape .*Save them as \.npz"
    with pytest.raises(rb.InvalidInput, match=words):
        rb.save(tmp_path / f"a{ending}", columns)
    assert not list(tmp_path.iterdir())
    rb.save(tmp_path / "a.npz", columns)
    assert np.load(tmp_path / "a.npz").files == [*columns]


@pytest.mark.parametrize("ending", [".csv", ".npy", ".npz", ".parquet"])
def test_no_columns_are_an_empty_table(tmp_path, ending):
    rb.save(tmp_path / f"a{ending}", {})
    assert (tmp_path / f"a{ending}").stat().st_size > 0


RAY = rb.Rays([0, 0], [1, 0])
GIVEN = [("ids", one) for one in (GEOMETRIES["mesh"], [GEOMETRIES["boxes"]], RAY)]
GIVEN += [("labels", one) for one in (GEOMETRIES["boxes"], GEOMETRIES["mesh"], RAY, {"a": [1]})]


@pytest.mark.parametrize(("option", "content"), GIVEN)
def test_options_that_do_not_apply_are_refused(tmp_path, option, content):
    words = {"ids": "ids are for boxes and results", "labels": "labels are for results"}[option]
    with pytest.raises(rb.InvalidInput, match=words):
        rb.save(tmp_path / "a.npz", content, **{option: IDS if option == "ids" else True})
    assert not list(tmp_path.iterdir())


LEFT_OUT = {"faces of fewer than three corners": 3, 'nodes "ä",\n%': 2**40}


@pytest.mark.parametrize("name", ["named boxes", "named mesh"])
@pytest.mark.parametrize(("column", "old", "new"), [("id", "ö", b"\xff\xff"), ("kind", "Tür", b"T\xff\xffr")])
def test_texts_of_parquet_that_are_not_utf_8_are_refused(tmp_path, name, column, old, new):
    path = tmp_path / "a.parquet"
    rb.save(path, GEOMETRIES[name])
    data = path.read_bytes()
    assert old.encode() in data
    path.write_bytes(data.replace(old.encode(), new))
    assert f"column {column}: holds text that is not UTF-8" in refused(path)


def beyond_unicode(text, order):
    """Return texts, of which the last ends in a number that is no character."""
    text = text.astype(text.dtype.newbyteorder(order))
    text.reshape(-1).view(f"{order}u4")[-1] = 0x110000
    return text


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("member", ["raybox", "id", "labels/kind", "skipped/reason"])
def test_texts_of_npz_beyond_unicode_are_refused(tmp_path, member, order):
    path = tmp_path / "a.npz"
    rb.save(path, with_facts(GEOMETRIES["named mesh"], {"reason": 1}))
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, **arrays | {member: beyond_unicode(arrays[member], order)})
    assert f"{member}.npy: holds text that is not Unicode" in refused(path)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("column", ["id", "kind"])
def test_texts_of_npy_beyond_unicode_are_refused(tmp_path, column, order):
    path, boxes = tmp_path / "a.npy", GEOMETRIES["named boxes"]
    rb.save(path, boxes)
    table = np.load(path)
    fields = [
        (n, table.dtype[n].newbyteorder(order) if n == column else table.dtype[n]) for n in table.dtype.names
    ]
    swapped = table.astype(fields)
    np.save(path, swapped)
    assert rb.load(path).labels["kind"].tolist() == boxes.labels["kind"].tolist()
    swapped[column] = beyond_unicode(table[column], order)
    np.save(path, swapped)
    assert f"column {column}: holds text that is not Unicode" in refused(path)
