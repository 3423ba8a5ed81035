"""`Rays.lidar`: directions against the definition in Python floats."""

from math import cos, radians, sin

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raybox as rb

angle = st.floats(-1e4, 1e4)


@settings(max_examples=60, deadline=None)
@given(st.lists(angle, min_size=1, max_size=4), st.lists(st.floats(-90, 90), max_size=4), st.floats(-3, 3))
def test_directions_are_those_of_the_definition(azimuths, elevations, turn):
    rotation = np.array([[cos(turn), -sin(turn), 0], [sin(turn), cos(turn), 0], [0, 0, 1]])
    for matrix in (None, rotation):
        rays = rb.Rays.lidar([1, 2, 3], azimuths, elevations, rotation=matrix)
        assert rays.shape == (len(elevations), len(azimuths))
        assert (rays.origins == [1, 2, 3]).all()
        for row, e in enumerate(elevations):
            for column, a in enumerate(azimuths):
                a_, e_ = radians(a % 360), radians(e % 360)
                wanted = np.array([cos(e_) * cos(a_), cos(e_) * sin(a_), sin(e_)])
                wanted = wanted if matrix is None else matrix @ wanted
                np.testing.assert_allclose(rays.directions[row, column], wanted, atol=5e-15)
        np.testing.assert_allclose(np.linalg.norm(rays.directions, axis=-1), 1, atol=1e-15)


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
        (([[0, 0, 0]], [0], [0]), "origin must be one point"),
        (([0, 0, 0], [[0]], [0]), "azimuths must be a list of degrees"),
        (([0, 0, 0], [0], [np.nan]), "elevations must be finite; 1 of 1 break this, first angle 0"),
        (([0, 0, np.inf], [0], [0]), "origin must be finite"),
    ],
)
def test_wrong_angles_are_refused(arguments, words):
    with pytest.raises(rb.InvalidInput, match=words):
        rb.Rays.lidar(*arguments)


def test_a_matrix_that_is_no_rotation_is_refused():
    for matrix in (2 * np.eye(3), np.diag([1, 1, -1]), np.eye(2)):
        with pytest.raises(rb.InvalidInput, match="rotation must"):
            rb.Rays.lidar([0, 0, 0], [0], [0], rotation=matrix)
