"""rb.stream.cast writes what load, the query and save write, whatever the formats and chunks."""

import io
import re
import shutil
import time
import zipfile

import numpy as np
import pytest

import raybox as rb
from file_samples import POINTS, samples
from raybox.casting import columns as cast_columns
from raybox.casting import readers, writers
from raybox.casting.caster import BlockCaster
from raybox.casting.columns import rows_of
from raybox.casting.part import PartFile, PartFolders
from raybox.hits import file_columns
from raybox.hits.file_columns import Sparse
from raybox.io.formats import csv_table, numpy_arrays, point_clouds, zarr_arrays
from raybox.store.folder import make_folder
from streaming import (
    BOXES,
    ENDINGS,
    GROUPS,
    IDS,
    RAY_QUERIES,
    RAYS,
    SCENE,
    WORLDS,
    check,
    endings_from,
    get,
    ids_for,
    pq,
    put,
    results_of,
    with_column,
    zarr,
)

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize("query", RAY_QUERIES)
@pytest.mark.parametrize("source", ENDINGS)
def test_every_pair_of_formats(tmp_path, source, query):
    rays = put(tmp_path / f"rays.{source}", RAYS)
    wanted = results_of(SCENE, RAYS, query)
    ids = ids_for(query)
    for ending in ENDINGS:
        out = tmp_path / f"out.{ending}"
        done = rb.stream.cast(SCENE, rays, out, query=query, ids=IDS, chunk=40, workers=1)
        check(out, wanted, ids)
        assert (done.rays, done.resumed) == (103, 0)
        assert done.rows == len(wanted["ray"] if isinstance(wanted, dict) else wanted.index)
    assert not list(tmp_path.glob("*part*"))
    assert 0 < done.hit_count < 103 or rows_of(query) == "hits"


@pytest.mark.parametrize("given", ["csv", "parquet", "array", "one"])
@pytest.mark.parametrize("query", RAY_QUERIES)
def test_groups(tmp_path, query, given):
    """Of an array, a column, and one number for all, as of the query in memory."""
    if given in ("csv", "parquet"):
        rays, groups = with_column(tmp_path / f"rays.{given}", RAYS, "id", GROUPS), "id"
    else:
        rays, groups = put(tmp_path / "rays.npy", RAYS), GROUPS if given == "array" else 1
    own = 1 if given == "one" else GROUPS
    for chunk, ending in zip((1, 20, 1000), endings_from("npz"), strict=False):
        out = tmp_path / f"out.{ending}"
        done = rb.cast(WORLDS, rays, out, query=query, groups=groups, chunk=chunk)
        check(out, results_of(WORLDS, RAYS, query, groups=own))
        assert 0 < done.hit_count < rb.cast(SCENE, rays, tmp_path / "all.npy", query=query).hit_count


def test_groups_with_carried_columns_of_several_files(tmp_path):
    files = [
        with_column(tmp_path / f"rays{k}.csv", RAYS[k : k + 50], "id", GROUPS[k : k + 50]) for k in (0, 50)
    ]
    how = {"query": "all", "groups": "id", "carry": ["id"]}
    rb.cast(WORLDS, files, tmp_path / "out.parquet", chunk=7, **how)
    found = get(tmp_path / "out.parquet")
    np.testing.assert_array_equal(found["ray_id"], GROUPS[found["ray"]].astype(str))
    np.testing.assert_array_equal(found["index"], WORLDS.all(RAYS[:100], groups=GROUPS[:100]).index)


@pytest.mark.parametrize(
    ("scene", "how", "match"),
    [
        (WORLDS, {}, "rays need groups"),
        (WORLDS, {"query": "deposit"}, "rays need groups"),
        (SCENE, {"groups": "world"}, "rays have groups, and the scene has none"),
        (SCENE, {"groups": 1, "query": "deposit"}, "rays have groups, and the scene has none"),
        (SCENE, {"groups": 1, "query": "segments"}, "groups is for query 'nearest' or .*'closest'; got it"),
        (WORLDS, {"groups": GROUPS[1:]}, "groups must have a row for each ray of the file; got 102 rows"),
        (WORLDS, {"groups": GROUPS * 1.0}, r"must be integers of shape .*got shape \(103,\) of float64"),
        (WORLDS, {"groups": GROUPS[:, None]}, r"must be integers of shape .*got shape \(103, 1\)"),
        (WORLDS, {"groups": np.arange(103) - 2}, "groups must be -1, for all, .*; row 0 is -2"),
        (WORLDS, {"groups": "lost"}, "rays.csv: has no column 'lost' of groups; it has world"),
        (WORLDS, {"groups": "t_max"}, "has no column 't_max' of groups"),
        (WORLDS, {"groups": "world"}, "rays.csv, column world, rows 0 to 102: a group is neither -1"),
    ],
)
def test_groups_that_are_refused(tmp_path, scene, how, match):
    for last in (-2, "x", "1.0", ""):
        rays = with_column(tmp_path / "rays.csv", RAYS, "world", [*GROUPS[1:], last])
        with pytest.raises((rb.InvalidInput, rb.FileFormatError), match=match):
            rb.cast(scene, rays, tmp_path / "out.npy", **how)
    assert [*tmp_path.iterdir()] == [rays]
    with pytest.raises(rb.FileFormatError, match=r"rays.npy: has no named columns of groups"):
        rb.cast(WORLDS, put(tmp_path / "rays.npy", RAYS), tmp_path / "out.npy", groups="world")


