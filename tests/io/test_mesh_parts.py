"""Parts of files as objects, and what readers leave out."""

import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import raybox as rb
from raybox.errors import SkippedWarning
from raybox.files import read
from raybox.io.formats import loading
from raybox.io.formats.common import Loaded, ReadOptions
from raybox.io.formats.mesh_parts import MeshPart, to_scene

CORNERS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 4]])
PARTS = [
    MeshPart("wall", CORNERS, np.array([[0, 1, 2], [0, 1, 3]]), {"storey": 1, "name": "a"}),
    MeshPart("empty", CORNERS, np.zeros((0, 3), np.int64), {"other": 5}),
    MeshPart("roof", CORNERS + 10, np.array([[1, 2, 3]]), {"name": 7, "area": 0.5}),
]


@pytest.mark.core
@pytest.mark.parametrize("boxes", [False, True])
def test_parts_are_objects_with_names_and_labels(boxes):
    loaded = to_scene(PARTS, Path("a.obj"), ReadOptions(boxes=boxes), Counter(bad=2), Counter(spaces=1))
    geometry = loaded.geometry
    assert isinstance(geometry, rb.Boxes if boxes else rb.Mesh)
    assert geometry.ids.tolist() == loaded.ids == ["wall", "roof"]
    assert loaded.labels == {
        "storey": [1, None],
        "name": ["a", "7"],
        "area": [pytest.approx(np.nan, nan_ok=True), 0.5],
    }
    assert (loaded.skipped, loaded.left_out) == ({"bad": 2}, {"spaces": 1})
    if boxes:
        assert geometry.lower.tolist() == [[0, 0, 0], [10, 10, 10]]
        return
    assert geometry.objects.tolist() == [0, 0, 1]
    for number, part in enumerate((PARTS[0], PARTS[2])):
        np.testing.assert_array_equal(
            geometry[geometry.objects == number].triangles, part.vertices[part.faces]
        )


def test_parts_that_share_vertices_are_joined_without_copies_of_them():
    parts = [part._replace(vertices=CORNERS) for part in PARTS]
    mesh = to_scene(parts, Path("a.obj"), ReadOptions()).geometry
    assert (len(mesh.vertices), mesh.objects.tolist()) == (4, [0, 0, 1])


def test_losses_are_warned_of_and_defaults_only_counted(monkeypatch, tmp_path):
    lost, left_out = Counter({"faces of two corners": 2}), Counter({"spaces": 1})
    for skipped in (Counter(), lost):
        monkeypatch.setattr(
            loading, "parse", lambda *given, of=skipped: to_scene(PARTS, *given, of, left_out)
        )
        for call in (rb.load, read):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                loaded = call(tmp_path / "a.obj")
            words = "left out: faces of two corners (2); see geometry.skipped"
            assert [words in str(one.message) for one in found] == [True] * len(skipped)
            assert all(one.category is SkippedWarning and one.filename == __file__ for one in found)
            geometry = loaded.geometry if isinstance(loaded, Loaded) else loaded
            assert dict(geometry.skipped) == skipped + left_out
    counts = "skipped={'faces of two corners': 2}, left_out={'spaces': 1}"
    labels = "labels=['storey', 'name', 'area']"
    assert repr(loaded) == f"Loaded(Mesh(3, vertices=8, objects=2), {labels}, {counts})"
