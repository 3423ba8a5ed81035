"""GLB files: every rule of glTF that changes a triangle, against the rules written again for one triangle."""

import base64
import copy
import math
import struct
from fractions import Fraction

import numpy as np
import pytest

import raybox as rb
import refusals
from file_samples import glb
from gltf_builder import CODES, Builder
from raybox.errors import SkippedWarning
from raybox.io.formats import announced
from raybox.io.formats import glb as glb_reader
from raybox.viewer.stage import stage_of_bytes
from refusals import counted

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], "<f4")
BINARY = CORNERS.tobytes() + np.array([0, 1, 2], "<u2").tobytes()


def hidden(value):
    return {"extensions": {"KHR_node_visibility": value}}


DATA = "data:application/octet-stream;base64,"


def triangle(indices=(), **more):
    """Return a builder of one triangle, shown by a node with these values."""
    made = Builder()
    primitive = {"attributes": {"POSITION": made.accessor(CORNERS)}}
    if indices:
        primitive["indices"] = made.accessor(indices, "H")
    made.node(mesh=made.mesh(primitive), **more)
    return made


def skinned(*joints, weights=((0.25,) * 4,) * 3, code="f", **more):
    """Return a builder of a triangle whose node has a skin of these joints, and another node."""
    made = triangle(skin=0)
    attributes = made.document["meshes"][0]["primitives"][0]["attributes"]
    attributes["JOINTS_0"] = made.accessor(np.zeros((3, 4), int), "B")
    attributes["WEIGHTS_0"] = made.accessor(weights, code, normalized=code != "f")
    made.document["skins"] = [{"joints": list(joints)}]
    made.node(**more)
    return made


def changed(content, *place, to):
    """Change a value of a document, named by the keys that lead there."""
    for key in place[:-1]:
        content = content[key]
    content[place[-1]] = to


def load(tmp_path, content, **options):
    path = tmp_path / "one.glb"
    path.write_bytes(content)
    return rb.load(path, **options)


def refused(tmp_path, content):
    """Return the error of a file."""
    (tmp_path / "one.glb").write_bytes(content)
    return refusals.refused(tmp_path / "one.glb")


# The cases of other readers


def test_an_unknown_required_extension_is_refused_by_its_name(tmp_path):
    for name in ("EXT_meshopt_compression", "ACME_curved_space", "KHR_visibility"):
        assert f"requires the extension {name}" in refused(
            tmp_path, triangle().content(extensionsRequired=[name])
        )
    harmless = ["KHR_materials_unlit", "KHR_texture_transform", "KHR_mesh_quantization"]
    assert len(load(tmp_path, triangle().content(extensionsRequired=harmless))) == 1


def test_compression_that_is_not_required_is_refused_only_without_plain_data(tmp_path):
    made = triangle()
    primitive = made.document["meshes"][0]["primitives"][0]
    primitive["extensions"] = {"KHR_draco_mesh_compression": {"bufferView": 0}}
    assert len(load(tmp_path, made.content())) == 1
    del made.document["accessors"][0]["bufferView"]
    assert "compressed by KHR_draco_mesh_compression" in refused(tmp_path, made.content())
    made = triangle()
    made.document["bufferViews"][0] |= {"buffer": 1, "extensions": {"EXT_meshopt_compression": {}}}
    document = made.document | {"buffers": [{"byteLength": 36}, {"byteLength": 36}]}
    text = refused(tmp_path, glb(document, made.binary))
    assert "buffer 1: has no bytes in this file (EXT_meshopt_compression)" in text


# Accessors


@pytest.mark.parametrize("code", "bBhH")
@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("padding", [0, 3, 5])
def test_quantized_positions(tmp_path, code, normalized, padding):
    limits = np.iinfo({"b": "i1", "B": "u1", "h": "i2", "H": "u2"}[code])
    rows = [(limits.min, 0, limits.max), (1, 2, 3), (limits.max, 5, limits.min)]
    size = struct.calcsize(f"<3{code}")
    packed = b"".join(struct.pack(f"<3{code}", *row) + b"\x55" * padding for row in rows)
    made = Builder()
    view = made.view(packed, byteStride=size + padding)
    position = made.accessor(rows, code, view, normalized=normalized)
    made.node(mesh=made.mesh({"attributes": {"POSITION": position}}))
    found = load(tmp_path, made.content(extensionsRequired=["KHR_mesh_quantization"])).triangles[0]
    for row, vertex in zip(rows, found.tolist(), strict=True):
        wanted = [max(number / limits.max, -1.0) if normalized else number for number in row]
        assert vertex == wanted


