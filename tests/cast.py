"""Places full of boxes, rays of every kind into them, and each ray in tree coordinates, in Fractions."""

import math
from fractions import Fraction

import numba
import numpy as np

import exact
import raybox as rb
from aim import INF, Pairs, feature
from raybox.bvh.build import build
from raybox.compiler.decorators import FLAGS
from raybox.queries.count import CountRecorder
from raybox.traversal.packed_rays import set_up_rays
from raybox.traversal.ray_keys import copy_rays
from raybox.traversal.slab_coefficients import load_single_ray
from raybox.traversal.workspace import make_workspace
from scenes import random_scene

loop = numba.njit(**(FLAGS | {"_nrt": True}))

BASE = np.array([512345.678, 4123456.789, 17.3])  # a place on a map


def crowd(seed):
    return random_scene(seed, 200, 1, size=0.4)[4:]


def on_a_map(seed):
    lower, upper = crowd(seed)
    lower, upper = lower * 50 + BASE, upper * 50 + BASE
    lower[3], upper[3] = -1.0, 1.0  # left behind at the origin of the map
    return lower, upper


def sized(seed, size):
    return tuple(x * size for x in crowd(seed))


def cells(seed):
    lower = np.random.default_rng(seed).integers(-3, 4, (200, 3)) * 1.0
    return lower, lower + np.array([1.0, 1.0, 0.0])


def without_ends(seed):
    lower, upper = crowd(seed)
    lower[::50], upper[1::50] = -INF, INF
    return lower, upper


PLACES = {
    "crowd": lambda: crowd(51),
    "map": lambda: on_a_map(52),
    "small": lambda: sized(53, 1e-90),
    "large": lambda: sized(54, 1e60),
    "cells": lambda: cells(55),
    "plane": lambda: tuple(x * [1, 1, 0] for x in crowd(56)),
    "open": lambda: without_ends(57),
}


def cast(seed, lower, upper, n=160) -> Pairs:
    """Aim rays at points of boxes, from inside and out, near and far, slow and fast, and along axes."""
    rng = np.random.default_rng(seed)
    finite = np.flatnonzero(np.isfinite(lower).all(axis=1) & np.isfinite(upper).all(axis=1))
    pick = rng.choice(finite, n)
    goal, _ = feature(rng, np.full((n, 1), 2), lower[pick], upper[pick], rng.integers(0, 4, (n, 1)))
    size = np.median((upper - lower)[finite].max(axis=1))
    way = rng.uniform(-1, 1, (n, 3))
    way = np.where(rng.random((n, 3)) < 0.25, rng.choice([0.0, -0.0], (n, 3)), way)
    way = np.where(rng.random((n, 3)) < 0.1, way * np.ldexp(1.0, rng.integers(-64, -10, (n, 3))), way)
    reach = size * rng.choice([0.0, 1e-3, 0.3, 3.0, 30.0, 1e6, 1e12], (n, 1))
    scale = np.ldexp(1.0, rng.integers(-40, 40, (n, 1)))
    scale = np.where(
        rng.random((n, 1)) < 0.1, np.ldexp(1.0, rng.choice([-480, -200, 200, 480], (n, 1))), scale
    )
    scale = np.where(rng.random((n, 1)) < 0.05, np.ldexp(1.0, rng.choice([-520, 520], (n, 1))), scale)
    t = (reach / scale)[:, 0]
    ends = [(0, INF), (-INF, INF), (0, t), (t, INF), (0.9 * t, 1.1 * t), (-INF, t), (2 * t, INF), (0, t / 2)]
    ends += [(-2 * t, -t), (-t, 3 * t), (INF, -INF), (0 * t + 1, 0)]
    low, high = zip(*(np.broadcast_arrays(a, b, t)[:2] for a, b in ends), strict=True)
    which = rng.choice(12, n, p=[0.3, 0.1, 0.1, 0.1, 0.1, 0.06, 0.06, 0.06, 0.04, 0.04, 0.02, 0.02])
    origins = np.where(way == 0, goal, goal - way * reach)
    return Pairs(origins, way * scale, np.choose(which, low), np.choose(which, high), lower, upper)


class Seen:
    """One ray in tree coordinates, in Fractions: what its probe stands for."""

    def __init__(self, tree, o, d, low, high):
        unit, longest = Fraction(2) ** tree.exponent, max(map(abs, d))
        self.power = tree.exponent + math.frexp(longest)[1]
        self.v = [(Fraction(a) - Fraction(c)) * unit for a, c in zip(o, tree.center.tolist(), strict=True)]
        self.w = [Fraction(a) * unit / Fraction(2) ** self.power for a in d]
        self.low, self.high = (
            x if math.isinf(x) else Fraction(x) * Fraction(2) ** self.power for x in (low, high)
        )
        self.is_real = exact.has_range(low, high)
        self.met = self.is_real and by_slabs(self, *tree.root.tolist())
        small = any(0 < abs(a) <= longest * 2.0**-60 for a in d)
        size = max(map(abs, o)) < 2.0**500 and 2.0**-500 < longest < 2.0**500 and abs(self.power) < 1000
        near = max(map(abs, self.v)) < 2**60 and (not self.met or abs(self.met.t) < 2**60)
        swift = min((abs(w) for w in self.w if w), default=0) >= 0.5 or (
            self.met and self.met.t_exit - self.met.t < 2**61 - 2**40
        )
        steady = all(self.w) or (swift and max(map(abs, self.v)) < 2**26)
        self.tame = size and near and not small and steady


def by_slabs(ray: Seen, lower, upper):
    """Clip a ray to a box in tree coordinates; by exact.by_slabs, whose range wants floats."""
    met = exact.by_slabs(ray.v, ray.w, -INF, INF, lower, upper)
    if not met or max(ray.low, met.t_enter) > min(ray.high, met.t_exit):
        return None
    return met._replace(t=max(ray.low, met.t_enter), t_exit=min(ray.high, met.t_exit))


def see(place, seed=61):
    """Build a scene and cast rays into it: the tree, rows of rays, and each as Fractions."""
    lower, upper = PLACES[place]()
    pairs = cast(seed, lower, upper)
    tree, rays = build(lower, upper), as_rays_or_miss(pairs).rows()
    return tree, rays, [Seen(tree, *row) for row in zip(*(x.tolist() for x in pairs[:4]), strict=True)], pairs


def as_rays_or_miss(pairs) -> rb.Rays:
    return rb.Rays(*pairs[:2], t_min=pairs[2], t_max=pairs[3], invalid="miss")


@loop
def copied(rays, base, numbers, span, rows):
    copy_rays(rays, base, numbers, (span[0], span[1]), rows)


@loop
def _aim(frame, desk, rows, where, place):
    set_up_rays(frame, desk, rows, where, (place[0], place[1]))


def aimed(frame, rays, ids):
    """Aim some rays; give the desk with their probes."""
    desk, number = make_workspace(len(ids)), len(rays.origins)
    rows = np.full((number, 8), np.nan)
    copied(rays, 0, np.arange(number, dtype=np.int32), (0, number), rows)
    where = np.concatenate([[-1, -1], ids]).astype(np.int32)
    _aim(frame, desk, rows, where, (2, 2 + len(ids)))
    return desk


@loop
def unfolded(desk, rows):
    """Write the lines and the margins that walks make of probes."""
    for r in range(len(rows)):
        load_single_ray(CountRecorder(()), desk, r)
        rows[r] = desk.single
