"""The commands on the cells of a grid."""

import json

import numpy as np
import pytest

import raybox as rb
from commands import raybox
from file_samples import samples
from grids import random_rays

RNG = np.random.default_rng(12)
CELLS = RNG.random((4, 3, 5)) < 0.5
RAYS = random_rays(RNG, rb.Grid.uniform([1, 2, -1], 0.5, CELLS.shape), 40)


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "cells.npz"
    np.savez(path, occupancy=CELLS, origin=[1, 2, -1], pitch=0.5)
    return path


def run(*call, code=0):
    done = raybox(*call, code=code)
    return done.output if code else done.stdout


@pytest.mark.parametrize("query", ["nearest", "all", "segments", "deposit"])
def test_cast(tmp_path, scene, query):
    rays, out = tmp_path / "rays.npz", tmp_path / "out.npz"
    rb.save(rays, RAYS)
    run("cast", "--grid", scene, rays, "-o", out, "--query", query)
    whole, found = rb.Scene(rb.load_grid(scene)), np.load(out)
    if query == "deposit":
        np.testing.assert_array_equal(found["deposit"], whole.deposit(RAYS, reproducible=True))
        return
    want = getattr(whole, query)(RAYS)
    np.testing.assert_array_equal(found["index"], want.index)
    np.testing.assert_array_equal(found["t"], want.t)
    assert (found["index"] >= 0).sum() > 20


def test_pick_gives_the_places_of_cells(scene):
    grid, total = rb.load_grid(scene), 0
    whole = rb.Scene(grid)
    for k in range(12):
        ray = RAYS[k]
        ends = [",".join(map(repr, row.tolist())) for row in (ray.origins, ray.directions)]
        call = ["pick", "--grid", scene, "--json", f"--origin={ends[0]}", f"--direction={ends[1]}"]
        found = json.loads(run(*call, f"--t-min={float(ray.t_min)}", f"--t-max={float(ray.t_max)}"))["hits"]
        hits = whole.all(ray)
        assert [row["index"] for row in found] == hits.index.tolist()
        for row in found:
            assert np.ravel_multi_index(row["cell"], grid.shape) == row["index"]
            assert row["face"] in ("inside", *(sign + axis for sign in "-+" for axis in "xyz"))
        total += len(found)
    assert total > 5


def test_a_model(tmp_path):
    path = tmp_path / "model.vox"
    path.write_bytes(samples()["scene.vox"][0])
    grid = rb.load_grid(path)
    facts = json.loads(run("info", "--grid", path, "--json"))
    assert facts["shape"] == list(grid.shape)
    assert facts["occupied"] == np.count_nonzero(grid.occupied) > 0
    assert (facts["holds"], facts["count"], facts["smallest_size"]) == ("a grid", len(grid), [1.0] * 3)
    assert [facts["lower_bound"], facts["upper_bound"]] == grid.bounds.tolist()


def test_refusals(tmp_path, scene):
    for command in (["pick", "--origin=0,0,0", "--direction=1,0,0"], ["info"]):
        assert "Pass --boxes or --grid, not both" in run(*command, "--boxes", "--grid", scene, code=2)
    table = tmp_path / "boxes.csv"
    rb.save(table, rb.Boxes([[0, 0, 0]], [[1, 1, 1]]))
    assert "supported: .vox .npy .npz" in run("info", "--grid", table, code=2)