@pytest.mark.parametrize("code", "BHI")
@pytest.mark.parametrize("base", [True, False])
def test_sparse_values_replace_those_of_the_base_or_zero(tmp_path, code, base):
    made = Builder()
    rows = np.arange(30.0).reshape(10, 3)
    position = made.accessor(rows)
    indices, values = [9, 2, 4], [[1, 1, 1], [0.5, 0, 0], [-3, 2, 8]]
    sparse = {
        "count": 3,
        "indices": {
            "bufferView": made.view(struct.pack(f"<3{code}", *indices)),
            "componentType": CODES[code],
        },
        "values": {"bufferView": made.view(struct.pack("<9f", *np.ravel(values)))},
    }
    made.document["accessors"][position]["sparse"] = sparse
    if not base:
        del made.document["accessors"][position]["bufferView"]
    corners = made.accessor(list(range(9)), "B")
    made.node(mesh=made.mesh({"attributes": {"POSITION": position}, "indices": corners}))
    wanted = rows.tolist() if base else [[0.0] * 3] * 10
    for index, value in zip(indices, values, strict=True):
        wanted[index] = value
    assert load(tmp_path, made.content()).vertices.tolist() == wanted
    sparse["indices"]["bufferView"] = made.view(struct.pack(f"<3{code}", 1, 2, 10))
    assert "indices: names item 10 of 10" in refused(tmp_path, made.content())


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        (("accessors", 0, "count"), 4, "accessor 0: 4 items from byte 0 on do not fit into bufferView 0"),
        (("accessors", 0, "count"), 10**12, "do not fit into bufferView 0"),
        (("accessors", 0, "count"), -1, "its count is -1"),
        (("accessors", 0, "count"), 3.0, "its count is 3.0, not a whole number"),
        (("accessors", 0, "count"), True, "its count is True, not a whole number"),
        (("accessors", 0, "byteOffset"), 8, "items from byte 8 on do not fit"),
        (("accessors", 0, "type"), "VEC2", "is 'VEC2' of components 5126; a VEC3 of"),
        (("accessors", 0, "componentType"), 5130, "of components 5130"),
        (("accessors", 1, "componentType"), 5126, "a SCALAR of [5121, 5123, 5125] is needed here"),
        (("accessors", 1, "componentType"), 5122, "of components 5122"),
        (("accessors", 0, "bufferView"), 7, "refers to bufferView 7, the file has 2"),
        (("accessors", 0, "bufferView"), "a", "its bufferView is 'a', not a whole number"),
        (("bufferViews", 0, "byteLength"), 10**6, "bufferView 0: ends at byte 1000000 of a buffer of 42"),
        (("bufferViews", 0, "byteStride"), 4, "do not fit into bufferView 0"),
        (("bufferViews", 0, "buffer"), 1, "refers to buffer 1, the file has 1"),
        (("buffers", 0, "byteLength"), 100, "buffer 0: announces 100 bytes, 42 are there"),
        (("meshes", 0, "primitives", 0, "mode"), 9, "has mode 9, which is none of glTF"),
        (
            ("meshes", 0, "primitives", 0, "attributes"),
            {},
            "no triangles, but primitives without POSITION (1)",
        ),
        (("meshes", 0, "primitives", 0, "indices"), 5, "refers to accessor 5"),
        (("meshes", 0, "primitives"), {}, "its primitives is {}, not a list"),
        (("nodes", 0, "mesh"), 3, "node 0: refers to mesh 3, the file has 1"),
        (("nodes", 0, "name"), 3, "its name is 3, not a text"),
        (("nodes", 0, "matrix"), [1.0] * 15, "has 15 numbers in its matrix, not 16"),
        (("nodes", 0, "translation"), [0, "x", 0], "has 'x' among its translation, which is not a number"),
        (("nodes", 0, "rotation"), [0, 0, 0, 0], "a rotation that is no quaternion"),
        (("nodes", 0), 7, "has 7 among its nodes, which is not an object"),
        (("nodes", 0, "children"), [0], "leads to node 0 a second time: the nodes are no tree"),
        (("scenes",), [{"nodes": [0, 0]}], "leads to node 0 a second time"),
        (("scenes",), [{"nodes": [4]}], "scene 0: refers to node 4, the file has 1"),
        (("scenes",), [{"nodes": [-1]}], "scene 0: refers to node -1"),
        (("accessors",), 5, "its accessors is 5, not a list"),
    ],
)
def test_every_reference_and_size_is_checked(tmp_path, place, value, expected):
    made = triangle([0, 1, 2])
    document = made.document | {"buffers": [{"byteLength": len(made.binary)}]}
    if "children" in place:
        document["scenes"] = [{"nodes": [0]}]
    changed(document, *place, to=value)
    assert expected in refused(tmp_path, glb(document, made.binary))


