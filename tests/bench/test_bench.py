"""raybox.bench: alternation, medians, compared results, absent peers, tables; no test depends on times."""

import gc
import inspect
import json
import sys
import types
from fnmatch import fnmatch
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import exact
import raybox as rb
from commands import raybox
from raybox.bench import checks, data, machine, peers, raybox_scene, report, runner, timing, worker
from raybox.bench.peers import Engine

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # behind the helpers: they have a compare.py

import aims
import array_input
import batch_sizes
import compare_cases
import compare_data
import derived_fields
import finer
import for_you
import grid_sums
import meshes
import own_aims
import own_tables
import page
import parts
import peak_rates
import raybox_only
import real_data
import second_rays
import small_batches
from raybox_peers import common, raybox_float32

BUNDLED_HOUSE = Path(rb.__file__).parent / "data" / "duplex.npz"  # needs no ifcopenshell
QUICK = {"size": 300, "ray_count": 400, "rounds": 2, "patience": 9.0}
TINY = runner.Spec(**QUICK, names=("raybox", "numpy"), queries=("nearest", "count"))


@pytest.fixture(scope="module")
def scene():
    """Return overlapping boxes, rays that partly start inside, and a checker."""
    boxes = data.boxes("uniform", 400)
    return boxes, data.rays("inside", 300, boxes), checks.Checker(boxes, scene_of(boxes))


def scene_of(boxes):
    return rb.Scene(rb.Boxes(boxes.lower, boxes.upper))


# Alternation and medians


@pytest.mark.core
def test_every_call_runs_once_a_round_and_the_order_alternates():
    order, now = [], [0.0]
    durations = {"a": 1.0, "b": 10.0, "c": 100.0}

    def call(name):
        assert not gc.isenabled()
        order.append(name)
        now[0] += durations[name] * len(order)

    calls = {name: lambda name=name: call(name) for name in durations}
    seconds = timing.alternate(calls, 3, clock=lambda: now[0])
    assert "".join(order) == "abccbaabc"
    assert seconds == {"a": [1.0, 6.0, 7.0], "b": [20.0, 50.0, 80.0], "c": [300.0, 400.0, 900.0]}
    assert gc.isenabled()


@pytest.mark.parametrize(("least", "rounds"), [(0.0, 2), (2.0, 2), (2.5, 3), (7.0, 7), (1e9, 10)])
def test_short_rounds_are_repeated(least, rounds):
    now = [0.0]

    def call():
        now[0] += 1.0

    seconds = timing.alternate({"a": call}, 2, clock=lambda: now[0], least=least)
    assert seconds == {"a": [1.0] * rounds}


def test_a_ratio_is_of_the_same_round():
    assert timing.ratio([1.0, 10.0, 2.0], [5.0, 20.0, 2.0]) == (2.0, 1.0, 5.0)


def test_a_slow_contestant_gets_fewer_rays_but_at_least_the_fewest(monkeypatch):
    rays = data.rays("inside", 5000, data.BoxSet(*np.zeros((2, 1, 3))))
    assert len(rays.spread(9999).origins) == 5000
    assert rays.spread(3).origins.tolist() == rays.origins[[0, 1666, 3333]].tolist()
    engine = Engine(lambda rays: len(rays.origins), {}, {})
    for pace, want in ((1e-6, 5000), (1e-3, 400), (0.1, 64)):
        monkeypatch.setattr(timing, "once", lambda call, pace=pace: (None, call() * pace))
        count = runner.ration(engine, lambda count: count, rays, runner.Spec())
        assert count == pytest.approx(want, rel=0.01)


def test_compilation_does_not_reduce_the_ray_count(monkeypatch):
    """A batch may compile something: its first call takes seconds, the next does not."""
    rays, compiled = data.rays("inside", 5000, data.BoxSet(*np.zeros((2, 1, 3)))), []

    def once(call):
        count = call()
        slow = count > 1000 and not compiled
        compiled.extend([count] * slow)
        return None, 9.0 if slow else 1e-6 * count

    monkeypatch.setattr(timing, "once", once)
    engine = Engine(lambda rays: len(rays.origins), {}, {})
    assert runner.ration(engine, lambda count: count, rays, runner.Spec()) == 5000
    assert compiled == [4096]


# Data


@pytest.mark.parametrize("kind", data.BOX_KINDS)
def test_boxes_have_the_given_size_and_fit_float32(kind):
    boxes = data.boxes(kind, 1500)
    assert boxes.lower.shape == boxes.upper.shape == (1500, 3)
    assert (boxes.lower < boxes.upper).all()
    for corner in (boxes.lower, boxes.upper):
        np.testing.assert_array_equal(corner, corner.astype(np.float32))


@pytest.mark.parametrize("kind", data.SCENE_KINDS)
def test_rays_are_unit_vectors_that_fit_float32(kind):
    rays = data.rays(kind, 900, data.boxes("uniform", 10))
    assert rays.origins.shape == rays.directions.shape == (900, 3)
    np.testing.assert_allclose(np.linalg.norm(rays.directions, axis=1), 1.0, atol=1e-6)
    for array in rays:
        np.testing.assert_array_equal(array, array.astype(np.float32))
    inside = ((rays.origins >= 0) & (rays.origins <= 1)).all(axis=1)
    assert inside.all() if kind == "inside" else inside.mean() < 0.3


def test_oblique_rays_are_those_of_a_pinhole_camera():
    """The numbers are those of the definition: eye, target, up, angle."""
    lower = np.array([[0.0, 0.0, 0.0], [5.0, 1.0, 7.0]])
    boxes = data.BoxSet(lower, lower + 1, np.array([[0.0, 0.0, 0.0], [6.0, 2.0, 8.0]]))
    eye = np.array([3.0 + 0.3 * 8, 1.0 - 1.6 * 8, 4.0 + 0.9 * 8])
    want = rb.Rays.pinhole(eye, [3, 1, 4], up=[0, 0, 1], fov=40, width=20, height=20)
    rays = data.rays("oblique", 400, boxes)
    np.testing.assert_allclose(rays.origins, np.array(want.origins).reshape(-1, 3), rtol=1e-6)
    directions = np.array(want.directions).reshape(-1, 3)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    np.testing.assert_allclose(rays.directions, directions, atol=1e-6)
    compared = compare_data.rays("oblique", 400, boxes.around)
    np.testing.assert_array_equal(compared["origins"].reshape(-1, 3), rays.origins)
    np.testing.assert_allclose(compared["directions"].reshape(-1, 3), rays.directions, atol=1e-7)


