"""Rays that are made block by block: cameras, lidars, and arrays that are not copied."""

import copy
import pickle
from functools import cache
from math import cos, hypot, radians, sin, tan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raybox as rb
from raybox.compiler.buffer_pool import BufferPool
from raybox.geometry import RayRows, ray_blocks, ray_input, ray_sources, uncopied_rays
from raybox.geometry.ray_sources import part_of, ray_count, select_rows, windows, with_ends

RNG = np.random.default_rng(41)
QUERIES = ("nearest", "occluded", "count", "all")


def same_bits(one, other):
    one, other = np.asarray(one), np.asarray(other)
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def pinhole_directions(eye, target, up, fov, width, height):
    """Return the directions of a camera by the formula of NumPy, all at once."""

    def unit(v):
        v = v / np.abs(v).max()
        return v / hypot(*v)

    eye, target, up = (np.array(v, float) for v in (eye, target, up))
    forward = unit(target - eye)
    right = unit(np.cross(forward, unit(up)))
    above = np.cross(right, forward)
    half = tan(radians(fov) / 2)
    x = (2.0 * np.arange(width) + 1 - width) * (half / height)
    y = (height - 1 - 2.0 * np.arange(height)) * (half / height)
    return forward + y[:, None, None] * above + x[:, None] * right


def calibrated_directions(matrix, turn, width, height):
    """Return the directions of a calibrated camera by the formula of NumPy, all at once."""
    (fx, skew, cx), (_, fy, cy), _ = np.asarray(matrix, float).tolist()
    a, b, c = turn
    columns = np.array([np.cross(b, c), np.cross(c, a), np.cross(a, b)])
    right, down, forward = columns / float(a @ columns[0])
    y = ((np.arange(height) - cy) / fy)[:, None]
    x = (np.arange(width) - cx - skew * y) / fx
    return forward + y[..., None] * down + x[..., None] * right


def sine_and_cosine(degrees):
    turned = np.remainder(np.asarray(degrees, float), 360.0)
    quarter = np.rint(turned / 90.0)
    rest = np.deg2rad(turned - 90.0 * quarter)
    quarter = quarter.astype(np.int64) % 4
    sine, cosine = np.sin(rest), np.cos(rest)
    first = np.choose(quarter, [sine, cosine, -sine, -cosine])
    return first + 0.0, np.choose(quarter, [cosine, -sine, -cosine, sine]) + 0.0


def lidar_directions(azimuths, elevations, rotation):
    """Return the directions of a lidar by the formula of NumPy, all at once."""
    (sin_a, cos_a), (sin_e, cos_e) = sine_and_cosine(azimuths), sine_and_cosine(elevations)
    sin_e, cos_e = sin_e[:, None], cos_e[:, None]
    found = np.stack(np.broadcast_arrays(cos_e * cos_a, cos_e * sin_a, sin_e), axis=-1)
    if rotation is None:
        return found
    x, y, z = np.moveaxis(found, -1, 0)
    axes = np.moveaxis(np.asarray(rotation)[..., None, None], -4, 0)  # (3, [N,] 3, 1, 1)
    rows = ([row[..., k, :, :] for k in range(3)] for row in axes)
    return np.stack([a * x + b * y + c * z for a, b, c in rows], axis=-1)


def camera(width=70, height=45):
    return rb.Rays.pinhole([3, -4, 1.5], [0.1, 0.2, 0.3], up=[0, 0.1, 1], fov=50, width=width, height=height)


def scanner(rotation=None):
    return rb.Rays.lidar([3, -4, 1.5], np.linspace(0, 359, 101), np.linspace(-20, 20, 31), rotation=rotation)


def calibrated(skew=0.0, width=70, height=45):
    matrix = [[60.3, skew, 34.1], [0, 61.7, 21.9], [0, 0, 1]]
    turn = [[0, 1, 0], [0, 0, -1], [-1, 0, 0]]
    return rb.Rays.from_camera(matrix, turn, [0.1, 0.2, 4.3], width=width, height=height)


