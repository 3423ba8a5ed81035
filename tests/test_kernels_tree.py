"""The tree from inside: it proposes every box that is met, its rays are never too strict, its work is counted."""

import math
from fractions import Fraction

import numba
import numpy as np
import pytest

import exact
import families
import raybox as rb
from aim import INF, Pairs
from raybox.bvh import queries, sinks
from raybox.bvh.build import build
from raybox.bvh.check import depth_of
from raybox.bvh.layout import CHILD, EMPTY, FAR, ROW, WIDTH, outward_down, outward_up
from raybox.bvh.probe import latest, make_probe
from raybox.bvh.refit import refit
from raybox.bvh.traverse import _meet_slots, make_scratch
from raybox.kernels.jit import FLAGS
from raybox.kernels.ray import get_ray
from scenes import as_rays, random_scene

loop = numba.njit(**(FLAGS | {"_nrt": True}))
LARGEST = Fraction(1.7976931348623157e308)
MARGIN = Fraction(2) ** -101


@loop
def outward(x, down, up):
    for k in range(x.size):
        down[k], up[k] = outward_down(x[k]), outward_up(x[k])


@loop
def latest_of(t, exponent, shift, out):
    for k in range(t.size):
        out[k] = latest(t[k], exponent[k], shift[k])


@loop
def probe_of(tree, rays, out):
    """Write near, far and inverse of three axes, the range, exponent and shift of each ray's probe."""
    for k in range(out.shape[0]):
        meets, probe = make_probe(tree, get_ray(rays, k))
        for i in range(3):
            out[k, i], out[k, 3 + i], out[k, 6 + i] = probe.near[i], probe.far[i], probe.inverse[i]
        out[k, 9], out[k, 10], out[k, 11], out[k, 12] = probe.start, probe.stop, probe.exponent, probe.shift
        out[k, 13] = meets


@loop
def proposed(tree, rays, asked, t, slots, out):
    """Write whether slots (ray, node, slot) are proposed, and still are where a contact at t is known."""
    for k in range(asked.shape[0]):
        _, probe = make_probe(tree, get_ray(rays, asked[k, 0]))
        row, bit = asked[k, 1] * ROW, 1 << asked[k, 2]
        out[k, 0] = _meet_slots(tree.nodes, row, probe, probe.stop, slots) & bit != 0
        stop = min(probe.stop, latest(t[k], probe.exponent, probe.shift))
        out[k, 1] = _meet_slots(tree.nodes, row, probe, stop, slots) & bit != 0 and slots[asked[k, 2]] <= stop


# Rounding outward


def test_outward_is_outward_and_not_by_much():
    rng = np.random.default_rng(1)
    x = rng.uniform(1, 2, 4000) * np.ldexp(rng.choice([-1.0, 1.0], 4000), rng.integers(-160, 60, 4000))
    ones = 1 + rng.integers(0, 4, 1000) * 2.0**-24  # floats of 32 bits, and middles between two
    x = np.concatenate([x, ones, -ones, [0.0, -0.0, 5e-324, -5e-324, 2.0**-149, 2.0**60, -(2.0**60)]])
    down, up = np.empty(x.size, np.float32), np.empty(x.size, np.float32)
    outward(x, down, up)
    np.testing.assert_array_equal(up, -_down_of(-x))
    for value, low in zip(map(Fraction, x), map(Fraction, down.astype(float)), strict=True):
        room = value - low
        assert MARGIN + abs(value) / 2**25 < room < 2 * MARGIN * 2 + abs(value) / 2**22


def _down_of(x):
    down, up = np.empty(x.size, np.float32), np.empty(x.size, np.float32)
    outward(x, down, up)
    return down


def test_what_is_far_moves_outward():
    far = np.array([np.nextafter(2.0**60, INF), 1e300, INF])
    down, up = np.empty(3, np.float32), np.empty(3, np.float32)
    outward(far, down, up)
    assert (down.tolist(), up.tolist()) == ([FAR] * 3, [INF] * 3)
    outward(-far, down, up)
    assert (down.tolist(), up.tolist()) == ([-INF] * 3, [-FAR] * 3)


