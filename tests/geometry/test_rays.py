"""Rays: shapes, ranges, invalid rays, indexing, and the text of every error."""

import copy
import pickle
from math import inf, nan

import numpy as np
import pytest

import raybox as rb
from refusals import refusal

RNG = np.random.default_rng(3)


def rays_of(shape=(4, 5), dims=3, **ranges):
    return rb.Rays(RNG.normal(size=(*shape, dims)), RNG.normal(size=(*shape, dims)), **ranges)


def arrays(rays):
    return rays.origins, rays.directions, rays.t_min, rays.t_max


def assert_sound(rays, dims=3):
    """Assert the shapes, order and flags of the arrays of any Rays."""
    for values in arrays(rays):
        assert values.dtype == np.float64
        with pytest.raises(ValueError, match="read-only"):
            values[...] = 0
    assert rays.origins.shape == rays.directions.shape == (*rays.shape, dims)
    assert rays.t_min.shape == rays.t_max.shape == rays.shape
    rows = rays._rows()
    count = int(np.prod(rays.shape))
    assert rows.directions.shape == (count, 3)
    assert rows.origins.shape in ((1, 3), (count, 3))
    origins = np.broadcast_to(rows.origins, (count, 3))
    assert np.array_equal(origins[:, :dims], rays.origins.reshape(-1, dims), equal_nan=True)
    assert np.array_equal(rows.directions[:, :dims], rays.directions.reshape(-1, dims), equal_nan=True)
    assert not rows.directions[:, dims:].any()
    for row, t in zip((rows.t_min, rows.t_max), (rays.t_min, rays.t_max), strict=True):
        assert row.shape in ((1,), (count,))
        assert np.array_equal(np.broadcast_to(row, count), t.reshape(-1))
    for values in rows:
        assert values.flags.c_contiguous
        assert not values.flags.writeable


def same(one, other):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(arrays(one), arrays(other), strict=True))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 3)])
def test_truth_of_rays_is_refused(shape):
    with pytest.raises(rb.InvalidInput, match=r"ambiguous.*rays\.shape.*\.hit\.any\(\)"):
        bool(rays_of(shape))


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (0,), (2, 3), (2, 0, 3)])
@pytest.mark.parametrize("t_max", [inf, 5, "each"])
def test_rays_of_any_shape_are_sound(shape, dims, t_max):
    rays = rays_of(shape, dims, t_min=-1, t_max=np.full(shape, 5.0) if t_max == "each" else t_max)
    assert_sound(rays, dims)
    assert rays.ndim_space == dims
    assert repr(rays) == f"Rays(shape={shape}, D={dims})"
    assert (rays.t_min == -1).all()
    assert (rays.t_max == (5 if t_max == "each" else t_max)).all()


def test_a_single_ray_has_no_length_and_cannot_be_iterated():
    ray = rb.Rays([0, 0, 0], [1, 0, 0])
    assert ray.shape == ()
    assert ray.t_max.shape == ()
    for walk in (len, list):
        with pytest.raises(TypeError, match=r"single ray.*reshape\(1\)"):
            walk(ray)
    assert len(ray.reshape(1)) == 1


def test_no_rays():
    for rays in (rb.Rays([], []), rb.Rays(np.empty((0, 3)), [1, 0, 0]), rb.Rays.segments([], [])):
        assert rays.shape == (0,)
        assert list(rays) == []
        assert_sound(rays)


def test_origins_and_directions_are_broadcast_and_copied():
    eye, directions = np.zeros(3), np.asfortranarray(RNG.normal(size=(4, 3)).astype(np.float32))
    directions.setflags(write=False)
    starts, ends = np.zeros(4), np.arange(4.0)
    rays = rb.Rays(eye, directions, t_min=starts, t_max=ends)
    assert_sound(rays)
    eye[:], starts[:], ends[:] = 7, 7, 7
    assert not rays.origins.any()
    assert (rays.t_min.any(), rays.t_max.tolist()) == (False, [0, 1, 2, 3])
    assert np.array_equal(rays.directions, directions)
    assert rb.Rays(np.zeros((3, 1, 2)), np.ones((4, 2))).shape == (3, 4)
    assert eye.flags.writeable


def test_the_attributes_cannot_be_set():
    rays = rays_of()
    for name in ("origins", "directions", "t_min", "t_max", "shape", "colour"):
        with pytest.raises(AttributeError):
            setattr(rays, name, 0)


