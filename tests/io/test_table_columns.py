"""The field's names of columns: bounds in every spelling, structs, decimals, records, boxes with a yaw."""

import json
import re
from decimal import Decimal
from itertools import permutations, product

import numpy as np
import pytest

import raybox as rb
from real_data import LIDAR
from refusals import counted, refused

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

RNG = np.random.default_rng(5)
LOWER = RNG.integers(-9, 9, (7, 3)) / 4
UPPER = LOWER + RNG.integers(0, 9, (7, 3)) / 4
BOUNDS = {
    f"{end}_{axis}": v[:, k] for end, v in (("min", LOWER), ("max", UPPER)) for k, axis in enumerate("xyz")
}
SPELLINGS = {
    "own": "min_x min_y min_z max_x max_y max_z",
    "geopandas": "minx miny minz maxx maxy maxz",
    "extent": "xmin ymin zmin xmax ymax zmax",
    "overture": "xmin xmax ymin ymax zmin zmax",
    "open3d": "x_min y_min z_min x_max y_max z_max",
    "capitals": "XMin YMin ZMin XMax YMax ZMax",
    "mixed order": "maxz minx maxy miny maxx minz",
    "dots": "min.x min.y min.z max.x max.y max.z",
}


def key_of(name):
    """Return raybox's name of a column of bounds."""
    low = re.sub("[_.]", "", name.lower())
    return f"{'min' if 'min' in low else 'max'}_{low.replace('min', '').replace('max', '')}"


def put_table(path, columns):
    """Write columns in the format of the extension."""
    columns = {name: np.asarray(column) for name, column in columns.items()}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        rb.save(path, columns)
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy", "npz"])
@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("dims", [2, 3])
def test_bounds_in_every_spelling(tmp_path, ending, name, dims):
    names = [n for n in SPELLINGS[name].split() if dims == 3 or "z" not in n.lower()]
    columns = {n: BOUNDS[key_of(n)] for n in names}
    path = put_table(tmp_path / f"a.{ending}", columns | {"kind": np.array(list("abcdefg"))})
    boxes = rb.load(path)
    np.testing.assert_array_equal(boxes.lower, LOWER[:, :dims])
    np.testing.assert_array_equal(boxes.upper, UPPER[:, :dims])
    assert boxes.labels["kind"].tolist() == list("abcdefg")
    assert list(boxes.labels) == ["kind"]


def test_errors_give_the_columns_of_the_file(put):
    for text, problem in (
        ("minx,miny,maxx,maxy\n0,0,1,1\n0,5,1,4\n", "line 3, column maxy: 4.0 is below"),
        ("XMIN,ymin,xmax,ymax\na,0,1,1\n", "line 2, column XMIN: 'a' is not a number"),
        ("minx,miny,maxx\n0,0,1\n", "lacks the column maxy; name the columns"),
        (
            "minx,miny,maxx,maxy,xmin,ymin,xmax,ymax\n",
            "bounds of two kinds: minx miny and xmin ymin; rename those that count",
        ),
    ):
        assert problem in refused(put("a.csv", text))
    own = rb.load(put("a.csv", "minx,miny,maxx,maxy,min_x,min_y,max_x,max_y\n0,0,1,1,5,5,6,6\n"))
    assert own.lower.tolist() == [[5, 5]]
    assert list(own.labels) == ["minx", "miny", "maxx", "maxy"]


def struct_of(dims, order=None):
    """Return bounds as a struct, its fields in any order."""
    names = order or [f"{axis}{end}" for end in ("min", "max") for axis in "xyz"[:dims]]
    return pa.StructArray.from_arrays([pa.array(BOUNDS[key_of(name)]) for name in names], names)


@pytest.mark.parametrize("order", list(permutations(["xmin", "xmax", "ymin", "ymax"]))[::5])
def test_a_bbox_column_is_read_by_the_names_of_its_fields(tmp_path, order):
    pq.write_table(pa.table({"id": list("abcdefg"), "bbox": struct_of(2, order)}), tmp_path / "a.parquet")
    boxes = rb.load(tmp_path / "a.parquet")
    assert boxes.equals(rb.Boxes(LOWER[:, :2], UPPER[:, :2], ids=list("abcdefg")))


