"""Casts of files of points and boxes equal the scene's methods, in every format, resumed or not."""

import gzip

import numpy as np
import pytest

import raybox as rb
from needs import package
from raybox.casting import cast_blocks, finish
from raybox.hits import file_columns
from streaming import ENDINGS, GROUPS, IDS, SPATIAL, WORLDS, content, endings_from, get, pq, stopping_at, zarr

RNG = np.random.default_rng(41)
SCENE = rb.Scene(rb.Boxes.from_centers(RNG.random((40, 3)), 0.3, ids=IDS, labels={"cost": np.arange(40) / 4}))
LIST = rb.Scene([SCENE.geometry, rb.Grid.uniform([0, 0, 0], 0.5, (2, 2, 2))])
POINTS = RNG.random((103, 3)) * 1.5
POINTS[::9] = SCENE.geometry.upper[POINTS[::9].argsort(axis=0)[:, 0]]  # corners touch
BOXES = rb.Boxes.from_centers(POINTS, RNG.random((103, 3)) / 4)
BAD = [3, 50, 51, 102]


def put(path, query, points=POINTS, bounds=(BOXES.lower, BOXES.upper)):
    """Write the points or boxes of a query; no rule is checked."""
    is_boxes = query == "overlapping"
    arrays = dict(zip(("lower", "upper"), bounds, strict=True)) if is_boxes else {"points": points}
    names = [f"{end}_{axis}" for end in ("min", "max") for axis in "xyz"] if is_boxes else [*"xyz"]
    table = np.concatenate([*arrays.values()], axis=1)
    if path.suffix == ".npz":
        np.savez(path, **arrays)
    elif path.suffix == ".zarr":
        group = zarr.open_group(path, mode="w")
        for name, array in arrays.items():
            group.create_array(name, data=array, chunks=(7, 3))
    elif path.suffix == ".npy":
        np.save(path, table)
    elif path.suffix == ".csv":
        np.savetxt(path, table, fmt="%.17g", delimiter=",", header=",".join(names), comments="")
    else:
        columns = dict(zip(names, table.T, strict=True))
        pq.write_table(package("pyarrow").table(columns), path, row_group_size=9)
    return path


def wanted(scene, query, **how):
    return getattr(scene, query)(BOXES if query == "overlapping" else POINTS, **how)


def check(found, results, numbers=None):
    """Compare an output with results of the scene's methods, of points or boxes of these numbers."""
    columns = results.to_dict()
    assert set(found) == set(columns)
    for name, column in columns.items():
        own = column if name != "row" or numbers is None else np.asarray(numbers)[column]
        expected = ["" if value is None else value for value in own.tolist()] if name == "id" else own
        np.testing.assert_array_equal(found[name].astype(np.asarray(expected).dtype), expected, err_msg=name)


@pytest.mark.parametrize("source", ENDINGS)
@pytest.mark.parametrize("query", SPATIAL)
def test_every_format(tmp_path, query, source):
    file = put(tmp_path / f"given.{source}", query)
    for ending, (scene, how) in zip(
        endings_from(source),
        [(SCENE, {}), (LIST, {}), (SCENE, {"where": "cost > 3"}), (WORLDS, {"groups": GROUPS})],
        strict=False,
    ):
        own = {"k": 3, "max_distance": 0.2} if query == "closest" else {}
        done = rb.cast(scene, file, out := tmp_path / f"out.{ending}", query=query, chunk=20, **how, **own)
        results = wanted(scene, query, **how, **own)
        check(get(out), results)
        rows = results.index.size
        finders = (results.index >= 0).any(axis=1).sum() if query == "closest" else rows
        assert (done.rays, done.rows, done.hit_count) == (103, rows, finders)
        assert 10 < finders < 103 * 40