def test_indices_beyond_the_vertices_and_numbers_that_are_not_finite(tmp_path):
    for index in (3, 65535):
        text = refused(tmp_path, triangle([0, 1, index]).content())
        assert f"uses vertex {index}, there are 3, from 0 on" in text
    for number in (np.nan, np.inf):
        made = Builder()
        position = made.accessor([*CORNERS.tolist(), [0, number, 0]])
        primitive = {"attributes": {"POSITION": position}, "indices": made.accessor([0, 1, 2], "H")}
        made.node(mesh=made.mesh(primitive))
        assert load(tmp_path, made.content()).vertices.tolist() == CORNERS.tolist()  # it is not used
        primitive["indices"] = made.accessor([0, 3, 2], "H")
        assert "vertex 3 (the first is 0), column" in refused(tmp_path, made.content())
    assert "is not a finite number" in refused(tmp_path, triangle(translation=[10**400, 0, 0]).content())


def test_containers_that_are_wrong(tmp_path):
    good = triangle().content()
    assert "is glTF 1, raybox reads 2" in refused(tmp_path, good[:4] + struct.pack("<I", 1) + good[8:])
    assert "ends too early" in refused(tmp_path, good[:-1])
    assert len(load(tmp_path, good + b"\n \0")) == 1
    assert "2 bytes follow the end" in refused(tmp_path, good + b"ab")
    assert "its JSON is missing, damaged" in refused(tmp_path, good.replace(b'"asset"', b'"asset ', 1))
    assert "its JSON is missing" in refused(tmp_path, good.replace(b"JSON", b"JSOM", 1))
    deep = b'{"a":' + b"[" * 10**5 + b"]" * 10**5 + b"}  "
    deep = struct.pack("<II", len(deep), 0x4E4F534A) + deep
    assert "too deep" in refused(tmp_path, b"glTF" + struct.pack("<II", 2, 12 + len(deep)) + deep)
    assert "its chunk of 4000000000 bytes" in refused(
        tmp_path, good[:12] + struct.pack("<I", 4_000_000_000) + good[16:]
    )


# Content inside of the file, and outside of it


def one_buffer(uri=None, binary=BINARY, images=()):
    made = triangle([0, 1, 2], name="moved", translation=[10, 0, 0])
    buffers = [{"byteLength": len(made.binary)} | ({} if uri is None else {"uri": uri})]
    assert made.binary == BINARY
    return glb(made.document | {"buffers": buffers, "images": [{"uri": image} for image in images]}, binary)


@pytest.mark.parametrize(
    "content",
    [
        one_buffer(),
        one_buffer(DATA + base64.b64encode(BINARY).decode(), binary=None),
        one_buffer(
            DATA + base64.b64encode(BINARY).decode().replace("+", "%2B").replace("/", "%2f"), binary=None
        ),
        one_buffer(images=["data:image/png;base64,AA==", "stone.png", "/etc/passwd"]),
    ],
    ids=["binary", "data", "escaped", "images"],
)
def test_content_inside_of_the_file_is_read(tmp_path, content):
    mesh = load(tmp_path, content)
    np.testing.assert_array_equal(mesh.triangles, [CORNERS + np.array([10, 0, 0])])
    assert mesh.ids.tolist() == ["moved"]


URIS = [
    "secret.bin",
    "./secret.bin",
    "secret.bin?base64,",
    "",
    "%2e/secret.bin",
    "DATA:x",
    "file:///etc/passwd",
]


@pytest.mark.parametrize("uri", [*URIS, "https://example.org/a.bin", "\x1b[31msecret.bin"])
def test_nothing_outside_of_the_file_is_read(tmp_path, uri, monkeypatch):
    (tmp_path / "secret.bin").write_bytes(BINARY)
    monkeypatch.chdir(tmp_path)
    content = one_buffer(uri)
    shown = repr(uri).replace("[", r"\[").replace("?", r"\?").replace("\\x", r"\\x")
    words = rf"one\.glb, buffer 0: refers to another file, {shown}, which raybox does not read; export it as"
    with pytest.raises(rb.FileFormatError, match=words):
        load(tmp_path, content)
    with pytest.raises(rb.FileFormatError, match=r"^up\.glb, buffer 0: refers to another file"):
        stage_of_bytes("up.glb", content)


