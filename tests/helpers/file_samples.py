"""One small file of each format that raybox reads, as bytes, and what is in it: for tests to cut and bend."""

import base64
import gzip
import io
import json
import struct
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

import raybox as rb
from raybox.geometry import with_facts

CASES = Path(__file__).parents[1] / "data" / "cases"
# A tetrahedron, as vertices and faces, and the three boxes and four rays of every table.
CORNERS = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 4.0]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
BOXES = rb.Boxes(
    [[0.0, 0.0, 0.0], [2.5, -1.0, 1e-3], [-7.0, 3.0, 0.1]],
    [[1.0, 1.0, 1.0], [3.5, 1.0, 2.0], [-6.5, 3.0, 0.2]],
)
IDS = ["first", "second, of two", 'third "quoted"']
RAYS = rb.Rays(
    [[0.0, 0.0, -5.0], [1.0, 2.0, 3.0], [0.1, 0.2, 0.3], [9.0, 9.0, 9.0]],
    [[0.0, 0.0, 1.0], [-1.0, 0.5, 0.25], [0.0, 0.0, 0.0], [-1.0, -1.0, -1.0]],
    t_max=[1.0, 2.0, np.inf, 4.0],
)
POINTS = np.random.default_rng(7).normal(size=(40, 3)).round(3)

ENCODINGS = ("ascii", "binary", "binary_compressed")  # of PCD

IFC = """ISO-10303-21;
HEADER;
FILE_DESCRIPTION((''),'2;1');
FILE_NAME('one.ifc','2024-01-01T00:00:00',(''),(''),'','','');
FILE_SCHEMA(('IFC4'));
ENDSEC;
DATA;
#1=IFCPROJECT('0000000000000000000001',$,'p',$,$,$,$,(#5),#9);
#2=IFCCARTESIANPOINT((0.,0.,0.));
#3=IFCAXIS2PLACEMENT3D(#2,$,$);
#5=IFCGEOMETRICREPRESENTATIONCONTEXT($,'Model',3,1.E-5,#3,$);
#8=IFCSIUNIT(*,.LENGTHUNIT.,$,.METRE.);
#9=IFCUNITASSIGNMENT((#8));
#11=IFCCARTESIANPOINT((10.,20.,30.));
#12=IFCAXIS2PLACEMENT3D(#11,$,$);
#13=IFCLOCALPLACEMENT($,#12);
#20=IFCCARTESIANPOINT((0.,0.));
#21=IFCAXIS2PLACEMENT2D(#20,$);
#22=IFCRECTANGLEPROFILEDEF(.AREA.,$,#21,2.,4.);
#23=IFCDIRECTION((0.,0.,1.));
#24=IFCEXTRUDEDAREASOLID(#22,#3,#23,6.);
#25=IFCSHAPEREPRESENTATION(#5,'Body','SweptSolid',(#24));
#26=IFCPRODUCTDEFINITIONSHAPE($,$,(#25));
#30=IFCBUILDINGELEMENTPROXY('0000000000000000000002',$,'block',$,$,#13,#26,$,$);
ENDSEC;
END-ISO-10303-21;
"""

CITY = {
    "type": "CityJSON",
    "version": "2.0",
    "transform": {"scale": [0.5, 0.5, 0.25], "translate": [100.0, 200.0, 0.0]},
    "CityObjects": {
        "house": {"type": "Building", "children": ["part"]},
        "part": {
            "type": "BuildingPart",
            "geometry": [
                {
                    "type": "Solid",
                    "lod": "1",
                    "boundaries": [[[[0, 1, 2]], [[0, 1, 3]], [[1, 2, 3]], [[0, 2, 3]]]],
                }
            ],
        },
        "road": {
            "type": "Road",
            "geometry": [{"type": "MultiSurface", "lod": "1", "boundaries": [[[0, 1, 2]]]}],
        },
        "tree": {
            "type": "SolitaryVegetationObject",
            "geometry": [
                {
                    "type": "GeometryInstance",
                    "template": 0,
                    "boundaries": [1],
                    "transformationMatrix": [2, 0, 0, 1, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1],
                }
            ],
        },
    },
    "vertices": [[0, 0, 0], [8, 0, 0], [0, 8, 0], [0, 0, 8]],
    "geometry-templates": {
        "templates": [{"type": "MultiSurface", "lod": "1", "boundaries": [[[0, 1, 2]]]}],
        "vertices-templates": [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 3.0]],
    },
}


