"""Blocks of rays that are culled hit nothing in rational arithmetic, by however little they miss."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

import exact
import raybox as rb
from aim import INF, Pairs
from loops import loop
from raybox.bvh.build import build
from raybox.bvh.node import CHILD, EMPTY, WIDTH
from raybox.compiler import huge_pages
from raybox.queries import batches
from raybox.traversal.block_culling import Block, is_culled
from raybox.traversal.job import Job
from raybox.traversal.packet_tiles import SIDE
from raybox.traversal.ray_setup import frame_of
from test_many_rays import run_query, truth
from test_packet import packet_calls  # noqa: F401  # a fixture

SIZE = 16  # rays of a block's side
NO_MASK = np.empty(0, np.bool_)
NO_MASK.flags.writeable = False
BLOCK = Block(0, SIZE, 4, 4, SIDE)


@loop
def culled(job, block):
    return is_culled(job, block)


def exact_tree(lower, upper, center):
    """Return a tree of one node whose slots are these boxes, less a centre, not rounded outward."""
    tree = build(lower, upper)
    nodes = tree.nodes.copy()
    children = nodes[0, CHILD:]
    assert len(nodes) == 1
    planes = nodes.view(np.float32)[0, :CHILD].reshape(2, 3, WIDTH)
    some = children != EMPTY
    for side, corners in zip(planes, (lower, upper), strict=True):
        side[:, some] = (corners - center)[~children[some]].T
        assert (side[:, some].T + center == corners[~children[some]]).all()
    nodes.flags.writeable = False
    root = np.array([planes[0].min(1), planes[1].max(1)], float)
    center.flags.writeable = root.flags.writeable = False
    return tree._replace(nodes=nodes, center=center, scale=1.0, exponent=0, root=root)


def job_of(pairs: Pairs, tree=None) -> Job:
    boxes = rb.Boxes(*pairs[4:])._rows()
    tree = tree or build(*boxes)
    rays = rb.Rays(*pairs[:2], t_min=pairs[2], t_max=pairs[3], invalid="miss")._rows()
    return Job(tree, boxes, rays, NO_MASK, frame_of(tree))


def hit_counts(pairs: Pairs) -> np.ndarray:
    """Return how many boxes each ray hits."""
    return np.array([len(row) for row in exact.contacts(*pairs)])


def counted(counts: Counter, pairs: Pairs, is_none: bool) -> None:
    """Assert that a block is culled only if nothing is hit; count what it was."""
    hits = np.count_nonzero(hit_counts(pairs))
    assert not (is_none and hits), hits
    counts["culled" if is_none else "kept"] += 1
    counts["one hit"] += hits == 1
    counts["kept without hits"] += hits == 0 and not is_none


NUDGES = [-(2**30), -128, -1, 0, 0, 1, 128, 2**30]  # units in the last place


def grazing(rng, kind: str) -> tuple[Pairs, np.ndarray, int]:
    """Return a block of which one ray goes through an edge of a box; a centre; how much inside it was nudged.

    In the plane of two axes a quarter is box: beyond the edge on the first axis, before it on the second. The
    other rays are faster on the second axis: there they leave the box before they enter it on the first.
    """
    first, second, third = rng.permutation(3)
    side, bits = rng.choice([-1.0, 1.0], 3), 47 if kind == "rounded" else 23
    way = rng.integers(2**bits, 2 ** (bits + 1), 3) * side * (np.arange(3) != third) * 2.0**-bits
    way[third] = rng.choice([0.0, 2.0**-70, 2.0**-20]) * way[first]
    time = 2.0 ** rng.integers(0, 3) * {"far": 2.0**20, "near": 2.0**-24}.get(kind, 1.0)
    edge = rng.integers(-(2**23), 2**23, 3) * 2.0**-22
    if kind == "rounded":
        edge = rng.integers(-16, 16, 3) / 8
    if kind == "from zero":
        edge = time * way
    edge[third] = -2.0
    inward = np.where(np.arange(3) == second, -side, side)
    far = edge + 4.0 * inward
    far[third] = 2.0
    lower, upper = (f(edge, far).astype(np.float32).astype(float) for f in (np.minimum, np.maximum))
    origin = np.where(inward > 0, lower, upper) - time * way
    origin[third] = 0.125
    steps = int(rng.choice(NUDGES))
    size = max(abs(origin[second]), abs(edge[second]))
    origin[second] -= steps * np.spacing(size) * side[second]
    ways = np.tile(way, (SIZE * SIZE, 1))
    ways[1:, second] *= 1.0 + rng.random(SIZE * SIZE - 1)
    ways = ways[rng.permutation(SIZE * SIZE)]
    ends = np.zeros(len(ways)), np.full(len(ways), INF)
    center = np.full(3, 2.0**20 if kind == "rounded" else 0.0)
    return Pairs(np.tile(origin, (len(ways), 1)), ways, *ends, lower[None], upper[None]), center, steps


@pytest.mark.core
@pytest.mark.parametrize("kind", ["any", "far", "near", "from zero", "rounded"])
def test_blocks_that_graze_an_edge(kind):
    """One ray goes through an edge, or beside it by units in the last place."""
    counts: Counter = Counter()
    for seed in range(120):
        pairs, center, steps = grazing(np.random.default_rng(seed), kind)
        is_none = culled(job_of(pairs, exact_tree(*pairs[4:], center)), BLOCK)
        counted(counts, pairs, is_none)
        counts["touched"] += steps == 0 and not is_none
    counts.pop("kept without hits")
    assert min(counts.values()) > 5, counts
    assert counts["touched"] > 10, counts


def alike(origin, direction, lower, upper, low=0.0) -> Pairs:
    """Return a block of the same ray, and a box."""
    rows = [np.tile(np.array(x, float), (SIZE * SIZE, 1)) for x in (origin, direction)]
    ends = np.full(SIZE * SIZE, low), np.full(SIZE * SIZE, INF)
    return Pairs(*rows, *ends, np.array([lower], float), np.array([upper], float))


def test_hits_before_the_origin():
    """One ray of a wide picture goes back to the box."""
    x, y = (a.ravel() for a in np.meshgrid(*[np.linspace(-1.0, 1.0, SIZE)] * 2))
    pairs = alike([0, 0, 0], [0, 0, 1], [0.99, 0.99, -1.01], [1.01, 1.01, -0.99], low=-2.0)
    pairs.directions[:] = np.stack([x, y, np.ones(len(x))], axis=1)
    assert np.count_nonzero(hit_counts(pairs)) == 1
    assert not culled(job_of(pairs), BLOCK)
    assert culled(job_of(pairs._replace(t_min=np.zeros(len(x)))), BLOCK)


def test_directions_that_have_no_inverse():
    """Hits so late that times overflow; a half-space ends no ray."""
    ways = [1.0, 2.0**-1050, -(2.0**-1012)]
    pairs = alike([0, 0, 0], ways, [-INF, 2.0**-40, -(2.0**10)], [INF, 1, 1])
    assert hit_counts(pairs).all()
    assert not culled(job_of(pairs, exact_tree(*pairs[4:], np.zeros(3))), BLOCK)


def bundle(rng) -> Pairs:
    """Return a block of rays of any kind, and some boxes."""
    x, y = (a.ravel() for a in np.meshgrid(*[np.linspace(-1.0, 1.0, SIZE)] * 2))
    eye, goal = rng.uniform(-3, 3, 3), rng.uniform(-1, 1, 3)
    lower = rng.uniform(-1, 1, (rng.integers(1, 9), 3))
    upper = lower + rng.uniform(0, 0.3, lower.shape)
    if rng.random() < 0.5:  # ties, faces in one plane, directions of zeros
        eye, goal = np.round(eye), np.round(goal)
        lower, upper = np.round(lower * 4) / 4, np.round(upper * 4) / 4
    if rng.random() < 0.3:
        eye = lower[0] + 0.5 * (upper[0] - lower[0])
    picture = np.stack([x, y, 0.0 * x], axis=1)[:, rng.permutation(3)] * 2.0 ** rng.integers(-9, 1)
    origins, ways = np.tile(eye, (len(x), 1)), goal + picture - eye
    if rng.random() < 0.3:
        origins, ways = origins + picture, np.tile(goal - eye, (len(x), 1))
    low, high = np.zeros(len(x)), np.full(len(x), INF)
    match rng.integers(0, 6):
        case 0:
            high[:] = rng.random(len(x))
        case 1:
            low[:], high[:] = rng.uniform(0.5, 1.5), INF
        case 2:
            low[:] = -rng.random(len(x))
        case 3:
            low[rng.integers(0, len(x))], high[rng.integers(0, len(x))] = -2.0, -1.0
    if rng.random() < 0.3:
        some = rng.integers(0, len(x), 3)
        ways[some[0]], low[some[1]], high[some[1]] = 0.0, INF, -INF
        ways[some[2], rng.integers(0, 3)] = np.nan
    far = 2.0 ** rng.choice([0, 0, 40])  # where origins are rounded
    origins, size = origins - (far - 1.0) * ways, 2.0 ** rng.choice([0.0, -30.0, 30.0])
    shift = rng.uniform(-1, 1, 3) * rng.choice([0.0, 1e3])
    return Pairs(origins * size + shift, ways * size, low, high, lower * size + shift, upper * size + shift)


@pytest.mark.core
def test_blocks_of_any_rays():
    """Zeros, changes of signs, origins in boxes, ranges, rays that are not valid, far eyes."""
    counts: Counter = Counter()
    for seed in range(300):
        pairs = bundle(np.random.default_rng(seed))
        is_none = culled(job_of(pairs), BLOCK)
        counted(counts, pairs, is_none)
        counts["signs change, culled"] += is_none and (np.ptp(np.sign(pairs.directions), axis=0) > 0).any()
        counts["finite range, culled"] += is_none and np.isfinite(pairs.t_max).all()
    assert min(counts.values()) > 5, counts


# Pictures


def view(width: int, height: int, seed: int) -> Pairs:
    """Return a picture of a few boxes, some rays of which are strange."""
    rng = np.random.default_rng(seed)
    x, y = (a.ravel() for a in np.meshgrid(np.arange(width) - width / 2, np.arange(height) - height / 2))
    goals = np.stack([x, 0.0 * x, -y], axis=1) * 0.06
    eyes = np.tile(rng.uniform(-1, 1, 3) - [0.0, 9.0, 0.0], (len(x), 1))
    lower = rng.uniform(-2, 2, (rng.integers(3, 6), 3))
    lower = np.concatenate([lower, lower[:1]])
    low, high = np.zeros(len(x)), np.full(len(x), INF)
    some = rng.integers(0, len(x), 4)
    ways = goals - eyes
    low[some[0]], high[some[1]], ways[some[2]], low[some[3]], high[some[3]] = -1.0, 0.5, 0.0, INF, -INF
    return Pairs(eyes, ways, low, high, lower, lower + rng.uniform(0, 0.5, lower.shape))


@cache
def viewed(width: int, height: int) -> tuple[Pairs, list[list[exact.Found]]]:
    """Return a picture, and the exact hits of each ray."""
    pairs = view(width, height, width)
    return pairs, list(exact.along(*pairs))


def filled(array: np.ndarray) -> np.ndarray:
    """Fill new memory of results with what no result is."""
    array[...] = 5
    return array


@pytest.mark.parametrize("query", ["nearest", "occluded", "count", "all"])
def test_pictures_of_scattered_boxes(query, packet_calls, monkeypatch):  # noqa: F811
    """Tiles that are culled and tiles that are not have the results of Fractions, whatever the rows are."""
    counts: Counter = Counter()
    new = huge_pages.pooled
    monkeypatch.setattr(huge_pages, "pooled", lambda shape, kind: filled(new(shape, kind)))
    for width, height in [(64, 48), (72, 41), (52, 36), (88, 52), (20, 80), (256, 9), (16, 70)]:
        pairs, found = viewed(width, height)
        for length in (width, 0):
            monkeypatch.setattr(batches, "row_length", lambda *_, length=length: length)
            assert run_query(query, pairs) == truth(query, found), (width, length)
        where = np.arange(len(pairs.lower)) % 2 == 0
        some = [[f for f in row if where[f.index]] for row in found]
        assert run_query(query, pairs, where=where) == truth(query, some), width
        job = job_of(pairs)
        for first in (np.arange(0, height - 15, 16)[:, None] * width + np.arange(0, width - 15, 16)).ravel():
            is_none = culled(job, Block(int(first), width, 4, 4, SIDE))
            counts["culled" if is_none else "kept"] += 1
        counts["hit"] += sum(map(bool, found))
    assert packet_calls
    assert min(counts.values()) > 5, counts


def test_fans_in_the_plane():
    """A scene in 2D: 256 rays in a row are a block."""
    rng = np.random.default_rng(3)
    lower = rng.uniform(-1, 1, (6, 2))
    angles = np.linspace(-0.6, 0.6, 5000)
    ways = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    eyes = np.tile([-4.0, 0.1], (len(ways), 1))
    pairs = Pairs(eyes, ways, np.zeros(len(ways)), np.full(len(ways), INF), lower, lower + 0.1)
    found = list(exact.along(*pairs))
    got = rb.Scene(rb.Boxes(*pairs[4:])).count(rb.Rays(eyes, ways))
    np.testing.assert_array_equal(got, [len(row) for row in found])
    assert 100 < np.count_nonzero(got) < 4000


def test_pictures_of_one_group():
    """Rays of a group start at several nodes: each has boxes that only they may hit."""
    pairs = view(64, 64, 7)
    groups = np.arange(len(pairs.lower)) % 3
    scene, some = rb.Scene(rb.Boxes(*pairs[4:]), groups=groups), rb.Rays(*pairs[:2])
    for group in range(3):
        alone = rb.Scene(rb.Boxes(*(corners[groups == group] for corners in pairs[4:]))).count(some)
        np.testing.assert_array_equal(scene.count(some, groups=group), alone)
        assert 0 < np.count_nonzero(alone) < len(alone)
