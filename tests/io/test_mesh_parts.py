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


def test_losses_are_warned_of_and_counted(monkeypatch, tmp_path):
    def parse(path, options):
        return to_scene(PARTS, path, options, Counter({"faces of two corners": 2}), Counter({"spaces": 1}))

    monkeypatch.setattr(loading, "parse", parse)
    for call in (rb.load, read):
        with pytest.warns(
            SkippedWarning, match=r"left out: faces of two corners \(2\); see geometry.skipped"
        ) as found:
            loaded = call(tmp_path / "a.obj")
        assert [Path(one.filename).name for one in found] == [Path(__file__).name]
        geometry = loaded.geometry if isinstance(loaded, Loaded) else loaded
        assert dict(geometry.skipped) == {"faces of two corners": 2, "spaces": 1}


def test_defaults_are_counted_without_a_warning(monkeypatch, tmp_path):
    monkeypatch.setattr(loading, "parse", lambda *given: to_scene(PARTS, *given, left_out=Counter(spaces=3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dict(rb.load(tmp_path / "a.obj").skipped) == {"spaces": 3}
        loaded = read(tmp_path / "a.obj", boxes=True)
    assert dict(loaded.geometry.skipped) == {"spaces": 3}
    assert repr(loaded) == "Loaded(Boxes(2, D=3), labels=['storey', 'name', 'area'], left_out={'spaces': 3})"
