"""Functions of one geometry of boxes or triangles refuse lists, instances and planes."""

import numpy as np
import pytest

import raybox as rb
from raybox.viewer.open_file import stage_of

BOXES = rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]])
MESH = rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
INSTANCES = rb.Instances(BOXES, np.eye(4))
PLANES = rb.Planes([1, 0, 0], 4)
MADE = {"several": [BOXES, MESH], "list of one": [BOXES], "instances": INSTANCES, "planes": PLANES}
REFUSAL = r"cast at Boxes, a Mesh or a Grid; got Scene\(.*Cast them at one geom"
every = pytest.mark.parametrize("geometry", MADE.values(), ids=MADE)


@every
def test_files_are_cast_at_boxes_or_a_mesh(geometry, tmp_path):
    np.save(tmp_path / "rays.npy", [[0.0, 0, 0, 1, 0, 0]])
    with pytest.raises(rb.InvalidInput, match=REFUSAL):
        rb.stream.cast(rb.Scene(geometry), tmp_path / "rays.npy", tmp_path / "out.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["rays.npy"]


@every
def test_clusters_cast_at_boxes_or_a_mesh(geometry, tmp_path):
    pytest.importorskip("distributed")
    arrays = pytest.importorskip("dask.array")
    np.save(tmp_path / "rays.npy", [[0.0, 0, 0, 1, 0, 0]])
    scene = rb.Scene(geometry)
    with pytest.raises(rb.InvalidInput, match=REFUSAL):
        rb.cluster.cast(scene, tmp_path / "rays.npy", tmp_path / "out.csv", cluster=None)
    with pytest.raises(rb.InvalidInput, match=REFUSAL):
        rb.cluster.ask(scene, arrays.ones((1, 6), chunks=(1, 6)))
    assert [path.name for path in tmp_path.iterdir()] == ["rays.npy"]


@every
def test_boxes_are_swept_against_boxes(geometry):
    with pytest.raises(rb.InvalidInput, match="scene must be a Scene of boxes; got "):
        rb.sweep(rb.Boxes([0, 0, 0], [1, 1, 1]), [1, 0, 0], rb.Scene(geometry))


@every
def test_scenes_are_split_before_they_are_built(geometry):
    with pytest.raises(
        rb.InvalidInput, match=r"a SplitScene is made of Boxes, a Mesh or an iterable of Boxes; got Scene"
    ):
        rb.SplitScene(rb.Scene(geometry), parts=1)


@pytest.mark.parametrize("geometry", [INSTANCES, PLANES, [BOXES, MESH], [INSTANCES]])
def test_what_cannot_be_split(geometry, tmp_path):
    with pytest.raises(rb.InvalidInput, match=r"(iterable of Boxes|Boxes of one D); got "):
        rb.SplitScene(geometry, parts=1, folder=tmp_path / "split")
    assert not list(tmp_path.iterdir())


@every
def test_one_geometry_is_shown_and_drawn(geometry):
    with pytest.raises(
        rb.InvalidInput, match=r"scene must be of Boxes, a Grid or a Mesh; got .*Show its geometries one by"
    ):
        stage_of(rb.Scene(geometry))
    with pytest.raises(rb.InvalidInput, match="scene must be a path, Boxes, a Grid, a Mesh or a Scene; got "):
        stage_of(geometry)
    pytest.importorskip("matplotlib")
    for one in (geometry, rb.Scene(geometry)):
        with pytest.raises(
            rb.InvalidInput, match=r"a Scene, Boxes, a Grid or a Mesh; got .*Draw the geometries of a scene"
        ):
            rb.plot(one)
