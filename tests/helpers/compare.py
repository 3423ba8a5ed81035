"""Compare results of raybox with the truth, or with each other, bit for bit."""

from itertools import pairwise

import numpy as np

from exact import INF, Answers, Found, normals

FIELDS = ("hit", "index", "t", "t_enter", "t_exit")
MISS = (False, INF, np.nan, np.nan, -1, False)
EPS = np.finfo(float).eps


def assert_hits(hits, want: Answers, index: np.ndarray) -> None:
    """Assert hits against the truth of each pair; ``index`` is the box of each pair."""
    assert (hits.hit.dtype, hits.index.dtype, hits.t.dtype) == (np.bool_, np.int64, np.float64)
    shape = hits.hit.shape
    np.testing.assert_array_equal(hits.hit.ravel(), want.hit)
    np.testing.assert_array_equal(hits.index, np.where(want.hit.reshape(shape), index, -1))
    for name in ("t", "t_enter", "t_exit"):
        np.testing.assert_array_equal(getattr(hits, name).ravel(), getattr(want, name), err_msg=name)


def assert_normals(hits, want: Answers, directions: np.ndarray) -> None:
    got = hits.normals.reshape(directions.shape)
    np.testing.assert_array_equal(got[want.hit], normals(want, directions)[want.hit])


def assert_points(hits, origins: np.ndarray, directions: np.ndarray) -> None:
    """Assert points against o + t d within rounding, where neither t nor the point over- or underflows.

    For the other rows, see hits/test_out_of_range.py: their points are those of the exact t.
    """
    t = hits.t.reshape(-1, 1)
    with np.errstate(all="ignore"):
        want, size = origins + t * directions, np.abs(origins) + np.abs(t * directions)
        moderate = (np.abs(directions) <= 2.0**60).all(axis=1, keepdims=True)
        usual = moderate | (np.abs(t) >= np.finfo(float).tiny)
        near = np.abs(hits.points.reshape(origins.shape) - want) <= 4 * EPS * size + 1e-320
    rows = hits.hit.ravel() & np.isfinite(t[:, 0]) & np.isfinite(want).all(axis=1) & usual[:, 0]
    assert near[rows].all()


def assert_same(a, b, fields=FIELDS) -> None:
    """Assert that two results have the same bits."""
    for name in fields:
        left, right = getattr(a, name), getattr(b, name)
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right, err_msg=name)


def assert_scene(scene, rays, found: list[list[Found]], ks=(1, 3), **options) -> None:
    """Assert every query of a scene against each ray's exact hits, in order; rays of shape (n,)."""
    assert_nearest(scene, rays, found, **options)
    np.testing.assert_array_equal(scene.occluded(rays, **options), [bool(f) for f in found])
    np.testing.assert_array_equal(scene.count(rays, **options), [len(f) for f in found])
    for k in ks:
        hits = scene.first(rays, k, **options)
        assert hits.t.shape == (len(found), k)
        for name, column in _table([f[:k] for f in found], k).items():
            np.testing.assert_array_equal(getattr(hits, name), column, err_msg=f"first {k}: {name}")
    assert_all(scene.all(rays, **options), found)


def assert_nearest(scene, rays, found: list[list[Found]], **options) -> None:
    """Assert the nearest hits of a scene against each ray's exact hits, in order."""
    hits = scene.nearest(rays, **options)
    for name, column in _table([f[:1] for f in found], 1).items():
        np.testing.assert_array_equal(getattr(hits, name), column[:, 0], err_msg=name)


def _table(found: list[list[Found]], k: int) -> dict[str, np.ndarray]:
    rows = [[(f.index, *f.plain[:4]) for f in row] + [(-1, *MISS[:4])] * (k - len(row)) for row in found]
    index, hit, t, enter, leave = np.array(rows, dtype=object).reshape(len(rows), k, 5).transpose(2, 0, 1)
    floats = {"t": t, "t_enter": enter, "t_exit": leave}
    return {
        "index": index.astype(np.int64),
        "hit": hit.astype(bool),
        **{name: column.astype(float) for name, column in floats.items()},
    }


def assert_all(got, found: list[list[Found]]) -> None:
    flat = [f for row in found for f in row]
    np.testing.assert_array_equal(got.offsets, np.cumsum([0, *(len(row) for row in found)]))
    np.testing.assert_array_equal(got.ray, np.repeat(np.arange(len(found)), [len(row) for row in found]))
    np.testing.assert_array_equal(got.index, np.array([f.index for f in flat], dtype=np.int64))
    for k, name in enumerate(("t", "t_enter", "t_exit"), start=1):
        np.testing.assert_array_equal(getattr(got, name), np.array([f.plain[k] for f in flat]), err_msg=name)
    assert all(
        (np.diff(got.t[a:b]) >= 0).all() for a, b in pairwise(got.offsets) if np.isfinite(got.t[a:b]).all()
    )
