"""Colours of primitives: what files state, by files written by hand."""

import copy
import json
import struct
import warnings

import numpy as np
import pytest

import raybox as rb
from file_samples import CITY, IFC, ORDERS, ply_with, vox_chunk, vox_file
from gltf_builder import Builder
from needs import package
from raybox.errors import SkippedWarning
from refusals import refused

RNG = np.random.default_rng(5)
VERTICES = RNG.random((7, 3))
FACES = [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
NONE = [0, 0, 0, 0]


def load(path, content, **options):
    """Write a file, and return its geometry, without a warning."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedWarning)
        return rb.load(path, **options)


def rows(geometry):
    return None if geometry.colors is None else geometry.colors.tolist()


# Voxels


VOXELS = [(0, 0, 0, 1), (1, 0, 0, 2), (2, 1, 0, 255), (2, 2, 2, 0)]
SIZED = (3, 3, 3), VOXELS


def test_the_palette_of_a_vox_file(tmp_path):
    palette = bytes(range(256)) * 4
    found = load(tmp_path / "a.vox", vox_file([SIZED], vox_chunk(b"RGBA", palette)))
    # number n has the bytes 4 (n - 1) and on
    assert rows(found) == [[0, 1, 2, 3], [4, 5, 6, 7], [248, 249, 250, 251], NONE]
    assert found.labels["color"].tolist() == [1, 2, 255, 0]
    grid = rb.load_grid(tmp_path / "a.vox")
    assert grid.colors.shape == (27, 4)
    for x, y, z, number in VOXELS:
        wanted = [*palette[4 * number - 4 : 4 * number]] if number else NONE
        assert grid.colors.reshape(3, 3, 3, 4)[x, y, z].tolist() == wanted
    assert int(grid.colors.any(axis=1).sum()) == 3


def test_the_palette_of_an_old_vox_file(tmp_path):
    # of the default palette in the format's description, 0xAABBGGRR by number
    described = {1: 0xFFFFFFFF, 2: 0xFFCCFFFF, 7: 0xFFFFCCFF, 36: 0xFF0000FF, 37: 0xFFFFFFCC, 72: 0xFF0000CC}
    described |= {215: 0xFF330000, 216: 0xFF0000EE, 225: 0xFF000011, 226: 0xFF00EE00, 236: 0xFFEE0000}
    described |= {246: 0xFFEEEEEE, 247: 0xFFDDDDDD, 255: 0xFF111111}
    voxels = [(k % 3, k // 3 % 3, k // 9, number) for k, number in enumerate(described)]
    found = load(tmp_path / "a.vox", vox_file([((3, 3, 3), voxels)]))
    assert rows(found) == [[*struct.pack("<I", color)] for color in described.values()]


@pytest.mark.parametrize("size", [0, 4, 1020, 1023, 1028])
def test_palettes_of_wrong_length(tmp_path, size):
    found = load(tmp_path / "a.vox", vox_file([SIZED], vox_chunk(b"RGBA", bytes(size))))
    assert found.colors is None
    assert dict(found.skipped) == {"palettes that do not have 256 colours": 1}
    with pytest.warns(SkippedWarning):
        assert rb.load_grid(tmp_path / "a.vox").colors is None


# IFC

STYLE = "#40=IFCCOLOURRGB($,{});\n#41=IFCSURFACESTYLERENDERING(#40,{},$,$,$,$,$,$,.FLAT.);\n"
STYLE += "#42=IFCSURFACESTYLE('glass',.BOTH.,({}));\n#43=IFCSTYLEDITEM(#24,(#42),$);\n"
# A second body of the same product
FRAME = "#34=IFCEXTRUDEDAREASOLID(#22,#3,#23,1.);\n"


def ifc(style):
    return IFC.replace("ENDSEC;\nEND-ISO", f"{style}ENDSEC;\nEND-ISO")


@pytest.mark.parametrize(
    ("style", "color"),
    [
        ("", None),
        (STYLE.format("0.2,0.4,0.6", "0.8", "#41"), [51, 102, 153, 51]),
        (STYLE.format("0.2,0.4,0.6", "$", "#41"), [51, 102, 153, 255]),
        (STYLE.format("1.2,-0.4,0.6", "1.8", "#41"), [255, 0, 153, 0]),
        (STYLE.format("0.2,0.4,0.6", "0.8", ""), None),
    ],
)
def test_surface_styles_of_ifc(tmp_path, style, color):
    package("ifcopenshell")
    found = load(tmp_path / "a.ifc", ifc(style))
    assert len(found) == 12
    assert rows(found) == (None if color is None else [color] * 12)


def test_one_ifc_product_has_frame_and_glass(tmp_path):
    package("ifcopenshell")
    text = ifc(FRAME + STYLE.format("0.,0.2,1.", "0.6", "#41")).replace("(#24));\n#26", "(#24,#34));\n#26")
    found = load(tmp_path / "a.ifc", text)
    glass = (found.colors == [0, 51, 255, 102]).all(axis=1)
    assert glass.sum() == 12
    assert rows(found[~glass]) == [NONE] * 12
    assert [np.ptp(found.triangles[one][..., 2]) for one in (glass, ~glass)] == [6, 1]


# OBJ

OBJ = """mtllib a.mtl
v 0 0 0
v 1 0 0
v 1 1 0
v 0 1 0
f 1 2 3
usemtl red one
f 1 2 3 4
o second
usemtl glass
f 1 2 4
usemtl absent
f 2 3 4
"""
MTL = """# by hand
newmtl red one
Kd 1 0.2 0
newmtl glass
 Kd 0.4 # all alike
Tr 0.8
"""


def test_materials_of_obj(tmp_path):
    (tmp_path / "a.mtl").write_text(MTL)
    found = load(tmp_path / "a.obj", OBJ)
    red, glass = [255, 51, 0, 255], [102, 102, 102, 51]
    assert rows(found) == [NONE, red, red, glass, NONE]
    assert dict(found.skipped) == {"materials that no library has": 1}
    boxes = load(tmp_path / "a.obj", OBJ, boxes=True)
    assert boxes.colors[0].tolist() == red
    assert len(boxes.colors) == 2


@pytest.mark.parametrize(
    ("line", "color"),
    [
        ("Kd 2 -1 0.5", [255, 0, 128, 255]),
        ("Kd nan 0 1", [0, 0, 255, 255]),
        ("Kd x y z", NONE),
        ("Kd", NONE),
        ("Ka 1 1 1", NONE),
        ("Kd 0 0 0\nd 0.2\nTr 0.3", [0, 0, 0, 51]),
        ("Kd 0 0 0\nd -halo 0.2", [0, 0, 0, 51]),
        ("Kd 0 0 0\nd", [0, 0, 0, 255]),
        ("Kd 1 1 1\nKd 0 0 0.2", [0, 0, 51, 255]),
    ],
)
def test_lines_of_a_library(tmp_path, line, color):
    (tmp_path / "a.mtl").write_text(f"newmtl red one\n{line}\nnewmtl other\nKd 1 1 1\n")
    content = OBJ.partition("o second")[0]
    found = load(tmp_path / "a.obj", content)
    assert rows(found) == (None if color == NONE else [NONE, color, color])
    assert ("colours of material libraries that are no numbers" in found.skipped) == (
        line in ("Kd x y z", "Kd", "Kd 0 0 0\nd")
    )


def test_libraries_that_are_not_there(tmp_path):
    (tmp_path / "b.mtl").write_text(MTL)
    (tmp_path / "in").mkdir()
    lost, damaged = "material libraries that are not there", "material libraries that cannot be read"
    for name in ("c.mtl", "../b.mtl", str(tmp_path / "b.mtl"), "a\\..\\b.mtl", ".", "\xff"):
        found = load(tmp_path / "in" / "a.obj", OBJ.replace("a.mtl", name))
        assert (found.colors, dict(found.skipped)) == (None, {lost: 1}), name
    found = load(tmp_path / "a.obj", OBJ.replace("a.mtl", "c.mtl b.mtl"))
    assert (found.skipped[lost], rows(found)[1]) == (1, [255, 51, 0, 255])
    (tmp_path / "b.mtl").write_bytes(b"\xff\xfe\x00")
    assert dict(load(tmp_path / "a.obj", OBJ.replace("a.mtl", "b.mtl")).skipped) == {damaged: 1}
    for old, new in (("mtllib a.mtl\n", ""), ("usemtl", "s")):  # the second uses no material
        assert load(tmp_path / "a.obj", OBJ.replace(old, new)).skipped == {}


def test_textures_of_obj_are_counted(tmp_path):
    textured = "newmtl {}\nmap_Kd -s 1 1 1 wood.png\n"
    (tmp_path / "a.mtl").write_text(textured.format("red one") + "Kd 0 1 0\n" + textured.format("other"))
    found = load(tmp_path / "a.obj", OBJ.partition("o second")[0])
    assert rows(found) == [NONE, [0, 255, 0, 255], [0, 255, 0, 255]]
    assert dict(found.skipped) == {"textures that are not read": 1}  # no face uses the other


# glTF


def gltf(material=None, colors=None, **more):
    """Return two triangles of four vertices, placed twice; colors: rows of vertices, bytes or floats."""
    made = Builder()
    position = made.accessor([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]])
    primitive = {"attributes": {"POSITION": position}, "indices": made.accessor([0, 1, 2, 1, 3, 2], "H")}
    if colors is not None:
        code = {"float32": "f", "uint8": "B", "uint16": "H"}[colors.dtype.name]
        kind = {} if code == "f" else {"normalized": True}
        primitive["attributes"]["COLOR_0"] = made.accessor(colors, code, **kind)
    if material is not None:
        primitive["material"] = material
    made.node(mesh=made.mesh(primitive))
    made.node(mesh=0, translation=[0, 0, 5])
    return made.content(**more)


def srgb(x):
    """Return a byte of sRGB of a linear number, by the standard."""
    x = min(max(x, 0.0), 1.0)
    return round(255 * (12.92 * x if x <= 0.0031308 else 1.055 * x ** (1 / 2.4) - 0.055))


def base(*factor, **more):
    return {"materials": [{"pbrMetallicRoughness": {"baseColorFactor": [*factor]}} | more]}


@pytest.mark.parametrize(
    ("more", "color"),
    [
        (base(0.5, 0.002, 1, 0.4), [srgb(0.5), srgb(0.002), 255, 255]),
        (base(0.5, 0.002, 1, 0.4, alphaMode="BLEND"), [188, 7, 255, 102]),
        (base(0.5, 0, 1, 0.4, alphaMode="MASK"), [188, 0, 255, 255]),
        (base(2.0, -1, 0, 7, alphaMode="BLEND"), [255, 0, 0, 255]),
        ({"materials": [{}]}, [255] * 4),
    ],
)
def test_base_colors_of_gltf(tmp_path, more, color):
    found = load(tmp_path / "a.glb", gltf(0, **more))
    assert rows(found) == [color] * 4
    assert dict(found.skipped) == {}


BROKEN = [{}, {"materials": []}, {"materials": 5}, {"materials": [5]}, {"materials": [{"alphaMode": 3}]}]


@pytest.mark.parametrize("more", [*BROKEN, base(1, 1), base("x", 1, 1, 1)])
def test_broken_materials_of_gltf(tmp_path, more):
    for material, skipped in ((0, {"materials that are broken": 1}), (None, {})):
        found = load(tmp_path / "a.glb", gltf(material, **more))
        assert (found.colors, dict(found.skipped)) == (None, skipped)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "uint16"])
@pytest.mark.parametrize("width", [3, 4])
def test_vertex_colors_of_gltf(tmp_path, dtype, width):
    values = RNG.random((4, width))
    top = {"float32": 1, "uint8": 255, "uint16": 65535}[dtype]
    colors = (values * top).astype(dtype)
    found = load(tmp_path / "a.glb", gltf(0, colors, **base(0.5, 1, 1, 0.5, alphaMode="BLEND")))
    wanted = []
    for face in ([0, 1, 2], [1, 3, 2]):
        mean = [sum(float(colors[k, c]) / top for k in face) / 3 for c in range(width)] + [1.0] * (4 - width)
        wanted.append([srgb(0.5 * mean[0]), srgb(mean[1]), srgb(mean[2]), round(255 * 0.5 * mean[3])])
    assert rows(found) == wanted * 2
    assert (load(tmp_path / "a.glb", gltf(None, colors)).colors[:, 3] == 255).all()
    broken = load(tmp_path / "a.glb", gltf(None, colors[:3]))
    assert broken.colors is None
    assert dict(broken.skipped) == {"colours of vertices that are broken": 1}


@pytest.mark.parametrize("texture", [{"index": 0}, {"index": 7}, 5])
def test_textures_of_gltf_are_counted(tmp_path, texture):
    material = {"pbrMetallicRoughness": {"baseColorTexture": texture, "baseColorFactor": [1, 0, 1, 1]}}
    found = load(tmp_path / "a.glb", gltf(0, materials=[material], images=[{"uri": "a.png"}]))
    assert rows(found) == [[255, 0, 255, 255]] * 4
    assert dict(found.skipped) == {"textures that are not read": 1}


# PLY

FULL = {"uchar": 255, "ushort": 65535, "float": 1, "double": 1, "int": 255}


def ply(order, kind, colors, where, faces=FACES, names=("red", "green", "blue", "alpha")):
    """Write a mesh with a color on each vertex or face."""
    return ply_with(order, kind, colors, where, names[: len(colors[0])], faces, VERTICES)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", FULL)
@pytest.mark.parametrize("where", ["vertex", "face", "before"])
@pytest.mark.parametrize("width", [3, 4])
def test_colors_of_ply(tmp_path, order, kind, where, width):
    full = FULL[kind]
    colors = np.round(RNG.random((7, width)) * full, 6 if full == 1 else 0).tolist()
    if full > 1:
        colors = [[int(c) for c in row] for row in colors]
    for faces in (FACES, [[0, 1, 2], [1, 3, 4, 2]]):
        found = load(tmp_path / "a.ply", ply(order, kind, colors, where, faces))
        own = [
            [round(255 * np.float32(c) / full) if kind == "float" else round(255 * c / full) for c in row]
            for row in colors
        ]
        own = [row + [255] * (4 - width) for row in own]
        wanted = []
        for k, face in enumerate(faces):
            for corner in range(2, len(face)):
                fan = face[0], face[corner - 1], face[corner]
                means = [sum(own[v][c] for v in fan) / 3 for c in range(4)]
                wanted.append([round(mean) for mean in means] if where == "vertex" else own[k])
        corners = found.faces.tolist()
        if len(faces) == 2 and where == "vertex":  # of any diagonal
            wanted = [[round(sum(own[v][c] for v in face) / 3) for c in range(4)] for face in corners]
        assert rows(found) == wanted


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("where", ["vertex", "face"])
@pytest.mark.parametrize(("kind", "color"), [("int", [-5, 300, 7]), ("float", [-0.5, 1.5, float("nan")])])
def test_colors_of_ply_that_are_out_of_range(tmp_path, order, where, kind, color):
    found = load(tmp_path / "a.ply", ply(order, kind, [color] * 7, where))
    assert rows(found) == [[0, 255, 7 if kind == "int" else 0, 255]] * 3


@pytest.mark.parametrize("names", [("red", "green", "w"), ("red", "red", "blue"), ("r", "g", "b")])
@pytest.mark.parametrize("where", ["vertex", "face"])
def test_other_properties_of_ply_are_no_colors(tmp_path, names, where):
    for order in ORDERS:
        found = load(tmp_path / "a.ply", ply(order, "uchar", [[1, 2, 3]] * 7, where, names=names))
        assert found.colors is None
        assert found.skipped == {}


def test_a_corner_past_the_end_of_colored_vertices_is_refused(tmp_path):
    (tmp_path / "a.ply").write_bytes(ply("ascii", "uchar", [[1, 2, 3]] * 7, "vertex", [[0, 1, 7]]))
    assert "vertex 7 does not exist" in refused(tmp_path / "a.ply")


def test_faces_next_to_triangle_strips_keep_colors(tmp_path):
    content = ply("ascii", "uchar", [[1, 2, 3]] * 7, "face").decode()
    strips = "element tristrips 1\nproperty list uchar int vertex_indices\nend_header"
    found = load(tmp_path / "a.ply", content.replace("end_header", strips) + "4 0 1 2 3\n")
    assert rows(found) == [[1, 2, 3, 255]] * 3 + [NONE] * 2


def test_points_of_colored_ply_stay_points(tmp_path):
    content = ply("ascii", "uchar", [[1, 2, 3]] * 7, "vertex")
    rays = load(tmp_path / "a.ply", content, origin=(0, 0, 0))
    assert rays.directions.tolist() == VERTICES.tolist()


# CityJSON

APPEARANCE = {
    "default-theme-material": "summer",
    "materials": [
        {"name": "roof", "diffuseColor": [1.0, 0.2, 0.0], "transparency": 0.2},
        {"name": "wall", "diffuseColor": [0.4, 0.4, 2.0]},
        {"name": "plain"},
    ],
}


def city(**materials):
    """Return a city, with materials for geometries of its objects."""
    document = copy.deepcopy(CITY) | {"appearance": APPEARANCE}
    for name, material in materials.items():
        if name == "template":
            document["geometry-templates"]["templates"][0]["material"] = material
        else:
            document["CityObjects"][name]["geometry"][0]["material"] = material
    return json.dumps(document)


def test_materials_of_cityjson(tmp_path):
    part = {"winter": {"value": 1}, "summer": {"values": [[0, 1, None, 2]]}}
    road, template = {"winter": {"value": 1}}, {"summer": {"values": [0]}}
    found = load(tmp_path / "a.city.json", city(part=part, road=road, template=template))
    roof, wall = [255, 51, 0, 204], [102, 102, 255, 255]
    of = {
        name: [rows(found)[k] for k in np.flatnonzero(found.ids[found.objects] == name)] for name in found.ids
    }
    assert of == {"part": [roof, wall, NONE, NONE], "road": [wall], "tree": [roof]}
    assert "materials that do not fit their surfaces" not in found.skipped
    assert load(tmp_path / "a.city.json", city()).colors is None


@pytest.mark.parametrize(
    "material",
    [
        {"summer": {"values": [[0, 1]]}},
        {"summer": {"values": [[0, 1, 2, 3]]}},
        {"summer": {"value": -1}},
        {"summer": {"value": "x"}},
        {"summer": 5},
        {"summer": {}},
        [1],
    ],
)
def test_materials_of_cityjson_that_do_not_fit(tmp_path, material):
    found = load(tmp_path / "a.city.json", city(part=material))
    assert found.colors is None
    assert found.skipped["materials that do not fit their surfaces"] == 1


def test_materials_of_features(tmp_path):
    document = json.loads(city(road={"summer": {"value": 0}}))
    objects, vertices = document.pop("CityObjects"), document.pop("vertices")
    own = {"materials": [{"diffuseColor": [0, 0, 1]}]}
    lines = [document | {"CityObjects": {}, "vertices": []}]
    for more in ({}, {"appearance": own}):
        feature = {"type": "CityJSONFeature", "id": "a", "vertices": vertices} | more
        lines.append(feature | {"CityObjects": {f"road{len(more)}": objects["road"]}})
    found = load(tmp_path / "a.city.jsonl", "\n".join(map(json.dumps, lines)))
    assert rows(found) == [[255, 51, 0, 204], [0, 0, 255, 255]]
