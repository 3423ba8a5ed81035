"""Rays of a file as a viewer shows them: those to points have fields, such as intensity, time and ring."""

import os
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from raybox.geometry import Rays
from raybox.io.formats import pcd
from raybox.io.formats.common import FileArrays, Floats, ReadOptions, file_error
from raybox.io.formats.loading import contents
from raybox.io.formats.open_files import with_path
from raybox.io.formats.point_clouds import LasTable
from raybox.io.formats.table import format_of
from raybox.io.formats.tables import Table, Wanted
from raybox.io.formats.typed_labels import label

_INTENSITY = "intensity reflectivity reflectance i"
_RING = "ring channel laser laser_id"
_TIME = "t time timestamp gps_time gpstime offset_time"
POINT_FIELDS = frozenset(f"{_INTENSITY} {_RING} {_TIME}".split())
"""The names of fields that are read, in small letters."""
_RAYS = ReadOptions("rays")


class Scan(NamedTuple):
    """Rays of a file."""

    rays: Rays
    fields: dict[str, Floats]
    """(n,) each, by name; empty for rays that end at no points"""
    has_points: bool
    """whether t = 1 of each ray is a measured point"""


def scan_around_zero(path: Path) -> Scan:
    """Return the rays of a file, or those from 0 0 0 to its points, which must lie around it."""
    found = contents(path, _RAYS)
    if not isinstance(found, FileArrays):
        return Scan(cast("Rays", found.geometry), {}, has_points=False)
    points = found.arrays["points"]
    low, high = points[:, :2].min(axis=0, initial=0), points[:, :2].max(axis=0, initial=0)
    if not ((low < 0) & (high > 0)).all():
        way_out = "say where the rays start: raybox view SCENE FILE --origin X,Y,Z"
        raise file_error(path, "holds points that do not lie around 0 0 0", way_out)
    rays = Rays(np.zeros(points.shape[1]), points, invalid="miss")
    return Scan(rays, point_fields(path, _RAYS), has_points=True)


def point_fields(path: str | os.PathLike[str], options: ReadOptions) -> dict[str, Floats]:
    """Return numbers of each point of a file, (n,) each, by the names that the file gives them."""
    with with_path(path, None) as file:
        if file.suffix.lower() == ".pcd":
            return pcd.columns(file, POINT_FIELDS)
        opener = format_of(file).open
        table = opener(file, options) if opener else None
        return {} if table is None else _of_table(table, options)


def _of_table(table: Table, options: ReadOptions) -> dict[str, Floats]:
    if isinstance(table, LasTable):
        return table.numbers([name for name in table.dimensions if name.lower() in POINT_FIELDS])
    used = table.layout(options).numbers
    names = [name for name in table.names if name.lower() in POINT_FIELDS and name not in used]
    blocks = list(table.blocks(Wanted(others=names, at_once=True))) if names else []
    columns = {name: label(name, [block.columns[name] for block in blocks]) for name in names}
    return {name: values.astype(np.float64) for name, values in columns.items() if values.dtype.kind in "iuf"}
