"""rb.load and rb.save: what they read and write, and that every broken file raises one line, not a crash."""

import io
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
    CORNERS,
    ENCODINGS,
    FACES,
    IDS,
    POINTS,
    RAYS,
    ply,
    sample,
    samples,
    vox,
)
from needs import package
from raybox.io.formats import FORMATS, common, contents, read, saving
from raybox.io.formats.columns import TEXTS
from refusals import refused
from streaming import get

NAMES = tuple(samples())


def tried(path, options):
    """Return the geometry of a file that may be broken, or None for a well-formed refusal."""
    try:
        return read(path, **options).geometry
    except rb.FileFormatError:
        refused(path, **options)
        return None


def same(left, right):
    assert type(left) is type(right)
    fields = {rb.Boxes: "lower upper", rb.Rays: "origins directions t_min t_max", rb.Mesh: "vertices faces"}
    for field in fields[type(left)].split():
        np.testing.assert_array_equal(getattr(left, field), getattr(right, field))


# Reading


LOWER = np.random.default_rng(1).normal(size=(500, 3)) * 10.0 ** np.arange(-300, 200)[:, None]
CAMERA = rb.Rays.pinhole((0, 0, 0), (1, 0, 0), up=(0, 0, 1), fov=60, width=4, height=3)
TABLES = {
    "scene": [BOXES, rb.Boxes([[0, 1]], [[2, 3]]), rb.Boxes(LOWER, LOWER)],
    "rays": [RAYS, rb.Rays([[4, 5]], [[6, 7]]), CAMERA],
}


@pytest.mark.parametrize("ending", ["npz", "npy", "csv", "parquet"])
@pytest.mark.parametrize("kind", TABLES)
def test_tables_round_trip_bit_for_bit(tmp_path, ending, kind):
    """Through a link, which stays one; the shape of rays is kept by .npz alone."""
    (tmp_path / f"real.{ending}").write_text("old")
    path = tmp_path / f"a.{ending}"
    path.symlink_to(tmp_path / f"real.{ending}")
    for content in TABLES[kind]:
        if ending == "npy" and content is RAYS:  # which has ranges
            content = rb.Rays(RAYS.origins, RAYS.directions)  # noqa: PLW2901
        rb.save(path, content)
        found = rb.load(path, kind=kind)
        same(found, content.reshape(-1) if ending != "npz" and kind == "rays" else content)
    assert path.is_symlink()
    if kind == "scene":
        rb.save(path, BOXES, ids=IDS)
        assert read(path, kind=kind).ids == IDS


def test_the_content_decides_the_kind_where_it_can(put):
    for kind, cls in (("boxes", rb.Boxes), ("rays", rb.Rays)):
        for name in (f"{kind}.csv", f"{kind}.npz"):
            assert isinstance(rb.load(put(name, samples()[name][0])), cls)
    assert 'say kind "scene" or "rays"' in refused(put("boxes.npy", samples()["boxes.npy"][0]))


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.endswith((".ply", ".stl")) and "strip" not in name]
)
def test_meshes_keep_the_order_of_their_faces(put, name):
    content, options = samples()[name]
    if "origin" not in options and not name.startswith("saved"):
        faces = [[0, 2, 1], [0, 1, 2], [0, 2, 3]] if "mixed" in name else FACES
        np.testing.assert_array_equal(rb.load(put(name, content)).triangles, CORNERS[np.array(faces)])