def test_shapes_that_do_not_fit_are_named():
    assert "origins and directions must broadcast" in refusal(rb.Rays, np.zeros((2, 3)), np.zeros((4, 3)))
    assert "(2, 3) and (4, 3)" in refusal(rb.Rays, np.zeros((2, 3)), np.zeros((4, 3)))
    assert "(2,) and (3,)" in refusal(rb.Rays, [0, 0], [1, 0, 0])
    assert "starts and ends must broadcast" in refusal(rb.Rays.segments, [0, 0], [1, 0, 0])
    assert "shape (..., 2) or (..., 3)" in refusal(rb.Rays, np.zeros((5, 4)), np.zeros((5, 4)))
    text = refusal(rb.Rays, np.zeros((5, 3)), np.ones((5, 3)), t_max=[1, 2])
    assert "t_max must be a scalar or one number for each ray, of shape (5,); got shape (2,)" in text
    assert "scalar or one number" in refusal(rb.Rays, [0, 0, 0], [1, 0, 0], t_min=[1, 2], t_max=3)
    assert "float64" in refusal(rb.Rays, ["a"], [1])
    assert "or \"miss\"; got 'ignore'" in refusal(rb.Rays, [0, 0], [1, 0], invalid="ignore")
    assert "must broadcast" in refusal(rb.Rays, np.zeros((2, 3)), np.zeros((4, 3)), invalid="miss")


BAD = [
    ({"o": nan}, "origins must be finite", "origins[3] = [0.0, nan, 0.0]"),
    ({"o": -inf}, "origins must be finite", "origins[3] = [0.0, -inf, 0.0]"),
    ({"d": inf}, "directions must be finite", "directions[3] = [0.0, inf, 0.0]"),
    ({"low": nan}, "t_min and t_max must not be NaN", "t_min[3] = nan, t_max[3] = 9.0"),
    ({"high": nan}, "t_min and t_max must not be NaN", "t_min[3] = 0.0, t_max[3] = nan"),
    ({"high": -1.0}, "t_min must not exceed t_max", "t_min[3] = 0.0, t_max[3] = -1.0"),
]


def spoiled(changes):
    o, d, low, high = np.zeros((6, 3)), np.zeros((6, 3)), np.zeros(6), np.full(6, 9.0)
    for name, value in changes.items():
        {"o": o[:, 1], "d": d[:, 1], "low": low, "high": high}[name][[3, 5]] = value
    return (o, d), {"t_min": low, "t_max": high}


@pytest.mark.parametrize(("changes", "rule", "numbers"), BAD)
def test_invalid_rays_are_refused_with_rule_count_index_and_way_out(changes, rule, numbers):
    args, ranges = spoiled(changes)
    text = refusal(rb.Rays, *args, **ranges)
    assert text.startswith(rule)
    assert "2 of 6 break this, first ray 3: " + numbers in text
    assert 'Drop those rows, or pass invalid="miss"' in text
    tables = [values.reshape(2, 3, *values.shape[1:]) for values in (*args, *ranges.values())]
    text = refusal(rb.Rays, *tables[:2], t_min=tables[2], t_max=tables[3])
    assert "first ray (1, 0): " + numbers.replace("[3]", "[1, 0]") in text
    text = refusal(rb.Rays, args[0][3], args[1][3], t_min=ranges["t_min"][3], t_max=ranges["t_max"][3])
    assert numbers.replace("[3]", "") in text


@pytest.mark.parametrize(("changes", "rule", "numbers"), BAD)
def test_invalid_rays_become_misses_and_keep_their_numbers(changes, rule, numbers):
    args, ranges = spoiled(changes)
    rays = rb.Rays(*args, **ranges, invalid="miss")
    bad = np.isin(np.arange(6), [3, 5])
    assert np.array_equal(rays.t_min, np.where(bad, inf, 0.0))
    assert np.array_equal(rays.t_max, np.where(bad, -inf, 9.0))
    assert np.array_equal(rays.origins, args[0], equal_nan=True)
    assert np.array_equal(rays.directions, args[1], equal_nan=True)
    assert_sound(rays)
    single = rb.Rays(*(a[3] for a in args), **{k: t[3] for k, t in ranges.items()}, invalid="miss")
    assert (float(single.t_min), float(single.t_max)) == (inf, -inf)
    assert_sound(single)
    for ray in (rays[3], rays[[3]], rays.reshape(2, 3)[1, 0], pickle.loads(pickle.dumps(rays))[3]):
        assert (ray.t_min == inf).all()
        assert (ray.t_max == -inf).all()


def test_ranges_without_ends_are_fine():
    rays = rb.Rays([0, 0], [1, 0], t_min=[-inf, inf, -inf][0], t_max=inf)
    assert (float(rays.t_min), float(rays.t_max)) == (-inf, inf)
    rb.Rays([0, 0], [[1, 0]] * 2, t_min=[inf, -inf], t_max=[inf, -inf])