@pytest.mark.parametrize("quick", [False, True])
def test_trees_are_compared_on_the_rays_that_people_cast(quick):
    scenes = (*compare_cases.SYNTHETIC, *compare_cases.FILES, "street")
    names = [case.name for case in compare_cases.plan(compare_cases.Extent(scenes, 10**6, quick))]
    assert len(names) == len(set(names))
    for scene in compare_cases.FILES:
        for query, kind in product(("nearest", "occluded", "count"), ("oblique", "inside", "camera")):
            assert any(name.startswith(f"{scene}/{query}/{kind}/") for name in names)
    assert {f"uniform-1e5/arrays/camera/{count}" for count in (1, 10, 100, 1000, 10**6)} <= set(names)


def test_a_finer_mesh_is_the_same_surface():
    mesh = rb.Mesh([[0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 4]], [[0, 1, 2], [0, 3, 1]])
    fine = finer.subdivided(mesh)
    assert len(fine) == 8

    def areas(mesh):
        a, b, c = mesh.vertices[mesh.faces].transpose(1, 0, 2)
        return np.cross(b - a, c - a) / 2

    np.testing.assert_array_equal(areas(fine).reshape(2, 4, 3).sum(axis=1), areas(mesh))
    np.testing.assert_array_equal(np.repeat(areas(mesh), 4, axis=0), 4 * areas(fine))
    rays = rb.Rays(np.random.default_rng(0).random((50, 3)) * 3 - [0, 0, 5], [0.1, 0.05, 1.0])
    np.testing.assert_array_equal(rb.Scene(fine).occluded(rays), rb.Scene(mesh).occluded(rays))


def test_mixed_batches_contain_the_halves_they_are_compared_with():
    boxes = data.boxes("uniform", 10)
    halves = [data.rays(kind, 4096, boxes) for kind in ("camera", "inside")]
    joined, lines = (data.rays(kind, 8192, boxes) for kind in ("joined", "lines"))
    np.testing.assert_array_equal(joined.directions, np.concatenate([half.directions for half in halves]))
    np.testing.assert_array_equal(lines.origins[1024:2048], halves[1].origins[:1024])
    assert sorted(map(tuple, joined.directions)) == sorted(map(tuple, lines.directions))


def test_a_file_is_moved_to_the_origin_and_rays_with_it(tmp_path):
    corner = np.array([84616.5, 447423.0, -0.5])
    rb.save(tmp_path / "b.npz", rb.Boxes([corner, corner + 2], [corner + 1, corner + 3]))
    rb.save(tmp_path / "r.npz", rb.Rays(corner - [1, 0, 0], [[5, 1, 0], [5, 0, 1]]))
    boxes = data.boxes(str(tmp_path / "b.npz"), 0)
    np.testing.assert_array_equal(boxes.lower, [[0, 0, 0], [2, 2, 2]])
    np.testing.assert_array_equal(boxes.around, [[0, 0, 0], [3, 3, 3]])
    rays = data.rays(str(tmp_path / "r.npz"), 9, boxes)
    np.testing.assert_array_equal(rays.origins, [[-1, 0, 0]] * 2)
    np.testing.assert_allclose(rays.directions * 26**0.5, [[5, 1, 0], [5, 0, 1]], atol=1e-6)


# Agreement of results


def test_exact_hits_are_the_oracles(scene):
    boxes, rays, _ = scene
    ranges = np.zeros(300), np.full(300, np.inf)
    found = list(exact.along(*rays, *ranges, boxes.lower, boxes.upper))
    for origin, direction, want in zip(*rays, found, strict=True):
        hits = checks.exact_hits(boxes, origin, direction)
        assert [(m.box, m.t) for m in hits] == [(f.index, f.plain[1]) for f in want]
        assert [m.crossings for m in hits] == [1 + (f.plain[2] >= 0) for f in want]
        assert [m.surface for m in hits] == [f.plain[2] if f.plain[2] >= 0 else f.plain[3] for f in want]
    inside = [f for row in found for f in row if f.plain[2] < 0]
    assert len(inside) > 20
    assert sum(map(len, found)) > 5 * len(inside)


def results_of(boxes, rays):
    engine = raybox_scene.engine(scene_of(boxes), 1)
    return {q: engine.read[q](run(engine.prepare(rays))) for q, run in engine.run.items()}


def planted(query, results, miss, hit):
    """Return results that are wrong for a ray that misses, and for one that hits."""
    if query == "nearest":
        index, t = (part.copy() for part in results)
        index[miss], t[miss] = 7, 0.5
        index[hit], t[hit] = (index[hit] + 1) % 400, t[hit] + 0.01
        return index, t
    if query == "all":
        ray, index = results
        keep = ~((ray == hit) & (index == index[ray == hit][0]))
        return np.append(ray[keep], miss), np.append(index[keep], 399)
    wrong = results.copy()
    wrong[[miss, hit]] = ~wrong[[miss, hit]] if wrong.dtype == bool else wrong[[miss, hit]] + 1
    return wrong


@pytest.mark.parametrize("query", ["nearest", "occluded", "count", "all"])
def test_right_and_planted_wrong_results_are_verified(scene, query):
    boxes, rays, checker = scene
    results = results_of(boxes, rays)
    same = checker.compare(query, "solid", rays, results[query], prove=True)
    assert (same.compared, same.near, same.differ) == (300, 0, 0)
    assert (same.settled, same.raybox_right, same.peer_right) == (16, 16, 16)
    assert 100 < same.hits < 300
    miss, hit = (int(np.flatnonzero(results["occluded"] == hits)[9]) for hits in (False, True))
    wrong = checker.compare(query, "solid", rays, planted(query, results[query], miss, hit))
    assert (wrong.differ, wrong.settled, wrong.raybox_right, wrong.peer_right) == (2, 2, 2, 0)
    assert "2 differ: of 2 settled 2 raybox's, 0 its" in report.agreement(wrong._asdict())
    if query == "nearest":  # another box at the same t is a near tie
        index, t = results["nearest"]
        other = np.where(index == 399, 0, index + 1)
        found = checker.compare(query, "solid", rays, (np.where(index >= 0, other, -1), t * (1 + 1e-7)))
        assert (found.near, found.differ) == (found.hits, 0)


