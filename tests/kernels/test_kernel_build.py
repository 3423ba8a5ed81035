"""Libraries of kernels: the list, the checks of what is linked, and when a library is loaded."""

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import raybox as rb
from needs import c_compiler
from processes import python

pytest.importorskip("numba", reason="needs Numba")

from raybox.compiler import library
from raybox.kernels import build, platforms
from raybox.kernels.symbols import imported

PACKAGE = Path(rb.__file__).parent
NATIVE = platforms.PLATFORMS[platforms.native()]
LEVEL = next(iter(NATIVE.levels))  # which every processor has
SPIN = "raybox.compiler.runtime.spin_while(i8:1,i,i,i,i)"
LISTED = build.FOLDER.joinpath("kernels.txt").read_text().splitlines()
KEYS = next(line for line in LISTED if line.startswith("raybox.traversal.ray_groups.scatter("))
CALL = """
import sys
import numpy as np
from raybox.compiler.runtime import spin_while
spin_while(np.zeros(1, np.int64), 0, 0, 0, 3)
print("numba" in sys.modules)
"""


def run(*arguments, source=PACKAGE.parent, **environment):
    """Run Python on the package in a folder; return the finished process."""
    return python(*arguments, PYTHONPATH=str(source), **environment)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A copy of the package with a library of two kernels, in a folder."""
    c_compiler()
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(PACKAGE, folder / "raybox", ignore=shutil.ignore_patterns("__pycache__", "raybox-*"))
    (folder / "raybox" / "kernels" / "kernels.txt").write_text(f"{SPIN}\n{KEYS}\n")
    ended = run("-m", "raybox.kernels.build", LEVEL, source=folder)
    assert not ended.returncode, ended.stderr
    return folder


@pytest.fixture
def copy(built, tmp_path):
    """A copy of that package, to be changed."""
    shutil.copytree(built / "raybox", tmp_path / "raybox")
    return tmp_path


@pytest.mark.core
def test_lines_are_a_module_a_function_and_kinds():
    line = build.parse("raybox.a.b_c.f(Rows(f8:2r,i4:1),(i,g),(),n,b)")
    assert line == ("raybox.a.b_c", "f", "Rows(f8:2r,i4:1),(i,g),(),n,b")
    assert line.entry == "raybox.a.b_c.f(Rows(f8:2,i4:1),(i,g),(),n,b)"
    assert line.writable == 0b10
    assert build.parse("raybox.a.f()").kinds == ""


@pytest.mark.parametrize(
    "text",
    ["", "# a comment", *(f"raybox.a.f{end}" for end in ("", "(i", "(i))", "(f8)", "(i,)")), "numpy.f(i)"],
)
def test_a_wrong_line_is_an_error_that_shows_it(text):
    with pytest.raises(platforms.BuildError, match=re.escape(f"got {text!r}")):
        build.parse(text)


def test_a_line_that_nothing_defines_is_an_error_that_names_it():
    importlib.import_module("raybox.traversal.ray_groups")
    for line, name in (
        (SPIN.replace("spin", "turn"), "turn_while"),
        (KEYS.replace("Order", "Ordre"), "Ordre"),
        (SPIN.replace("runtime", "runtimes"), "runtimes"),
    ):
        with pytest.raises(platforms.BuildError, match=name):
            build._compile_line(build.parse(line))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["v5"], f"a level of {platforms.native()} is {LEVEL}"),
        (["v2", "--target", "sparc-solaris"], "--target is one of x86_64-linux, "),
        (["v2", "--target", "aarch64-linux"], "a level of aarch64-linux is generic; got 'v2'"),
    ],
)
def test_an_unknown_level_or_platform_is_an_error_that_lists_them(arguments, message, capsys):
    with pytest.raises(SystemExit):
        build.main(arguments)
    assert message in capsys.readouterr().err


def test_the_loader_finds_libraries_where_the_build_writes_them():
    for level in NATIVE.levels:
        assert library.library_path(level) == NATIVE.library(library.FOLDER, level)


def test_a_library_imports_nothing_but_functions_of_c(built):
    content = NATIVE.library(built / "raybox" / "kernels", LEVEL).read_bytes()
    assert all(re.fullmatch(NATIVE.system.imports, name) for name in imported(content))


@pytest.mark.skipif(sys.platform != "linux", reason="links a source of its own as ELF")
def test_other_imports_and_sizes_are_errors(tmp_path, monkeypatch):
    c_compiler()
    made = tmp_path / "made.so"
    source = "double sin(double); void f(void *); double g(double x) { f(&x); return sin(x); }"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(made)]
    subprocess.run(command, input=source, text=True, check=True)
    assert imported(made.read_bytes()) == {"sin", "f"}
    with pytest.raises(platforms.BuildError, match=r"imports f, sin; allowed: free"):
        build._check(made, NATIVE)
    subprocess.run(command, input="int f(void) { return 1; }", text=True, check=True)
    build._check(made, NATIVE)
    monkeypatch.setattr(build, "MAX_BYTES", 100)
    with pytest.raises(platforms.BuildError, match="bytes; at most 100"):
        build._check(made, NATIVE)


def test_a_library_is_called_without_numba(built):
    assert run("-c", CALL, source=built, RAYBOX_LEVEL=LEVEL).stdout == "False\n"


def test_what_a_library_lacks_is_compiled(built):
    call = CALL.replace("np.int64", "np.uint64")
    assert run("-c", call, source=built, RAYBOX_LEVEL=LEVEL).stdout == "True\n"


def test_a_library_of_other_sources_is_never_loaded(copy):
    with (copy / "raybox" / "compiler" / "runtime.py").open("a") as file:
        file.write("# edited\n")
    ended = run("-c", CALL, source=copy)
    assert ended.stdout == "True\n", ended.stderr
    ended = run("-c", CALL, source=copy, RAYBOX_LEVEL=LEVEL)
    assert f"RAYBOX_LEVEL={LEVEL}" in ended.stderr
    assert "no library of this level for these sources" in ended.stderr


@pytest.mark.parametrize("damage", ["", "[]", '{"stamp": 1, "sources": ["nowhere.py"], "entries": {}}'])
def test_a_library_with_a_damaged_manifest_is_never_loaded(copy, damage):
    manifest = NATIVE.library(copy / "raybox" / "kernels", LEVEL).with_suffix(".json")
    assert json.loads(manifest.read_text())["entries"]
    manifest.write_text(damage)
    assert "no library of this level" in run("-c", CALL, source=copy, RAYBOX_LEVEL=LEVEL).stderr


def test_levels_that_are_unknown_or_absent_are_errors(built):
    ended = run("-c", CALL, source=built, RAYBOX_LEVEL="v9")
    assert "RAYBOX_LEVEL=v9: this processor has " in ended.stderr
    other = "v3" if LEVEL == "v2" else "v2"
    assert f"RAYBOX_LEVEL={other}: " in run("-c", CALL, source=built, RAYBOX_LEVEL=other).stderr
    assert run("-c", CALL, source=built, RAYBOX_LEVEL="jit").stdout == "True\n"


@pytest.mark.skipif(LEVEL != "v2", reason="ARM has one level")
def test_a_level_above_that_of_the_processor_is_an_error(monkeypatch):
    library.library.cache_clear()
    monkeypatch.setattr(library, "level", lambda: "v2")
    monkeypatch.setenv("RAYBOX_LEVEL", "v3")
    with pytest.raises(rb.RayboxError, match="RAYBOX_LEVEL=v3: this processor has v2; unset it"):
        library.library()
    library.library.cache_clear()


@pytest.mark.long
def test_a_second_build_has_the_same_bytes(built, tmp_path):
    """With nothing stored; and what differs from it is an error."""
    command = ["-m", "raybox.kernels.build", LEVEL, "--into", str(tmp_path), "--check"]
    ended = run(*command, source=built)
    assert "a second build has the same bytes" in ended.stdout, ended.stderr
    first = NATIVE.library(built / "raybox" / "kernels", LEVEL)
    assert first.read_bytes() == NATIVE.library(tmp_path, LEVEL).read_bytes()
