"""Files in, files out: one reader for each format behind ``load``, one writer behind ``save``.

========================  ===========================================================================
module                    reads
========================  ===========================================================================
``text arrays parquet``   tables of boxes, rays or points (and write them): .csv, .npz .npy, .parquet
``obj stl ply glb``       meshes; .ply also points
``ifc cityjson vox``      one box of each product, city object, voxel
``points``                .las .laz .pcd: points, which an origin turns into rays
========================  ===========================================================================

``formats`` holds the table that names them; a new format is one module and one line there.
"""

from raybox.io.formats.common import Loaded
from raybox.io.formats.loading import contents, load, read
from raybox.io.formats.saving import Saveable, check_target, save
from raybox.io.formats.table import FORMATS

__all__ = ["FORMATS", "Loaded", "Saveable", "check_target", "contents", "load", "read", "save"]
