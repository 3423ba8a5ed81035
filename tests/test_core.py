"""The short core against rational arithmetic.

`.ci/run` runs it with the lowest and the newest versions, `compiler/test_fallback.py` by Numba alone.
"""

from itertools import pairwise

import pytest

import exact_instances
import raybox as rb
from compare import assert_nearest, assert_scene
from core_cases import CASES, UNSORTED
from test_private_query import work  # noqa: F401  # a fixture


@pytest.mark.parametrize("name", CASES)
def test_results_are_exact(name, work):  # noqa: F811
    case = CASES[name]()
    scene = rb.Scene(case.geometry)
    contacts = exact_instances.along(case.rays, case.geometry)
    found = [[contact.found() for contact in row] for row in contacts]
    check = assert_scene if "all" in case.queries else assert_nearest
    check(scene, case.rays, found)
    streams, packets = work()
    check(scene, case.rays[:UNSORTED], found[:UNSORTED])
    check(scene, case.rays[:1], found[:1])
    hits = sum(map(bool, found))
    assert 30 < hits < len(found) - 30
    assert sum(a.t == b.t for row in contacts for a, b in pairwise(row)) > 20
    assert name != "boxes" or sum(contact.touch for row in contacts for contact in row) > 20
    assert (streams["nodes"] > 100) == (name in ("boxes", "mesh"))
    assert (packets["nodes"] > 30) == (name == "packets")
