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
    st.floats(3.2, 179),
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


# Calibrated cameras

K = [[2.0, 0.5, 1.0], [0, 4, 0.5], [0, 0, 1]]
TURN = [[0, -1, 0], [0, 0, -1], [1, 0, 0]]  # looks along x, with z up


def calibrated(K=K, R=TURN, t=(1, 2, 3), width=3, height=2, **options):
    return rb.Rays.from_camera(K, R, t, width=width, height=height, **options)


def test_a_calibrated_camera_by_hand():
    rays = calibrated()
    assert rays.shape == (2, 3)
    # R x + t = 0: -y = -1, -z = -2, x = -3
    assert (rays.origins == [-3, 1, 2]).all()
    # row 0: y = (0 - 0.5) / 4 = -1/8, and x = (column - 1 + 0.5 / 8) / 2
    assert rays.directions[0].tolist() == [[1, 0.46875, 0.125], [1, -0.03125, 0.125], [1, -0.53125, 0.125]]
    assert rays.directions[1].tolist() == [[1, 0.53125, -0.125], [1, 0.03125, -0.125], [1, -0.46875, -0.125]]
    assert (rays.t_min == 0).all()
    assert (rays.t_max == np.inf).all()
    column = calibrated(t=[[1], [2], [3]])
    assert (column.origins == rays.origins).all()


def test_opengl_turns_the_axes_of_the_camera():
    flip = np.diag([1, -1, -1])
    other = calibrated(R=flip @ TURN, t=flip @ [1, 2, 3], convention="opengl")
    for name in ("origins", "directions"):
        np.testing.assert_array_equal(getattr(other, name), getattr(calibrated(), name))
    ahead = calibrated(np.diag([1, 1, 1]), np.eye(3), [0, 0, 0], 1, 1, convention="opengl")
    assert ahead.directions[0, 0].tolist() == [0, 0, -1]


@given(st.integers(1, 9), st.integers(1, 9), hnp.arrays(float, (3, 3), elements=st.floats(-9, 9)))
def test_points_of_rays_project_to_their_pixels_at_depth_t(width, height, frame):
    turn, upper = np.linalg.qr(frame)
    if abs(np.diag(upper)).min() < 1e-3:
        return
    turn = turn * np.linalg.det(turn)
    matrix = [[50.0, 3, 4], [0, 70, 2], [0, 0, 1]]
    rays = rb.Rays.from_camera(matrix, turn, frame[0], width=width, height=height)
    in_camera = rays.at(7.0) @ turn.T + frame[0]
    assert np.allclose(in_camera[..., 2], 7, rtol=0, atol=1e-9)
    pixels = (in_camera @ np.array(matrix).T) / in_camera[..., 2:]
    assert np.allclose(pixels[..., 0], np.arange(width), atol=1e-9)
    assert np.allclose(pixels[..., 1], np.arange(height)[:, None], atol=1e-9)


@pytest.mark.parametrize("size", [(5, 3), (4, 4), (1, 6)])
def test_a_calibrated_camera_of_square_pixels_is_a_pinhole(size):
    width, height = size
    eye, target, up = np.array([3.0, -2, 5]), np.array([0.5, 4, 1]), np.array([0.1, 0.2, 1])
    plain = rb.Rays.pinhole(eye, target, up=up, fov=50, width=width, height=height)
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, up) / np.linalg.norm(np.cross(forward, up))
    turn = np.array([right, np.cross(forward, right), forward])
    f = height / 2 / tan(radians(25))
    matrix = [[f, 0, (width - 1) / 2], [0, f, (height - 1) / 2], [0, 0, 1]]
    rays = rb.Rays.from_camera(matrix, turn, -turn @ eye, width=width, height=height)
    assert np.allclose(rays.origins, plain.origins, rtol=0, atol=1e-14)
    assert np.allclose(rays.directions, plain.directions, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"K": np.eye(4)}, ["K must be finite and have shape (3, 3)"]),
        ({"K": [[1, 0, nan], [0, 1, 0], [0, 0, 1]]}, ["K must be finite", "[[fx, skew, cx]"]),
        ({"K": [[1, 0, 0], [0.1, 1, 0], [0, 0, 1]]}, ["K must be [[fx, skew, cx]"]),
        ({"K": [[1, 0, 0], [0, -1, 0], [0, 0, 1]]}, ["above 0", "convention='opengl'"]),
        ({"K": [[1, 0, 0], [0, 1, 0], [0, 0, 2]]}, ["K must be [[fx, skew, cx]"]),
        ({"K": [[1e-300, 0, 1e300], [0, 1, 0], [0, 0, 1]]}, ["directions must be finite"]),
        ({"R": [[0.1], [0.2], [0.3]]}, ["R must be finite and have shape (3, 3)", "cv2.Rodrigues"]),
        ({"R": np.eye(3) * 2}, ["R must be a rotation"]),
        ({"R": np.zeros((3, 3))}, ["R must be a rotation"]),
        ({"R": np.diag([1, 1, -1])}, ["R must be a rotation", "right-handed"]),
        ({"t": [[1, 2, 3]]}, ["t must be finite and have shape (3,) or (3, 1)"]),
        ({"t": [1, 2, np.inf]}, ["t must be finite"]),
        ({"width": 0}, ["width must be a whole number of pixels"]),
        ({"convention": "blender"}, ["convention must be one of 'opencv', 'opengl'; got 'blender'"]),
    ],
)
def test_an_invalid_calibration_is_refused(changes, words):
    with pytest.raises(rb.InvalidInput) as caught:
        calibrated(**changes)
    for word in words:
        assert word in str(caught.value)