@pytest.mark.parametrize("size", [1, 2, 51, 102, 103, 104, 10**9])
def test_chunks_change_nothing(tmp_path, monkeypatch, size):
    monkeypatch.setattr(numpy_arrays, "BLOCK_ROWS", 17)
    monkeypatch.setattr(zarr_arrays, "BLOCK_ROWS", 17)
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", 400)
    for source in ENDINGS:
        rays = put(tmp_path / f"rays.{source}", RAYS)
        rb.stream.cast(SCENE, rays, tmp_path / "out.npy", chunk=size)
        check(tmp_path / "out.npy", SCENE.nearest(RAYS))


@pytest.mark.parametrize("source", ENDINGS)
@pytest.mark.parametrize("dims", [2, 3])
def test_no_rays_and_two_dimensions(tmp_path, source, dims):
    scene = rb.Scene(rb.Boxes.from_centers(BOXES.centers[:, :dims], 0.2))
    for number in (0, 5):
        rays = rb.Rays(RAYS.origins[:number, :dims], RAYS.directions[:number, :dims])
        path = put(tmp_path / f"rays{number}.{source}", rays)
        for query, ending in zip(RAY_QUERIES, endings_from(source), strict=False):
            out = tmp_path / f"{number}{query}.{ending}"
            assert rb.stream.cast(scene, path, out, query=query, chunk=2).rays == number
            check(out, results_of(scene, rays, query))
    assert not list(tmp_path.glob("*part*"))


@pytest.mark.parametrize("name", ["points.las", "points.laz", "binary.pcd", "ascii.pcd", "points.ply"])
def test_points(tmp_path, monkeypatch, name):
    monkeypatch.setattr(point_clouds, "BLOCK_ROWS", 7)
    monkeypatch.setattr(readers, "BLOCK_ROWS", 7)
    path = tmp_path / name
    path.write_bytes(samples()[name][0])
    origin = (0.5, 0.25, 0.0)
    rays = rb.load(path, kind="rays", origin=origin)
    assert rb.stream.cast(SCENE, path, tmp_path / "out.csv", origin=origin, chunk=9).rays == len(rays)
    check(tmp_path / "out.csv", SCENE.nearest(rays))
    with pytest.raises(rb.FileFormatError, match="holds points, not rays; say where the rays start"):
        rb.stream.cast(SCENE, path, tmp_path / "out.csv")


@pytest.mark.parametrize("ending", ENDINGS)
def test_points_of_tables(tmp_path, ending):
    path, table = tmp_path / f"points.{ending}", dict(zip("xyz", POINTS.T, strict=True))
    if ending == "zarr":
        zarr.open_group(path, mode="w").create_array("points", data=POINTS)
    elif ending == "npy":
        np.save(path, POINTS)
    else:
        rb.save(path, {"points": POINTS} if ending == "npz" else table)
    rb.stream.cast(SCENE, path, tmp_path / "out.npz", query="all", origin=(0, 0, 2), chunk=7)
    check(tmp_path / "out.npz", SCENE.all(rb.Rays([0, 0, 2], POINTS - [0.0, 0.0, 2.0])))