def test_segments_and_lines():
    rays = rb.Rays.segments([[1, 2], [3, 4]], [4, 6])
    assert rays.directions.tolist() == [[3, 4], [1, 2]]
    assert np.array_equal(rays.at(1.0), [[4, 6], [4, 6]])
    assert (rays.t_max == 1).all()
    assert_sound(rays, 2)
    lines = rb.Rays.lines([0, 0, 0], [[1, 0, 0]])
    assert (lines.t_min == -inf).all()
    assert_sound(lines)
    assert "starts must be finite; 1 of 1" in refusal(rb.Rays.segments, [[0, nan]], [1, 1])
    assert "ends - starts must be finite" in refusal(rb.Rays.segments, [-1e308, 0], [1e308, 0])
    assert "ends - starts must be finite" in refusal(rb.Rays.segments, [0, 0], [inf, 0])
    assert "points must be finite" in refusal(rb.Rays.lines, [nan, 0], [1, 0])
    assert rb.Rays.segments([[0, nan]], [1, 1], invalid="miss").t_min == inf
    assert rb.Rays.lines([nan, 0], [1, 0], invalid="miss").t_min == inf


INDICES = [
    0, -1, slice(1, None, 2), (1, 2), (slice(None), 0), ..., (..., 1), None, (None, 0),
    (slice(None), None, 1),
    [0, 2, 0], ([0, 1], [2, 2]), ([[0], [1]], [0, 3]), RNG.random((4, 5)) > 0.5, RNG.random(4) > 0.5,
    (slice(None), RNG.random(5) > 0.5), (), np.int64(2), np.zeros((0,), dtype=int),
    (slice(None, None, -1), ...),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=repr)
@pytest.mark.parametrize("ranges", [{}, {"t_min": -1.0, "t_max": np.arange(20.0).reshape(4, 5)}])
def test_rays_are_indexed_as_an_array_of_rays(index, ranges):
    rays = rays_of(**ranges)
    picked = rays[index]
    places = np.arange(20).reshape(4, 5)[index]
    assert picked.shape == places.shape
    assert np.array_equal(picked.origins, rays.origins.reshape(-1, 3)[places])
    assert np.array_equal(picked.directions, rays.directions.reshape(-1, 3)[places])
    assert np.array_equal(picked.t_max, rays.t_max.reshape(-1)[places])
    assert_sound(picked)


@pytest.mark.parametrize(
    "index", [4, (0, 5), (0, 0, 0), (..., 0, 0, 0), np.zeros((4, 5, 3), dtype=bool), 0.5]
)
def test_an_index_never_reaches_the_coordinates(index):
    with pytest.raises(IndexError) as expected:
        np.zeros((4, 5))[index]
    with pytest.raises(IndexError) as caught:
        rays_of()[index]
    assert str(caught.value) == str(expected.value)


def test_rays_are_iterated_along_the_first_axis():
    rays = rays_of((2, 3))
    assert [row.shape for row in rays] == [(3,), (3,)]
    assert same(list(rays)[1], rays[1])


def test_reshape():
    rays = rays_of((4, 5), 2, t_max=np.arange(20.0).reshape(4, 5))
    for shape in [(20,), (2, -1), (-1,), (2, 2, 5)]:
        assert same(rays.reshape(*shape), rays.reshape(shape))
        assert_sound(rays.reshape(*shape), 2)
        assert np.array_equal(rays.reshape(shape).t_max, rays.t_max.reshape(shape))
    with pytest.raises(rb.InvalidInput, match=r"rays of shape \(4, 5\) do not fit into shape \(3, -1\)"):
        rays.reshape(3, -1)
    assert rb.Rays([], []).reshape(2, 0).shape == (2, 0)


def test_at():
    rays = rays_of((4,), 2)
    assert np.array_equal(rays.at(2), rays.origins + 2 * rays.directions)
    assert rays.at([[0], [1]]).shape == (2, 4, 2)
    points = rays.at([1, inf, -inf, nan])
    assert np.isfinite(points[0]).all()
    assert np.isnan(points[1:]).all()
    with pytest.raises(
        rb.InvalidInput, match=r"t must broadcast against rays of shape \(4,\); got shape \(3,\)"
    ):
        rays.at([1, 2, 3])
    t = np.array([1.0, inf, 2.0, 3.0])
    rays.at(t)
    assert t[1] == inf


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda rays: pickle.loads(pickle.dumps(rays))])
def test_copies_and_pickles_are_sound(again):
    rays = rays_of(t_max=np.ones((4, 5)))
    assert same(again(rays), rays)
    assert_sound(again(rays))
    assert_sound(again(rays[::2, 1]))
    assert again(rays) != rays
    assert rays == rays
    assert len({rays, rays}) == 1