def test_the_latest_time_is_late():
    rng = np.random.default_rng(2)
    n = 3000
    t = rng.uniform(1, 2, n) * np.ldexp(rng.choice([-1.0, 1.0], n), rng.integers(-60, 60, n))
    exponent = rng.integers(-40, 40, n)
    near = np.ldexp(t, exponent) * (1 + rng.choice([0.0, 2.0**-52, -(2.0**-40), 1.0], n))
    shift = np.where(rng.random(n) < 0.5, 0.0, near)
    t[:400] *= np.ldexp(1.0, rng.integers(-900, 900, 400))
    t[:8], exponent[:8] = [INF, -INF, 1e308, -1e308, 5e-324, -5e-324, 0.0, -INF], [0, 0, 900, 900, -900, -900, 0, 1500]
    t[8:10], exponent[8:10], shift[8:10] = -INF, [-1040, -1020], 0.0
    out = np.empty(n, np.float32)
    latest_of(t, exponent, shift, out)
    for when, e, moved, got in zip(t.tolist(), exponent.tolist(), shift.tolist(), out.tolist(), strict=True):
        if math.isfinite(got):
            exactly = max(Fraction(when), -LARGEST) if math.isfinite(when) else -LARGEST
            assert when < INF
            want = exactly * Fraction(2) ** e - Fraction(moved)
            assert Fraction(got) >= want + MARGIN or got == -FAR
            size = abs(want) + abs(Fraction(moved)) / 2**24
            assert Fraction(got) <= want + size / 2**20 + MARGIN * 8 or want < -FAR
        else:
            assert got == INF
    assert np.isfinite(out[400:]).all()


# No box is lost


def stray(seed, far):
    """A bulk of boxes near zero, two far out, and rays that come from far along an axis, nearly."""
    pairs = random_scene(seed, 60, 150, size=0.5)
    rng = np.random.default_rng(seed)
    lower, upper = pairs.lower + 0.1, pairs.upper + 0.1
    lower[:2], upper[:2] = -far, [[-far * 0.5, far, far], [far, -far * 0.5, far]]
    k = rng.integers(0, 3, (150, 1)) == np.arange(3)
    slow = rng.uniform(-1, 1, (150, 3)) * np.ldexp(1.0, rng.integers(-66, -56, (150, 1)))
    way = np.where(k, rng.choice([-1.0, 1.0], (150, 1)), slow)
    goal = np.concatenate([lower[2:52], upper[2:52], pairs.origins[100:]])
    reach = far * rng.choice([0.25, 1.0, 8.0, 1e6], (150, 1))
    scale = np.ldexp(1.0, rng.integers(-30, 30, (150, 1)))
    return Pairs(goal - way * reach, way * scale, np.full(150, -INF), pairs.t_max, lower, upper)


def survey(seed, far):
    """Boxes at map coordinates; rays from far off through their corners, as well as floats can say it."""
    pairs = random_scene(seed, 60, 150, size=0.5)
    base = np.array([512345.678, 4123456.789, 17.3])
    goal = np.concatenate([pairs.lower, pairs.upper, pairs.origins[120:]]) + base
    low, high = np.zeros(150), np.full(150, INF)
    low[::3], high[1::3] = far, far
    return Pairs(goal - pairs.directions * far, pairs.directions, low, high, pairs.lower + base, pairs.upper + base)


def cube_corners(seed, far):
    """Eight cubes round their centre and rays through their corners: the frame is exact, touches abound."""
    rng = np.random.default_rng(seed)
    lower = rng.integers(-4, 4, (8, 3)) * 1.0
    goal, way = rng.integers(-4, 5, (150, 3)) * 1.0, rng.integers(-3, 4, (150, 3)) * 1.0
    return Pairs(goal - way * far, way, np.zeros(150), np.full(150, INF), lower, lower + 1)