@pytest.mark.long
@pytest.mark.parametrize("ordered", [True, False])
def test_all_is_bounded_in_hits_too(tmp_path, monkeypatch, ordered):
    """About CHUNK_HITS hits are in memory at a time, wherever rays hit much, and without counting all."""
    monkeypatch.setattr(file_columns, "CHUNK_HITS", 2000)
    scene = rb.Scene(rb.Boxes([[k, -1, -1] for k in range(30)], [[k + 0.5, 1, 1] for k in range(30)]))
    starts = np.random.default_rng(3).uniform(-1, 60, 9000)  # half of the rays miss, some hit all
    rays = rb.Rays(np.c_[np.sort(starts) if ordered else starts, np.zeros((9000, 2))], [1, 0, 0])
    runs, all_method = [], rb.Scene.all

    def recorded(self, *given, **how):
        found = all_method(self, *given, **how)
        if self is scene:  # the small scene is another
            runs.append(found)
        return found

    monkeypatch.setattr(rb.Scene, "all", recorded)
    path = put(tmp_path / "rays.npz", rays)
    rb.stream.cast(scene, path, tmp_path / "out.parquet", query="all")
    monkeypatch.undo()
    wanted = scene.all(rays)
    assert sum(len(found.offsets) - 1 for found in runs) <= 9010 + 9000 / 64
    sizes = [len(found.index) for found in runs]
    assert len(wanted.index) > 60_000
    assert len(sizes) > 30
    assert max(sizes) < 4000
    check(tmp_path / "out.parquet", wanted)


def test_a_ray_with_too_many_hits_is_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(file_columns, "CHUNK_HITS", 1)
    path = put(tmp_path / "rays.npz", RAYS)
    rb.stream.cast(SCENE, path, tmp_path / "out.parquet", query="all", chunk=50)
    check(tmp_path / "out.parquet", SCENE.all(RAYS))


@pytest.mark.core
def test_csv_by_hand(tmp_path, monkeypatch):
    """Quoted fields over several lines, empty lines, Windows' ends, a byte order mark; cut anywhere."""
    head = '\ufeff"a\nnote", origin_x,origin_y,direction_x,direction_y,\'\r\n'
    rows = [
        f'"{"x" * k}\n""{k}"", ,",{k / 7}, {k}e-1,1,{k % 3 - 1},\r\n' + "\r\n" * (k % 4 == 0)
        for k in range(40)
    ]
    path = tmp_path / "by_hand.csv"
    path.write_bytes((head + "".join(rows).removesuffix("\r\n")).encode())
    rays = rb.load(path)
    assert len(rays) == 40
    scene = rb.Scene(rb.Boxes([[1.0, -1.0]], [[4.0, 3.0]]))
    for block in (1, 7, 60, 1 << 20):
        monkeypatch.setattr(csv_table, "BLOCK_BYTES", block)
        rb.stream.cast(scene, path, tmp_path / "out.npy", chunk=11)
        check(tmp_path / "out.npy", scene.nearest(rays))
    path.write_bytes(b"origin_x,origin_y,direction_x,direction_y\r0,0,1,0\r0,9,1,0\r")
    assert rb.stream.cast(scene, path, tmp_path / "out.npy").hit_count == 1


def test_tables_of_other_kinds(tmp_path):
    """Float32, whole numbers, Fortran's order, odd row groups, other columns, compressed arrays."""
    o, d = RAYS.origins.astype(np.float32), RAYS.directions.astype(np.int8)
    rays, path = rb.Rays(o, d), tmp_path / "rays.npy"
    np.save(path, np.asfortranarray(np.hstack([o, d.astype(np.float32)])))
    columns = {f"{n}_{x}": a[:, k] for n, a in (("direction", d), ("origin", o)) for k, x in enumerate("xyz")}
    table = pa.table({"note": ["n"] * 103, **columns})
    pq.write_table(table, tmp_path / "rays.parquet", row_group_size=9)
    np.savez_compressed(tmp_path / "small.npz", origins=o, directions=d)
    np.savez(tmp_path / "rays.npz", origins=np.asfortranarray(o), directions=d)
    for name in ("rays.npy", "rays.parquet", "small.npz", "rays.npz"):
        rb.stream.cast(SCENE, tmp_path / name, tmp_path / "out.npy", chunk=10)
        check(tmp_path / "out.npy", SCENE.nearest(rays))
    camera = rb.Rays.pinhole((0, 0, 3), (0.5, 0.5, 0), up=(0, 1, 0), fov=40, width=9, height=5)
    rb.save(tmp_path / "camera.npz", camera)
    np.savez(tmp_path / "one.npz", origins=camera.origins[0, 0], directions=camera.directions)
    for name in ("camera.npz", "one.npz"):
        rb.stream.cast(SCENE, tmp_path / name, tmp_path / "out.npy", chunk=10)
        check(tmp_path / "out.npy", SCENE.nearest(camera))