@pytest.mark.parametrize("uri", ["data:secret.bin", "data:,../secret.bin", "data:/etc/passwd", DATA + "AA=A"])
def test_data_that_are_not_in_base64(tmp_path, uri, monkeypatch):
    (tmp_path / "data:secret.bin").write_bytes(BINARY)
    monkeypatch.chdir(tmp_path)
    assert "buffer 0: its data URI" in refused(tmp_path, one_buffer(uri, binary=None))


# Scenes


def test_only_the_default_scene_is_read_and_the_rest_is_counted(tmp_path):
    made = triangle(name="b")
    for values in ({"mesh": 0, "name": "a"}, {"mesh": 0, "name": "a"}, {"children": [0, 2]}):
        made.node(**values)
    scenes = {"scenes": [{"nodes": [3]}, {"nodes": [1]}]}
    for more, ids, left in ((scenes, ["b", "a"], 1), (scenes | {"scene": 1}, ["a"], 2), ({}, [*"baa"], 0)):
        path = tmp_path / "one.glb"
        path.write_bytes(made.content(**more))
        mesh, skipped = counted(path) if left else (rb.load(path), {})
        assert (mesh.ids.tolist(), mesh.objects.tolist()) == (ids, list(range(len(ids))))
        assert skipped == ({"nodes outside of the default scene": left} if left else {})


def test_what_has_no_triangles_is_counted(tmp_path):
    made = triangle()
    primitives = made.document["meshes"][0]["primitives"]
    primitives += [{"attributes": {}}, {"attributes": {"NORMAL": 0}}]
    (tmp_path / "one.glb").write_bytes(made.content())
    assert announced(tmp_path / "one.glb").rows == 1
    primitives += [{"attributes": {"POSITION": 0}, "mode": mode} for mode in (0, 1, 2, 3)]
    with pytest.warns(SkippedWarning, match=r"primitives of lines \(3\), .*primitives of points \(1\)"):
        mesh = load(tmp_path, made.content(animations=[{}, {}]))
    counts = {"points": 1, "lines": 3}
    wanted = {f"primitives of {name}": count for name, count in counts.items()}
    assert mesh.skipped == wanted | {"animations": 2, "primitives without POSITION": 2}
    assert len(mesh) == 1


def test_a_mesh_that_is_shown_too_often(tmp_path, monkeypatch):
    made = triangle()
    for _ in range(99):
        made.node(mesh=0)
    assert len(load(tmp_path, made.content())) == 100
    monkeypatch.setattr("raybox.io.formats.glb.machine_bytes", lambda: 99 * (72 + 24))
    assert "does not fit into memory" in refused(tmp_path, made.content())


# The rules written again, in Fractions


def quaternion_matrix(q):
    """Return the rotation of a quaternion of length 1, by q v q*, for the three axes v."""

    def product(a, b):
        ax, ay, az, aw = a
        bx, by, bz, bw = b
        return (
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        )

    columns = []
    for axis in range(3):
        v = tuple(Fraction(int(k == axis)) for k in range(4))
        columns.append(product(product(q, v), (-q[0], -q[1], -q[2], q[3]))[:3])
    return [[columns[c][r] for c in range(3)] for r in range(3)]


def local_of(node):
    """Return the affine map of a node as three rows of four Fractions."""
    if "matrix" in node:
        m = [Fraction(x) for x in node["matrix"]]
        return [[m[4 * c + r] for c in range(4)] for r in range(3)]
    t, q, s = (
        [Fraction(x) for x in node.get(key, default)]
        for key, default in (("translation", [0] * 3), ("rotation", [0, 0, 0, 1]), ("scale", [1] * 3))
    )
    rows = quaternion_matrix(tuple(q))
    return [[rows[r][c] * s[c] for c in range(3)] + [t[r]] for r in range(3)]


def times(outer, inner):
    return [
        [sum(outer[r][k] * inner[k][c] for k in range(3)) + (outer[r][3] if c == 3 else 0) for c in range(4)]
        for r in range(3)
    ]


def determinant(rows):
    (a, b, c), (d, e, f), (g, h, i) = (row[:3] for row in rows)
    return a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)


def listed(mode, corners):
    """Return the triangles of a primitive as the specification lists them."""
    if mode == 4:
        return [tuple(corners[k : k + 3]) for k in range(0, len(corners), 3)]
    if mode == 5:
        found = [
            (corners[k], corners[k + 1 + k % 2], corners[k + 2 - k % 2]) for k in range(len(corners) - 2)
        ]
        return [t for t in found if len(set(t)) == 3]
    return [(corners[k + 1], corners[k + 2], corners[0]) for k in range(len(corners) - 2)]


