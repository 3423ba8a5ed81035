"""rb.cluster.ask: Dask arrays and data frames of rays in, the same of results out."""

import pickle

import numpy as np
import pytest

import raybox as rb
from raybox.casting.result_columns import rows_of
from streaming import BOXES, IDS, RAY_QUERIES, RAYS, SCENE, ids_for, results_of
from test_cast_geometries import CASES

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

COLUMNS = ["origin_x", "origin_y", "origin_z", "direction_x", "direction_y", "direction_z", "t_min", "t_max"]
TABLE = np.c_[RAYS.origins, RAYS.directions, RAYS.t_min, RAYS.t_max]
CHUNKS = (40, 3, 60)


def wanted(tmp_path, query, ids=None, rays=RAYS, scene=SCENE):
    """Return the columns that `save` writes."""
    rb.save(tmp_path / "wanted.npy", results_of(scene, rays, query), ids=ids)
    return np.load(tmp_path / "wanted.npy")


def same(found, want):
    assert found.dtype == want.dtype
    for name in want.dtype.names:
        np.testing.assert_array_equal(found[name], want[name], err_msg=name)


def frame(index=None):
    table = pd.DataFrame(TABLE, columns=COLUMNS, index=index)
    table.insert(3, "name", [f"ray {k}" for k in range(103)])
    return dd.from_pandas(table, npartitions=3, sort=False)


@pytest.mark.parametrize("query", RAY_QUERIES)
def test_arrays(tmp_path, query):
    ids = ids_for(query)
    rays = da.from_array(TABLE, chunks=(CHUNKS, 3))
    lazy = rb.cluster.ask(SCENE, rays, query=query, ids=ids)
    assert lazy.numblocks == (3,)
    if rows_of(query) == "rays":
        assert lazy.chunks == (CHUNKS,)
    want = wanted(tmp_path, query, ids)
    assert lazy.dtype == want.dtype
    same(lazy.compute(scheduler="threads"), want)
    assert len(want) > 50


@pytest.mark.parametrize("ids", [None, [f"object {k}" for k in range(5)]])
def test_ids_are_those_of_objects(ids):
    (mesh,) = CASES["mesh with objects"]
    lazy = rb.cluster.ask(rb.Scene(mesh), da.from_array(TABLE, chunks=(CHUNKS, 3)), query="all", ids=ids)
    found, hits = lazy.compute(scheduler="threads"), rb.Scene(mesh).all(RAYS)
    objects = [int(mesh.objects[row]) for row in hits.index]
    assert found.dtype.names[:4] == ("ray", "index", "object", "id")
    assert found["object"].tolist() == objects
    assert found["id"].tolist() == [(mesh.ids if ids is None else ids)[k] for k in objects]
    assert len(objects) > 10


@pytest.mark.parametrize("query", RAY_QUERIES)
def test_data_frames(tmp_path, query):
    ids = ids_for(query)
    index = np.arange(103) * 10 + 7
    lazy = rb.cluster.ask(SCENE, frame(index), query=query, ids=ids)
    found, want = lazy.compute(scheduler="threads"), wanted(tmp_path, query, ids)
    assert lazy.npartitions == 3
    assert list(lazy.columns) == [name for name in want.dtype.names if name != "ray"]
    assert (lazy.dtypes == found.dtypes).all()
    np.testing.assert_array_equal(found.index, index[want["ray"]])
    for name in found.columns:
        np.testing.assert_array_equal(found[name].to_numpy(want[name].dtype), want[name], err_msg=name)


def test_workers_and_their_partitions(cluster, tmp_path):
    lazy = rb.cluster.ask(SCENE, da.from_array(TABLE, chunks=(CHUNKS, 8)), folder=tmp_path / "scene")
    assert len(pickle.dumps(lazy)) < 20_000 + TABLE.nbytes, "the scene is not in the graph"
    same(cluster.compute(lazy).result(), wanted(tmp_path, "nearest"))
    split = rb.SplitScene(BOXES, parts=8, folder=tmp_path / "parts", memory=20_000)
    lazy = rb.cluster.ask(split, frame(), query="all", folder=tmp_path / "ids", ids=IDS)
    found, want = cluster.compute(lazy).result(), wanted(tmp_path, "all", IDS)
    np.testing.assert_array_equal(found["index"], want["index"])
    np.testing.assert_array_equal(found["id"].to_numpy(str), want["id"])


def test_the_plane_and_nothing_at_all(tmp_path):
    boxes = rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]])
    rays = rb.Rays([[0, 0], [4, 0], [0, 9]], [1, 0])
    table = da.from_array(np.c_[rays.origins, rays.directions], chunks=(2, 4))
    for query in RAY_QUERIES:
        found = rb.cluster.ask(rb.Scene(boxes), table, query=query).compute()
        same(found, wanted(tmp_path, query, None, rays, rb.Scene(boxes)))
        empty = rb.cluster.ask(SCENE, da.zeros((0, 6), chunks=(1, 6)), query=query)
        assert len(empty.compute()) == 0
    names = ["origin_x", "origin_y", "direction_x", "direction_y"]
    plane = dd.from_pandas(pd.DataFrame(table.compute(), columns=names), npartitions=2)
    assert rb.cluster.ask(rb.Scene(boxes), plane)["index"].compute().tolist() == [0, 1, -1]


def test_bad_rays():
    table = TABLE.copy()
    table[50, 1] = np.nan
    rays = da.from_array(table, chunks=(40, 8))
    with pytest.raises(rb.InvalidInput, match="origins must be finite"):
        rb.cluster.ask(SCENE, rays).compute()
    found = rb.cluster.ask(SCENE, rays, invalid="miss").compute()
    assert found["index"][50] == -1
    assert found["ray"].tolist() == list(range(103))


@pytest.mark.parametrize(
    ("rays", "text"),
    [
        (RAYS, "rays must be a Dask DataFrame or a Dask Array; got Rays"),
        (da.zeros((5, 7)), r"an array of rays has shape .* got \(5, 7\)"),
        (da.zeros(6), r"an array of rays has shape .* got \(6,\)"),
        (da.zeros((5, 4)), "rays must have the scene's D = 3; got D = 2"),
        (da.zeros((5, 6))[da.zeros(5) > 0], r"call rays\.compute_chunk_sizes\(\) first"),
        (frame()[["origin_x", "origin_y", "origin_z", "direction_x"]], "direction_y, direction_z missing"),
    ],
)
def test_what_is_no_rays(rays, text):
    with pytest.raises(rb.InvalidInput, match=text):
        rb.cluster.ask(SCENE, rays)


def test_wrong_arguments(tmp_path):
    rays = da.from_array(TABLE, chunks=(40, 8))
    with pytest.raises(rb.InvalidInput, match="query must be one of nearest"):
        rb.cluster.ask(SCENE, rays, query="first")
    with pytest.raises(rb.InvalidInput, match="query must have results for each ray; got 'deposit'"):
        rb.cluster.ask(SCENE, rays, query="deposit")
    with pytest.raises(rb.InvalidInput, match="ids must name every object"):
        rb.cluster.ask(SCENE, rays, ids=["a"])
    with pytest.raises(rb.InvalidInput, match='invalid must be "raise" or "miss"'):
        rb.cluster.ask(SCENE, rays, invalid="drop")
    (tmp_path / "letter").write_text("dear")
    with pytest.raises(rb.FileFormatError, match="is not empty; give another folder"):
        rb.cluster.ask(SCENE, rays, folder=tmp_path)
