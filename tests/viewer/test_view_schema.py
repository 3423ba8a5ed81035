"""The schema of messages: what is valid, and that the page has the same types."""

import runpy
from pathlib import Path
from typing import Annotated, Literal, TypedDict

import pytest

from raybox.viewer.messages import is_valid

PAGE = Path(__file__).parents[2] / "page"


class Pair(TypedDict):
    low: float
    high: float | None


@pytest.mark.skipif(not PAGE.exists(), reason="the sources of the page are in the repository alone")
def test_the_types_of_the_page_are_those_of_python():
    made = runpy.run_path(str(PAGE / "schema.py"))["schema"]()
    assert (PAGE / "src" / "schema.ts").read_text(encoding="utf-8") == made, "run page/schema.py"


@pytest.mark.parametrize(
    ("form", "valid", "invalid"),
    [
        (int, [0, 2**53], [-1, 2**53 + 1, True, 1.0, None, "1"]),
        (float, [0, -1.5, 10**308], [True, None, "1", 10**309]),
        (str, ["", "a"], [1, None]),
        (float | None, [None, 1], ["", False]),
        (Annotated[str, 3], ["a", "abc"], ["", "abcd", 1]),
        (Literal["a", "b"], ["a"], ["c", 1, None]),
        (Literal[1], [1], [True, 1.0, 2]),
        (tuple[float, float], [[1, 2]], [[1], [1, 2, 3], [1, "2"], (1, 2), None]),
        (Pair, [{"low": 1, "high": None}, {"low": 1, "high": 2, "more": []}], [{"high": 1}, [], None]),
    ],
)
def test_json_is_checked_against_a_type(form, valid, invalid):
    assert [is_valid(value, form) for value in valid] == [True] * len(valid)
    assert [is_valid(value, form) for value in invalid] == [False] * len(invalid)
