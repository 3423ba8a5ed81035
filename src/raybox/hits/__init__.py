"""Results of queries, with ids, labels and images."""

from raybox.hits.all_hits import AllHits
from raybox.hits.found_rows import Neighbors, Rows
from raybox.hits.hits import Hits
from raybox.hits.object_hits import ObjectHits
from raybox.hits.ray_hits import RayHits

__all__ = ["AllHits", "Hits", "Neighbors", "ObjectHits", "RayHits", "Rows"]