def test_what_is_loaded_whole(tmp_path):
    """Only the formats that docs/files/large.md names; all others are read block by block."""
    options = readers.ReadOptions("rays", (0.0, 0.0, 0.0))
    whole = []
    for name in (
        "rays.npy",
        "rays.npz",
        "rays.csv",
        "rays.parquet",
        "points.las",
        "points.ply",
        "binary.pcd",
    ):
        path = tmp_path / name
        path.write_bytes(samples()[name][0])
        found = readers.open_ray_file(path, options._replace(origin=None) if "rays" in name else options)
        whole += [path.suffix] if found.options.origin is None and "rays" not in name else []
    assert whole == [".ply", ".pcd"]


def test_a_file_that_is_open(tmp_path):
    out = io.BytesIO()
    path = put(tmp_path / "rays.npz", RAYS)
    assert rb.stream.cast(SCENE, path, out, query="count", chunk=20).rows == 103
    rb.save(tmp_path / "wanted.csv", results_of(SCENE, RAYS, "count"))
    assert out.getvalue() == (tmp_path / "wanted.csv").read_bytes()


def test_arguments_are_checked(tmp_path):
    path, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.csv"
    for scene, how, text in (
        (BOXES, {}, "scene must be a raybox.Scene; got Boxes"),
        (
            SCENE,
            {"query": "first"},
            "query must be one of nearest, occluded, count, all, segments, integrate, deposit, "
            "containing, overlapping, closest; got 'first'",
        ),
        (SCENE, {"ids": ["a"]}, "ids must name every object: got 1 for 40 objects"),
        (SCENE, {"chunk": 0}, "chunk must be a whole number of rays, at least 1; got 0"),
        (SCENE, {"workers": 0}, "workers must be"),
        (SCENE, {"invalid": "drop"}, "invalid must be"),
        (rb.Scene(rb.Boxes([[0, 0]], [[1, 1]])), {}, "rays.npz: holds rays in 3D, while the scene is in 2D"),
    ):
        with pytest.raises(rb.InvalidInput, match=text):
            rb.stream.cast(scene, path, out, **how)
    (tmp_path / "there.zarr").mkdir()
    for place, text in (
        ("out.txt", "unsupported file extension"),
        ("no/out.zarr", "no folder"),
        ("there.zarr", "exists already"),
    ):
        with pytest.raises(rb.FileFormatError, match=text):
            rb.stream.cast(SCENE, path, tmp_path / place)
    shutil.rmtree(tmp_path / "there.zarr")
    assert [item.name for item in tmp_path.iterdir()] == ["rays.npz"]


def test_zarr_that_is_not_rays(tmp_path):
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    with pytest.raises(rb.FileFormatError, match="no arrays of rays or points"):
        rb.stream.cast(SCENE, tmp_path / "a.zarr", tmp_path / "out.csv")
    group.create_array("origins", data=np.zeros((4, 3)))
    group.create_array("directions", data=np.zeros((5, 3)))
    with pytest.raises(rb.FileFormatError, match=r"origins \(4, 3\), directions \(5, 3\)"):
        rb.stream.cast(SCENE, tmp_path / "a.zarr", tmp_path / "out.csv")
    for name, text in (("none.zarr", "No such file"), ("file.zarr", "not a folder")):
        (tmp_path / "file.zarr").touch()
        with pytest.raises(rb.FileFormatError, match=text):
            rb.stream.cast(SCENE, tmp_path / name, tmp_path / "out.csv")


def test_a_bar_shows_rate_and_time_left(tmp_path, capsys, monkeypatch):
    write_part = BlockCaster.write_part

    def write_slowly(*args):
        time.sleep(0.3)  # the bar appears after half a second
        return write_part(*args)

    monkeypatch.setattr(BlockCaster, "write_part", write_slowly)
    for name in ("rays.npz", "rays.csv"):  # the second has no number of rays
        rays, out = put(tmp_path / name, RAYS), tmp_path / f"{name}-out.csv"
        rb.cast(SCENE, rays, out, chunk=20, workers=1, progress=True)
        text = capsys.readouterr().err
        assert re.search(r"\d+%.*/\d+.* \[\d\d:\d\d<\d\d:\d\d, +[\d.]+k? rays/s\]", text), text
        assert " 103/103 " in text.split("\r")[-1]
    rb.cast(SCENE, rays, out, chunk=20, workers=1)
    assert capsys.readouterr().err == ""


