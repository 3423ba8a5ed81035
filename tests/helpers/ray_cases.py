"""Sets of boxes, rays of every kind into them, and these rays in tree coordinates, in Fractions."""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np

import exact
import raybox as rb
from aim import INF, Pairs, feature
from loops import loop, numba
from raybox.bvh.build import build
from raybox.bvh.node import outward_down, outward_up
from raybox.compiler.processor import level
from raybox.compiler.target import has
from raybox.geometry import BoxRows
from raybox.queries.occluded import Occluded
from raybox.traversal.job import RaySpan
from raybox.traversal.packed_rays import set_up_rays
from raybox.traversal.ray_keys import copy_rays
from raybox.traversal.ray_setup import Frame
from raybox.traversal.slab_coefficients import load_single_ray
from raybox.traversal.workspace import SetupSpan, make_workspace
from scenes import random_scene

FUSED = level() not in ("v2", "baseline") if numba is None else has("fma")  # a library: of its level
U = Fraction(2) ** -24
# Relative errors of near times (early, and late) and far times (late, and early), beside a margin
EARLY, LATE, BETWEEN = (7 * U, 16 * U, 4 * U) if FUSED else (8 * U, 19 * U, 5 * U)

BASE = np.array([512345.678, 4123456.789, 17.3])  # map coordinates


@loop
def outward(x, down, up):
    for k in range(x.size):
        down[k], up[k] = outward_down(x[k]), outward_up(x[k])


def cloud(seed):
    return random_scene(seed, 200, 1, size=0.4)[4:]


def map_cloud(seed):
    lower, upper = cloud(seed)
    lower, upper = lower * 50 + BASE, upper * 50 + BASE
    lower[3], upper[3] = -1.0, 1.0  # a stray box at the origin
    return lower, upper


def sized(seed, size):
    return tuple(x * size for x in cloud(seed))


def cells(seed):
    lower = np.random.default_rng(seed).integers(-3, 4, (200, 3)) * 1.0
    return lower, lower + np.array([1.0, 1.0, 0.0])


def unbounded(seed):
    lower, upper = cloud(seed)
    lower[::50], upper[1::50] = -INF, INF
    return lower, upper


BOX_SETS = {
    "cloud": lambda: cloud(51),
    "map": lambda: map_cloud(52),
    "small": lambda: sized(53, 1e-90),
    "large": lambda: sized(54, 1e60),
    "cells": lambda: cells(55),
    "plane": lambda: tuple(x * [1, 1, 0] for x in cloud(56)),
    "open": lambda: unbounded(57),
}


def make_rays_at(seed, lower, upper, n=160) -> Pairs:
    """Return rays at points of boxes: from inside and outside, near and far, slow and fast, along axes."""
    rng = np.random.default_rng(seed)
    finite = np.flatnonzero(np.isfinite(lower).all(axis=1) & np.isfinite(upper).all(axis=1))
    pick = rng.choice(finite, n)
    goal, _ = feature(rng, np.full((n, 1), 2), lower[pick], upper[pick], rng.integers(0, 4, (n, 1)))
    size = np.median((upper - lower)[finite].max(axis=1))
    direction = rng.uniform(-1, 1, (n, 3))
    direction = np.where(rng.random((n, 3)) < 0.25, rng.choice([0.0, -0.0], (n, 3)), direction)
    direction = np.where(
        rng.random((n, 3)) < 0.1, direction * np.ldexp(1.0, rng.integers(-64, -10, (n, 3))), direction
    )
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
    origins = np.where(direction == 0, goal, goal - direction * reach)
    return Pairs(origins, direction * scale, np.choose(which, low), np.choose(which, high), lower, upper)


def f32(x: Fraction | float) -> Fraction | float:
    """Return a number rounded to float32."""
    return exact.real(float(np.float32(float(x))))


def time_at(plane: Fraction, slope: Fraction, offset: Fraction) -> Fraction | float:
    """Return the time at which a node test takes a plane to be crossed."""
    return f32((plane * slope if FUSED else f32(plane * slope)) + offset)