@pytest.mark.parametrize("query", ["nearest", "occluded", "count", "all"])
def test_wrong_results_of_raybox_are_found(scene, query):
    boxes, rays, _ = scene
    gone = boxes._replace(lower=boxes.lower + 9.0, upper=boxes.upper + 9.0)
    checker = checks.Checker(boxes, scene_of(gone))
    found = checker.compare(query, "solid", rays, results_of(boxes, rays)[query])
    assert found.differ > 100
    assert (found.settled, found.raybox_right, found.peer_right) == (24, 0, 24)
    own = checker.compare(query, "solid", rays, results_of(gone, rays)[query], prove=True)
    assert own.differ == 0
    assert own.peer_right < own.settled
    assert report.agreement(own._asdict()).startswith("WRONG")


def test_a_surface_is_hit_where_the_ray_leaves_the_box(scene):
    """By definition: of each box the least t >= 0 at which the ray is on its surface."""
    boxes, rays, checker = scene
    with np.errstate(divide="ignore"):
        one, two = (
            (c - rays.origins[:, None]) / rays.directions[:, None] for c in (boxes.lower, boxes.upper)
        )
    near, far = np.minimum(one, two).max(axis=-1), np.maximum(one, two).min(axis=-1)
    hit = (near <= far) & (far >= 0)
    assert (hit & (near < 0)).sum() > 20
    t = np.where(hit, np.where(near >= 0, near, far), np.inf)
    index = np.where(hit.any(axis=1), t.argmin(axis=1), -1)
    assert checker.compare("nearest", "surface", rays, (index, t.min(axis=1))).differ == 0
    crossings = (hit * (1 + (near >= 0))).sum(axis=1)
    assert checker.compare("count", "surface", rays, crossings).differ == 0
    assert checker.compare("count", "solid", rays, crossings).differ > 100


@pytest.mark.long
@pytest.mark.jit
@pytest.mark.parametrize("count", [100, 3000])
def test_the_float32_peer_returns_the_nearest_box(count):
    """Boxes in a row, well apart, few rays and many; very short directions are not packed."""
    lower = np.array([[4.0, 0.0, 0.0], [2.0, 0.0, 0.0], [6.0, 0.0, 0.0]])
    run = raybox_float32.build(rb.Boxes(lower, lower + 1), 2).run["nearest"]
    origins = np.full((count, 3), 0.5) + np.outer(np.arange(count) % 4, [2.0, 0.0, 0.0])
    along, aside = np.array([[1.0, 0.01, 0.02], [0.01, 1.0, 0.02]])
    for length in (1.0, 1e-30):
        found = run(rb.Rays(origins, along * length))
        want = np.tile([1, 1, 0, 2], count // 4)
        np.testing.assert_array_equal(found.index, want)
        reach = np.maximum(lower[want, 0] - origins[:, 0], 0.0)
        np.testing.assert_allclose(found.t * length, reach, rtol=1e-5, atol=1e-6)
    assert (run(rb.Rays(origins, aside)).index >= 0).sum() == count // 4 * 3
    assert (run(rb.Rays(np.add(origins, [0.0, 9.0, 0.0]), along)).index == -1).all()


# Installed and missing peers


def test_triangles_are_the_boxes():
    boxes = data.boxes("uniform", 5)
    a, b, c = common.corners(boxes)[common.faces(boxes, np.int64)].transpose(1, 0, 2)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1).reshape(5, 12).sum(axis=1) / 2
    x, y, z = (boxes.upper - boxes.lower).T
    np.testing.assert_allclose(area, 2 * (x * y + y * z + z * x), rtol=1e-4)
    assert common.box_of(np.array([-1, 0, 11, 12])).tolist() == [-1, 0, 0, 1]


def stand_in(name, build, monkeypatch, **facts):
    """Add a peer to the table for a test."""
    adapter = types.SimpleNamespace(form=lambda boxes: boxes, build=build)
    monkeypatch.setitem(sys.modules, name, adapter)
    monkeypatch.setitem(peers.table(), name, peers.Peer(name, "numpy", name, "a stand-in", **facts))


def test_a_peer_gets_at_most_its_max_rays(monkeypatch):
    def build(boxes, _threads):
        return raybox_scene.build(raybox_scene.form(boxes), 1)

    stand_in("hungry", build, monkeypatch, max_rays=70)
    spec = TINY._replace(
        names=("raybox", "hungry"), rays=("inside",), queries=("nearest",), rounds=1, clock="cpu"
    )
    times = runner.measure(spec)["times"]
    assert [(facts["name"], facts["ray_count"]) for facts in times] == [("raybox", 400), ("hungry", 70)]


def test_peers_that_are_missing_fail_or_are_wrong_are_listed(monkeypatch):
    def lying(boxes, _threads):
        engine = raybox_scene.build(raybox_scene.form(boxes), 1)
        return engine._replace(read=engine.read | {"count": lambda number: np.asarray(number) + 1})

    def broken(_boxes, _threads):
        raise ValueError("no such boxes")

    def mute(boxes, _threads):
        engine = raybox_scene.build(raybox_scene.form(boxes), 1)
        return engine._replace(run=engine.run | {"nearest": lambda rays: {}["no"]})

    for name, build in (("liar", lying), ("broken", broken), ("mute", mute)):
        stand_in(name, build, monkeypatch)
    stand_in("small", lying, monkeypatch, max_boxes=10)
    ghost = peers.Peer("ghost", "no-such-distribution", "ghost", "")
    monkeypatch.setitem(peers.table(), "ghost", ghost)
    monkeypatch.setitem(peers.table(), "torn", ghost._replace(name="torn", distribution="numpy"))
    names = ("raybox", "ghost", "torn", "liar", "broken", "mute", "small")
    result = runner.measure(TINY._replace(names=names, rays=("inside",), rounds=1))
    absent = "\n".join(report.absent(result))
    for words in (
        "ghost: not installed",
        "torn: not installed (No module named",
        "broken: failed to build: ValueError: no such boxes",
        "mute, nearest, inside rays: failed: KeyError",
        "small: not given more than 10 boxes",
    ):
        assert words in absent
    rows = report.rows(result)
    assert {(row.name, row.query) for row in rows} == {
        *(("raybox", q) for q in TINY.queries),
        *(("liar", q) for q in TINY.queries),
        ("mute", "count"),
    }
    (lie,) = report.differing(rows)
    assert lie.startswith(
        "liar, 300 uniform boxes, inside rays, count: of 400 rays 400 differ: of 24 settled 24"
    )
    head, lines = report.pivot(rows)
    assert head[5:] == ["raybox M rays/s", "liar /", "mute /"]
    assert lines[0][-1] == "-"
    assert lines[1][-2].endswith("!")