def cyclic(triangle):
    """Return a triangle, from its smallest corner on, in the same direction."""
    return min(tuple(triangle[k:] + triangle[:k]) for k in range(3))


ROTATIONS = [[0, 0, 0, 1], [1, 0, 0, 0], [0.5, 0.5, 0.5, 0.5], [-0.5, 0.5, -0.5, 0.5], [0, 0, 1, 0]]


def random_scene(rng):
    """Return a builder, its primitives and its placed meshes: numbers that float64 transforms exactly."""
    made, primitives = Builder(), []
    for _ in range(3):
        count = int(rng.integers(3, 9))
        rows = rng.integers(-8, 9, (count, 3)) / 4
        mode = int(rng.integers(4, 7))
        size = 3 * int(rng.integers(1, 4)) if mode == 4 else int(rng.integers(1, 9))
        corners = rng.integers(0, count, size).tolist()
        primitive = {"attributes": {"POSITION": made.accessor(rows)}, "mode": mode}
        if rng.integers(3):
            primitive["indices"] = made.accessor(np.reshape(corners, (-1, 1)), "BHI"[rng.integers(3)])
        else:
            corners = list(range(count - count % 3 if mode == 4 else count))
            made.document["accessors"][-1]["count"] = len(corners)
        primitives.append((primitive, rows, listed(mode, corners)))
    meshes = [[0, 1], [2], []]
    for mesh in meshes:
        made.mesh(*(primitives[k][0] for k in mesh))
    for _ in range(7):
        node = {"mesh": int(rng.integers(3))} if rng.integers(4) else {}
        if rng.integers(2):
            node["name"] = f"n{rng.integers(4)}"
        if rng.integers(4) == 0:
            matrix = np.eye(4)
            matrix[:3] = rng.integers(-3, 4, (3, 4)) / 2
            node["matrix"] = matrix.T.ravel().tolist()
        else:
            node["scale"] = (rng.choice([-1, 1, 2, 0.5, -0.25], 3)).tolist()
            node["rotation"] = ROTATIONS[rng.integers(len(ROTATIONS))]
            node["translation"] = (rng.integers(-9, 10, 3) / 8).tolist()
        made.node(**node)
    order = rng.permutation(7).tolist()
    for at, child in enumerate(order[1:], 1):
        if rng.integers(3):
            parent = made.document["nodes"][order[rng.integers(at)]]
            parent.setdefault("children", []).append(child)
    return made, [[primitives[k] for k in mesh] for mesh in meshes]


def truth(made, meshes):
    """Return the names of the nodes with triangles, and their triangles as Fractions, by the definition."""
    nodes = made.document["nodes"]
    parents = {child: k for k, node in enumerate(nodes) for child in node.get("children", [])}
    names, triangles = [], []
    for k, node in enumerate(nodes):
        matrix, at = local_of(node), k
        while at in parents:
            at = parents[at]
            matrix = times(local_of(nodes[at]), matrix)
        found = []
        for _, rows, corners in meshes[node["mesh"]] if "mesh" in node else []:
            points = [
                tuple(sum(row[c] * Fraction(p[c]) for c in range(3)) + row[3] for row in matrix)
                for p in rows.tolist()
            ]
            for a, b, c in corners:
                turned = (c, b, a) if determinant(matrix) < 0 else (a, b, c)
                found.append(cyclic([points[i] for i in turned]))
        if found:
            names.append(node.get("name", f"node {k}"))
            triangles.append(found)
    return names, triangles


def exact(mesh, number):
    """Return the triangles of an object, as Fractions."""
    found = mesh.triangles[mesh.objects == number].tolist()
    return [cyclic([tuple(map(Fraction, point)) for point in corners]) for corners in found]


def test_scenes_are_what_the_specification_says(tmp_path):
    counts = dict.fromkeys(("mirrored", "deep", "named twice", "strips", "fans"), 0)
    for seed in range(100):
        made, meshes = random_scene(np.random.default_rng(seed))
        names, triangles = truth(made, meshes)
        mesh = load(tmp_path, made.content())
        assert names == ([] if mesh.ids is None else mesh.ids.tolist())
        for number, wanted in enumerate(triangles):
            assert exact(mesh, number) == wanted
        nodes = made.document["nodes"]
        modes = [p["mode"] for one in made.document["meshes"] for p in one["primitives"]]
        counts["mirrored"] += any(determinant(local_of(node)) < 0 for node in nodes)
        counts["deep"] += any("children" in nodes[c] for n in nodes for c in n.get("children", []))
        counts["named twice"] += len(set(names)) < len(names)
        counts["strips"], counts["fans"] = counts["strips"] + (5 in modes), counts["fans"] + (6 in modes)
    assert min(counts.values()) >= 10, counts


