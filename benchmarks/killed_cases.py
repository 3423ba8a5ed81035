"""What `killed_casts.py` casts: scenes, files of rays, queries and outputs, and how outputs are compared."""

import itertools
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import zarr

import raybox as rb

RAYS, CHUNK, ROWS = 2400, 100, 60
QUERIES = ("nearest", "occluded", "count", "all", "segments", "integrate", "deposit")
FILES = ("npy", "npz", "csv", "parquet", "zarr")
ROW_A_RAY = ("nearest", "occluded", "count", "integrate")
DATASETS = {"parquet": QUERIES, "zarr": ROW_A_RAY}
SCENES = {"segments": ("grid",), "integrate": ("boxes", "grid"), "deposit": ("boxes", "grid")}
ANY_SCENE = ("boxes", "mesh", "grid", "copies")


class Case(NamedTuple):
    """A cast: its scene, its query, the formats of rays and results, and what it takes more."""

    query: str
    scene: str
    rays: str
    out: str
    dataset: bool
    options: tuple[str, ...]
    """of values, weights, where, labels, carry"""

    def __str__(self) -> str:
        kind = "dataset of " if self.dataset else ""
        more = "".join(f" {name}" for name in self.options)
        return f"{self.query} {self.scene} {self.rays} -> {kind}{self.out}{more}"

    def target(self, folder: Path) -> str:
        """Return the output; that of a dataset ends with a slash."""
        return f"{folder / 'out'}/" if self.dataset else str(folder / f"out.{self.out}")


class Files(NamedTuple):
    """The folder of inputs, which `write_inputs` makes."""

    folder: Path

    def rays(self, ending: str) -> Path:
        """Return the file of rays of a format."""
        return self.folder / f"rays.{ending}"

    def array(self, name: str) -> Path:
        """Return the file of an array: values, weights, where."""
        return self.folder / f"{name}.npy"


def cases() -> Iterator[Case]:
    """Yield a case for each query and output; scenes, rays and options take turns."""
    turn = itertools.count()
    outputs = [(out, False) for out in FILES] + [(out, True) for out in DATASETS]
    for round_ in range(len(ANY_SCENE)):
        for query, (out, dataset) in itertools.product(QUERIES, outputs):
            if dataset and query not in DATASETS[out]:
                continue
            scenes = SCENES.get(query, ANY_SCENE)
            k = next(turn)
            rays = FILES[(k + round_) % len(FILES)]
            if out in ("csv", "parquet") and round_ % 2:
                rays = ("csv", "parquet")[k % 2]  # whose columns are carried
            scene = scenes[(k + round_) % len(scenes)]
            yield Case(query, scene, rays, out, dataset, _options(query, scene, rays, out, k))


def _options(query: str, scene: str, rays: str, out: str, turn: int) -> tuple[str, ...]:
    """Return what a case takes more, of what its query and formats allow."""
    found = {"integrate": ["values"], "deposit": ["weights"]}.get(query, [])
    if rays in ("csv", "parquet") and out in ("csv", "parquet") and query != "deposit":
        found = [*found, "carry"]
    if scene in ("boxes", "mesh") and query in ("nearest", "all"):
        found = [*found, "labels"]
    if turn % 3 == 0 and scene == "boxes":
        found = [*found, "where"]
    return tuple(found)


# Inputs


