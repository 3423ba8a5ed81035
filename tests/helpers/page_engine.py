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
from raybox.viewer.frames import frame, packed_bits, rays_frame, scene_frame
from raybox.viewer.stage import Stage

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
        pytest.skip("needs Node.js 20.19 or newer, and `npm ci` in page/")
    folder = TemporaryDirectory()
    root = Path(folder.name)
    subprocess.run([compiler, "--outDir", root, "--noCheck"], cwd=PAGE, check=True)
    (root / "package.json").write_text('{"type": "module"}')
    return node, root, folder


def answers(stage: Stage, rays: rb.Rays, pickable=None) -> Answers:
    """Return what the page's engine answers; pickable: a bool for each object of the stage."""
    mask = [] if pickable is None else [frame({"kind": "mask"}, {"bits": packed_bits(pickable)})]
    rows = np.frombuffer(_computed(stage, rays, *mask)).reshape(-1, 8)
    return Answers(*rows[:, :5].astype(np.int64).T, *rows[:, 5:].T)


def explanations(stage: Stage, rays: rb.Rays, geometry, primitive) -> list[dict]:
    """Return what the page says of each ray and the primitive of a geometry."""
    pairs = {"geometry": np.asarray(geometry, "u4"), "primitive": np.asarray(primitive, "f8")}
    return json.loads(_computed(stage, rays, frame({"kind": "pairs"}, pairs)))


def _computed(stage: Stage, rays: rb.Rays, *more: bytes) -> bytes:
    node, root, _ = compiled()
    frames = [scene_frame(stage), rays_frame(rays), *more]
    content = b"".join(part for one in frames for part in (struct.pack("<Q", len(one)), one))
    with TemporaryDirectory() as folder:
        given, found = Path(folder, "scene"), Path(folder, "answers")
        given.write_bytes(content)
        subprocess.run([node, root / "test" / "answers.js", given, found], check=True)
        return found.read_bytes()


def expected(stage: Stage, rays: rb.Rays, pickable=None) -> Answers:
    """Return what raybox answers."""
    found = stage.scene.all(rays, where=stage.where(pickable))
    times = found.t, found.t_enter, found.t_exit
    return Answers(found.ray, found.geometry, stage.objects_of(found), found.index, found.primitive, *times)


def assert_same(found: Answers, want: Answers) -> None:
    """Assert the same hits in the same order, and the same bits of every t."""
    np.testing.assert_array_equal(np.bincount(found.ray), np.bincount(want.ray), err_msg="hits a ray")
    for name, one, other in zip(Answers._fields, found, want, strict=True):
        bits = [np.asarray(values, one.dtype, order="C").view(np.int64) for values in (one, other)]
        np.testing.assert_array_equal(*bits, err_msg=name)