@pytest.mark.parametrize("query", SPATIAL)
def test_the_same_call_resumes(tmp_path, monkeypatch, query):
    for source, ending in (("csv", "parquet"), ("parquet", "csv"), ("npz", "zarr"), ("npy", "npy")):
        file = put(tmp_path / f"given.{source}", query)
        whole, out = (tmp_path / f"{name}.{ending}" for name in ("whole", "out"))
        rb.cast(SCENE, file, whole, query=query, chunk=20)
        with stopping_at(monkeypatch, 60, KeyboardInterrupt()) as stopped:
            rb.cast(SCENE, file, out, query=query, chunk=20)
        noun = "boxes" if query == "overlapping" else "points"
        assert stopped.value.__notes__[0].startswith(f"60 {noun} are done and stored in out.")
        assert rb.cast(SCENE, file, out, query=query, chunk=20).resumed == 60
        assert list(content(out).values()) == list(content(whole).values())
    if query == "closest":
        with stopping_at(monkeypatch, 60, KeyboardInterrupt()):
            rb.cast(SCENE, file, tmp_path / "k.npy", query=query, chunk=20, k=2)
        with pytest.raises(rb.FileFormatError, match="k 2 there, 3 now"):
            rb.cast(SCENE, file, tmp_path / "k.npy", query=query, chunk=20, k=3)


@pytest.mark.parametrize("query", SPATIAL)
def test_blocks_of_other_processes(tmp_path, query):
    file, out = put(tmp_path / "given.npy", query), tmp_path / "out.npy"
    own = {"k": 2, "max_distance": 0.2} if query == "closest" else {}
    rb.cast(SCENE, file, out, query=query, chunk=20, blocks=[4, 1], **own)
    assert cast_blocks(f"{out}.raybox", [0, 2, 3, 5]).rays == 63
    assert finish(f"{out}.raybox").rays == 103
    check(get(out), wanted(SCENE, query, **own))


@pytest.mark.parametrize("source", ["csv", "npz", "parquet"])
@pytest.mark.parametrize("query", SPATIAL)
def test_bad_rows_find_nothing(tmp_path, query, source):
    points, lower, upper = POINTS.copy(), BOXES.lower.copy(), BOXES.upper.copy()
    points[BAD, 1] = np.nan, np.inf, -np.inf, np.nan
    lower[BAD[:2], 0], upper[BAD[2:], 2] = np.nan, -99.0
    file = put(tmp_path / f"given.{source}", query, points, (lower, upper))
    with pytest.raises(rb.FileFormatError, match=r"given.*; correct .*, or read with invalid='miss'"):
        rb.cast(SCENE, file, tmp_path / "out.npy", query=query)
    good = np.setdiff1d(np.arange(103), BAD)
    rb.cast(SCENE, file, out := tmp_path / "out.npy", query=query, chunk=20, invalid="miss")
    found, results = get(out), getattr(SCENE, query)(BOXES[good] if query == "overlapping" else POINTS[good])
    if query == "closest":
        assert found["row"].tolist() == list(range(103))
        assert {*found["index"][BAD]} == {-1}
        assert {*found["distance"][BAD]} == {np.inf}
        found = {name: column[good] for name, column in found.items()}
    check(found, results, good)


@pytest.mark.parametrize("query", ["containing", "overlapping"])
def test_rows_in_memory_are_bounded(tmp_path, monkeypatch, query):
    monkeypatch.setattr(file_columns, "CHUNK_HITS", 5)
    rb.cast(SCENE, put(tmp_path / "given.npy", query), out := tmp_path / "out.npy", query=query)
    check(get(out), wanted(SCENE, query))


@pytest.mark.parametrize("ending", ["ply", "pcd", "las", "npz", "csv.gz"])
def test_points_of_files_that_are_loaded_whole(tmp_path, ending):
    package({"las": "laspy"}.get(ending, "numpy"))
    file, hits = tmp_path / f"points.{ending}", rb.Scene(BOXES).nearest(rb.Rays(POINTS, [1, 0, 0]))
    if ending == "npz":
        np.savez_compressed(file, points=POINTS[hits.hit])
        at = POINTS[hits.hit]
    elif ending == "csv.gz":
        file.write_bytes(gzip.compress(put(tmp_path / "points.csv", "closest").read_bytes()))
        at = POINTS
    else:
        rb.save(file, hits)
        at = hits.points[hits.hit]
    rb.cast(SCENE, file, out := tmp_path / "out.npy", query="closest", chunk=20)
    found, results = get(out), SCENE.closest(at)
    assert len(at) > 20
    if ending == "las":  # stores steps of its own
        np.testing.assert_allclose(found["distance"], results.distance[:, 0], atol=1e-6)
    else:
        check(found, results)