def _boxes() -> rb.Boxes:
    rng = np.random.default_rng(1)
    ids, labels = [f"box {k}" for k in range(ROWS)], {"kind": ["a", "b", "c"] * (ROWS // 3)}
    return rb.Boxes.from_centers(rng.random((ROWS, 3)), 0.25, ids=ids, labels=labels)


def _mesh() -> rb.Mesh:
    rng = np.random.default_rng(2)
    corners = rng.random((ROWS, 1, 3)) + 0.3 * rng.random((ROWS, 3, 3))
    objects, names = np.arange(ROWS) // 6, [f"part {k}" for k in range(ROWS // 6)]
    faces = np.arange(3 * ROWS).reshape(-1, 3)
    return rb.Mesh(corners.reshape(-1, 3), faces, objects=objects, ids=names, labels={"kind": names})


def _grid() -> rb.Grid:
    rng = np.random.default_rng(3)
    return rb.Grid.uniform([0, 0, 0], 0.25, (4, 3, 5), occupied=rng.random((4, 3, 5)) < 0.7)


def _copies() -> rb.Instances:
    rng = np.random.default_rng(4)
    return rb.Instances.from_poses(rb.Boxes([[0, 0, 0]], [[0.3, 0.2, 0.1]]), rng.random((ROWS, 3)))


GEOMETRIES = {"boxes": _boxes, "mesh": _mesh, "grid": _grid, "copies": _copies}


def _rays(seed: int) -> rb.Rays:
    rng = np.random.default_rng(seed)
    origins = rng.random((RAYS, 3)) * 3 - 1
    return rb.Rays(origins, rng.random((RAYS, 3)) - origins)


def write_inputs(folder: Path) -> Files:
    """Write rays in each format, and arrays."""
    files, rng = Files(folder), np.random.default_rng(6)
    write_rays(files, seed=5)
    np.save(files.array("values"), rng.normal(size=ROWS))
    np.save(files.array("weights"), rng.normal(size=(RAYS, 2)))
    np.save(files.array("where"), rng.random(ROWS) < 0.8)
    return files


def write_rays(files: Files, seed: int) -> None:
    """Write the same rays in each format."""
    rays = _rays(seed)
    columns = {f"origin_{name}": rays.origins[:, k] for k, name in enumerate("xyz")}
    columns |= {f"direction_{name}": rays.directions[:, k] for k, name in enumerate("xyz")}
    table = pd.DataFrame(columns | {"name": [f"ray {k}" for k in range(RAYS)]})
    table.to_csv(files.rays("csv"), index=False)
    table.to_parquet(files.rays("parquet"), row_group_size=500)
    for ending in ("npy", "npz"):
        rb.save(files.rays(ending), rays)
    group = zarr.open_group(files.rays("zarr"), mode="w")
    for name in ("origins", "directions"):
        group.create_array(name, data=np.array(getattr(rays, name)), chunks=(500, 3))


def write_others(files: Files) -> None:
    """Write the same inputs, but other rays, into the folder ``others``."""
    folder = files.folder / "others"
    if folder.exists():
        return
    shutil.copytree(files.folder, folder, ignore=lambda _folder, names: [n for n in names if n[:3] == "tmp"])
    write_rays(Files(folder), seed=50)


@cache
def scene_of(name: str) -> Any:
    """Return a scene."""
    return rb.Scene(GEOMETRIES[name](), workers=1)


def arguments(case: Case, files: Files) -> dict[str, Any]:
    """Return the arguments of a cast by name."""
    found: dict[str, Any] = {"query": case.query, "chunk": CHUNK, "workers": 2}
    for name in ("values", "weights", "where"):
        if name in case.options:
            found[name] = np.load(files.array(name))
    if "labels" in case.options:
        found["labels"] = ["kind"]
    if "carry" in case.options:
        found["carry"] = ["name"]
    return found | ({"format": case.out} if case.dataset and case.out != "parquet" else {})


def content(path: str | Path) -> dict[str, bytes] | None:
    """Return the bytes of an output by the names of its files; None if there is none."""
    place = Path(path)
    if place.is_dir():
        found = sorted(one for one in place.rglob("*") if one.is_file())
        return {str(one.relative_to(place)): one.read_bytes() for one in found}
    return {"": place.read_bytes()} if place.exists() else None


def left_over(path: str | Path) -> list[str]:
    """Return the names that an output has left next to it."""
    place = Path(path)
    return sorted(name for name in os.listdir(place.parent) if name.startswith(f"{place.name}."))