def test_the_covering_of_geoparquet_comes_before_a_column_named_bbox(tmp_path):
    """Binary geometry is left out, and counted; it is no loss, so there is no warning."""
    parts = ("xmin", "ymin", "zmin", "xmax", "ymax", "zmax")
    covering = {"bbox": {part: ["extent", part] for part in parts}}
    geo = {"primary_column": "shape", "columns": {"shape": {"covering": covering}}}
    wrong = pa.StructArray.from_arrays([pa.array(np.full(7, 9.0))] * 4, ["xmin", "ymin", "xmax", "ymax"])
    columns = {"bbox": wrong, "extent": struct_of(3), "shape": pa.array([b"\1"] * 7), "n": np.arange(7)}
    nines = np.full((7, 2), 9.0)
    for metadata, lower in ((geo, LOWER), (None, nines), ({"columns": 3}, nines)):
        table = pa.table(columns).replace_schema_metadata(metadata and {"geo": json.dumps(metadata)})
        pq.write_table(table, tmp_path / "a.parquet")
        boxes = rb.load(tmp_path / "a.parquet")
        np.testing.assert_array_equal(boxes.lower, lower)
        assert boxes.labels["n"].tolist() == list(range(7))
        assert dict(boxes.skipped) == {"columns that are no labels": 1}


def test_boxes_of_geoarrow(tmp_path):
    """Also where the type of the extension is registered."""
    path, struct = tmp_path / "a.parquet", struct_of(3)
    kind = {b"ARROW:extension:name": b"geoarrow.box"}
    schema = pa.schema([pa.field("around", struct.type, metadata=kind)])
    pq.write_table(pa.table([struct], schema=schema), path)
    np.testing.assert_array_equal(rb.load(path).upper, UPPER)

    class Box(pa.ExtensionType):
        def __init__(self):
            super().__init__(struct.type, "geoarrow.box")

        def __arrow_ext_serialize__(self):
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage_type, serialized):
            return cls()

    pa.register_extension_type(Box())
    try:
        np.testing.assert_array_equal(rb.load(path).upper, UPPER)
    finally:
        pa.unregister_extension_type("geoarrow.box")


@pytest.mark.skipif(not hasattr(pa, "uuid"), reason="of pyarrow 18")
def test_types_of_extensions_are_those_of_their_storage(tmp_path):
    columns = {name: BOUNDS[name] for name in ("min_x", "min_y", "max_x", "max_y")}
    columns["key"] = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes(16)] * 7, pa.binary(16)))
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    boxes = rb.load(tmp_path / "a.parquet")
    assert (list(boxes.labels), dict(boxes.skipped)) == ([], {"columns that are no labels": 1})


def test_missing_numbers_of_boxes_are_refused(tmp_path):
    struct = pa.array([{"xmin": 0.0, "ymin": 0.0, "xmax": 1.0, "ymax": 1.0}, None])
    pq.write_table(pa.table({"bbox": struct}), tmp_path / "a.parquet")
    text = "row 1 (the first is 0), column bbox.xmin: a value is missing; fill in each or"
    assert text in refused(tmp_path / "a.parquet")