# Skins and morph targets


def affine(rng):
    """Return a random affine map as glTF writes it, column by column, its numbers halves."""
    matrix = np.eye(4)
    matrix[:3] = rng.integers(-3, 4, (3, 4)) / 2
    return matrix.T.ravel().tolist()


def posed_scene(rng):
    """Return a builder of a skinned mesh with morph targets, its triangles, and its mirrored corners."""
    made, count, triangles = Builder(), int(rng.integers(3, 9)), int(rng.integers(1, 6))
    rows, faces = rng.integers(-8, 9, (count, 3)) / 4, rng.integers(0, count, (triangles, 3))
    moves, weights = rng.integers(-4, 5, (2, count, 3)) / 2, rng.choice([0.0, 0.5, -1.0], 2).tolist()
    primitive = {
        "attributes": {"POSITION": made.accessor(rows)},
        "indices": made.accessor(faces.reshape(-1, 1), "H"),
        "targets": [{"POSITION": made.accessor(one)} for one in moves] + [{"NORMAL": 0}],
    }
    nodes = [{"matrix": affine(rng), "children": [3]}, {"matrix": affine(rng)}, {"matrix": affine(rng)}]
    nodes += [{"matrix": affine(rng), "mesh": 0, "skin": 0}, {"matrix": affine(rng), "children": [1]}]
    sets = int(rng.integers(1, 3))
    joints, shares = rng.integers(0, 3, (count, 4 * sets)), rng.integers(-1, 3, (count, 4 * sets)) / 4
    for k in range(sets):
        part = slice(4 * k, 4 * k + 4)
        primitive["attributes"][f"JOINTS_{k}"] = made.accessor(joints[:, part], "BH"[k])
        primitive["attributes"][f"WEIGHTS_{k}"] = made.accessor(shares[:, part])
    made.mesh(primitive)
    owner = made.document["meshes"][0] if rng.integers(2) else nodes[3]
    owner["weights"] = [*weights, 7.0]
    for node in nodes:
        made.node(**node)
    inverse = [affine(rng) for _ in range(int(rng.integers(3, 5)))]  # there may be more than joints
    made.document["skins"] = [{"joints": [2, 1, 4]}]
    if rng.integers(3):
        made.document["skins"][0]["inverseBindMatrices"] = made.accessor(inverse)
    else:
        inverse = [np.eye(4).ravel().tolist()] * 3
    world = [local_of(nodes[2]), times(local_of(nodes[4]), local_of(nodes[1])), local_of(nodes[4])]
    maps = [times(a, local_of({"matrix": b})) for a, b in zip(world, inverse, strict=False)]
    points, turned = [], []
    for k, row in enumerate(rows.tolist()):
        point = [Fraction(x) for x in row]
        for weight, move in zip(weights, moves[:, k].tolist(), strict=True):
            point = [x + Fraction(weight) * Fraction(y) for x, y in zip(point, move, strict=True)]
        pairs = list(zip(joints[k].tolist(), map(Fraction, shares[k].tolist()), strict=True))
        blend = [[sum(w * maps[j][r][c] for j, w in pairs) for c in range(4)] for r in range(3)]
        points.append(tuple(sum(m * x for m, x in zip(row, [*point, 1], strict=True)) for row in blend))
        turned.append(determinant(blend) < 0)
    wanted = [cyclic([points[k] for k in (f[::-1] if turned[f[0]] else f)]) for f in faces.tolist()]
    return made, wanted, turned


def test_skins_and_morph_targets_are_what_the_specification_says(tmp_path):
    some, every = 0, 0
    for seed in range(100):
        made, wanted, turned = posed_scene(np.random.default_rng(seed))
        assert exact(load(tmp_path, made.content()), 0) == wanted
        some, every = some + any(turned), every + all(turned)
    assert 0 < every < some - 10 < 90