def test_adapters_of_installed_peers_agree(scene):
    boxes, rays, checker = scene
    for peer in peers.table().values():
        if peer.name.startswith(("raybox", "warp", "open3d")) or peers.version(peer.distribution) is None:
            continue
        if peer.name.startswith("trimesh") and not all(map(find_spec, ("trimesh", "rtree", "embreex"))):
            continue
        adapter = peers.load(peer)
        engine = getattr(adapter, peer.build)(adapter.form(boxes), 1)
        for query, run in engine.run.items():
            read = engine.read[query](run(engine.prepare(rays)))
            assert checker.compare(query, peer.meaning, rays, read).differ <= 1, (peer.name, query)


# The command, and worker processes


@pytest.mark.long
def test_the_command_measures_and_lists_missing_peers(tmp_path):
    out = tmp_path / "raw.json"
    options = ["--size", "300", "--peer", "numpy", "--peer", "mujoco", "--query", "count", "--rays", "camera"]
    done = raybox("bench", *options, "--rounds", "2", "-o", out)
    head, line = done.stdout.splitlines()[:2]
    assert head.split()[-2:] == ["numpy", "/"] or "mujoco /" in head
    assert line.split()[:5] == ["300", "uniform", "1", "camera", "count"]
    missing = ["not measured: mujoco: not installed"] if find_spec("mujoco") is None else []
    for words in ("cores", "numpy 2", "noisy", machine.cpu_model(), *missing):
        assert words in done.stdout
    (result,) = json.loads(out.read_text())
    assert [len(record["seconds"]) for record in result["times"]] == [2, 2]
    assert result["times"][0]["agreement"]["raybox_right"] == 16


def test_the_command_names_the_folder_of_adapters_where_it_is_missing(monkeypatch):
    monkeypatch.setattr(peers, "table", lambda: {peer.name: peer for peer in peers._OWN})
    error = " ".join(raybox("bench", "--peer", "numpy", code=2).output.split())
    assert "Known: raybox; raybox fast;" in error
    assert "put the folder benchmarks of raybox's sources on PYTHONPATH" in error


def test_a_failed_job_raises_and_stops_no_other_part(tmp_path, monkeypatch):
    with pytest.raises(RuntimeError, match="versus ended with exit code"):
        worker.run_apart(runner.versus, {"no_such": 1}, threads=1)
    jobs_run = []

    def run_apart(job, _how, *, threads):
        jobs_run.append(job.__name__)
        if job is raybox_only.brute:
            raise RuntimeError("no luck")
        return {"threads": threads, "seconds": [1.23456789]}

    monkeypatch.setattr(worker, "run_apart", run_apart)
    todo = {"a": parts.Part(raybox_only.brute, {}), "b": parts.Part(raybox_only.mixed, {}, 2)}
    for names in ([], [], ["b"]):  # each part runs once, unless it failed or is named
        parts.run(todo, tmp_path, names)
    assert jobs_run == ["brute", "mixed", "brute", "mixed"]
    assert json.loads((tmp_path / "b.json").read_text())["seconds"] == [1.23457]


def test_the_machine_is_described():
    facts = machine.describe()
    words = machine.in_words(json.loads(json.dumps(facts)))
    for fact in (
        facts["date"],
        facts["cpu"],
        f"{facts['cores']} cores",
        f"numpy {facts['versions']['numpy']}",
    ):
        assert str(fact) in words


# raybox alone


@pytest.mark.jit
def test_the_fused_loop_computes_its_chains():
    run, chains = peak_rates.make(), np.arange(1, peak_rates.CHAINS + 1, dtype=np.float32) / 2
    for _ in range(3):
        chains = chains * np.float32(0.5) + np.float32(0.5)
    assert run(3) == pytest.approx(peak_rates.LANES * chains.sum(), rel=1e-5)
    assert peak_rates.fused_per_second(run, 1000) > 0


@pytest.mark.jit
def test_the_loop_of_slab_tests_counts_hits():
    """Eight of sixteen boxes lie on the ray."""
    run = peak_rates.make_slabs()
    assert [run(steps) for steps in (1, 2, 17)] == [8, 16, 136]


@pytest.mark.long
@pytest.mark.jit
def test_jobs_of_raybox_alone_return_what_the_page_shows():
    results = {
        "sizes": raybox_only.sizes([100, 200], 500, rounds=1),
        "builds-1": raybox_only.builds(200, ["raybox", "numpy"], rounds=1),
        "memory-1e7": raybox_only.memory(200, 100),
        "mixed-1e5": raybox_only.mixed(200, 4000, rounds=1),
        "first-use": {kind: [{"import": 1.0, "Scene": 2.5}] for kind in ("compiled", "loaded")},
        "brute": {"tests": 8e9, "fused": 1e9, "slabs": 8e9, "lanes": 16},
    }
    results["brute"]["seconds"] = {"sweep": [4.0], "probe": [0.5], "slabs": [2.5]}
    text = "\n".join(own_tables.sections(json.loads(json.dumps(results))))
    for words in ("| 200 |", "bytes a box", "| numpy |", "in turns of 1024 rays", "| all of it | 3.50 |",
                  "2 G tests", "reaches 62.5% of that"):  # fmt: skip
        assert words in text
    assert results["sizes"]["times"][0]["ray_count"] == 500
    assert {len(laps) for laps in raybox_only.cores(rounds=1)["seconds"].values()} == {1}
    sentences = own_tables._cores({"cores": {"seconds": {"one": [1.0] * 3, "two": [1.25, 1.6, 1.0]}}})
    assert "do 1.60 times the work" in sentences[0]
    halves = {
        "camera": [1.0, 1.0, 2.0],
        "inside": [3.0, 3.0, 2.0],
        "joined": [4.4, 4.0, 9.0],
        "lines": [4.0] * 3,
    }
    assert own_aims.mixed_cost({"seconds": halves}, "joined") == pytest.approx(0.1)