SOLIDS = samples()["text.stl"][0]
PARTS = {  # content; names and boxes of its parts
    "parts.obj": (samples()["parts.obj"][0], ["left", "right"], [CORNERS, CORNERS]),
    "two.glb": (samples()["two.glb"][0], ["here", "there"], [CORNERS, CORNERS + np.array([10, 0, 0])]),
    "two.stl": (SOLIDS + SOLIDS.replace(b"tetra", b"other one"), ["tetra", "other one"], [CORNERS, CORNERS]),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_meshes_are_boxes(put, name):
    content, ids, points = PARTS[name]
    parts = read(put(name, content), boxes=True)
    assert parts.ids == ids
    same(parts.geometry, rb.Boxes([one.min(axis=0) for one in points], [one.max(axis=0) for one in points]))


@pytest.mark.parametrize("name", [f"{encoding}.pcd" for encoding in ENCODINGS] + ["points.las", "points.laz"])
def test_points_become_rays(put, name):
    path, origin = put(name, samples()[name][0]), (0.5, 0.25, 0.0)
    rays = rb.load(path, origin=origin)
    np.testing.assert_allclose(rays.at(1.0), POINTS, atol=1e-12)
    assert (rays.origins == origin).all()
    assert (rays.t_max == np.inf).all()
    assert "say where the rays start" in refused(path)
    assert len(contents(path).arrays["points"]) == 40


def test_points_of_tables_and_ply(put):
    origin = {"origin": (0.0, 0.0, 0.0)}
    for content, how in (("x,y,z\n1,2,3\n", {}), (ply(faces=[]), {}), (ply(), {"kind": "rays"})):
        path = put("a.csv" if isinstance(content, str) else "a.ply", content)
        assert isinstance(rb.load(path, **origin, **how), rb.Rays)
    assert "2 coordinates" in refused(put("a.csv", "x,y\n1,2\n"), **origin)
    holes = put("holes.csv", "x,y,z\n1,2,3\nnan,nan,nan\n")
    assert "line 3, column x: nan is not a finite number" in refused(holes, **origin)
    assert rb.load(holes, **origin, invalid="miss").t_min.tolist() == [0.0, np.inf]


def test_arguments_are_checked(put):
    path = put("boxes.csv", samples()["boxes.csv"][0])
    for wrong in ({"kind": "boxes"}, {"invalid": "drop"}, {"kind": "scene", "origin": (0.0, 0.0, 0.0)}):
        with pytest.raises(rb.InvalidInput):
            rb.load(path, **wrong)
    for one in (path, put("one.vox", vox([(0, 0, 0)]))):
        assert "not rays" in refused(one, kind="rays")


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


@pytest.mark.parametrize("name", NAMES)
def test_files_under_another_name(put, name):
    (content, options), own = samples()[name], Path(name).suffix
    for ending in FORMATS:
        alike = [{".las", ".laz"}, {".json", ".jsonl"}, {*TEXTS}, {own}]
        if not any({ending, own} <= one for one in alike):
            path = put("renamed" + ending, content)
            assert refused(path, **({"kind": "scene"} if options.get("kind") == "scene" else options))


def test_places_that_are_no_files(tmp_path, put):
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    for name, text in (
        ("no.csv", "No such file"),
        ("folder.csv", "is a folder"),
        ("pipe.csv", "not a regular"),
    ):
        assert text in refused(tmp_path / name)
    assert "does not begin like NumPy arrays" in refused(put("a.npz", "min_x,min_y\n"))


def test_a_file_that_may_not_be_read(put):
    path, user = put("a.csv", samples()["boxes.csv"][0]), os.geteuid()
    path.chmod(0)
    try:
        os.seteuid(user or 65534)  # root may read everything
        assert "Permission denied" in refused(path)
    finally:
        os.seteuid(user)


def test_wrong_rows_of_rays_are_named(put):
    head = "origin_x,origin_y,direction_x,direction_y,t_min,t_max\n"
    text = head + "0,0,1,1,0,1\n0,0,inf,1,0,1\n"
    problem = refused(put("a.csv", text))
    assert "line 3, column direction_x: inf is not a finite number" in problem
    assert "invalid='miss'" in problem
    assert rb.load(put("a.csv", text), invalid="miss").t_min.tolist() == [0.0, np.inf]
    assert "line 2, column t_max: 1.0 leaves an empty range" in refused(put("a.csv", head + "0,0,1,1,2,1\n"))
    rows = np.tile([0.0, 0, 0, 1, 1, 1], (5, 1))
    rows[3, 4] = np.nan
    np.save(path := put("a.npy", b""), rows)
    assert ", [3, 4]: nan is not a finite number" in refused(path, kind="rays")
    assert ", [3, 4]: nan is not a number" in refused(path, kind="scene")


ONE = [[0.0, 0.0]]
WRONG_ARRAYS = {
    "upper: holds text, not real numbers": {"lower": ONE, "upper": [["a", "b"]]},
    "does not unpickle": {"lower": np.array([[{}, {}]]), "upper": [[1.0, 1.0]]},
    "lower": {"lower": ONE, "upper": [[1.0, 1.0], [2.0, 2.0]]},
    ", upper[0, 0]: -1.0 is below the lower bound": {"lower": ONE, "upper": [[-1.0, 1.0]]},
    "has no arrays of boxes, rays or points": {"vertices": ONE},
    "2 ids for 1 boxes": {"lower": ONE, "upper": [[1.0, 1.0]], "id": ["a", "b"]},
}


def test_npz_and_npy_that_are_not_numbers(put):
    for problem, arrays in WRONG_ARRAYS.items():
        np.savez(path := put("a.npz", b""), **arrays)
        assert problem in refused(path)
    np.save(path := put("a.npy", b""), np.zeros((3, 5)))
    assert "has shape (3, 5)" in refused(path, kind="scene")


def test_parquet_that_is_not_numbers(put):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {name: [0.0, 1.0] for name in ("min_x", "min_y", "max_x", "max_y")}
    path, row = put("a.parquet", b""), "row {} (the first is 0), column"
    for changed, problem in (
        (
            {"max_x": [None, 1.0]},
            f"{row.format(0)} max_x: a value is missing; fill in each or remove its row",
        ),
        ({"max_x": ["a", "b"]}, "column max_x: holds string, not numbers"),
        ({"max_y": [0.0, -1.0]}, f"{row.format(1)} max_y: -1.0 is below"),
    ):
        parquet.write_table(arrow.table(columns | changed), path)
        assert problem in refused(path)
    parquet.write_table(arrow.table({name: np.float32([2, 3]) for name in columns}), path)
    assert len(rb.load(path)) == 2


ANNOUNCED = {  # where a sample's header gives a count, as text or as the position of four bytes
    "boxes.npy": (b"(3, 6), }" + b" " * 9, b"(3000000000000, 6),}"[:18].ljust(18)),
    **dict.fromkeys(
        ["ascii.ply", "binary_little_endian.ply", "strips.ply"], (b"vertex 4", b"vertex 3000000000000")
    ),
    **dict.fromkeys([f"{encoding}.pcd" for encoding in ENCODINGS], (b"POINTS 40", b"POINTS 3000000000000")),
    **{"cells.vox": 24, "binary.stl": 80, "points.las": 100, "points.laz": 107},
}


@pytest.mark.parametrize("name", ANNOUNCED)
def test_no_memory_for_what_is_only_announced(put, name):
    """The header announces far more than the file holds."""
    (content, options), change = samples()[name], ANNOUNCED[name]
    if isinstance(change, int):
        content = content[:change] + b"\xff\xff\xff\x7f" + content[change + 4 :]
    path = put(name, content if isinstance(change, int) else content.replace(*change, 1))
    tracemalloc.start()
    refused(path, **options)
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
    [("pyarrow", "boxes.parquet", "io"), ("laspy", "points.laz", "las"), ("ifcopenshell", "one.ifc", "ifc")],
)
def test_a_reader_that_is_not_installed(put, monkeypatch, package, name, extra):
    monkeypatch.setattr(common, "find_spec", lambda wanted: None if wanted == package else True)
    content, options = samples()[name]
    words = rf"files need {package}, .* run: pip install 'raybox\[{extra}\]'"
    with pytest.raises(rb.RayboxError, match=words):
        read(put(name, content), **options)