def drive(poses=5, origins=True, rotations=True):
    """Return the rays of a lidar whose beams have azimuths of their own, at several poses."""
    rng = np.random.default_rng(8)
    path = np.linspace([3, -4, 1.5], [-1, 2, 0.5], poses) if origins else [3, -4, 1.5]
    turns = np.linalg.qr(rng.normal(size=(poses, 3, 3)))[0]
    turns *= np.linalg.det(turns)[:, None, None]
    azimuths = np.linspace(0, 359, 41) + rng.uniform(-3, 3, (11, 1))
    return rb.Rays.lidar(path, azimuths, np.linspace(-20, 20, 11), rotation=turns if rotations else None)


TURN = [[cos(0.3), -sin(0.3), 0], [sin(0.3), cos(0.3), 0], [0, 0, 1]]
SENSORS = [camera, scanner, lambda: scanner(TURN), calibrated, lambda: calibrated(1.7), drive]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(ray_sources, "_BLOCK", 48)
    monkeypatch.setattr(ray_sources, "_BLOCKS", BufferPool(ray_sources._make_block))


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.floats(3.2, 179), st.integers(0, 2**32))
def test_cameras_have_the_bits_of_the_formula(width, height, fov, seed):
    eye, target, up = np.random.default_rng(seed).normal(size=(3, 3))
    rays = rb.Rays.pinhole(eye, target, up=up, fov=fov, width=width, height=height)
    wanted = pinhole_directions(eye, target, up, fov, width, height)
    assert same_bits(rays.directions, wanted)
    assert same_bits(rays.origins, np.array(np.broadcast_to(eye, wanted.shape), order="C"))


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([0.0, -0.0, 0.3, -7.9]), st.integers(0, 2**32))
def test_calibrated_cameras_have_the_bits_of_the_formula(width, height, skew, seed):
    rng = np.random.default_rng(seed)
    turn, upper = np.linalg.qr(rng.normal(size=(3, 3)))
    turn *= np.linalg.det(turn)
    (fx, fy), (cx, cy) = rng.uniform(1, 99, 2), rng.choice([0.0, 3.0, *rng.normal(size=2)], 2)
    matrix = [[fx, skew, cx], [0, fy, cy], [0, 0, 1]]
    rays = rb.Rays.from_camera(matrix, turn, upper[0], width=width, height=height)
    wanted = calibrated_directions(matrix, turn, width, height)
    assert same_bits(rays.directions, wanted)
    assert not isinstance(rays._kernel_rays(), RayRows)
    assert same_bits(rays.origins, np.array(np.broadcast_to(rays.origins[0, 0], wanted.shape), order="C"))


@pytest.mark.parametrize("skew", [0.0, 1e300])
def test_a_calibrated_camera_whose_numbers_overflow_is_refused(skew):
    matrix, axes = [[1e-10, skew, 1e300], [0, 1, 0], [0, 0, 1]], np.eye(3)
    with pytest.raises(rb.InvalidInput, match="directions must be finite"):
        rb.Rays.from_camera(matrix, axes, [0, 0, 0], width=3, height=2)
    with pytest.raises(rb.InvalidInput, match="origins must be finite"):
        rb.Rays.from_camera(np.eye(3), TURN, [1.7e308, 1.7e308, 0], width=3, height=2)
    # no direction overflows, though the largest row and the largest column together do
    matrix[:2] = [1e-300, 0.0, -1.2e8], [0.0, 1e-300, -1.2e8]
    rays = rb.Rays.from_camera(matrix, axes, [0, 0, 0], width=3, height=2)
    assert np.isfinite(rays.directions).all()
    assert same_bits(rays.directions, calibrated_directions(matrix, axes, 3, 2))


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.floats(-720, 720), max_size=40),
    st.lists(st.floats(-90, 90), max_size=20),
    st.sampled_from([None, TURN, [TURN], [TURN, np.eye(3), TURN]]),
    st.sampled_from([(), (1,), (3,)]),
    st.booleans(),
)
def test_lidars_have_the_bits_of_the_formula(azimuths, elevations, rotation, poses, has_offsets):
    origins = np.random.default_rng(3).normal(size=(*poses, 3))
    if has_offsets:
        azimuths = np.add.outer(np.linspace(-1, 1, len(elevations)), azimuths)
    rays = rb.Rays.lidar(origins, azimuths, elevations, rotation=rotation)
    wanted = lidar_directions(azimuths, elevations, rotation)
    leading = np.broadcast_shapes(poses, np.shape(rotation)[:-2] if rotation is not None else ())
    shape = (*leading, len(elevations), np.shape(azimuths)[-1])
    assert rays.shape == shape
    assert same_bits(rays.directions, np.array(np.broadcast_to(wanted, (*shape, 3)), order="C"))
    assert same_bits(
        rays.origins, np.array(np.broadcast_to(origins[..., None, None, :], (*shape, 3)), order="C")
    )


