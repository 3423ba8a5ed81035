"""Read and write files: one reader a format behind ``load``, one writer behind ``save``.

========================  ===========================================================================
module                    reads
========================  ===========================================================================
``tables columns``        what all tables share: blocks of rows, names of columns, ``typed_labels``
``csv_table``             .csv .tsv .txt .xyz tables of boxes, rays or points; also writes .csv
``numpy_arrays``          .npz, .npy and .bin, likewise; ``zarr_arrays``
``parquet``               .parquet, likewise; ``geo_columns``: the bounds and points of geometries
``obj stl ply glb``       meshes; .ply also points
``ifc cityjson vox``      one box for each product, city object, voxel
``grid_files``            .vox .npy .npz: a grid and its occupied cells, by ``load_grid``
``point_clouds pcd``      .las .laz, .pcd: points, which an origin turns into rays
========================  ===========================================================================

A format is one module and one line of ``table``.
"""

from raybox.io.formats.common import Loaded
from raybox.io.formats.grid_files import load_grid
from raybox.io.formats.loading import contents, load, read
from raybox.io.formats.saved_columns import Saveable
from raybox.io.formats.saving import check_target, save
from raybox.io.formats.table import FORMATS, announced

__all__ = [
    "FORMATS",
    "Loaded",
    "Saveable",
    "announced",
    "check_target",
    "contents",
    "load",
    "load_grid",
    "read",
    "save",
]
