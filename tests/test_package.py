"""The package as a whole: what importing it costs, and where its compiled code may live."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import raybox as rb

PACKAGE = Path(rb.__file__).parent


def run(code, **environment):
    """Run code in a fresh process and return what it prints."""
    kept = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    return subprocess.run(
        [sys.executable, "-c", code], env=kept | environment, check=True, capture_output=True, text=True
    ).stdout


def test_importing_loads_neither_numpy_nor_numba():
    assert run("import raybox, sys; print({'numpy', 'numba'} & set(sys.modules))") == "set()\n"


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
ASK = (
    BUILD
    + """
print(scene.nearest(rb.Rays(np.full((40, 3), -1.0), np.ones((40, 3)))).t.sum())
"""
)


def test_it_works_where_nothing_can_be_written(tmp_path):
    """Files in place of the cache folders: not even root can write into them."""
    copy = tmp_path / "raybox"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(path for path in copy.iterdir() if path.is_dir())]:
        (folder / "__pycache__").write_text("no folder")
    out = run(ASK, PYTHONPATH=str(tmp_path), HOME="/dev/null", XDG_CACHE_HOME="/dev/null/none")
    assert out.startswith("40.0\n")
    assert not list(tmp_path.rglob("*.nbc"))


def test_an_edit_in_any_kernel_file_makes_compiled_code_stale(tmp_path):
    """Numba alone would go on answering with the old code of a function in another file."""
    copy = tmp_path / "raybox"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    where = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    ask = BUILD + "from raybox.bvh import grow; print(sum(grow.grow.stats.cache_hits.values()))"
    assert run(ask, **where) == "0\n"
    assert run(ask, **where) == "1\n"
    (copy / "kernels" / "box.py").write_text((copy / "kernels" / "box.py").read_text() + "\n# edited\n")
    assert run(ask, **where) == "0\n"


def test_no_kind_of_input_compiles_anew(tmp_path):
    from raybox.bvh import groups

    scene = rb.Scene(rb.Boxes(np.zeros((30, 3)), np.ones((30, 3))))
    origins, directions = np.full((50, 3), -1.0), np.ones((50, 3))
    mapped = np.lib.format.open_memmap(tmp_path / "o.npy", "w+", np.float64, (50, 3))
    mapped[:] = origins
    frozen = origins.copy()
    frozen.flags.writeable = False
    kinds = [origins, mapped, frozen, np.asfortranarray(origins), origins[::-1], origins.astype(np.float32)]
    scene.nearest(rb.Rays(origins, directions))
    compiled = len(groups.ask.signatures)
    for kind in [*kinds, origins.tolist(), np.zeros((50, 2))]:
        dims = np.shape(kind)[1]
        boxes = scene if dims == 3 else rb.Scene(rb.Boxes(np.zeros((30, 2)), np.ones((30, 2))))
        rays = rb.Rays(kind, directions[:, :dims], t_max=9.0)
        np.testing.assert_array_equal(boxes.nearest(rays).t, 1.0 if dims == 3 else 0.0)
    assert len(groups.ask.signatures) == compiled
