"""rb.Scene on a house, a city, a skull, a voxel shop, a street, against the oracle."""

import csv
import json
import struct
from pathlib import Path

import numpy as np
import pytest

import exact
import exact_surfaces
import raybox as rb
from aim import INF, Pairs
from compare import EPS, assert_scene
from real_data import CITY, HOUSE_BOXES, LIDAR, SHOP, SKULL
from scenes import as_rays, build

# Simple readers of the files


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def duplex():
    rows = read_csv(HOUSE_BOXES)
    return tuple(np.array([[float(r[f"{end}_{x}"]) for x in "xyz"] for r in rows]) for end in ("min", "max"))


def delft():
    """Return one box per city object with geometry."""
    city = json.loads(CITY.read_text())
    vertices = np.array(city["vertices"]) * city["transform"]["scale"] + city["transform"]["translate"]

    def leaves(x):
        return [i for part in x for i in leaves(part)] if isinstance(x, list) else [x]

    parts = [
        vertices[[i for g in body["geometry"] for i in leaves(g["boundaries"])]]
        for body in city["CityObjects"].values()
        if body.get("geometry")
    ]
    return np.array([p.min(axis=0) for p in parts]), np.array([p.max(axis=0) for p in parts])


def skull():
    lines = SKULL.read_text().splitlines()
    vertices = np.array([line.split()[1:4] for line in lines if line.startswith("v ")], dtype=float)
    faces = [[int(v.split("/")[0]) - 1 for v in line.split()[1:]] for line in lines if line.startswith("f ")]
    return vertices, np.array(faces)


def skull_boxes():
    vertices, faces = skull()
    return vertices[faces].min(axis=1), vertices[faces].max(axis=1)


def voxels() -> np.ndarray:
    """Return the filled cells of the .vox file: chunk XYZI holds a count, then bytes x, y, z, colour."""
    raw = SHOP.read_bytes()
    at = raw.index(b"XYZI") + 12
    (count,) = struct.unpack_from("<i", raw, at)
    return np.frombuffer(raw, np.uint8, 4 * count, at + 4).reshape(count, 4)[:, :3].astype(float)


def voxel_boxes():
    cells = voxels()
    return cells, cells + 1


def cuboids() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return centres, sizes and yaw angles."""
    rows = read_csv(LIDAR / "cuboids.csv")
    centre, size = ([[float(r[f"{k}.{x}"]) for x in "xyz"] for r in rows] for k in ("position", "dimensions"))
    return np.array(centre), np.array(size), np.array([float(r["yaw"]) for r in rows])


def street():
    """Return the axis-aligned boxes around the cuboids."""
    centre, size, yaw = cuboids()
    c, s = (np.abs(f(yaw)) for f in (np.cos, np.sin))
    w, l, h = size.T  # noqa: E741
    half = np.stack([w * c + l * s, w * s + l * c, h], axis=1) / 2
    return centre - half, centre + half


# Reader, number of boxes, rays for the oracle.
SCENES = {
    "duplex": (duplex, 286, 1500),
    "delft": (delft, 570, 1500),
    "skull": (skull_boxes, 100_002, 240),
    "voxels": (voxel_boxes, 441_118, 60),
    "street": (street, 151, 1500),
}


def aim_rays(name, lower, upper, n) -> Pairs:
    """Return rays: a third to anywhere, a third to corners and faces of boxes, a third along an axis."""
    rng = np.random.default_rng(len(name))
    low, high = lower.min(axis=0), upper.max(axis=0)
    third = n // 3
    eyes = rng.uniform(low - (high - low) / 4, high + (high - low) / 4, (n, 3))
    goals = rng.uniform(low, high, (n, 3))
    chosen = rng.integers(0, len(lower), n)
    corner = np.where(rng.random((n, 3)) < 0.5, lower[chosen], upper[chosen])
    goals[third:] = corner[third:]
    eyes[third : 2 * third : 2] = np.round(eyes[third : 2 * third : 2])
    along = np.arange(3) == rng.integers(0, 3, (n, 1))
    eyes[2 * third :] = np.where(along, low - 1, corner)[2 * third :]
    directions = np.where((np.arange(n) >= 2 * third)[:, None], along.astype(float), goals - eyes)
    if name == "voxels":  # diagonals through corners
        directions[third : third + third // 2] = rng.choice([-1.0, 0.0, 1.0], (third // 2, 3))
    return Pairs(eyes, directions, np.zeros(n), np.full(n, INF), lower, upper)


def near(o, d, lower, upper) -> np.ndarray:
    """Return the boxes whose bounding sphere, enlarged by 10 %, the line hits: all hits are among them."""
    length = np.linalg.norm(d)
    if length == 0:
        return np.arange(len(lower))
    to = (lower + upper) / 2 - o
    radius = np.linalg.norm(upper - lower, axis=1) * 0.55 + 1e-6 * np.abs(to).max()
    return np.nonzero(np.linalg.norm(np.cross(to, d / length), axis=1) <= radius)[0]


def truth(pairs: Pairs) -> list[list[exact.Found]]:
    found = []
    for i in range(len(pairs.origins)):
        chosen = near(pairs.origins[i], pairs.directions[i], pairs.lower, pairs.upper)
        (row,) = exact.along(*(x[i : i + 1] for x in pairs[:4]), pairs.lower[chosen], pairs.upper[chosen])
        found.append([f._replace(index=int(chosen[f.index])) for f in row])
    return found


@pytest.mark.parametrize("name", SCENES)
def test_a_real_scene_is_exact(name):
    read, count, n = SCENES[name]
    lower, upper = read()
    assert len(lower) == count
    pairs = aim_rays(name, lower, upper, n)
    found = truth(pairs)
    scene, rays = build(lower, upper), as_rays(pairs)
    assert_scene(scene, rays, found)
    counts = {"hit": sum(map(bool, found)), "tied": sum(exact.ties(f) > 0 for f in found if f)}
    assert counts["hit"] > n // 3, counts
    assert counts["tied"] > 0, counts


def test_a_skull_of_triangles_is_exact():
    vertices, faces = skull()
    corners = vertices[faces]
    pairs = aim_rays("skull", corners.min(axis=1), corners.max(axis=1), 150)
    vertex = vertices[faces[:75, 0]]
    pairs.directions[75:] = vertex - pairs.origins[75:]  # at vertices: several triangles at once
    found, uv = [], []
    for o, d in zip(pairs.origins, pairs.directions, strict=True):
        row = []
        for i in near(o, d, corners.min(axis=1), corners.max(axis=1)):
            contact = exact_surfaces.triangle(o.tolist(), d.tolist(), (0.0, INF), *corners[i].tolist())
            if contact is not None:
                t = exact.rounded(contact[0].t)
                row.append((contact[0].t, int(i), (True, t, t, t, -1, True), contact[1:]))
        row.sort(key=lambda x: x[:2])
        found.append([exact.Found(i, t, plain) for t, i, plain, _ in row])
        uv.append([exact.rounded(x) for x in row[0][3]] if row else [np.nan] * 2)
    scene = rb.Scene(rb.Mesh(vertices, faces))
    scene.check()
    rays = as_rays(pairs)
    assert_scene(scene, rays, found)
    hits = scene.nearest(rays)
    np.testing.assert_allclose(hits.uv[hits.hit], np.array(uv)[hits.hit], rtol=0, atol=4 * EPS)
    assert hits.hit.sum() > 50
