"""Calls that are wrong in a usual way, and the line to write that their errors name."""

import pytest

import raybox as rb

SCENE = rb.Scene(rb.Boxes([[2, -1]], [[3, 1]]))
ORIGIN, DIRECTION = [0, 0], [1, 0]


@pytest.mark.parametrize("method", ["nearest", "occluded", "count", "all"])
def test_origins_and_directions_in_place_of_rays(method):
    for scene in (SCENE, rb.SplitScene(SCENE.geometry, parts=1)):
        query = getattr(scene, method)
        with pytest.raises(rb.InvalidInput, match=rf"scene\.{method}\(raybox\.Rays\(origins, directions\)\)"):
            query(ORIGIN, DIRECTION)
        with pytest.raises(rb.InvalidInput, match=r"Make some: Rays\(origins, directions\)"):
            query(ORIGIN)
        query(rb.Rays(ORIGIN, DIRECTION))


def test_segments_of_origins_and_directions():
    grid = rb.Scene(rb.Grid([0, 1, 2], [0, 1]))
    with pytest.raises(rb.InvalidInput, match=r"scene\.segments\(raybox\.Rays\(origins, directions\)\)"):
        grid.segments(ORIGIN, DIRECTION)
    assert grid.segments(rb.Rays([0, 0.5], DIRECTION)).index.tolist() == [0, 1]


@pytest.mark.parametrize("query", ["integrate", "deposit"])
def test_sums_on_meshes_name_the_boxes_of_a_file(query):
    mesh = rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    for geometry in (mesh, [mesh, rb.Boxes([0, 0, 0], [1, 1, 1])]):
        with pytest.raises(
            rb.InvalidInput, match=r"holds a Mesh.*rb\.load\(path, boxes=True\) returns a box of each"
        ):
            getattr(rb.Scene(geometry), query)(rb.Rays([0, 0, 0], [1, 0, 0]))
