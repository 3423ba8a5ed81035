"""The building that the package contains: the triangles, ids and labels of its IFC file, and its credit."""

from pathlib import Path

import numpy as np

import raybox as rb
from needs import package
from real_data import HOUSE

PACKAGE = Path(rb.__file__).parent
BUNDLED = PACKAGE / "data" / "duplex.npz"


def triangles(mesh):
    """Return each triangle's object and corners from the lowest on, sorted: ifcopenshell's order varies."""
    corners = mesh.triangles.round(4).tolist()
    firsts = [triangle.index(min(triangle)) for triangle in corners]
    turned = [triangle[k:] + triangle[:k] for triangle, k in zip(corners, firsts, strict=True)]
    return sorted(zip(mesh.objects.tolist(), turned, strict=True))


def test_the_bundled_house_is_that_of_its_ifc_file():
    package("ifcopenshell")
    bundled, house = rb.load(BUNDLED), rb.load(HOUSE)
    assert triangles(bundled) == triangles(house)
    np.testing.assert_array_equal(bundled.ids, house.ids)
    assert list(bundled.labels) == list(house.labels)
    for name, values in house.labels.items():
        np.testing.assert_array_equal(bundled.labels[name], values)


def test_bundled_data_are_small_and_credited():
    files = {path.name for path in BUNDLED.parent.iterdir()}
    assert files == {"duplex.npz", "duplex.credit.txt"}
    assert BUNDLED.stat().st_size < 150_000
    assert "CC BY 4.0" in BUNDLED.with_name("duplex.credit.txt").read_text(encoding="utf-8")