@pytest.mark.parametrize("make", SENSORS)
def test_blocks_parts_and_picks_have_the_bits_of_the_arrays(make, small_blocks):
    rays = make()
    source, flat = rays._kernel_rays(), make().directions.reshape(-1, 3)
    starts = make().origins.reshape(-1, 3)
    count = ray_count(source)
    assert count == len(flat) > 20 * ray_sources._BLOCK
    total = 0
    for block in windows(source, 5, count - 3):
        here = slice(block.begin - block.first, block.end - block.first)
        rows = block.rays.directions[here]
        assert same_bits(rows, flat[block.begin : block.end])
        assert same_bits(block.rays.origins[here], starts[block.begin : block.end])
        assert block.end - block.first >= 16
        total += len(rows)
    assert total == count - 8
    picks = RNG.integers(0, count, 50)
    assert same_bits(select_rows(source, picks).directions, flat[picks])
    assert same_bits(select_rows(source, picks).origins, starts[picks])
    assert same_bits(select_rows(source, slice(37, 990)).origins, starts[37:990])
    part = with_ends(part_of(source, 100, 400), np.arange(300.0))
    assert same_bits(select_rows(part, slice(7, 90)).directions, flat[107:190])
    assert same_bits(select_rows(part, slice(7, 90)).origins, starts[107:190])
    assert same_bits(select_rows(part, np.array([3, 299])).origins, starts[[103, 399]])
    assert same_bits(select_rows(part, slice(7, 90)).t_max, np.arange(7.0, 90.0))
    assert same_bits(select_rows(part, np.array([3, 299])).t_max, np.array([3.0, 299.0]))


@pytest.mark.parametrize("make", SENSORS)
def test_sensors_are_rays_as_any(make):
    rays, arrays = make(), rb.Rays(make().origins, make().directions)
    assert rays.equals(arrays)
    assert rays.shape == arrays.shape
    assert len(rays) == len(arrays)
    assert rays[3, 5:9].equals(arrays[3, 5:9])
    assert rays.reshape(-1).equals(arrays.reshape(-1))
    assert rays.reshape(-1)[7:9].equals(arrays.reshape(-1)[7:9])
    assert same_bits(rays.at(2.5), arrays.at(2.5))
    assert rb.concatenate([rays, arrays]).equals(rb.concatenate([arrays, arrays]))
    for twin in (pickle.loads(pickle.dumps(rays)), copy.copy(rays), copy.deepcopy(rays.reshape(-1))):
        assert twin.reshape(rays.shape).equals(arrays)
        with pytest.raises(ValueError, match="read-only"):
            twin.directions[...] = 0
    assert len(pickle.dumps(rays)) < len(pickle.dumps(arrays)) / 5