def town() -> bytes:
    """Return CityJSON with footprints, levels, semantic surfaces, and an attribute that stands twice."""
    document = json.loads((CASES / "j30_town.city.json").read_bytes())
    document |= {"geometry-templates": CITY["geometry-templates"]}
    objects = document["CityObjects"]
    for name in [*objects]:
        body = objects[name]["geometry"]
        floor = {"type": "MultiSurface", "lod": "0", "boundaries": [body[0]["boundaries"][0][0]]}
        objects[f"{name}-0"] = {"type": "BuildingPart", "parents": [name], "geometry": body}
        objects[name]["geometry"] = [floor]
    objects["tree"] = CITY["CityObjects"]["tree"]
    return json.dumps(document).replace('"year": 1904', '"year": 1904, "year": 1905').encode()


def features() -> bytes:
    """Return the same as CityJSONSeq, a feature for each building and each part."""
    document = json.loads(town())
    objects, vertices = document.pop("CityObjects"), document.pop("vertices")
    lines = [document | {"CityObjects": {}, "vertices": []}]
    for name, item in objects.items():
        feature = {"type": "CityJSONFeature", "id": name, "CityObjects": {name: item}}
        lines.append(feature | {"vertices": vertices})
    return "\n".join(map(json.dumps, lines)).encode()


def _saved(name: str, content: object, **options: object) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        rb.save(path, content, **options)
        return path.read_bytes()


def ply(order: str = "ascii", faces: list[list[int]] | None = None) -> bytes:
    """Write the tetrahedron (or other polygons over its corners), with a color on each vertex."""
    polygons = FACES.tolist() if faces is None else faces
    properties = "".join(f"property float {axis}\n" for axis in "xyz") + "property uchar red\n"
    head = f"ply\nformat {order} 1.0\ncomment made by hand\nelement vertex 4\n{properties}"
    head += f"element face {len(polygons)}\nproperty list uchar int vertex_indices\nend_header\n"
    lines = [[*(("f", x) for x in corner), ("B", 9)] for corner in CORNERS.tolist()]
    lines += [[("B", len(face)), *(("i", corner) for corner in face)] for face in polygons]
    return head.encode() + ply_rows(order, lines)


STRIPS = [0, 1, 2, 3, 0, -1, 0, 2, 3]  # 4 triangles; the second and the third are corners 2 1 3 and 2 3 0


def strips(order: str) -> bytes:
    """Write the tetrahedron's corners and triangle strips, one row of 9 vertices."""
    row = (9, *STRIPS)
    packed = {"ascii": b"%d " * 10 % row}.get(order) or struct.pack("<" + "i" * 10, *row)
    head, _, body = ply(order, []).partition(b"element face 0\n")
    _, end, vertices = body.partition(b"end_header\n")
    return head + b"element tristrips 1\nproperty list int int vertex_indices\n" + end + vertices + packed


