"""benchmarks/compare.py: equal trees are equal, a changed result is found; no test depends on times."""

import re
import shutil
from pathlib import Path

import pytest

from processes import python

pytestmark = [pytest.mark.long, pytest.mark.jit]  # the trees have no libraries
ROOT = Path(__file__).parents[1]
TINY = ("--scenes", "tiny", "--rays", "2000", "--repeats", "2")
CHANGED = """
from raybox import Scene
_count = Scene.count
Scene.count = lambda self, rays, **how: _count(self, rays, **how) + (rays.shape == (1000,))
"""


def compare(new, *options):
    return python(ROOT / "benchmarks" / "compare.py", ROOT, new, *TINY, *options)


def test_a_tree_is_equal_to_itself():
    done = compare(ROOT, "--bar", "1e9", "--only", "^tiny/count/incoherent/(1|1000)/")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 cases, 0 with different bits or errors" in done.stdout
    assert "2 timed" in done.stdout
    assert len(re.findall(r" same$", done.stdout, re.MULTILINE)) == 2


def test_a_changed_result_is_found(tmp_path):
    shutil.copytree(ROOT / "src" / "raybox", tmp_path / "src" / "raybox")
    with (tmp_path / "src" / "raybox" / "__init__.py").open("a") as file:
        file.write(CHANGED)
    done = compare(tmp_path, "--bits-only", "--only", "^tiny/count/incoherent/(1|1000)/")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 cases, 1 with different bits or errors" in done.stdout
    assert "tiny/count/incoherent/1000/workers=1: differs in array" in done.stdout


def test_an_unknown_tree_is_an_error():
    done = compare("no-such-tree")
    assert done.returncode == 1
    assert "neither a folder with src/raybox nor a commit" in done.stderr