def times_at(planes: np.ndarray, slopes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the same of arrays: float32 numbers in float64, where their products are exact."""
    products = planes.astype(float) * slopes
    return ((products if FUSED else products.astype(np.float32)) + offsets).astype(np.float32)


class TreeRay:
    """One ray in tree coordinates, in Fractions: the exact values of its packed ray.

    A ray of zero direction ends where it begins, and its times count in lengths of 1.
    """

    def __init__(self, tree, o, d, low, high):
        unit, longest = Fraction(2) ** tree.exponent, max(map(abs, d)) or 1.0
        self.power = tree.exponent + math.frexp(longest)[1]
        self.v = [(Fraction(a) - Fraction(c)) * unit for a, c in zip(o, tree.center.tolist(), strict=True)]
        self.w = [Fraction(a) * unit / Fraction(2) ** self.power for a in d]
        self.low, self.high = (
            x if math.isinf(x) else Fraction(x) * Fraction(2) ** self.power
            for x in (low, high if any(d) else low)
        )
        self.is_real = exact.has_range(low, high)
        self.hit = self.is_real and by_slabs(self, *tree.root.tolist())
        small = any(0 < abs(a) <= longest * 2.0**-60 for a in d)
        size = max(map(abs, o)) < 2.0**500 and 2.0**-500 < longest < 2.0**500 and abs(self.power) < 1000
        near = max(map(abs, self.v)) < 2**60 and (not self.hit or abs(self.hit.t) < 2**60)
        swift = min((abs(w) for w in self.w if w), default=0) >= 0.5 or (
            self.hit and self.hit.t_exit - self.hit.t < 2**61 - 2**40
        )
        steady = all(self.w) or (swift and max(map(abs, self.v)) < 2**26)
        self.tame = size and near and not small and steady


def by_slabs(ray: TreeRay, lower, upper):
    """Return the hit of a ray and a box in tree coordinates, or None (exact.by_slabs has float ranges)."""
    hit = exact.by_slabs(ray.v, ray.w, -INF, INF, lower, upper)
    if not hit or max(ray.low, hit.t_enter) > min(ray.high, hit.t_exit):
        return None
    return hit._replace(t=max(ray.low, hit.t_enter), t_exit=min(ray.high, hit.t_exit))


def make_case(name, seed=61):
    """Return the tree of a set of boxes, rows of rays, these as Fractions, and as pairs."""
    lower, upper = BOX_SETS[name]()
    pairs = make_rays_at(seed, lower, upper)
    tree, rays = build(lower, upper), as_rays_or_miss(pairs)._rows()
    return (
        tree,
        rays,
        [TreeRay(tree, *row) for row in zip(*(x.tolist() for x in pairs[:4]), strict=True)],
        pairs,
    )


def as_rays_or_miss(pairs) -> rb.Rays:
    return rb.Rays(*pairs[:2], t_min=pairs[2], t_max=pairs[3], invalid="miss")


@loop
def copy_rows(rays, base, numbers, span, rows):
    copy_rays(rays, base, numbers, RaySpan(span[0], span[1]), rows)


class Task(NamedTuple):
    rows: BoxRows
    frame: Frame


@loop
def _set_up(task, workspace, rows, order, span):
    set_up_rays(task, workspace, rows, order, SetupSpan(span[0], span[1], False))


def set_up(frame, rays, ids):
    """Return a workspace with the packed rays of some rays."""
    workspace, number = make_workspace(len(ids)), len(rays.directions)
    rows = np.full((number, 8), np.nan)
    copy_rows(rays, 0, np.arange(number, dtype=np.int32), (0, number), rows)
    order = np.concatenate([[-1, -1], ids]).astype(np.int32)
    task = Task(BoxRows(np.empty((0, 3)), np.empty((0, 3))), frame)
    _set_up(task, workspace, rows, order, (2, 2 + len(ids)))
    return workspace


@loop
def write_slabs(workspace, rows):
    """Write the slab coefficients and margins of packed rays."""
    for r in range(len(rows)):
        load_single_ray(Occluded(()), workspace, r)
        rows[r] = workspace.single