def test_normalized_weights_and_hidden_joints_move(tmp_path):
    made = skinned(
        1, weights=[[51, 204, 0, 0]] * 3, code="B", translation=[5, 0, 0], **hidden({"visible": False})
    )
    moved = load(tmp_path, made.content()).vertices
    np.testing.assert_allclose(moved, CORNERS + np.array([5, 0, 0]), rtol=1e-15)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda d, a: d.update(skins=[]), "node 0: refers to skin 0, the file has 0"),
        (lambda d, a: d["skins"][0].update(joints=[]), "skin 0: has the joints [], which are no nodes of"),
        (lambda d, a: d["skins"][0].update(joints=[7]), "skin 0: has the joints [7], which are no nodes of"),
        (lambda d, a: d["skins"][0].update(inverseBindMatrices=0), "accessor 0: is 'VEC3' of components"),
        (lambda d, a: d["skins"][0].update(inverseBindMatrices=3), "has 0 inverseBindMatrices for 1 joints"),
        (lambda d, a: d.update(scenes=[{"nodes": [0]}]), "skin 0: has the joints [1], which are no nodes of"),
        (lambda d, a: a.pop("JOINTS_0"), "attributes: lacks JOINTS_0"),
        (lambda d, a: a.pop("WEIGHTS_0"), "attributes: lacks WEIGHTS_0"),
        (lambda d, a: a.update(JOINTS_0=2), "is 'VEC4' of components 5126; a VEC4 of [5121, 5123, 5125]"),
        (lambda d, a: d["accessors"][1].update(count=2), "has 2 rows in its JOINTS_0, not 3"),
        (lambda d, a: d["accessors"][2].update(count=2), "has 2 rows in its WEIGHTS_0, not 3"),
    ],
)
def test_wrong_skins_are_refused_by_their_place(tmp_path, change, expected):
    made = skinned(1)
    made.accessor(np.zeros((1, 16)), count=0)
    change(made.document, made.document["meshes"][0]["primitives"][0]["attributes"])
    assert expected in refused(tmp_path, made.content())


def test_wrong_joints_and_targets_are_refused(tmp_path):
    made = skinned(0)
    attributes = made.document["meshes"][0]["primitives"][0]["attributes"]
    attributes["JOINTS_0"] = made.accessor([[0, 1, 0, 0]] * 3, "B")
    assert "uses joint 1, there are 1, from 0 on" in refused(tmp_path, made.content())
    made = triangle(weights=[1.0])
    made.document["meshes"][0]["primitives"][0]["targets"] = [{"POSITION": made.accessor(CORNERS[:2])}]
    assert "target 0: has 2 rows in its POSITION, not 3" in refused(tmp_path, made.content())
    made.document["nodes"][0]["weights"] = [0.0]
    assert len(load(tmp_path, made.content())) == 1


def test_instances_with_all_attributes(tmp_path):
    rng = np.random.default_rng(4)
    made = triangle(translation=[100, 0, 0], scale=[-1, 1, 1])
    rotations = np.array([[0, 0, 0, 127], [127, 0, 0, 0], [64, 64, 64, 64], [0, 0, 90, 90]])
    scales, moves = rng.integers(-3, 4, (4, 3)) / 2 + 0.25, rng.integers(-9, 9, (4, 3)) / 4
    attributes = {
        "TRANSLATION": made.accessor(moves),
        "ROTATION": made.accessor(rotations, "b", normalized=True),
        "SCALE": made.accessor(scales),
        "_ID": made.accessor([1, 2, 3, 4], "B"),
    }
    node = made.document["nodes"][0]
    node["extensions"] = {"EXT_mesh_gpu_instancing": {"attributes": attributes}}
    found = load(tmp_path, made.content(extensionsRequired=["EXT_mesh_gpu_instancing"])).triangles
    for k, corners in enumerate(found):
        x, y, z, w = rotations[k] / math.sqrt(sum(rotations[k] ** 2))
        turn = np.array(quaternion_matrix((x, y, z, w)), dtype=float)
        wanted = [turn @ (scales[k] * p) + moves[k] for p in CORNERS.astype(float)]
        wanted = [[100 - p[0], p[1], p[2]] for p in wanted]
        if np.prod(scales[k]) * -1 < 0:
            wanted = wanted[::-1]
        np.testing.assert_allclose(corners, wanted, rtol=0, atol=1e-13)
    shorter = copy.deepcopy(made)
    shorter.document["accessors"][attributes["SCALE"]]["count"] = 3
    assert "of different lengths" in refused(tmp_path, shorter.content())
    node["extensions"] = {"EXT_mesh_gpu_instancing": {"attributes": {}}}
    assert "has no TRANSLATION, ROTATION or SCALE" in refused(tmp_path, made.content())


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1.0, 1e30])
def test_mirrored_nodes_of_any_size(tmp_path, size):
    for signs in ((1, 1, 1), (-1, 1, 1), (1, -1, -1), (-1, -1, -1)):
        scale = [sign * size for sign in signs]
        corners = load(tmp_path, triangle(scale=scale, translation=[0, 0, 1]).content()).triangles[0]
        wanted = [[x * scale[0], y * scale[1], 1] for x, y in ((0, 0), (1, 0), (0, 1))]
        assert corners.tolist() == (wanted[::-1] if np.prod(signs) < 0 else wanted)