@pytest.mark.parametrize("size", [128, 256])
def test_decimals_are_exact_or_refused(tmp_path, size):
    kind, path = (pa.decimal128 if size == 128 else pa.decimal256)(30, 10), tmp_path / "a.parquet"
    names = ["min_x", "min_y", "max_x", "max_y"]
    columns = {name: pa.array([Decimal("1.5"), Decimal("-2.0625")], kind) for name in names}
    pq.write_table(pa.table(columns), path)
    assert rb.load(path).lower.tolist() == [[1.5, 1.5], [-2.0625, -2.0625]]
    for bad in ("0.1", str(2**53 + 1), "12345678901234567890.5"):
        columns["max_y"] = pa.array([Decimal("2"), Decimal(bad)], kind)
        pq.write_table(pa.table(columns), path)
        text = refused(path)
        assert f"row 1 (the first is 0), column max_y: {bad}" in text
        assert "is a decimal number that float64 does not hold" in text


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy", "npz", "zarr"])
@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**60 + 1, 2**63 - 1])
def test_whole_numbers_that_float64_does_not_hold_are_refused(tmp_path, ending, number):
    """2**53 and 2**60 are exact, as for `rb.Boxes`; the same rule holds for casts."""
    zarr = pytest.importorskip("zarr")
    kinds = {
        "scene": ("lower", "upper", "min", "max"),
        "rays": ("origins", "directions", "origin", "direction"),
    }
    scene, out = rb.Scene(rb.Boxes([[0, 0]], [[1, 1]])), tmp_path / "out.npy"
    for value, kind in product((number, 2**53, 2**60, -(2**60)), kinds):
        path, (*names, first, second) = tmp_path / f"{kind}{value}.{ending}", kinds[kind]
        numbers = np.array([[0, value], [1, 2]]), np.full((2, 2), 2**62)
        if ending == "zarr":
            group = zarr.open_group(path, mode="w")
            for name, array in zip(names, numbers, strict=True):
                group.create_array(name, data=array)
        elif ending == "npz":
            np.savez(path, **dict(zip(names, numbers, strict=True)))
        elif ending == "npy":
            np.save(path, np.hstack(numbers))
        else:
            axes = [f"{name}_{axis}" for name in (first, second) for axis in "xy"]
            put_table(path, dict(zip(axes, np.hstack(numbers).T, strict=True)))
        if value != number:
            assert len(rb.load(path, kind=kind)) == 2
            continue
        calls = [lambda path=path, kind=kind: rb.load(path, kind=kind)]
        calls += [lambda path=path: rb.stream.cast(scene, path, out)] * (kind == "rays")
        for call in calls:
            with pytest.raises(rb.FileFormatError, match=f"{number}'? is not exact in float64"):
                call()


def test_numbers_with_a_point_are_rounded_as_ever(put):
    text = "min_x,min_y,max_x,max_y\n9007199254740993.0,1e300,9007199254740994,inf\n"
    boxes = rb.load(put("a.csv", text))
    assert boxes.bounds.tolist() == [[2**53, 1e300], [2**53 + 2, np.inf]]
    long = put("a.csv", text.replace("9007199254740993.0", "1234567890" * 40))
    assert "line 2, column min_x: '1234567890" in refused(long)


def test_the_fourth_column_of_points_with_an_origin_is_not_read(tmp_path):
    """KITTI stores x, y, z and intensity."""
    path, table = tmp_path / "a.npy", np.array([[1, 2, 3, 0.5], [4, 5, 6, 0.25]], np.float32)
    np.save(path, table)
    scene = rb.Scene(rb.Boxes([[0.4, 0.9, 1.4]], [[0.6, 1.1, 1.6]]))
    rays = rb.load(path, origin=(0, 0, 0))
    assert rays.directions.tolist() == table[:, :3].tolist()
    rb.stream.cast(scene, path, tmp_path / "out.npy", origin=(0, 0, 0))
    assert np.load(tmp_path / "out.npy")["index"].tolist() == scene.nearest(rays).index.tolist() == [0, -1]
    assert rb.load(path, kind="rays").origins.tolist() == [[1, 2], [4, 5]]
    assert "its points have 3 coordinates, the origin has 2" in refused(path, origin=(0, 0))
    np.save(path, np.ones((2, 6)))
    assert "has shape (2, 6); for points, give a table whose width" in refused(path, origin=(0, 0, 0))


