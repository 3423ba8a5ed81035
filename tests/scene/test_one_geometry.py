"""Functions of one geometry refuse lists and planes; most of them, instances."""

import numpy as np
import pytest

import raybox as rb

BOXES = rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]])
MESH = rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
INSTANCES = rb.Instances(BOXES, np.eye(4))
PLANES = rb.Planes([1, 0, 0], 4)
MADE = {"several": [BOXES, MESH], "list of one": [BOXES], "instances": INSTANCES, "planes": PLANES}
every = pytest.mark.parametrize("geometry", MADE.values(), ids=MADE)


@every
def test_boxes_are_swept_against_boxes(geometry):
    with pytest.raises(rb.InvalidInput, match="scene must be a Scene of boxes; got "):
        rb.sweep(rb.Boxes([0, 0, 0], [1, 1, 1]), [1, 0, 0], rb.Scene(geometry))


@every
def test_one_geometry_is_drawn(geometry):
    pytest.importorskip("matplotlib")
    for one in (geometry, rb.Scene(geometry)):
        with pytest.raises(
            rb.InvalidInput, match=r"a Scene, Boxes, a Grid or a Mesh; got .*Draw the geometries of a scene"
        ):
            rb.plot(one)
