"""What the isolated build of a wheel with machine code installs, and what the build imports."""

import json
import os
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="needs Numba")
pytest.importorskip("hatchling", reason="needs Numba and the tools of a checkout")

from packaging.requirements import Requirement

from processes import output_of, python

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REQUIRED = "from hatchling.build import get_requires_for_build_wheel as get; print(*get(), sep='\\n')"
WITHOUT = """
import runpy, sys
from pathlib import Path

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, Absent())
"""
INSTALLED = """
import json
from importlib.metadata import packages_distributions
print(json.dumps(packages_distributions()))
"""
CHECK = """
import setuptools
from setuptools.command import build_ext
from raybox.kernels import build
build.check(list(map(build.parse, build.expanded(Path(build.FOLDER, "kernels.txt").read_text()))))
print(*{name.partition(".")[0] for name in sys.modules})
"""
BUILD = """
sys.argv = ["build", "native", "--into", "built"]
runpy.run_module("raybox.kernels.build", run_name="__main__", alter_sys=True)
"""


def required(kernels):
    """Return the names of what a build installs besides what builds any wheel."""
    env = os.environ | {"RAYBOX_KERNELS": kernels}
    command = [sys.executable, "-c", REQUIRED]
    text = subprocess.run(command, cwd=ROOT, env=env, check=True, capture_output=True, text=True).stdout
    return names_of(filter(None, text.splitlines()))


def names_of(requirements):
    """Return the names of those requirements that this machine has."""
    found = map(Requirement, requirements)
    return {normal(one.name) for one in found if not one.marker or one.marker.evaluate({"extra": ""})}


def normal(name):
    return name.lower().replace("_", "-")


def with_dependencies(names):
    """Return names of distributions, and of all that these need on this machine."""
    found, pending = set(), list(names)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += names_of(requires(name) or ())
    return found


def test_the_build_installs_what_raybox_needs():
    assert not required("")
    needed = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["dependencies"]
    own = names_of([*needed, *PROJECT["project"]["optional-dependencies"]["jit"]])
    assert len(own) > 4
    only = {"setuptools", "ziglang"} if sys.platform == "win32" else {"setuptools"}
    assert required("native") == own | only


def test_the_build_needs_nothing_that_it_does_not_install():
    installed = with_dependencies(required("native") | names_of(PROJECT["build-system"]["requires"]))
    # By a fresh process: setuptools, once imported, adds its vendored packages to the path.
    distributions = json.loads(output_of("-c", INSTALLED))
    hidden = {name for name, made in distributions.items() if not installed & set(map(normal, made))}
    hidden -= {"raybox", "_distutils_hack"}
    assert {"pytest", "pandas"} <= hidden
    imported = output_of("-c", WITHOUT.format(names=hidden) + CHECK).split()
    assert {"numba", "llvmlite", "numpy", "mapbox_earcut", "setuptools", "xxhash"} <= set(imported)


@pytest.mark.parametrize("name", ["numpy", "numba", "llvmlite", "mapbox_earcut", "xxhash"])
def test_a_package_that_is_absent_is_named_before_anything_is_compiled(tmp_path, name):
    code, cache = WITHOUT.format(names={name}) + BUILD, str(tmp_path / "cache")
    ended = python("-c", code, cwd=tmp_path, RAYBOX_CACHE_DIR=cache)
    assert ended.returncode == 1
    assert f"No module named '{name}" in ended.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())
