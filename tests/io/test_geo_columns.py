"""Points of GeoParquet and GeoArrow: structs, lists of coordinates, and WKB in any order of bytes."""

import json
import struct
from itertools import product

import numpy as np
import pytest

import raybox as rb
from refusals import refused

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

POINTS = np.random.default_rng(9).normal(size=(7, 3))
ORIGIN = (0.5, -1.0, 2.0)


def wkb(point, kind="iso", order="<", has_m=False):
    """Return a point as WKB, of ISO or of GEOS; its M, if any, is 99."""
    code = 1
    if kind == "iso":
        code += 1000 * (len(point) == 3) + 2000 * has_m
    else:
        code |= 0x80000000 * (len(point) == 3) | 0x40000000 * has_m
    head = bytes([order == "<"]) + struct.pack(f"{order}I", code)
    return head + struct.pack(f"{order}{len(point) + has_m}d", *point, *[99.0] * has_m)


def put(path, column, encoding="WKB", extension="", others=None, **geo):
    """Write a column `shape`, described as GeoParquet and GeoArrow do."""
    marks = {b"ARROW:extension:name": extension.encode()} if extension else None
    fields = [pa.field("shape", column.type, metadata=marks)]
    fields += [pa.field(name, pa.array(values).type) for name, values in (others or {}).items()]
    facts = {"primary_column": "shape", "columns": {"shape": {"encoding": encoding, **geo}}}
    schema = pa.schema(fields, metadata={"geo": json.dumps(facts)} if encoding else None)
    columns = [column, *map(pa.array, (others or {}).values())]
    table = pa.Table.from_arrays(columns, schema=schema)
    pq.write_table(table, path, row_group_size=3, use_compliant_nested_type="M" not in path.stem)
    return path


def columns_of(dims, points=POINTS):
    """Return points in each encoding, with the keywords that describe it."""
    names, rows = list("xyz"[:dims]), points[:, :dims]
    parts = pa.StructArray.from_arrays([pa.array(axis) for axis in rows.T], names)
    child = pa.list_(pa.field("".join(names), pa.float64()), dims)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), type=child)
    arrow = {"encoding": "", "extension": "geoarrow.point"}
    found = [(parts, {"encoding": "point"}), (parts, arrow), (flat, arrow)]
    for how in product(("iso", "geos"), "<>", (False, True)):
        values = [wkb(row, *how) for row in rows.tolist()]
        found.append((pa.array(values, pa.binary()), {"geometry_types": []}))
    values = pa.array([wkb(row) for row in rows.tolist()], pa.large_binary())
    found.append((values, {"encoding": "", "extension": "geoarrow.wkb"}))
    mixed = [wkb(row, ("iso", "geos")[k % 2], "<><<>><"[k]) for k, row in enumerate(rows.tolist())]
    return [*found, (pa.array(mixed), {"geometry_types": ["Point Z" if dims == 3 else "Point"]})]


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("number", range(len(columns_of(2))))
def test_points_in_every_encoding(tmp_path, dims, number):
    column, facts = columns_of(dims)[number]
    path = put(tmp_path / "a.parquet", column, **facts)
    wanted = rb.Rays(ORIGIN[:dims], POINTS[:, :dims] - ORIGIN[:dims])
    for options in ({}, {"kind": "rays"}):
        assert rb.load(path, origin=ORIGIN[:dims], **options).equals(wanted)
    assert "holds points, not rays; say where the rays start" in refused(path)
    scene = rb.Scene(rb.Boxes([[-0.5] * dims], [[0.5] * dims]))
    rb.stream.cast(scene, path, tmp_path / "out.npy", origin=ORIGIN[:dims], chunk=2)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy")["t"], scene.nearest(wanted).t)
    assert f"its points have {dims} coordinates" in refused(path, origin=ORIGIN[: 5 - dims])


def test_a_column_of_bounds_comes_first_unless_points_are_wanted(tmp_path):
    bounds = {"min_x": POINTS[:, 0], "min_y": POINTS[:, 1], "max_x": POINTS[:, 0], "max_y": POINTS[:, 1] + 1}
    shapes = pa.array([wkb(row) for row in POINTS.tolist()])
    path = put(tmp_path / "a.parquet", shapes, others={**bounds, "name": list("abcdefg")})
    boxes = rb.load(path)
    assert (len(boxes), list(boxes.labels)) == (7, ["name"])
    assert dict(boxes.skipped) == {"columns that are no labels": 1}
    np.testing.assert_array_equal(rb.load(path, origin=(0, 0, 0)).directions, POINTS)
    named = put(tmp_path / "b.parquet", shapes, others={"x": [1.0] * 7, "y": [2.0] * 7})
    assert rb.load(named, origin=(0, 0)).directions[0].tolist() == [1, 2]


