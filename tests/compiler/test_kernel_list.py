"""The list of kernels: everything is run, and no combination of kinds is missing in the list, or unused."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba", reason="needs Numba")

import kernel_lines as lines
from raybox.compiler.kinds import without_marks
from raybox.kernels import build

TESTS = Path(__file__).parents[1]
EVERYTHING = TESTS / "helpers" / "everything.py"
LISTED = TESTS.parent / "src" / "raybox" / "kernels" / "kernels.txt"


@pytest.mark.long
def test_the_list_has_what_everything_calls_and_nothing_else(tmp_path):
    found = tmp_path / "kernels.txt"
    subprocess.run([sys.executable, EVERYTHING, "--kernels", found], check=True)
    called, listed = set(lines.read(found)), set(lines.read(LISTED))
    assert len(called) > 100
    assert not called - listed, f"missing in {LISTED.name}"
    assert not listed - called, "in the list, and never called by tests/helpers/everything.py"


def test_each_line_fits_an_entry():
    """A changed entry or named tuple is noticed at once, not by the next long run."""
    build.check([build.parse(line) for line in lines.read(LISTED)])


def test_the_list_is_merged():
    listed = lines.read(LISTED)
    assert listed == lines.merge(listed)


def test_lines_that_differ_in_marks_are_one():
    given = ["m.b(f8:2,i8:1r,Rows(f8:2r,b))", "m.a(i)", "m.b(f8:2r,i8:1,Rows(f8:2,b))", "m.b(f8:1,i)"]
    assert lines.merge(given) == ["m.a(i)", "m.b(f8:1,i)", "m.b(f8:2r,i8:1r,Rows(f8:2r,b))"]
    assert lines.merge(lines.merge(given)) == lines.merge(given)
    assert without_marks(given[0]) == without_marks(given[2]) == "m.b(f8:2,i8:1,Rows(f8:2,b))"
