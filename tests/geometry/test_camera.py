"""Rays of sensors by hand: the pinhole camera, calibrated cameras, the lidar; and refused input."""

from math import nan, radians, tan

import numpy as np
import pytest

import raybox as rb
from refusals import refusal


def test_the_middle_pixel_aims_at_the_target_and_row_0_is_at_the_top():
    rays = rb.Rays.pinhole([10, 0, 2], [0, 0, 2], up=[0, 0, 1], fov=60, width=5, height=3)
    assert rays.directions[1, 2].tolist() == [-1, 0, 0]
    assert (rays.directions[0, :, 2] > 0).all()
    assert (rays.directions[2, :, 2] < 0).all()
    assert (rays.directions[:, 0, 1] < 0).all(), "one who looks along -x with z up has +y to the right"
    assert np.allclose(rays.at(10.0)[1, 2], [0, 0, 2])
    edge = tan(radians(30))  # of the field of view, above the middle at distance 1
    assert np.allclose(rays.directions[0, 0], [-1, -edge * 4 / 3, edge * 2 / 3], rtol=0, atol=1e-15)


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
    text = refusal(rb.Rays.pinhole, **(camera | changes))
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
    text = refusal(calibrated, **changes)
    for word in words:
        assert word in text


def test_no_poses_beams_or_azimuths_are_no_rays():
    for shape, arguments in {
        (0, 2, 3): (np.zeros((0, 3)), [0, 1, 2], [0, 1]),
        (4, 0, 3): (np.zeros((4, 3)), np.zeros((0, 3)), []),
        (4, 2, 0): (np.zeros((4, 3)), [], [0, 1]),
    }.items():
        rays = rb.Rays.lidar(*arguments)
        assert rays.shape == shape
        assert rays.directions.shape == (*shape, 3)
        assert rb.Scene(rb.Boxes([0, 0, 0], [1, 1, 1])).nearest(rays).shape == shape
    assert rb.Rays.lidar([0, 0, 0], [1], [1], rotation=np.zeros((0, 3, 3))).shape == (0, 1, 1)


def test_multiples_of_a_right_angle_are_exact():
    quarters = [0, 90, 180, 270, 360, -90, 450]
    rays = rb.Rays.lidar([0, 0, 0], quarters, [0, 90, -90])
    east, north, west, south = [1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]
    assert rays.directions[0].tolist() == [east, north, west, south, east, south, north]
    assert rays.directions[1].tolist() == [[0, 0, 1]] * 7
    assert rays.directions[2].tolist() == [[0, 0, -1]] * 7
    assert not np.signbit(rays.directions[0][rays.directions[0] == 0]).any()


def test_t_is_the_distance():
    scene = rb.Scene(rb.Boxes([-10, -10, -3], [10, 10, -2]))
    hits = scene.nearest(rb.Rays.lidar([0, 0, 0], range(0, 360, 30), [-30]))
    assert hits.t.tolist() == [[pytest.approx(4)] * 12]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0, 0], [0], [0]), "origin must"),
        (([[[0, 0, 0]]], [0], [0]), r"origin must have shape \(3,\), or \(N, 3\) for N poses; got"),
        (([0, 0, 0], [[[0]]], [0]), r"azimuths \(A,\), or \(E, A\) .* \(1,\) and \(1, 1, 1\)"),
        (([0, 0, 0], [[0], [1]], [0, 1, 2]), r"got shapes \(3,\) and \(2, 1\)"),
        (([0, 0, 0], [0], [[0]]), r"elevations must have shape \(E,\)"),
        (([[0, 0, 0], [0, np.nan, 0]], [0], [0]), "origin must be finite; 1 of 2 break this, first pose 1"),
        (([0, 0, 0], [[0], [np.inf]], [0, 1]), "azimuths must be finite; 1 of 2 break this, first angle"),
        (([0, 0, 0], [0], [np.nan]), "elevations must be finite; 1 of 1 break this, first angle 0"),
        (([0, 0, np.inf], [0], [0]), "origin must be finite"),
    ],
)
def test_wrong_angles_are_refused(arguments, words):
    with pytest.raises(rb.InvalidInput, match=words):
        rb.Rays.lidar(*arguments)


def test_a_matrix_that_is_no_rotation_is_refused():
    for matrix in (2 * np.eye(3), np.diag([1, 1, -1]), np.eye(2), np.eye(3) * np.nan, np.eye(3)[None, None]):
        with pytest.raises(rb.InvalidInput, match="rotation must"):
            rb.Rays.lidar([0, 0, 0], [0], [0], rotation=matrix)
    matrices = np.array([np.eye(3)] * 4)
    matrices[2, 0, 0] = np.inf
    with pytest.raises(rb.InvalidInput, match=r"1 of 4 break this, first pose 2.*pass its transpose"):
        rb.Rays.lidar([0, 0, 0], [0], [0], rotation=matrices)
    with pytest.raises(rb.InvalidInput, match="one of each pose, or a single one; got 3 and 4"):
        rb.Rays.lidar(np.zeros((3, 3)), [0], [0], rotation=matrices[[0, 0, 1, 1]])
