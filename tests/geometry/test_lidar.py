"""`Rays.lidar`: directions against the definition in Python floats."""

import numpy as np
import pytest

import raybox as rb


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
