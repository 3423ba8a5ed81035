"""Files that raybox does not read: by their first bytes, and by their extensions."""

import re

_EXTRACT = "extract it first"
FIRST_BYTES = {
    rb"version https://git-lfs": ("a pointer of Git LFS", "fetch the file: git lfs pull"),
    rb"\s*<(!doctype html|html|head|body)\b": ("a web page", "download it again: the file, not its page"),
    rb"\s*<(\?xml|!DOCTYPE)\b": ("XML", "convert it to a format that raybox reads"),
    rb"\x1f\x8b": ("compressed by gzip", "decompress it (gunzip), or let its name end in .gz"),
    rb"PK(\x03\x04|\x05\x06)": ("a zip archive", f"{_EXTRACT}; one of numpy ends in .npz"),
    rb"BZh[1-9]|\xfd7zXZ\x00|\x28\xb5\x2f\xfd|7z\xbc\xaf|Rar!": ("compressed", _EXTRACT),
    rb"Kaydara FBX": ("FBX", "export it as .glb, for instance from Blender"),
    rb"%PDF": ("PDF", "export the model itself"),
    rb"\x89PNG|\xff\xd8\xff|GIF8": ("an image", "give the file of the model"),
}
"""How files begin that are none of raybox's, as regular expressions; what they are, and the way out."""

_CAD = "export it as .glb or .stl, for instance from FreeCAD"
_EXTENSIONS = {
    "export it as .glb from Blender": ".fbx .blend .usd .usda .usdc .usdz .x3d .x3dv .wrl .abc .lwo .bvh",
    "export it as .glb from its program": ".max .ma .mb .c4d .skp .3ds",
    "convert it by trimesh: trimesh.load(PATH).export('mesh.glb')": ".off .3mf .dae .zae .3dxml .ctm .xaml",
    _CAD: ".step .stp .igs .iges .brep .fcstd .3dm .dwg .dxf .sat .x_t .x_b .sldprt .sldasm .ipt .iam .jt",
    "export it as .ifc from its program": ".rvt .rfa .pln .nwd .nwc .dgn .ifcxml",
    "convert it to .laz by CloudCompare or PDAL": ".e57 .pts .ptx .rcp .rcs .fls .zfs .rxp .bag .mcap",
    "save its bounds as a table: geopandas.read_file(PATH).bounds.to_csv('boxes.csv')": (
        ".shp .gpkg .geojson .kml .kmz .fgb .gdb .osm .pbf"
    ),
    "read it by rasterio, and make a raybox.Mesh of its heights": ".tif .tiff .dem .hgt .img .vrt .asc",
    "save its cells as an array, numpy.save('cells.npy', cells), for raybox.load_grid": (
        ".bt .ot .vdb .binvox .nii .nrrd .mha .mhd .dcm .schem .schematic .raw"
    ),
    "convert it to CityJSON: citygml-tools to-cityjson": ".gml .citygml",
    "save it as .csv or .parquet": ".xls .xlsx .ods .feather .arrow .orc .h5 .hdf5 .nc .mat .pkl .sqlite .db",
    "save its surface as .ply or .stl, for instance from ParaView": ".vtk .vtp .vtu .vti .vtm .msh .inp .bdf",
    "load the meshes that it names": ".urdf .sdf .xacro .mjcf .xml .mtl",
    "convert it to .glb: npx 3d-tiles-tools b3dmToGlb": ".b3dm .i3dm .cmpt",
    "it holds no surfaces: export a mesh": ".splat .spz .ksplat .sog .png .jpg .jpeg .webp .pdf .html",
    _EXTRACT: ".zip .7z .rar .tar .tgz .bz2 .xz .zst .ifczip",
}
EXTENSIONS = {name: way_out for way_out, names in _EXTENSIONS.items() for name in names.split()}
"""The way out for a file with an extension that no reader has."""


def foreign_start(head: bytes) -> tuple[str, str] | None:
    """Return what begins so, and the way out; None if it may be a file of raybox."""
    return next((found for start, found in FIRST_BYTES.items() if re.match(start, head, re.IGNORECASE)), None)
