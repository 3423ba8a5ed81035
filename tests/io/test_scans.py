"""Fields of points, of the formats of scans: the numbers that the file has, by its own names."""

import numpy as np
import pytest

import raybox as rb
from file_samples import pcd_body
from raybox.io.formats.common import ReadOptions
from raybox.io.formats.scans import point_fields, scan_around_zero

POINTS = np.array([[1, 2, 0.5], [-3, 1, 0.25], [2, -4, 0]])
INTENSITY, TIMES, RINGS = [0, 17, 255], [0.5, 1e9 + 0.25, 2.0], [3, 1, 2]


NAMES = ("x", "y", "z", "Intensity", "time", "ring")
COLUMNS = [*POINTS.T.tolist(), INTENSITY, TIMES, RINGS]
ROWS = list(zip(*COLUMNS, strict=True))
PCD = "# .PCD v0.7\nVERSION 0.7\nFIELDS x y z Intensity time ring normal_x stamp\nSIZE 4 4 4 1 8 2 4 8\n"
PCD += "TYPE F F F U F U F U\nCOUNT 1 1 1 1 1 1 1 1\nWIDTH 3\nHEIGHT 1\nPOINTS 3\nDATA {}\n"


def write_pcd(path, encoding):
    """The last field has a number that float64 does not hold exactly: nobody reads it, so it is no error."""
    kinds = ("<f", "<f", "<f", "B", "<d", "<H", "<f", "<Q")
    rows = [(*row, 0.0, 2**63 + 1) for row in ROWS]
    path.write_bytes(PCD.format(encoding).encode() + pcd_body(encoding, kinds, rows))


def write_npy(path):
    types = [*((axis, "<f4") for axis in "xyz"), ("Intensity", "u1"), ("time", "<f8"), ("ring", "<u2")]
    np.save(path, np.array(ROWS, types))


def write_las(path):
    laspy = pytest.importorskip("laspy")
    header = laspy.LasHeader(version="1.4", point_format=6)
    header.scales = [0.25] * 3
    header.add_extra_dim(laspy.ExtraBytesParams("ring", "u2"))
    las = laspy.LasData(header)
    las.x, las.y, las.z = POINTS.T
    las.intensity, las.gps_time, las["ring"] = INTENSITY, TIMES, RINGS
    las.write(path)


def write_csv(path):
    lines = [",".join(map(str, row)) for row in [(*NAMES, "name"), *((*row, "first") for row in ROWS)]]
    path.write_text("\n".join(lines) + "\n")


WRITERS = {
    "text.pcd": lambda path: write_pcd(path, "ascii"),
    "binary.pcd": lambda path: write_pcd(path, "binary"),
    "scan.las": write_las,
    "scan.npy": write_npy,
    "scan.csv": write_csv,
}


@pytest.mark.parametrize("name", WRITERS)
def test_points_have_the_fields_of_their_file(tmp_path, name):
    WRITERS[name](tmp_path / name)
    scan = scan_around_zero(tmp_path / name)
    assert scan.has_points
    np.testing.assert_array_equal(scan.rays.directions, POINTS)
    names = ["intensity", "gps_time", "ring"] if name.endswith("las") else ["Intensity", "time", "ring"]
    assert [*scan.fields] == names
    for values, want in zip(scan.fields.values(), (INTENSITY, TIMES, RINGS), strict=True):
        np.testing.assert_array_equal(values, np.array(want, np.float64))


def test_a_layout_names_the_intensity(tmp_path):
    np.column_stack([POINTS, INTENSITY]).astype("<f4").tofile(tmp_path / "scan.bin")
    found = point_fields(tmp_path / "scan.bin", ReadOptions("rays", (0, 0, 0), layout="x,y,z,i"))
    assert {name: values.tolist() for name, values in found.items()} == {"i": INTENSITY}


def test_points_far_from_zero_need_an_origin(tmp_path):
    (tmp_path / "scan.csv").write_text("x,y,z\n84900,447500,3\n84901,447502,4\n")
    with pytest.raises(rb.FileFormatError, match=r"do not lie around 0 0 0; .*--origin X,Y,Z"):
        scan_around_zero(tmp_path / "scan.csv")


def test_rays_have_no_points(tmp_path):
    rays = rb.Rays([[0, 0, 0]], [[1, 0, 0]])
    rb.save(tmp_path / "rays.npz", rays)
    scan = scan_around_zero(tmp_path / "rays.npz")
    assert (scan.has_points, scan.fields) == (False, {})
    assert scan.rays.equals(rays)