@pytest.mark.parametrize("make", SENSORS)
def test_an_index_of_the_first_axis_makes_no_arrays(make):
    rays, arrays = make(), rb.Rays(make().origins, make().directions)
    count, whole = len(rays), len(pickle.dumps(rays))
    for stored in (False, True):
        assert (rays._kernel_rays()._arrays is not None) == stored
        for index in (0, np.int64(count - 1), -2, slice(1, 3), slice(None, -1), slice(3, 1), slice(-2, None)):
            part = rays[index]
            assert not isinstance(part._kernel_rays(), RayRows)
            assert part.shape == arrays[index].shape
            assert len(pickle.dumps(part)) < whole + 200
            assert pickle.loads(pickle.dumps(part)).equals(arrays[index])
            assert part.equals(arrays[index])
            if part.shape[0] > 2:
                assert part[1:][1].equals(arrays[index][1:][1])
        assert (rays._kernel_rays()._arrays is not None) == stored
        for index in (slice(None, None, 2), [0, 1], None, (0, 1), ..., np.arange(count) > 2):
            assert rays[index].equals(arrays[index])
    for index in (count, -count - 1):
        with pytest.raises(IndexError):
            make()[index]


def test_a_drive_stores_its_parameters_alone():
    poses = 10**6
    rays = rb.Rays.lidar(np.broadcast_to([1.0, 2, 3], (poses, 3)), range(360), range(64))
    assert rays.shape == (poses, 64, 360)
    assert len(pickle.dumps(rays[7])) < 12_000
    assert (rays[7].origins == [1, 2, 3]).all()
    assert [one.shape for one, _ in zip(rays, range(3), strict=False)] == [(64, 360)] * 3
    boxes = rb.Scene(rb.Boxes([0, 0, 0], [9, 9, 9]))
    assert boxes.count(rays[5:7]).shape == (2, 64, 360)


def test_sensors_are_not_materialised_by_queries():
    rays, scene = camera(), rb.Scene(rb.Boxes(*boxes(300)))
    scene.nearest(rays).hit.sum()
    assert rays._kernel_rays()._arrays is None
    assert scene.nearest(rays).points.shape == (45, 70, 3)
    assert rays._kernel_rays()._arrays is not None


def boxes(count, seed=5):
    rng = np.random.default_rng(seed)
    lower = np.round(rng.uniform(-1, 1, (count, 3)), 1)
    return lower, lower + np.round(rng.uniform(0, 0.4, (count, 3)), 1)


@cache
def scenes():
    made = rb.Boxes(*boxes(400))
    corners = RNG.uniform(-1, 1, (90, 3))
    mesh = rb.Mesh(corners, np.arange(90).reshape(-1, 3))
    planes = rb.Planes(np.eye(3), [0.1, 0.2, 0.3])
    copies = rb.Instances(made[:20], np.array([np.eye(4)[:3], np.eye(4)[:3] * 1.5]))
    grid = rb.Grid.uniform([-1, -1, -1], 0.1, (20, 20, 20), RNG.random((20, 20, 20)) < 0.05)
    geometries = {"boxes": made, "mesh": mesh, "planes": planes, "copies": copies, "grid": grid}
    return {name: rb.Scene(each) for name, each in (geometries | {"list": [made, mesh]}).items()}


def results(scene, rays, query):
    found = getattr(scene, query)(rays, workers=2)
    if isinstance(found, np.ndarray):
        return [found]
    return [found.index, found.t] + ([found.offsets] if query == "all" else [])


@pytest.mark.long
@pytest.mark.parametrize("name", ["boxes", "mesh", "planes", "copies", "grid", "list"])
@pytest.mark.parametrize("query", QUERIES)
def test_every_query_takes_rays_block_by_block(name, query, small_blocks):
    scene = scenes()[name]
    given = [make() for make in SENSORS]
    arrays = [rb.Rays(rays.origins, rays.directions) for rays in given]
    o, d = arrays[0].reshape(-1).origins, arrays[0].reshape(-1).directions
    narrow = d.astype(np.float32)
    given += [rb.Rays(o, d, copy=False), rb.Rays(o, np.asfortranarray(narrow), copy=False, t_max=5.0)]
    arrays += [rb.Rays(o, d), rb.Rays(o, narrow, t_max=5.0)]
    for rays, twin in zip(given, arrays, strict=True):
        found, wanted = results(scene, rays, query), results(scene, twin, query)
        assert all(map(same_bits, found, wanted))
    assert any(values.any() for values in wanted)


