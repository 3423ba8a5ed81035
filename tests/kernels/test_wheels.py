"""Wheels and the source distribution: what they hold, and what they depend on."""

import email
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("numba", reason="needs Numba")
pytest.importorskip("hatchling")

from needs import c_compiler
from raybox.compiler import library
from raybox.kernels import platforms

ROOT = Path(__file__).parent.parent.parent
NATIVE = platforms.PLATFORMS[platforms.native()]
LEVEL = next(iter(NATIVE.levels))
BUILDS = ["kernels.txt", "runtime.c", "build.py", "_calls.c", "build_calls.py"]
REQUIRED = {"numpy", "click", "tqdm", "mapbox-earcut", "xxhash"}
pytestmark = pytest.mark.long


class Wheel(NamedTuple):
    """A wheel's file name, the names of its files, and what it requires without an extra."""

    tag: str
    names: list[str]
    requires: list[str]
    extras: list[str]


def build(source, folder, *targets, **environment):
    """Build with hatchling, without the network."""
    options = [word for target in targets for word in ("-t", target)]
    env = os.environ | {"RAYBOX_KERNELS": ""} | environment
    command = [sys.executable, "-m", "hatchling", "build", *options, "-d", str(folder)]
    ended = subprocess.run(command, cwd=source, env=env, capture_output=True, text=True, check=False)
    assert not ended.returncode, ended.stderr


def read(folder):
    """Return what the wheel of a folder is."""
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as file:
        names = file.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        facts = email.message_from_bytes(file.read(metadata))
    requires = facts.get_all("Requires-Dist")
    extras = [one for one in requires if "extra ==" in one]
    names = [name.removeprefix("raybox/") for name in names]
    return Wheel(path.stem, names, [one for one in requires if one not in extras], extras)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The source distribution, unpacked, with a list of one kernel."""
    folder = tmp_path_factory.mktemp("sdist")
    build(ROOT, folder, "sdist")
    with tarfile.open(next(folder.glob("*.tar.gz"))) as file:
        file.extractall(folder, filter="data")
    (tree,) = (path for path in folder.iterdir() if path.is_dir())
    shutil.copy(tree / "src/raybox/kernels/kernels.txt", folder)
    line = "raybox.compiler.runtime.spin_while(i8:1,i,i,i,i)\n"
    (tree / "src/raybox/kernels/kernels.txt").write_text(line)
    return tree


def test_a_pure_wheel_needs_numba(tree, tmp_path):
    build(tree, tmp_path, "wheel")
    wheel = read(tmp_path)
    assert wheel.tag.endswith("-py3-none-any")
    assert {one.split(">=")[0] for one in wheel.requires} == {
        "numpy",
        "numba",
        "click",
        "tqdm",
        "mapbox-earcut",
        "xxhash",
    }
    assert [name for name in wheel.names if name.startswith(("kernels/", "tests/"))] == [
        "kernels/kernels.txt"
    ]
    assert "compiler/library.py" in wheel.names
    (numba,) = (one for one in wheel.requires if one.startswith("numba"))
    assert f"{numba}; extra == 'jit'" in wheel.extras


def test_a_platform_wheel_has_machine_code_and_does_not_need_numba(tree, tmp_path):
    c_compiler()
    build(tree, tmp_path, "wheel", RAYBOX_KERNELS="native")
    wheel = read(tmp_path)
    assert "-none-" not in wheel.tag
    assert {one.split(">=")[0] for one in wheel.requires} == REQUIRED
    assert "numba>=0.62.1; extra == 'jit'" in wheel.extras
    path = NATIVE.library(Path("kernels"), library.usable_levels()[-1])
    built = {path.as_posix(), path.with_suffix(".json").as_posix(), "kernels/kernels.txt"}
    assert {name for name in wheel.names if name.startswith("kernels/")} == built
    assert [name for name in wheel.names if name.startswith("compiler/_calls.")]
    assert not [name for name in wheel.names if name.endswith((".c", "build_calls.py"))]
    licenses = {name.rpartition("/")[2] for name in wheel.names if "licenses/" in name}
    assert licenses == {"LICENSE", "NOTICE"}


def test_a_source_distribution_has_what_builds_both(tree):
    assert len((tree.parent / "kernels.txt").read_text().splitlines()) > 1
    found = {path.name for path in tree.rglob("*")}
    assert found >= {*BUILDS, "hatch_build.py"}
    assert not [name for name in found if name.endswith((".so", ".dll", ".dylib", ".pyd"))]


def test_a_source_distribution_has_the_files_of_tests(tree):
    def files(root):
        return {path.relative_to(root) for path in (root / "tests" / "data").rglob("*") if path.is_file()}

    assert files(tree) == files(ROOT)


def test_an_editable_install_builds_nothing_and_needs_numba(tree, tmp_path):
    pytest.importorskip("editables")
    code = "from hatchling.build import build_editable; import sys; build_editable(sys.argv[1])"
    env = os.environ | {"RAYBOX_KERNELS": LEVEL}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=tree, env=env, check=True)
    wheel = read(tmp_path)
    assert "numba>=0.62.1" in wheel.requires
    assert not [name for name in wheel.names if name.endswith(NATIVE.system.suffix)]
