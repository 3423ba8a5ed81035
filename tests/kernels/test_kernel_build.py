"""Libraries of kernels: the list, and the checks of what is compiled and linked."""

import re
import subprocess
import sys

import pytest

from needs import c_compiler

pytest.importorskip("numba", reason="needs Numba")

from raybox.compiler import library
from raybox.kernels import build, platforms
from raybox.kernels.symbols import imported
from small_library import KEYS, LEVEL, LISTED, NATIVE, SPIN, build_copy, library_in, run


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with a copy of the package and a small library."""
    folder = tmp_path_factory.mktemp("built")
    build_copy(folder)
    return folder


@pytest.mark.core
def test_lines_are_a_module_a_function_and_kinds():
    line = build.parse("raybox.a.b_c.f(Rows(f8:2r,i4:1),(i,g),(),n,b)")
    assert line == ("raybox.a.b_c", "f", "Rows(f8:2r,i4:1),(i,g),(),n,b")
    assert line.entry == "raybox.a.b_c.f(Rows(f8:2,i4:1),(i,g),(),n,b)"
    assert line.writable == 0b10
    assert build.parse("raybox.a.f()").kinds == ""


def test_a_name_stands_for_each_of_its_kinds():
    text = """# a comment

WORD = i | f8:1
ROWS = Rows(WORD,
  b) | None
raybox.a.f(ROWS,
  WORD)
raybox.a.f(n)
raybox.a.f(MISSING)
"""
    rows = "Rows(i,b)", "Rows(f8:1,b)", "None"
    each = [f"raybox.a.f({row},{word})" for row in rows for word in ("i", "f8:1")]
    assert build.expanded(text) == sorted([*each, "raybox.a.f(n)", "raybox.a.f(MISSING)"])
    with pytest.raises(platforms.BuildError, match="MISSING"):
        list(map(build.parse, build.expanded(text)))


@pytest.mark.parametrize(
    "text",
    ["", "# a comment", *(f"raybox.a.f{end}" for end in ("", "(i", "(i))", "(f8)", "(i,)")), "numpy.f(i)"],
)
def test_a_wrong_line_is_an_error_that_shows_it(text):
    with pytest.raises(platforms.BuildError, match=re.escape(f"got {text!r}")):
        build.parse(text)


WRONG = {
    SPIN.replace("spin", "turn"): "raybox.compiler.runtime has no entry turn_while",
    SPIN.replace(",i)", ")"): "missing a required argument",
    SPIN.replace(",i)", ",i,i)"): "too many positional arguments",
    KEYS.replace("Order", "Ordre"): "raybox has no named tuple Ordre",
    KEYS.replace("Order(", "Order(i,"): "Order has ",
}


def test_all_lines_that_fit_no_entry_are_one_error_before_anything_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "_compile", pytest.fail)
    lines = [build.parse(line) for line in (*WRONG, SPIN, KEYS)]
    with pytest.raises(platforms.BuildError) as caught:
        build.build([LEVEL], NATIVE, tmp_path, lines)
    rule, *problems = str(caught.value).splitlines()
    assert rule == "kernels.txt has lines that fit no entry of raybox:"
    for line, problem, text in zip(lines, problems, WRONG.values(), strict=False):
        assert problem.startswith(f"{line.entry}: ")
        assert text in problem
    assert len(problems) == len(WRONG)
    build.check(list(map(build.parse, LISTED)))


def test_a_module_that_is_not_there_is_an_error_that_names_it():
    with pytest.raises(platforms.BuildError, match=r"No module named 'raybox\.compiler\.runtimes'"):
        build.check([build.parse(SPIN.replace("runtime", "runtimes"))])


def test_without_a_c_compiler_nothing_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "_compile", pytest.fail)
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(platforms.BuildError, match=r"no C compiler: no-such-compiler: .*; install one"):
        build.build([LEVEL], NATIVE, tmp_path, [build.parse(SPIN)])


def test_native_is_the_highest_level_of_this_processor(tmp_path, monkeypatch, capsys):
    built = []
    monkeypatch.setattr(build, "build", lambda levels, *_: built.extend(levels))
    build.main(["native"])
    assert built == [library.usable_levels()[-1]]
    monkeypatch.setattr(build, "usable_levels", tuple)
    with pytest.raises(SystemExit):
        build.main(["native"])
    assert "this processor has none of the levels" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["v5"], f"a level of {platforms.native()} is {LEVEL}"),
        (["v2", "--target", "sparc-solaris"], "--target is one of x86_64-linux, "),
        (["v2", "--target", "aarch64-linux"], "a level of aarch64-linux is generic; got 'v2'"),
        (["native", "--target", "aarch64-linux"], "a level of aarch64-linux is generic; got 'native'"),
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
    assert all(re.fullmatch(NATIVE.system.imports, name) for name in imported(library_in(built).read_bytes()))


@pytest.mark.skipif(sys.platform != "linux", reason="links a source of its own as ELF")
def test_other_imports_and_sizes_are_errors(tmp_path, monkeypatch):
    c_compiler()
    made = tmp_path / "made.so"
    source = "double sin(double); void f(void *); double g(double x) { f(&x); return sin(x); }"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(made)]
    subprocess.run(command, input=source, text=True, check=True)
    assert imported(made.read_bytes()) == {"sin", "f"}
    with pytest.raises(platforms.BuildError, match=r"imports f, sin; allowed: free"):
        build._check(made, made.read_bytes(), NATIVE)
    subprocess.run(command, input="int f(void) { return 1; }", text=True, check=True)
    build._check(made, made.read_bytes(), NATIVE)
    monkeypatch.setattr(build, "MAX_BYTES", 100)
    with pytest.raises(platforms.BuildError, match="bytes; at most 100"):
        build._check(made, made.read_bytes(), NATIVE)


@pytest.mark.long
def test_a_second_build_has_the_same_bytes(built, tmp_path):
    """With nothing stored; and what differs from it is an error."""
    command = ["-m", "raybox.kernels.build", LEVEL, "--into", str(tmp_path), "--check"]
    ended = run(*command, source=built)
    assert "a second build has the same bytes" in ended.stdout, ended.stderr
    assert library_in(built).read_bytes() == NATIVE.library(tmp_path, LEVEL).read_bytes()
