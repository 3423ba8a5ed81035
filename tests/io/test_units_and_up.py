"""Units and the axis that is up: stated by files, kept by geometries, and turned by `up`, exactly."""

import json
import struct

import numpy as np
import pytest

import raybox as rb
from commands import raybox
from file_samples import CASES, las, ply, samples
from raybox.errors import UnitsWarning
from raybox.geometry import with_facts
from raybox.io.formats import contents, point_clouds, read
from refusals import refused

BOXES = rb.Boxes([[0, 0, 0], [2, 1, -3]], [[1, 1, np.inf], [3, 5, 0]], ids=["a", "b"], labels={"n": [1, 2]})
MESH = rb.Mesh(
    [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 1, 2], [0, 2, 3]], objects=[0, 1], ids=["a", "b"]
)
RAYS = rb.Rays([[0, 0, 0], [1, 2, 3]], [[1, 0, 0], [0, 2, 1]], t_max=[5, 6])
COPIES = rb.Instances(MESH, [np.hstack([np.diag([1.0, 2, 3]), [[4.0], [5], [6]]])], ids=["c"])
GEOMETRIES = {"boxes": BOXES, "mesh": MESH, "rays": RAYS, "instances": COPIES}


def stated(geometry, units="metre", up="y"):
    return with_facts(geometry, {"lost": 1}, units=units, up=up)


def facts(geometry):
    return dict(geometry.skipped), geometry.units, geometry.up


# What files state


def test_what_formats_state(put):
    """But for CityJSON, which states its reference system, and IFC."""
    stated_by = {".glb": ("metre", "y"), ".gltf": ("metre", "y")}
    stated_by |= dict.fromkeys((".vox", ".las", ".laz"), (None, "z"))
    for name, (content, options) in samples().items():
        ending = name[name.rindex(".") :]
        if ending not in (".json", ".jsonl", ".ifc"):
            loaded = read(put(name, content), **options)
            assert (loaded.units, loaded.up) == stated_by.get(ending, (None, None)), name
            assert (loaded.geometry.units, loaded.geometry.up) == (loaded.units, loaded.up)
    assert facts(rb.load(CASES / "sep_gltf" / "tri.gltf"))[1:] == ("metre", "y")


WKT = 'PROJCS["a [b]",GEOGCS["c",DATUM["d",SPHEROID["e",6378137,298.25]],UNIT["degree",0.0174532925199433]],'
WKT += 'PROJECTION["f"],PARAMETER["g",0],{},AXIS["X",EAST]]'
WKT2 = 'PROJCRS["a",BASEGEOGCRS["b",DATUM["c",ELLIPSOID["d",1,2,LENGTHUNIT["metre",1]]]],CONVERSION["e",'
WKT2 += 'PARAMETER["f",0,LENGTHUNIT["metre",1]]],CS[Cartesian,2],AXIS["x",east],{}]'
VERTICAL = ',VERT_CS["v",UNIT["metre",1]]]'
SYSTEMS = {
    WKT.format('UNIT["metre",1,AUTHORITY["EPSG","9001"]]'): "metre",
    WKT.format('UNIT["Foot_US",0.3048006096012192]'): "US survey foot",
    WKT.format('UNIT["foot", 0.3048]'): "foot",
    WKT.format('UNIT["chain",20.1168]'): None,
    'COMPD_CS["x",' + WKT.format('UNIT["foot",0.3048]') + VERTICAL: "foot",
    WKT2.format('LENGTHUNIT["US survey foot",0.304800609601219]'): "US survey foot",
    'COMPOUNDCRS["x",'
    + WKT2.format('LENGTHUNIT["metre",1.0]')
    + ',VERTCRS["v",LENGTHUNIT["foot",0.3048]]]': "metre",
    'GEOGCS["WGS 84",DATUM["d",SPHEROID["e",1,2]],UNIT["degree",0.0174532925199433]]': "degree",
    'COMPD_CS["x",GEOGCS["WGS 84",UNIT["degree",0.017]]' + VERTICAL: "degree",
    'GEOCCS["a",UNIT["metre",1]]': None,
    'PROJCS["cut off': None,
    "": None,
}


@pytest.mark.parametrize(("text", "units"), SYSTEMS.items())
def test_units_of_well_known_text(text, units):
    assert point_clouds.units_of({("LASF_Projection", 2112): text.encode() + b"\0"}) == units


@pytest.mark.parametrize(
    ("keys", "units"),
    [
        ([(1024, 0, 1, 1), (3076, 0, 1, 9001)], "metre"),
        ([(1024, 0, 1, 1), (3076, 0, 1, 9002)], "foot"),
        ([(3076, 0, 1, 9003)], "US survey foot"),
        ([(1024, 0, 1, 2), (2054, 0, 1, 9102)], "degree"),
        ([(1024, 0, 1, 1), (3072, 0, 1, 32633)], None),
        ([(3076, 34736, 1, 9001)], None),
        ([], None),
    ],
)
def test_units_of_geotiff_keys(keys, units):
    data = struct.pack("<4H", 1, 1, 0, len(keys)) + b"".join(struct.pack("<4H", *key) for key in keys)
    assert point_clouds.units_of({("LASF_Projection", 34735): data}) == units
    assert point_clouds.units_of({("LASF_Projection", 34735): data[:-3]}) in (units, None)
    assert point_clouds.units_of({}) is None


