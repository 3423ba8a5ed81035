"""Grids for tests, and rays that touch their faces, edges and corners."""

import numpy as np

import raybox as rb


def edges_of(kind: str, rng, cells: int) -> np.ndarray:
    """Return the edges of one axis of so many cells."""
    if kind == "integers":
        return np.arange(cells + 1.0) - rng.integers(0, cells + 1)
    if kind == "steps":
        return np.cumsum(rng.integers(1, 4, cells + 1).astype(float)) - cells
    if kind == "random":
        return np.sort(rng.uniform(-1.0, 1.0, cells + 1))
    if kind == "map":
        return 4_712_345.678 + 0.1 * np.arange(cells + 1)
    if kind == "contrast":  # cells of 1e-12 beside cells of 1e6
        return np.cumsum(rng.choice([1e-12, 1.0, 1e6], cells + 1) * rng.integers(1, 4, cells + 1)) * 0.5
    raise AssertionError(kind)


KINDS = ("integers", "steps", "random", "map", "contrast")


def contrast(rng, cells: int) -> np.ndarray:
    """Return edges near 0, where cells of 1e-12 are beside cells of 1e6."""
    small = np.cumsum(rng.integers(1, 4, cells // 2 + 1)) * 1e-12
    wide = np.cumsum(rng.integers(1, 4, cells - cells // 2)) * 1e6
    return np.sort(np.concatenate([small, rng.choice([-1.0, 1.0]) * wide]))


def random_grid(kind: str, rng, shape, share=None) -> rb.Grid:
    """Return a grid of one kind of edges, of which a share is occupied."""
    edges = [contrast(rng, n) if kind == "contrast" else edges_of(kind, rng, n) for n in shape]
    return rb.Grid(*edges, occupied=None if share is None else rng.random(shape) < share)


def random_rays(rng, grid: rb.Grid, count: int) -> rb.Rays:
    """Return rays: a third go anywhere, the others in faces, along edges, through and from corners."""
    axes = range(grid.ndim_space)
    low, high = (np.array([one[k] for one in grid.edges]) for k in (0, -1))
    points = np.empty((2, count, grid.ndim_space))
    for axis in axes:
        one = grid.edges[axis]
        on_plane = one[rng.integers(0, len(one), (2, count))]
        beyond = rng.uniform(-0.3, 1.3, (2, count)) * (high - low)[axis] + low[axis]
        inside = (one[:-1] + (one[1:] - one[:-1]) * rng.random((2, count, len(one) - 1)))[
            np.arange(2)[:, None], np.arange(count), rng.integers(0, len(one) - 1, (2, count))
        ]
        kind = rng.integers(0, 4, (2, count))
        kind[:, : count // 3] = rng.integers(2, 4, (2, count // 3))
        points[..., axis] = np.choose(kind, [on_plane, on_plane, inside, beyond])
    origins, targets = points
    directions = targets - origins
    flat = rng.random(directions.shape) < 0.25
    flat[: count // 3] = False
    directions[flat] = 0.0
    places = rng.random(count)
    steps = rng.random(count) < 0.3
    whole = rng.integers(-3, 4, directions.shape)
    directions[steps] = whole[steps]
    scale = np.where(rng.random(count) < 0.3, 0.5, np.where(rng.random(count) < 0.5, 1.0, 2.0))[:, None]
    directions = directions * scale
    back = np.where(rng.random(count) < 0.3, rng.choice([1.0, 2.0, 0.5], count), 0.0)[:, None]
    origins = origins - back * directions  # rounded: rays pass beside corners by an ulp, too
    t_min = np.select([places < 0.6, places < 0.75], [0.0, -np.inf], rng.choice([-1.0, 0.25, 1.0], count))
    t_max = np.where(rng.random(count) < 0.6, np.inf, rng.choice([1.0, 2.0, 1.5], count))
    return rb.Rays(origins, directions, t_min=t_min, t_max=t_max)


def even_grid(rng, shape, share=None) -> rb.Grid:
    """Return a grid of even planes, some of them moved by up to a hundredth of a cell."""
    edges = []
    for cells in shape:
        pitch, low = rng.choice([1.0, 0.1, 0.25, 1 / 3]), rng.choice([0.0, -1.7, 4_712_345.678])
        off = rng.uniform(-0.01, 0.01, cells + 1) * rng.choice([0.0, 0.0, 1.0])
        edges.append(low + pitch * (np.arange(cells + 1) + off))
    return rb.Grid(*edges, occupied=None if share is None else rng.random(shape) < share)
