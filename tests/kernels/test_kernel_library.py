"""When a library of kernels is loaded, and what a damaged or foreign one is to users."""

import shutil
from pathlib import Path

import pytest

import raybox as rb

pytest.importorskip("numba", reason="needs Numba")

from raybox.compiler import library
from raybox.store import checksum, record
from small_library import LEVEL, build_copy, library_in, run

CALL = """
import sys
import numpy as np
from raybox.compiler.runtime import spin_while
spin_while(np.zeros(1, np.int64), 0, 0, 0, 3)
print("numba" in sys.modules)
"""
NO_NUMBA = "import sys; sys.modules['numba'] = sys.modules['llvmlite'] = None\n"
REINSTALL = 'reinstall raybox, or let Numba compile kernels here: pip install "raybox[jit]"'


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with a copy of the package and a small library."""
    folder = tmp_path_factory.mktemp("built")
    build_copy(folder)
    return folder


@pytest.fixture
def copy(built, tmp_path):
    """A copy of that folder, to be changed."""
    shutil.copytree(built / "raybox", tmp_path / "raybox")
    return tmp_path


def test_a_library_is_called_without_numba(built):
    assert run("-c", CALL, source=built, RAYBOX_LEVEL=LEVEL).stdout == "False\n"


def test_what_a_library_lacks_is_compiled(built):
    call = CALL.replace("np.int64", "np.uint64")
    assert run("-c", call, source=built, RAYBOX_LEVEL=LEVEL).stdout == "True\n"


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path, size=-1):
    path.write_bytes(path.read_bytes()[:size])


def replace_by_folder(path):
    path.unlink()
    path.mkdir()


def change(manifest, **facts):
    """Write other facts into a manifest, with the checksum of a whole one."""
    value = record.decode(library.MANIFEST, manifest.read_bytes()).value._asdict() | facts
    manifest.write_bytes(record.encode(library.MANIFEST, value))


def replace_by_foreign(path):
    """Replace a library by one of another kind of processor, with a manifest that fits."""
    content = path.read_bytes()[:18] + b"\xf3\0" + path.read_bytes()[20:]  # ELF: RISC-V
    path.write_bytes(content)
    change(path.with_suffix(".json"), checksum=checksum.of_bytes(content))


def of_another_version(path):
    manifest = path.with_suffix(".json")
    value = record.decode(library.MANIFEST, manifest.read_bytes()).value._asdict()
    other = record.RecordKind("manifest of kernels", library.MANIFEST.version + 1, library.MANIFEST.parse)
    manifest.write_bytes(record.encode(other, value))


DAMAGES = {
    "flipped": (flip, "is damaged: its checksum differs"),
    "cut": (cut, "bytes in place of"),
    "cut to a page": (lambda path: cut(path, 4096), "has 4,096 bytes in place of"),
    "empty": (lambda path: path.write_bytes(b""), "has 0 bytes in place of"),
    "a folder": (replace_by_folder, "cannot be loaded"),
    "gone": (Path.unlink, "cannot be loaded"),
    "foreign": (replace_by_foreign, "cannot be loaded"),
    "without a manifest": (lambda path: path.with_suffix(".json").unlink(), "cannot be loaded"),
    "with garbage": (lambda path: path.with_suffix(".json").write_text("[]"), "is no record of raybox"),
    "with a deep manifest": (
        lambda path: path.with_suffix(".json").write_text("[" * 100_000),
        "is no record of raybox",
    ),
    "with a manifest that is cut": (lambda path: cut(path.with_suffix(".json")), "is no record of raybox"),
    "with a manifest that is flipped": (lambda path: flip(path.with_suffix(".json")), "is damaged"),
    "with fewer facts": (lambda path: change(path.with_suffix(".json"), more=1), "is no manifest of kernels"),
    "of another version": (of_another_version, "was written by another version of raybox"),
    "of other sources": (
        lambda path: (path.parents[1] / "compiler" / "runtime.py").open("a").write("# edited\n"),
        "was built of other sources",
    ),
    "of a source that is gone": (
        lambda path: change(path.with_suffix(".json"), sources=["gone.py"]),
        "was built of other sources",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_or_foreign_library_is_one_clear_error(copy, name):
    """Never a crash: a library that is cut would end Python by SIGBUS."""
    damage, problem = DAMAGES[name]
    damage(library_in(copy))
    ended = run("-c", NO_NUMBA + CALL, source=copy)
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.startswith(f"raybox.errors.RayboxError: {copy}")
    assert problem in last
    assert last.endswith(REINSTALL)
    assert "During handling" not in ended.stderr


@pytest.mark.parametrize(("name", "warnings"), [("flipped", 1), ("of other sources", 0)])
def test_with_numba_kernels_of_such_a_library_are_compiled(copy, name, warnings):
    """With a warning, once, unless a source was edited."""
    damage, problem = DAMAGES[name]
    damage(library_in(copy))
    ended = run("-c", CALL + CALL.replace("np.int64", "np.uint64"), source=copy)
    assert ended.stdout == "True\nTrue\n", ended.stderr
    assert ended.stderr.count("RuntimeWarning: ") == ended.stderr.count(problem) == warnings
    ended = run("-c", CALL, source=copy, RAYBOX_LEVEL=LEVEL)
    assert f"RAYBOX_LEVEL={LEVEL}: {copy}" in ended.stderr
    assert problem in ended.stderr


def test_a_file_that_may_not_be_read_is_a_refusal(copy, monkeypatch):
    def refuse(*_args):
        raise PermissionError(13, "Permission denied", str(library_in(copy)))

    monkeypatch.setattr(library.checksum, "of_file", refuse)
    monkeypatch.setattr(library, "_is_of", lambda _manifest: True)
    assert "Permission denied" in library._load(library_in(copy)).problem


def test_levels_that_are_unknown_or_absent_are_errors(built):
    ended = run("-c", CALL, source=built, RAYBOX_LEVEL="v9")
    assert "RAYBOX_LEVEL=v9: this processor has " in ended.stderr
    other = "v3" if LEVEL == "v2" else "v2"
    assert f"RAYBOX_LEVEL={other}: " in run("-c", CALL, source=built, RAYBOX_LEVEL=other).stderr
    assert run("-c", CALL, source=built, RAYBOX_LEVEL="jit").stdout == "True\n"


@pytest.mark.skipif(LEVEL != "v2", reason="ARM has one level")
def test_a_level_above_that_of_the_processor_is_an_error(monkeypatch):
    library._find_library.cache_clear()
    monkeypatch.setattr(library, "level", lambda: "v2")
    monkeypatch.setenv("RAYBOX_LEVEL", "v3")
    with pytest.raises(rb.RayboxError, match="RAYBOX_LEVEL=v3: this processor has v2; unset it"):
        library.library()
    library._find_library.cache_clear()
