"""The package as a whole: cost of its import, folders of its compiled code."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import raybox as rb
from raybox.compiler import entry_points

PACKAGE = Path(rb.__file__).parent


def run(code, **environment):
    """Run code in a new process and return its output."""
    environ = {k: v for k, v in os.environ.items() if k != "RAYBOX_CACHE_DIR"}
    return subprocess.run(
        [sys.executable, "-c", code], env=environ | environment, check=True, capture_output=True, text=True
    ).stdout


def test_importing_loads_neither_numpy_nor_numba():
    assert run("import raybox, sys; print({'numpy', 'numba'} & set(sys.modules))") == "set()\n"


FIRST_USE = """
import sys
sys.modules["numba"] = sys.modules["llvmlite"] = None  # as where a wheel is installed
import atexit, bisect, copy, ctypes, importlib.util, json, mmap, pathlib, threading
import numpy.typing, xxhash
before = {*sys.modules}
import raybox as rb
from raybox.compiler import library
boxes, rays = rb.Boxes([0, 0, 0], [1, 1, 1]), rb.Rays([-1, 0.5, 0.5], [1, 0, 0])
if rb.Scene and library.library():
    assert rb.Scene(boxes).nearest(rays).index == 0
print(*{*sys.modules} - before)
"""
LATER = ["all_hits", "first", "segments", "integrate", "deposit", "path_sums", "every"]


@pytest.mark.core
def test_a_first_query_imports_little():
    """Nothing but NumPy, XXH3 and what is listed there: each module of the standard library takes time."""
    found = run(FIRST_USE).split()
    own = {name for name in found if name.startswith("raybox")}
    assert {name for name in {*found} - own if not name.startswith(("_", "encodings"))} == set()
    assert {f"raybox.queries.{name}" for name in LATER}.isdisjoint(own)
    assert 150 < len(own) < 215


def test_every_public_name_resolves_and_is_documented():
    for name in rb.__all__:
        assert getattr(rb, name) is not None
        assert name == "__version__" or getattr(rb, name).__doc__
    assert set(rb.__all__) <= set(dir(rb))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Ray'"):
        _ = rb.Ray


BUILD = """
import numpy as np, raybox as rb
scene = rb.Scene(rb.Boxes([[0, 0, 0], [2, 2, 2]], [[1, 1, 1], [3, 3, 3]]))
"""
QUERY = (
    BUILD
    + """
print(scene.nearest(rb.Rays(np.full((40, 3), -1.0), np.ones((40, 3)))).t.sum())
"""
)


@pytest.fixture
def copy(tmp_path):
    """A copy of the package, to be edited: the folder that is imported."""
    copy = tmp_path / "home" / "raybox"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def files_of(package):
    """Return the paths of all files but byte code."""
    paths = [path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return {path.relative_to(package) for path in paths}


def test_it_works_where_nothing_can_be_written():
    """Files in place of the cache folder: not even root can write into them."""
    out = run(QUERY, HOME="/dev/null", XDG_CACHE_HOME="/dev/null/none", LOCALAPPDATA="/dev/null/none")
    assert out.startswith("40.0\n")


@pytest.mark.jit
def test_compiled_code_is_in_the_users_cache_folder_alone(copy, tmp_path):
    cache = tmp_path / "cache"
    names = ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA")
    run(BUILD, PYTHONPATH=str(copy.parent), **dict.fromkeys(names, str(cache)))
    (folder,) = {path.parent for path in tmp_path.rglob("*.o")}
    assert folder in {cache / "raybox", cache / "Library" / "Caches" / "raybox"}
    assert files_of(copy) == files_of(PACKAGE)


SWAPPED = """
import numpy as np, raybox as rb
rays = rb.Rays(np.tile([-1.0, 0.5, 0.5], (2000, 1)), [1, 0, 0], t_min=0, t_max=9)
boxes = rb.Boxes(np.zeros((2000, 3)), np.ones((2000, 3)))
print(rb.intersect(rays, boxes).hit.sum())
"""


NAMED = "RayRows(origins, directions, t_min=low, t_max=high)"


@pytest.mark.jit
def test_fields_in_another_order_make_compiled_code_stale(copy, tmp_path):
    """Only compiled code depends on the order of fields passed by name."""
    where = {"PYTHONPATH": str(copy.parent), "RAYBOX_CACHE_DIR": str(tmp_path / "cache")}
    rays, rows = (copy / "geometry" / name for name in ("rays.py", "rows.py"))
    by_name = rays.read_text().replace("RayRows(origins, directions, low, high)", NAMED)
    low, high = (f'    {name}: Floats\n    """(1,) or (N,)"""\n' for name in ("t_min", "t_max"))
    swapped = rows.read_text().replace(low + high, high + low)
    assert by_name != rays.read_text()
    assert swapped != rows.read_text()
    rays.write_text(by_name)
    for text in (rows.read_text(), swapped):
        rows.write_text(text)
        assert run(SWAPPED, **where) == "2000\n"


def test_no_kind_of_input_is_code_of_its_own(tmp_path, monkeypatch):
    found, find = [], entry_points.find_code
    monkeypatch.setattr(entry_points, "find_code", lambda *args: found.append(args) or find(*args))

    scene = rb.Scene(rb.Boxes(np.zeros((30, 3)), np.ones((30, 3))))
    origins, directions = np.full((50, 3), -1.0), np.ones((50, 3))
    mapped = np.lib.format.open_memmap(tmp_path / "o.npy", "w+", np.float64, (50, 3))
    mapped[:] = origins
    frozen = origins.copy()
    frozen.flags.writeable = False
    kinds = [origins, mapped, frozen, np.asfortranarray(origins), origins[::-1], origins.astype(np.float32)]
    scene.nearest(rb.Rays(origins, directions))
    found.clear()
    for kind in [*kinds, origins.tolist(), np.zeros((50, 2))]:
        dims = np.shape(kind)[1]
        boxes = scene if dims == 3 else rb.Scene(rb.Boxes(np.zeros((30, 2)), np.ones((30, 2))))
        rays = rb.Rays(kind, directions[:, :dims], t_max=9.0)
        np.testing.assert_array_equal(boxes.nearest(rays).t, 1.0 if dims == 3 else 0.0)
    assert not found
