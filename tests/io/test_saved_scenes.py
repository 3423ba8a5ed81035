"""What `save` writes of geometries loads again, equal: arrays, objects, ids and labels with their types."""

import contextlib
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import raybox as rb

NAN, INF = np.nan, np.inf
LABELS = {
    "text": ["wall", None, ""],
    "integers": [1, None, 2**60 + 1],
    "floats": [1.5, NAN, -INF],
    "bools": [True, None, False],
    "whole": [1, -(2**63), 2**63 - 1],
    "flags": [True, False, True],
    "none": [None] * 3,
    "Geschoß/Höhe (m)": ['ä,\n"q"', "€\r", "🌍"],
    "storey": [1, 2, 3],
}
VERTICES = np.random.default_rng(1).normal(size=(8, 3))
FACES = [[0, 1, 2], [3, 1, 2], [5, 3, 1]]
BOXES = rb.Boxes([[0, -INF, 0]] * 3, [[1, 1, INF]] * 3, ids=["a", "", "ö"], labels=LABELS)
MESH = rb.Mesh(VERTICES, FACES, objects=[2, 0, 2], ids=["p", "q", "r"], labels=LABELS)
PLAIN = rb.Mesh(VERTICES, FACES, labels=LABELS)
MATRICES = np.array([2.0, 1.0, -3.0])[:, None, None] * np.eye(3, 4) + [[0, 0, 0, 0.1]] * 3
SCENES = {
    "boxes": BOXES,
    "boxes 2D": rb.Boxes([[0, 0]], [[1, 1]], ids=[2**63 - 1], labels={"min_z": [1.0]}),
    "boxes without ids, with text": rb.Boxes([[0, 0]], [[1, 1]], labels={"kind": ["car"]}),
    "no boxes": BOXES[:0],
    "sliced labels": rb.Boxes([[0, 0]] * 2, [[1, 1]] * 2, labels={"n": [1, None], "b": [True, None]})[:1],
    "mesh": MESH,
    "mesh of one object": rb.Mesh(VERTICES[:3], FACES[:1], objects=[0], ids=["one"]),
    "mesh without triangles": MESH[:0],
    "mesh without objects": PLAIN,
    "mesh without anything": rb.Mesh(np.empty((0, 3)), np.empty((0, 3), int)),
    "objects without names": rb.Mesh(VERTICES, FACES, objects=[1, 1, 0]),
    "last objects without triangles": rb.Mesh(VERTICES, FACES, objects=[0, 0, 0], ids=[7, 8, -9]),
}
COPIES = {
    "instances": rb.Instances(MESH, MATRICES, ids=[1, 2, 3], labels=LABELS),
    "instances of boxes": rb.Instances(rb.Boxes([0, 0], [1, 1], ids=["unit"]), [[[1, 2, 3], [0, 1, 4]]]),
    "no instances": rb.Instances(MESH, np.empty((0, 3, 4))),
    "grid": rb.Grid([0, 1, 2], [0, 3.5], [0, 2], occupied=[True, False], ids=["u", "v"]),
    "planes": rb.Planes([[0, 0, 1], [1, 0, 0], [0, 1, 0]], [1, 2, -0.0], labels=LABELS),
}
ALL = SCENES | COPIES


@pytest.mark.parametrize("name", ALL)
def test_a_geometry_loads_from_npz_as_it_was(tmp_path, name):
    check_round_trip(tmp_path / "a.npz", ALL[name])


@pytest.mark.parametrize("name", [name for name in SCENES if name != "boxes 2D"])
def test_boxes_and_meshes_load_from_parquet_as_they_were(tmp_path, name):
    check_round_trip(tmp_path / "a.parquet", SCENES[name])


def check_round_trip(path, geometry):
    """Check that a saved geometry loads as it was, and is saved again as the same bytes."""
    rb.save(path, geometry)
    found = rb.load(path)
    assert found.equals(geometry)
    assert repr(found) == repr(geometry)
    first = path.read_bytes()
    rb.save(path, found)
    assert path.read_bytes() == first