def test_an_origin_with_rays_or_with_a_scene_is_refused(tmp_path, put):
    scene = rb.Scene(rb.Boxes([[0, 0, 0]], [[1, 1, 1]]))
    for ending in ("npz", "csv", "parquet"):
        path = tmp_path / f"rays.{ending}"
        rb.save(path, rb.Rays([0, 0, 0], [[1, 0, 0]]))
        for read in (rb.load, lambda path, **how: rb.stream.cast(scene, path, tmp_path / "out.csv", **how)):
            text = refused(path, read, origin=(0, 0, 0))
            assert "holds rays, which start at origins of their own; leave out the origin" in text
    path = put("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    assert "holds a scene, not points; leave out the origin" in refused(path, origin=(0, 0, 0))
    boxes = put("b.csv", "minx,miny,maxx,maxy\n0,0,1,1\n")
    assert "holds boxes; leave out the origin" in refused(boxes, origin=(0, 0))
    with pytest.raises(rb.InvalidInput, match=r"lod is for files of CityJSON \(.*\); got it with a\.obj"):
        rb.load(path, lod="1.2")


TURNED = {
    "pandaset": "position.x position.y position.z dimensions.x dimensions.y dimensions.z yaw",
    "own": "center_x center_y center_z size_x size_y size_z yaw",
    "nuscenes": "translation_x translation_y translation_z size_x size_y size_z yaw",
    "openpcdet": "x y z dx dy dz heading",
    "kitti": "x y z l w h yaw",
    "waymo": "center_x center_y center_z length width height heading",
    "capitals": "Center_X Center_Y Center_Z Size_X Size_Y Size_Z Yaw",
}


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy"])
@pytest.mark.parametrize("name", TURNED)
def test_boxes_with_a_yaw_are_turned(tmp_path, ending, name):
    numbers = np.c_[RNG.normal(size=(5, 3)), RNG.random((5, 3)) + 0.1, RNG.uniform(-4, 4, 5)]
    columns = dict(zip(TURNED[name].split(), numbers.T, strict=True))
    path = put_table(tmp_path / f"a.{ending}", columns | {"label": np.array(list("abcde"))})
    wanted = rb.Instances.oriented_boxes(numbers[:, :3], numbers[:, 3:6], yaw=numbers[:, 6])
    found = rb.load(path)
    assert isinstance(found, rb.Instances)
    np.testing.assert_array_equal(found.transforms, wanted.transforms)
    assert found.labels["label"].tolist() == list("abcde")
    around = rb.load(path, boxes=True)
    np.testing.assert_array_equal(around.lower, wanted.boxes().lower)
    assert around.ids.tolist() == list("abcde")
    corner = numbers[0, :3] + [0, 0, 0.4999 * numbers[0, 5]]
    turn = np.array([np.cos(numbers[0, 6]), np.sin(numbers[0, 6]), 0])  # the length lies along the heading
    ray = rb.Rays(corner + 10 * turn, -turn)
    assert rb.Scene(found[:1]).nearest(ray).t == pytest.approx(10 - numbers[0, 3] / 2)


def test_wrong_boxes_with_a_yaw(put):
    head = "center_x,center_y,center_z,size_x,size_y,size_z,yaw\n"
    path = put("a.csv", head + "0,0,0,1,1,1,0\n0,0,0,1,0,1,0\n")
    assert "line 3, column size_y: 0.0 is not above zero" in refused(path)
    path = put("a.csv", head + "0,0,0,1,1,1,nan\n")
    assert "line 2, column yaw: nan is not a finite number" in refused(path)
    points = rb.load(put("a.csv", "x,y,z,dx,dy,dz,yaw\n1,2,3,1,1,1,0\n"), origin=(0, 0, 0))
    assert points.directions.tolist() == [[1, 2, 3]]


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy"])
@pytest.mark.parametrize("name", TURNED)
def test_boxes_with_centre_and_size_alone_are_not_turned(tmp_path, ending, name):
    numbers = np.c_[RNG.integers(-9, 9, (5, 3)), RNG.integers(0, 9, (5, 3))] / 4
    names = TURNED[name].split()[:6]
    columns = dict(zip(names, numbers.T, strict=True)) | {"label": np.array(list("abcde"))}
    path = put_table(tmp_path / f"a.{ending}", columns)
    for options in ({"kind": "scene"}, {"boxes": True}, {"kind": "scene"} if "dx" in names else {}):
        boxes = rb.load(path, **options)
        assert isinstance(boxes, rb.Boxes)
        np.testing.assert_array_equal(np.c_[boxes.centers, boxes.sizes], numbers)
        assert (boxes.ids.tolist(), list(boxes.labels)) == (list("abcde"), ["label"])
    flat = put_table(tmp_path / f"b.{ending}", {names[k]: columns[names[k]] for k in (0, 1, 3, 4)})
    np.testing.assert_array_equal(rb.load(flat, kind="scene").centers, numbers[:, :2])


def test_centres_and_steps_are_boxes_or_rays(tmp_path, put):
    path = put("a.csv", "x,y,z,dx,dy,dz\n1,2,3,4,5,6\n")
    assert 'holds boxes and rays; say which: kind="scene" or kind="rays"' in refused(path)
    assert rb.load(path, kind="scene").bounds.tolist() == [[-1, -0.5, 0], [3, 4.5, 6]]
    rays = rb.load(path, kind="rays")
    assert (rays.origins.tolist(), rays.directions.tolist()) == ([[1, 2, 3]], [[4, 5, 6]])
    assert rb.load(path, origin=(1, 1, 1)).directions.tolist() == [[0, 1, 2]]
    rb.stream.cast(rb.Scene(rb.Boxes([[4, 6, 8]], [[5, 7, 9]])), path, tmp_path / "out.npy")
    assert np.load(tmp_path / "out.npy")["t"].tolist() == [5 / 6]
    rays = rb.load(put("a.csv", "x,y,z,dx,dy,dz,t_max,t_min\n1,2,3,4,5,6,2,1\n"), kind="rays")
    assert (rays.t_min.tolist(), rays.t_max.tolist()) == ([1], [2])
    bounds = put("a.csv", "min_x,min_y,max_x,max_y,center_x,center_y,size_x,size_y\n0,0,2,2,1,1,9,9\n")
    assert rb.load(bounds).bounds.tolist() == [[0, 0], [2, 2]]


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy"])
@pytest.mark.parametrize("words", ["from_ to_", "from. to.", "start_ end_", "FROM_ TO_"])
def test_segments_from_and_to(tmp_path, ending, words):
    """t counts from 0 at the start to 1 at the end."""
    starts, ends = RNG.normal(size=(2, 9, 3))
    path, out = tmp_path / f"a.{ending}", tmp_path / "out.npy"
    for dims in (2, 3):
        names = [word + axis for word in words.split() for axis in "xyz"[:dims]]
        columns = dict(zip(names, np.c_[starts[:, :dims], ends[:, :dims]].T, strict=True))
        put_table(path, columns)
        wanted = rb.Rays.segments(starts[:, :dims], ends[:, :dims])
        assert rb.load(path).equals(wanted)
        scene = rb.Scene(rb.Boxes([[-0.5] * dims], [[0.5] * dims]))
        rb.stream.cast(scene, [path, path], out, chunk=4)
        hits = scene.nearest(wanted)
        np.testing.assert_array_equal(np.load(out)["t"], np.tile(hits.t, 2))
        out.unlink()
    assert 0 < np.isfinite(hits.t).sum() < 9
    put_table(path, columns | {"t_max": np.ones(9)})
    assert "has the column t_max, but segments, where t is 0 to 1" in refused(path)


@pytest.mark.parametrize("names", ["qw qx qy qz", "rotation.w rotation.x rotation.y rotation.z"])
@pytest.mark.parametrize("length", [1, 7.5])
def test_quaternions_turn_boxes(tmp_path, names, length):
    """As in Argoverse 2, whose other columns are tx_m ty_m tz_m length_m width_m height_m."""
    centers, sizes, turns = RNG.normal(size=(5, 3)), RNG.random((5, 3)) + 0.1, RNG.normal(size=(5, 4))
    own = f"tx_m ty_m tz_m length_m width_m height_m {names}".split()
    columns = dict(zip(own, np.c_[centers, sizes, length * turns].T, strict=True))
    wanted = rb.Instances.oriented_boxes(centers, sizes, quaternions=length * turns)
    for ending in ("csv", "parquet", "npy"):
        path = put_table(tmp_path / f"a.{ending}", columns)
        np.testing.assert_array_equal(rb.load(path).transforms, wanted.transforms)
    bad = {
        name: np.r_[column[:4], 0] if name in names.split() else column for name, column in columns.items()
    }
    path = put_table(tmp_path / "b.parquet", bad)
    assert f"column {own[6]}: 0.0 begins a quaternion of zeros" in refused(path)
    boxes, skipped = counted(path, invalid="skip")
    assert (len(boxes), skipped) == (4, {"rows with a quaternion of zeros": 1})
    del columns[own[6]]
    text = refused(put_table(tmp_path / "c.csv", columns))
    assert f"has the column '{own[7]}', which may turn its boxes" in text


TURNS = [
    "angle",
    "rotation_y",
    "Rotation",
    "yawDeg",
    "rot",
    "rz",
    "theta",
    "orientation",
    "heading_deg",
    "pitch",
]
HARMLESS = ["carrot", "triangle_id", "r", "q", "protocol", "score", "rank", "enrolled", "wz"]


@pytest.mark.parametrize("name", TURNS + HARMLESS)
def test_a_column_that_may_turn_boxes_is_not_a_label(put, name):
    """Unless it holds zeros: a box that is turned must not be read as one that is not."""
    head = f"center_x,center_y,center_z,size_x,size_y,size_z,{name}\n"
    for value in ("0", "", "0.0"):
        assert isinstance(rb.load(put("a.csv", head + f"0,0,0,1,1,1,{value}\n")), rb.Boxes)
    path = put("a.csv", head + "0,0,0,1,1,1,0\n0,0,0,1,1,1,0.5\n")
    if name in HARMLESS:
        assert rb.load(path).labels[name].tolist() == [0, 0.5]
        return
    assert f"has the column '{name}', which may turn its boxes; if it does" in refused(path)
    bounds = put("b.csv", f"min_x,min_y,max_x,max_y,{name}\n0,0,1,1,0.5\n")
    assert rb.load(bounds).labels[name].tolist() == [0.5]


@pytest.mark.parametrize("name", ["roll", "pitch", "Pitch_rad"])
def test_boxes_with_a_yaw_are_not_tilted(put, name):
    head = f"center_x,center_y,center_z,size_x,size_y,size_z,heading,{name}\n"
    assert len(rb.load(put("a.csv", head + "0,0,0,1,1,1,1,0\n"))) == 1
    path = put("a.csv", head + "0,0,0,1,1,1,1,0.1\n")
    assert f"has the column '{name}', which may turn its boxes" in refused(path)


def test_a_turn_of_no_type_of_labels_is_refused(tmp_path):
    columns = {name: [1.0] for name in "xyzlwh"} | {"rotation": [[1.0, 0.0, 0.0, 0.0]]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert "has the column 'rotation', which may turn its boxes" in refused(tmp_path / "a.parquet")


def test_a_frame_of_pandaset():
    boxes = rb.load(LIDAR / "cuboids.csv")
    assert (type(boxes), len(boxes)) == (rb.Instances, 151)
    assert boxes.labels["cuboids.sensor_id"].dtype == np.int64
    assert set(boxes.labels) == {"label", "stationary", "cuboids.sensor_id", "uuid"}
    assert boxes.ids.tolist() == boxes.labels["uuid"].tolist()
    assert len(set(boxes.ids)) == 151
    assert len(set(boxes.labels["label"])) == 12
