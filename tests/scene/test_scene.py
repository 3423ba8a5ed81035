"""Every query of rb.Scene against the oracle on small and difficult scenes."""

import numpy as np
import pytest
from hypothesis import given, settings

import exact
import families
import raybox as rb
import strategies
from aim import INF, Pairs
from compare import assert_normals
from raybox.compiler.calls import Plan
from scenes import as_rays, build, check_scene, random_scene, truth

# Every query against the truth


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", families.FAMILIES)
def test_a_family_as_one_scene(name, seed):
    found = check_scene(families.scene(name, seed, n_boxes=150, n_rays=100), ks=(1, 3, 200))
    counts = {"hit": sum(map(bool, found)), "tied": sum(exact.ties(f) > 0 for f in found if f)}
    assert counts["hit"] > 20, counts
    assert counts["tied"] >= 3, counts


# Regressions: times that round to -inf, and denormal times, whose rounding error is large beside them.
REGRESSIONS = [
    (name, k, 150, 100) for name, k in (("half_spaces", 1), ("denormal_directions", 0), ("scales", 2))
]
REGRESSIONS += [("denormal_boxes", seed, 64, 64) for seed in (9, 30, 66, 81, 91, 92)]


@pytest.mark.parametrize(("name", "seed", "n_boxes", "n_rays"), REGRESSIONS)
def test_regressions(name, seed, n_boxes, n_rays):
    check_scene(families.scene(name, seed, n_boxes, n_rays))


@pytest.mark.parametrize("n_boxes", [1, 2, 7, 8, 9, 64, 65])
@pytest.mark.parametrize("dim", [2, 3])
def test_small_scenes(n_boxes, dim):
    found = check_scene(random_scene(n_boxes, n_boxes, 150, dim, size=0.8), ks=(1, 3, n_boxes + 2))
    assert 0 < sum(map(len, found)) < 150 * n_boxes


@given(strategies.scenes(max_boxes=30))
@settings(max_examples=150)
def test_any_small_scene(pairs):
    check_scene(pairs)


@given(strategies.scenes(max_boxes=6))
def test_any_scene_of_repeated_boxes(pairs):
    """Each box twelve times: deep trees, and ties everywhere."""
    many = [np.tile(x, (12, 1)) for x in pairs[4:]]
    check_scene(Pairs(*pairs[:4], *many))


# Difficult scenes


def test_unbounded_boxes_among_others():
    pairs = random_scene(3, 200, 60)
    rng = np.random.default_rng(3)
    lower = np.where(rng.random(pairs.lower.shape) < 0.1, -INF, pairs.lower)
    upper = np.where(rng.random(pairs.lower.shape) < 0.1, INF, pairs.upper)
    lower[5], upper[5] = -INF, INF
    lower[6, 1] = upper[6, 1] = INF  # contains no real point
    lower[7, 2] = upper[7, 2] = -INF
    found = check_scene(Pairs(*pairs[:4], lower, upper))
    assert all(5 in {f.index for f in row} and not {6, 7} & {f.index for f in row} for row in found)


def test_identical_boxes():
    n = 100_000
    lower, upper = np.zeros((n, 3)), np.ones((n, 3))
    scene = build(lower, upper)
    assert scene.stats()["depth"] <= 30
    rays = rb.Rays(
        [[-1.0, 0.5, 0.5], [0.0, 0.0, 2.0], [5.0, 5.0, 5.0]], [[1.0, 0, 0], [1.0, 1, -1], [1, 0, 0]]
    )
    assert scene.nearest(rays).index.tolist() == [0, 0, -1]
    assert scene.count(rays).tolist() == [n, n, 0]
    assert scene.first(rays, 3).index.tolist() == [[0, 1, 2], [0, 1, 2], [-1, -1, -1]]
    hits = scene.all(rays)
    np.testing.assert_array_equal(hits.index, np.tile(np.arange(n), 2))
    np.testing.assert_array_equal(hits.offsets, [0, n, 2 * n, 2 * n])


def test_exponentially_spaced_boxes():
    k = np.arange(-500, 500)
    lower = np.ldexp(1.0, k)[:, None] * [1, -1, -1]
    pairs = random_scene(5, 1, 20)
    directions = np.concatenate([np.tile([1.0, 0, 0], (10, 1)), pairs.directions[10:]])
    scene = Pairs(pairs.origins * 0.01, directions, *pairs[2:4], lower, lower * [1.5, -1, -1])
    found = check_scene(scene)
    assert sum(map(len, found)) > 1000
    assert build(*scene[4:]).stats()["depth"] <= 64


def test_normals_of_the_nearest():
    pairs = families.scene("touching_corners", 10)
    first = [f[0].plain if f else (False, INF, np.nan, np.nan, -1, False) for f in truth(pairs)]
    want = exact.Answers(*(np.array(x) for x in zip(*first, strict=True)))
    assert_normals(build(*pairs[4:]).nearest(as_rays(pairs)), want, pairs.directions)


@pytest.mark.parametrize("geometry", [rb.Boxes([[0, 0, 0]], [[1, 1, 1]]), rb.Grid(*[[0, 1, 2]] * 3)])
def test_the_job_is_laid_out_once(geometry):
    scene, rays = rb.Scene(geometry), rb.Rays([-1, 0.5, 0.5], [1, 0, 0])
    scene.nearest(rays)
    (job,) = scene._plain.jobs
    scene.count(rays)
    assert scene._plain.jobs == (job,)
    assert type(job) is Plan
    assert job.tree is scene._parts[0].tree