ORDERS = ("ascii", "binary_little_endian", "binary_big_endian")  # of PLY
PLY_CODES = {"char": "b", "uchar": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I"}
PLY_CODES |= {"float": "f", "double": "d", "int64": "q", "uint64": "Q", "float16": "e", "uint8_t": "B"}


def ply_with(order, kind, rows, where, names, faces=FACES, vertices=CORNERS) -> bytes:
    """Write a mesh with more properties of each vertex, or of each face, before or after its corners.

    where: "vertex", "before" or "face".
    """
    more = "".join(f"property {kind} {name}\n" for name in names)
    head = f"ply\nformat {order} 1.0\nelement vertex {len(vertices)}\n"
    head += "".join(f"property double {axis}\n" for axis in "xyz") + more * (where == "vertex")
    head += f"element face {len(faces)}\n" + more * (where == "before")
    head += "property list uchar int vertex_indices\n" + more * (where == "face") + "end_header\n"

    def own(k: int, place: str) -> list:
        return [(PLY_CODES[kind], value) for value in rows[k]] if where == place else []

    lines = [[*(("d", x) for x in map(float, point)), *own(k, "vertex")] for k, point in enumerate(vertices)]
    for k, face in enumerate(faces):
        corners = [("B", len(face)), *(("i", int(corner)) for corner in face)]
        lines.append(own(k, "before") + corners + own(k, "face"))
    return head.encode() + ply_rows(order, lines)


def ply_rows(order: str, lines: list[list[tuple[str, float]]]) -> bytes:
    """Return rows of values, each with its code of `struct`."""
    if order == "ascii":
        return "".join(" ".join(str(value) for _, value in line) + "\n" for line in lines).encode()
    end = "<" if "little" in order else ">"
    return b"".join(struct.pack(end + code, value) for line in lines for code, value in line)


def stl(text: bool) -> bytes:
    """Write the tetrahedron as STL."""
    if not text:
        records = b"".join(struct.pack("<12fH", 0, 0, 0, *CORNERS[face].ravel(), 0) for face in FACES)
        return b"solid, though binary".ljust(80) + struct.pack("<I", len(FACES)) + records
    facets = ""
    for face in FACES:
        vertices = "".join(f"   vertex {x} {y} {z}\n" for x, y, z in CORNERS[face])
        facets += f" facet normal 0 0 0\n  outer loop\n{vertices}  endloop\n endfacet\n"
    return f"solid tetra\n{facets}endsolid tetra\n".encode()


def vox_file(models: list[tuple], *chunks: bytes) -> bytes:
    """Write a MagicaVoxel file of models (size, voxels), and more chunks; a voxel without a color has 1."""
    content = b""
    for size, voxels in models:
        filled = struct.pack("<i", len(voxels)) + b"".join(bytes([*one, 1][:4]) for one in voxels)
        content += vox_chunk(b"SIZE", struct.pack("<3i", *size)) + vox_chunk(b"XYZI", filled)
    content += b"".join(chunks)
    return b"VOX " + struct.pack("<i", 150) + b"MAIN" + struct.pack("<ii", 0, len(content)) + content


def vox_packed(models: int) -> bytes:
    """Return the chunk that begins an old animation of as many models."""
    return vox_chunk(b"PACK", struct.pack("<i", models))


def vox(
    cells: list[tuple[int, int, int]],
    *,
    size: tuple[int, int, int] = (4, 5, 6),
    scene: bytes = b"",
    models: int = 1,
    packed: int | None = None,
) -> bytes:
    """Write a MagicaVoxel file of one model, repeated, and scene chunks; packed: the number after PACK."""
    content = vox_file([(size, cells)] * models, scene)
    if packed is None:
        return content
    chunks = vox_packed(packed) + content[20:]
    return content[:16] + struct.pack("<i", len(chunks)) + chunks


def vox_chunk(name: bytes, content: bytes) -> bytes:
    """Wrap content in a chunk."""
    return name + struct.pack("<ii", len(content), 0) + content


def vox_text(text: bytes) -> bytes:
    """Return a text of a MagicaVoxel scene."""
    return struct.pack("<i", len(text)) + text


def vox_mapping(pairs: dict[bytes, bytes]) -> bytes:
    """Return the texts of a MagicaVoxel scene."""
    return struct.pack("<i", len(pairs)) + b"".join(vox_text(k) + vox_text(v) for k, v in pairs.items())


def vox_transform(
    node: int, child: int, frame: dict[bytes, bytes], *, layer: int = -1, **attributes: bytes
) -> bytes:
    """Return a node that moves its child."""
    named = vox_mapping({b"_" + key.encode(): value for key, value in attributes.items()})
    head = struct.pack("<i", node) + named + struct.pack("<4i", child, -1, layer, 1)
    return vox_chunk(b"nTRN", head + vox_mapping(frame))


def vox_group(node: int, *children: int) -> bytes:
    """Return a node of several children."""
    return vox_chunk(b"nGRP", struct.pack(f"<iii{len(children)}i", node, 0, len(children), *children))


def vox_shape(node: int, *models: int, frames: tuple[bytes, ...] = ()) -> bytes:
    """Return a node that shows models, each at its frame of an animation, if there are any."""
    times = [vox_mapping({b"_f": frame}) for frame in frames] or [vox_mapping({})] * len(models)
    shown = b"".join(struct.pack("<i", k) + time for k, time in zip(models, times, strict=True))
    return vox_chunk(b"nSHP", struct.pack("<iii", node, 0, len(models)) + shown)


def vox_scene(frame: dict[bytes, bytes]) -> bytes:
    """Return a scene of two models, the first moved by 10, 0, -1, the second as the frame says."""
    first, second = vox_transform(2, 3, {b"_t": b"10 0 -1"}), vox_transform(4, 5, frame)
    nodes = vox_transform(0, 1, {}) + vox_group(1, 2, 4) + first + second
    return nodes + vox_shape(3, 0) + vox_shape(5, 1)


def pcd(encoding: str) -> bytes:
    """Write the points with one more field, as PCD."""
    head = "# .PCD v.7\nVERSION .7\nFIELDS rgb x y z\nSIZE 4 8 8 8\nTYPE U F F F\nCOUNT 1 1 1 1\n"
    head += f"WIDTH 40\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 40\nDATA {encoding}\n"
    return head.encode() + pcd_body(encoding, ("<I", "<d", "<d", "<d"), [(7, *p) for p in POINTS.tolist()])


def pcd_body(encoding: str, kinds: tuple[str, ...], rows: list[tuple]) -> bytes:
    """Write rows of PCD, whose fields have formats of `struct`, of one number or of several."""
    if encoding == "ascii":
        return "".join(" ".join(map(str, row)) + "\n" for row in rows).encode()
    if encoding == "binary":
        return b"".join(b"".join(_row_of(kinds, row)) for row in rows)
    fields = b"".join(b"".join(field) for field in zip(*(_row_of(kinds, row) for row in rows), strict=True))
    packed = compress_lzf(fields)
    return struct.pack("<II", len(packed), len(fields)) + packed


def _row_of(kinds: tuple[str, ...], row: tuple) -> list[bytes]:
    """Return the bytes of each field of a row."""
    values, found = iter(row), []
    for kind in kinds:
        count = len(struct.unpack(kind, bytes(struct.calcsize(kind))))
        found.append(struct.pack(kind, *(next(values) for _ in range(count))))
    return found


def compress_lzf(data: bytes) -> bytes:
    """Compress by LZF: the last place of the same three bytes, if it is near, else literal bytes."""
    out, literal, last, at = bytearray(), bytearray(), dict[bytes, int](), 0

    def flush() -> None:
        for start in range(0, len(literal), 32):
            run = literal[start : start + 32]
            out.extend(bytes([len(run) - 1]) + run)
        literal.clear()

    while at < len(data):
        start = last.get(data[at : at + 3], -1) if at + 3 <= len(data) else -1
        last[data[at : at + 3]] = at
        distance, length = at - start - 1, 0
        if start < 0 or distance >= 1 << 13:
            literal.append(data[at])
            at += 1
            continue
        while length < 264 and at + length < len(data) and data[start + length] == data[at + length]:
            length += 1
        flush()
        code = min(length - 2, 7)
        more = bytes([length - 9]) if code == 7 else b""
        out.extend(bytes([code << 5 | distance >> 8]) + more + bytes([distance & 255]))
        at += length
    flush()
    return bytes(out)


def las(ending: str) -> bytes:
    """Write the points as LAS or LAZ."""
    import laspy

    header = laspy.LasHeader(point_format=3, version="1.2")
    header.scales = [0.001] * 3
    points = laspy.LasData(header)
    points.x, points.y, points.z = POINTS.T
    file = io.BytesIO()
    points.write(file, do_compress=ending == "laz")
    return file.getvalue()


def glb(document: dict[str, object] | None = None, binary: bytes | None = None) -> bytes:
    """Write a document as binary glTF; without one, two tetrahedra, the second 10 further along x."""
    if document is None:
        binary, views, accessors = _tetrahedron()
        document = {
            "asset": {"version": "2.0"},
            "scene": 0,
            "scenes": [{"nodes": [0]}],
            "nodes": [
                {"name": "world", "children": [1, 2]},
                {"name": "here", "mesh": 0},
                {"name": "there", "mesh": 0, "translation": [10, 0, 0]},
            ],
            "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
            "accessors": accessors,
            "bufferViews": views,
            "buffers": [{"byteLength": len(binary)}],
        }
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text
    if binary is not None:
        chunks += struct.pack("<II", len(binary), 0x004E4942) + binary
    return b"glTF" + struct.pack("<II", 2, 12 + len(chunks)) + chunks


def gltf() -> bytes:
    """Write the tetrahedron as JSON, with its buffer as a data URI."""
    binary, views, accessors = _tetrahedron()
    uri = "data:application/octet-stream;base64," + base64.b64encode(binary).decode()
    document = {
        "asset": {"version": "2.0"},
        "extensionsUsed": ["KHR_node_visibility"],
        "nodes": [{"mesh": 0, "extensions": {"KHR_node_visibility": {"visible": True}}}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": accessors,
        "bufferViews": views,
        "buffers": [{"byteLength": len(binary), "uri": uri}],
    }
    return json.dumps(document).encode()


def _tetrahedron() -> tuple[bytes, list[dict], list[dict]]:
    """Return a buffer of glTF, its views and its accessors: corners, and triangles."""
    binary = CORNERS.astype("<f4").tobytes() + FACES.astype("<u2").tobytes()
    views = [{"buffer": 0, "byteLength": 48}, {"buffer": 0, "byteOffset": 48, "byteLength": 24}]
    accessors = [{"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3"}]
    accessors.append({"bufferView": 1, "componentType": 5123, "count": 12, "type": "SCALAR"})
    return binary, views, accessors


@cache
def packed() -> dict[str, tuple[bytes, dict[str, object]]]:
    """Return some of the samples compressed by gzip, and how to read them."""
    names = ("parts.obj", "text.stl", "binary_little_endian.ply", "boxes.csv", "two.glb")
    return {f"{name}.gz": (gzip.compress(samples()[name][0], mtime=0), samples()[name][1]) for name in names}


def posed_glb() -> bytes:
    """Write the tetrahedron, moved by two joints and a morph target."""
    joints, weights = np.tile([0, 1, 0, 0], (4, 1)), np.tile([0.25, 0.75, 0.0, 0.0], (4, 1))
    arrays = [(CORNERS, "<f4", 5126, "VEC3"), (FACES.reshape(-1, 1), "<u2", 5123, "SCALAR")]
    arrays += [(joints, "u1", 5121, "VEC4"), (weights, "<f4", 5126, "VEC4")]
    arrays += [(np.tile(np.eye(4).ravel(), (2, 1)), "<f4", 5126, "MAT4"), (CORNERS / 8, "<f4", 5126, "VEC3")]
    binary, views, accessors = b"", [], []
    for number, (array, dtype, code, kind) in enumerate(arrays):
        content = array.astype(dtype).tobytes()
        views.append({"buffer": 0, "byteOffset": len(binary), "byteLength": len(content)})
        accessors.append({"bufferView": number, "componentType": code, "count": len(array), "type": kind})
        binary += content
    primitive = {"attributes": {"POSITION": 0, "JOINTS_0": 2, "WEIGHTS_0": 3}, "indices": 1}
    document = {
        "asset": {"version": "2.0"},
        "nodes": [{"mesh": 0, "skin": 0}, {"translation": [0, 0, 8]}, {"scale": [2, 2, 2]}],
        "meshes": [{"primitives": [primitive | {"targets": [{"POSITION": 5}]}], "weights": [1.0]}],
        "skins": [{"joints": [1, 2], "inverseBindMatrices": 4}],
        "accessors": accessors,
        "bufferViews": views,
        "buffers": [{"byteLength": len(binary)}],
    }
    return glb(document, binary)


OBJ = b"# two parts\no left\n" + b"".join(b"v %g %g %g\n" % tuple(c) for c in CORNERS.tolist())
OBJ += b"vn 0 0 1\nf 1//1 3//1 2//1\nf 1/1 2 4\no right\nf -3 -2 -1\nf 1 4 \\\n3\n"


@cache
def samples() -> dict[str, tuple[bytes, dict[str, object]]]:
    """Give each sample's bytes by file name, with the keywords that read it."""
    scene, rays, points = {"kind": "scene"}, {"kind": "rays"}, {"origin": (0.5, 0.25, 0.0)}
    found: dict[str, tuple[bytes, dict[str, object]]] = {}
    for ending in ("npz", "npy", "csv", "parquet"):
        found[f"boxes.{ending}"] = _saved(f"a.{ending}", BOXES, ids=None if ending == "npy" else IDS), scene
        found[f"rays.{ending}"] = _saved(f"a.{ending}", RAYS), rays
    mesh = rb.Mesh(CORNERS, FACES, objects=[0, 2, 0, 1], ids=["a", "ö", "c"], labels={"n": [1, None, 2]})
    for ending in ("npz", "parquet", "ply"):
        found[f"saved.{ending}"] = _saved(f"a.{ending}", mesh), scene
    for order in ("ascii", "binary_little_endian", "binary_big_endian"):
        found[f"{order}.ply"] = ply(order), scene
        found[f"{order}_mixed.ply"] = ply(order, [[0, 2, 1], [0, 1, 2, 3]]), scene
    found |= {"text.stl": (stl(True), scene), "binary.stl": (stl(False), scene), "parts.obj": (OBJ, scene)}
    found |= {
        "two.glb": (glb(), scene),
        "two.gltf": (gltf(), scene),
        "posed.glb": (posed_glb(), scene),
        "one.ifc": (IFC.encode(), scene),
        "town.city.json": (json.dumps(CITY).encode(), scene),
        "surfaces.city.json": (town(), scene | {"objects": "surfaces"}),
        "features.city.jsonl": (features(), scene),
    }
    found |= {
        "cells.vox": (vox([(0, 0, 0), (3, 4, 5), (1, 2, 3)]), scene),
        "frames.vox": (vox([(0, 0, 0), (3, 4, 5)], models=3, packed=3), scene),
        "scene.vox": (vox([(0, 0, 0), (3, 4, 5)], models=2, scene=vox_scene({})), scene),
        "strips.ply": (strips("binary_little_endian"), scene),
        "strips_text.ply": (strips("ascii"), scene),
    }
    found |= {f"{encoding}.pcd": (pcd(encoding), points) for encoding in ENCODINGS}
    found |= {f"points.{ending}": (las(ending), points) for ending in ("las", "laz")}
    found["points.ply"] = ply("binary_little_endian", []), points
    return found


@cache
def tables() -> dict[str, tuple[bytes, dict[str, object]]]:
    """Return tables as other programs write them, with the keywords that read them."""
    scan, boxes = {"origin": (0.5, 0.25, 0.0), "layout": "x,y,z,i"}, {"kind": "scene", "invalid": "skip"}
    numbers = np.c_[POINTS, np.arange(40)]
    head = "id\tcenter_x\tcenter_y\tcenter_z\tsize_x\tsize_y\tsize_z\tqw\tqx\tqy\tqz\n"
    rows = ["a\t1\t2\t3\t4\t5\t6\t1\t0\t0\t0.5\n", "b\t1\t\t3\t4\t5\t6\t1\t0\t0\t0.5\n"]
    text, npy = io.StringIO(), io.BytesIO()
    np.savetxt(text, numbers, "%.17g", header="x y z intensity")
    np.save(npy, numbers)
    return {
        "turned.tsv": ((head + "".join(rows) * 3).encode(), boxes),
        "sizes.csv": (b"sep=;\nx;y;z;l;w;h;name\n" + b"1;2;3;4;5;6;a\n7;8;9;1;;1;b\n" * 3, boxes),
        "segments.csv": (b"from_x,from_y,to_x,to_y\n" + b"1,2,3,4.5\n,,,\n" * 3, {"invalid": "miss"}),
        "savetxt.txt": (text.getvalue().encode(), {"origin": (0.5, 0.25, 0.0)}),
        "bare.xyz": ("".join(f"{x} {y} {z}\n" for x, y, z in POINTS).encode(), {"origin": (0.5, 0.25, 0.0)}),
        "scan.bin": (numbers.astype("<f4").tobytes(), scan),
        "scan.npy": (npy.getvalue(), scan),
    }


@cache
def geometries() -> dict[str, tuple[bytes, dict[str, object]]]:
    """Return points as WKB and as lists in Parquet, with the keywords that read them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    origin, found = {"origin": (0.5, 0.25, 0.0)}, {}
    values = [b"\1" + struct.pack("<I3d", 1001, *point) for point in POINTS.tolist()]
    lists = pa.FixedSizeListArray.from_arrays(pa.array(POINTS.ravel()), 3)
    for name, column, facts in (("wkb", pa.array(values), "WKB"), ("lists", lists, "point")):
        geo = json.dumps({"primary_column": "g", "columns": {"g": {"encoding": facts}}})
        file = io.BytesIO()
        pq.write_table(
            pa.table({"g": column}, metadata={"geo": geo}), file, compression="none", row_group_size=16
        )
        found[f"{name}.parquet"] = file.getvalue(), origin
    return found


@cache
def saved() -> dict[str, tuple[bytes, dict[str, object]]]:
    """Return the files that `save` makes of geometries with ids, labels and counts, and how to read them."""
    labels = {
        "n": [1, None, 2],
        "text": ["x", None, "ö"],
        "real": [0.5, np.nan, 2],
        "flag": [True, False, True],
    }
    bare = rb.Mesh(CORNERS, FACES, objects=[0, 2, 0, 1], ids=["a", "ö", "c"], labels=labels)
    mesh = with_facts(bare, {"faces of fewer than three corners": 3})
    boxes = with_facts(rb.Boxes(BOXES.lower, BOXES.upper, ids=IDS, labels=labels), {"rows": 2})
    copies = rb.Instances(mesh, [np.eye(3, 4)] * 3, ids=[1, 2, 3], labels=labels)
    grid = rb.Grid([0, 1, 2], [0, 3.5], [0, 2], occupied=[True, False], ids=["u", "v"])
    planes = rb.Planes([[0, 0, 1]], [0.5], labels={"a": ["x"]})
    contents = {"mesh.npz": mesh, "instances.npz": copies, "scene.npz": [boxes, mesh, copies, grid, planes]}
    contents |= {"mesh.parquet": mesh, "boxes.parquet": boxes, "mesh.ply": mesh}
    return {f"saved {name}": (_saved(name, content), {"kind": "scene"}) for name, content in contents.items()}


def sample(name: str) -> tuple[bytes, dict]:
    """Return one of the files and its options; skip the test where the package that reads it is missing."""
    from needs import package  # and pytest, which benchmarks do without

    if name.endswith(".ifc"):
        package("ifcopenshell")
    return samples()[name]
