"""Shared by the tests of rb.stream.cast: a scene, rays, and files of them in every format."""

import csv
import io
import os
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

import raybox as rb
from raybox.casting.caster import BlockCaster, ReadBlock
from raybox.casting.columns import QUERIES, rows_of
from raybox.scene import file_queries as queries

pq = pytest.importorskip("pyarrow.parquet")
zarr = pytest.importorskip("zarr")

RNG = np.random.default_rng(31)
BOXES = rb.Boxes.from_centers(RNG.random((40, 3)), 0.3)
SCENE = rb.Scene(BOXES)
IDS = [f"box {k}" * (1 + k % 3) for k in range(40)]
ORIGINS, DIRECTIONS = RNG.random((103, 3)) - 0.5, RNG.integers(-3, 4, (103, 3)) * 1.0
ORIGINS[::7, 1], DIRECTIONS[::7, 1] = -0.0, -0.0
RAYS = rb.Rays(
    ORIGINS,
    DIRECTIONS,  # many components are zero, and some directions
    t_min=RNG.random(103) - 0.5,
    t_max=RNG.random(103) * 5 + 0.6,
)
WORLDS = rb.Scene(BOXES, groups=RNG.integers(-1, 3, 40))
GROUPS = RNG.integers(-1, 4, 103)
ENDINGS = ("npy", "npz", "csv", "parquet", "zarr")
SPATIAL = tuple(q for q in QUERIES if queries.columns_of(q).reads != "rays")
RAY_QUERIES = tuple(q for q in QUERIES if q not in ("segments", *SPATIAL) and rows_of(q) != "primitives")
"""Queries of any scene whose rows are of rays or of hits."""


def endings_from(source):
    """Yield endings, in a circle, from that of the source on.

    Beside a list as long as the endings or longer, tests of all sources have each ending with each item.
    """
    return cycle(ENDINGS[ENDINGS.index(source) :] + ENDINGS[: ENDINGS.index(source)])


def put(path, rays):
    """Save rays, in Zarr too."""
    if path.suffix != ".zarr":
        rb.save(path, rays)
        if path.suffix == ".parquet" and len(rays) < 1000:  # several row groups
            pq.write_table(pq.read_table(path), path, row_group_size=9)
        return path
    group = zarr.open_group(path, mode="w")
    for name in ("origins", "directions", "t_min", "t_max"):
        array = np.array(getattr(rays, name))
        group.create_array(name, shape=array.shape, chunks=(7, *array.shape[1:]), dtype=float)[...] = array
    return path


def with_column(path, rays, name, values):
    """Save rays as CSV or Parquet, with one more column."""
    put(path, rays)
    if path.suffix == ".parquet":
        table = pq.read_table(path).append_column(name, [values])
        pq.write_table(table, path, row_group_size=9)
        return path
    rows = zip(path.read_text().splitlines(), [name, *values], strict=True)
    path.write_text("".join(f"{row},{value}\n" for row, value in rows))
    return path


def get(path):
    """Return the columns of an output of any format."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return {name: np.array(table[name].to_pylist()) for name in table.column_names}
    if path.suffix == ".zarr":
        group = zarr.open_group(path, mode="r")
        return {name: np.asarray(array[:]) for name, array in group.arrays()}
    if path.suffix == ".csv":
        head, *rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline=""))
        return {name: np.array([row[k] for row in rows]) for k, name in enumerate(head)}
    loaded = np.load(path)
    return {name: loaded[name] for name in (loaded.files if path.suffix == ".npz" else loaded.dtype.names)}


def results_of(scene, rays, query, **how):
    """Return the results of a query, as `save` takes them."""
    flat = rays.reshape(-1)
    if query == "integrate":
        return {"ray": np.arange(len(flat)), "integral": scene.integrate(flat, reproducible=True, **how)}
    results = getattr(scene, query)(flat, **how)
    is_column = isinstance(results, np.ndarray)
    return {"ray": np.arange(len(flat)), query: results} if is_column else results


def ids_for(query):
    """Return ids for a query whose results have indices, else None."""
    return IDS if "index" in queries.columns_of(query).dtypes(3, None) else None


def check(path, wanted, ids=None):
    """Compare an output with that of `save`: bytes, or columns where a format allows several files."""
    same = path.with_name("wanted" + (".npz" if path.suffix == ".zarr" else path.suffix))
    rb.save(same, wanted, ids=ids)
    if path.suffix in (".npy", ".npz", ".csv"):
        assert path.read_bytes() == same.read_bytes()
        return
    found, columns = get(path), get(same)
    assert set(found) == set(columns)
    for name, column in columns.items():
        np.testing.assert_array_equal(found[name], column, err_msg=name)
    if path.suffix == ".parquet":
        assert pq.read_metadata(path).num_rows == len(columns["ray"])
        assert pq.read_schema(path).equals(pq.read_schema(same))
        assert found.keys() == columns.keys()
        assert list(found) == list(columns)


def run(code, *arguments):
    """Return what code prints, run in a process of its own that can import these tests."""
    path = os.pathsep.join(filter(None, [str(Path(__file__).parent), *sys.path]))
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def content(path):
    """Return an output's bytes, file by file."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {str(file.relative_to(path.parent)): file.read_bytes() for file in files if file.is_file()}


def fail_at(monkeypatch, rays, error):
    """Make queries fail from the block on that begins with this ray."""
    for name in ("_results", "add_to"):  # the second adds to sums
        monkeypatch.setattr(BlockCaster, name, _failing(getattr(BlockCaster, name), rays, error))


def _failing(method, rays, error):
    def failing(caster, *others):
        block = next(other for other in others if isinstance(other, ReadBlock))
        if block.block.first >= rays:
            raise error
        return method(caster, *others)

    return failing


@contextmanager
def stopping_at(monkeypatch, ray, error):
    """Make the casts of a block fail as by `fail_at`, and expect the error; yield its `ExceptionInfo`."""
    with monkeypatch.context() as patch:
        fail_at(patch, ray, error)
        with pytest.raises(type(error), match=str(error) or None) as caught:
            yield caught


def interrupted(tmp_path, monkeypatch, **how):
    """Start an output, and interrupt it after some rays."""
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy"
    with stopping_at(monkeypatch, 60, rb.RayboxError("enough")):
        rb.stream.cast(SCENE, rays, out, **{"chunk": 20, **how})
    return rays, out
