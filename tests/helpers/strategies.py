"""Hypothesis strategies: rays, boxes and scenes whose numbers often coincide or differ by one ulp."""

import math

import numpy as np
from hypothesis import strategies as st

import raybox as rb
from aim import INF, Pairs

SPECIAL = (0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-300, -1e-300, 1e300, -1e300, 0.1, 1 / 3)

grid = st.integers(-4, 4).map(float)
finite = st.floats(allow_nan=False, allow_infinity=False)
coordinates = st.one_of(grid, grid, st.floats(-8, 8), st.sampled_from(SPECIAL), finite)


@st.composite
def related(draw, shape, pool=coordinates):
    """Draw an array of at most five numbers and their neighbours, which makes touches and ties."""
    distinct = draw(st.lists(pool, min_size=1, max_size=5))
    count = math.prod(shape)
    picked = draw(st.lists(st.sampled_from(distinct), min_size=count, max_size=count))
    steps = draw(st.lists(st.sampled_from([0, 0, 0, 0, 0, 1, -1]), min_size=count, max_size=count))
    moved = [math.nextafter(x, k * INF) if k else x for x, k in zip(picked, steps, strict=True)]
    valid = [m if math.isfinite(m) else x for m, x in zip(moved, picked, strict=True)]
    return np.array(valid, dtype=np.float64).reshape(shape)


@st.composite
def spans(draw, pool=coordinates):
    """Draw t_min <= t_max."""
    low, high = sorted([draw(pool), draw(pool)])
    return draw(
        st.sampled_from(
            [(0.0, INF), (-INF, INF), (0.0, 1.0), (low, high), (low, INF), (-INF, high), (low, low)]
        )
    )


@st.composite
def boxes(draw, count, dim, pool=coordinates):
    """Draw boxes, some of them flat or without some bounds."""
    a, b = draw(related((2, count, dim), pool))
    lower, upper = np.minimum(a, b), np.maximum(a, b)
    if draw(st.integers(0, 3)) == 0:
        open_low, open_high = draw(
            st.lists(st.booleans(), min_size=2 * dim, max_size=2 * dim).map(lambda x: (x[:dim], x[dim:]))
        )
        lower, upper = np.where(open_low, -INF, lower), np.where(open_high, INF, upper)
    return lower, upper


@st.composite
def scenes(draw, max_boxes=12, max_rays=4, dims=(2, 3)):
    """Draw rays and boxes over one pool of numbers: small scenes full of touches and ties."""
    dim = draw(st.sampled_from(dims))
    n_boxes, n_rays = draw(st.integers(1, max_boxes)), draw(st.integers(1, max_rays))
    pool = st.sampled_from(draw(st.lists(coordinates, min_size=1, max_size=6)))
    origins, directions = (
        draw(related((n_rays, dim), pool)),
        draw(related((n_rays, dim), st.one_of(pool, grid))),
    )
    ranges = np.array([draw(spans(pool)) for _ in range(n_rays)])
    return Pairs(origins, directions, ranges[:, 0], ranges[:, 1], *draw(boxes(n_boxes, dim, pool)))


@st.composite
def pairs(draw, dims=(2, 3)):
    """Draw one ray and one box."""
    return draw(scenes(max_boxes=1, max_rays=1, dims=dims))


@st.composite
def triangles(draw, count=1):
    """Draw a ray, its range, and triangles whose vertices share numbers with it."""
    pool = st.sampled_from(
        draw(st.lists(st.one_of(grid, st.floats(-8, 8), coordinates), min_size=1, max_size=6))
    )
    origin, direction = draw(related((3,), pool)), draw(related((3,), st.one_of(pool, grid)))
    return origin, direction, draw(spans(pool)), draw(related((count, 3, 3), pool))


@st.composite
def even_grids_and_rays(draw):
    """Draw an even grid, and a ray whose numbers are often those of its planes, or near them."""
    dim = draw(st.integers(2, 3))
    pitch, low = draw(st.sampled_from([1.0, 0.1, 2.0**-20])), draw(st.sampled_from([0.0, -3.0, 1e6]))
    edges = [low + pitch * np.arange(draw(st.integers(1, 40)) + 1.0) for _ in range(dim)]
    at = st.one_of(st.integers(-2, 42), st.floats(-2.0, 42.0))
    origin = np.array([low + pitch * draw(at) for _ in range(dim)])
    target = np.array([low + pitch * draw(at) for _ in range(dim)])
    steps = draw(st.lists(st.integers(-3, 3), min_size=dim, max_size=dim))
    direction = draw(
        st.sampled_from([target - origin, np.array(steps, float), pitch * np.array(steps, float)])
    )
    low, high = draw(spans(st.floats(-2.0, 50.0)))
    return edges, rb.Rays(origin[None], direction[None], t_min=low, t_max=high)
