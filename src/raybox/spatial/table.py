"""The table of spatial queries: each is a file next to this one, and two lines here."""

from raybox.hits.file_columns import FileColumns
from raybox.spatial import closest, containing, intersecting, join, overlapping, within_distance


class SpatialMethods(
    containing.ContainingMethod,
    overlapping.OverlappingMethod,
    within_distance.WithinDistanceMethod,
    closest.ClosestMethod,
    join.JoinMethod,
    intersecting.IntersectingMethod,
):
    """The methods of a scene that search for boxes without rays."""


FILE_COLUMNS: dict[str, FileColumns] = {
    "containing": containing.COLUMNS,
    "overlapping": overlapping.COLUMNS,
    "closest": closest.COLUMNS,
}
"""Queries whose results can be written to a file, by name."""
