"""Units of angles: what is out of range is refused, and what looks like radians is warned of."""

import warnings
from math import pi, radians

import numpy as np
import pytest

import raybox as rb
from raybox.errors import AngleWarning

ORIGIN, UNIT = [0, 0, 0], rb.Boxes([0, 0, 0], [1, 1, 1])


def camera(fov):
    return rb.Rays.pinhole(ORIGIN, [1, 0, 0], up=[0, 0, 1], fov=fov, width=2, height=2)


def warned(make, *arguments):
    """Return the text of the only warning, which names this file; None without."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        make(*arguments)
    assert all(one.category is AngleWarning and one.filename == __file__ for one in found)
    assert len(found) <= 1
    return str(found[0].message) if found else None


RADIANS = {
    "a turn": np.linspace(-pi, pi, 1000),
    "a turn from 0": np.linspace(0, 2 * pi, 1024, endpoint=False),
    "a turn by steps": np.arange(-pi, pi, 0.01),
    "written": np.linspace(0, 6.28, 50),
    "half a turn": np.linspace(-pi / 2, pi / 2, 7),
    "converted": np.radians(np.arange(-15, 16, 2)),
    "converted hundredths": np.deg2rad(np.linspace(-22.5, 22.5, 64).round(2)),
    "one": [pi / 3],
}
DEGREES = {
    "a turn": np.linspace(-180, 180, 1024),
    "an automotive lidar": np.linspace(-60, 60, 601),
    "few degrees": np.linspace(-6.3, 6.3, 127),
    "fewer": np.linspace(-3.2, 3.2, 65),
    "a degree each": range(-6, 7),
    "one each": range(7),
    "tenths": np.arange(-2, 2.05, 0.1),
    "lasers": [-15, -1, 1, 3, 5, 15],
    "near lasers": [-1.667, -1.333, -1.0, -0.667, -0.333, 0.0, 0.333, 0.667, 1.0, 1.333],
    "zero": [0],
    "one": [1.5],
    "none": [],
}


@pytest.mark.core
@pytest.mark.parametrize("name", RADIANS)
def test_sweeps_in_radians_are_warned_of(name):
    text = warned(rb.Rays.lidar, ORIGIN, RADIANS[name], [-10, 0])
    assert text.startswith("azimuths are in degrees, and these, from ")
    assert (
        "look like radians. If they are, pass numpy.degrees(azimuths); if not: warnings.simplefilter(" in text
    )
    if np.max(np.abs(RADIANS[name])) <= pi / 2:
        assert warned(rb.Rays.lidar, ORIGIN, [0, 90], RADIANS[name]).startswith("elevations are in degrees")


@pytest.mark.core
@pytest.mark.parametrize("name", DEGREES)
def test_sweeps_in_degrees_are_not(name):
    assert warned(rb.Rays.lidar, ORIGIN, DEGREES[name], [-10, 0]) is None
    if np.max(np.abs(DEGREES[name]), initial=0) <= 90:
        assert warned(rb.Rays.lidar, ORIGIN, [10, 20], DEGREES[name]) is None


def test_fields_of_view_in_radians_are_warned_of():
    for fov in (1.05, 1.0, radians(15), radians(120), 0.7854):
        assert warned(camera, fov) == (
            f"fov is in degrees, and {fov:g} looks like radians. If it is, pass math.degrees(fov); "
            "if not: warnings.simplefilter('ignore', raybox.errors.AngleWarning)."
        )
    for fov in (3.2, 5, 60, 179.9, 0.05):
        assert warned(camera, fov) is None


@pytest.mark.parametrize("fov", [180, 200, 360.0, -60])
def test_fields_of_view_out_of_range_name_the_unit(fov):
    with pytest.raises(rb.InvalidInput, match=rf"between 0 and 180 degrees, without either; got {fov}"):
        camera(fov)


def test_elevations_out_of_range_name_the_unit():
    words = (
        r"elevations must be from -90 to 90 degrees; 2 of 3 break this, first angle 1: elevations\[1\] = 120"
    )
    with pytest.raises(rb.InvalidInput, match=words):
        rb.Rays.lidar(ORIGIN, [0], [90, 120, -90.5])
    assert rb.Rays.lidar(ORIGIN, [720, -3600], [-90, 90]).shape == (2, 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda yaw: rb.Instances.from_poses(UNIT, [[0, 0, 0]] * len(yaw), yaw=yaw),
        lambda yaw: rb.Instances.oriented_boxes([[0, 0, 0]] * len(yaw), 1, yaw=yaw),
    ],
)
def test_a_yaw_beyond_two_turns_names_the_unit(make):
    words = (
        r"yaw must be an angle in radians, from -4 pi to 4 pi; 2 of 3 break this, first instance 1: "
        r"yaw\[1\] = 90.0. If it is in degrees, pass numpy.radians\(yaw\)"
    )
    with pytest.raises(rb.InvalidInput, match=words):
        make([4 * pi, 90, -12.6])
    assert len(make([-4 * pi, 4 * pi, 0])) == 3


def test_files_of_boxes_with_a_yaw_in_degrees(tmp_path):
    path = tmp_path / "cars.csv"
    path.write_text("center_x,center_y,center_z,size_x,size_y,size_z,yaw\n0,0,0,1,1,1,0.5\n0,0,0,1,1,1,270\n")
    words = "line 3, column yaw: 270.0 is beyond two turns of 2 pi: a yaw is in radians; correct"
    with pytest.raises(rb.FileFormatError, match=words):
        rb.load(path)