# Writing


TWO_RAYS = rb.Rays([[-1.0, 0.5, 0.5], [0.0, 9.0, 0.0]], [[2.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
WRITTEN = {  # the text of each result
    "nearest": ["ray,index,id,t,x,y,z", "0,0,first,0.5,0.0,0.5,0.5", "1,-1,,inf,nan,nan,nan"],
    "all": [
        *("ray,index,id,t,t_enter,t_exit,length", "0,0,first,0.5,0.5,1.0,1.0"),
        '0,1,"second, of two",1.75,1.75,2.25,1.0',
    ],
}


def test_columns_of_results(tmp_path):
    path = tmp_path / "a.csv"
    for query, lines in WRITTEN.items():
        rb.save(path, getattr(rb.Scene(BOXES), query)(TWO_RAYS), ids=IDS)
        assert path.read_text().splitlines() == lines
    rb.save(path, {"ray": np.arange(2), "occluded": np.array([True, False])})
    assert path.read_text() == "ray,occluded\n0,1\n1,0\n"


@pytest.mark.parametrize("ending", ["npz", "npy", "parquet"])
def test_results_in_every_format(tmp_path, ending):
    path = tmp_path / f"hits.{ending}"
    rb.save(path, rb.Scene(BOXES).nearest(TWO_RAYS), ids=IDS)
    table = {name: column.tolist() for name, column in get(path).items()}
    assert list(table) == ["ray", "index", "id", "t", "x", "y", "z"]
    assert (table["index"], table["id"], table["t"]) == ([0, -1], ["first", ""], [0.5, np.inf])


def test_refusals_to_save(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    supported = r"unsupported file extension '\.txt'; supported: \.npz \.npy \.csv \.parquet"
    for name, content, words in (
        ("a.txt", BOXES, supported),
        ("nowhere/a.csv", BOXES, "there is no folder"),
        ("folder.csv", BOXES, "not a regular file"),
        ("a.csv", rb.Mesh(CORNERS, FACES), "got Mesh"),
        ("a.npy", rb.Rays([0, 0], [1, 1], t_max=2), "no room for the ranges"),
    ):
        kind = rb.FileFormatError if content is BOXES else rb.InvalidInput
        with pytest.raises(kind, match=words):
            rb.save(tmp_path / name, content)
    with pytest.raises(rb.InvalidInput, match="got 1 for 3 boxes"):
        rb.save(tmp_path / "a.csv", BOXES, ids=["a"])
    assert list(tmp_path.iterdir()) == [tmp_path / "folder.csv"]


FULL = OSError(28, "No space left on device")


@pytest.mark.parametrize("error", [FULL, RuntimeError("bug"), KeyboardInterrupt()])
def test_nothing_half_written_is_left(put, monkeypatch, error):
    path = put("a.csv", "old")

    def fail(file, content, options):
        file.write(b"half")
        raise error

    monkeypatch.setitem(saving.WRITERS, ".csv", fail)
    words = "cannot be written: No space left on device; " if error is FULL else None
    with pytest.raises(rb.FileFormatError if error is FULL else type(error), match=words):
        rb.save(path, BOXES)
    assert [p.name for p in path.parent.iterdir()] == ["a.csv"]
    assert path.read_text() == "old"


# Real files


DELFT = [[84616.468, 447422.999, -0.452], [85140.839, 447750.636, 16.846]]


def test_real_files():
    city, skull = rb.load(real_data.CITY), rb.load(real_data.SKULL)
    assert (len(city), city.objects.max()) == (36_271, 569)
    np.testing.assert_allclose(city.bounds, DELFT, atol=1e-9)
    assert len(rb.load(real_data.SHOP)) == 441_118
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