@pytest.mark.parametrize("query", ["first", "integrate", "deposit", "segments"])
def test_other_queries_take_rays_block_by_block(query, small_blocks):
    grid = rb.Grid.uniform([-1, -1, -1], 0.1, (20, 20, 20))
    rays, twin = camera(), rb.Rays(camera().origins, camera().directions)
    options = {"first": {"k": 3}, "deposit": {"reproducible": True}}.get(query, {})
    for scene in (
        [rb.Scene(grid)] if query == "segments" else [rb.Scene(grid), rb.Scene(rb.Boxes(*boxes(300)))]
    ):
        found, wanted = (getattr(scene, query)(each, **options) for each in (rays, twin))
        if query in ("integrate", "deposit"):
            assert same_bits(found, wanted)
            assert wanted.any()
        else:
            assert found.equals(wanted)
            assert (wanted.index >= 0).any()


# Arrays that are not copied.


def layouts(values):
    """Yield an array of vectors (N, D) in several layouts of memory, and names of these."""
    count, width = values.shape
    wide = np.zeros((2 * count, width + 2), values.dtype)
    wide[::2, 1 : 1 + width] = values
    spread = np.zeros((count, 3 * width), values.dtype)
    spread[:, ::3] = values
    yield "rows", values
    yield "columns", np.asfortranarray(values)
    yield "every other row", wide[::2, 1 : 1 + width]
    yield "spread", spread[:, ::3]
    yield "reversed", values[::-1].copy()[::-1]
    yield "reversed axes", values[:, ::-1].copy()[:, ::-1]
    unaligned = np.zeros(values.nbytes + 1, np.uint8)[1:].view(values.dtype).reshape(values.shape)
    unaligned[...] = values
    yield "unaligned", unaligned
    yield "swapped bytes", values.astype(values.dtype.newbyteorder())
    records = np.zeros(count, [("pad", "u1"), ("point", values.dtype, width)])
    records["point"] = values
    yield "records", records["point"]
    yield "two axes", np.asfortranarray(values.reshape(-1, 8, width))
    yield "two axes of rows", values.reshape(4, -1, width).transpose(1, 0, 2).copy().transpose(1, 0, 2)
    yield "three axes", values.reshape(4, 8, -1, width).transpose(2, 1, 0, 3).copy().transpose(2, 1, 0, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("count", [32, 1600])
def test_any_layout_gives_the_rays_of_a_copy(dtype, dims, count, small_blocks):
    o = RNG.normal(size=(count, dims)).astype(dtype)
    d = RNG.normal(size=(count, dims)).astype(dtype)
    d[::7] = 0
    lower, upper = (np.array(b)[:, :dims] for b in boxes(50))
    scene, names = rb.Scene(rb.Boxes(lower, upper)), set()
    for (name, starts), (_, ways) in zip(layouts(o), layouts(d), strict=True):
        rays, twin = rb.Rays(starts, ways, copy=False), rb.Rays(starts, ways)
        assert rays.equals(twin), name
        assert rays._rows().origins.shape == (count, 3)
        for one, other in zip(rays._rows(), twin._rows(), strict=True):
            assert same_bits(one, other), name
        picks = RNG.integers(0, count, 9)
        assert same_bits(select_rows(rays._kernel_rays(), picks).directions, twin._rows().directions[picks])
        assert scene.nearest(rays).equals(scene.nearest(twin)), name
        assert rays[..., ::3].equals(twin[..., ::3])
        assert rays.reshape(-1)[5:].equals(twin.reshape(-1)[5:])
        names.add(name)
    assert len(names) == 12
    assert scene.nearest(rays).hit.any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["rows", "columns", "every other"])
