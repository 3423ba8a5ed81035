"""`Scene.visible`: lines of sight against whole numbers, on all kinds of scenes."""

from fractions import Fraction

import numpy as np
import pytest

import exact
import raybox as rb

N = 24
COUNTS = {0.0: (293, 61), 0.25: (337, 0), 0.5: (337, 14), 1.0: (351, 36), 2.0: (377, 18)}
"""By margin: segments that see each other, and those that end at a box."""


def squares(ways):
    return [sum(Fraction(x) ** 2 for x in way) for way in ways.tolist()]


def sees_past_boxes(starts, ends, margin, lower, upper):
    """Return whether each segment without its margins hits no box, and how many end exactly at one.

    Margins are exact shares of the lengths here: m = margin / length is rounded once from exact squares.
    """
    ways = ends - starts
    found, touches = [], 0
    for start, way, square, own in zip(starts, ways, squares(ways), margin, strict=True):
        if square < 4 * Fraction(own) ** 2:
            found.append(True)
            continue
        m = float(own / Fraction(float(square) ** 0.5)) if square else 0.0
        assert not square or Fraction(own) ** 2 == Fraction(m) ** 2 * square, "the test needs exact quotients"
        hits = [
            exact.by_slabs(start, way, m, 1.0 - m, low, high) for low, high in zip(lower, upper, strict=True)
        ]
        found.append(not any(hits))
        touches += any(hit.t == 1.0 - m or hit.t_exit == m for hit in hits if hit)
    return found, touches


@pytest.fixture(scope="module")
def cells():
    """A third of the cells of a grid of whole numbers, and segments along the axes between its corners."""
    rng = np.random.default_rng(4)
    shape = (5, 4, 3)
    occupied = rng.random(shape) < 0.3
    lower = np.argwhere(occupied).astype(float)
    starts = rng.integers(-1, 6, (400, 3)).astype(float)
    ways, axis = np.zeros((400, 3)), rng.integers(0, 3, 400)
    ways[np.arange(400), axis] = rng.choice([-4.0, -2, -1, 0, 1, 2, 4, 8], 400)
    return occupied, lower, starts, starts + ways


@pytest.mark.core
@pytest.mark.parametrize("margin", [0.0, 0.25, 0.5, 1.0, 2.0])
def test_lines_of_sight_between_corners_of_cells(cells, margin):
    """Ends touch cells, and margins end at faces of cells; segments of two margins are points."""
    occupied, lower, starts, ends = cells
    want, touches = sees_past_boxes(starts, ends, [margin] * len(starts), lower, lower + 1)
    boxes = rb.Boxes(lower, lower + 1)
    half = len(lower) // 2
    scenes = [
        rb.Scene(boxes),
        rb.Scene(rb.Grid.uniform([0, 0, 0], 1.0, occupied.shape, occupied=occupied)),
        rb.Scene([boxes[:half], boxes[half:]]),
        rb.Scene(rb.Instances(boxes, np.eye(4))),
    ]
    for scene in scenes:
        found = scene.visible(starts.reshape(20, 20, 3), ends.reshape(20, 20, 3), margin=margin)
        assert found.shape == (20, 20)
        assert found.ravel().tolist() == want
    assert (sum(want), touches) == COUNTS[margin]


def test_each_segment_has_a_margin_of_its_own(cells):
    _, lower, starts, ends = cells
    margin = np.random.default_rng(5).choice([0.0, 0.25, 0.5, 1.0], len(starts))
    want, _ = sees_past_boxes(starts, ends, margin.tolist(), lower, lower + 1)
    scene = rb.Scene(rb.Boxes(lower, lower + 1))
    assert scene.visible(starts, ends, margin=margin).tolist() == want
    mask = np.arange(len(lower)) % 2 == 0
    some, _ = sees_past_boxes(starts, ends, margin.tolist(), lower[mask], lower[mask] + 1)
    assert scene.visible(starts, ends, margin=margin, where=mask, workers=1).tolist() == some
    assert some != want


def terrain(size):
    """Return a terrain as a mesh of two triangles a cell: heights are quarters."""
    x, y = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    z = np.rint(16 * (np.sin(x / 3.0) + np.cos(y / 2.0) + np.sin((x + y) / 5))) / 4
    a = (np.arange(size - 1)[:, None] * size + np.arange(size - 1)).reshape(-1)
    faces = np.concatenate([np.stack([a, a + size, a + 1], 1), np.stack([a + size, a + size + 1, a + 1], 1)])
    return np.stack([x, y, z], axis=-1).reshape(-1, 3).astype(float), faces


