"""The table of spatial queries: each is a file beside this one, and a line here."""

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