def test_each_number_of_any_block_is_copied_and_tested(dtype, order):
    """Blocks of sixteen and what is left of them, at any start."""
    for count in (1, 2, 15, 16, 17, 31, 33, 50):
        values = RNG.normal(size=(count, 3)).astype(dtype)
        given = {
            "rows": values,
            "columns": np.asfortranarray(values),
            "every other": np.repeat(values, 2, 0)[::2],
        }
        vectors = uncopied_rays._Vectors(given[order])
        for begin in {0, count // 3, count - 1}:
            memory = np.full((count + 1, 3), 7.0)
            found = vectors.block(begin, count, memory)
            assert same_bits(found.rows, values[begin:].astype(float))
            assert found.finite
            if not vectors.is_in_place:
                assert (memory[count - begin :] == 7).all()
        for place in range(3 * count):
            bad = given[order].copy(order="K")
            bad[np.unravel_index(place, bad.shape)] = (np.nan, np.inf, -np.inf)[place % 3]
            assert not uncopied_rays._Vectors(bad).block(0, count, np.empty((count, 3))).finite


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copies_past_the_caches_are_copies(past, dtype):
    memory = np.full(400, 7.0)
    start = -memory.ctypes.data % 64 // 8
    for count in (0, 1, 7, 8, 15, 16, 17, 24, 40, 99):
        values, out = RNG.normal(size=count).astype(dtype), memory[start : start + count]
        assert ray_blocks.copy_finite(values, out, past)
        assert same_bits(out, values.astype(float))
        assert (memory[start + count :] == 7).all()
        memory[:] = 7
        for place in range(count):
            bad = values.copy()
            bad[place] = (np.nan, np.inf, -np.inf)[place % 3]
            assert not ray_blocks.copy_finite(bad, out, past)
        memory[:] = 7


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_arrays_are_copied_and_tested(dtype):
    count = ray_input._PAST_CACHES // 3 + 5
    o, d = np.ones((count, 3), dtype), np.full((count, 3), 0.1, dtype)
    rays = rb.Rays(o, d)
    o[:], d[:] = 5, 6
    assert (rays.origins == 1).all()
    assert (rays.directions == np.float64(dtype(0.1))).all()
    for bad, name in ((o, "origins"), (d, "directions")):
        bad[count - 1, 2] = np.nan
        with pytest.raises(rb.InvalidInput, match=f"{name} must be finite; 1 of {count} break this"):
            rb.Rays(o, d)
        assert (rb.Rays(o, d, invalid="miss").t_min == np.inf).sum() == 1
        bad[:] = 1


ODD = {
    "broadcast": lambda v: np.broadcast_to(v[:1], v.shape),
    "negative strides": lambda v: v[::-1, ::-1],
    "read-only": lambda v: np.frombuffer(v.tobytes()).reshape(v.shape),
    "big-endian": lambda v: v.astype(">f8"),
    "big-endian float32": lambda v: v.astype(">f4"),
    "float16": lambda v: v.astype(np.float16),
    "integers": lambda v: (9 * v).astype(np.int32),
    "unsigned": lambda v: np.abs(9 * v).astype(np.uint8),
    "booleans": lambda v: v > 0,
    "long double": lambda v: v.astype(np.longdouble),
    "lists": lambda v: v.tolist(),
    "fields": lambda v: np.rec.fromarrays([v[:, k] for k in range(3)], names="x,y,z").view((v.dtype, 3)),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("count", [5, 1500])
def test_odd_arrays_give_the_rays_of_a_copy(name, count):
    scene = rb.Scene(rb.Boxes([-1, -1, -1], [1, 1, 1]))
    starts = RNG.normal(size=(count, 3)).round(3)
    o, d = ODD[name](starts), ODD[name](-starts)
    before = np.array(o), np.array(d)
    rays, twin = rb.Rays(o, d, copy=False), rb.Rays(o, d)
    assert rays.equals(twin)
    for one, other in zip(rays._rows(), twin._rows(), strict=True):
        assert same_bits(one, other)
    found = scene.nearest(rays)
    assert found.equals(scene.nearest(twin))
    assert found.hit.any() or name in ("unsigned", "booleans")
    assert np.array_equal(before[0], o)
    assert np.array_equal(before[1], d)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("count", [4, 1500, pytest.param(40_000, marks=pytest.mark.long)])
def test_rays_in_place_are_checked_where_their_rays_hit_nothing(which, bad, count):
    """Each array by itself: a ray that misses everything, among rays that do, too, is refused."""
    arrays = [np.full((count, 3), 50.0), np.ones((count, 3))]
    scene = rb.Scene(rb.Boxes(*boxes(300)))
    assert not scene.count(rb.Rays(*arrays, copy=False)).any()
    for place in (0, count // 2 + 1, count - 1):
        arrays[which][place, place % 3] = bad
        name = ("origins", "directions")[which]
        for query in QUERIES:
            with pytest.raises(rb.InvalidInput, match=f"{name} must be finite; 1 of {count}"):
                getattr(scene, query)(rb.Rays(*arrays, copy=False))
        arrays[which][place] = 50 if which == 0 else 1
    with pytest.raises(rb.InvalidInput, match="shape"):
        rb.Rays(arrays[0], arrays[1][:, :2], copy=False)
    with pytest.raises(rb.InvalidInput, match="shape"):
        rb.Rays(arrays[0].reshape(-1), arrays[1], copy=False)


@pytest.mark.parametrize("count", [4, 1500])
def test_uncopied_zero_directions_are_points(count):
    o, d = RNG.uniform(-1.5, 1.5, (count, 3)), np.zeros((count, 3))
    o[:2], d[1::2] = [[0.5, 0.5, 0.5], [1.2, 0.5, 0.5]], -0.0
    scene = rb.Scene(rb.Boxes([-1, -1, -1], [1, 1, 1]))
    inside = (np.abs(o) <= 1).all(axis=1)
    assert (scene.occluded(rb.Rays(o, d, copy=False)) == inside).all()
    assert inside.any()
    assert not inside.all()


def test_broadcast_origins_are_not_copied():
    d = RNG.normal(size=(5, 400, 3)).astype(np.float32)
    o = RNG.normal(size=(5, 1, 3))
    rays, twin = rb.Rays(o, d, copy=False), rb.Rays(o, d)
    assert rays.equals(twin)
    scene = rb.Scene(rb.Boxes(*boxes(50)))
    assert scene.count(rays).sum() == scene.count(twin).sum() > 0
    assert np.shares_memory(rays._kernel_rays().given.origins, o)
    assert rb.Rays([0, 0, 0], d, copy=False).equals(rb.Rays([0, 0, 0], d))


def test_later_changes_of_arrays_are_changes_of_the_rays():
    o, d = np.zeros((2000, 3)), np.zeros((2000, 3))
    d[:, 0] = 1
    scene = rb.Scene(rb.Boxes([2, -1, -1], [3, 1, 1]))
    rays, part, flat = (
        make(rb.Rays(o, d, copy=False)) for make in (lambda r: r, lambda r: r[5:], lambda r: r.reshape(2, -1))
    )
    assert scene.count(rays).all()
    o[:, 1] = 7
    for changed in (rays, part, flat):
        assert not scene.count(changed).any()
    assert (rays.origins[:, 1] == 7).all()
    with pytest.raises(ValueError, match="read-only"):
        rays.origins[0] = 0
    assert o.flags.writeable
    before = pickle.loads(pickle.dumps(rays))
    o[:, 1] = 0
    assert scene.count(rays).all()
    assert not scene.count(before).any()


@pytest.mark.long
@pytest.mark.parametrize(("count", "bad"), [(3, np.nan), (1000, np.inf), (5000, -np.inf), (40_000, np.nan)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("aligned", [False, True])
def test_a_query_refuses_what_a_copy_refuses(count, dtype, bad, aligned):
    o = np.zeros((count, 3), dtype)
    d = (np.array([[1.0, 0.1, 0.0]]) + RNG.normal(size=(count, 3)) * (not aligned) * 1e-3).astype(dtype)
    (d if count % 3 else o)[min(count - 1, count // 2 + 7), 1] = bad  # in no sample of coherence
    with pytest.raises(rb.InvalidInput) as wanted:
        rb.Rays(o, d)
    rays = rb.Rays(o, d, copy=False)
    for scene in scenes().values():
        for query in ("nearest", "count"):
            with pytest.raises(rb.InvalidInput) as found:
                getattr(scene, query)(rays)
            assert str(found.value) == str(wanted.value)
    with pytest.raises(rb.InvalidInput, match="must be finite"):
        pickle.dumps(rays)
    with pytest.raises(rb.InvalidInput, match="must be finite"):
        rb.concatenate([rays, rays])
    with pytest.raises(rb.InvalidInput, match="must be finite"):
        rb.intersect(rays, rb.Boxes([0, 0, 0], [1, 1, 1]))


@pytest.mark.parametrize("count", [30, 3000])
def test_a_query_refuses_ranges_and_lets_invalid_rays_miss(count):
    o, d = np.zeros((count, 3)), np.ones((count, 3), np.float32)
    low, high = np.zeros(count), np.full(count, 9.0)
    low[7], high[9], o[11, 2], d[20, 0] = 10.0, np.nan, np.inf, np.nan
    scene = rb.Scene(rb.Boxes([-1, -1, -1], [1, 1, 1]))
    with pytest.raises(rb.InvalidInput) as wanted:
        rb.Rays(o, d, t_min=low, t_max=high)
    rays = rb.Rays(o, d, t_min=low, t_max=high, copy=False)
    with pytest.raises(rb.InvalidInput) as found:
        scene.nearest(rays)
    assert str(found.value) == str(wanted.value)
    rays, twin = (
        rb.Rays(o, d, t_min=low, t_max=high, invalid="miss", copy=copied) for copied in (False, True)
    )
    assert scene.nearest(rays).equals(scene.nearest(twin))
    assert np.flatnonzero(~scene.nearest(rays).hit).tolist() == [7, 9, 11, 20]
    with pytest.raises(rb.InvalidInput, match="must not exceed"):
        scene.nearest(rb.Rays(o[:5], d[:5], t_min=np.array([2.0]), t_max=np.array([1.0]), copy=False))


def test_what_needs_conversion_is_converted_at_once():
    with pytest.raises(rb.InvalidInput, match="float64 holds exactly"):
        rb.Rays([0, 0, 2**53 + 1], [1, 0, 0], copy=False)
    with pytest.raises(rb.InvalidInput, match="shape"):
        rb.Rays(np.zeros((3, 4)), np.zeros((3, 4)), copy=False)
    with pytest.raises(rb.InvalidInput, match="broadcast"):
        rb.Rays(np.zeros((3, 3)), np.zeros((2, 3)), copy=False)
    for empty in (rb.Rays([], [], copy=False), rb.Rays(np.zeros((0, 2)), np.zeros((0, 2), "f4"), copy=False)):
        scene = rb.Scene(rb.Boxes([0] * empty.ndim_space, [1] * empty.ndim_space))
        assert scene.nearest(empty).shape == (0,)
    single = rb.Rays(np.zeros(3, "f4"), np.ones(3), copy=False)
    assert single.shape == ()
    assert rb.Scene(rb.Boxes([0, 0, 0], [1, 1, 1])).nearest(single).index == 0