def test_boxes_of_objects_and_of_centers(tmp_path):
    corners = (SCENE.geometry.lower[:, None] + np.eye(3) / 5).reshape(-1, 3)
    mesh = rb.Mesh(corners, np.arange(120).reshape(-1, 3), objects=np.arange(40) // 2)
    rb.save(tmp_path / "mesh.npz", mesh)
    rb.save(tmp_path / "saved.npz", rb.Instances.oriented_boxes(POINTS, 0.1, yaw=np.ones(103)))
    head = "center_x,center_y,center_z,size_x,size_y,size_z"
    table = np.concatenate([POINTS, np.full((103, 3), 0.25)], axis=1)
    np.savetxt(tmp_path / "centers.csv", table, fmt="%.17g", delimiter=",", header=head, comments="")
    for name in ("mesh.npz", "saved.npz", "centers.csv"):
        rb.cast(SCENE, tmp_path / name, out := tmp_path / "out.npy", query="overlapping", chunk=20)
        results = SCENE.overlapping(rb.load(tmp_path / name, boxes=True))
        check(get(out), results)
        assert len(results.index) > 0


@pytest.mark.parametrize("query", SPATIAL)
def test_labels_and_carried_columns(tmp_path, query):
    file, out = put(tmp_path / "given.csv", query), tmp_path / "out.csv"
    rows = file.read_text().splitlines()
    file.write_text("\n".join([rows[0] + ",row,time", *(f"{r},{k}x,{k}" for k, r in enumerate(rows[1:]))]))
    rb.cast(SCENE, file, out, query=query, chunk=20, labels=["cost"], carry=["all"])
    found, results = get(out), wanted(SCENE, query)
    assert list(found)[-3:] == ["cost", "row_row", "time"]
    np.testing.assert_array_equal(found["time"], found["row"])
    np.testing.assert_array_equal(found["cost"].astype(float), results.labels("cost").reshape(-1))


def test_overlapping_instances_finds_copies(tmp_path):
    copies = rb.Instances.oriented_boxes(POINTS, 0.1, yaw=np.ones(103))
    scene = rb.Scene(copies)
    rb.cast(scene, put(tmp_path / "given.npy", "overlapping"), out := tmp_path / "o.npy", query="overlapping")
    check(get(out), scene.overlapping(BOXES))


def test_what_is_refused(tmp_path):
    rays, points, boxes = (tmp_path / name for name in ("rays.npz", "points.csv", "boxes.csv"))
    rb.save(rays, rb.Rays(POINTS, [1, 0, 0]))
    mesh = rb.Mesh(np.eye(3), [[0, 1, 2]])
    rb.save(tmp_path / "mesh.npz", mesh)
    put(points, "closest")
    put(boxes, "overlapping")
    for scene, file, how, text in (
        (SCENE, rays, {"query": "closest"}, "rays.npz: holds rays, not points; give a file of points here"),
        (SCENE, rays, {"query": "overlapping"}, "rays.npz: holds rays, not boxes; give a file of boxes here"),
        (SCENE, boxes, {"query": "containing"}, "boxes.csv: holds boxes, not points"),
        (SCENE, points, {"query": "overlapping"}, "points.csv: holds points, not boxes"),
        (SCENE, tmp_path / "mesh.npz", {"query": "closest"}, "holds a scene, not points"),
        (SCENE, points, {"query": "closest", "origin": (0, 0, 0)}, "origin turns points into rays"),
        (
            SCENE,
            points,
            {"query": "containing", "k": 2},
            "k is for query 'closest'; got it with",
        ),
        (SCENE, points, {"query": "closest", "k": 1.5}, "k must be a whole number of boxes"),
        (SCENE, points, {"query": "closest", "max_distance": [1, 2]}, "max_distance of a cast must be one"),
        (SCENE, points, {"query": "closest", "max_distance": -1}, "max_distance must be at least 0"),
        (SCENE, [points, boxes], {"query": "closest"}, "boxes.csv: holds boxes, not points"),
        (
            SCENE,
            points,
            {"query": "closest", "carry": ["z"]},
            "'z' to carry; it has none but those",
        ),
        (WORLDS, points, {"query": "closest"}, "groups"),
        (rb.Scene(mesh), points, {"query": "containing"}, "Mesh.contains"),
    ):
        with pytest.raises(rb.RayboxError, match=text):
            rb.cast(scene, file, tmp_path / "out.csv", **how)
    assert not [*tmp_path.glob("out*")]