def test_a_scan_in_degrees_warns(put):
    pytest.importorskip("laspy")
    content = bytearray(las("las"))
    header, start, records = point_clouds.LAS_HEAD.unpack_from(content)
    keys = struct.pack("<8H", 1, 1, 0, 1, 1024, 0, 1, 2)
    record = struct.pack("<2x16sHH32x", b"LASF_Projection", 34735, len(keys)) + keys
    content[header:header] = record
    struct.pack_into("<II", content, 96, start + len(record), records + 1)
    path, words = (
        put("a.las", bytes(content)),
        "a.las: its coordinates are degrees, not lengths; project them",
    )
    with pytest.warns(UnitsWarning, match=words) as caught:
        rays = rb.load(path, origin=(0, 0, 0))
    assert caught[0].filename == __file__
    assert (rays.units, rays.up, len(rays)) == ("degree", "z", 40)
    assert contents(path).units == "degree"


# What geometries keep


@pytest.mark.parametrize(
    ("matrix", "units", "up"),
    [
        (np.eye(3), "metre", "y"),
        (np.diag([-1.0, 1, -1]), "metre", "y"),
        ([[1, 0, 0], [0, 0, -1], [0, 1, 0]], "metre", "z"),
        ([[0, 1, 0], [1, 0, 0], [0, 0, 1]], "metre", None),
        (np.diag([1.0, -1, 1]), "metre", None),
        (np.eye(3) / 1000, None, None),
        ([[1, 1, 0], [0, 1, 0], [0, 0, 1]], None, None),
        ([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, 1]], None, None),
    ],
)
def test_a_mesh_that_is_moved_keeps_what_stays_true(matrix, units, up):
    moved = stated(MESH).transformed(np.hstack([matrix, [[1.0], [2], [3]]]))
    assert facts(moved) == ({"lost": 1}, units, up)


# Turning


def turned(points, up="z"):
    """Return points turned, by the definition."""
    return [[x, -z, y] if up == "z" else [x, z, -y] for x, y, z in np.reshape(points, (-1, 3)).tolist()]


@pytest.mark.parametrize(("old", "up"), [("y", "z"), ("z", "y")])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_every_geometry_is_turned(tmp_path, old, up, name):
    made, path = stated(GEOMETRIES[name], up=old), tmp_path / "a.npz"
    rb.save(path, made)
    found = rb.load(path, up=up)
    assert facts(found) == ({"lost": 1}, "metre", up)
    assert rb.load(path, up=old).equals(made)
    rb.save(path, found)
    assert rb.load(path, up=old).equals(made)
    if name == "mesh":
        assert found.triangles.reshape(-1, 3).tolist() == turned(made.triangles, up)
        assert (found.ids.tolist(), found.objects.tolist()) == (["a", "b"], [0, 1])
    elif name == "rays":
        assert found.origins.tolist() == turned(made.origins, up)
        assert found.directions.tolist() == turned(made.directions, up)
        assert found.t_max.tolist() == [5, 6]
    elif name == "boxes":
        ends = np.sort([turned(made.lower, up), turned(made.upper, up)], axis=0)
        assert [found.lower.tolist(), found.upper.tolist()] == ends.tolist()
        assert (found.ids.tolist(), found.labels["n"].tolist()) == (["a", "b"], [1, 2])
    else:
        np.testing.assert_array_equal(found.bounds, np.sort(turned(COPIES.boxes().bounds, up), axis=0))


def test_an_axis_that_no_file_states_is_refused(put):
    for name, content in (("a.ply", ply()), ("a.csv", "min_x,min_y,max_x,max_y\n0,0,1,1\n")):
        text = refused(put(name, content), up="z")
        assert "does not state which axis is up; load it without up, and if y is up turn it" in text
    with pytest.raises(rb.InvalidInput, match='up must be "y", "z" or None; got \'x\''):
        rb.load(put("a.ply", ply()), up="x")


def test_grids_and_flat_boxes_are_not_turned(tmp_path):
    grid = rb.Grid([0, 1], [0, 1], [0, 1], occupied=[True])
    for geometry in (grid, rb.Boxes([0, 0], [1, 1]), rb.Planes([[0, 0, 1]], [1])):
        rb.save(tmp_path / "a.npz", with_facts(geometry, up="y"))
        words = f"holds {type(geometry).__name__} that raybox does not turn; load it without up"
        assert words in refused(tmp_path / "a.npz", up="z")


def test_commands_turn_and_show():
    path = CASES / "g05_gpu_inst.glb"
    rows = dict(line.split("  ", 1) for line in raybox("info", path).output.splitlines())
    assert (rows["units"].strip(), rows["up"].strip()) == ("metre", "y")
    turned_facts = json.loads(raybox("info", "--json", "--up", "z", path).output)
    assert turned_facts["up"] == "z"
    assert [turned_facts[f"{end}_bound"] for end in ("lower", "upper")] == [[0, 0, 0], [21, 0, 1]]
    wrong = raybox("info", "--up", "z", CASES / "o01_bom.obj", code=2)
    assert "does not state which axis is up" in wrong.output
