"""A copy of the package with a library of two kernels, and a process that calls one of them."""

import shutil
from pathlib import Path

import pytest

import raybox as rb
from needs import c_compiler
from processes import python

pytest.importorskip("numba", reason="needs Numba")  # wheels leave out what builds kernels

from raybox.compiler.jit.lines import expanded
from raybox.kernels import build, platforms

PACKAGE = Path(rb.__file__).parent
NATIVE = platforms.PLATFORMS[platforms.native()]
LEVEL = next(iter(NATIVE.levels))  # which every processor has
LISTED = expanded(build.FOLDER.joinpath("kernels.txt").read_text())
SPIN = "raybox.compiler.runtime.spin_while(i8:1,i,i,i,i)"
KEYS = next(line for line in LISTED if line.startswith("raybox.traversal.ray_groups.scatter("))


def run(*arguments, source=PACKAGE.parent, **environment):
    """Run Python on the package in a folder; return the finished process."""
    return python(*arguments, PYTHONPATH=str(source), **environment)


def build_copy(folder):
    """Copy the package into a folder, with a library of two kernels; without a C compiler, skip the test."""
    c_compiler()
    shutil.copytree(PACKAGE, folder / "raybox", ignore=shutil.ignore_patterns("__pycache__", "raybox-*"))
    (folder / "raybox" / "kernels" / "kernels.txt").write_text(f"{SPIN}\n{KEYS}\n")
    ended = run("-m", "raybox.kernels.build", LEVEL, source=folder)
    assert not ended.returncode, ended.stderr


def library_in(folder):
    """Return the path of the library in such a copy."""
    return NATIVE.library(folder / "raybox" / "kernels", LEVEL)