def test_every_part_is_a_job_that_accepts_its_arguments(tmp_path):
    todo = parts.parts(Path("data"), tmp_path)
    sizes = {part.how["size"] for part in todo.values() if "size" in part.how}
    assert sizes == {10**k for k in (3, 4, 5, 6, 7)}
    for part in (*todo.values(), *(part.made_quick().timed_by("cpu") for part in todo.values())):
        arguments = json.loads(json.dumps(part.arguments()))
        if part.job in (runner.versus, meshes.measure):
            assert set(arguments) <= {*runner.Spec._fields, "mesh"}
            assert set(arguments["names"]) <= set(peers.table())
        else:
            inspect.signature(part.job).bind(**arguments)
    assert set(for_you.SCENES) - {"versus-*"} <= set(todo)
    names = [pattern for aim in aims.SLOWER for pattern in aim.parts]
    assert all(any(fnmatch(part, pattern) for part in todo) for pattern in names)
    assert all(todo[f"real-{name}"].how["rays"] == data.SCENE_KINDS for name in ("skull", "city", "house"))


# Small batches, rays of arrays, triangles, grids


@pytest.mark.long
@pytest.mark.jit
def test_small_batches_are_measured_and_compared_with_their_aims():
    measured = small_batches.measure(300, rounds=1, most=1000)
    scenes = small_batches.BOXES, small_batches.HOUSE, small_batches.CITY
    kinds = *small_batches.KINDS, small_batches.BOUNCE
    cases = [small_batches.Case(*case) for case in product(scenes, small_batches.COUNTS, kinds)]
    cases = [case for case in cases if case.scene != small_batches.BOXES or case.rays != "bounce"]
    assert {(r["scene"], r["count"], r["rays"]) for r in measured["times"]} == {
        case for case in cases if case.count <= 1000
    }
    assert {"raybox", small_batches.LISTS} <= {record["name"] for record in measured["times"]}
    times = [
        {**case._asdict(), "name": name, "seconds": [case.count**0.5 * one, 9.0, case.count**0.5 * one]}
        for case in cases
        for name, one in (("raybox", 4e-6), (small_batches.LISTS, 8e-6), ("embreex", 5e-6))
    ]
    results = {"small-batches": measured | {"times": times}}
    aims_of = small_batches.aims(json.loads(json.dumps(results)))
    boxes, *triangles = (f"{scene}, rays a call: {{}}; embreex's time" for scene in scenes)
    assert {aim.words: (aim.measured, aim.reached) for aim in aims_of} == {
        "1 ray at boxes from arrays: 5 µs": ("4.00 µs", True),
        "10 rays at boxes from arrays: 8 µs": ("12.65 µs", False),
        **{boxes.format(count): ("0.80 times", count == "1") for count in ("1", "1,000", "10,000")},
        **{
            one.format(count): ("0.80 times", True) for one in triangles for count in ("1", "1,000", "10,000")
        },
        "from lists: 3 µs more a ray": ("4.00 µs", False),
    }
    assert "| uniform boxes | 100 | inside | 40 | 80 | 50 |" in small_batches.section(results)
    assert small_batches.aims({}) == []


