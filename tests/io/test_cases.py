"""The small files of tests/data/cases, each read as its README says."""

import re
import warnings

import pytest

import raybox as rb
from file_samples import CASES
from needs import package
from raybox.errors import SkippedWarning
from refusals import refused

README = (CASES / "README.md").read_text(encoding="utf-8")
ROWS = re.compile(r"^\| `([^`]+)` \| (.*?) \| .* \|$", re.MULTILINE)
FILES = ROWS.findall(README)


def test_every_file_has_a_row():
    files = {path.relative_to(CASES).as_posix() for path in CASES.rglob("*") if path.is_file()}
    assert {name for name, _ in FILES} == files - {"README.md"}


@pytest.mark.parametrize(("name", "expected"), FILES)
def test_a_file_is_read_as_its_row_says(name, expected):
    if name.endswith(".ifc"):
        package("ifcopenshell")
    path = CASES / name

    def load(**options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SkippedWarning)
            return rb.load(path, **options)

    def error(**options):
        return refused(path, **options)

    assert eval(expected.strip("`"), {"load": load, "error": error})