SCENES = {
    **{name: lambda name=name: families.scene(name, 31, n_boxes=70, n_rays=60) for name in families.FAMILIES},
    **{f"stray {far:.0e}": lambda far=far: stray(32, far) for far in (1e3, 1e12, 2.0**54, 1e19)},
    **{f"survey {far:.0e}": lambda far=far: survey(33, far) for far in (1.0, 1e9, 1e14)},
    **{f"corners {far:.0e}": lambda far=far: cube_corners(34, far) for far in (1.0, 2.0**20, 2.0**45)},
}


@pytest.mark.parametrize("name", SCENES)
def test_every_box_met_is_proposed_and_its_parents_too(name):
    pairs = threed(SCENES[name]())
    tree = build(*pairs[4:])
    rays = as_rays(pairs).rows()
    found = list(exact.along(*pairs))
    above = parents_of(tree)
    asked, times = [], []
    for ray, row in enumerate(found):
        for box in row:
            place = above[~box.index]
            while place is not None:
                asked.append((ray, *place))
                times.append(box.plain[1])
                place = above[place[0]]
    out = np.zeros((len(asked), 2), np.bool_)
    proposed(tree, rays, np.array(asked), np.array(times), np.empty(WIDTH, np.float32), out)
    assert len(asked) > 100
    assert out.all(), [asked[k] for k in np.flatnonzero(~out.all(axis=1))[:5]]
    hold_probes(tree, pairs, rays, found)


def threed(pairs):
    """Pad two dimensions as raybox does."""
    room = 3 - pairs.origins.shape[1]
    return Pairs(*(np.pad(x, ((0, 0), (0, room))) if x.ndim == 2 else x for x in pairs))


def parents_of(tree) -> dict:
    """Say in which (node, slot) each node, and each box ~i, stands; the root in none."""
    children = tree.nodes[:, CHILD:]
    return {0: None} | {int(children[n, s]): (n, s) for n, s in np.argwhere(children != EMPTY).tolist()}


def hold_probes(tree, pairs, rays, found) -> None:
    """Hold origins and range of each probe to what they stand for: beyond the exact ones, outward."""
    out = np.empty((len(pairs.origins), 14))
    probe_of(tree, rays, out)
    unit = Fraction(2) ** tree.exponent
    for o, d, probe, row, low, high in zip(*pairs[:2], out.tolist(), found, *pairs[2:4], strict=True):
        if not row:
            continue
        near, far, inverse, (start, stop, exponent, shift, meets) = probe[:3], probe[3:6], probe[6:9], probe[9:]
        assert meets
        ends = [moment(x, exponent, shift) for box in row for x in (box.t, min(high, box.plain[3]))]
        last = min(max(ends), moment(high, exponent, shift)) if not row[0].plain[2] == -INF else max(ends)
        assert start <= min(ends)
        assert stop >= moment(row[-1].t, exponent, shift)
        for i in range(3):
            w = Fraction(d[i]) * unit * Fraction(2) ** -int(exponent)
            place = (Fraction(o[i]) - Fraction(tree.center[i])) * unit + Fraction(shift) * w
            moved = [x * w for x in ends if not isinstance(x, float)] if inverse[i] == INF else [Fraction(0)]
            moved = [x for x in moved if w == 0 or x / w <= last] or [Fraction(0)]
            if inverse[i] == INF and abs(near[i]) < INF:
                assert near[i] >= place + MARGIN
                assert far[i] <= place - MARGIN
            way = 1 if inverse[i] > 0 else -1
            if abs(near[i]) < INF:
                assert way * near[i] >= way * place + max(way * x for x in moved[:1]) + MARGIN
                assert way * far[i] <= way * place + min(way * x for x in moved[:1]) - MARGIN
            assert (d[i] == 0 and way == 1) or way == (1 if d[i] > 0 else -1) or inverse[i] == INF


def moment(t, exponent, shift):
    """Take a time to tree units, exactly."""
    return t if t in {INF, -INF} else Fraction(t) * Fraction(2) ** int(exponent) - Fraction(shift)