def test_batches_are_of_neighbouring_rays():
    rays = data.RaySet(np.arange(3e6).reshape(-1, 3), np.ones((10**6, 3)))
    for count in small_batches.COUNTS:
        batches = small_batches._batches(rays, count)
        assert len(batches) * max(1, count // 1000) >= small_batches._CALLS
        once = np.concatenate([one.origins for one in batches[: max(1, 1000 // count)]])
        np.testing.assert_array_equal(once, rays.origins[: len(once)])
        assert len(once) == max(count, 1000)


@pytest.mark.long
@pytest.mark.jit
def test_calls_are_measured_by_their_number_of_rays():
    measured = batch_sizes.measure(300, most=32, rounds=1)
    scenes = batch_sizes.HOUSE, batch_sizes.CITY, batch_sizes.SKULL, batch_sizes.BOXES
    cases = [(r["scene"], r["rays"], r["count"]) for r in measured["times"]]
    assert cases == list(product(scenes, batch_sizes.KINDS, (16, 32)))
    names = {"raybox", batch_sizes.ONE_MORE, batch_sizes.TWICE}
    assert all(names <= set(record["seconds"]) for record in measured["times"])
    assert all(line.raybox > 0 for line in batch_sizes.lines(json.loads(json.dumps(measured))))


def by_number_of_rays(threads=1):
    """Return made-up times of calls; at 1,024 rays there is a step."""

    def seconds(count):
        one_more = (1.3e-6 if count == 1024 else 1.01e-6) * count
        return {  # the last round took twice as long
            "raybox": [1e-6 * count, 9.0, 2e-6 * count],
            batch_sizes.ONE_MORE: [one_more, 9.0, 2 * one_more],
            batch_sizes.TWICE: [1.9e-6 * count, 18.0, 3.8e-6 * count],
            batch_sizes.EMBREEX: [4e-6 * count, 5e-6 * count, 6e-6 * count],
        }

    cases = product((batch_sizes.HOUSE, batch_sizes.BOXES), batch_sizes.KINDS, (512, 1024))
    times = [
        {"scene": scene, "rays": kind, "count": count, "sets": 40, "seconds": seconds(count)}
        for scene, kind, count in cases
    ]
    return {"machine": machine.describe(), "size": 300, "threads": threads, "times": times}


def test_steps_in_the_time_by_number_of_rays_are_found():
    results = {"batch-sizes-1": by_number_of_rays(), "batch-sizes-2": by_number_of_rays(2)}
    lines = batch_sizes.lines(results["batch-sizes-1"])
    assert lines[0][:3] == (batch_sizes.HOUSE, "inside", 512)
    for line, step in zip(lines, (1.01, 1.3), strict=False):
        assert line[3:] == pytest.approx((2000, 5000, step, 1.9))
    assert [aim[1:] for aim in batch_sizes.aims(results)] == 2 * [
        ("1.30 times", "uniform boxes, inside, R = 1,024", False),
        ("1.90 times", "uniform boxes, inside, R = 512", True),
    ]
    section = batch_sizes.section(results)
    assert "| uniform boxes | camera | 2 threads | 1.300 | 1,024 | 1.900 | 512 |" in section
    assert "R = 16, 32, … 1,024" in section
    _, rows = batch_sizes.table(lines)
    assert rows[0] == (batch_sizes.HOUSE, "inside", "512", "2,000", "5,000", "1.010", "1.900")
    assert batch_sizes.aims({}) == batch_sizes.curve({}) == []
    assert batch_sizes.section({}) == ""


@pytest.mark.parametrize("kind", batch_sizes.KINDS)
def test_sets_of_rays_are_different_and_spread_over_all(kind):
    boxes = data.boxes("uniform", 10)
    sets = batch_sizes._ray_sets(kind, boxes, 4096)
    assert {one.directions.shape for one in sets} == {(8192, 3)}
    assert len({one.directions[0].tobytes() for one in sets}) == len(sets) == 40
    every = data.rays(kind, 10_000, boxes).directions
    assert len(np.unique(np.concatenate([one.directions for one in sets]), axis=0)) == len(
        np.unique(every, axis=0)
    )
    assert [batch_sizes.set_count(2**k) for k in (4, 14, 15, 16, 18, 20)] == [40, 40, 20, 10, 3, 3]


@pytest.mark.jit
def test_ways_to_make_rays_are_measured_and_compared_with_their_aims():
    measured = array_input.measure(300, 400, rounds=1, clock="cpu")
    forms = {(record["rays"], name) for record in measured["times"] for name in record["seconds"]}
    assert {("camera", "float32 arrays"), ("pinhole", "Rays.pinhole")} < forms
    alone = {array_input.ALONE: [1.0, 2.0, 3.0]}
    made = {"float64 arrays": [1.2, 2.2, 3.9], "strided float64 arrays": [9.0] * 3}
    times = [
        {"rays": "camera", "ray_count": 400, "seconds": alone | made},
        {"rays": "pinhole", "ray_count": 400, "seconds": alone | {"Rays.pinhole": [1.0, 2.0, 6.0]}},
    ]
    results = {"array-input": measured | {"times": times}}
    found = [(aim.measured, aim.where, aim.reached) for aim in array_input.aims(results)]
    assert found == [
        ("1.20 times", "float64, camera", True),
        ("1.00 times", "pinhole", True),
    ]
    assert "| camera | strided float64 arrays | 4.50 |" in array_input.section(results)


@pytest.mark.jit
def test_brute_force_tests_every_pair():
    """Its arrays have room for all pairs: a sweep writes each hit."""
    result = raybox_only.brute(rounds=1)
    assert (result["tests"], result["lanes"]) == (2**24, 16)
    assert {call: len(seconds) for call, seconds in result["seconds"].items()} == dict.fromkeys(
        ("sweep", "probe", "slabs"), 1
    )


@pytest.mark.jit
def test_triangles_are_measured_beside_those_of_peers(tmp_path):
    mesh = rb.Mesh(np.random.default_rng(1).random((30, 3)) + 1e5, np.arange(30).reshape(10, 3))
    rb.save(tmp_path / "m.npz", mesh)
    names = ("raybox", "embreex", "no such")
    meshes_makers = meshes.MAKERS | {"no such": _absent}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meshes, "MAKERS", meshes_makers)
        result = meshes.measure(str(tmp_path / "m.npz"), names=names, ray_count=900, rounds=1)
    rows = report.rows(result)
    own = [(row.rays, row.query) for row in rows if row.name == "raybox"]
    assert own == [(kind, query) for kind in data.SCENE_KINDS for query in meshes.QUERIES]
    assert report.absent(result)[-1] == "no such: not installed (no such library)"
    if find_spec("embreex"):
        theirs = [record for record in result["times"] if record["name"] == "embreex"]
        assert {record["query"] for record in theirs} == {"nearest", "occluded"}
        assert all(record["differing"] <= 2 for record in theirs if record["query"] == "nearest")


@pytest.mark.jit
@pytest.mark.parametrize(("view", "path"), [("oblique", real_data.CITY), ("room", BUNDLED_HOUSE)])
def test_second_rays_leave_what_the_first_ones_hit(view, path):
    """Without an epsilon of their own, rays hit what `exclude` says that they hit."""
    target = second_rays.load(str(path), "triangles")
    scene, longest = rb.Scene(target.geometry), (target.around[1] - target.around[0]).max()
    surface = second_rays.surface_points(view, 400, target)
    assert 80 < len(surface.origins) <= 400
    back = rb.Rays(surface.origins, -surface.normals, t_max=2e-5 * longest)
    np.testing.assert_allclose(scene.nearest(back).t, 1e-5 * longest, rtol=0.1)
    for kind, query in second_rays.KINDS.items():
        rays = second_rays.second_rays(kind, surface, view, target.around)
        assert all((x == x.astype(np.float32)).all() for x in rays[:2])
        found = getattr(scene, query)(rb.Rays(*rays[:2], t_max=rays.t_max))
        for name, make in second_rays.MAKERS.items():
            try:
                cast = make(target)(query, rays)
            except ImportError:
                continue
            hit = second_rays.hits_of(name, query, cast())
            assert np.mean(hit != second_rays.hits_of("raybox", query, found)) < 0.01, (name, kind)
        along = (rays.directions * surface.normals).sum(axis=1)
        assert kind != "bounce" or (along.min() > -1e-6 and abs(along.mean() - 2 / 3) < 0.05)
        ends = rays.origins + rays.directions
        assert kind != "lamp" or (np.ptp(ends, axis=0).max() < 1e-4 * longest and rays.t_max == 1.0)


@pytest.mark.jit
def test_second_rays_are_measured_beside_those_of_peers():
    result = second_rays.measure(
        str(real_data.HOUSE_BOXES), "boxes", names=("raybox", "embreex"), ray_count=300, rounds=1
    )
    rows = [row for row in report.rows(result) if row.name == "raybox"]
    assert [(row.rays, row.query) for row in rows] == list(second_rays.KINDS.items())
    assert all(0 < record["hits"] + 1 <= record["ray_count"] <= 300 for record in result["times"])
    assert all(record["differing"] <= 3 for record in result["times"])


@pytest.mark.long
@pytest.mark.jit
def test_points_and_normals_are_those_of_plain_loops():
    """Results are compared within `measure`."""
    result = json.loads(json.dumps(derived_fields.measure(1000, rounds=1)))
    cases = [(record["scene"], record["field"]) for record in result["times"]]
    assert cases == list(product(derived_fields.SCENES, derived_fields.FIELDS))
    seconds = {"raybox": [2e-6, 2e-6, 9.0], "loop": [1e-6, 9.0, 1.0]}
    result["times"] = [result["times"][0] | {"seconds": seconds}]
    shown = derived_fields.section({"derived": result})
    assert "| house, triangles | points | 2 | 1,000,000 | 0.50 |" in shown


def _absent(_mesh, _threads):
    raise ImportError("no such library")


@pytest.mark.long
@pytest.mark.jit
def test_the_plain_loop_of_grids_is_raybox():
    """Results are compared within `measure`; the ratios, with the aims."""
    measured = grid_sums.measure((16,), rounds=1)
    assert {(r["cells"], r["rays"], r["query"]) for r in measured["times"]} == {
        (16, kind, query) for kind in grid_sums.KINDS for query in (*grid_sums.SUMS, "nearest", "segments")
    }
    assert all((r["listed"] > 10**5) == (r["query"] == "segments") for r in measured["times"])
    times = [
        {
            "cells": cells,
            "rays": kind,
            "query": query,
            "seconds": {"raybox": [1.0] * 3, "loop": [0.1, loop, 9.0]},
        }
        for cells in (64, 512)
        for kind in grid_sums.KINDS
        for query, loop in (("deposit", 1.25), ("nearest", 0.9 if kind == "parallel" else 0.5))
    ]
    results = {"grids": measured | {"times": times}}
    assert [(aim.measured, aim.reached) for aim in grid_sums.aims(results)] == [
        ("1.25 times", True),
        ("1.25 times", False),
        ("0.90 times", False),
    ]
    assert "| 512³ | parallel | deposit | - | 1.25 |" in grid_sums.section(results)
    listing = results["grids"]["times"][-1] | {"query": "segments", "listed": 10**8}
    assert "| segments | 10 | 0.90 |" in grid_sums.section({"grids": {"times": [listing]}})


# Tables and plots


def made_up(size=10**5, names=("raybox", "embreex", "open3d", "warp"), threads=1, kinds=data.RAY_KINDS):
    """Return a result in which peer k takes 2 k times raybox's time, 3 k for inside rays."""
    times = []
    for kind in kinds:
        for query in ("nearest", "count"):
            for k, name in enumerate(names):
                longer = (3.0 if kind == "inside" else 2.0) * k or 1.0
                seconds = [len(query) / 7 * longer * turn for turn in (1.0, 1.5, 1.2)]
                facts = {"rays": kind, "query": query, "name": name, "ray_count": 1000, "seconds": seconds}
                times.append(facts | {"agreement": dict.fromkeys(checks.Agreement._fields, 0)})
    spec = {"boxes": "uniform", "threads": threads, "names": names}
    contestants = [{"name": name, "why_not": ""} for name in names] + [
        {"name": "mujoco", "why_not": "not installed"}
    ]
    machine_of = machine.describe()
    return {"spec": spec, "size": size, "times": times, "contestants": contestants, "machine": machine_of}


def second(size):
    """Return a made-up result of second rays, in which embreex takes twice raybox's time."""
    found = made_up(size, names=("raybox", "embreex"), kinds=second_rays.KINDS)
    times = [
        facts | {"query": second_rays.KINDS[facts["rays"]], "seconds": [k + 1.0] * 3}
        for facts in found["times"]
        if facts["query"] == "nearest"
        for k, name in enumerate(("raybox", "embreex"))
        if name == facts["name"]
    ]
    return found | {"times": times}


@pytest.mark.parametrize(
    ("code", "level", "words"),
    [
        ("kernels of raybox-v3.so", "v3", "AVX2"),
        ("kernels of raybox-v3.dll", "v4", "AVX2 kernels on a processor with AVX-512"),
        ("kernels compiled by Numba", "v4", "AVX-512"),
    ],
)
def test_the_page_names_the_instructions(code, level, words):
    assert page._units({"a": {"machine": {"code": code, "level": level}}}) == words


@pytest.mark.core
def test_tables_contain_medians_of_ratios():
    rows = report.rows(made_up())
    assert [round(row.ratio, 9) for row in rows[:4]] == [1, 2, 4, 6]
    head, lines = report.pivot(rows)
    assert lines[0] == ["100,000", "uniform", "1", "incoherent", "nearest", "0.000833", "2", "4", "6"]
    marked = report.markdown(head, lines).splitlines()
    assert marked[1] == "| ---: | --- | ---: | --- | --- | ---: | ---: | ---: | ---: |"
    assert len(marked) == 2 + 6
    plain = report.text(head, lines).splitlines()
    assert {line.index("uniform") for line in plain[1:]} == {len("100,000") + 2}


def test_aims_are_compared_with_the_worst():
    scene = made_up(10**4, kinds=data.SCENE_KINDS)
    results = {"versus-1e5-1": made_up(), "versus-1e3-2": made_up(10**3, threads=2)}
    results |= {"real-skull": scene, "real-house": scene, "mesh-city": scene}
    all_of = aims.aims(results)
    found = {aim.words.split(" (")[0]: (aim.measured, aim.reached) for aim in all_of}
    for words, measured, is_reached in (
        ("embreex 3", 2, False),
        ("embreex 1.5", 2, True),
        ("open3d 8", 4, False),
    ):
        assert found[f"{words} times slower"] == (f"{measured} times", is_reached)
    assert "trimesh rtree 1,000 times slower" not in found
    where = {aim.words: aim.where for aim in all_of}
    several = "embreex 5 times slower (nearest, camera rays; real-skull, real-city, real-house)"
    assert where[several] in ("real-house, camera, nearest", "real-skull, camera, nearest")
    oblique = "embreex 4.5 times slower (nearest, oblique rays; real-skull)"
    assert where[oblique] == "real-skull, oblique, nearest"
    assert not any("voxels" in words for words in where)
    (triangles,) = (aim for aim in all_of if "mesh-*" in aim.words)
    assert (triangles.where, triangles.measured) == ("mesh-city, camera, nearest", "2 times")
    printed = aims.table(results).splitlines()
    assert len(printed) == 1 + len(all_of)
    assert sum(line.endswith("NO") for line in printed) == sum(not aim.reached for aim in all_of) > 0


def test_raybox_is_compared_with_itself():
    results = {
        "workers-1e6": made_up(names=("raybox, 2 workers", "raybox, 1 worker")),
        "workers-skull": made_up(names=("raybox, 2 workers", "raybox, 1 worker")),
        "exactness-a": made_up(names=("raybox proposals", "raybox")),
    }
    found = {aim.words: (aim.measured, aim.reached) for aim in aims.aims(results)}
    for words in ("two threads: 1.6 times one", "skull, two threads: 1.8 times one"):
        assert found[words] == ("2.00 times", True)
    assert found["exact: proposals alone + 15 %"] == ("3.00 times", False)
    text = "\n".join(own_tables.sections(results))
    assert "| 100,000 | inside | nearest | +200.0% |" in text
    assert "| 100,000 | camera | count | 2.00 | 2.00 to 2.00 |" in text


def test_builds_memory_and_kernels_are_compared_with_their_aims():
    def built(size, threads, **seconds):
        builds = [{"name": name.replace("_", " "), "seconds": each} for name, each in seconds.items()]
        return {"size": size, "threads": threads, "builds": builds, "stats": {}}

    results = {
        "builds-a": built(10**6, 1, raybox_fast=[0.2, 0.1, 0.1], raybox_balanced=[0.9], warp=[9.0]),
        "builds-b": built(10**6, 2, raybox_fast=[0.1], raybox_balanced=[0.4], embreex=[]),
        "memory-1e7": {"peak_gb": 3.5, "stats": {"bytes_per_box": 41.0}},
        "brute": {
            "tests": 10**9,
            "fused": 10**9,
            "slabs": 10**9,
            "seconds": {"sweep": [2.0, 4.0, 2.0], "probe": [1.0, 1.0, 1.0], "slabs": [1.0]},
        },
        "first-use": {
            "compiled": [{"import": 9, "Scene": 9, "nearest": 7.5}],
            "loaded": [{"import": 0.3, "Scene": 0.3, "nearest": 0.2}],
        },
    }
    found = {aim.words: aim[1:] for aim in aims.aims(results)}
    assert {words: (measured, met) for words, (measured, _, met) in found.items()} == {
        "balanced: 1 million boxes built a second a thread": ("1.11 million", True),
        "fast: 8 million boxes built a second a thread": ("5.00 million", False),
        "10⁷ boxes built and queried within 3 GB": ("3.50 GB", False),
        "nodes: 45 bytes a box": ("41.0", True),
        "brute force: 0.52 tests for each fused multiply-add of 16 lanes": ("0.50", False),
        "kernels of `nearest`: compiled within 8 s": ("7.5 s", True),
        "kernels of `nearest`: loaded within 0.7 s": ("0.80 s", False),
    }
    where = [where for words, (_, where, _) in found.items() if words.split(":")[0] in ("fast", "balanced")]
    assert where == [f"1,000,000 boxes, {threads} thread(s)" for threads in (1, 2)]


PAGE = """## How fast will it be for me?
| house, boxes of its elements | 286 | 0.000833 (2) | 0.000833 (2) | 0.000833 (2) | 0.000833 (3) | - | - | - |
| city, triangles | 10,000 | 0.000833 (2) | 0.000833 (2) | 0.000833 (2) | 0.000833 (3) | 0.001 (2) @
by kind of rays, the rate is 2 to 3 times embreex's, 4 to 6 times open3d's
| rays a call | house, triangles, µs | house, triangles, embreex | city, triangles, µs | @
- **More rays**, from 16 on: one more takes at most 1.30 times as long, twice as many 1.90 times.
- **Making rays** takes, in addition to `nearest`, at most@
(performance_appendix.md)
(images/rates.svg)"""
APPENDIX = """(performance.md)
| 7,000 | skull, boxes of its triangles | oblique | nearest | 0.000833 | 2 | - |
| 10,000 | city, triangles | lamp | occluded | 0.001 | 2 | - |
## Calls of few and of many rays
## Calls by their number of rays
(images/batch_sizes.svg)
## Making rays
### One thread
### 2 threads
### Slower ones
## How it was measured
mujoco: not installed
noisy"""


@pytest.mark.long
def test_the_page_and_its_plot_are_written(tmp_path):
    pytest.importorskip("matplotlib")
    results = {
        "versus-1e5-1": made_up(),
        "versus-1e5-2": made_up(threads=2),
        "slow-peers": made_up(10**4, names=("raybox", "numpy")),
        "mesh-city": made_up(10**4, kinds=data.SCENE_KINDS),
        "real-skull": made_up(7000, names=("raybox", "embreex"), kinds=data.SCENE_KINDS),
        "real-house": made_up(286, names=("raybox", "embreex", "open3d"), kinds=data.SCENE_KINDS),
        "second-mesh-city": second(10**4),
        "sizes": raybox_only.sizes([1000], 200, rounds=1),
        "small-batches": small_batches.measure(100, rounds=1, most=10),
        "batch-sizes-1": by_number_of_rays(),
        "array-input": array_input.measure(100, 400, rounds=1),
    }
    page.write(json.loads(json.dumps(results)), tmp_path)
    text, appendix = ((tmp_path / f"performance{end}.md").read_text() for end in ("", "_appendix"))
    for lines, written in ((PAGE, text), (APPENDIX, appendix)):
        assert [line for line in lines.splitlines() if line.rstrip("@") not in written] == []
    places = [text.index(name) for name in ("| house, boxes", "| city, triangles")]
    assert places == sorted(places)
    heads = [appendix.index(f"## {name}") for name in ("Real scenes", "Calls of few", "Uniform")]
    assert heads == sorted(heads)
    assert (text.count("!["), text.count(" |\n| ---")) == (1, 2)
    assert text.splitlines()[4].startswith(f"Measured on {machine.describe()['usable_cores']} cores of ")
    assert [line.name for line in for_you.house_rates(results)] == ["boxes, camera", "boxes, from inside"]
    inside = for_you.house_rates(results)[1].rates
    assert inside["raybox"] / inside["open3d"] == pytest.approx(6)
    for name, least in (("rates", 20), ("house", 10), ("batch_sizes", 10)):
        assert (tmp_path / "images" / f"{name}.svg").read_text().count("<path") > least

    # The page of another machine is a separate file.
    page.write(
        {"real-house": made_up(286, ("raybox", "embreex"), threads=2)},
        tmp_path,
        "elsewhere",
        "Performance elsewhere",
    )
    elsewhere = (tmp_path / "elsewhere.md").read_text()
    assert elsewhere.startswith("# Performance elsewhere: ")
    assert "with 2 threads; in brackets" in elsewhere
    assert (tmp_path / "images" / "elsewhere-rates.svg").exists()
    assert (tmp_path / "performance.md").read_text() == text