@pytest.mark.parametrize("kind", ["wkb", "list", "struct"])
def test_points_that_are_missing(tmp_path, kind):
    """Null, NaN (an empty point of WKB), and none at all."""
    column = columns_of(3)[{"struct": 0, "list": 2, "wkb": 3}[kind]]
    empty = {"wkb": wkb([np.nan] * 3), "list": [np.nan] * 3, "struct": dict.fromkeys("xyz", np.nan)}[kind]
    values = pa.array([None, *column[0].to_pylist(), empty, None], column[0].type)
    path = put(tmp_path / "a.parquet", values, **column[1])
    rays = rb.load(path, origin=(0, 0, 0), invalid="miss")
    np.testing.assert_array_equal(rays.directions, np.r_[[[np.nan] * 3], POINTS, [[np.nan] * 3] * 2])
    assert "row 0 (the first is 0), column shape.x: a value is missing" in refused(path, origin=ORIGIN)
    none = put(tmp_path / "b.parquet", values[:1], **column[1])
    assert np.isnan(rb.load(none, origin=(0, 0, 0), invalid="miss").directions).all()
    nothing = put(tmp_path / "c.parquet", values[:0], **column[1])
    assert rb.load(nothing, origin=(0, 0, 0)).shape == (0,)


def of_type(code, size=20):
    """Return WKB of a type of geometry, with zeros for its numbers."""
    return b"\1" + struct.pack("<I", code) + bytes(size)


WRONG = {
    of_type(2): "row 4 (the first is 0), column shape: its geometry is a LineString",
    of_type(1006): "its geometry is a MultiPolygon, not a Point",
    of_type(17): "its geometry is of type 17, not a Point",
    of_type(0x20000001): "its geometry is of type 536870913, not a Point",
    wkb([1, 2, 3])[:-1]: "its geometry has 28 bytes of WKB, where a point has 29",
    wkb([1, 2, 3]) + b"\0": "its geometry has 30 bytes of WKB, where a point has 29",
    wkb([1, 2]): "its geometry has 2 coordinates, the first one 3",
    **dict.fromkeys((b"POINT(1 2 3)", b"", b"\1\1"), "its geometry is no WKB"),
}


@pytest.mark.parametrize("value", WRONG)
def test_values_that_are_no_points(tmp_path, value):
    column = pa.array([*(wkb(row) for row in POINTS[:4].tolist()), value])
    assert WRONG[value] in refused(put(tmp_path / "a.parquet", column), origin=ORIGIN)
    if value != wkb([1, 2]):
        assert "column shape: its" in refused(put(tmp_path / "b.parquet", column[4:]), origin=ORIGIN)


OTHERS = [{"geometry_types": ["Polygon"]}, {"encoding": "polygon"}, {"encoding": ""}]


@pytest.mark.parametrize("facts", OTHERS)
def test_other_geometries_are_no_points(tmp_path, facts):
    points = pa.array([wkb([1, 2, 3])])
    path = put(tmp_path / "a.parquet", points, **facts)
    assert "has no columns of boxes, rays or points, but 'shape'" in refused(path, origin=ORIGIN)
    marked = {"encoding": "", "extension": "geoarrow.wkb", "others": {"other": points}}
    path = put(tmp_path / "b.parquet", points, **marked)
    assert rb.load(path, origin=(0, 0, 0)).directions.tolist() == [[1, 2, 3]]


def test_points_with_a_measure_in_place_of_z(tmp_path):
    child = pa.list_(pa.field("xym", pa.float64()), 3)
    column = pa.FixedSizeListArray.from_arrays(pa.array(POINTS.ravel()), type=child)
    path = put(tmp_path / "XYM.parquet", column, encoding="", extension="geoarrow.point")
    np.testing.assert_array_equal(rb.load(path, origin=(0, 0)).directions, POINTS[:, :2])
