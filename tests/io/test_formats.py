"""rb.load and rb.save: what they read and write, and that every broken file raises one line, not a crash."""

import io
import json
import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import raybox as rb
import real_data
from file_samples import (
    BOXES,
    CITY,
    CORNERS,
    FACES,
    IDS,
    POINTS,
    RAYS,
    ply,
    sample,
    samples,
    vox,
    vox_scene,
    vox_transform,
)
from needs import package
from raybox.io.formats import FORMATS, common, contents, read
from raybox.io.formats.columns import TEXTS

NAMES = tuple(samples())


def refused(path, **options):
    """Return the text of the error of a file that must be refused: one line that begins with the file."""
    with pytest.raises(rb.FileFormatError) as caught:
        read(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith(str(path))
    assert "; " in text, "no way out is given"
    return text.removeprefix(str(path))


def tried(path, options):
    """Return the geometry of a file that may be broken, or None for a well-formed refusal."""
    error = None
    try:
        return read(path, **options).geometry
    except rb.FileFormatError as caught:
        error = str(caught)
    assert error.startswith(str(path))
    assert "\n" not in error
    return None


def same(left, right):
    assert type(left) is type(right)
    fields = {rb.Boxes: "lower upper", rb.Rays: "origins directions t_min t_max", rb.Mesh: "vertices faces"}
    for field in fields[type(left)].split():
        np.testing.assert_array_equal(getattr(left, field), getattr(right, field))


# Reading


@pytest.mark.parametrize("ending", ["npz", "npy", "csv", "parquet"])
def test_tables_round_trip_bit_for_bit(put, ending):
    for name, wanted in (("boxes", BOXES), ("rays", RAYS)):
        content, options = samples()[f"{name}.{ending}"]
        loaded = read(put(f"{name}.{ending}", content), **options)
        same(loaded.geometry, wanted)
        assert loaded.ids == (IDS if name == "boxes" and ending != "npy" else None)


@pytest.mark.parametrize("ending", ["npz", "npy", "csv", "parquet"])
def test_2d_tables(tmp_path, ending):
    boxes, rays = rb.Boxes([[0, 1]], [[2, 3]]), rb.Rays([[4, 5]], [[6, 7]])
    for content, kind in ((boxes, "scene"), (rays, "rays")):
        path = tmp_path / f"flat.{ending}"
        rb.save(path, content)
        same(rb.load(path, kind=kind), content)


def test_the_content_decides_the_kind_where_it_can(put):
    for name, kind in (
        ("boxes.csv", rb.Boxes),
        ("rays.csv", rb.Rays),
        ("boxes.npz", rb.Boxes),
        ("rays.npz", rb.Rays),
    ):
        assert isinstance(rb.load(put(name, samples()[name][0])), kind)
    assert 'say kind "scene" or "rays"' in refused(put("boxes.npy", samples()["boxes.npy"][0]))


def test_npz_keeps_the_shape_of_rays(tmp_path):
    camera = rb.Rays.pinhole((0, 0, 0), (1, 0, 0), up=(0, 0, 1), fov=60, width=4, height=3)
    rb.save(tmp_path / "camera.npz", camera)
    same(rb.load(tmp_path / "camera.npz"), camera)


def test_csv_by_hand(put):
    head = "\ufeffname , min_x,min_y,min_z,max_x,max_y,max_z,floor\r\n"
    text = head + '"a, ""b""",0,0,0,1,1,1,2\r\n\r\nc, 1e1 ,.5,-0,11,inf,+1,3\r\n'
    loaded = read(put("by_hand.csv", text))
    same(loaded.geometry, rb.Boxes([[0, 0, 0], [10, 0.5, 0]], [[1, 1, 1], [11, np.inf, 1]]))
    assert loaded.ids == ['a, "b"', "c"]
    assert loaded.labels == {"name": ['a, "b"', "c"], "floor": [2, 3]}
    assert len(rb.load(put("none.csv", "min_x,min_y,max_x,max_y\n"))) == 0
    assert read(put("number.csv", "id,min_x,min_y,max_x,max_y\n7,0,0,1,1\n")).ids == ["7"]
    assert read(put("mute.csv", "group,min_x,min_y,max_x,max_y\n7,0,0,1,1\n")).ids is None


def test_the_duplex_in_the_package():
    loaded = read(Path(rb.__file__).parent / "data" / "duplex.npz")
    assert (len(loaded.geometry), len(set(loaded.ids))) == (26_348, 215)
    assert loaded.labels["ifc_class"].count("IfcWallStandardCase") == 56


@pytest.mark.parametrize("name", [n for n in NAMES if "binary" in n or "ascii" in n or n.endswith("stl")])
def test_meshes_keep_the_order_of_their_faces(put, name):
    if name.endswith("pcd"):
        return
    mesh = rb.load(put(name, samples()[name][0]))
    faces = [[0, 2, 1], [0, 1, 2], [0, 2, 3]] if "mixed" in name else FACES
    np.testing.assert_array_equal(mesh.triangles, CORNERS[np.array(faces)])


def test_obj(put):
    path = put("parts.obj", samples()["parts.obj"][0])
    np.testing.assert_array_equal(rb.load(path).faces, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    parts = read(path, boxes=True)
    assert parts.ids == ["left", "right"]
    same(parts.geometry, rb.Boxes([[0, 0, 0], [0, 0, 0]], [[4, 4, 4], [4, 4, 4]]))


def test_glb_puts_meshes_where_their_nodes_say(put):
    path = put("two.glb", samples()["two.glb"][0])
    assert len(rb.load(path)) == 8
    parts = read(path, boxes=True)
    assert parts.ids == ["here", "there"]
    same(parts.geometry, rb.Boxes([[0, 0, 0], [10, 0, 0]], [[4, 4, 4], [14, 4, 4]]))


def test_stl_solids_are_parts(put):
    text = samples()["text.stl"][0].decode()
    parts = read(put("two.stl", text + text.replace("tetra", "other one")), boxes=True)
    assert parts.ids == ["tetra", "other one"]


def test_cityjson(put):
    loaded = read(put("town.city.json", json.dumps(CITY)))
    assert loaded.ids == ["part", "road", "tree"]
    assert loaded.labels["type"] == ["BuildingPart", "Road", "SolitaryVegetationObject"]
    lower, upper = (
        [[100, 200, 0], [100, 200, 0], [105, 200, 0]],
        [[104, 204, 2], [104, 204, 0], [107, 202, 6]],
    )
    same(read(put("town.city.json", json.dumps(CITY)), boxes=True).geometry, rb.Boxes(lower, upper))
    assert loaded.geometry.objects.tolist() == [0, 0, 0, 0, 1, 2]
    assert loaded.left_out == {"city objects without surfaces": 1}


def test_ifc(put):
    path = put("one.ifc", sample("one.ifc")[0])
    same(rb.load(path, boxes=True), rb.Boxes([[9, 18, 30]], [[11, 22, 36]]))
    loaded = read(path)
    assert (len(loaded.geometry), loaded.geometry.objects.tolist()) == (12, [0] * 12)
    assert loaded.ids == ["0000000000000000000002"]
    assert (loaded.labels["ifc_class"], loaded.labels["name"]) == (["IfcBuildingElementProxy"], ["block"])


def test_vox(put):
    cells = [(0, 0, 0), (3, 4, 5)]
    lower = np.array(cells, dtype=float)
    same(rb.load(put("one.vox", vox(cells))), rb.Boxes(lower, lower + 1))
    middle = np.array([2, 2, 3])  # which is moved by the scene
    both = np.concatenate([lower - middle + [10, 0, -1], lower - middle])
    same(rb.load(put("two.vox", vox(cells, models=2, scene=vox_scene({})))), rb.Boxes(both, both + 1))
    assert "no scene with their places" in refused(put("lost.vox", vox(cells, models=2)))
    circle = b"".join(vox_transform(node, 1 - node, {}) for node in (0, 1))
    assert "contains itself" in refused(put("circle.vox", vox(cells, models=2, scene=circle)))
    assert "outside" in refused(put("large.vox", vox([(4, 0, 0)])))


@pytest.mark.parametrize(
    "name", ["ascii.pcd", "binary.pcd", "binary_compressed.pcd", "points.las", "points.laz"]
)
def test_points_become_rays(put, name):
    path = put(name, samples()[name][0])
    rays = rb.load(path, origin=(0.5, 0.25, 0.0))
    np.testing.assert_allclose(rays.at(1.0), POINTS, atol=1e-12)
    assert (rays.origins == [0.5, 0.25, 0.0]).all()
    assert (rays.t_max == np.inf).all()
    assert "say where the rays start" in refused(path)
    assert len(contents(path).arrays["points"]) == 40


def test_points_of_tables_and_ply(put):
    for name, content in (("a.csv", "x,y,z\n1,2,3\n"), ("a.ply", ply(faces=[]))):
        assert isinstance(rb.load(put(name, content), origin=(0.0, 0.0, 0.0)), rb.Rays)
    assert isinstance(rb.load(put("b.ply", ply()), kind="rays", origin=(0.0, 0.0, 0.0)), rb.Rays)
    assert len(read(put("a.ply", ply(faces=[])), kind="scene").geometry) == 0
    assert "2 coordinates" in refused(put("a.csv", "x,y\n1,2\n"), origin=(0.0, 0.0, 0.0))
    holes = put("holes.csv", "x,y,z\n1,2,3\nnan,nan,nan\n")
    assert "line 3, column x: nan is not a finite number" in refused(holes, origin=(0.0, 0.0, 0.0))
    assert rb.load(holes, origin=(0.0, 0.0, 0.0), invalid="miss").t_min.tolist() == [0.0, np.inf]


def test_arguments_are_checked(put):
    path = put("boxes.csv", samples()["boxes.csv"][0])
    for wrong in ({"kind": "boxes"}, {"invalid": "drop"}, {"kind": "scene", "origin": (0.0, 0.0, 0.0)}):
        with pytest.raises(rb.InvalidInput):
            rb.load(path, **wrong)
    assert "not rays" in refused(path, kind="rays")
    assert "not rays" in refused(put("one.vox", vox([(0, 0, 0)])), kind="rays")


# Broken files


@pytest.mark.parametrize("name", NAMES)
def test_files_cut_anywhere(put, name):
    """A file cut off is refused, unless only its last word is damaged.

    CSV and OBJ have no length, so a cut between two of their lines cannot be detected.
    """
    content, options = sample(name)
    whole = len(read(put(name, content), **options).geometry)
    last_word = len(content.rstrip()) - len(content.replace(b",", b" ").split()[-1]) - 1
    cuts = [
        *range(min(len(content), 600)),
        *range(600, len(content), 37),
        *range(max(600, len(content) - 40), len(content)),
    ]
    refusals = 0
    for cut in cuts[::80] if name.endswith((".las", ".laz")) else cuts:  # these start a process each time
        part = tried(put(name, content[:cut]), options)
        if part is None:
            refusals += 1
            continue
        assert cut >= last_word or name.endswith((".csv", ".obj")), (
            f"{cut} of {len(content)} bytes were read as a whole file"
        )
        assert len(part) <= whole
    assert refusals > 5


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_files_bent_anywhere(put, name):
    """Changed bytes give geometry or a refusal: no other error, no endless loop, little memory."""
    content, options = sample(name)
    rng = np.random.default_rng(len(content))
    refusals = 0
    tracemalloc.start()
    starts = [*range(0, min(len(content), 320), 3), *rng.integers(0, len(content), 60).tolist()]
    for start in starts[::12] if name.endswith(("ifc", "las", "laz")) else starts:  # these start a process
        bent = bytearray(content)
        kind = rng.integers(4)
        piece = [b"abc", b"\xff\xff\xff\x7f", b"\x00", bytes([rng.integers(256)])][kind]
        bent[start : start + len(piece)] = piece
        refusals += tried(put(name, bytes(bent)), options) is None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refusals > 2
    assert peak < 200e6


@pytest.mark.parametrize("name", NAMES)
def test_files_under_another_name(put, name):
    content, options = samples()[name]
    own = Path(name).suffix
    for ending in FORMATS:
        alike = {".las", ".laz"}, {".json", ".jsonl"}
        if ending == own or {ending, own} in alike or {ending, own} <= {*TEXTS}:
            continue
        path = put("renamed" + ending, content)
        text = refused(path, kind="scene") if options.get("kind") == "scene" else refused(path, **options)
        assert text


def test_an_error_names_the_right_extension(put):
    assert "looks like .parquet; rename it" in refused(put("a.csv", samples()["boxes.parquet"][0]))
    assert "looks like .npy; rename it" in refused(put("a.npz", samples()["boxes.npy"][0]))
    assert "begins" not in refused(put("a.npz", "min_x,min_y\n"))
    assert "does not begin like NumPy arrays" in refused(put("a.npz", "min_x,min_y\n"))


def test_places_that_are_no_files(tmp_path, put):
    assert "No such file" in refused(tmp_path / "nowhere.csv")
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    assert "is a folder" in refused(folder)
    assert "is empty" in refused(put("a.ply", b""))
    assert "unsupported file extension '.xyzzy'; supported: .npz" in refused(put("a.xyzzy", b"0"))
    os.mkfifo(tmp_path / "pipe.csv")
    assert "not a regular file" in refused(tmp_path / "pipe.csv")


@pytest.fixture
def no_root():
    """Let root, who may read everything, be somebody else."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield
    os.seteuid(user)


def test_a_file_that_may_not_be_read(put, request):
    path = put("a.csv", samples()["boxes.csv"][0])
    path.chmod(0)
    request.getfixturevalue("no_root")
    assert "Permission denied" in refused(path)


HEAD = "min_x,min_y,min_z,max_x,max_y,max_z\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD + "0,0,0,1,1,1\n0,0,0,1,x,1\n", "line 3, column max_y: 'x' is not a number"),
        (HEAD + "0,0,0,1,1,1\n\n0,0,0,1,1\n", "line 4: 5 fields, while the first line has 6"),
        (HEAD + "0,0,0,1,1,1\n0,0,2,1,1,1\n", "line 3, column max_z: 1.0 is below the lower bound"),
        (
            HEAD + "0,nan,0,1,1,1\n0,0,nan,1,1,1\n",
            "line 2, column min_y: nan is not a number (2 such numbers)",
        ),
        (HEAD.replace("max_z", "top") + "0,0,0,1,1,1\n", "header: lacks the column max_z"),
        (HEAD.replace("max_z", "max_y") + "0,0,0,1,1,1\n", "header: has more than one column named 'max_y'"),
        (HEAD.replace(",", "|"), "header: has no columns of boxes, rays or points"),
        ("a,b\n1,2\n", "name the columns in the first line, for boxes: min_x"),
        (
            "1,2,3,4,5,6\n",
            "name them in the first line, or by layout= or --layout, such as min_x",
        ),
        ('name,min_x,min_y,max_x,max_y\n"a,0,0,1,1\n', "is not a whole table"),
        (HEAD + "0,0,0,1,1,1_0\n", "line 2, column max_z: '1_0' is not a number"),
        (HEAD + "0,0,0,1,1,\xff\n", "'ÿ' is not a number"),
    ],
)
def test_wrong_rows_of_csv_are_named(put, text, expected):
    assert expected in refused(put("a.csv", text), kind="scene")


def test_wrong_rows_of_rays_are_named(put):
    head = "origin_x,origin_y,direction_x,direction_y,t_min,t_max\n"
    text = head + "0,0,1,1,0,1\n0,0,inf,1,0,1\n"
    assert "line 3, column direction_x: inf is not a finite number" in refused(put("a.csv", text))
    assert "invalid='miss'" in refused(put("a.csv", text))
    assert rb.load(put("a.csv", text), invalid="miss").t_min.tolist() == [0.0, np.inf]
    assert "line 2, column t_max: 1.0 leaves an empty range" in refused(put("a.csv", head + "0,0,1,1,2,1\n"))
    rows = np.tile([0.0, 0, 0, 1, 1, 1], (5, 1))
    rows[3, 4] = np.nan
    np.save(path := put("a.npy", b""), rows)
    assert ", [3, 4]: nan is not a finite number" in refused(path, kind="rays")
    assert ", [3, 4]: nan is not a number" in refused(path, kind="scene")


def test_npz_and_npy_that_are_not_numbers(put):
    np.savez(path := put("a.npz", b""), lower=[[0.0, 0.0]], upper=[["a", "b"]])
    assert "upper: holds text, not real numbers" in refused(path)
    np.savez(path, lower=np.array([[{}, {}]]), upper=[[1.0, 1.0]], allow_pickle=True)
    assert "does not unpickle" in refused(path)
    np.savez(path, lower=[[0.0, 0.0]], upper=[[1.0, 1.0], [2.0, 2.0]])
    assert "lower" in refused(path)
    np.savez(path, lower=[[0.0, 0.0]], upper=[[-1.0, 1.0]])
    assert ", upper[0, 0]: -1.0 is below the lower bound" in refused(path)
    np.savez(path, vertices=[[0.0, 0.0]])
    assert "has no arrays of boxes, rays or points" in refused(path)
    np.savez(path, lower=[[0.0, 0.0]], upper=[[1.0, 1.0]], id=["a", "b"])
    assert "2 ids for 1 boxes" in refused(path)
    np.save(path := put("a.npy", b""), np.zeros((3, 5)))
    assert "has shape (3, 5)" in refused(path, kind="scene")


def test_parquet_that_is_not_numbers(put):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {name: [0.0, 1.0] for name in ("min_x", "min_y", "max_x", "max_y")}
    path = put("a.parquet", b"")
    parquet.write_table(arrow.table(columns | {"max_x": [None, 1.0]}), path)
    assert (
        "row 0 (the first is 0), column max_x: a value is missing; fill in each or remove its row"
        in refused(path)
    )
    parquet.write_table(arrow.table(columns | {"max_x": ["a", "b"]}), path)
    assert "column max_x: holds string, not numbers" in refused(path)
    parquet.write_table(arrow.table(columns | {"max_y": [0.0, -1.0]}), path)
    assert "row 1 (the first is 0), column max_y: -1.0 is below" in refused(path)
    parquet.write_table(arrow.table({name: np.float32([2, 3]) for name in columns}), path)
    assert len(rb.load(path)) == 2


def test_wrong_meshes(put):
    assert "vertex 3 does not exist" in refused(put("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4\n"))
    assert "a vertex that does not exist" in refused(put("a.obj", "v 0 0 0\nf -2 1 1\n"))
    assert "vertex 1 (the first is 0), column y: nan" in refused(
        put("a.obj", "v 0 0 0\nv 1 nan 0\nv 0 1 0\nf 1 2 3\n")
    )
    assert "line 1: 'hello world' is no statement of OBJ" in refused(put("a.obj", "hello world\n"))
    assert "no triangles" in refused(put("a.ply", ply(faces=[[0, 1]])), kind="scene")
    assert "vertex 7 does not exist" in refused(put("a.ply", ply("binary_little_endian", faces=[[0, 1, 7]])))
    assert "284 bytes announced" in refused(put("a.stl", samples()["binary.stl"][0][:-1]))


def test_wrong_cities(put):
    def bent(**changes):
        return put("a.city.json", json.dumps(CITY | changes))

    assert "is not a CityJSON city" not in refused(bent(CityObjects=3))
    assert 'not a CityJSON city ("type": "CityJSON")' in refused(put("a.json", "{}"))
    assert "line 1, column" in refused(put("a.json", '{"type": "CityJSON",'))
    solid = {"type": "Solid", "boundaries": [[[[0, 1, 9]]]]}
    assert "city object 'x': its geometry is broken" in refused(
        bent(CityObjects={"x": {"geometry": [solid]}})
    )
    assert "no city object with surfaces" in refused(bent(CityObjects={}))
    deep = '{"type": "CityJSON", "vertices": [], "CityObjects": ' + "[" * 100_000 + "]" * 100_000 + "}"
    assert refused(put("a.json", deep))


def _announcing(name: str) -> bytes:
    """Bend a sample so that its header announces far more than the file holds."""
    content = bytearray(samples()[name][0])
    if name.endswith("npy"):
        return bytes(content).replace(b"(3, 6), }" + b" " * 9, b"(3000000000000, 6),}", 1)[: len(content)]
    if name.endswith("ply"):
        return bytes(content).replace(b"element vertex 4", b"element vertex 3000000000000")
    if name.endswith("pcd"):
        return bytes(content).replace(b"POINTS 40", b"POINTS 3000000000000")
    at = {"cells.vox": 24, "binary.stl": 80, "points.las": 100, "points.laz": 107}[name]
    content[at : at + 4] = b"\xff\xff\xff\x7f"
    return bytes(content)


@pytest.mark.parametrize(
    "name",
    [
        "boxes.npy",
        "ascii.ply",
        "binary_little_endian.ply",
        "ascii.pcd",
        "binary.pcd",
        "binary_compressed.pcd",
        "strips.ply",
        "cells.vox",
        "binary.stl",
        "points.las",
        "points.laz",
    ],
)
def test_no_memory_for_what_is_only_announced(put, name):
    path = put(name, _announcing(name))
    tracemalloc.start()
    refused(path, **samples()[name][1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_that_rays_do_not_need_may_be_of_any_type(tmp_path, save):
    """For `load` and for `cast` alike."""
    rays, others = {"origins": np.zeros((4, 3)), "directions": np.ones((4, 3))}, {}
    others["points"], others["lower"] = np.zeros(4, "M8[s]"), np.array(["text"] * 4)
    save(path := tmp_path / "rays.npz", **rays, **others, id=np.array([None] * 4, object))
    assert len(rb.load(path, kind="rays")) == 4
    scene = rb.Scene(rb.Boxes([[2, 2, 2]], [[3, 3, 3]]))
    assert rb.stream.cast(scene, path, tmp_path / "out.npy").hit_count == 4


def test_npz_members_are_checked_against_their_size(put):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("lower", "upper"):
            head = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                head, {"descr": "<f8", "fortran_order": False, "shape": (10**11, 3)}
            )
            archive.writestr(f"{name}.npy", head.getvalue() + bytes(48))
    assert "lower.npy: is cut off: 2400000000000 bytes of numbers announced, 48 there" in refused(
        put("a.npz", file.getvalue())
    )


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [
        ("pyarrow", "boxes.parquet", "io"),
        ("laspy", "points.laz", "las"),
        ("ifcopenshell", "one.ifc", "ifc"),
    ],
)
def test_a_reader_that_is_not_installed(put, monkeypatch, package, name, extra):
    monkeypatch.setattr(common, "find_spec", lambda wanted: None if wanted == package else True)
    content, options = samples()[name]
    with pytest.raises(
        rb.RayboxError, match=rf"files need {package}, .* run: pip install 'raybox\[{extra}\]'"
    ):
        read(put(name, content), **options)


# Writing


def test_columns_of_results(tmp_path):
    scene = rb.Scene(BOXES)
    rays = rb.Rays([[-1.0, 0.5, 0.5], [0.0, 9.0, 0.0]], [[2.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    rb.save(tmp_path / "hits.csv", scene.nearest(rays), ids=IDS)
    assert (tmp_path / "hits.csv").read_text().splitlines() == [
        "ray,index,id,t,x,y,z",
        "0,0,first,0.5,0.0,0.5,0.5",
        "1,-1,,inf,nan,nan,nan",
    ]
    rb.save(tmp_path / "all.csv", scene.all(rays), ids=IDS)
    assert (tmp_path / "all.csv").read_text().splitlines() == [
        "ray,index,id,t,t_enter,t_exit,length",
        "0,0,first,0.5,0.5,1.0,1.0",
        '0,1,"second, of two",1.75,1.75,2.25,1.0',
    ]


@pytest.mark.parametrize("ending", ["npz", "npy", "parquet"])
def test_results_in_every_format(tmp_path, ending):
    hits = rb.Scene(BOXES).nearest(
        rb.Rays([[-1.0, 0.5, 0.5], [0.0, 9.0, 0.0]], [[2.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    )
    path = tmp_path / f"hits.{ending}"
    rb.save(path, hits, ids=IDS)
    if ending == "parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(path).to_pydict()
    else:
        loaded = np.load(path)
        table = {
            name: loaded[name].tolist() for name in (loaded.files if ending == "npz" else loaded.dtype.names)
        }
    assert list(table) == ["ray", "index", "id", "t", "x", "y", "z"]
    assert (table["index"], table["id"], table["t"]) == ([0, -1], ["first", ""], [0.5, np.inf])


def test_columns_as_they_are(tmp_path):
    rb.save(tmp_path / "a.csv", {"ray": np.arange(2), "occluded": np.array([True, False])})
    assert (tmp_path / "a.csv").read_text() == "ray,occluded\n0,1\n1,0\n"


def test_floats_survive_text(tmp_path):
    lower = np.random.default_rng(1).normal(size=(500, 3)) * 10.0 ** np.arange(-300, 200)[:, None]
    boxes = rb.Boxes(lower, lower)
    rb.save(tmp_path / "a.csv", boxes)
    same(rb.load(tmp_path / "a.csv"), boxes)


def test_refusals_to_save(tmp_path):
    with pytest.raises(
        rb.FileFormatError,
        match=r"unsupported file extension '\.txt'; supported: \.npz \.npy \.csv \.parquet",
    ):
        rb.save(tmp_path / "a.txt", BOXES)
    with pytest.raises(rb.FileFormatError, match="there is no folder"):
        rb.save(tmp_path / "nowhere" / "a.csv", BOXES)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(rb.FileFormatError, match="not a regular file"):
        rb.save(tmp_path / "folder.csv", BOXES)
    with pytest.raises(rb.InvalidInput, match="got 1 for 3 boxes"):
        rb.save(tmp_path / "a.csv", BOXES, ids=["a"])
    with pytest.raises(rb.InvalidInput, match="got Mesh"):
        rb.save(tmp_path / "a.csv", rb.Mesh(CORNERS, FACES))
    with pytest.raises(rb.InvalidInput, match="no room for the ranges"):
        rb.save(tmp_path / "a.npy", rb.Rays([0, 0], [1, 1], t_max=2))
    assert list(tmp_path.iterdir()) == [tmp_path / "folder.csv"]


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RuntimeError("bug"), KeyboardInterrupt()]
)
def test_nothing_half_written_is_left(tmp_path, monkeypatch, error):
    from raybox.io.formats import saving

    path = tmp_path / "a.csv"
    path.write_text("old")

    def fail(file, content, options):
        file.write(b"half")
        raise error

    monkeypatch.setitem(saving.WRITERS, ".csv", fail)
    with pytest.raises(rb.FileFormatError if isinstance(error, OSError) else type(error)) as caught:
        rb.save(path, BOXES)
    if isinstance(error, OSError):
        assert "cannot be written: No space left on device; " in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]
    assert path.read_text() == "old"


def test_saving_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    rb.save(tmp_path / "link.csv", BOXES)
    assert (tmp_path / "link.csv").is_symlink()
    same(rb.load(tmp_path / "real.csv"), BOXES)


# Real files


def test_a_real_building_and_the_table_of_its_boxes():
    package("ifcopenshell")
    table = read(real_data.HOUSE_BOXES)
    model = read(real_data.HOUSE, boxes=True, all_objects=True)
    order = [model.ids.index(name) for name in table.ids]
    assert len(model.geometry) == 286
    np.testing.assert_allclose(model.geometry.lower[order], table.geometry.lower, atol=1e-5)
    np.testing.assert_allclose(model.geometry.upper[order], table.geometry.upper, atol=1e-5)


def test_real_files():
    city = rb.load(real_data.CITY)
    assert (len(city), city.objects.max()) == (36_271, 569)
    np.testing.assert_allclose(
        city.bounds, [[84616.468, 447422.999, -0.452], [85140.839, 447750.636, 16.846]], atol=1e-9
    )
    assert len(rb.load(real_data.SHOP)) == 441_118
    skull = rb.load(real_data.SKULL)
    assert (len(skull), len(skull.vertices)) == (100_002, 49_999)


@pytest.mark.parametrize(
    "path", [real_data.CITY, real_data.SHOP, real_data.HOUSE], ids=lambda path: path.name
)
def test_real_files_cut(put, path):
    if path == real_data.HOUSE:
        package("ifcopenshell")
    content = path.read_bytes()
    for cut in np.linspace(0, len(content) - 40, 12).astype(int):
        refused(put(path.name, content[:cut]))
