"""One small file of each format that raybox reads, as bytes, and what is in it: for tests to cut and bend."""

import io
import json
import struct
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

import raybox as rb

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
    if order == "ascii":
        rows = [f"{x} {y} {z} 9" for x, y, z in CORNERS] + [
            " ".join(map(str, [len(f), *f])) for f in polygons
        ]
        return (head + "\n".join(rows) + "\n").encode()
    end = "<" if "little" in order else ">"
    body = b"".join(struct.pack(end + "3fB", *corner, 9) for corner in CORNERS)
    return head.encode() + body + b"".join(struct.pack(f"{end}B{len(f)}i", len(f), *f) for f in polygons)


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


def vox(
    cells: list[tuple[int, int, int]],
    *,
    size: tuple[int, int, int] = (4, 5, 6),
    scene: bytes = b"",
    models: int = 1,
) -> bytes:
    """Write a MagicaVoxel file of one model, repeated, and scene chunks."""
    filled = struct.pack("<i", len(cells)) + b"".join(bytes([*cell, 1]) for cell in cells)
    chunks = (vox_chunk(b"SIZE", struct.pack("<3i", *size)) + vox_chunk(b"XYZI", filled)) * models + scene
    return b"VOX " + struct.pack("<i", 150) + b"MAIN" + struct.pack("<ii", 0, len(chunks)) + chunks


def vox_chunk(name: bytes, content: bytes) -> bytes:
    """Wrap content in a chunk."""
    return name + struct.pack("<ii", len(content), 0) + content


def pcd(encoding: str) -> bytes:
    """Write the points with one more field, as PCD."""
    head = "# .PCD v.7\nVERSION .7\nFIELDS rgb x y z\nSIZE 4 8 8 8\nTYPE U F F F\nCOUNT 1 1 1 1\n"
    head += f"WIDTH 40\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 40\nDATA {encoding}\n"
    if encoding == "ascii":
        return (head + "".join(f"7 {x} {y} {z}\n" for x, y, z in POINTS)).encode()
    return head.encode() + b"".join(struct.pack("<I3d", 7, *point) for point in POINTS)


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


def glb() -> bytes:
    """Write two tetrahedra, the second 10 further along x, as binary glTF."""
    import trimesh

    scene = trimesh.Scene()
    for name, shift in (("here", 0.0), ("there", 10.0)):
        mesh = trimesh.Trimesh(CORNERS, FACES, process=False)
        scene.add_geometry(
            mesh, node_name=name, transform=trimesh.transformations.translation_matrix([shift, 0, 0])
        )
    return bytes(scene.export(file_type="glb"))


OBJ = b"# two parts\no left\n" + b"".join(b"v %g %g %g\n" % tuple(c) for c in CORNERS.tolist())
OBJ += b"vn 0 0 1\nf 1//1 3//1 2//1\nf 1/1 2 4\no right\nf -3 -2 -1\nf 1 4 \\\n3\n"


@cache
def samples() -> dict[str, tuple[bytes, dict[str, object]]]:
    """Give each sample's bytes by file name, with the keywords that read it."""
    scene, rays, points = {"kind": "scene"}, {"kind": "rays"}, {"origin": (0.5, 0.25, 0.0)}
    found: dict[str, tuple[bytes, dict[str, object]]] = {}
    for ending in ("npz", "npy", "csv", "parquet"):
        found[f"boxes.{ending}"] = _saved(f"a.{ending}", BOXES, ids=IDS), scene
        found[f"rays.{ending}"] = _saved(f"a.{ending}", RAYS), rays
    for order in ("ascii", "binary_little_endian", "binary_big_endian"):
        found[f"{order}.ply"] = ply(order), scene
        found[f"{order}_mixed.ply"] = ply(order, [[0, 2, 1], [0, 1, 2, 3]]), scene
    found |= {"text.stl": (stl(True), scene), "binary.stl": (stl(False), scene), "parts.obj": (OBJ, scene)}
    found |= {
        "two.glb": (glb(), scene),
        "one.ifc": (IFC.encode(), scene),
        "town.city.json": (json.dumps(CITY).encode(), scene),
    }
    found |= {"cells.vox": (vox([(0, 0, 0), (3, 4, 5), (1, 2, 3)]), scene)}
    found |= {f"{encoding}.pcd": (pcd(encoding), points) for encoding in ("ascii", "binary")}
    found |= {f"points.{ending}": (las(ending), points) for ending in ("las", "laz")}
    found["points.ply"] = ply("binary_little_endian", []), points
    return found