def test_archives_hold_no_time(tmp_path):
    rb.save(tmp_path / "a.npz", RAYS)
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def written(folder, columns, times=1):
    """Append columns to a Parquet file some times, and return its path."""
    dtypes = {name: cast_columns.as_array(column).dtype for name, column in columns.items()}
    file = PartFile(PartFolders(make_folder(folder / "parts"), make_folder(folder / "records")))
    writer = writers.ParquetWriter(cast_columns.OutputSpec(dtypes, None), file)
    for _ in range(times):
        writer.add(columns)
    writer.finish()
    (path,) = (folder / "parts").iterdir()
    return path


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 32, 33, 128, 129, 161, 1000])
@pytest.mark.parametrize("page", [7, 129, 1 << 17])
def test_row_groups_hold_every_bit(tmp_path, monkeypatch, rows, page):
    """Whole numbers with differences of every width, floats of every kind, bools, sparse columns."""
    monkeypatch.setattr(writers, "_PAGE", page)
    rng = np.random.default_rng(rows)
    ends = np.iinfo(np.int64)
    columns = {"ray": range(12345678901, 12345678901 + rows), "same": np.full(rows, -1)}
    columns |= {f"w{w}": rng.integers(0, 2**w, rows, np.uint64, True).view(np.int64) for w in range(64)}
    columns["ends"] = rng.choice([ends.min, ends.max, 0, -1], rows)
    columns["real"] = rng.choice([np.nan, np.inf, -0.0, 1.5], rows)
    columns["yes"] = rng.random(rows) < 0.5
    gaps = {f"gap {share}": rng.random(rows) < share for share in (0.0, 0.25, 0.9, 1.0)}
    for name, there in gaps.items():
        numbers = rng.choice([np.nan, np.inf, -0.0, 1.5], np.count_nonzero(there))
        columns[name] = Sparse(there, numbers)
        laid = cast_columns.as_array(columns[name])
        assert laid[there].tobytes() == numbers.tobytes()
        assert np.isnan(laid[~there]).all()
    table = pq.read_table(written(tmp_path, columns, times=3))
    assert table.num_rows == 3 * rows
    for name, column in columns.items():
        read = table[name].combine_chunks()
        if name in gaps:
            assert (~np.asarray(read.is_null())).tolist() == gaps[name].tolist() * 3
            assert read.drop_null().to_numpy().tobytes() == column.numbers.tobytes() * 3
        else:
            assert np.asarray(read).tobytes() == cast_columns.as_array(column).tobytes() * 3, name


@pytest.mark.parametrize("dimension", [2, 3])
def test_a_miss_has_no_point_in_parquet(tmp_path, dimension):
    """`save` writes the same: null, which databases skip; other formats have NaN."""
    scene = rb.Scene(rb.Boxes(np.zeros((1, dimension)), np.ones((1, dimension))))
    origins = np.random.default_rng(3).random((50, dimension)) * 3 - 1
    rays = rb.Rays(origins, np.eye(dimension)[0])
    hits = scene.nearest(rays)
    assert 0 < hits.hit.sum() < 50
    rb.save(tmp_path / "saved.parquet", hits)
    rb.stream.cast(scene, put(tmp_path / "rays.npy", rays), tmp_path / "cast.parquet")
    for name in ("saved", "cast"):
        table = pq.read_table(tmp_path / f"{name}.parquet")
        for axis, points in zip("xyz", hits.points.T, strict=False):
            assert (~np.asarray(table[axis].is_null())).tolist() == hits.hit.tolist()
            np.testing.assert_array_equal(np.asarray(table[axis]), points)
        assert np.asarray(table["t"]).tolist() == hits.t.tolist()
        assert table["t"].null_count == 0
    rb.save(tmp_path / "own.parquet", {"index": [-1, 2], "x": [0.5, np.nan]})  # written as it is
    own = pq.read_table(tmp_path / "own.parquet")
    assert (own["x"].null_count, own["index"].to_pylist(), own["x"][0].as_py()) == (0, [-1, 2], 0.5)


def test_row_groups_have_the_range_of_rays_and_pack_ascending_numbers(tmp_path):
    columns = {"ray": np.arange(7, 300_000), "index": np.tile([-1, 99_999], 149_997)[:299_993]}
    group = pq.read_metadata(written(tmp_path, columns)).row_group(0)
    ray, index = map(group.column, range(2))
    assert (ray.statistics.min, ray.statistics.max) == (7, 299_999)
    assert not index.is_stats_set
    assert ray.total_compressed_size < 300_000 / 20
    assert index.total_compressed_size < 300_000 * 2.5
    assert group.num_rows == 299_993