def test_a_mesh_in_parquet_is_a_table_of_triangles(tmp_path):
    MESH.save(tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    faces = table.slice(0, 3)
    assert np.stack([faces[f"vertex{k}"] for k in range(3)], -1).tolist() == FACES
    assert [[faces[f"{c}{k}"][1].as_py() for c in "xyz"] for k in range(3)] == MESH.triangles[1].tolist()
    assert faces["object"].to_pylist() == [2, 0, 2]
    assert faces["id"].to_pylist() == ["r", "p", "r"]
    assert faces["text"].to_pylist() == ["", "wall", ""]
    rest = table.slice(3)  # vertices 4, 6, 7 of no triangle, then the object without any
    assert rest["vertex0"].to_pylist() == [4, 6, 7, None]
    assert rest["id"].to_pylist() == [None, None, None, "q"]
    assert rest["x1"].null_count == rest["vertex1"].null_count == 4


@pytest.mark.parametrize("name", [name for name in SCENES if "mesh" in name or "objects" in name])
def test_a_mesh_loads_from_ply_with_its_objects(tmp_path, name):
    mesh = SCENES[name]
    mesh.save(tmp_path / "a.ply")
    found = rb.load(tmp_path / "a.ply")
    assert np.array_equal(found.vertices, mesh.vertices)
    assert np.array_equal(found.faces, mesh.faces)
    assert np.array_equal(found.objects, mesh.objects)
    assert (tmp_path / "a.ply.labels.csv").exists() == bool(mesh.labels or mesh.ids is not None)


def test_ids_and_labels_of_a_ply_mesh_are_a_table_beside_it(tmp_path):
    labels = {"class": ["wall", None], "cost": [1.5, 2.0]}
    rb.Mesh(VERTICES, FACES, objects=[0, 1, 0], ids=["a", "b"], labels=labels).save(tmp_path / "a.ply")
    text = (tmp_path / "a.ply.labels.csv").read_text()
    assert text == "object,id,class,cost\n0,a,wall,1.5\n1,b,,2.0\n"
    rb.Mesh(VERTICES, FACES).save(tmp_path / "a.ply")
    assert not (tmp_path / "a.ply.labels.csv").exists()  # it would name other objects


def test_other_programs_read_a_ply_mesh(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    MESH.save(tmp_path / "a.ply")
    found = trimesh.load(tmp_path / "a.ply", process=False)
    assert found.vertices.tolist() == VERTICES.tolist()
    assert found.faces.tolist() == FACES


def test_a_list_and_a_scene_load_as_a_list(tmp_path):
    given = [ALL[name] for name in ("mesh", "instances", "grid", "planes", "boxes", "mesh without triangles")]
    for content in (given, tuple(given), rb.Scene(given)):
        rb.save(tmp_path / "a.npz", content)
        found = rb.load(tmp_path / "a.npz", kind="scene")
        assert isinstance(found, list)
        assert len(found) == len(given)
        assert all(map(lambda one, other: one.equals(other), found, given))
    rb.save(tmp_path / "a.npz", [BOXES])
    assert [type(one) for one in rb.load(tmp_path / "a.npz")] == [rb.Boxes]
    rb.save(tmp_path / "a.npz", rb.Scene(MESH))
    assert rb.load(tmp_path / "a.npz").equals(MESH)


def test_hits_of_a_loaded_scene_are_those_of_the_saved_one(tmp_path):
    scene = rb.Scene([MESH, COPIES["instances"]])
    rb.save(tmp_path / "a.npz", scene)
    other = rb.Scene(rb.load(tmp_path / "a.npz"))
    rng = np.random.default_rng(5)
    origins, targets = rng.normal(size=(200, 3)) * 4, VERTICES[rng.integers(0, 6, (200, 3))].mean(axis=1)
    rays = rb.Rays(origins, targets - origins)
    assert {*scene.nearest(rays).geometry.tolist()} == {-1, 0, 1}
    assert scene.nearest(rays).equals(other.nearest(rays))
    assert scene.all(rays).equals(other.all(rays))


def test_boxes_of_what_was_saved(tmp_path):
    rb.save(tmp_path / "a.npz", MESH)
    MESH.save(tmp_path / "a.parquet")
    for name in ("a.npz", "a.parquet"):
        boxes = rb.load(tmp_path / name, boxes=True)
        for row, number in enumerate([0, 2]):  # the object 1 has no triangles
            corners = MESH.triangles[MESH.objects == number].reshape(-1, 3)
            assert boxes.lower[row].tolist() == corners.min(axis=0).tolist()
            assert boxes.upper[row].tolist() == corners.max(axis=0).tolist()
        assert boxes.ids.tolist() == ["p", "r"]
        assert boxes.labels["text"].tolist() == ["wall", ""]
    rb.save(tmp_path / "a.npz", [COPIES["instances of boxes"], rb.Boxes([0, 0], [1, 1])])
    assert len(rb.load(tmp_path / "a.npz", boxes=True)) == 2
    rb.save(tmp_path / "a.npz", [MESH, COPIES["planes"]])
    refused(tmp_path / "a.npz", "have no boxes", boxes=True)


def test_arrays_of_a_mesh_by_numpy_are_a_mesh(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", vertices=VERTICES.astype(np.float32), faces=np.int32(FACES))
    assert np.array_equal(rb.load(tmp_path / "a.npz").faces, FACES)


def test_boxes_without_labels_are_arrays_as_before(tmp_path):
    rb.save(tmp_path / "a.npz", rb.Boxes([[0, 0]], [[1, 1]]), ids=["a"])
    assert np.load(tmp_path / "a.npz").files == ["lower", "upper", "id"]
    rb.save(tmp_path / "a.npy", rb.Boxes([[0, 0]], [[1, 1]]))
    assert np.load(tmp_path / "a.npy").tolist() == [[0, 0, 1, 1]]


def test_named_boxes_in_csv_and_npy_have_columns(tmp_path):
    labels = {"kind": ["car", None], "speed": [1.5, NAN], "unknown": [NAN, NAN], "lane": [1, 2]}
    boxes = rb.Boxes([[0, 0], [2, 0]], [[1, 1], [3, 1]], ids=["a", "b"], labels=labels)
    rb.save(tmp_path / "a.csv", boxes)
    head, first, second = (tmp_path / "a.csv").read_text().splitlines()
    assert head == "min_x,min_y,max_x,max_y,id,kind,speed,unknown,lane"
    assert (first, second) == ("0.0,0.0,1.0,1.0,a,car,1.5,,1", "2.0,0.0,3.0,1.0,b,,,,2")
    for name in ("a.csv", "a.npy"):
        rb.save(tmp_path / name, boxes)
        found = rb.load(tmp_path / name, kind="scene")
        assert found.ids.tolist() == ["a", "b"]
        for label in ("kind", "speed", "lane"):
            assert found.labels[label].tolist()[:1] == labels[label][:1]
        assert found.labels["kind"][1] is None
        assert np.isnan(found.labels["speed"][1])


@pytest.mark.parametrize("ending", ["csv", "npy", "npz", "parquet"])
def test_columns_of_a_dict_may_be_lists(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    rb.save(path, {"n": [1, 2], "text": ["x", None], "t": np.array([1.5, 2.0])})
    if ending == "csv":
        assert path.read_text() == "n,text,t\n1,x,1.5\n2,,2.0\n"
        return
    table = pq.read_table(path).to_pydict() if ending == "parquet" else np.load(path)
    assert list(table["n"]) == [1, 2]
    assert list(table["text"]) == ["x", None if ending == "parquet" else ""]


@pytest.mark.parametrize("ending", ["csv", "npy", "parquet"])
@pytest.mark.parametrize("label", ["min_x", "MAX_Z", "id"])
def test_labels_named_like_bounds_are_refused_in_tables(tmp_path, ending, label):
    boxes = rb.Boxes([[0, 0]], [[1, 1]], labels={label: [1]})
    with pytest.raises(rb.InvalidInput, match=f"label '{label}' has the name of a column"):
        rb.save(tmp_path / f"a.{ending}", boxes)
    assert not list(tmp_path.iterdir())
    rb.save(tmp_path / "a.npz", boxes)
    assert rb.load(tmp_path / "a.npz").equals(boxes)


@pytest.mark.parametrize(
    ("ending", "geometry", "words"),
    [
        ("npz", rb.Boxes([0, 0], [1, 1], labels={"a\\b": [1]}), "backslash"),
        ("npz", rb.Boxes([0, 0], [1, 1], labels={"": [1]}), "must not be empty"),
        ("npz", rb.Boxes([0, 0], [1, 1], labels={"a\0": [1]}), "NUL"),
        ("npz", rb.Boxes([0, 0], [1, 1], labels={"a": ["\udc80"]}), "surrogates"),
        ("npz", rb.Boxes([0, 0], [1, 1], ids=[2**64], labels={"a": [1]}), "64 bits"),
        ("parquet", rb.Boxes([0, 0], [1, 1], labels={"a": ["x\0"]}), "NUL"),
        ("parquet", rb.Boxes([0, 0], [1, 1], ids=["\ud800"]), "surrogates"),
        ("parquet", rb.Boxes([0, 0], [1, 1], ids=[2**64]), "64 bits"),
        ("csv", rb.Boxes([0, 0], [1, 1], labels={"a": ["\ud800"]}), "surrogates"),
        ("csv", MESH, "got Mesh. Save it as .npz"),
        ("npy", COPIES["planes"], "got Planes"),
        ("parquet", COPIES["grid"], "got Grid"),
        ("ply", BOXES, "got Boxes"),
        ("npz", [], "must not be empty"),
        ("npz", [rb.Rays([0, 0], [1, 0])], "got Rays"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(tmp_path, ending, geometry, words):
    with pytest.raises(rb.InvalidInput, match=words):
        rb.save(tmp_path / f"a.{ending}", geometry)
    assert not list(tmp_path.iterdir())


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
VALUES = {
    "text": TEXT | st.none(),
    "integers": st.integers(-(2**63), 2**63 - 1),
    "sparse": st.integers(-(2**63), 2**63 - 1) | st.none(),
    "floats": st.floats(),
    "bools": st.booleans() | st.none(),
}
NAMES = TEXT.filter(lambda name: name and "\\" not in name and name.lower() != "id")


@st.composite
def meshes(draw):
    """A mesh whose objects, ids and labels may be of any kind, or absent."""
    vertices = draw(st.lists(st.tuples(*[st.floats(-1e300, 1e300)] * 3), min_size=1, max_size=6))
    corner = st.integers(0, len(vertices) - 1)
    faces = draw(st.lists(st.tuples(corner, corner, corner), max_size=6))
    count = draw(st.integers(1, 4))
    objects = draw(st.none() | st.lists(st.integers(0, count - 1), min_size=len(faces), max_size=len(faces)))
    rows = len(faces) if objects is None else count
    kinds = draw(st.dictionaries(NAMES, st.sampled_from(sorted(VALUES)), min_size=objects is not None))
    labels = {n: draw(st.lists(VALUES[kind], min_size=rows, max_size=rows)) for n, kind in kinds.items()}
    ids = draw(
        st.none()
        | st.lists(TEXT, min_size=rows, max_size=rows)
        | st.lists(VALUES["integers"], min_size=rows, max_size=rows)
    )
    shaped = np.array(faces, dtype=np.int64).reshape(-1, 3)
    return rb.Mesh(vertices, shaped, objects=objects, ids=ids, labels=labels)


@given(meshes())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_mesh_loads_again(tmp_path, mesh):
    mesh.save(tmp_path / "a.npz")
    assert rb.load(tmp_path / "a.npz").equals(mesh)
    own = {f"{axis}{k}" for axis in "xyz" for k in range(3)} | {f"vertex{k}" for k in range(3)} | {"object"}
    if not own.intersection(map(str.lower, mesh.labels)):
        mesh.save(tmp_path / "a.parquet")
        assert rb.load(tmp_path / "a.parquet").equals(mesh)


def refused(path, words, **options):
    """Check that a file is refused in one line that names it and has these words."""
    with pytest.raises(rb.FileFormatError) as error:
        rb.load(path, **options)
    text = str(error.value)
    assert text.startswith(str(path))
    assert "\n" not in text
    assert words in text, text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"raybox": np.array("torus")}, "unknown kind 'torus'"),
        ({"raybox": np.array(["mesh", "mesh"])}, "unknown kind ''"),
        ({"raybox": np.array("list")}, "lacks a geometry"),
        ({"faces": None}, "lacks the array faces"),
        ({"vertices": np.array(["a"])}, "vertices: holds text"),
        ({"vertices": np.array([[NAN, 0, 0]])}, "vertices must be finite"),
        ({"faces": np.array([[0, 1, 99]])}, "faces must be indices"),
        ({"objects": np.array([0, 0, 3])}, "objects must be numbers"),
        ({"objects": np.array([0, 0])}, "objects must have shape"),
        ({"id": np.array(["a", "b"])}, "one id for each object: 3; got 2"),
        ({"labels/whole": np.array([1, 2])}, "labels must have columns"),
        ({"raybox": np.array("boxes")}, "lacks the array lower"),
        ({"missing/text": np.array([True])}, "must be a mask of 3 rows"),
        ({"missing/text": np.array([1, 0, 0])}, "must be a mask of 3 rows"),
        ({"labels/whole": np.zeros(3, complex)}, "labels must be numbers"),
    ],
)
def test_damaged_arrays_are_refused(tmp_path, changes, words):
    MESH.save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as archive:
        arrays = dict(archive) | changes
    np.savez(tmp_path / "a.npz", **{name: array for name, array in arrays.items() if array is not None})
    refused(tmp_path / "a.npz", words)


def test_lists_with_gaps_are_refused(tmp_path):
    rb.save(tmp_path / "a.npz", [BOXES, MESH])
    with np.load(tmp_path / "a.npz") as archive:
        arrays = {name.replace("1/", "2/"): array for name, array in archive.items()}
    np.savez(tmp_path / "a.npz", **arrays)
    refused(tmp_path / "a.npz", "lacks a geometry of its list: it has 0 2")
    rb.save(tmp_path / "a.npz", [BOXES, MESH])
    refused(tmp_path / "a.npz", "not rays", kind="rays")
    refused(tmp_path / "a.npz", "not points", origin=(0, 0, 0))


def changed(table, **columns):
    """Return a table with other columns, the metadata kept."""
    for name, column in columns.items():
        at = table.schema.get_field_index(name)
        table = table.remove_column(at) if column is None else table.set_column(at, name, column)
    return table


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x0": None}, "lacks the columns x0"),
        ({"x0": pa.array([0.5] * 7)}, "at two positions"),
        ({"x0": pa.array(["0"] * 7)}, "column x0: holds string, not float64"),
        ({"vertex0": pa.array([0.5] * 7)}, "column vertex0: holds double, not integers"),
        ({"vertex0": pa.array([0, 3, 5, 4, 6, 10**12, None])}, "lacks vertices"),
        ({"vertex0": pa.array([0, 3, 5, 4, 6, 9, None])}, "lacks the vertex 7"),
        ({"vertex1": pa.array([1, None, 3, 5, None, None, None])}, "rows without a triangle"),
        ({"object": pa.array([2, 0, 2, None, None, None, 3])}, "lacks the object 1"),
        ({"object": pa.array([2, 0, None, None, None, None, 1])}, "objects must be"),
        ({"text": pa.array(["a", "b", "c", "d", "e", "f", "g"])}, "column text: differs within an object"),
        ({"id": pa.array([1.5] * 7)}, "ids must be"),
    ],
)
def test_damaged_tables_of_a_mesh_are_refused(tmp_path, changes, words):
    MESH.save(tmp_path / "a.parquet")
    pq.write_table(changed(pq.read_table(tmp_path / "a.parquet"), **changes), tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", words)
    refused(tmp_path / "a.parquet", "", kind="rays")


def test_wrong_numbers_of_saved_boxes_are_refused_by_place(tmp_path):
    rb.save(tmp_path / "a.parquet", BOXES)
    table = changed(pq.read_table(tmp_path / "a.parquet"), max_x=pa.array([1.0, -5.0, 1.0]))
    pq.write_table(table, tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", "row 1 (the first is 0), column max_x: -5.0 is below the lower bound")
    refused(tmp_path / "a.parquet", "", kind="rays")


@pytest.mark.long
@pytest.mark.parametrize("name", ["a.npz", "list.npz", "a.parquet", "a.ply"])
def test_damaged_files_are_refused_or_read(tmp_path, name):
    rb.save(tmp_path / name, [*COPIES.values()] if name == "list.npz" else MESH)
    whole = (tmp_path / name).read_bytes()
    rng, path = np.random.default_rng(3), tmp_path / f"b{(tmp_path / name).suffix}"
    mutants = [whole[:size] for size in rng.integers(1, len(whole), 40)] + [whole + b"x"]
    for at, bit in zip(rng.integers(0, len(whole), 150), rng.integers(0, 8, 150), strict=True):
        mutants.append(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
    texts = []
    for mutant in mutants:
        path.write_bytes(mutant)
        with contextlib.suppress(rb.RayboxError):  # and no other exception
            rb.load(path)
            continue
        with pytest.raises(rb.FileFormatError) as error:
            rb.load(path)
        texts.append(str(error.value))
    assert all(text.startswith(str(path)) and "\n" not in text for text in texts)
    assert len(texts) >= 41  # each that is cut off or too long, and some with another bit


def test_a_member_of_an_archive_is_announced(tmp_path):
    from raybox.io.formats import announced

    rb.save(tmp_path / "a.npz", [BOXES, MESH])
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        size = sum(info.file_size for info in archive.infolist())
    found = announced(tmp_path / "a.npz")
    assert found.bytes == size
    assert found.rows == len(VERTICES)
