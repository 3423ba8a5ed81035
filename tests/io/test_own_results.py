"""Files of results name their query, their rays and the share that hits: in ``raybox info`` and in errors."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import raybox as rb
from raybox.cli import main
from raybox.io.formats.own_results import results_in
from raybox.scene.file_queries import file_queries
from streaming import BOXES, ENDINGS, IDS, RAY_QUERIES, RAYS, SCENE, SPATIAL, ids_for, put, results_of

WORDS = {"nearest": "hit", "occluded": "hit", "count": "hit", "integrate": "not zero"}


def counts(query):
    """Return the rows, rays and hits of a query on all rays, from its results in memory."""
    if query == "all":
        found = SCENE.all(RAYS)
        rays = len(np.unique(found.ray))
        return len(found.ray), rays, rays
    if query == "nearest":
        return len(RAYS), len(RAYS), int(SCENE.nearest(RAYS).hit.sum())
    values = SCENE.integrate(RAYS, reproducible=True) if query == "integrate" else getattr(SCENE, query)(RAYS)
    return len(RAYS), len(RAYS), int(np.count_nonzero(values))


@pytest.mark.parametrize("query", RAY_QUERIES)
@pytest.mark.parametrize("ending", ENDINGS)
def test_casts_and_saves_are_recognised_in_every_format(tmp_path, ending, query):
    rays, ids = put(tmp_path / "rays.npz", RAYS), IDS if ids_for(query) else None
    rows, of_rays, hits = counts(query)
    assert hits > 0
    paths = [tmp_path / f"cast.{ending}"]
    rb.stream.cast(SCENE, rays, paths[0], query=query, ids=ids, chunk=40)
    if ending != "zarr":
        paths.append(tmp_path / f"saved.{ending}")
        rb.save(paths[1], results_of(SCENE, RAYS, query), ids=ids)
    for path in paths:
        found = results_in(path)
        assert found.query == query
        assert (found.rows, found.rays, found.hit_count) == (rows, of_rays, hits)
        words = f"{rows} rows of {of_rays} rays"
        if query in WORDS:
            words = f"{rows} rays, {100 * hits / rows:.1f} % {WORDS[query]}"
        assert found.text == f"results of {query}: {words}"
        for kind in (None, "scene", "rays"):
            with pytest.raises(rb.FileFormatError, match=f"holds results of {query}: .*, no scene or rays;"):
                rb.load(path, kind=kind)


@pytest.mark.parametrize("ending", ENDINGS)
def test_sums_of_boxes_and_of_channels(tmp_path, ending):
    rays, path = put(tmp_path / "rays.npz", RAYS), tmp_path / f"out.{ending}"
    rb.stream.cast(SCENE, rays, path, query="deposit")
    sums = SCENE.deposit(RAYS)
    share = f"{100 * np.count_nonzero(sums) / len(BOXES):.1f}"
    assert results_in(path).text == f"results of deposit: 40 boxes or cells, {share} % not zero"
    channels = np.random.default_rng(0).random((40, 2)) * [1, 0]
    path = tmp_path / f"channels.{ending}"
    rb.stream.cast(SCENE, rays, path, query="integrate", values=channels)
    assert results_in(path).text.startswith("results of integrate: 103 rays, ")


def test_segments_differ_from_all_where_the_format_says_it(tmp_path):
    scene = rb.Scene(rb.Grid.uniform([0, 0, 0], 1, (2, 2, 2)))
    rays = put(tmp_path / "rays.npz", rb.Rays([[-1, 0.5, 0.5], [9, 9, 9]], [1, 0, 0]))
    for ending, query in (("parquet", "segments"), ("zarr", "segments"), ("csv", "all")):
        path = tmp_path / f"out.{ending}"
        rb.stream.cast(scene, rays, path, query="segments")
        assert results_in(path).text == f"results of {query}: 2 rows of 1 rays"


def test_carried_columns_and_no_rows(tmp_path):
    table = "time,origin_x,origin_y,direction_x,direction_y\n" + "7,0,0,1,0\n" * 3
    (tmp_path / "rays.csv").write_text(table)
    scene = rb.Scene(rb.Boxes([[1.0, -1.0]], [[2.0, 1.0]]))
    rb.stream.cast(scene, tmp_path / "rays.csv", tmp_path / "out.csv", carry=["time"])
    assert results_in(tmp_path / "out.csv").text == "results of nearest: 3 rays, 100.0 % hit"
    (tmp_path / "rays.csv").write_text(table.partition("\n")[0] + "\n")
    rb.stream.cast(scene, tmp_path / "rays.csv", tmp_path / "none.parquet", query="count")
    assert results_in(tmp_path / "none.parquet").text == "results of count: 0 rays"


def test_other_files_are_no_results(tmp_path):
    rb.save(tmp_path / "boxes.csv", BOXES)
    rb.save(tmp_path / "rays.npy", RAYS)
    rb.save(tmp_path / "own.csv", {"ray": np.arange(3), "x": np.zeros(3)})
    rb.save(tmp_path / "own.npz", {"count": np.arange(3), "ray": np.zeros(3)})
    (tmp_path / "broken.csv").write_text('ray,count\n"')
    for name in ("boxes.csv", "rays.npy", "own.csv", "own.npz", "broken.csv", "none.csv", "a.txt"):
        assert results_in(tmp_path / name) is None


def test_info_shows_results(tmp_path):
    rays = put(tmp_path / "rays.npz", RAYS)
    rb.stream.cast(SCENE, rays, tmp_path / "out.parquet")
    share = f"{100 * SCENE.nearest(RAYS).hit.mean():.1f}"
    found = CliRunner().invoke(main, ["info", str(tmp_path / "out.parquet")])
    assert f"results of nearest: 103 rays, {share} % hit" in found.output
    found = CliRunner().invoke(main, ["info", "--json", str(tmp_path / "out.parquet")])
    facts = json.loads(found.output)
    assert (facts["query"], facts["rays"]) == ("nearest", 103)
    assert facts["columns"] == ["ray", "index", "t", "x", "y", "z"]


def test_every_query_of_files_is_here():
    assert {*RAY_QUERIES, *SPATIAL, "segments", "deposit"} == set(file_queries())