# What raybox does not read


@pytest.mark.parametrize("declared", ["extensionsUsed", "extensionsRequired", None])
def test_hidden_nodes_hide_what_is_below_them(tmp_path, declared):
    made = triangle(name="shown", **hidden({"visible": True}))
    made.node(mesh=0, name="hidden", children=[2, 3], **hidden({"visible": False}))
    made.node(mesh=0, name="child")
    made.node(mesh=0, name="visible child", **hidden({"visible": True}))
    made.node(mesh=0, name="default", **hidden({}))
    mesh = load(tmp_path, made.content(**({declared: ["KHR_node_visibility"]} if declared else {})))
    assert mesh.ids.tolist() == ["shown", "default"]
    assert mesh.skipped == {"nodes that are hidden": 3}
    assert announced(tmp_path / "one.glb").rows == 2
    made.document["nodes"][0] |= hidden({"visible": 0})
    assert "its visible is 0, not true or false" in refused(tmp_path, made.content())


@pytest.mark.parametrize("declared", ["extensionsUsed", "extensionsRequired"])
def test_the_center_of_cesium_is_added_to_all_positions(tmp_path, declared):
    center = [4_000_000.5, -2.25, 3e6]
    made = triangle(translation=[1, 2, 3])
    made.node(mesh=0, children=[2], scale=[2, 2, 2])
    made.node(mesh=0)
    plain = load(tmp_path, made.content())
    moved = load(
        tmp_path, made.content(**{declared: ["CESIUM_RTC"]}, extensions={"CESIUM_RTC": {"center": center}})
    )
    np.testing.assert_array_equal(moved.vertices, plain.vertices + np.array(center))
    short = made.content(extensions={"CESIUM_RTC": {"center": [1, 2]}})
    assert "extensions, CESIUM_RTC: has 2 numbers in its center, not 3" in refused(tmp_path, short)


def test_extensions_that_are_only_used(tmp_path):
    known = ["KHR_materials_unlit", "EXT_mesh_features", "MSFT_lod", "KHR_draco_mesh_compression"]
    assert load(tmp_path, triangle().content(extensionsUsed=known)).skipped == {}
    with pytest.warns(SkippedWarning, match="ACME_glow"):
        mesh = load(tmp_path, triangle().content(extensionsUsed=["ACME_glow", *known]))
    assert mesh.skipped == {"uses of the extension 'ACME_glow', which raybox does not know": 1}
    for name in glb_reader.REFUSED:
        text = refused(tmp_path, triangle().content(extensionsUsed=[name]))
        assert f"uses the extension {name}, which raybox does not read; export it without" in text


@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b"  \n"])
@pytest.mark.parametrize("after", [b"\0", b"\0\0\0", b" \0 ", b"\xef\xbb\xbf"])
def test_padding_around_the_json(tmp_path, before, after):
    content = triangle(name="QQQQ").content().replace(b'"QQQQ"', '"süd"'.encode())
    end = 20 + struct.unpack_from("<I", content, 12)[0]
    text = before + content[20:end] + after
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text + content[end:]
    mesh = load(tmp_path, b"glTF" + struct.pack("<II", 2, 12 + len(chunks)) + chunks)
    assert (len(mesh), mesh.ids.tolist(), mesh.skipped) == (1, ["süd"], {})


def test_names_that_are_not_utf8(tmp_path):
    path = tmp_path / "one.glb"
    path.write_bytes(triangle(name="QQ").content().replace(b'"QQ"', b'"\xe9Q"'))
    mesh, skipped = counted(path)
    assert (mesh.ids.tolist(), skipped) == (["\ufffdQ"], {"bytes of names that are not UTF-8": 1})


def test_files_that_state_no_triangles_are_empty_meshes(tmp_path):
    assert len(load(tmp_path, triangle(**hidden({"visible": False})).content())) == 0
    for document in ({"asset": {}}, {"nodes": [], "meshes": []}, {"asset": {}, "nodes": [{"camera": 0}, {}]}):
        mesh = load(tmp_path, glb(document))
        assert (len(mesh), mesh.skipped, mesh.units, mesh.up) == (0, {}, "metre", "y")
    made = triangle()
    made.document["meshes"][0]["primitives"][0]["mode"] = 1
    assert "holds no triangles, but primitives of lines (1)" in refused(tmp_path, made.content())