def is_above(height, x, y):
    """Return the height of the terrain at a point, exactly."""
    i, j = min(int(x), N - 2), min(int(y), N - 2)
    u, v = x - i, y - j
    a, b, c, d = map(Fraction, height[i : i + 2, j : j + 2].T.ravel().tolist())
    return a + u * (b - a) + v * (c - a) if u + v <= 1 else d + (1 - u) * (c - d) + (1 - v) * (b - d)


def sees(height, eye, point, m):
    """Return whether a segment is above the terrain for t in [m, 1 - m]: tested where it crosses edges."""
    (ex, ey, ez), way = eye, [p - e for p, e in zip(point, eye, strict=True)]
    times = {Fraction(m), Fraction(1.0 - m)}
    for at, step in ((ex, way[0]), (ey, way[1]), (ex + ey, way[0] + way[1])):
        low, high = sorted((at, at + step))
        times |= {(k - at) / step for k in range(int(low), int(high) + 2) if step}
    times = [t for t in times if m <= t <= 1.0 - m]
    return all(ez + t * way[2] > is_above(height, ex + t * way[0], ey + t * way[1]) for t in times)


@pytest.mark.core
def test_lines_of_sight_over_a_terrain():
    """The naive line of sight sees almost nothing, since each of its ends is a hit."""
    vertices, faces = terrain(N)
    height, scene = vertices[:, 2].reshape(N, N), rb.Scene(rb.Mesh(vertices, faces))
    eye = np.array([2.25, 3.5, height[2:4, 3:5].max() + 0.5])
    points = vertices[(vertices[:, :2] > 0).all(axis=1) & (vertices[:, :2] < N - 1).all(axis=1)]
    visible = scene.visible(eye, points)
    fractions = [tuple(map(Fraction, point)) for point in points.tolist()]
    want = [sees(height, tuple(map(Fraction, eye.tolist())), point, 1e-9) for point in fractions]
    assert visible.tolist() == want
    naive = ~scene.occluded(rb.Rays.segments(eye, points))
    assert 0.3 < visible.mean() < 0.5
    assert naive.sum() == 0
    assert scene.visible(points, eye).tolist() == want
    assert (scene.visible(eye, points, margin=1e-6) == visible).mean() > 0.99


def test_eyes_inside_and_short_segments():
    scene = rb.Scene(rb.Boxes([[0, 0], [3, 0]], [[1, 1], [4, 1]]))
    assert not scene.visible([0.5, 0.5], [[2, 0.5], [0.75, 0.5], [0.5, 9.0]]).any()
    assert scene.visible([0.5, 0.5], [2, 0.5], where=[False, True])
    assert scene.visible([1, 0.5], [3, 0.5])
    assert not scene.visible([1, 0.5], [5, 0.5])
    assert scene.visible([0.5, 0.5], [0.5, 0.5])  # shorter than two margins
    assert not scene.visible([0.5, 0.5], [0.5, 0.5], margin=0)
    assert scene.visible([0.5, 0.5], [0.75, 0.5], margin=0.25)
    assert not scene.visible([0.5, 0.5], [1.0, 0.5], margin=0.25)  # of two margins: the point between
    single = scene.visible([1, 0.5], [3, 0.5])
    assert (type(single), single.shape, single.dtype) == (np.ndarray, (), np.bool_)
    assert scene.visible(np.empty((0, 2)), [1, 1]).shape == (0,)
    assert scene.visible([[[0, 2]], [[0, -1]]], [[4, 2], [4, -1], [4, 5]]).shape == (2, 3)


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (([0, np.nan], [1, 1]), r"^starts must be finite; got starts = \[0.0, nan\]. Drop those points\.$"),
        (
            ([0, 0], [[1, 1], [np.inf, 1]]),
            r"^ends - starts must be finite; 1 of 2 break this, .*Drop those points\.$",
        ),
        (([0, 0, 0], [1, 1, 1]), "rays must have the scene's dimensions, D = 2"),
        (([0, 0], [1, 1, 1]), "starts and ends must broadcast"),
    ],
)
def test_wrong_points_are_refused(points, words):
    scene = rb.Scene(rb.Boxes([0, 0], [1, 1]))
    with pytest.raises(rb.InvalidInput, match=words):
        scene.visible(*points)
    with pytest.raises(rb.InvalidInput, match="margin must be finite and not negative"):
        scene.visible([0, 0], [1, 1], margin=-1)
