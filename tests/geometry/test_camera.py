"""The pinhole camera: directions of its rays, and refused input."""

from math import nan, radians, tan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import raybox as rb


def refusal(**options):
    with pytest.raises(rb.InvalidInput) as caught:
        rb.Rays.pinhole(**options)
    return str(caught.value)


@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.floats(1, 179),
    hnp.arrays(float, (3, 3), elements=st.floats(-9, 9)),
)
def test_the_rays_span_the_field_of_view(width, height, fov, frame):
    eye, target, up = frame
    view = target - eye
    if min(np.linalg.norm(v) for v in (view, up, np.cross(view, up))) < 1e-2:
        return
    rays = rb.Rays.pinhole(eye, target, up=up, fov=fov, width=width, height=height)
    assert rays.shape == (height, width)
    forward = view / np.linalg.norm(view)
    right = np.cross(forward, up) / np.linalg.norm(np.cross(forward, up))
    above = np.cross(right, forward)
    edge = tan(radians(fov) / 2)
    scale = max(1.0, edge * max(1.0, width / height))
    depth, x, y = (rays.directions @ axis for axis in (forward, right, above))
    assert np.allclose(depth, 1, rtol=0, atol=1e-9 * scale)
    assert np.allclose(y, edge * (1 - (2 * np.arange(height) + 1) / height)[:, None], atol=1e-9 * scale)
    half_width = edge * width / height
    assert np.allclose(x, half_width * ((2 * np.arange(width) + 1) / width - 1), atol=1e-9 * scale)
    assert (rays.origins == eye).all()


def test_the_middle_pixel_aims_at_the_target_and_row_0_is_at_the_top():
    rays = rb.Rays.pinhole([10, 0, 2], [0, 0, 2], up=[0, 0, 1], fov=60, width=5, height=3)
    assert rays.directions[1, 2].tolist() == [-1, 0, 0]
    assert (rays.directions[0, :, 2] > 0).all()
    assert (rays.directions[2, :, 2] < 0).all()
    assert (rays.directions[:, 0, 1] < 0).all(), "one who looks along -x with z up has +y to the right"
    assert np.allclose(rays.at(10.0)[1, 2], [0, 0, 2])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": [1, 2, 3]}, ["eye and target must be different", "[1.0, 2.0, 3.0]"]),
        ({"eye": [-1e308, 0, 0], "target": [1e308, 0, 0]}, ["finite distance"]),
        ({"eye": [nan, 0, 0]}, ["eye must be finite"]),
        ({"eye": [[1, 2, 3]]}, ["eye must be one point", "(1, 3)"]),
        ({"target": [1, 2]}, ["target must have shape (..., 3)", "(2,)"]),
        ({"up": [0, -2, 0]}, ["up must not be zero or parallel to the view", "[0.0, -2.0, 0.0]"]),
        ({"up": [0, 0, 0]}, ["up must not be zero"]),
        ({"fov": 0}, ["fov must be an angle between 0 and 180 degrees", "got 0", "math.degrees"]),
        ({"fov": 180}, ["got 180"]),
        ({"fov": nan}, ["got nan"]),
        ({"fov": "wide"}, ["got 'wide'"]),
        ({"width": 0}, ["width must be a whole number of pixels, at least 1; got 0"]),
        ({"height": 2.0}, ["height must be a whole number of pixels", "got 2.0"]),
    ],
)
def test_an_invalid_camera_is_refused(changes, words):
    camera = {"eye": [1, 2, 3], "target": [1, 5, 3], "up": [0, 0, 1], "fov": 60, "width": 2, "height": 2}
    text = refusal(**(camera | changes))
    for word in words:
        assert word in text


def test_a_far_or_tiny_camera_still_looks_ahead():
    for scale in (1e-300, 1e300):
        rays = rb.Rays.pinhole([0, 0, 0], [scale, 0, 0], up=[0, 0, scale], fov=90, width=1, height=1)
        assert rays.directions[0, 0].tolist() == [1, 0, 0]
