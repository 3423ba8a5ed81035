"""The short core against rational arithmetic.

`.ci/legs` runs it with the lowest and the newest versions.
"""

from itertools import pairwise

import numpy as np
import pytest

import exact_instances
import raybox as rb
from compare import assert_all, assert_nearest, assert_scene
from core_cases import CASES, UNSORTED
from test_private_query import work  # noqa: F401  # a fixture

pytestmark = pytest.mark.core


def check(scene, case, count, found):
    """Compare the results of a case's queries for its first rays with their exact hits."""
    rays, want = case.rays[:count], found[:count]
    if case.queries == CASES["boxes"]().queries:
        assert_scene(scene, rays, want)
        return
    assert_nearest(scene, rays, want)
    if "all" in case.queries:
        assert_all(scene.all(rays), want)


@pytest.mark.parametrize("name", CASES)
def test_results_are_exact(name, work):  # noqa: F811
    case = CASES[name]()
    scene = rb.Scene(case.geometry)
    primitives = case.geometry.boxes() if isinstance(case.geometry, rb.Grid) else case.geometry
    contacts = exact_instances.along(case.rays, primitives)
    found = [[contact.found() for contact in row] for row in contacts]
    check(scene, case, len(case.rays), found)
    streams, packets = work()
    check(scene, case, UNSORTED, found)
    check(scene, case, 1, found)
    hits = sum(map(bool, found))
    assert 30 < hits < len(found) - 30
    assert sum(a.t == b.t for row in contacts for a, b in pairwise(row)) > 20
    assert "all" not in case.queries or sum(contact.touch for row in contacts for contact in row) > 20
    assert (streams["nodes"] > 100) == (name in ("boxes", "nearest and all", "mesh"))
    assert (packets["nodes"] > 30) == (name == "packets")


def test_the_first_of_several_geometries(work):  # noqa: F811
    names = ("boxes", "mesh", "instances", "planes")
    geometries, rays = [CASES[name]().geometry for name in names], CASES["mesh"]().rays
    hits = rb.Scene(geometries).nearest(rays)
    contacts = exact_instances.along(rays, *geometries)
    first = [next(iter(row), None) for row in contacts]
    for name in ("geometry", "index", "primitive"):
        want = [-1 if contact is None else getattr(contact, name) for contact in first]
        np.testing.assert_array_equal(getattr(hits, name), want, err_msg=name)
    assert set(hits.geometry) == {-1, 0, 1, 2, 3}
