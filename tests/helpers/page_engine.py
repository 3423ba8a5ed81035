"""Answers of the page's own engine, computed by Node.js from frames, as a saved page computes them."""

import json
import shutil
import struct
import subprocess
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pytest

import raybox as rb

PAGE = Path(__file__).parents[2] / "page"


class Answers(NamedTuple):
    """Every hit of every ray in order; objects are numbered through all geometries."""

    ray: np.ndarray
    geometry: np.ndarray
    object: np.ndarray
    index: np.ndarray
    primitive: np.ndarray
    t: np.ndarray
    t_enter: np.ndarray
    t_exit: np.ndarray


@lru_cache(maxsize=1)
def compiled() -> tuple[str, Path, TemporaryDirectory]:
    """Return Node.js and a folder of the page's compiled modules; skip the test where npm has not run."""
    compiler, node = PAGE / "node_modules" / ".bin" / "tsc", shutil.which("node")
    if node is None or not compiler.exists():
        pytest.skip("needs Node.js, and `npm ci` in page/")
    folder = TemporaryDirectory()
    root = Path(folder.name)
    subprocess.run([compiler, "--outDir", root, "--noCheck"], cwd=PAGE, check=True)
    (root / "package.json").write_text('{"type": "module"}')
    return node, root, folder


def frame(kind: str, arrays: dict, **header) -> bytes:
    """Return a frame after its length, as saved pages have them."""
    table, parts, offset = [], [], 0
    for name, values in arrays.items():
        table.append([name, values.dtype.str[1:], list(values.shape), offset])
        parts.append(values.tobytes() + bytes(-values.nbytes % 8))
        offset += len(parts[-1])
    text = json.dumps({"kind": kind, **header, "arrays": table}).encode()
    text += b" " * (-(4 + len(text)) % 8)
    content = struct.pack("<I", len(text)) + text + b"".join(parts)
    return struct.pack("<Q", len(content)) + content


def arrays_of(geometry, prefix: str) -> dict:
    """Return the arrays of a geometry, under a prefix."""
    if isinstance(geometry, rb.Boxes):
        arrays = {"lower": geometry.lower, "upper": geometry.upper}
    elif isinstance(geometry, rb.Mesh):
        arrays = {"vertices": geometry.vertices, "faces": geometry.faces.astype("u4")}
        arrays["objects"] = geometry.objects.astype("u4")
    elif isinstance(geometry, rb.Instances):
        arrays = {"transforms": geometry.transforms[:, :3]} | arrays_of(geometry.geometry, "base.")
    else:
        arrays = dict(zip("xyz", geometry.edges, strict=True))
        if not geometry.occupied.all():
            arrays["occupied"] = np.packbits(geometry.occupied.ravel(), bitorder="little")
    return {prefix + name: values for name, values in arrays.items()}


def objects_in(geometry) -> int:
    """Return the number of objects of a geometry in the page."""
    if isinstance(geometry, rb.Mesh):
        return int(geometry.objects.max(initial=-1)) + 1
    return int(geometry.occupied.sum()) if isinstance(geometry, rb.Grid) else len(geometry)


def scene_frame(geometries) -> bytes:
    """Return the frame of a scene without labels."""
    first, table, arrays = 0, [], {}
    for k, geometry in enumerate(geometries):
        name = type(geometry).__name__.lower()
        size = {"objects": objects_in(geometry), "primitives": len(geometry)}
        table.append({"type": name, "firstObject": first, **size})
        arrays |= arrays_of(geometry, f"{k}.")
        first += size["objects"]
    bounds = [[0, 0, 0], [1, 1, 1]]
    return frame("scene", arrays, geometries=table, shift=[0, 0, 0], bounds=bounds, offline="exact")


def rays_frame(rays: rb.Rays) -> bytes:
    """Return the frame of all rays."""
    row = np.arange(len(rays.origins), dtype="u4")
    t_min, t_max = (np.broadcast_to(t, row.shape) for t in (rays.t_min, rays.t_max))
    names = {"row": row, "origin": rays.origins, "direction": rays.directions, "t_min": t_min, "t_max": t_max}
    return frame("rays", names, total=len(row), drawn=len(row))


def answers(geometries, rays: rb.Rays, pickable=None) -> Answers:
    """Return what the page's engine answers; pickable: a bool for each object of the scene."""
    content = scene_frame(geometries) + rays_frame(rays)
    if pickable is not None:
        content += frame("mask", {"bits": np.packbits(pickable, bitorder="little")})
    rows = np.frombuffer(_computed(content)).reshape(-1, 8)
    return Answers(*rows[:, :5].astype(np.int64).T, *rows[:, 5:].T)


def explanations(geometries, rays: rb.Rays, geometry, primitive) -> list[dict]:
    """Return what the page says of each ray and the primitive of a geometry."""
    pairs = {"geometry": np.asarray(geometry, "u4"), "primitive": np.asarray(primitive, "f8")}
    return json.loads(_computed(scene_frame(geometries) + rays_frame(rays) + frame("pairs", pairs)))


def _computed(content: bytes) -> bytes:
    node, root, _ = compiled()
    with TemporaryDirectory() as folder:
        given, found = Path(folder, "scene"), Path(folder, "answers")
        given.write_bytes(content)
        subprocess.run([node, root / "test" / "answers.js", given, found], check=True)
        return found.read_bytes()


def expected(geometries, rays: rb.Rays, where=None) -> Answers:
    """Return what raybox answers."""
    found = rb.Scene(list(geometries)).all(rays, where=where)
    first = np.cumsum([0, *map(objects_in, geometries)])
    number = found.object.copy()
    for k, geometry in enumerate(geometries):
        if isinstance(geometry, rb.Grid):
            order = np.cumsum(geometry.occupied.ravel()) - 1
            number[found.geometry == k] = order[found.index[found.geometry == k]]
        elif isinstance(geometry, rb.Instances):
            number[found.geometry == k] = found.index[found.geometry == k]
    number += first[found.geometry]
    return Answers(
        found.ray, found.geometry, number, found.index, found.primitive, found.t, found.t_enter, found.t_exit
    )


def assert_same(found: Answers, want: Answers) -> None:
    """Assert the same hits in the same order, and the same bits of every t."""
    np.testing.assert_array_equal(np.bincount(found.ray), np.bincount(want.ray), err_msg="hits a ray")
    for name, one, other in zip(Answers._fields, found, want, strict=True):
        bits = [np.ascontiguousarray(values).view(np.int64) for values in (one, other)]
        np.testing.assert_array_equal(*bits, err_msg=name)
